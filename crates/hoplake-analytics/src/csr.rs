//! Adjacency in compressed sparse rows: where each vertex's list begins, and all lists one after the other.
//!
//! 8 bytes a vertex and 4 an edge, and 8 more for its weight. Lists ascend, so that a look for one neighbour can end early and two lists can be intersected
//! in one pass.

use std::ops::Range;

use hoplake_engine::EngineError;
use hoplake_storage::{MemoryHold, QueryContext};

use crate::{
    adjacency::{Adjacency, Cursor},
    batch::Batch,
};

/// The lists of all vertices, as arrays.
#[derive(Debug)]
pub struct Csr {
    /// One more than there are vertices.
    offsets: Vec<u64>,
    targets: Vec<u32>,
    weights: Vec<f64>,
    /// What they take, until they are dropped.
    _memory: MemoryHold,
}

impl Adjacency for Csr {
    type Cursor<'a> = &'a Self;

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn edges(&self) -> u64 {
        self.targets.len() as u64
    }

    #[inline]
    fn degree(&self, vertex: u32) -> usize {
        self.range(vertex).len()
    }

    fn weighted(&self) -> Option<&Self> {
        (!self.weights.is_empty()).then_some(self)
    }

    fn cursor(&self) -> &Self {
        self
    }
}

impl Cursor for &Csr {
    #[inline]
    fn neighbours(&mut self, vertex: u32) -> &[u32] {
        Csr::neighbours(self, vertex)
    }
}

impl Csr {
    /// The edges of a vertex among those of all lists; what an edge has besides its target is in arrays in this order.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[inline]
    pub fn range(&self, vertex: u32) -> Range<usize> {
        let vertex = vertex as usize;
        self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize
    }

    /// The weights of all edges, in the order of the lists; none unless they were selected.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The weights of a vertex's edges; none unless they were selected.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn weights_of(&self, vertex: u32) -> &[f64] {
        self.weights.get(self.range(vertex)).unwrap_or_default()
    }

    /// The neighbours of a vertex, ascending, once for each edge.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[inline]
    pub fn neighbours(&self, vertex: u32) -> &[u32] {
        &self.targets[self.range(vertex)]
    }

    /// The target of an edge, by its place among those of all lists.
    ///
    /// # Panics
    /// If there is no such edge.
    #[inline]
    pub fn target(&self, edge: usize) -> u32 {
        self.targets[edge]
    }
}

/// Builds lists in the order of vertices.
pub(crate) struct CsrBuilder {
    offsets: Vec<u64>,
    targets: Vec<u32>,
    weights: Vec<f64>,
    is_weighted: bool,
    memory: MemoryHold,
}

impl CsrBuilder {
    /// Allocates room for all vertices and for at most `edges` edges, whose memory counts first.
    pub(crate) fn new(
        vertices: u64,
        edges: u64,
        is_weighted: bool,
        context: &QueryContext,
    ) -> Result<Self, EngineError> {
        let weights = if is_weighted { edges } else { 0 };
        let memory = context.hold((vertices + 1) * 8 + edges * 4 + weights * 8)?;
        let mut offsets = Vec::with_capacity(vertices as usize + 1);
        offsets.push(0);
        let targets = Vec::with_capacity(edges as usize);
        let weights = Vec::with_capacity(weights as usize);
        Ok(Self { offsets, targets, weights, is_weighted, memory })
    }

    /// Makes room for more edges than it was built for. What it takes while arrays move counts first.
    pub(crate) fn reserve(&mut self, edges: u64, context: &QueryContext) -> Result<(), EngineError> {
        let known = self.targets.len() as u64;
        let capacity = self.targets.capacity() as u64;
        if known + edges <= capacity {
            return Ok(());
        }
        let grown = (known + edges).max(capacity + capacity / 2);
        let edge_bytes = if self.is_weighted { 12 } else { 4 };
        let others = self.memory.bytes() - capacity * edge_bytes;
        context.resize(&mut self.memory, others + (capacity + grown) * edge_bytes)?;
        self.targets.reserve_exact((grown - known) as usize);
        if self.is_weighted {
            self.weights.reserve_exact((grown - known) as usize);
        }
        context.resize(&mut self.memory, others + grown * edge_bytes)?;
        Ok(())
    }

    /// Ends the lists of all vertices before one, which is then the next; those that nothing was added to are empty.
    fn end_before(&mut self, vertex: u64) {
        self.offsets.resize(vertex as usize + 1, self.targets.len() as u64);
    }

    /// Adds the lists of the next vertices.
    pub(crate) fn append(&mut self, batch: &Batch) {
        for (vertex, targets, weights) in batch.lists() {
            self.end_before(vertex.into());
            self.targets.extend_from_slice(targets);
            self.weights.extend_from_slice(weights);
        }
        self.end_before(batch.vertices.end.into());
    }

    /// All lists.
    pub(crate) fn finish(mut self, vertices: u64) -> Csr {
        self.end_before(vertices);
        let Self { offsets, targets, weights, is_weighted: _, memory } = self;
        Csr { offsets, targets, weights, _memory: memory }
    }
}
