//! `hoplake khop`: all vertices within some hops of one, each with its distance.

use hoplake::{Hop, Reached, StartKey, Traversal, VisitPolicy, tables};
use serde_json::json;

use super::{
    limits::{VertexLimitArgs, processors},
    query_args::QueryArgs,
    traverse::print_count,
};
use crate::{
    arguments,
    opening::GraphArgs,
    output::{
        Format, formats, print_line,
        profile::{Profile, Stopwatch},
    },
};

/// Print the vertices within some hops of a vertex, with their distances
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The vertex itself does not count.

Example: how many people are within three friendships of person 933
  hoplake khop s3://bucket/social Person:933 --depth 3 --hop both:knows --count")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// The vertex: `LABEL:KEY`, or `LABEL[CONDITION]` that one vertex matches
    #[arg(value_name = "VERTEX")]
    vertex: StartKey,
    /// How many hops
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = arguments::hops, allow_negative_numbers = true)]
    depth: usize,
    /// What a hop may follow: a direction, edge labels and conditions
    #[arg(long, value_name = "HOP", default_value = "both")]
    hop: Hop,
    /// Properties to print in addition to label and key
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "count")]
    select: Vec<String>,
    /// Print only how many there are; in JSON by distance too
    #[arg(long, conflicts_with = "limit")]
    count: bool,
    /// Print at most this many rows, nearest first
    #[arg(long, value_name = "N", value_parser = arguments::count::<usize>, allow_negative_numbers = true)]
    limit: Option<usize>,
    #[command(flatten)]
    shared: QueryArgs,
    #[command(flatten)]
    vertex_limit: VertexLimitArgs,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.output.check()?;
    let (opened, mut query) = args.shared.begin(&args.graph).await?;
    let hops = vec![args.hop.clone(); args.depth];
    if !args.count {
        let labels = query.label_ids([args.vertex.label()]);
        query.expect_rows_on_the_way(&labels, &hops);
    }
    let stopwatch = Stopwatch::start(&query);
    let starts = query.named(std::slice::from_ref(&args.vertex)).await?;
    let look_up = stopwatch.stop(&query);
    let traversal = Traversal {
        starts,
        hops: hops.clone(),
        visit: VisitPolicy::Global,
        parallelism: processors(),
        limits: args.vertex_limit.limits(),
        ..Traversal::default()
    };
    let reached = query.traverse(traversal).await?;
    let stopwatch = Stopwatch::start(&query);
    if args.count {
        count(args, &reached)?;
    } else {
        let batches = query.distance_tables(&reached, &args.select, args.limit).await?;
        formats::write(
            &args.shared.output,
            &batches,
            tables::with_distance(&tables::empty(opened.graph.schema(), &args.select), 0)?,
        )?;
    }
    let profile = Profile::default().look_up(look_up).hops(&hops, &reached.profile).properties(stopwatch.stop(&query));
    args.shared.end(&opened, &query, profile).await;
    Ok(())
}

fn count(args: &Args, reached: &Reached) -> anyhow::Result<()> {
    let by_depth: Vec<_> = reached.depths.iter().skip(1).map(|depth| depth.len() as u64).collect();
    let count: u64 = by_depth.iter().sum();
    match args.shared.output.format() {
        Format::Json => print_line(json!({"count": count, "by_depth": by_depth})),
        _ => args
            .shared
            .output
            .check_text("a count")
            .map_err(Into::into)
            .and_then(|()| print_count(Some(count.into()), &args.shared.output)),
    }
}
