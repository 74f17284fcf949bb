//! What a hop reads after many commits, of a graph whose lists are not in memory.
//!
//! The commits change the edge type that was loaded, so that lists are in several sorted runs. A hop begins at one
//! vertex, and no two hops know of each other: with vertices drawn evenly from a graph of millions, nearly every hop
//! finds that the block of its list is not in memory. Counted after a warm-up, so that what a process reads once is no
//! longer part of it.

use std::sync::Arc;

use anyhow::{Context, Result};
use hoplake::{
    Batch, CompactionSettings, Graph, Hop, HopDirection, OpenSettings, Operation, Properties, ReadPool, ReadSettings,
    Reader, StoreProfile, Traversal, VertexRef,
};
use hoplake_testkit::{SimStore, clock::Quantiles, generate::SplitMix64};

use super::{Arguments, Base};

/// Hops before it is counted, and counted.
const WARM_HOPS: usize = 300;
const HOPS: usize = 1_000;
/// Edges of a commit, and the cache in MiB: a default one, and one that is far too small for what the commits add.
const CASES: [(usize, u64); 3] = [(100, 256), (10_000, 256), (10_000, 4)];

/// The cost of hops.
#[derive(Default)]
struct Hops {
    waves: u64,
    requests: Vec<f64>,
    bytes: u64,
}

/// Prints a table: more and more commits, and then compacted.
pub(super) async fn run(arguments: &Arguments, base: Base) -> Result<()> {
    println!(
        "\n| edges a commit | cache, MiB | commits | parts | open: waves, requests, bytes | hop: waves | requests, mean | max | kB, mean | from a changed vertex: waves | requests, mean | max | kB, mean | read whole beside: requests |"
    );
    println!("|{}", " --- |".repeat(14));
    for (edges, cache_mib) in CASES {
        let base = Base { objects: Arc::new(base.objects.fork()), keys: base.keys.clone() };
        let case = Case { arguments, base: &base, edges, cache_mib };
        let graph = Graph::open_with(base.store(), &OpenSettings::default()).await?;
        let mut random = SplitMix64::new(arguments.seed);
        let mut changed = Vec::new();
        for commits in [0, 1, 10, 100] {
            while changed.len() < commits * edges {
                let pairs = base.pairs(&mut random, edges);
                changed.extend(pairs.keys().map(|pair| pair.0));
                let operations = pairs.into_keys().map(upsert).collect();
                graph.apply(Batch { operations, ..Batch::default() }).await?;
            }
            case.row(&commits.to_string(), &changed).await?;
        }
        Graph::compact(&base.store(), &CompactionSettings::default()).await?;
        case.row("100, compacted as is due", &changed).await?;
        Graph::compact(&base.store(), &CompactionSettings { everything: true, ..Default::default() }).await?;
        case.row("100, all compacted", &changed).await?;
    }
    Ok(())
}

/// Of the label that was loaded.
fn upsert((source, target): (i64, i64)) -> Operation {
    Operation::UpsertEdge {
        label: "edge".into(),
        source: VertexRef::new("vertex", source),
        target: VertexRef::new("vertex", target),
        key: None,
        properties: Properties::default(),
        replace: true,
    }
}

/// A row of the table, but for the commits.
struct Case<'a> {
    arguments: &'a Arguments,
    base: &'a Base,
    edges: usize,
    cache_mib: u64,
}

impl Case<'_> {
    async fn row(&self, name: &str, changed: &[i64]) -> Result<()> {
        let (_, store) =
            SimStore::before(self.base.objects.clone(), StoreProfile::s3_standard(), self.arguments.seed, super::URL);
        let mut read = ReadSettings { cache_bytes_max: self.cache_mib << 20, ..ReadSettings::default() };
        read.retry.seed = Some(self.arguments.seed);
        let pool = ReadPool::new(read)?;
        let graph = Graph::open_through(Reader::new(store, pool.clone()), &OpenSettings::default()).await?;
        let mut random = SplitMix64::new(self.arguments.seed ^ 77);
        hops(&graph, &self.base.keys, &mut random, WARM_HOPS).await?;
        if !changed.is_empty() {
            hops(&graph, changed, &mut random, WARM_HOPS).await?;
        }
        pool.settled().await;
        let before = pool.background().requests;
        let any = hops(&graph, &self.base.keys, &mut random, HOPS).await?.text();
        let of_changed = match changed {
            [] => " | | | ".to_owned(),
            _ => hops(&graph, changed, &mut random, HOPS).await?.text(),
        };
        pool.settled().await;
        let beside = pool.background().requests - before;
        let open = graph.open_cost();
        println!(
            "| {} | {} | {name} | {} | {}, {}, {} | {any} | {of_changed} | {beside} |",
            self.edges,
            self.cache_mib,
            graph.manifest().segments.len(),
            open.waves,
            open.requests,
            open.store_bytes
        );
        Ok(())
    }
}

/// Hops from single vertices, one after the other.
async fn hops(graph: &Graph, keys: &[i64], random: &mut SplitMix64, count: usize) -> Result<Hops> {
    let mut took = Hops::default();
    for _ in 0..count {
        let mut query = graph.query();
        let key = keys[random.below(keys.len() as u64) as usize];
        let start = query.vertex("vertex", key).await?.context("every key was loaded")?;
        let before = query.cost();
        let hops = vec![Hop { direction: HopDirection::Out, ..Hop::default() }];
        query.traverse(Traversal { starts: vec![start], hops, ..Traversal::default() }).await?;
        let cost = query.cost();
        took.waves = took.waves.max(cost.waves - before.waves);
        took.requests.push((cost.requests - before.requests) as f64);
        took.bytes += cost.store_bytes - before.store_bytes;
    }
    Ok(took)
}

impl Hops {
    /// Four columns.
    fn text(self) -> String {
        let count = self.requests.len() as f64;
        let mean = self.requests.iter().sum::<f64>() / count;
        let max = Quantiles::of(self.requests).max;
        format!("{} | {mean:.2} | {max:.0} | {:.1}", self.waves, self.bytes as f64 / 1e3 / count)
    }
}
