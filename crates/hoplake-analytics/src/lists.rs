//! The lists that a program runs over: in memory, or streamed from the bucket.

use std::{ops::Range, sync::Arc};

use hoplake_engine::{DenseIds, EngineError, Snapshot};
use hoplake_storage::{Branch, MemoryHold, QueryContext};
use rayon::prelude::*;

use crate::{
    Adjacency, Selection, Topology, Workers,
    batch::Batch,
    batches::{Batches, Parcel, Spares},
    selection::Selected,
    topology::deleted,
};

/// Vertices that a worker computes at a time.
pub(crate) const CHUNK: u32 = 1 << 14;

/// Where a run has its lists from.
pub struct Lists {
    form: ListsBacking,
    vertices: u32,
    /// Ascending.
    pub(crate) deleted: Arc<Vec<u32>>,
    _memory: MemoryHold,
}

/// Where the lists are read from.
enum ListsBacking {
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
            form: ListsBacking::InMemory(topology.clone()),
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
            form: ListsBacking::Streamed { snapshot: snapshot.clone(), selected },
        })
    }

    /// The dense ids of the vertices.
    pub fn ids(&self) -> &Arc<DenseIds> {
        match &self.form {
            ListsBacking::InMemory(topology) => &topology.ids,
            ListsBacking::Streamed { selected, .. } => &selected.ids,
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

    /// The version that lists are read from, and which they are.
    pub(crate) fn stored(&self) -> Result<(&Arc<Snapshot>, &Selected), EngineError> {
        match &self.form {
            ListsBacking::Streamed { snapshot, selected } => Ok((snapshot, selected)),
            ListsBacking::InMemory(_) => Err(EngineError::Internal("lists of parts are not in memory".into())),
        }
    }

    /// How many edges each vertex of a range signals along.
    pub(crate) async fn degrees(
        &self,
        range: &Range<u32>,
        workers: &Workers,
        branch: &mut Branch,
    ) -> Result<Vec<u32>, EngineError> {
        match &self.form {
            ListsBacking::InMemory(topology) => {
                Ok(range.clone().map(|vertex| topology.out.degree(vertex) as u32).collect())
            }
            ListsBacking::Streamed { .. } => self.of_edges(range, workers, branch).await,
        }
    }

    /// A number for each vertex of a range, by the edges that it signals along.
    pub(crate) async fn of_edges<D: Degree>(
        &self,
        range: &Range<u32>,
        workers: &Workers,
        branch: &mut Branch,
    ) -> Result<Vec<D>, EngineError> {
        let (snapshot, selected) = self.stored()?;
        let mut found = Vec::with_capacity(range.len());
        let weight = selected.weight.clone().filter(|_| D::NEEDS_WEIGHTS);
        let selected = Selected { weight, ..selected.clone() };
        let edges = &selected.edges;
        let mut batches = Batches::new(snapshot, &selected, edges, range.clone(), workers, branch.context())?;
        loop {
            let next = batches.next(branch).await?;
            if next.is_empty() {
                return Ok(found);
            }
            for batch in next {
                for (vertex, list, weights) in batch.lists() {
                    found.resize((vertex - range.start) as usize, D::default());
                    found.push(D::of(list, weights));
                }
                found.resize((batch.vertices.end - range.start) as usize, D::default());
                batches.spares().put(batch);
            }
        }
    }

    /// The bytes to read ahead of streamed lists.
    pub(crate) fn ahead_bytes(&self, context: &QueryContext) -> u64 {
        match &self.form {
            ListsBacking::InMemory(_) => 0,
            ListsBacking::Streamed { snapshot, .. } => snapshot.ahead_bytes(context),
        }
    }

    /// The lists in memory; `None` if they are streamed.
    pub(crate) fn topology(&self) -> Option<&Arc<Topology>> {
        match &self.form {
            ListsBacking::InMemory(topology) => Some(topology),
            ListsBacking::Streamed { .. } => None,
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
        let ListsBacking::Streamed { snapshot, selected } = &self.form else { return Ok(None) };
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
            ListsBacking::InMemory(topology) => {
                Pass::InMemory(topology.clone(), range.clone(), workers.threads() as u32)
            }
            ListsBacking::Streamed { snapshot, selected } => {
                let batches = Batches::new(snapshot, selected, &selected.against, range.clone(), workers, context)?;
                Pass::Streamed(Box::new(batches))
            }
        })
    }
}

/// A number that a vertex has by the edges that it signals along.
pub(crate) trait Degree: Copy + Default {
    const NEEDS_WEIGHTS: bool;

    fn of(list: &[u32], weights: &[f64]) -> Self;
}

impl Degree for u32 {
    const NEEDS_WEIGHTS: bool = false;

    fn of(list: &[u32], _: &[f64]) -> Self {
        list.len() as u32
    }
}

impl Degree for f64 {
    const NEEDS_WEIGHTS: bool = true;

    fn of(_: &[u32], weights: &[f64]) -> Self {
        // In the order of the list. From plus zero on, as sums that begin with nothing.
        weights.iter().fold(0.0, |sum, weight| sum + weight)
    }
}

/// A pass over the lists of a range.
pub(crate) enum Pass {
    /// The vertices that are left, and how many threads compute them.
    InMemory(Arc<Topology>, Range<u32>, u32),
    Streamed(Box<Batches>),
}

impl Pass {
    /// The next lists; `None` behind the last. They may be asked for while workers still have the last.
    pub(crate) async fn next(&mut self, branch: &mut Branch) -> Result<Option<Portion>, EngineError> {
        match self {
            Self::InMemory(topology, left, threads) => {
                let first = left.start;
                // Many at once, since all wait for the last of them.
                left.start = first.saturating_add(*threads * 16 * CHUNK).min(left.end);
                let pieces = (first..left.start).step_by(CHUNK as usize);
                let end = left.end;
                let piece = |first: u32| AdjacencySlice {
                    vertices: first..end.min(first.saturating_add(CHUNK)),
                    origin: Origin::Topology(topology.clone()),
                };
                let pieces: Vec<_> = pieces.map(piece).collect();
                Ok((!pieces.is_empty()).then_some(Portion::Pieces(pieces)))
            }
            Self::Streamed(batches) => {
                let (parcels, memory) = batches.next_parcels(branch).await?;
                Ok((!parcels.is_empty()).then(|| Portion::Parcels(parcels, batches.spares().clone(), memory)))
            }
        }
    }
}

/// Lists that are computed with at once.
pub(crate) enum Portion {
    Pieces(Vec<AdjacencySlice>),
    /// To be opened into spares, with the memory that it takes.
    Parcels(Vec<Parcel>, Arc<Spares>, MemoryHold),
}

impl Portion {
    /// Does some work with each piece on the threads of the current pool, and returns what it comes to, in the order of vertices.
    pub(crate) fn each<T: Send, E: From<EngineError> + Send>(
        self,
        work: impl Fn(&AdjacencySlice) -> Result<T, E> + Send + Sync,
    ) -> Result<Vec<T>, E> {
        let (parcels, spares, _memory) = match self {
            Self::Pieces(pieces) => return pieces.par_iter().map(work).collect(),
            Self::Parcels(parcels, spares, memory) => (parcels, spares, memory),
        };
        let opened = parcels.into_par_iter().map(|parcel| {
            let batch = Arc::new(parcel.open(&spares)?);
            let done = pieces_of(batch.clone()).map(|piece| work(&piece)).collect::<Result<Vec<T>, E>>()?;
            Arc::into_inner(batch).into_iter().for_each(|batch| spares.put(batch));
            Ok(done)
        });
        Ok(opened.collect::<Result<Vec<_>, E>>()?.into_iter().flatten().collect())
    }
}

impl Portion {
    /// Does some work with each piece in the order of vertices, on this thread.
    pub(crate) fn in_order(
        self,
        mut work: impl FnMut(&AdjacencySlice) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let (parcels, spares, _memory) = match self {
            Self::Pieces(pieces) => return pieces.iter().try_for_each(work),
            Self::Parcels(parcels, spares, memory) => (parcels, spares, memory),
        };
        for parcel in parcels {
            let batch = Arc::new(parcel.open(&spares)?);
            pieces_of(batch.clone()).try_for_each(|piece| work(&piece))?;
            Arc::into_inner(batch).into_iter().for_each(|batch| spares.put(batch));
        }
        Ok(())
    }
}

/// Consecutive vertices and their lists.
pub(crate) struct AdjacencySlice {
    pub(crate) vertices: Range<u32>,
    pub(crate) origin: Origin,
}

pub(crate) enum Origin {
    Topology(Arc<Topology>),
    Batch(Arc<Batch>),
}

/// Ranges of a batch, of which one may have many vertices without lists. None has vertices of two chunks.
pub(crate) fn pieces_of(batch: Arc<Batch>) -> impl Iterator<Item = AdjacencySlice> {
    let Range { start, end } = batch.vertices;
    let numbers = start / CHUNK..end.div_ceil(CHUNK);
    numbers.map(move |number| AdjacencySlice {
        vertices: start.max(number * CHUNK)..end.min((number * CHUNK).saturating_add(CHUNK)),
        origin: Origin::Batch(batch.clone()),
    })
}
