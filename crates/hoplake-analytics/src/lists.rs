//! The lists that a program runs over: in memory, or streamed from the bucket.

use std::{ops::Range, sync::Arc};

use hoplake_engine::{DenseIds, EngineError, Snapshot};
use hoplake_storage::{Branch, MemoryHold, QueryContext};

use crate::{
    Adjacency, Selection, Topology, Workers,
    batches::{Batch, Batches},
    topology::{Selected, deleted},
};

/// Vertices that a worker computes at a time.
pub(crate) const CHUNK: u32 = 1 << 14;

/// Where a run has its lists from.
pub struct Lists {
    form: Form,
    vertices: u32,
    /// Ascending.
    pub(crate) deleted: Arc<Vec<u32>>,
    _memory: MemoryHold,
}

enum Form {
    InMemory(Arc<Topology>),
    Streamed { snapshot: Arc<Snapshot>, selected: Selected },
}

impl Lists {
    /// The lists of a topology, which has to have those against the direction of its edges, unless edges have none.
    ///
    /// # Errors
    /// [`EngineError::Limit`] if the budget has no room for ids of deleted vertices.
    pub fn in_memory(topology: &Arc<Topology>, context: &QueryContext) -> Result<Self, EngineError> {
        let deleted = topology.deleted.to_vec();
        Ok(Self {
            vertices: topology.out.len() as u32,
            _memory: context.hold(deleted.len() as u64 * 4)?,
            deleted: Arc::new(deleted),
            form: Form::InMemory(topology.clone()),
        })
    }

    /// The lists of a selection, read from the bucket in each superstep.
    ///
    /// # Errors
    /// As [`Topology::load`].
    pub async fn streamed(
        snapshot: &Arc<Snapshot>,
        selection: &Selection,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        let selected = selection.resolve(snapshot)?;
        let deleted = deleted(snapshot, &selected.ids, branch).await?;
        Ok(Self {
            vertices: selected.ids.len() as u32,
            _memory: branch.context().hold(deleted.len() as u64 * 4)?,
            deleted: Arc::new(deleted.into_inner()),
            form: Form::Streamed { snapshot: snapshot.clone(), selected },
        })
    }

    /// The dense ids of the vertices.
    pub fn ids(&self) -> &Arc<DenseIds> {
        match &self.form {
            Form::InMemory(topology) => &topology.ids,
            Form::Streamed { selected, .. } => &selected.ids,
        }
    }

    /// How many vertices there are, deleted ones included: a store of states has a place for each.
    pub fn vertices(&self) -> u32 {
        self.vertices
    }

    /// Ids of deleted vertices, ascending.
    pub fn deleted(&self) -> &[u32] {
        &self.deleted
    }

    /// How many edges each vertex of a range signals along.
    pub(crate) async fn degrees(
        &self,
        range: &Range<u32>,
        workers: &Workers,
        branch: &mut Branch,
    ) -> Result<Vec<u32>, EngineError> {
        match &self.form {
            Form::InMemory(topology) => Ok(range.clone().map(|vertex| topology.out.degree(vertex) as u32).collect()),
            Form::Streamed { snapshot, selected } => {
                let mut degrees = Vec::with_capacity(range.len());
                // Degrees need no weights.
                let selected = Selected { weight: None, ..selected.clone() };
                let (edges, context) = (&selected.edges, branch.context());
                let mut batches = Batches::new(snapshot, &selected, edges, range.clone(), workers, context)?;
                loop {
                    let next = batches.next(branch).await?;
                    if next.is_empty() {
                        return Ok(degrees);
                    }
                    for batch in next {
                        for (vertex, list, _) in batch.lists() {
                            degrees.resize((vertex - range.start) as usize, 0);
                            degrees.push(list.len() as u32);
                        }
                        degrees.resize((batch.vertices.end - range.start) as usize, 0);
                    }
                }
            }
        }
    }

    /// The lists in memory; `None` if they are streamed.
    pub(crate) fn topology(&self) -> Option<&Arc<Topology>> {
        match &self.form {
            Form::InMemory(topology) => Some(topology),
            Form::Streamed { .. } => None,
        }
    }

    /// The lists of some vertices as a stream that reads up to `ahead_bytes` ahead; `None` if they are in memory.
    pub(crate) fn batches(
        &self,
        vertices: Range<u32>,
        workers: &Workers,
        ahead_bytes: u64,
        context: &QueryContext,
    ) -> Result<Option<Batches>, EngineError> {
        let Form::Streamed { snapshot, selected } = &self.form else { return Ok(None) };
        Batches::within(snapshot, selected, &selected.against, vertices, workers, ahead_bytes, context).map(Some)
    }

    /// All lists of a range once.
    pub(crate) fn pass(
        &self,
        range: &Range<u32>,
        workers: &Workers,
        context: &QueryContext,
    ) -> Result<Pass, EngineError> {
        Ok(match &self.form {
            Form::InMemory(topology) => Pass::InMemory(topology.clone(), range.clone(), workers.threads() as u32),
            Form::Streamed { snapshot, selected } => {
                let batches = Batches::new(snapshot, selected, &selected.against, range.clone(), workers, context)?;
                Pass::Streamed(Box::new(batches))
            }
        })
    }
}

/// A pass over the lists of a range.
pub(crate) enum Pass {
    /// The vertices that are left, and how many threads compute them.
    InMemory(Arc<Topology>, Range<u32>, u32),
    Streamed(Box<Batches>),
}

impl Pass {
    /// The next ranges of vertices and their lists; none behind the last.
    pub(crate) async fn next(&mut self, branch: &mut Branch) -> Result<Vec<Piece>, EngineError> {
        match self {
            Self::InMemory(topology, left, threads) => {
                let first = left.start;
                // Many at once, since all wait for the last of them.
                left.start = first.saturating_add(*threads * 16 * CHUNK).min(left.end);
                let (pieces, end) = ((first..left.start).step_by(CHUNK as usize), left.end);
                let piece = |first: u32| Piece {
                    vertices: first..end.min(first.saturating_add(CHUNK)),
                    origin: Origin::Topology(topology.clone()),
                };
                Ok(pieces.map(piece).collect())
            }
            Self::Streamed(batches) => loop {
                let next = batches.next(branch).await?;
                let is_ended = next.is_empty();
                let pieces: Vec<_> = next.into_iter().flat_map(pieces_of).collect();
                // A block may have sources before the range alone, and then there is a batch of no vertices.
                if is_ended || !pieces.is_empty() {
                    return Ok(pieces);
                }
            },
        }
    }
}

/// Consecutive vertices and their lists.
pub(crate) struct Piece {
    pub(crate) vertices: Range<u32>,
    pub(crate) origin: Origin,
}

pub(crate) enum Origin {
    Topology(Arc<Topology>),
    Batch(Arc<Batch>),
}

/// Ranges of a batch, of which one may have many vertices without lists. None has vertices of two chunks.
pub(crate) fn pieces_of(batch: Batch) -> impl Iterator<Item = Piece> {
    let batch = Arc::new(batch);
    let Range { start, end } = batch.vertices;
    let numbers = start / CHUNK..end.div_ceil(CHUNK);
    numbers.map(move |number| Piece {
        vertices: start.max(number * CHUNK)..end.min((number * CHUNK).saturating_add(CHUNK)),
        origin: Origin::Batch(batch.clone()),
    })
}
