//! `hoplake traverse`: from start vertices along hops to a set of vertices, its rows, its size or its walks.

use anyhow::bail;
use clap::ValueEnum;
use hoplake::{
    ErrorKind, Hop, Query, StartKey, StepCost, Strategy, Traversal, TraversalAnswer, TraversalRequest, VisitPolicy,
    tables,
};

use super::{
    limits::{VertexLimitArgs, processors},
    paths::{PATHS_MAX, PathArgs, PathWriter},
    query_args::QueryArgs,
};
use crate::{
    arguments,
    failure::Failure,
    opening::{GraphArgs, Opened},
    output::{
        Format, OutputArgs, Pipe, formats, numbers, print_line,
        profile::{Profile, Stopwatch},
    },
};

/// Follow hops from start vertices and print what they reach
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A hop is a direction (out, in or both), edge labels and conditions on the edge or the vertex reached:
  out:knows    both:knows,likes    in    'out:knows[since>=2011-01-01][weight<3]'

Example: the interests of friends of friends of person 933, and what finding them cost
  hoplake traverse s3://bucket/social --start Person:933 --hop both:knows --hop both:knows \\
      --hop out:hasInterest --select name,url --profile

Example: flights from Austin with one stop, by the codes of the airports, and how long the legs are
  hoplake traverse s3://bucket/routes --start 'airport[code = AUS]' --hop out:route --hop out:route \\
      --paths --select code,dist --limit 10")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Start at this vertex, LABEL:KEY, or at all that match a condition, `LABEL[CONDITION]`; may be repeated
    #[arg(long, value_name = "VERTEX", required = true)]
    start: Vec<StartKey>,
    /// Follow this hop; may be repeated, in order
    #[arg(long, value_name = "HOP")]
    hop: Vec<Hop>,
    /// In which order vertices are expanded
    #[arg(long, value_enum, default_value = "bfs")]
    strategy: StrategyName,
    /// How often a vertex may appear
    #[arg(long, value_enum, default_value = "per-depth")]
    visit: VisitName,
    /// Threads or, depth-first, vertices at a time; by default all processors, and 1 depth-first
    #[arg(long, value_name = "N", value_parser = arguments::count::<usize>, allow_negative_numbers = true)]
    parallelism: Option<usize>,
    #[command(flatten)]
    path: PathArgs,
    /// Print at most this many rows or walks; walks 1000 by default, rows all
    #[arg(long, value_name = "N", value_parser = arguments::count::<usize>, allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Print only how many vertices were reached or, with --paths, how many walks there are
    #[arg(long, conflicts_with = "limit")]
    count: bool,
    /// Print each walk from a start to the last hop
    #[arg(long)]
    paths: bool,
    #[command(flatten)]
    shared: QueryArgs,
    #[command(flatten)]
    vertex_limit: VertexLimitArgs,
}

/// In which order vertices are expanded.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum StrategyName {
    /// Breadth-first, level by level
    Bfs,
    /// Breadth-first, each block expanded when it arrives
    BfsPipelined,
    /// Depth-first
    Dfs,
}

/// How often a vertex may appear.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum VisitName {
    /// Once at each depth
    PerDepth,
    /// Only at the first depth that reaches it
    Global,
}

impl Args {
    fn traversal(&self) -> Traversal {
        let (strategy, parallelism) = match self.strategy {
            StrategyName::Bfs => (Strategy::Bfs, processors()),
            StrategyName::BfsPipelined => (Strategy::BfsPipelined, processors()),
            StrategyName::Dfs => (Strategy::Dfs, 1),
        };
        let visit = match self.visit {
            VisitName::PerDepth => VisitPolicy::PerDepth,
            VisitName::Global => VisitPolicy::Global,
        };
        Traversal {
            hops: self.hop.clone(),
            strategy,
            visit,
            parallelism: self.parallelism.unwrap_or(parallelism),
            limits: self.vertex_limit.limits(),
            ..Traversal::default()
        }
    }

    fn check(&self) -> Result<(), Failure> {
        self.shared.output.check()?;
        if self.path.edges && !self.paths {
            return Err(Failure::usage("--edges has no effect without --paths", "add --paths, or leave out --edges"));
        }
        match (self.paths, self.count) {
            (true, _) => self.shared.output.check_text("walks"),
            (_, true) => self.shared.output.check_text("a count"),
            _ => Ok(()),
        }
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    args.check()?;
    let (opened, mut query) = args.shared.begin(&args.graph).await?;
    let profile = if args.paths {
        print_paths(args, &mut query).await?
    } else {
        let request = TraversalRequest {
            starts: args.start.clone(),
            traversal: args.traversal(),
            select: (!args.count).then(|| args.path.select.clone()),
            limit: args.limit,
        };
        let answer = query.run(&request).await?;
        print_answer(args, &opened, &answer)?;
        let profile = Profile::default().look_up(answer.start_cost).hops(&args.hop, &answer.reached.profile);
        profile.properties(answer.rows_cost)
    };
    args.shared.end(&opened, &query, profile).await;
    Ok(())
}

fn print_answer(args: &Args, opened: &Opened, answer: &TraversalAnswer) -> anyhow::Result<()> {
    let reached = answer.reached.last().len();
    if args.count {
        return print_count(Some(reached as u128), &args.shared.output);
    }
    let batches = answer.rows.iter().map(tables::with_label).collect::<Result<Vec<_>, _>>()?;
    formats::write(&args.shared.output, &batches, tables::empty(opened.graph.schema(), &args.path.select))?;
    if let Some(limit) = args.limit.filter(|limit| *limit < reached) {
        eprintln!(
            "{} of {}; --limit shows more",
            numbers::count(limit as u64),
            numbers::counted(reached as u64, "vertex", "vertices")
        );
    }
    Ok(())
}

/// Prints a number: bare for people and CSV, `{"count":N}` in JSON. `None` is more than 2¹²⁸.
pub(super) fn print_count(count: Option<u128>, output: &OutputArgs) -> anyhow::Result<()> {
    let Some(count) = count else {
        let message = "there are more than 2^128 walks";
        bail!(Failure::new(ErrorKind::Limit, message, "ask for fewer hops, or count vertices instead of walks"));
    };
    match output.format() {
        Format::Json => print_line(format_args!("{{\"count\":{count}}}")),
        Format::Csv => print_line(format_args!("count\n{count}")),
        Format::Table | Format::Parquet => print_line(u64::try_from(count).map_or(count.to_string(), numbers::count)),
    }
}

async fn print_paths(args: &Args, query: &mut Query) -> anyhow::Result<Profile> {
    query.check_select(&args.path.select)?;
    if !args.count {
        let labels = query.label_ids(args.start.iter().map(StartKey::label));
        args.path.expect(query, &labels, &args.hop);
    }
    let stopwatch = Stopwatch::start(query);
    let starts = query.start_vertices(&args.start).await?;
    let look_up = stopwatch.stop(query);
    let traversal = Traversal { starts: starts.to_vec(), ..args.traversal() };
    if args.count {
        let count = query.count_walks(traversal).await?;
        print_count(count.walks, &args.shared.output)?;
        let profile = Profile::default().look_up(look_up);
        return Ok(profile.hops(&args.hop, &count.profile));
    }
    let stopwatch = Stopwatch::start(query);
    let limit = args.limit.unwrap_or(PATHS_MAX);
    // One more shows whether the result is truncated.
    let mut paths = query.paths(traversal, Some(limit.saturating_add(1))).await?;
    if args.path.with_edges() {
        paths = paths.with_edges();
    }
    let mut writer = PathWriter::new(&args.shared.output, &args.path)?;
    writer.write_all(query, &mut paths, limit).await?;
    writer.finish()?;
    if !Pipe::is_closed() && !query.next_walks(&mut paths, 1).await?.is_empty() {
        let default = if args.limit.is_none() { "; --limit shows more" } else { "" };
        eprintln!("the first {}{default}", numbers::counted(limit as u64, "walk", "walks"));
    }
    let profile = Profile::default().look_up(look_up);
    let all = stopwatch.stop(query);
    let hops = paths.profile().iter().fold(StepCost::default(), |sum, hop| StepCost {
        cost: sum.cost + hop.cost,
        time_us: sum.time_us + hop.time_us,
    });
    let names = StepCost { cost: all.cost.since(&hops.cost), time_us: all.time_us.saturating_sub(hops.time_us) };
    Ok(profile.hops(&args.hop, paths.profile()).properties(names))
}
