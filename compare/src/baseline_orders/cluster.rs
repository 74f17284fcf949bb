//! Clusters by label propagation, each in degree order.

use super::{Undirected, positions};

/// The position of each vertex by cluster, the heaviest cluster first, and by falling degree
/// within a cluster.
///
/// Clusters come from `rounds` rounds of label propagation (Raghavan, Albert, Kumara: Near linear
/// time algorithm to detect community structures, 2007): a vertex takes the label that most of its
/// neighbours have, the smallest in doubt. In a graph without communities nearly all vertices end
/// in one cluster, and the order is that of degrees. O(V log V + rounds · E).
pub fn by_cluster(graph: &Undirected, rounds: u32) -> Vec<u32> {
    let labels = propagate(graph, rounds);
    let mut weights = vec![0u64; labels.len()];
    let mut order: Vec<u32> = (0..graph.vertices()).collect();
    order.iter().for_each(|&vertex| weights[labels[vertex as usize] as usize] += graph.degree(vertex));
    order.sort_unstable_by_key(|&vertex| {
        let label = labels[vertex as usize];
        let heaviest_first = u64::MAX - weights[label as usize];
        (heaviest_first, label, u64::MAX - graph.degree(vertex), vertex)
    });
    positions(&order)
}

/// The label of each vertex, which is a vertex.
fn propagate(graph: &Undirected, rounds: u32) -> Vec<u32> {
    let mut labels: Vec<u32> = (0..graph.vertices()).collect();
    let mut counts = vec![0u32; labels.len()];
    for _ in 0..rounds {
        for vertex in 0..graph.vertices() {
            if let Some(label) = most_common(graph.neighbours(vertex), &labels, &mut counts) {
                labels[vertex as usize] = label;
            }
        }
    }
    labels
}

/// The most common label of `neighbours`; `counts` is zero before and after. O(neighbours).
fn most_common(neighbours: &[u32], labels: &[u32], counts: &mut [u32]) -> Option<u32> {
    let label_of = |&neighbour: &u32| labels[neighbour as usize];
    let mut best = None;
    for label in neighbours.iter().map(label_of) {
        let count = &mut counts[label as usize];
        *count += 1;
        best = best.max(Some((*count, std::cmp::Reverse(label))));
    }
    neighbours.iter().map(label_of).for_each(|label| counts[label as usize] = 0);
    best.map(|(_, label)| label.0)
}
