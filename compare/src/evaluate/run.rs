//! One run of the workload, ours or the baseline's, and what it took.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use hoplake::{Cost, Graph, Prefetch, StoreProfile, Strategy, VertexId};
use hoplake_testkit::{
    Sim, SimStore,
    clock::{Quantiles, Stopwatch, Took},
    snb,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::{
    baseline::{Adjacency, Files, Partitions, search},
    queries::Case,
    subject::Opened,
};

/// How the workload is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// In which order vertices are expanded.
    pub strategy: Strategy,
    /// Traversals at once.
    pub at_once: usize,
    /// Parallelism within each.
    pub within: usize,
    /// Whether each reads ahead of itself.
    pub prefetch: bool,
}

impl Manner {
    /// One traversal at a time, one vertex at a time depth-first, without reading ahead.
    pub fn sequential(strategy: Strategy) -> Self {
        Self { strategy, at_once: 1, within: 1, prefetch: false }
    }

    /// As tables name it.
    pub fn name(&self) -> String {
        let strategy = match self.strategy {
            Strategy::Bfs => "BFS",
            Strategy::BfsPipelined => "BFS, pipelined",
            Strategy::Dfs => "DFS",
        };
        let within = if self.within > 1 { format!(", {} vertices at a time", self.within) } else { String::new() };
        let prefetch = if self.prefetch { ", reading ahead" } else { "" };
        format!("{strategy}{within}{prefetch}")
    }
}

/// Blocks by where they were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tiers {
    /// In the memory cache.
    pub memory: u64,
    /// Read ahead for the traversal.
    pub prefetched: u64,
    /// On the local disk.
    pub disk: u64,
    /// In a request that was on its way for another traversal.
    pub shared: u64,
    /// In the store.
    pub store: u64,
}

impl Tiers {
    /// All blocks asked for.
    pub fn all(&self) -> u64 {
        self.memory + self.prefetched + self.disk + self.shared + self.store
    }
}

/// What a run took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Run {
    /// `baseline` or `hoplake`.
    pub system: String,
    /// Strategy and what goes with it.
    pub manner: String,
    /// The kind of store.
    pub store: String,
    /// Traversals at once.
    pub at_once: usize,
    /// The memory cache, in bytes.
    pub cache_bytes_max: u64,
    /// From the first query's start to the last one's end.
    pub took: Took,
    /// GET requests.
    pub requests: u64,
    /// Of these, hedges and repetitions.
    pub extra_requests: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Dollars for both.
    pub usd: f64,
    /// Vertices whose neighbours were looked up.
    pub accesses: u64,
    /// Blocks (files, for the baseline) by where they were found.
    pub tiers: Tiers,
    /// Milliseconds of each query by its name, processor included if one runs at a time.
    pub queries: BTreeMap<String, Quantiles>,
    /// The same of all of them.
    pub all: Quantiles,
}

impl Run {
    /// Seconds of the whole run on one core.
    pub fn total_s(&self) -> f64 {
        self.took.total_ms() / 1e3
    }

    fn add_latencies(&mut self, cases: &[Case], latencies: &[f64]) {
        let mut by_query: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (case, latency) in cases.iter().zip(latencies) {
            by_query.entry(case.query.to_owned()).or_default().push(*latency);
        }
        self.queries = by_query.into_iter().map(|(query, sample)| (query, Quantiles::of(sample))).collect();
        self.all = Quantiles::of(latencies.iter().copied());
    }

    fn add_counts(&mut self, sim: &Sim) {
        let counts = sim.counts();
        (self.requests, self.bytes, self.usd) = (counts.requests.get, counts.bytes_read, sim.usd());
    }
}

/// What each query found, in the order of the cases; ascending.
pub type Answers = Vec<Vec<VertexId>>;

struct Answer {
    found: Vec<VertexId>,
    accesses: u64,
    cost: Cost,
    ms: f64,
}

/// Runs all cases on an open graph.
pub async fn hoplake(opened: &Opened, cases: &[Case], manner: Manner) -> Result<(Run, Answers)> {
    opened.sim.reset_counts();
    let blocks = opened.recorder.blocks();
    let watch = Stopwatch::start();
    let answers: Vec<Answer> = stream::iter(cases)
        .map(|case| ours(&opened.graph, case, manner))
        .buffered(manner.at_once)
        .try_collect()
        .await?;
    let took = watch.took();
    let cost = answers.iter().fold(Cost::default(), |sum, answer| sum + answer.cost);
    let mut run = Run {
        system: "hoplake".into(),
        manner: manner.name(),
        at_once: manner.at_once,
        took,
        extra_requests: cost.hedges + cost.retries,
        accesses: answers.iter().map(|answer| answer.accesses).sum(),
        tiers: Tiers {
            memory: cost.memory.blocks,
            prefetched: cost.prefetched.blocks,
            disk: cost.disk.blocks,
            shared: cost.shared.blocks,
            store: opened.recorder.blocks() - blocks,
        },
        ..Run::default()
    };
    run.add_counts(&opened.sim);
    run.add_latencies(cases, &answers.iter().map(|answer| answer.ms).collect::<Vec<_>>());
    Ok((run, answers.into_iter().map(|answer| answer.found).collect()))
}

async fn ours(graph: &Graph, case: &Case, manner: Manner) -> Result<Answer> {
    let watch = Stopwatch::start();
    let mut request = case.request(manner.strategy);
    request.traversal.parallelism = manner.within;
    request.traversal.prefetch = manner.prefetch.then(Prefetch::default);
    let mut query = graph.query();
    let reached = query.run(&request).await?.reached;
    let took = watch.took();
    let expanded = &reached.depths[..case.hops.len().min(reached.depths.len())];
    Ok(Answer {
        accesses: expanded.iter().map(|depth| depth.len() as u64).sum(),
        found: reached.last().vertices().collect(),
        cost: query.cost(),
        ms: latency(took, manner.at_once),
    })
}

/// Between others that run at once, the processor's time is not one query's own.
fn latency(took: Took, at_once: usize) -> f64 {
    if at_once == 1 { took.total_ms() } else { took.store_ms }
}

/// The baseline's side of a run: its files before a kind of store.
pub struct BaselineOrder<'a> {
    /// All lists, for the numbers of vertices.
    pub adjacency: &'a Adjacency,
    /// The files.
    pub partitions: &'a Partitions,
    /// The kind of store.
    pub profile: Arc<StoreProfile>,
    /// Budget for whole files, in bytes.
    pub cache_bytes_max: u64,
}

/// Runs all cases on the baseline, from an empty cache.
pub async fn baseline(
    baseline: &BaselineOrder<'_>,
    cases: &[Case],
    strategy: Strategy,
    at_once: usize,
) -> Result<(Run, Answers)> {
    let (sim, store) =
        SimStore::before(baseline.partitions.objects.clone(), baseline.profile.clone(), 1, "s3://evaluation");
    let files = &Files::new(baseline.partitions, store, baseline.cache_bytes_max);
    let watch = Stopwatch::start();
    let one = |case: &'_ Case| {
        let hops: Vec<_> = case.hops.iter().map(|hop| baseline.adjacency.hop(hop)).collect();
        let start = baseline.adjacency.number(case.vertex);
        async move {
            let watch = Stopwatch::start();
            let (found, accesses) = match strategy {
                Strategy::Dfs => search::depth_first(files, start, &hops).await?,
                _ => search::breadth_first(files, start, &hops).await?,
            };
            let found = found.into_iter().filter_map(|number| baseline.adjacency.vertex(number)).collect();
            Ok::<_, anyhow::Error>(Answer {
                found,
                accesses,
                cost: Cost::default(),
                ms: latency(watch.took(), at_once),
            })
        }
    };
    let answers: Vec<Answer> = stream::iter(cases).map(one).buffered(at_once).try_collect().await?;
    let mut run = Run {
        system: "baseline".into(),
        manner: Manner::sequential(strategy).name(),
        store: baseline.profile.name.clone(),
        at_once,
        cache_bytes_max: baseline.cache_bytes_max,
        took: watch.took(),
        accesses: answers.iter().map(|answer| answer.accesses).sum(),
        ..Run::default()
    };
    run.add_counts(&sim);
    run.tiers = Tiers { memory: files.hits(), store: run.requests, ..Tiers::default() };
    run.add_latencies(cases, &answers.iter().map(|answer| answer.ms).collect::<Vec<_>>());
    Ok((run, answers.into_iter().map(|answer| answer.found).collect()))
}

/// Holds answers against each other, and against those that are published with the data.
pub async fn check(graph: &Graph, cases: &[Case], ours: &Answers, others: &Answers) -> Result<()> {
    for ((case, ours), others) in cases.iter().zip(ours).zip(others) {
        ensure!(ours == others, "{} from {}: answers differ", case.query, case.start);
        if let Some(expected) = &case.sha256 {
            let keys = graph.query().keys_of(ours).await?;
            let ids = keys.iter().map(|key| key.to_string().parse()).collect::<Result<Vec<i64>, _>>()?;
            ensure!(snb::sha256_of_ids(ids) == *expected, "{} from {}: the answer is wrong", case.query, case.start);
        }
    }
    Ok(())
}
