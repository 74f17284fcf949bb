//! `hoplake get`: vertices by key, or edges by id, with their properties.

use std::{collections::BTreeSet, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use hoplake::{EdgeId, Edges, ErrorKind, Graph, Query, Rows, StartKey};

use super::neighbors::edge_columns;
use crate::{
    failure::Failure,
    opening::GraphArgs,
    output::{
        OutputArgs, formats,
        profile::{Profile, ProfileArgs, Stopwatch},
        rows,
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
        let batch = edge_rows(&opened.graph, &mut query, &edges, &args.select).await?;
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
    let names = if args.select.is_empty() { all_properties(&opened.graph, args) } else { args.select.clone() };
    let stopwatch = Stopwatch::start(&query);
    let mut read = query.properties(&found.iter().copied().collect(), &names).await?.into_inner();
    let profile = profile.properties(stopwatch.stop(&query));
    if args.select.is_empty() {
        read = read.into_iter().map(|rows| own_properties(&opened.graph, rows)).collect::<anyhow::Result<_>>()?;
    }
    let batches = read.iter().map(rows::with_label).collect::<anyhow::Result<Vec<_>>>()?;
    formats::write(&args.output, &batches, rows::empty(&opened.graph, &names))?;
    args.profile.end(&opened, &query, profile).await;
    Ok(())
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

/// One row an edge: its id and label, both ends, and its properties; all of them if none is selected.
async fn edge_rows(graph: &Graph, query: &mut Query, edges: &Edges, select: &[String]) -> anyhow::Result<RecordBatch> {
    // Only of the edges that were named: a property that some other edge type has is a mistake here.
    let edge_types: BTreeSet<_> = edges.iter().map(|edge| edge.edge_type).collect();
    let properties = edge_types.iter().filter_map(|id| graph.schema().edge_type(*id)).flat_map(|it| &it.properties);
    let known: BTreeSet<&str> = properties.map(|property| property.name.as_str()).collect();
    if let Some(missing) = select.iter().find(|name| !known.contains(name.as_str())) {
        let known: Vec<_> = known.into_iter().collect();
        let message = format!("these edges have no property {missing:?}");
        return Err(Failure::new(ErrorKind::NotFound, message, format!("they have {}", known.join(", "))).into());
    }
    let all = || known.iter().map(|name| (*name).to_owned()).collect();
    let names: Vec<String> = if select.is_empty() { all() } else { select.to_vec() };
    let sources: Vec<_> = edges.iter().map(|edge| edge.from).collect();
    let source_labels: StringArray = sources.iter().map(|vertex| Some(query.label_of(*vertex))).collect();
    let source_keys = rows::keys(&query.keys_of(&sources).await?);
    let mut columns = edge_columns(graph, query, edges, [&names, &[]], true).await?;
    // All edges are seen from their source, so the direction is redundant.
    columns.retain(|(name, _)| name != "direction");
    // By the names that changes have, so that `hoplake apply` reads them.
    for (column, name) in columns[1..].iter_mut().zip(["label", "target_label", "target"]) {
        column.0 = name.into();
    }
    let source: [(String, ArrayRef); 2] =
        [("source_label".into(), Arc::new(source_labels)), ("source".into(), source_keys)];
    columns.splice(2..2, source);
    Ok(RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))?)
}

/// The requested properties of the labels, in the order of the schema.
fn all_properties(graph: &Graph, args: &Args) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let asked = |name: &str| args.vertices.iter().any(|vertex| vertex.label() == name);
    for property in
        graph.schema().vertex_labels.iter().filter(|label| asked(&label.name)).flat_map(|label| &label.properties)
    {
        if !names.contains(&property.name) {
            names.push(property.name.clone());
        }
    }
    names
}

/// Drops the columns that only other labels have.
fn own_properties(graph: &Graph, rows: Rows) -> anyhow::Result<Rows> {
    let label = graph.schema().vertex_labels.iter().find(|label| label.name == rows.label);
    let own = |name: &str| label.is_some_and(|label| label.properties.iter().any(|property| property.name == name));
    let fields = rows.batch.schema();
    let columns = fields.fields().iter().enumerate();
    // The key is first.
    let kept = columns.filter(|(column, field)| *column == 0 || own(field.name())).map(|(column, _)| column);
    Ok(Rows { batch: rows.batch.project(&kept.collect::<Vec<_>>())?, label: rows.label })
}
