//! `hoplake path`: a shortest path between two vertices.

use hoplake::{ErrorKind, FoundPath, Hop, PathQuery, Query, StartKey, VertexId, WeightedPathQuery};

use super::{
    limits::VertexLimitArgs,
    paths::{PathArgs, PathWriter},
    query_args::QueryArgs,
    traverse::print_count,
};
use crate::{
    arguments,
    failure::Failure,
    opening::GraphArgs,
    output::{
        Format, print_line,
        profile::{Profile, Stopwatch},
    },
};

/// After this many hops no label is met for the first time, in any schema that we know.
const LABELS_FAR: usize = 64;

/// Print a shortest path between two vertices
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Of several shortest paths it prints always the same one. If there is no path the status is 3. It looks for paths of up to 16 edges, or
--max-depth: if there is none but there may be a longer one, the status is 6. With --weight, paths may have any number of edges.

Example: how two people know each other
  hoplake path s3://bucket/social --from Person:933 --to Person:1129 --hop both:knows
Example: the airports between two, by their codes, and how far they are apart
  hoplake path s3://bucket/routes --from 'airport[code = AUS]' --to 'airport[code = FNC]' --hop out:route --select code,dist
Example: the shortest way between them by distance, and how long it is
  hoplake path s3://bucket/routes --from 'airport[code = AUS]' --to 'airport[code = FNC]' --hop out:route --weight dist")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Where the path begins: `LABEL:KEY`, or `LABEL[CONDITION]` that one vertex matches
    #[arg(long, value_name = "VERTEX")]
    from: StartKey,
    /// Where the path ends
    #[arg(long, value_name = "VERTEX")]
    to: StartKey,
    /// Which edges it may take: a direction and edge labels
    #[arg(long, value_name = "HOP", default_value = "both")]
    hop: Hop,
    /// Maximum path length, in edges
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = arguments::hops, allow_negative_numbers = true)]
    max_depth: usize,
    /// The edge property to use as weight, 0 or more; without it every edge counts 1. The total is printed on stderr
    #[arg(long, value_name = "PROPERTY", conflicts_with = "max_depth")]
    weight: Option<String>,
    /// Print only how many edges the path has
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    shared: QueryArgs,
    #[command(flatten)]
    vertex_limit: VertexLimitArgs,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.output.check_text("a path")?;
    let (opened, mut query) = args.shared.begin(&args.graph).await?;
    query.check_select(&args.path.select)?;
    if !args.count {
        expect(&mut query, args);
    }
    let stopwatch = Stopwatch::start(&query);
    let ends = query.named(&[args.from.clone(), args.to.clone()]).await?;
    let profile = Profile::default().look_up(stopwatch.stop(&query));
    let stopwatch = Stopwatch::start(&query);
    let found = search(&mut query, args, [ends[0], ends[1]]).await;
    let profile = profile.step("search", stopwatch.stop(&query));
    let (found, length) = found?;
    let is_exhausted = found == FoundPath::None;
    let Some(path) = found.into_path() else {
        if args.shared.output.format() == Format::Json {
            print_line("null")?;
        }
        args.shared.end(&opened, &query, profile).await;
        return Err(no_path(args, is_exhausted).into());
    };
    if let Some((weight, length)) = args.weight.as_ref().zip(length) {
        eprintln!("total {weight}: {length}");
    }
    let stopwatch = Stopwatch::start(&query);
    if args.count {
        print_count(Some(path.vertices.len() as u128 - 1), &args.shared.output)?;
    } else {
        let mut writer = PathWriter::new(&args.shared.output, &args.path)?;
        writer.write(&mut query, &[path]).await?;
        writer.finish()?;
    }
    let profile = profile.properties(stopwatch.stop(&query));
    args.shared.end(&opened, &query, profile).await;
    Ok(())
}

/// The path, and how long it is by weight.
async fn search(
    query: &mut Query,
    args: &Args,
    [from, to]: [VertexId; 2],
) -> Result<(FoundPath, Option<f64>), hoplake::Error> {
    let hop = args.hop.clone();
    let limits = args.vertex_limit.limits();
    let edges = args.path.with_edges();
    let Some(weight) = args.weight.clone() else {
        let depth_max = args.max_depth;
        return Ok((query.shortest_path(PathQuery { from, to, hop, depth_max, edges, limits }).await?, None));
    };
    let found =
        query.weighted_path(WeightedPathQuery { from, to, hop, weight, edges, length_max: None, limits }).await?;
    Ok(found.map_or((FoundPath::None, None), |path| (FoundPath::Path(path.walk), Some(path.length))))
}

/// Has the look-up of the ends read alongside what the path will need: the search follows edges from both of them.
fn expect(query: &mut Query, args: &Args) {
    let far = args.max_depth.min(LABELS_FAR);
    let from = query.label_ids([args.from.label()]);
    args.path.expect(query, &from, &vec![args.hop.clone(); far]);
    if args.path.with_edges() {
        let to = query.label_ids([args.to.label()]);
        args.path.expect(query, &to, &vec![args.hop.reversed(); far]);
    }
}

/// Without a path. `is_exhausted` says whether there is none of any length.
fn no_path(args: &Args, is_exhausted: bool) -> Failure {
    let Args { from, to, hop, max_depth, .. } = args;
    if is_exhausted {
        let message = format!("there is no path from {from} to {to} along {hop}");
        return Failure::new(ErrorKind::NotFound, message, "allow other edges with --hop, or both directions");
    }
    let message = format!("there is no path from {from} to {to} along {hop} of at most {max_depth} edges");
    Failure::new(ErrorKind::Limit, message, "there may be a longer one: raise --max-depth")
}
