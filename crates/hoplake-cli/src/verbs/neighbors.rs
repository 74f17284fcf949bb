//! `hoplake neighbors`: the edges of a vertex, with properties of the edge or of the vertex at its other end.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use arrow_select::interleave::interleave;
use hoplake::{
    DepthProfile, Described, Edges, Frontier, Graph, Hop, Query, StartKey, StepCost, VertexId, changes::property_column,
};

use super::{query_args::QueryArgs, traverse::print_count};
use crate::{
    arguments,
    opening::{GraphArgs, check_hop},
    output::{
        formats,
        profile::{Profile, Stopwatch},
        rows,
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
    let batch = read_rows(graph, &mut query, &edges, &args.select, args.ids).await?;
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

/// One row an edge, perhaps with its id: its label and direction, the vertex at its other end, and what was selected.
async fn read_rows(
    graph: &Graph,
    query: &mut Query,
    edges: &Edges,
    select: &[String],
    with_ids: bool,
) -> anyhow::Result<RecordBatch> {
    let columns = edge_columns(graph, query, edges, [select, select], with_ids).await?;
    let fields = columns.iter().map(|(name, column)| Field::new(name, column.data_type().clone(), true));
    let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()));
    Ok(RecordBatch::try_new(schema, columns.into_iter().map(|(_, column)| column).collect())?)
}

/// The columns of [`read_rows`]: of the edges themselves, and of the vertices at their other ends where an edge does not have a
/// property.
pub(super) async fn edge_columns(
    graph: &Graph,
    query: &mut Query,
    edges: &Edges,
    [of_edges, of_vertices]: [&[String]; 2],
    with_ids: bool,
) -> anyhow::Result<Vec<(String, ArrayRef)>> {
    let select = of_edges;
    let of_edges = if has_edge_property(graph, of_edges) { of_edges } else { &[] };
    let of_vertices: Vec<_> = of_vertices.iter().filter(|name| has_vertex_property(graph, name)).cloned().collect();
    let described = query.describe(edges, of_edges, &of_vertices).await?;
    let batch = graph.edge_batch(edges.all())?;
    let own = [("edge_id", "id"), ("edge", "label"), ("direction", "direction"), ("label", "to_label")];
    let own = own.iter().filter(|(name, _)| with_ids || *name != "edge_id");
    let mut columns: Vec<(String, ArrayRef)> = own
        .filter_map(|(name, column)| Some(((*name).to_owned(), batch.column_by_name(column)?.clone())))
        .chain([("key".to_owned(), rows::keys(&described.keys))])
        .collect();
    let cells = Cells::of(graph, edges, described.into_inner());
    for name in select {
        columns.push((property_column(name), cells.column(name, edges.len())?));
    }
    Ok(columns)
}

/// Batches of properties, and for each of their rows the edges that it belongs to. Earlier batches win.
struct Cells(Vec<(RecordBatch, Vec<(usize, usize)>)>);

impl Cells {
    fn of(graph: &Graph, edges: &Edges, described: Described) -> Self {
        let mut batches = Vec::new();
        for rows in described.edges {
            let positions = rows.positions.iter().enumerate().map(|(row, edge)| (*edge, row)).collect();
            batches.push((rows.batch, positions));
        }
        let ends: BTreeSet<VertexId> = edges.targets().iter().copied().collect();
        for rows in described.vertices {
            let label = graph.schema().label_id(&rows.label);
            let mine = ends.iter().filter(|end| Some(end.label()) == label);
            let row_of: HashMap<_, _> = mine.zip(0..).collect();
            let positions = edges.targets().iter().enumerate();
            let positions = positions.filter_map(|(at, end)| Some((at, *row_of.get(end)?)));
            batches.push((rows.batch, positions.collect()));
        }
        Self(batches)
    }

    /// The values of one property, one an edge; null where neither edge nor vertex has it.
    fn column(&self, name: &str, edges: usize) -> anyhow::Result<ArrayRef> {
        let mut sources: Vec<ArrayRef> = Vec::new();
        let mut positions: Vec<Option<(usize, usize)>> = vec![None; edges];
        for (batch, rows) in &self.0 {
            let Some(values) = batch.column_by_name(name) else { continue };
            for (edge, row) in rows {
                // 0 is the column of nulls that stands before all others.
                positions[*edge].get_or_insert((sources.len() + 1, *row));
            }
            sources.push(values.clone());
        }
        // A property can have one type on edges and another on vertices; a column has one, and text holds both.
        let first = sources.first().map_or(DataType::Utf8, |column| column.data_type().clone());
        let kind = if sources.iter().all(|column| *column.data_type() == first) { first } else { DataType::Utf8 };
        let texts =
            sources.into_iter().map(|column| if *column.data_type() == kind { column } else { rows::as_text(&column) });
        let mut arrays = vec![new_null_array(&kind, 1)];
        arrays.extend(texts);
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        let positions: Vec<_> = positions.into_iter().map(|position| position.unwrap_or((0, 0))).collect();
        Ok(interleave(&arrays, &positions)?)
    }
}

fn has_edge_property(graph: &Graph, names: &[String]) -> bool {
    graph.schema().edge_types.iter().any(|edge| edge.properties.iter().any(|property| names.contains(&property.name)))
}

fn has_vertex_property(graph: &Graph, name: &str) -> bool {
    graph.schema().vertex_labels.iter().any(|label| label.properties.iter().any(|property| property.name == name))
}
