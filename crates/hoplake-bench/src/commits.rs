//! What changes cost: latency and rate of commits, reading after many of them, and what compaction rewrites.
//!
//! Latency is of the simulated store, in virtual time, with the processor time next to it; the rate into memory is in
//! real time, as is what goes through the [`service`]. What is read is in [`reading`]. The graph is the Kronecker graph of Graph500, and what is committed are
//! edges between its vertices, drawn evenly, each with a property.

mod reading;
mod service;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufWriter, Write},
    path::PathBuf,
    sync::Arc,
    time::Instant,
};

use anyhow::{Context, Result};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use clap::{Args, ValueEnum};
use hoplake::{
    Batch, CompactionSettings, Graph, LoadOptions, OpenSettings, Operation, ReadPool, ReadSettings, Reader, Store,
    StoreProfile, VertexRef,
};
use hoplake_testkit::{
    Sim, SimStore,
    clock::{Quantiles, Stopwatch, in_virtual_time, processor_time_of_all},
    generate::{SplitMix64, kronecker},
};
use object_store::{memory::InMemory, path::Path};

/// Where the simulated store says that it is.
const URL: &str = "s3://bench";

/// What to commit.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Two to the power of this are the vertices of the graph, with 16 edges each.
    #[arg(long, default_value_t = 16)]
    scale: u32,
    /// The same of the graph that is read behind commits: its lists should not be in memory after a few hops.
    #[arg(long, default_value_t = 22)]
    reading_scale: u32,
    /// Commits for a latency.
    #[arg(long, default_value_t = 300)]
    commits: usize,
    /// Edges committed into memory, in millions.
    #[arg(long, default_value_t = 4)]
    million_edges: usize,
    /// Edges of a batch that is committed into memory.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 10_000, 100_000])]
    edges: Vec<usize>,
    /// The seed of all.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these tables.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [CommitTable::Latency, CommitTable::Rate, CommitTable::Service, CommitTable::Reading, CommitTable::Compaction])]
    parts: Vec<CommitTable>,
}

/// A table of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CommitTable {
    Latency,
    Rate,
    Service,
    Reading,
    Compaction,
}

/// How a batch stores its edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EdgeLayout {
    Operations,
    Columns,
}

/// Objects of a loaded graph, in memory.
struct Base {
    objects: Arc<InMemory>,
    /// The keys of its vertices.
    keys: Vec<i64>,
}

/// Prints a table for each question.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let load = || runtime()?.block_on(Base::load(arguments.scale, arguments.seed));
    let wanted = |part| arguments.parts.contains(&part);
    if wanted(CommitTable::Latency) {
        println!(
            "| store | edges a commit | callers | commits | p50, ms | p99, ms | processor, ms | commits/s | edges/s |"
        );
        println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
        for profile in [StoreProfile::s3_standard(), StoreProfile::s3_express()] {
            for (edges, callers) in [(1, 1), (100, 1), (10_000, 1), (1, 64), (100, 64)] {
                let base = load()?;
                in_virtual_time(latency(arguments, base, profile.clone(), edges, callers))?;
            }
        }
    }
    if wanted(CommitTable::Rate) {
        println!(
            "\n| edges a batch | as | callers | seconds | processor, µs an edge | batches | versions | \
             M edges/s into memory |"
        );
        println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
        for edges in &arguments.edges {
            let callers = [(1_000, 64), (100_000, 16)].iter().find(|(below, _)| edges < below).map_or(4, |(_, it)| *it);
            for form in [EdgeLayout::Operations, EdgeLayout::Columns] {
                runtime()?.block_on(rate(arguments, load()?, *edges, callers, form))?;
            }
        }
    }
    if wanted(CommitTable::Service) {
        runtime()?.block_on(service::run(arguments, load()?))?;
    }
    if wanted(CommitTable::Reading) {
        let large = runtime()?.block_on(Base::load(arguments.reading_scale, arguments.seed))?;
        in_virtual_time(reading::run(arguments, large))?;
    }
    if wanted(CommitTable::Compaction) {
        println!(
            "\n| commits of 1,000 edges | committed, MB | rewritten, MB | write amplification | sorted runs | merges |"
        );
        println!("| --- | --- | --- | --- | --- | --- |");
        runtime()?.block_on(amplification(arguments, load()?))?;
    }
    Ok(())
}

impl Base {
    async fn load(scale: u32, seed: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let file: PathBuf = folder.path().join("edges.csv");
        // A Kronecker graph has vertices without edges, which are not loaded.
        let mut named = vec![false; 1 << scale];
        let mut text = BufWriter::new(std::fs::File::create(&file)?);
        for (source, target) in kronecker(scale, 16, seed) {
            writeln!(text, "{source},{target}")?;
            named[source as usize] = true;
            named[target as usize] = true;
        }
        text.flush()?;
        let keys = (0..1 << scale).filter(|key| named[*key as usize]);
        let objects = Arc::new(InMemory::new());
        let base = Self { objects, keys: keys.collect() };
        hoplake::load_with(base.store(), LoadOptions::from_paths([file]), Arc::new(())).await?;
        Ok(base)
    }

    fn store(&self) -> Store {
        Store::new(self.objects.clone(), Path::default(), "memory://commits")
    }

    /// Before a simulated store, with caches of its own.
    async fn open(&self, profile: Arc<StoreProfile>, seed: u64) -> Result<(Sim, Graph)> {
        let (sim, store) = SimStore::before(self.objects.clone(), profile, seed, URL);
        let mut read = ReadSettings::default();
        read.retry.seed = Some(seed);
        let reader = Reader::new(store, ReadPool::new(read)?);
        Ok((sim, Graph::open_through(reader, &OpenSettings::default()).await?))
    }

    /// A batch of edges between vertices that have some, of a label that was not loaded.
    fn batch(&self, random: &mut SplitMix64, edges: usize) -> Batch {
        let operation = |((source, target), since): ((i64, i64), i64)| Operation::UpsertEdge {
            label: "follows".into(),
            source: VertexRef::new("vertex", source),
            target: VertexRef::new("vertex", target),
            key: None,
            properties: [("since", since)].into(),
            replace: true,
        };
        Batch { operations: self.pairs(random, edges).into_iter().map(operation).collect(), ..Batch::default() }
    }

    /// The same as columns.
    fn columns(&self, random: &mut SplitMix64, edges: usize) -> Result<Batch> {
        let pairs = self.pairs(random, edges);
        let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let rows = RecordBatch::try_from_iter([
            ("source", column(pairs.keys().map(|pair| pair.0).collect())),
            ("target", column(pairs.keys().map(|pair| pair.1).collect())),
            ("since", column(pairs.into_values().collect())),
        ])?;
        let mut commit = Batch::default();
        let columns = hoplake::Columns::edges("follows", "vertex", "vertex", &rows)?.replacing();
        commit.operations.push(Operation::UpsertColumns(Arc::new(columns)));
        Ok(commit)
    }

    /// Different pairs of vertices, with a number each.
    fn pairs(&self, random: &mut SplitMix64, count: usize) -> BTreeMap<(i64, i64), i64> {
        let mut pairs = BTreeMap::new();
        while pairs.len() < count {
            let mut key = || self.keys[random.below(self.keys.len() as u64) as usize];
            let pair = (key(), key());
            pairs.insert(pair, random.below(1 << 30) as i64);
        }
        pairs
    }
}

async fn latency(
    arguments: &Arguments,
    base: Base,
    profile: Arc<StoreProfile>,
    edges: usize,
    callers: usize,
) -> Result<()> {
    let (_, graph) = base.open(profile.clone(), arguments.seed).await?;
    let base = Arc::new(base);
    let each = arguments.commits.max(callers * 5).div_ceil(callers);
    let whole = Stopwatch::start();
    let callers_running: Vec<_> = (0..callers)
        .map(|caller| {
            let graph = graph.clone();
            let base = base.clone();
            let mut random = SplitMix64::new(arguments.seed ^ (caller as u64) << 32);
            tokio::spawn(async move {
                let mut took = Vec::new();
                for _ in 0..each {
                    let batch = base.batch(&mut random, edges);
                    let begun = tokio::time::Instant::now();
                    graph.apply(batch).await?;
                    took.push(begun.elapsed().as_secs_f64() * 1e3);
                }
                anyhow::Ok(took)
            })
        })
        .collect();
    let mut took = Vec::new();
    for caller in callers_running {
        took.extend(caller.await.context("a caller stopped")??);
    }
    let whole = whole.took();
    let commits = took.len();
    let quantiles = Quantiles::of(took);
    let seconds = whole.total_ms() / 1e3;
    println!(
        "| {} | {edges} | {callers} | {commits} | {:.1} | {:.1} | {:.2} | {:.1} | {:.0} |",
        profile.name,
        quantiles.p50,
        quantiles.p99,
        whole.processor_ms / commits as f64,
        commits as f64 / seconds,
        (commits * edges) as f64 / seconds,
    );
    Ok(())
}

async fn rate(arguments: &Arguments, base: Base, edges: usize, callers: usize, form: EdgeLayout) -> Result<()> {
    let graph = Graph::open_with(base.store(), &OpenSettings::default()).await?;
    let total = arguments.million_edges * 1_000_000 / if edges < 1_000 { 20 } else { 1 };
    let batches = total.div_ceil(edges * callers);
    let mut random = SplitMix64::new(arguments.seed);
    // What is committed is made before the clock starts.
    let mut batch = || match form {
        EdgeLayout::Operations => Ok(base.batch(&mut random, edges)),
        EdgeLayout::Columns => base.columns(&mut random, edges),
    };
    let prepared = (0..callers).map(|_| (0..batches).map(|_| batch()).collect());
    let prepared: Vec<Vec<Batch>> = prepared.collect::<Result<_>>()?;
    let before = graph.version();
    let begun = Instant::now();
    let processor = processor_time_of_all();
    let running: Vec<_> = prepared
        .into_iter()
        .map(|batches| {
            let graph = graph.clone();
            tokio::spawn(async move {
                for batch in batches {
                    graph.apply(batch).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for caller in running {
        caller.await.context("a caller stopped")??;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let processor = processor_time_of_all() - processor;
    let mut newest = graph;
    newest.refresh().await?;
    let batches = batches * callers;
    println!(
        "| {edges} | {} | {callers} | {seconds:.2} | {:.2} | {batches} | {} | {:.2} |",
        if form == EdgeLayout::Columns { "columns" } else { "operations" },
        processor.as_secs_f64() * 1e6 / (batches * edges) as f64,
        newest.version() - before,
        (batches * edges) as f64 / seconds / 1e6
    );
    Ok(())
}

async fn amplification(arguments: &Arguments, base: Base) -> Result<()> {
    let graph = Graph::open_with(base.store(), &OpenSettings::default()).await?;
    let mut random = SplitMix64::new(arguments.seed);
    let loaded: u64 = graph.manifest().objects().values().sum();
    let mut committed = 0;
    let mut rewritten = 0;
    let mut merges = 0;
    let mut last = graph.clone();
    for number in 1..=400 {
        let before: BTreeSet<String> = names(&last);
        graph.apply(base.batch(&mut random, 1_000)).await?;
        last.refresh().await?;
        let objects = last.manifest().objects();
        committed += objects.iter().filter(|(name, _)| !before.contains(**name)).map(|(_, bytes)| bytes).sum::<u64>();
        if number % 10 == 0 {
            let done = Graph::compact(&base.store(), &CompactionSettings::default()).await?;
            rewritten += done.bytes_written;
            merges += done.merges;
            last.refresh().await?;
        }
        if [100, 200, 400].contains(&number) {
            println!(
                "| {number} | {:.1} | {:.1} | {:.2} | {} | {merges} |",
                committed as f64 / 1e6,
                rewritten as f64 / 1e6,
                (committed + rewritten) as f64 / committed as f64,
                last.manifest().segments.len(),
            );
        }
    }
    println!("\nThe graph that was loaded has {:.1} MB.", loaded as f64 / 1e6);
    Ok(())
}

fn names(graph: &Graph) -> BTreeSet<String> {
    graph.manifest().objects().into_keys().map(str::to_owned).collect()
}
