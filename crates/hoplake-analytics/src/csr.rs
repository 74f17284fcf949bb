//! Adjacency in compressed sparse rows: where each vertex's list begins, and all lists one after the other.
//!
//! 8 bytes a vertex and 4 an edge. Lists ascend, so that a look for one neighbour can end early and two lists can be intersected
//! in one pass.

use std::ops::Range;

use hoplake_engine::EngineError;
use hoplake_storage::{MemoryHold, QueryContext};

use crate::{
    adjacency::{Adjacency, Cursor},
    batches::Batch,
};

/// The lists of all vertices, as arrays.
#[derive(Debug)]
pub struct Csr {
    /// One more than there are vertices.
    offsets: Vec<u64>,
    targets: Vec<u32>,
    /// What both take, until they are dropped.
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

    fn degree(&self, vertex: u32) -> usize {
        self.range(vertex).len()
    }

    fn cursor(&self) -> &Self {
        self
    }
}

impl Cursor for &Csr {
    fn neighbours(&mut self, vertex: u32) -> &[u32] {
        Csr::neighbours(self, vertex)
    }
}

impl Csr {
    /// The edges of a vertex among those of all lists; what an edge has besides its target is in arrays in this order.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn range(&self, vertex: u32) -> Range<usize> {
        let vertex = vertex as usize;
        self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize
    }

    /// The neighbours of a vertex, ascending, once for each edge.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn neighbours(&self, vertex: u32) -> &[u32] {
        &self.targets[self.range(vertex)]
    }
}

/// Builds lists in the order of vertices.
pub(crate) struct CsrBuilder {
    offsets: Vec<u64>,
    targets: Vec<u32>,
    memory: MemoryHold,
}

impl CsrBuilder {
    /// Allocates room for all vertices and for at most `edges` edges, whose memory counts first.
    pub(crate) fn new(vertices: u64, edges: u64, context: &QueryContext) -> Result<Self, EngineError> {
        let memory = context.hold((vertices + 1) * 8 + edges * 4)?;
        let mut offsets = Vec::with_capacity(vertices as usize + 1);
        offsets.push(0);
        Ok(Self { offsets, targets: Vec::with_capacity(edges as usize), memory })
    }

    /// Ends the lists of all vertices before one, which is then the next; those that nothing was added to are empty.
    fn end_before(&mut self, vertex: u64) {
        self.offsets.resize(vertex as usize + 1, self.targets.len() as u64);
    }

    /// Adds the lists of the next vertices.
    pub(crate) fn append(&mut self, batch: &Batch) {
        for (vertex, targets) in batch.lists() {
            self.end_before(vertex.into());
            self.targets.extend_from_slice(targets);
        }
        self.end_before(batch.vertices.end.into());
    }

    /// All lists.
    pub(crate) fn finish(mut self, vertices: u64) -> Csr {
        self.end_before(vertices);
        Csr { offsets: self.offsets, targets: self.targets, _memory: self.memory }
    }
}
