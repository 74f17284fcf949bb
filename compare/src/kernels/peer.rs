//! The `graph` crate on the same graph.

use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Result, ensure};
use graph::{page_rank::page_rank, prelude::*, sssp::delta_stepping, triangle_count, wcc::wcc_afforest};
use hoplake_analytics::{Adjacency, Csr};

use super::input::Input;

fn both(input: &Input) -> impl Iterator<Item = (u32, u32)> + Clone {
    input.edges.iter().flat_map(|(from, to)| [(*from, *to), (*to, *from)])
}

/// Both directions of each edge.
pub fn directed(input: &Input) -> DirectedCsrGraph<u32> {
    GraphBuilder::new().csr_layout(CsrLayout::Sorted).edges(both(input).collect::<Vec<_>>()).build()
}

/// The same with weights.
pub fn weighted(input: &Input) -> DirectedCsrGraph<u32, (), f32> {
    let edges: Vec<_> = both(input).map(|(from, to)| (from, to, input.weight(from, to))).collect();
    GraphBuilder::new().csr_layout(CsrLayout::Sorted).edges_with_values(edges).build()
}

/// Each edge once.
pub fn undirected(input: &Input) -> UndirectedCsrGraph<u32> {
    GraphBuilder::new().csr_layout(CsrLayout::Deduplicated).edges(input.edges.iter().copied()).build()
}

pub fn ranks(graph: &DirectedCsrGraph<u32>, iterations: usize) -> Vec<f32> {
    page_rank(graph, PageRankConfig::new(iterations, 0.0, 0.85)).0
}

/// Checks that ranks agree. The other drops the mass of vertices without edges, which scales all others by the same factor.
pub fn check_ranks(own: &[f64], other: &[f32], lists: &Csr) -> Result<()> {
    let connected = || (0..own.len()).filter(|vertex| lists.degree(*vertex as u32) > 0);
    let sums = (
        connected().map(|vertex| own[vertex]).sum::<f64>(),
        connected().map(|vertex| f64::from(other[vertex])).sum::<f64>(),
    );
    let difference = |vertex: usize| (own[vertex] / sums.0 - f64::from(other[vertex]) / sums.1).abs();
    let all: f64 = connected().map(difference).sum();
    ensure!(all < 1e-4, "ranks differ by {all} in sum");
    Ok(())
}

pub fn components(graph: &DirectedCsrGraph<u32>) -> Vec<u32> {
    wcc_afforest(graph, WccConfig::default()).to_vec()
}

/// Whether components are the same. The other's graph ends with the last vertex that has an edge.
pub fn same(own: &[u32], other: &[u32]) -> bool {
    own.len() >= other.len() && own[..other.len()] == *other
}

pub fn lengths(graph: &DirectedCsrGraph<u32, (), f32>, source: u32, delta: f32) -> Vec<f32> {
    let lengths = delta_stepping(graph, DeltaSteppingConfig::new(source as usize, delta));
    lengths.into_iter().map(|length| length.load(Relaxed)).collect()
}

/// Whether lengths are the same. The other has the greatest number for infinity; sums of integers are exact in both.
pub fn same_lengths(own: &[f64], other: &[f32]) -> bool {
    let same = |(own, other): (&f64, &f32)| *own == f64::from(*other) || (own.is_infinite() && *other == f32::MAX);
    own.len() >= other.len() && own.iter().zip(other).all(same)
}

pub fn order(graph: &mut UndirectedCsrGraph<u32>) {
    triangle_count::relabel_graph(graph);
}

pub fn triangles(graph: &UndirectedCsrGraph<u32>) -> u64 {
    triangle_count::global_triangle_count(graph)
}
