//! A sample: which vertices, and which edges between them.

use std::{collections::HashMap, ops::Range};

use foldhash::fast::RandomState;
use hoplake_engine::EdgesOf;
use hoplake_format::{LabelId, VertexId};

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
        8 * (self.seeds.capacity() + of_vertices + of_edges) as u64
    }
}

/// What a sampled edge takes at most, with a vertex that is new: its ends here and in the lists that were chosen, the ordinal, the
/// tree, and an entry of a table that is doubled as it grows.
pub(crate) const EDGE_BYTES: u64 = 3 * 8 + 2 * 8 + 3 * 24;

/// The vertices of a label, with a number for each.
#[derive(Debug)]
pub(crate) struct Numbering {
    pub(crate) label: LabelId,
    numbers: HashMap<(u64, u32), u32, RandomState>,
    vertices: Vec<(VertexId, u32)>,
    /// Where the vertices begin that were reached in each hop.
    begins: Vec<usize>,
}

impl Numbering {
    pub(crate) fn new(label: LabelId) -> Self {
        Self { label, numbers: HashMap::default(), vertices: Vec::new(), begins: vec![0] }
    }

    /// The number of a vertex in a tree, which is a new one if it was not there.
    #[inline]
    pub(crate) fn number(&mut self, vertex: VertexId, tree: u32) -> u32 {
        *self.numbers.entry((vertex.ordinal(), tree)).or_insert_with(|| {
            self.vertices.push((vertex, tree));
            self.vertices.len() as u32 - 1
        })
    }

    /// The number of a vertex in a tree, if it is there.
    pub(crate) fn known(&self, vertex: VertexId, tree: u32) -> Option<u32> {
        self.numbers.get(&(vertex.ordinal(), tree)).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Vertices and their trees.
    pub(crate) fn vertices(&self, numbers: Range<usize>) -> &[(VertexId, u32)] {
        &self.vertices[numbers]
    }

    /// The vertices of the hop before, or the seeds.
    pub(crate) fn frontier(&self) -> Range<usize> {
        let end = self.begins.len();
        let begin = end.checked_sub(2).map_or(0, |before| self.begins[before]);
        begin..self.begins[end - 1]
    }

    /// Ends a hop, or the seeds: what was added since then is the next frontier.
    pub(crate) fn end_hop(&mut self) {
        self.begins.push(self.vertices.len());
    }

    pub(crate) fn finish(self, is_disjoint: bool) -> SampledVertices {
        let Self { label, vertices, begins, .. } = self;
        let per_hop = begins.windows(2).map(|ends| ends[1] - ends[0]).collect();
        let trees = if is_disjoint { vertices.iter().map(|(_, tree)| i64::from(*tree)).collect() } else { Vec::new() };
        let ordinals = vertices.into_iter().map(|(vertex, _)| vertex.ordinal() as i64).collect();
        SampledVertices { label, ordinals, trees, per_hop }
    }
}
