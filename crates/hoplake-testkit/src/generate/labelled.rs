//! Small graphs with labels.

use super::SplitMix64;

/// How large a [`labelled_multigraph`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelledLimits {
    /// How many vertex labels there are, at least 1.
    pub vertex_labels: u16,
    /// How many edge labels there are, at least 1.
    pub edge_labels: u16,
    /// The most vertices of one label.
    pub vertices_per_label_max: u64,
    /// How many edges there are, if there is any vertex.
    pub edges: usize,
}

impl Default for LabelledLimits {
    /// 3 vertex labels of at most 20 vertices, 4 edge labels, 120 edges.
    fn default() -> Self {
        Self { vertex_labels: 3, edge_labels: 4, vertices_per_label_max: 20, edges: 120 }
    }
}

/// An edge between two vertices, each a label and an ordinal within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelledEdge {
    /// The edge label, from 0.
    pub label: u16,
    /// The vertex it leaves.
    pub source: (u16, u64),
    /// The vertex it reaches.
    pub target: (u16, u64),
}

/// A graph with labels; see [`labelled_multigraph`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelledGraph {
    /// How many vertices each vertex label has; may be 0.
    pub vertices: Vec<u64>,
    /// How many edge labels there are.
    pub edge_labels: u16,
    /// The edges, in no order.
    pub edges: Vec<LabelledEdge>,
}

/// A random graph that has what breaks an engine: labels without vertices, any edge label between
/// any two vertex labels, vertices without edges, hubs, parallel edges and self-loops. About one
/// edge in eight repeats an earlier one, and one in eight is a self-loop.
pub fn labelled_multigraph(limits: LabelledLimits, seed: u64) -> LabelledGraph {
    let mut random = SplitMix64::new(seed);
    let bound = limits.vertices_per_label_max.saturating_add(1);
    let vertices: Vec<u64> = (0..limits.vertex_labels).map(|_| random.below(bound)).collect();
    let edge_labels = limits.edge_labels.max(1);
    let mut graph = LabelledGraph { vertices, edge_labels, edges: Vec::new() };
    for _ in 0..limits.edges {
        let Some(edge) = draw_edge(&graph, &mut random) else { break };
        graph.edges.push(edge);
    }
    graph
}

fn draw_edge(graph: &LabelledGraph, random: &mut SplitMix64) -> Option<LabelledEdge> {
    let label = random.below(u64::from(graph.edge_labels)) as u16;
    let source = draw_vertex(graph, random)?;
    let target = draw_vertex(graph, random)?;
    Some(match random.below(8) {
        0 if !graph.edges.is_empty() => graph.edges[random.below(graph.edges.len() as u64) as usize],
        1 => LabelledEdge { label, source, target: source },
        _ => LabelledEdge { label, source, target },
    })
}

/// A vertex whose low ordinals are likelier, so that each label has a hub.
fn draw_vertex(graph: &LabelledGraph, random: &mut SplitMix64) -> Option<(u16, u64)> {
    let inhabited: Vec<usize> = (0..graph.vertices.len()).filter(|&label| graph.vertices[label] > 0).collect();
    let label = *inhabited.get(random.below(inhabited.len() as u64) as usize)?;
    let widest = random.below(graph.vertices[label]) + 1;
    Some((label as u16, random.below(widest)))
}

#[cfg(test)]
mod tests {
    use super::{LabelledLimits, labelled_multigraph};

    #[test]
    fn edges_stay_within_the_vertices_and_have_loops_and_parallels() {
        for seed in 0..50 {
            let graph = labelled_multigraph(LabelledLimits::default(), seed);
            for edge in &graph.edges {
                assert!(edge.label < graph.edge_labels);
                for (label, ordinal) in [edge.source, edge.target] {
                    assert!(ordinal < graph.vertices[usize::from(label)]);
                }
            }
            let mut edges = graph.edges.clone();
            edges.sort_unstable();
            assert!(edges.is_empty() || edges.iter().any(|edge| edge.source == edge.target));
            assert!(edges.is_empty() || edges.windows(2).any(|pair| pair[0] == pair[1]));
        }
    }

    #[test]
    fn a_graph_without_vertices_has_no_edges() {
        let limits = LabelledLimits { vertices_per_label_max: 0, ..LabelledLimits::default() };
        assert!(labelled_multigraph(limits, 1).edges.is_empty());
    }
}
