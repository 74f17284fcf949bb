//! A sample: which vertices, and which edges between them.

use hoplake_engine::EdgesOf;
use hoplake_format::LabelId;

/// A sampled neighbourhood of seeds.
///
/// Numbers are 64-bit integers with a sign, as tensors of indices are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// Where each seed is among the vertices of its label, in the order given.
    pub seeds: Vec<i64>,
    /// The vertices of each label that has any, by label.
    pub vertices: Vec<SampledVertices>,
    /// The edges of each fan-out, in their order.
    pub edges: Vec<SampledEdges>,
}

/// The sampled vertices of a label. First the seeds, each once, then in the order in which they were reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledVertices {
    /// The label.
    pub label: LabelId,
    /// Their ordinals.
    pub ordinals: Vec<i64>,
    /// The position of the seed that each was reached from, if seeds are kept apart; otherwise empty.
    pub trees: Vec<i64>,
    /// How many are seeds, and how many were reached first in each hop.
    pub per_hop: Vec<usize>,
}

/// The sampled edges of a type. Ends are positions among the sampled vertices of their labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledEdges {
    /// Their type and direction.
    pub edges: EdgesOf,
    /// The vertices that the neighbours were sampled for.
    pub near: Vec<i64>,
    /// The neighbours.
    pub far: Vec<i64>,
    /// Where each edge is in the list that it was chosen from; empty unless [`SamplerSettings::places`](crate::SamplerSettings::places).
    pub places: Vec<u32>,
    /// How many were chosen in each hop; of an induced sample, one number for all.
    pub per_hop: Vec<usize>,
}

impl Sample {
    /// The vertices of a label.
    pub fn of_label(&self, label: LabelId) -> Option<&SampledVertices> {
        self.vertices.iter().find(|vertices| vertices.label == label)
    }

    /// What its numbers take.
    pub(crate) fn bytes(&self) -> u64 {
        let of_vertices = self.vertices.iter().map(|it| it.ordinals.capacity() + it.trees.capacity()).sum::<usize>();
        let of_edges = self.edges.iter().map(|it| it.near.capacity() + it.far.capacity()).sum::<usize>();
        let places = self.edges.iter().map(|it| it.places.capacity()).sum::<usize>();
        (8 * (self.seeds.capacity() + of_vertices + of_edges) + 4 * places) as u64
    }
}
