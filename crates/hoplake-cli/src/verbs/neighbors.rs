//! `hoplake neighbors`: the edges of a vertex, with properties of the edge or of the vertex at its other end.

use hoplake::{DepthProfile, Frontier, Hop, Query, StartKey, StepCost};

use super::{query_args::QueryArgs, traverse::print_count};
use crate::{
    arguments,
    opening::{GraphArgs, check_hop},
    output::{
        formats,
        profile::{Profile, Stopwatch},
    },
};

/// Print the edges of a vertex and where they lead
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A name in --select is a property of the edge if its type has it, else of the vertex at the other end.

Example: whom person 933 knows, and since when
  hoplake neighbors s3://bucket/social Person:933 --hop both:knows --select creationDate,firstName")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// The vertex: `LABEL:KEY`, or `LABEL[CONDITION]` that one vertex matches
    #[arg(value_name = "VERTEX")]
    vertex: StartKey,
    /// What to follow: a direction, edge labels and conditions
    #[arg(long, value_name = "HOP", default_value = "out")]
    hop: Hop,
    /// Properties to print, of the edge or of the vertex at its other end
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "count")]
    select: Vec<String>,
    /// Print the id of each edge, which `hoplake get --edge` looks up
    #[arg(long, conflicts_with = "count")]
    ids: bool,
    /// Print only how many edges there are
    #[arg(long, conflicts_with = "limit")]
    count: bool,
    /// Print the first rows only, at most this many; of a vertex with many edges, only their blocks are read
    #[arg(long, value_name = "N", value_parser = arguments::count::<usize>, allow_negative_numbers = true)]
    limit: Option<usize>,
    #[command(flatten)]
    shared: QueryArgs,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.output.check()?;
    let (opened, mut query) = args.shared.begin(&args.graph).await?;
    let graph = &opened.graph;
    check_hop(graph.schema(), &args.hop)?;
    query.check_select(&args.select)?;
    if !args.count {
        expect(&mut query, args);
    }
    let stopwatch = Stopwatch::start(&query);
    let vertex = query.named(std::slice::from_ref(&args.vertex)).await?;
    let profile = Profile::default().look_up(stopwatch.stop(&query));
    let stopwatch = Stopwatch::start(&query);
    if args.count {
        args.shared.output.check_text("a count")?;
        let degrees = query.degrees(&vertex, &args.hop).await?;
        let count: u64 = degrees.iter().map(|degree| degree.edges).sum();
        print_count(Some(count.into()), &args.shared.output)?;
        let profile = profile.hop(&args.hop, depth(count, 0, stopwatch.stop(&query)));
        args.shared.end(&opened, &query, profile).await;
        return Ok(());
    }
    let mut edges = match args.limit {
        None => query.neighbors(&vertex, &args.hop).await?,
        // One more tells whether there are more.
        Some(limit) => query.first_neighbors(&vertex, &args.hop, limit.saturating_add(1)).await?,
    };
    let found = edges.len();
    let limit = args.limit.unwrap_or(found);
    edges.truncate(limit);
    let reached: Frontier = edges.targets().iter().copied().collect();
    let profile = profile.hop(&args.hop, depth(edges.len() as u64, reached.len() as u64, stopwatch.stop(&query)));
    let stopwatch = Stopwatch::start(&query);
    let batch = query.edge_table(&edges, &args.select, args.ids).await?;
    let profile = profile.properties(stopwatch.stop(&query));
    let empty = batch.slice(0, 0);
    formats::write(&args.shared.output, &[batch], empty)?;
    if limit < found {
        eprintln!("there are more edges; --limit shows more, and --count counts them");
    }
    args.shared.end(&opened, &query, profile).await;
    Ok(())
}

/// Has the look-up of the vertex read alongside what its edges and their ends will need.
fn expect(query: &mut Query, args: &Args) {
    let labels = query.label_ids([args.vertex.label()]);
    query.expect_rows_at_end(&labels, std::slice::from_ref(&args.hop));
    if !args.select.is_empty() {
        query.expect_edge_rows(&labels, &args.hop);
    }
}

fn depth(edges: u64, vertices: u64, StepCost { cost, time_us }: StepCost) -> DepthProfile {
    DepthProfile { edges, vertices, cost, time_us }
}
