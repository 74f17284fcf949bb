//! `hoplake run`: a computation over the whole graph, printed, written to a file, or written back as a property.

mod algorithm;

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, LazyLock},
    time::Duration,
};

use anyhow::bail;
use bytesize::ByteSize;
use clap::ValueEnum;
use hoplake::{
    ErrorKind, Hop, Query, VertexId,
    compute::{
        Algorithm, Asynchronous, CHECKPOINT_EVERY, CheckpointFile, ComputeOptions, ComputeProgress, Computed, Figure,
        Placement, Selection, States, StatesCache, registry::ALGORITHMS, usual_hop,
    },
    tables,
};

use self::algorithm::{AlgorithmArgs, no_effect};
use super::query_args::QueryArgs;
use crate::{
    arguments,
    failure::Failure,
    opening::{GraphArgs, Opened},
    output::{
        check_writable, formats, numbers,
        profile::{Profile, Stopwatch},
        progress,
    },
};

/// Rows that are printed unless a number is given.
const TOP: usize = 20;

static AFTER_HELP: LazyLock<String> = LazyLock::new(|| {
    let streamed = ALGORITHMS.iter().filter(|spec| spec.has_program()).map(|spec| spec.name);
    let streamed: Vec<&str> = streamed.collect();
    format!(
        "\
Lists of edges are loaded into memory if they fit --max-memory (default 2 GiB). Otherwise these algorithms read them again in
each superstep: {}. Then memory is for states and signals, 14 to 30 bytes a vertex, and for lists on
their way. The others need their lists in memory.

Examples: the most connected people, and the rank of all of them as a property
  hoplake run s3://bucket/social pagerank --edges out:knows --top 20 --select name
  hoplake run s3://bucket/social pagerank --edges out:knows --write rank
How many friendships everyone is away from person 933, as a file
  hoplake run s3://bucket/social levels --from Person:933 --edges both:knows --all --output levels.parquet
People that many shortest paths lead through, by an estimate from the paths of 1000
  hoplake run s3://bucket/social betweenness --edges both:knows --sample 1000",
        streamed.join(", ")
    )
});

/// Compute a value for every vertex: ranks, components, distances, communities, centrality
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP.as_str())]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    #[command(flatten)]
    algorithm: AlgorithmArgs,
    /// Which edges take part: a direction, edge labels and a condition; by default `out` along all, or `both` where edges have no
    /// direction
    #[arg(long, value_name = "HOP")]
    edges: Option<Hop>,
    /// Vertices with this label take part, with or without such edges; may be repeated
    #[arg(long, value_name = "LABEL")]
    label: Vec<String>,
    /// Where lists of edges are
    #[arg(long, value_enum, default_value = "automatic")]
    lists: ListsName,
    /// Keep states in a file of slots (FILE or slots:FILE) or in a key-value store (redb:FILE). The file is created,
    /// and removed at the end. Requires `--lists streamed`
    #[arg(long, value_name = "PLACE", value_parser = States::from_str)]
    states: Option<States>,
    /// Keep this much of these states in memory; for a place that is slow
    #[arg(long, value_name = "SIZE", value_parser = arguments::size_from_1, requires = "states")]
    states_cache: Option<ByteSize>,
    /// Write states to this file now and then, and go on from it if it is there; removed at the end. For
    /// algorithms that run in supersteps
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// The least time between two checkpoints [default: 1min]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, requires = "checkpoint")]
    checkpoint_every: Option<Duration>,
    /// Process the highest-scoring vertices first instead of running supersteps; not for communities. Worth it where paths are long, as on
    /// roads
    #[arg(long)]
    asynchronous: bool,
    /// Skip a vertex until the total score of its pending changes reaches this [default: 0]
    #[arg(long, value_name = "SCORE", value_parser = sum, allow_negative_numbers = true, requires = "asynchronous")]
    threshold: Option<f64>,
    /// Process a waiting vertex after at most this many steps, even if others score higher [default: 8]
    #[arg(long, value_name = "STEPS", value_parser = arguments::count::<usize>, allow_negative_numbers = true, requires = "asynchronous")]
    staleness: Option<usize>,
    /// Print this many rows: the least components, communities, levels and lengths first, and the greatest other values [default: 20]
    #[arg(long, value_name = "N", value_parser = arguments::count::<usize>, allow_negative_numbers = true)]
    top: Option<usize>,
    /// Print the rows of all vertices, by label and as they are stored
    #[arg(long, conflicts_with = "top")]
    all: bool,
    /// Write the values into the graph as this property, in one commit; it replaces what the property was
    #[arg(long, value_name = "PROPERTY", value_parser = property)]
    write: Option<String>,
    /// Properties to print in addition to label and key
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    select: Vec<String>,
    #[command(flatten)]
    shared: QueryArgs,
}

/// Where lists are.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ListsName {
    /// In memory if they fit, otherwise streamed or packed
    Automatic,
    /// In memory, decoded
    Memory,
    /// As they are stored, in memory or mapped: less memory, more time
    Packed,
    /// Read again in each superstep
    Streamed,
}

fn sum(text: &str) -> Result<f64, String> {
    let sum = text.parse().ok().filter(|sum: &f64| sum.is_finite() && *sum >= 0.0);
    sum.ok_or_else(|| "write a number, 0 or more".into())
}

/// A name as text forms have it: a dot before it is left out.
fn property(text: &str) -> Result<String, String> {
    let name = text.strip_prefix('.').unwrap_or(text);
    if name.is_empty() { Err("write the name of a property".into()) } else { Ok(name.into()) }
}

impl Args {
    /// Whether it changes the graph.
    pub fn writes(&self) -> bool {
        self.write.is_some()
    }

    /// Rejects options that would have no effect.
    fn check(&self) -> Result<(), Failure> {
        let spec = self.algorithm.spec;
        let has_values = spec.value.is_some();
        let given = [
            ("--top", self.top.is_some(), has_values),
            ("--checkpoint", self.checkpoint.is_some(), spec.has_program()),
            ("--asynchronous", self.asynchronous, has_values),
            ("--all", self.all, has_values),
            ("--write", self.write.is_some(), has_values),
            ("--select", !self.select.is_empty(), has_values),
        ];
        if let Some((option, ..)) = given.into_iter().find(|(_, is_given, is_used)| *is_given && !is_used) {
            return Err(no_effect(option, spec));
        }
        if self.asynchronous && self.checkpoint.is_some() {
            let message = "an asynchronous computation has no checkpoints";
            return Err(Failure::usage(message, "leave out --asynchronous or --checkpoint"));
        }
        let Some(states) = &self.states else { return Ok(()) };
        if !matches!(self.lists, ListsName::Streamed) {
            return Err(Failure::usage(
                "states are in memory with lists in memory",
                "add --lists streamed to --states",
            ));
        }
        match states.file() {
            Some(file) if file.exists() => {
                let message = format!("{} exists", file.display());
                Err(Failure::usage(message, "name a file that does not exist for --states"))
            }
            _ => Ok(()),
        }
    }

    fn options(&self) -> ComputeOptions {
        let hop = self.edges.clone().unwrap_or_else(|| usual_hop(self.algorithm.spec));
        ComputeOptions {
            selection: Selection { hop, labels: self.label.clone(), ..Selection::default() },
            placement: match self.lists {
                ListsName::Automatic => Placement::Automatic,
                ListsName::Memory => Placement::Memory,
                ListsName::Packed => Placement::Packed,
                ListsName::Streamed => Placement::Streamed,
            },
            states: self.states.clone().unwrap_or_default(),
            states_cache: self.states_cache.map(|size| StatesCache::new(size.as_u64())),
            checkpoint: self
                .checkpoint
                .clone()
                .map(|path| CheckpointFile { path, every: self.checkpoint_every.unwrap_or(CHECKPOINT_EVERY) }),
            asynchronous: self.asynchronous.then(|| {
                let usual = Asynchronous::default();
                Asynchronous {
                    threshold: self.threshold.unwrap_or(usual.threshold),
                    staleness_max: self.staleness.unwrap_or(usual.staleness_max),
                    ..usual
                }
            }),
            ..ComputeOptions::default()
        }
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.output.check()?;
    let algorithm = args.algorithm.algorithm()?;
    args.check()?;
    let options = args.options();
    // Before the graph is opened: a missing folder should not be found after the lists were read.
    let states = args.states.as_ref().and_then(States::file);
    states.into_iter().chain(args.checkpoint.as_deref()).try_for_each(check_writable)?;
    let (opened, mut query) = args.shared.begin(&args.graph).await?;
    let stopwatch = Stopwatch::start(&query);
    let bar = progress::supersteps();
    if let Some(property) = &args.write {
        check_write(&opened, &query, &algorithm, &options, property).await?;
    }
    let computed = query.compute(&algorithm, &options, |progress| bar.set_message(describe(progress))).await;
    bar.finish_and_clear();
    if let Some(states) = states {
        // It was there only if states were kept at all.
        let _ = std::fs::remove_file(states);
    }
    // Only now, so that the progress bar and the file of states are gone when the error is printed.
    let computed = Arc::new(computed.map_err(|error| explained(error, args.checkpoint.as_deref()))?);
    if !computed.has_values() {
        let batch = computed.figure_table()?;
        formats::write(&args.shared.output, std::slice::from_ref(&batch), batch.slice(0, 0))?;
        args.shared.end(&opened, &query, Profile::default().step("computation", stopwatch.stop(&query))).await;
        return Ok(());
    }
    if computed.is_empty() {
        let message = "no vertex takes part: no label of the graph has such edges";
        bail!(Failure::usage(message, "add --label for vertices without edges"));
    }
    eprintln!("{}", summary(&computed));
    let profile = Profile::default().step("computation", stopwatch.stop(&query));
    let stopwatch = Stopwatch::start(&query);
    // A commit that fails, such as one on what a feed has changed meanwhile, must not take what was computed with it: it is printed, and a
    // checkpoint stays.
    let written = match &args.write {
        Some(property) => write_back(&opened, &mut query, &computed, property).await,
        None => Ok(()),
    };
    if args.all || args.top != Some(0) {
        print(args, &opened, &mut query, &computed).await?;
    }
    written?;
    if let Some(checkpoint) = &args.checkpoint {
        // The result is out. One that was too short for a checkpoint has left none.
        let _ = std::fs::remove_file(checkpoint);
    }
    args.shared.end(&opened, &query, profile.properties(stopwatch.stop(&query))).await;
    Ok(())
}

/// An error of a checkpoint says what to do with that.
fn explained(error: hoplake::Error, checkpoint: Option<&Path>) -> anyhow::Error {
    let of_checkpoint =
        checkpoint.is_some_and(|file| error.to_string().starts_with(&format!("checkpoint {}: ", file.display())));
    if !of_checkpoint {
        return error.into();
    }
    let hint = "remove it to compute from the beginning, or name another with --checkpoint";
    Failure::of(&error, hint).into()
}

fn describe(progress: &ComputeProgress) -> String {
    let ComputeProgress { superstep, changed, residual, .. } = progress;
    if let Some(waiting) = &progress.waiting {
        let [collections, waiting] = [progress.collections, waiting.count].map(numbers::count);
        return format!("step {superstep}: {collections} collections, {waiting} vertices wait");
    }
    let residual = residual.map(|residual| format!(", by {residual:.2e} in sum")).unwrap_or_default();
    format!("superstep {superstep}: {changed} vertices changed{residual}")
}

/// What was computed, and how, in a line.
fn summary(computed: &Computed) -> String {
    let vertices = numbers::count(computed.len() as u64);
    let supersteps =
        computed.supersteps.map(|supersteps| format!(" after {} iterations", numbers::count(supersteps as u64)));
    let collections =
        computed.collections.map(|collections| format!(" and {} collections", numbers::count(collections)));
    let groups = computed.groups().map(|(groups, largest)| {
        let [groups, largest] = [groups, largest].map(numbers::count);
        format!(": {groups} different, the largest with {largest} vertices")
    });
    let lists = if computed.streamed { "streamed" } else { "in memory" };
    let [supersteps, collections, groups] = [supersteps, collections, groups].map(Option::unwrap_or_default);
    let figures: String =
        computed.figures.iter().map(|(name, figure)| format!(", {name} {}", shown(*figure))).collect();
    format!("{} of {vertices} vertices{supersteps}{collections}, lists {lists}{groups}{figures}", computed.name())
}

fn shown(figure: Figure) -> String {
    match figure {
        Figure::Count(count) => numbers::count(count),
        Figure::Number(number) => format!("{number:.6}"),
    }
}

async fn print(args: &Args, opened: &Opened, query: &mut Query, computed: &Arc<Computed>) -> anyhow::Result<()> {
    let batches = if args.all {
        let vertices: Vec<VertexId> = computed.vertices().collect();
        query.value_tables(computed, &vertices, &args.select).await?
    } else {
        query.top_tables(computed, args.top.unwrap_or(TOP), &args.select).await?
    };
    formats::write(&args.shared.output, &batches, tables::empty(opened.graph.schema(), &args.select))
}

/// Rejects a property that could not be written, before the computation.
async fn check_write(
    opened: &Opened,
    query: &Query,
    algorithm: &Algorithm,
    options: &ComputeOptions,
    property: &str,
) -> anyhow::Result<()> {
    let checked = query.check_write_values(&opened.graph, algorithm, options, property).await;
    checked.map_err(|error| match error.kind() {
        ErrorKind::Invalid => Failure::of(&error, "nothing was computed; give another name with --write").into(),
        _ => error.into(),
    })
}

/// Writes all values as a property.
async fn write_back(opened: &Opened, query: &mut Query, computed: &Computed, property: &str) -> anyhow::Result<()> {
    let written = query.write_values(&opened.graph, computed, property).await?;
    let vertices = numbers::count(written.vertices);
    eprintln!("version {} has {property} of {vertices} vertices", written.committed.version);
    Ok(())
}
