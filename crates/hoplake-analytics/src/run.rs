//! Runs a vertex program in supersteps.
//!
//! ```text
//! signals of all vertices ─┐
//! lists, range by range ───┼─▶ collect ─▶ states ─▶ signals of the next superstep
//! states of the range ─────┘   in parallel, by range
//! ```
//! A vertex *pulls*: its list names those that signal along an edge to it, and their signals are looked up in a column. So
//! nothing is sent, buffered or sorted, no two threads write to one place, and signals are collected in the order of the list,
//! whatever the number of threads. What is random access is the column alone, which is in memory; lists and states come in
//! order, from the bucket and from a store on disk if need be.
//!
//! Lists are those *against* the direction of the edges. They are in memory (a [`Topology`]), or streamed from the bucket anew in
//! each superstep. Then a run takes up to 32 MiB for lists and twice the signals, however many edges there are.

use std::{ops::Range, path::PathBuf, sync::Arc, time::Instant};

use hoplake_engine::{DenseIds, EngineError, Snapshot};
use hoplake_storage::{Branch, MemoryHold, QueryContext, StorageError};
use rayon::prelude::*;

use crate::{
    Adjacency, Checkpoint, Edge, Selection, Step, Topology, Vertex, VertexProgram, Workers,
    batches::{Batch, Batches},
    signals::Signals,
    stores::{StateStore, StoreError},
    topology::{Selected, deleted},
};

/// Vertices that a worker computes at a time.
const CHUNK: u32 = 1 << 14;

/// How a program runs.
#[derive(Debug, Clone, Default)]
pub struct RunSettings {
    /// The most supersteps; no bound if there is none.
    pub supersteps_max: Option<usize>,
    /// The threads that compute.
    pub workers: Workers,
    /// Where the run writes its states now and then, and goes on from if they are there; nowhere without it.
    pub checkpoint: Option<Checkpoint>,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress<A> {
    /// The superstep that has just ended, from 1 on.
    pub superstep: usize,
    /// How many states it changed.
    pub changed: u64,
    /// What all states add up to now.
    pub aggregate: A,
}

/// Why a run ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The graph, or a limit.
    #[error(transparent)]
    Graph(#[from] EngineError),
    /// The store of states, or a file of a checkpoint.
    #[error(transparent)]
    States(#[from] StoreError),
    /// The checkpoint that is there is damaged, or of another run.
    #[error("checkpoint {}: {why}; remove the file, or name another", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

impl From<StorageError> for RunError {
    fn from(error: StorageError) -> Self {
        Self::Graph(error.into())
    }
}

/// Where a run has its lists from.
pub struct Lists {
    form: Form,
    vertices: u32,
    /// Ascending.
    deleted: Arc<Vec<u32>>,
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

    /// How many edges each vertex signals along.
    async fn degrees(&self, workers: &Workers, branch: &mut Branch) -> Result<Vec<u32>, EngineError> {
        match &self.form {
            Form::InMemory(topology) => {
                Ok((0..self.vertices).map(|vertex| topology.out.degree(vertex) as u32).collect())
            }
            Form::Streamed { snapshot, selected } => {
                let mut degrees = Vec::with_capacity(self.vertices as usize);
                // Degrees need no weights.
                let selected = Selected { weight: None, ..selected.clone() };
                let mut batches = Batches::new(snapshot, &selected, &selected.edges, workers, branch.context())?;
                loop {
                    let next = batches.next(branch).await?;
                    if next.is_empty() {
                        return Ok(degrees);
                    }
                    for batch in next {
                        for (vertex, list, _) in batch.lists() {
                            degrees.resize(vertex as usize, 0);
                            degrees.push(list.len() as u32);
                        }
                        degrees.resize(batch.vertices.end as usize, 0);
                    }
                }
            }
        }
    }

    /// All lists once.
    fn pass(&self, workers: &Workers, context: &QueryContext) -> Result<Pass, EngineError> {
        Ok(match &self.form {
            Form::InMemory(topology) => Pass::InMemory(topology.clone(), 0, workers.threads() as u32),
            Form::Streamed { snapshot, selected } => {
                let batches = Batches::new(snapshot, selected, &selected.against, workers, context)?;
                Pass::Streamed(Box::new(batches))
            }
        })
    }
}

/// A pass over all lists.
enum Pass {
    InMemory(Arc<Topology>, u32, u32),
    Streamed(Box<Batches>),
}

impl Pass {
    /// The next ranges of vertices and their lists; none behind the last.
    async fn next(&mut self, branch: &mut Branch) -> Result<Vec<Piece>, EngineError> {
        match self {
            Self::InMemory(topology, next, threads) => {
                let vertices = topology.out.len() as u32;
                let first = *next;
                // Many at once, since all wait for the last of them.
                *next = first.saturating_add(*threads * 16 * CHUNK).min(vertices);
                let pieces = (first..*next).step_by(CHUNK as usize);
                let piece = |first: u32| Piece {
                    vertices: first..vertices.min(first + CHUNK),
                    origin: Origin::Topology(topology.clone()),
                };
                Ok(pieces.map(piece).collect())
            }
            Self::Streamed(batches) => {
                let next = batches.next(branch).await?;
                Ok(next.into_iter().flat_map(pieces_of).collect())
            }
        }
    }
}

/// Consecutive vertices and their lists.
struct Piece {
    vertices: Range<u32>,
    origin: Origin,
}

enum Origin {
    Topology(Arc<Topology>),
    Batch(Arc<Batch>),
}

/// Ranges of a batch, of which one may have many vertices without lists.
fn pieces_of(batch: Batch) -> impl Iterator<Item = Piece> {
    let batch = Arc::new(batch);
    let end = batch.vertices.end;
    let first = batch.vertices.clone().step_by(CHUNK as usize);
    first.map(move |first| Piece {
        vertices: first..end.min(first.saturating_add(CHUNK)),
        origin: Origin::Batch(batch.clone()),
    })
}

/// What all workers share in a superstep.
struct Shared<P: VertexProgram> {
    program: Arc<P>,
    store: Arc<dyn StateStore<P::State>>,
    degrees: Arc<Vec<u32>>,
    deleted: Arc<Vec<u32>>,
    /// Vertices that are not deleted.
    count: u64,
    context: QueryContext,
}

/// What a piece came to.
struct Done<P: VertexProgram> {
    signals: Signals<P::Signal>,
    aggregate: P::Aggregate,
    changed: u64,
}

impl<P: VertexProgram> Shared<P> {
    /// Computes the vertices of a range one by one, as `compute` says, and returns what they then signal. It gets a vertex and its
    /// state.
    fn each(
        &self,
        vertices: Range<u32>,
        mut compute: impl FnMut(&Vertex, &mut P::State) -> bool,
    ) -> Result<Done<P>, RunError> {
        self.context.check_time()?;
        let mut states = self.store.take(vertices.clone())?;
        let mut done =
            Done { signals: Signals::with_capacity(states.len()), aggregate: P::Aggregate::default(), changed: 0 };
        let mut deleted = self.deleted[self.deleted.partition_point(|id| *id < vertices.start)..].iter().peekable();
        for (id, state) in vertices.clone().zip(&mut states) {
            if deleted.next_if_eq(&&id).is_some() {
                done.signals.push(None, false);
                continue;
            }
            let degree = self.degrees.get(id as usize).copied();
            let vertex = Vertex { id, degree: degree.unwrap_or(0), vertices: self.count };
            let before = *state;
            done.changed += u64::from(compute(&vertex, state));
            self.program.aggregate(&vertex, &before, state, &mut done.aggregate);
            done.signals.push(self.program.signal(&vertex, state), degree != Some(0));
        }
        self.store.put(vertices.start, states)?;
        Ok(done)
    }

    fn begin(&self, vertices: Range<u32>, is_resumed: bool) -> Result<Done<P>, RunError> {
        self.each(vertices, |vertex, state| {
            if !is_resumed {
                *state = self.program.initial(vertex);
            }
            false
        })
    }

    /// A superstep for a range.
    fn collect(
        &self,
        piece: &Piece,
        signals: &Signals<P::Signal>,
        step: &Step<P::Aggregate>,
    ) -> Result<Done<P>, RunError> {
        let of = |vertex: &Vertex, state: &mut P::State, list: &[u32], weights: &[f64]| {
            let program = &*self.program;
            let along = |(signal, weight)| program.along(signal, &Edge { weight });
            match (weights, signals.are_all_sent()) {
                ([], true) => {
                    let signals = signals.all(list).map(|signal| along((signal, 1.0)));
                    program.collect(vertex, state, signals, step)
                }
                ([], false) => {
                    let signals = signals.sent(list).map(|(signal, _)| along((signal, 1.0)));
                    program.collect(vertex, state, signals, step)
                }
                (weights, _) => {
                    let sent = signals.sent(list).map(|(signal, at)| along((signal, weights[at])));
                    program.collect(vertex, state, sent, step)
                }
            }
        };
        match &piece.origin {
            Origin::Topology(topology) => {
                let against = topology.against.as_ref().unwrap_or(&topology.out);
                self.each(piece.vertices.clone(), |vertex, state| {
                    of(vertex, state, against.neighbours(vertex.id), against.weights_of(vertex.id))
                })
            }
            Origin::Batch(batch) => {
                let mut lists = batch.lists_from(piece.vertices.start).peekable();
                self.each(piece.vertices.clone(), |vertex, state| {
                    let list = lists.next_if(|(with_list, ..)| *with_list == vertex.id);
                    let (list, weights) = list.map_or_else(Default::default, |(_, list, weights)| (list, weights));
                    of(vertex, state, list, weights)
                })
            }
        }
    }
}

/// Runs a program until no state changes, until it says that it has converged, or for as many supersteps as it may take, and returns
/// how far it came. States are then in `store`, those of deleted vertices as they were. A run goes on from its checkpoint to the same
/// states, bit for bit.
///
/// Answers do not depend on the number of threads; floats differ in their last bits between lists in memory and streamed ones.
///
/// # Errors
/// [`RunError::Graph`] if the graph cannot be read, or at a limit of time or memory; [`RunError::States`] if the store or the file of a
/// checkpoint fails; [`RunError::Checkpoint`] if that file is of another run, before anything is computed. States are then of several
/// supersteps.
pub async fn run<P: VertexProgram>(
    program: &Arc<P>,
    lists: &Lists,
    store: &Arc<dyn StateStore<P::State>>,
    settings: &RunSettings,
    mut observe: impl FnMut(&Progress<P::Aggregate>),
    branch: &mut Branch,
) -> Result<Progress<P::Aggregate>, RunError> {
    let (workers, vertices) = (&settings.workers, lists.vertices());
    let degree_bytes = if P::NEEDS_DEGREES { 4 } else { 0 };
    let bytes = u64::from(vertices) * (degree_bytes + 2 * Signals::<P::Signal>::BYTES);
    let _memory = branch.context().hold(bytes)?;
    let degrees = if P::NEEDS_DEGREES { lists.degrees(workers, branch).await? } else { Vec::new() };
    let shared = Arc::new(Shared {
        program: program.clone(),
        store: store.clone(),
        degrees: Arc::new(degrees),
        deleted: lists.deleted.clone(),
        count: u64::from(vertices) - lists.deleted.len() as u64,
        context: branch.context().clone(),
    });
    let resumed_after = match &settings.checkpoint {
        None => None,
        Some(checkpoint) => {
            let (checkpoint, shared) = (checkpoint.clone(), shared.clone());
            workers.run(move || checkpoint.read(&shared.program.name(), &*shared.store, vertices)).await??
        }
    };
    let mut written = Instant::now();
    let begin = {
        let shared = shared.clone();
        let is_resumed = resumed_after.is_some();
        move || {
            let ranges = (0..vertices).into_par_iter().step_by(CHUNK as usize);
            let of = |first| shared.begin(first..vertices.min(first.saturating_add(CHUNK)), is_resumed);
            ranges.map(of).collect::<Result<Vec<_>, RunError>>()
        }
    };
    let mut now = Totals::new(&shared);
    now.add(workers.run(begin).await??);
    let mut progress =
        Progress { superstep: resumed_after.unwrap_or(0), changed: shared.count, aggregate: now.aggregate.clone() };
    while settings.supersteps_max.is_none_or(|most| progress.superstep < most) {
        let step = Arc::new(Step { number: progress.superstep + 1, aggregate: progress.aggregate });
        let signals = Arc::new(now.signals);
        now = Totals::new(&shared);
        let mut pass = lists.pass(workers, branch.context())?;
        loop {
            let pieces = pass.next(branch).await?;
            if pieces.is_empty() {
                break;
            }
            let (shared, signals, step) = (shared.clone(), signals.clone(), step.clone());
            let collect = move || {
                let pieces = pieces.par_iter().map(|piece| shared.collect(piece, &signals, &step));
                pieces.collect::<Result<Vec<_>, RunError>>()
            };
            now.add(workers.run(collect).await??);
        }
        progress = Progress { superstep: step.number, changed: now.changed, aggregate: now.aggregate.clone() };
        observe(&progress);
        if progress.changed == 0 || program.is_converged(&progress.aggregate) {
            break;
        }
        if let Some(checkpoint) =
            settings.checkpoint.as_ref().filter(|checkpoint| written.elapsed() >= checkpoint.every)
        {
            let (checkpoint, shared, superstep) = (checkpoint.clone(), shared.clone(), progress.superstep);
            let name = program.name();
            workers.run(move || checkpoint.write(&name, superstep, &*shared.store, vertices)).await??;
            written = Instant::now();
        }
    }
    Ok(progress)
}

/// What all vertices came to.
struct Totals<P: VertexProgram> {
    program: Arc<P>,
    signals: Signals<P::Signal>,
    aggregate: P::Aggregate,
    changed: u64,
}

impl<P: VertexProgram> Totals<P> {
    fn new(shared: &Shared<P>) -> Self {
        let vertices = shared.count as usize + shared.deleted.len();
        let signals = Signals::with_capacity(vertices);
        Self { program: shared.program.clone(), signals, aggregate: P::Aggregate::default(), changed: 0 }
    }

    /// Adds what the next vertices came to, in their order: sums of floats depend on it.
    fn add(&mut self, pieces: Vec<Done<P>>) {
        for done in pieces {
            self.signals.append(&done.signals);
            self.program.merge(&mut self.aggregate, done.aggregate);
            self.changed += done.changed;
        }
    }
}
