//! `hoplake info`: what a graph is and how large.

mod degrees;
mod json;
mod text;

use hoplake::{Graph, GraphInfo, IndexId};

use crate::{
    opening::GraphArgs,
    output::{Pipe, print_line},
};

/// Print the schema, counts, degrees and sizes of a graph
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
}

/// All that is printed.
pub struct Facts<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Its counts and sizes.
    pub info: GraphInfo,
    /// Its versions, oldest first.
    pub versions: Vec<u64>,
    /// Where it is.
    pub url: &'a str,
}

impl Facts<'_> {
    /// An index as it was created, such as `airport.code`.
    fn index_name(&self, id: IndexId) -> String {
        let manifest = self.graph.manifest();
        let Some(index) = manifest.index(id) else { return "?".into() };
        let label = manifest.schema.label(index.label).map_or("?", |label| &label.name);
        format!("{label}.{}", index.property)
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let opened = args.graph.open().await?;
    let versions = Graph::versions(&args.graph.store()?).await?;
    let facts = Facts { graph: &opened.graph, info: opened.graph.info().await?, versions, url: &args.graph.url };
    if args.json { print_line(json::object(&facts)) } else { text::write(&facts, &mut Pipe::stdout()) }
}

/// Writes the shape of a graph as the verb does: its labels and edge types.
pub async fn write_shape(graph: &Graph, out: &mut impl std::io::Write) -> anyhow::Result<()> {
    text::write_labels(graph, out)?;
    text::write_edge_types(graph, out)
}
