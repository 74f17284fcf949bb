//! How long cold queries by key take, and how many waves and requests, from sources of all degrees.
//!
//! Sources are drawn evenly among all vertices of the graph. *Mixed* queries follow one edge label and direction a
//! hop, drawn by seed among those that leave the label reached; *knows* queries start from persons and follow `knows`
//! both ways. Before each query every cache is emptied.

use std::collections::HashMap;

use anyhow::{Context, Result};
use hoplake::{Graph, Hop, HopDirection, LabelId, StartKey, Strategy, Traversal, TraversalRequest, VertexId};
use hoplake_testkit::{
    clock::{Quantiles, Stopwatch},
    generate::SplitMix64,
};
use serde::{Deserialize, Serialize};

use super::{
    queries::drawn_hops,
    subject::{Setup, Subject},
};

/// A group of sources of like degree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Decile {
    /// The least degree.
    pub degree_min: u64,
    /// The largest.
    pub degree_max: u64,
    /// Milliseconds of store time.
    pub store_ms: Quantiles,
}

/// Cold queries of one kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cold {
    /// `mixed` or `knows`.
    pub kind: String,
    /// Breadth-first level by level, or pipelined.
    pub strategy: String,
    /// Hops after the key.
    pub hops: usize,
    /// Queries.
    pub queries: usize,
    /// Milliseconds of store time.
    pub store_ms: Quantiles,
    /// Milliseconds of store and processor.
    pub total_ms: Quantiles,
    /// Requests of a query, hedges included.
    pub requests: Quantiles,
    /// Bytes of a query.
    pub bytes: Quantiles,
    /// Edges that a query followed.
    pub edges: Quantiles,
    /// Numbers of waves, each with how many queries took it.
    pub waves: Vec<(u64, usize)>,
    /// Hedges, as a share of requests.
    pub hedges_share: f64,
    /// By the source's degree.
    pub deciles: Vec<Decile>,
}

/// What the part measures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figures {
    /// By kind and hops.
    pub cold: Vec<Cold>,
    /// Waves and requests of opening.
    pub open_waves: u64,
    /// Requests of opening.
    pub open_requests: u64,
    /// Bytes of opening.
    pub open_bytes: u64,
}

/// Where a cold query starts.
pub struct Source {
    start: StartKey,
    vertex: VertexId,
    degree: u64,
}

struct Sample {
    degree: u64,
    store_ms: f64,
    total_ms: f64,
    requests: u64,
    hedges: u64,
    bytes: u64,
    edges: u64,
    waves: u64,
}

/// Sources of pipelined queries, at most: where a hop reads a million lists, each of its blocks is a request, and simulating
/// a hundred thousand of them at once takes minutes.
const PIPELINED_MAX: usize = 500;

/// Measures all kinds.
pub async fn measure(subject: &Subject, queries: usize) -> Result<Figures> {
    let warm = subject.open_local().await?;
    let mut random = SplitMix64::new(11);
    let everyone = sources(&warm, None, queries, &mut random).await?;
    let persons = persons(&warm, queries).await?;
    let setup = Setup::standard(256 << 20);
    let opened = subject.open(&setup).await?;
    let open = opened.graph.open_cost();
    let mut cold = Vec::new();
    for hops in 1..=3 {
        for (strategy, sources_max) in [(Strategy::Bfs, queries), (Strategy::BfsPipelined, PIPELINED_MAX)] {
            for (name, sources) in [("mixed", &everyone), ("knows", &persons)] {
                let sources = &sources[..sources.len().min(sources_max)];
                cold.push(kind(subject, &setup, name, strategy, hops, sources).await?);
            }
        }
    }
    Ok(Figures { cold, open_waves: open.waves, open_requests: open.requests, open_bytes: open.store_bytes })
}

/// Persons drawn evenly.
pub async fn persons(graph: &Graph, count: usize) -> Result<Vec<Source>> {
    let person = graph.schema().vertex_labels.iter().position(|label| label.name.eq_ignore_ascii_case("person"));
    let person = LabelId(person.context("the graph has no persons")? as u16);
    sources(graph, Some(person), count, &mut SplitMix64::new(12)).await
}

/// Vertices drawn evenly among all, or among those of one label.
async fn sources(graph: &Graph, label: Option<LabelId>, count: usize, random: &mut SplitMix64) -> Result<Vec<Source>> {
    let counts: Vec<u64> = graph.manifest().vertex_counts.iter().map(|count| count.ordinals).collect();
    let all: u64 = label.map_or_else(|| counts.iter().sum(), |label| counts[usize::from(label.0)]);
    let mut vertices = Vec::with_capacity(count);
    while vertices.len() < count {
        let mut at = random.below(all);
        let mut of = label.unwrap_or(LabelId(0));
        while label.is_none() && at >= counts[usize::from(of.0)] {
            at -= counts[usize::from(of.0)];
            of = LabelId(of.0 + 1);
        }
        vertices.push(VertexId::new(of, at).context("ordinals fit")?);
    }
    let any = Hop { direction: HopDirection::Both, ..Hop::default() };
    let mut degrees: HashMap<VertexId, u64> = HashMap::new();
    for degree in graph.query().degrees(&vertices, &any).await? {
        *degrees.entry(degree.vertex).or_default() += degree.edges;
    }
    let keys = graph.query().keys_of(&vertices).await?;
    let source = |(vertex, key): (&VertexId, &hoplake::Key)| Source {
        start: StartKey::key(graph.query().label_of(*vertex), key.to_string()),
        vertex: *vertex,
        degree: degrees.get(vertex).copied().unwrap_or_default(),
    };
    Ok(vertices.iter().zip(keys.iter()).map(source).collect())
}

/// Runs queries of one kind from all sources, each from empty caches.
pub async fn kind(
    subject: &Subject,
    setup: &Setup,
    name: &str,
    strategy: Strategy,
    hops: usize,
    sources: &[Source],
) -> Result<Cold> {
    let opened = subject.open(setup).await?;
    let mut random = SplitMix64::new(23);
    let mut samples = Vec::with_capacity(sources.len());
    for source in sources {
        opened.grow_cold().await;
        let hops = match name {
            "knows" => vec![Hop::along(HopDirection::Both, "knows"); hops],
            _ => drawn_hops(opened.graph.schema(), source.vertex, hops, &mut random),
        };
        let traversal = Traversal { hops, strategy, ..Traversal::default() };
        let request = TraversalRequest { starts: vec![source.start.clone()], traversal, ..TraversalRequest::default() };
        let mut query = opened.graph.query();
        let watch = Stopwatch::start();
        let answer = query.run(&request).await?;
        let took = watch.took();
        let cost = query.cost();
        samples.push(Sample {
            degree: source.degree,
            store_ms: took.store_ms,
            total_ms: took.total_ms(),
            requests: cost.requests,
            hedges: cost.hedges,
            bytes: cost.store_bytes,
            edges: answer.reached.profile.iter().map(|depth| depth.edges).sum(),
            waves: cost.waves,
        });
    }
    Ok(summary(name, strategy, hops, samples))
}

fn summary(name: &str, strategy: Strategy, hops: usize, mut samples: Vec<Sample>) -> Cold {
    samples.sort_by_key(|sample| sample.degree);
    let of = |value: fn(&Sample) -> f64| Quantiles::of(samples.iter().map(value));
    let decile = |group: &[Sample]| Decile {
        degree_min: group.first().map_or(0, |sample| sample.degree),
        degree_max: group.last().map_or(0, |sample| sample.degree),
        store_ms: Quantiles::of(group.iter().map(|sample| sample.store_ms)),
    };
    let most = samples.iter().map(|sample| sample.waves).max().unwrap_or_default();
    let count = |waves| (waves, samples.iter().filter(|sample| sample.waves == waves).count());
    let requests: u64 = samples.iter().map(|sample| sample.requests).sum();
    let hedges: u64 = samples.iter().map(|sample| sample.hedges).sum();
    Cold {
        kind: name.to_owned(),
        strategy: if strategy == Strategy::Bfs { "level by level" } else { "pipelined" }.to_owned(),
        hops,
        queries: samples.len(),
        store_ms: of(|sample| sample.store_ms),
        total_ms: of(|sample| sample.total_ms),
        requests: of(|sample| sample.requests as f64),
        bytes: of(|sample| sample.bytes as f64),
        edges: of(|sample| sample.edges as f64),
        waves: (0..=most).map(count).filter(|(_, queries)| *queries > 0).collect(),
        hedges_share: hedges as f64 / requests.max(1) as f64,
        deciles: samples.chunks(samples.len().div_ceil(10).max(1)).map(decile).collect(),
    }
}
