//! `hoplake run`: a computation over the whole graph, printed, written to a file, or written back as a property.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use anyhow::bail;
use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use clap::ValueEnum;
use hoplake::{
    Frontier, Hop, Query, StartKey, VertexId,
    changes::property_column,
    compute::{Algorithm, ComputeOptions, ComputeProgress, Computed, PageRankSettings, Placement, Selection, States},
};

use super::limits::LimitArgs;
use crate::{
    arguments,
    failure::Failure,
    opening::{GraphArgs, Opened},
    output::{
        OutputArgs, formats,
        profile::{Profile, ProfileArgs, Stopwatch},
        progress, rows,
    },
};

/// Rows that are read and written at a time.
const CHUNK_ROWS: usize = 1 << 16;

/// Compute a value for every vertex: ranks, components, levels, paths, communities
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Lists of edges are loaded into memory if they fit --max-memory (2 GiB unless it is set), and otherwise read again in each
superstep: then memory is for states alone, some 20 bytes a vertex.

Examples: the most connected people, and the rank of all of them as a property
  hoplake run s3://bucket/social pagerank --edges out:knows --top 20 --select name
  hoplake run s3://bucket/social pagerank --edges out:knows --write rank
How many friendships everyone is away from person 933, as a file
  hoplake run s3://bucket/social levels --from Person:933 --edges both:knows --all --output levels.parquet")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// What to compute
    #[arg(value_enum)]
    algorithm: AlgorithmName,
    /// Which edges take part: a direction and edge labels; by default all, for components and communities in both directions
    #[arg(long, value_name = "HOP")]
    edges: Option<Hop>,
    /// Vertices with this label take part, with or without such edges; may be repeated
    #[arg(long, value_name = "LABEL")]
    label: Vec<String>,
    /// Where levels and paths begin
    #[arg(long, value_name = "LABEL:KEY", required_if_eq_any([("algorithm", "levels"), ("algorithm", "paths")]))]
    from: Option<StartKey>,
    /// The property of edges that paths are as long as: a number of 0 or more; 1 an edge without it
    #[arg(long, value_name = "PROPERTY")]
    weight: Option<String>,
    /// The most iterations; 100 of pagerank, 10 of communities
    #[arg(long, value_name = "N", value_parser = arguments::count::<usize>, allow_negative_numbers = true)]
    iterations: Option<usize>,
    /// The part of a rank that is passed on
    #[arg(long, value_name = "PART", default_value_t = PageRankSettings::default().damping, value_parser = part)]
    damping: f64,
    /// End when ranks have changed by no more than this in sum
    #[arg(long, value_name = "SUM", default_value_t = PageRankSettings::default().tolerance)]
    tolerance: f64,
    /// Where lists of edges are
    #[arg(long, value_enum, default_value = "automatic")]
    lists: ListsName,
    /// Keep states in this file instead of memory, if lists are streamed; removed at the end
    #[arg(long, value_name = "FILE")]
    states: Option<PathBuf>,
    /// Print this many rows, the greatest ranks or the least other values first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = arguments::count::<usize>, allow_negative_numbers = true)]
    top: usize,
    /// Print the rows of all vertices, by label and as they are stored
    #[arg(long, conflicts_with = "top")]
    all: bool,
    /// Write the values into the graph as this property, in one commit
    #[arg(long, value_name = "PROPERTY")]
    write: Option<String>,
    /// Properties to print in addition to label and key
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    select: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// What to compute.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum AlgorithmName {
    /// PageRank: ranks that add up to 1
    Pagerank,
    /// Connected components, whichever way edges point
    Components,
    /// The number of edges from a vertex to each other
    Levels,
    /// The length of a shortest path from a vertex to each other
    Paths,
    /// Communities by label propagation
    Communities,
}

/// Where lists are.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ListsName {
    /// In memory if they fit
    Automatic,
    /// In memory
    Memory,
    /// Read again in each superstep
    Streamed,
}

fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().filter(|part: &f64| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "write a number from 0 to 1".into())
}

impl Args {
    fn algorithm(&self) -> anyhow::Result<Algorithm> {
        Ok(match (self.algorithm, &self.from) {
            (AlgorithmName::Pagerank, _) => Algorithm::PageRank(PageRankSettings {
                damping: self.damping,
                iterations_max: self.iterations.unwrap_or(PageRankSettings::default().iterations_max),
                tolerance: self.tolerance,
            }),
            (AlgorithmName::Components, _) => Algorithm::Components,
            (AlgorithmName::Communities, _) => Algorithm::Communities { iterations: self.iterations.unwrap_or(10) },
            (AlgorithmName::Levels, Some(start)) => Algorithm::Levels { start: start.clone() },
            (AlgorithmName::Paths, Some(start)) => {
                Algorithm::ShortestPaths { start: start.clone(), weight: self.weight.clone() }
            }
            (AlgorithmName::Levels | AlgorithmName::Paths, None) => {
                bail!(Failure::usage("levels and paths begin at a vertex", "add --from LABEL:KEY"))
            }
        })
    }

    fn options(&self) -> ComputeOptions {
        let hop = self.edges.clone().unwrap_or_else(|| match self.algorithm {
            AlgorithmName::Communities => Hop { direction: hoplake::HopDirection::Both, ..Hop::default() },
            _ => Hop::default(),
        });
        ComputeOptions {
            selection: Selection { hop, labels: self.label.clone(), ..Selection::default() },
            placement: match self.lists {
                ListsName::Automatic => Placement::Automatic,
                ListsName::Memory => Placement::Memory,
                ListsName::Streamed => Placement::Streamed,
            },
            states: self.states.clone().map_or(States::Memory, States::Slots),
            ..ComputeOptions::default()
        }
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    args.output.check()?;
    let (algorithm, options) = (args.algorithm()?, args.options());
    if let Some(states) = args.states.as_ref().filter(|states| states.exists()) {
        let message = format!("{} exists", states.display());
        bail!(Failure::usage(message, "name a file that does not exist for --states"));
    }
    let opened = args.graph.open().await?;
    let mut query = opened.graph.query();
    query.limit(&args.limits.limits());
    let stopwatch = Stopwatch::start(&query);
    let bar = progress::supersteps();
    let computed = query.compute(&algorithm, &options, |progress| bar.set_message(describe(progress))).await;
    bar.finish_and_clear();
    if let Some(states) = &args.states {
        // It was there only if states were kept at all.
        let _ = std::fs::remove_file(states);
    }
    let computed = computed?;
    let profile = Profile::default().step("computation", stopwatch.stop(&query));
    let stopwatch = Stopwatch::start(&query);
    if let Some(property) = &args.write {
        write_back(&opened, &mut query, &computed, property).await?;
    }
    if args.all || args.top > 0 {
        print(args, &opened, &mut query, &computed).await?;
    }
    args.profile.end(&opened, &query, profile.properties(stopwatch.stop(&query))).await;
    Ok(())
}

fn describe(progress: &ComputeProgress) -> String {
    let ComputeProgress { superstep, changed, residual, .. } = progress;
    let residual = residual.map(|residual| format!(", by {residual:.2e} in sum")).unwrap_or_default();
    format!("superstep {superstep}: {changed} vertices changed{residual}")
}

async fn print(args: &Args, opened: &Opened, query: &mut Query, computed: &Computed) -> anyhow::Result<()> {
    let mut batches = Vec::new();
    if args.all {
        let vertices: Vec<VertexId> = computed.vertices().collect();
        for chunk in vertices.chunks(CHUNK_ROWS) {
            batches.extend(read(query, computed, chunk, &args.select).await?.into_iter().map(|(_, batch)| batch));
        }
    } else {
        let top = computed.top(args.top);
        let read = read(query, computed, &top, &args.select).await?;
        let places = read.iter().flat_map(|(vertices, batch)| vertices.iter().zip((0..).map(move |row| (batch, row))));
        let places: HashMap<_, _> = places.collect();
        batches.extend(top.iter().filter_map(|vertex| places.get(vertex).map(|(batch, row)| batch.slice(*row, 1))));
    }
    formats::write(&args.output, &batches, rows::empty(&opened.graph, &args.select))
}

/// The rows of some vertices with their values: a batch for each label, and which vertices it has.
async fn read(
    query: &mut Query,
    computed: &Computed,
    vertices: &[VertexId],
    select: &[String],
) -> anyhow::Result<Vec<(Vec<VertexId>, RecordBatch)>> {
    let frontier: Frontier = vertices.iter().copied().collect();
    let mut of_labels = frontier.by_label();
    let mut batches = Vec::new();
    for labelled in query.properties(&frontier, select).await?.iter() {
        let Some((label, ordinals)) = of_labels.next() else { break };
        let vertices: Vec<_> = ordinals.iter().filter_map(|ordinal| VertexId::new(label, ordinal)).collect();
        let batch = rows::with_label(labelled)?;
        let taken = batch.column_by_name(computed.name).is_some();
        let name = if taken { format!("run.{}", computed.name) } else { computed.name.to_owned() };
        let values = computed.column(&vertices);
        let value = Arc::new(Field::new(name, values.data_type().clone(), true));
        let (mut fields, mut columns) = (batch.schema().fields().to_vec(), batch.columns().to_vec());
        // Behind label and key.
        fields.insert(2, value);
        columns.insert(2, values);
        batches.push((vertices, RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?));
    }
    Ok(batches)
}

/// Writes all values as a property, in one commit on the version that they were computed of.
async fn write_back(opened: &Opened, query: &mut Query, computed: &Computed, property: &str) -> anyhow::Result<()> {
    let vertices: Vec<VertexId> = computed.vertices().collect();
    let mut commit = opened.graph.begin();
    for chunk in vertices.chunks(CHUNK_ROWS) {
        for (of_label, batch) in read(query, computed, chunk, &[]).await? {
            let label = of_label.first().map(|vertex| query.label_of(*vertex)).unwrap_or_default();
            let columns = [("key", batch.column(1).clone()), (&*property_column(property), batch.column(2).clone())];
            commit.upsert_vertices(&label, &RecordBatch::try_from_iter(columns)?)?;
        }
    }
    let committed = commit.message(format!("{} of {} vertices", computed.name, vertices.len())).commit().await?;
    eprintln!("version {} has {property} of {} vertices", committed.version, vertices.len());
    Ok(())
}
