//! `hoplake get`: vertices by key, or edges by id, with their properties.

use hoplake::{EdgeId, Edges, ErrorKind, Query, StartKey, tables};

use crate::{
    failure::Failure,
    opening::GraphArgs,
    output::{
        OutputArgs, formats,
        profile::{Profile, ProfileArgs, Stopwatch},
    },
};

/// Print vertices and their properties, looked up by key, or edges by id
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: two people as JSON
  hoplake get s3://bucket/social Person:933 Person:1129 --format json

Example: an airport by its code
  hoplake get s3://bucket/routes 'airport[code = AUS]'

Example: an edge by the id that `hoplake neighbors --ids` printed
  hoplake get s3://bucket/social --edge 2/0:38/0:140/0")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// The vertices: `LABEL:KEY`, or `LABEL[CONDITION]`
    #[arg(value_name = "VERTEX", required_unless_present = "edges", conflicts_with = "edges")]
    vertices: Vec<StartKey>,
    /// An edge, instead of vertices; may be repeated
    #[arg(long = "edge", value_name = "ID")]
    edges: Vec<EdgeId>,
    /// Only these properties; all by default
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    select: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    profile: ProfileArgs,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    args.output.check()?;
    let opened = args.graph.open().await?;
    let mut query = opened.graph.query();
    if !args.edges.is_empty() {
        let stopwatch = Stopwatch::start(&query);
        let edges = found_edges(&mut query, &args.edges).await?;
        let profile = Profile::default().look_up(stopwatch.stop(&query));
        let stopwatch = Stopwatch::start(&query);
        let batch = query.full_edge_table(&edges, select(args)).await?;
        let empty = batch.slice(0, 0);
        formats::write(&args.output, &[batch], empty)?;
        let profile = profile.properties(stopwatch.stop(&query));
        args.profile.end(&opened, &query, profile).await;
        return Ok(());
    }
    let labels = query.label_ids(args.vertices.iter().map(|vertex| vertex.label()));
    // Then the look-up reads the metadata of the rows in the same wave.
    query.expect_rows(labels);
    let stopwatch = Stopwatch::start(&query);
    let found = query.start_vertices(&args.vertices).await?;
    let profile = Profile::default().look_up(stopwatch.stop(&query));
    let stopwatch = Stopwatch::start(&query);
    let batches = query.vertex_tables(&found.iter().copied().collect(), select(args)).await?;
    let profile = profile.properties(stopwatch.stop(&query));
    formats::write(&args.output, &batches, tables::empty(opened.graph.schema(), &args.select))?;
    args.profile.end(&opened, &query, profile).await;
    Ok(())
}

/// The properties that were named; all without.
fn select(args: &Args) -> Option<&[String]> {
    (!args.select.is_empty()).then_some(&args.select[..])
}

/// The edges with these ids.
async fn found_edges(query: &mut Query, ids: &[EdgeId]) -> anyhow::Result<Edges> {
    let found = query.edges(ids).await?;
    let missing = ids.iter().zip(&found).find(|(_, edge)| edge.is_none());
    if let Some((id, _)) = missing {
        let hint = "ids are those of one version: `hoplake neighbors --ids` prints them";
        return Err(Failure::new(ErrorKind::NotFound, format!("there is no edge {id}"), hint).into());
    }
    Ok(found.into_iter().flatten().collect())
}
