//! `hoplake info`: what a graph is and how large.

mod degrees;
mod facts;
mod json;
mod text;
mod upkeep;

use std::time::Instant;

use hoplake::{Graph, QueryContext, StepCost};

use self::{facts::Facts, upkeep::Upkeep};
use crate::{
    opening::GraphArgs,
    output::{
        Pipe, print_line,
        profile::{Profile, ProfileArgs},
    },
};

/// Print the schema, counts, degrees and sizes of a graph, and whether compaction is due
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: the edge types of a graph and how many edges each has
  hoplake info s3://bucket/social --json | jq '.edge_types[] | {label: .label, count}'")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    profile: ProfileArgs,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let opened = args.graph.open().await?;
    let begun = Instant::now();
    let context = QueryContext::new();
    let versions = Graph::versions(&args.graph.store()?.metered_by(&context)).await?;
    let graph = &opened.graph;
    let info = graph.info().await?;
    let upkeep = Upkeep::of(graph).await?;
    let facts = Facts { graph, info, upkeep, versions, url: &args.graph.url };
    if args.json {
        print_line(json::object(&facts))?;
    } else {
        text::write(&facts, &mut Pipe::stdout())?;
    }
    let listed = StepCost { cost: context.cost(), time_us: begun.elapsed().as_micros() as u64 };
    args.profile.print(Profile::default().open(opened.cost).step("list", listed), graph.prices());
    Ok(())
}

/// Writes the shape of a graph as the verb does: its labels and edge types.
pub async fn write_shape(graph: &Graph, out: &mut impl std::io::Write) -> anyhow::Result<()> {
    text::write_labels(graph, out)?;
    text::write_edge_types(graph, out)
}
