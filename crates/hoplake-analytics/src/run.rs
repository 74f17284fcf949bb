//! Runs a vertex program in supersteps.
//!
//! ```text
//! signals of all vertices ─┐
//! lists, range by range ───┼─▶ collect ─▶ states ─▶ signals of the next superstep
//! states of the range ─────┘   in parallel, by range
//! ```
//! A vertex *pulls*: its list contains its in-neighbours, whose signals it looks up in a column. So nothing is sent, buffered or sorted,
//! no two threads write to one place, and signals are collected in the order of the list, whatever the number of threads. Only the
//! column is accessed at random, and it is in memory; lists and states are read in order, and may be in the bucket and in a store on
//! disk.
//!
//! A [`RangeRun`] does so for a range of vertices. Runs of other ranges need its signals, and nothing else.
//!
//! Lists follow the edges *against* their direction. They are in memory (a [`Topology`]), or streamed from the bucket in each superstep.
//! A streamed run needs memory for the lists in flight, for those that workers have decoded, and for twice the signals, however many
//! edges there are. The next lists are read while workers compute.

use std::{fmt, ops::Range, path::PathBuf, sync::Arc, time::Instant};

use futures::future::join;
use hoplake_engine::EngineError;
use hoplake_storage::{Branch, MemoryHold, QueryContext, StorageError};
use rayon::prelude::*;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Checkpoint, Edge, Step, Vertex, VertexProgram, Workers,
    lists::{AdjacencySlice, CHUNK, Lists, Origin},
    signals::Signals,
    stores::{StateStore, StoreError},
};

/// How a program runs.
#[derive(Debug, Clone, Default)]
pub struct RunSettings {
    /// The maximum number of supersteps; `None` sets no limit.
    pub supersteps_max: Option<usize>,
    /// The threads that compute.
    pub workers: Workers,
    /// The checkpoint that the run writes periodically, and resumes from if it exists; `None` for a run without checkpoints.
    pub checkpoint: Option<Checkpoint>,
}

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress<A> {
    /// The superstep that has just ended, from 1 on; a step, in an asynchronous run.
    pub superstep: usize,
    /// How many states it changed.
    pub changed: u64,
    /// The aggregate of all states.
    pub aggregate: A,
    /// The number of collections so far; in a run that resumed from a checkpoint, since then.
    pub collections: u64,
    /// The pending vertices of an asynchronous run.
    pub waiting: Option<Waiting>,
}

/// The pending vertices of an asynchronous run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waiting {
    /// The number of vertices that have to collect; with streamed lists, all vertices of the ranges that may contain one.
    pub count: u64,
    /// The highest score of a vertex, or of a range.
    pub greatest_score: f64,
}

/// Why a run ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The graph could not be read, or a limit was reached.
    #[error(transparent)]
    Graph(#[from] EngineError),
    /// The store of states or the file of a checkpoint failed.
    #[error(transparent)]
    States(#[from] StoreError),
    /// A part from another range does not belong to the run.
    #[error("part of a run: {0}")]
    Part(String),
    /// The existing checkpoint is damaged, or of another run.
    #[error("checkpoint {}: {why}", path.display())]
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

/// The data that all workers share in a superstep.
struct Shared<P: VertexProgram> {
    program: Arc<P>,
    /// The states of the range.
    store: Arc<dyn StateStore<P::State>>,
    /// The vertices that this run computes.
    range: Range<u32>,
    /// The degrees of the range; none unless the program needs them.
    degrees: Vec<u32>,
    deleted: Arc<Vec<u32>>,
    /// Vertices that are not deleted.
    count: u64,
    context: QueryContext,
}

/// The result of a piece.
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
        context: &QueryContext,
        mut compute: impl FnMut(&Vertex, &mut P::State) -> bool,
    ) -> Result<Done<P>, RunError> {
        context.check_time()?;
        let places = vertices.start - self.range.start..vertices.end - self.range.start;
        let mut states = self.store.take(places.clone())?;
        let deleted = &self.deleted[self.deleted.partition_point(|id| *id < vertices.start)..];
        let degree = |id: u32| self.degrees.get((id - self.range.start) as usize).copied();
        let vertex = |id: u32| Vertex { id, degree: degree(id).unwrap_or(0), vertices: self.count };
        let mut aggregate = P::Aggregate::default();
        let mut changed = 0;
        let mut gone = deleted.iter().peekable();
        for (id, state) in vertices.clone().zip(&mut states) {
            if gone.next_if_eq(&&id).is_none() {
                let vertex = vertex(id);
                let before = *state;
                changed += u64::from(compute(&vertex, state));
                self.program.aggregate(&vertex, &before, state, &mut aggregate);
            }
        }
        let mut gone = deleted.iter().peekable();
        let signal = |(id, state)| match gone.next_if_eq(&&id) {
            Some(_) => (None, false),
            None => (self.program.signal(&vertex(id), state), degree(id) != Some(0)),
        };
        let signals = vertices.zip(&states).map(signal).collect();
        self.store.put(places.start, states)?;
        Ok(Done { signals, aggregate, changed })
    }

    fn begin(&self, vertices: Range<u32>, is_resumed: bool, context: &QueryContext) -> Result<Done<P>, RunError> {
        self.each(vertices, context, |vertex, state| {
            if !is_resumed {
                *state = self.program.initial(vertex);
            }
            false
        })
    }

    /// A superstep for a range.
    fn collect(
        &self,
        piece: &AdjacencySlice,
        signals: &Signals<P::Signal>,
        step: &Step<P::Aggregate>,
        context: &QueryContext,
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
                self.each(piece.vertices.clone(), context, |vertex, state| {
                    of(vertex, state, against.neighbours(vertex.id), against.weights_of(vertex.id))
                })
            }
            Origin::Batch(batch) => {
                let mut lists = batch.lists_from(piece.vertices.start).peekable();
                self.each(piece.vertices.clone(), context, |vertex, state| {
                    let list = lists.next_if(|(with_list, ..)| *with_list == vertex.id);
                    let (list, weights) = list.map_or_else(Default::default, |(_, list, weights)| (list, weights));
                    of(vertex, state, list, weights)
                })
            }
        }
    }
}

/// Runs a program until no state changes, until the program has converged, or up to the maximum number of supersteps, and returns its
/// progress. `store` then contains the states; those of deleted vertices are unchanged. A run that resumes from its checkpoint computes
/// the same states, bit for bit.
///
/// Results do not depend on the number of threads. Floats differ in their last bits between lists in memory and streamed lists.
///
/// # Errors
/// [`RunError::Graph`] if the graph cannot be read, or at a limit of time or memory; [`RunError::States`] if the store or the file of a
/// checkpoint fails; [`RunError::Checkpoint`] if that file is of another run, before anything is computed. After an error, `store` contains
/// states of several supersteps.
pub async fn run<P: VertexProgram>(
    program: &Arc<P>,
    lists: &Lists,
    store: &Arc<dyn StateStore<P::State>>,
    settings: &RunSettings,
    mut observe: impl FnMut(&Progress<P::Aggregate>),
    branch: &mut Branch,
) -> Result<Progress<P::Aggregate>, RunError> {
    let all = 0..lists.vertices();
    let (mut run, mut part) = RangeRun::begin(program, lists, all, store, settings, branch).await?;
    let mut written = Instant::now();
    let mut goes_on = run.join(vec![part])?;
    while goes_on {
        part = run.superstep(branch).await?;
        goes_on = run.join(vec![part])?;
        observe(run.progress());
        if goes_on && settings.checkpoint.as_ref().is_some_and(|checkpoint| written.elapsed() >= checkpoint.every) {
            run.write_checkpoint().await?;
            written = Instant::now();
        }
    }
    let store = store.clone();
    settings.workers.run(branch.context(), move |_| store.flush()).await??;
    Ok(run.progress)
}

/// A run on a range of vertices. Runs on different ranges, on different machines, exchange the signals of their vertices:
///
/// ```text
/// begin ─▶ part ─┬─▶ to all others            ┌─▶ join ─▶ superstep ─▶ part ─▶ …
///                └─▶ parts of all ranges ─────┘
/// ```
/// All join the same parts, so that each detects the end of the computation. States stay where they are computed. Results are those of
/// a single run, except for the last bits of floats, which are added up range by range.
pub struct RangeRun<'a, P: VertexProgram> {
    shared: Arc<Shared<P>>,
    lists: &'a Lists,
    settings: RunSettings,
    progress: Progress<P::Aggregate>,
    /// Of all vertices.
    signals: Arc<Signals<P::Signal>>,
    /// The column for the next superstep: that of the last one, cleared.
    spare: Signals<P::Signal>,
    has_begun: bool,
    _memory: MemoryHold,
}

impl<'a, P: VertexProgram> RangeRun<'a, P> {
    /// Begins a run, from the initial states or from those of a checkpoint. `store` has a place for each vertex of `range`, in its order.
    ///
    /// # Errors
    /// As [`run`].
    pub async fn begin(
        program: &Arc<P>,
        lists: &'a Lists,
        range: Range<u32>,
        store: &Arc<dyn StateStore<P::State>>,
        settings: &RunSettings,
        branch: &mut Branch,
    ) -> Result<(Self, RangeResult<P>), RunError> {
        let workers = &settings.workers;
        let vertices = lists.vertices();
        let degree_bytes = if P::NEEDS_DEGREES { range.len() as u64 * 4 } else { 0 };
        // Signals of a superstep, and of the next one in parts.
        let memory = branch.context().hold(degree_bytes + u64::from(vertices) * 2 * Signals::<P::Signal>::BYTES)?;
        let degrees = if P::NEEDS_DEGREES { lists.degrees(&range, workers, branch).await? } else { Vec::new() };
        let shared = Arc::new(Shared {
            program: program.clone(),
            store: store.clone(),
            range: range.clone(),
            degrees,
            deleted: lists.deleted.clone(),
            count: u64::from(vertices) - lists.deleted.len() as u64,
            context: branch.context().clone(),
        });
        let resumed_after = match settings.checkpoint.clone() {
            None => None,
            Some(checkpoint) => {
                let shared = shared.clone();
                let most = settings.supersteps_max;
                let read = move |context: &QueryContext| {
                    let Shared { program, store, range, .. } = &*shared;
                    checkpoint.read(&program.name(), &**store, range, most, context)
                };
                workers.run(branch.context(), read).await??
            }
        };
        let begin = {
            let shared = shared.clone();
            let is_resumed = resumed_after.is_some();
            move |context: &QueryContext| {
                let end = shared.range.end;
                let ranges = shared.range.clone().into_par_iter().step_by(CHUNK as usize);
                let of = |first| shared.begin(first..end.min(first.saturating_add(CHUNK)), is_resumed, context);
                ranges.map(of).collect::<Result<Vec<_>, RunError>>()
            }
        };
        let superstep = resumed_after.unwrap_or(0);
        let mut part = RangeResult::new(&shared, superstep, Signals::with_capacity(range.len()));
        part.add(program, workers.run(branch.context(), begin).await??);
        let aggregate = P::Aggregate::default();
        let progress = Progress { superstep, changed: 0, aggregate, collections: 0, waiting: None };
        let signals = Arc::new(Signals::with_capacity(0));
        let spare = Signals::with_capacity(0);
        let settings = settings.clone();
        let has_begun = false;
        Ok((Self { shared, lists, settings, progress, signals, spare, has_begun, _memory: memory }, part))
    }

    /// The progress of all ranges.
    pub fn progress(&self) -> &Progress<P::Aggregate> {
        &self.progress
    }

    /// Merges the parts of all ranges, this one included, in any order, and returns whether there is another superstep.
    ///
    /// # Errors
    /// [`RunError::Part`] unless the parts contain each vertex once, after the same superstep.
    pub fn join(&mut self, mut parts: Vec<RangeResult<P>>) -> Result<bool, RunError> {
        let superstep = self.progress.superstep + usize::from(self.has_begun);
        parts.sort_by_key(|part| part.vertices.start);
        let mut next = 0;
        for part in &parts {
            if (part.vertices.start, part.superstep) != (next, superstep) {
                let why = format!("vertices from {next} on after superstep {superstep} are next, and not {part}");
                return Err(RunError::Part(why));
            }
            next = part.vertices.end;
        }
        if next != self.lists.vertices() {
            return Err(RunError::Part(format!("vertices from {next} on are missing")));
        }
        // The signals of the superstep before are dropped first, so that there are never more than two columns of signals.
        let before = std::mem::replace(&mut self.signals, Arc::new(Signals::with_capacity(0)));
        self.spare = Arc::into_inner(before).unwrap_or_else(|| Signals::with_capacity(0));
        let collections = self.progress.collections + if self.has_begun { self.shared.count } else { 0 };
        let aggregate = P::Aggregate::default();
        let mut progress = Progress { superstep, changed: 0, aggregate, collections, waiting: None };
        let is_one = parts.len() == 1;
        let mut signals = Signals::with_capacity(if is_one { 0 } else { next as usize });
        for part in parts {
            progress.changed += part.changed;
            self.shared.program.merge(&mut progress.aggregate, part.aggregate);
            if is_one {
                signals = part.signals;
            } else {
                signals.append(&part.signals);
            }
        }
        self.signals = Arc::new(signals);
        self.progress = progress;
        let is_over = self.has_begun
            && (self.progress.changed == 0 || self.shared.program.is_converged(&self.progress.aggregate));
        self.has_begun = true;
        Ok(!is_over && self.settings.supersteps_max.is_none_or(|most| superstep < most))
    }

    /// Computes the vertices of the range, from the signals of all.
    ///
    /// # Errors
    /// As [`run`].
    pub async fn superstep(&mut self, branch: &mut Branch) -> Result<RangeResult<P>, RunError> {
        let number = self.progress.superstep + 1;
        let aggregate = self.progress.aggregate.clone();
        let step = Step { number, aggregate, is_asynchronous: false };
        let step = Arc::new(step);
        let workers = &self.settings.workers;
        let spare = std::mem::replace(&mut self.spare, Signals::with_capacity(0));
        let mut part = RangeResult::new(&self.shared, step.number, spare);
        let mut pass = self.lists.pass(&self.shared.range, workers, branch.context())?;
        let mut next = pass.next(branch).await?;
        while let Some(portion) = next {
            let shared = self.shared.clone();
            let signals = self.signals.clone();
            let step = step.clone();
            let collect =
                move |context: &QueryContext| portion.each(|piece| shared.collect(piece, &signals, &step, context));
            // The next lists are read meanwhile.
            let (done, read) = join(workers.run(&self.shared.context, collect), pass.next(branch)).await;
            part.add(&self.shared.program, done??);
            next = read?;
        }
        Ok(part)
    }

    /// Writes the states of the range to the file of the settings, if they have one.
    ///
    /// # Errors
    /// [`RunError::States`] if it cannot be written.
    pub async fn write_checkpoint(&self) -> Result<(), RunError> {
        let Some(checkpoint) = self.settings.checkpoint.clone() else { return Ok(()) };
        let shared = self.shared.clone();
        let superstep = self.progress.superstep;
        let write = move |context: &QueryContext| {
            let Shared { program, store, range, .. } = &*shared;
            checkpoint.write(&program.name(), superstep, &**store, range, context)
        };
        self.settings.workers.run(&self.shared.context, write).await?
    }
}

/// The result of a superstep for the vertices of a range: their signals, and the aggregate of their states.
pub struct RangeResult<P: VertexProgram> {
    vertices: Range<u32>,
    /// The last one that its states have been through: 0 at the beginning, unless the run goes on from a checkpoint.
    superstep: usize,
    signals: Signals<P::Signal>,
    aggregate: P::Aggregate,
    changed: u64,
}

/// The form in which a part is sent.
#[derive(Serialize, Deserialize)]
struct SentPart<'a, A> {
    vertices: Range<u32>,
    superstep: usize,
    aggregate: A,
    changed: u64,
    #[serde(borrow)]
    signals: &'a [u8],
}

impl<P: VertexProgram> RangeResult<P> {
    /// A part without vertices, whose signals come into a column.
    fn new(shared: &Shared<P>, superstep: usize, mut signals: Signals<P::Signal>) -> Self {
        signals.clear();
        signals.reserve(shared.range.len());
        Self { vertices: shared.range.clone(), superstep, signals, aggregate: P::Aggregate::default(), changed: 0 }
    }

    /// Adds the result of the next vertices, in order, since sums of floats depend on the order.
    fn add(&mut self, program: &P, pieces: Vec<Done<P>>) {
        for done in pieces {
            self.signals.append(&done.signals);
            program.merge(&mut self.aggregate, done.aggregate);
            self.changed += done.changed;
        }
    }
}

impl<P: VertexProgram> RangeResult<P>
where
    P::Aggregate: Serialize + DeserializeOwned,
{
    /// The part as bytes, to send it to another machine.
    ///
    /// # Errors
    /// [`RunError::Part`] if the aggregate cannot be serialised.
    pub fn to_bytes(&self) -> Result<Vec<u8>, RunError> {
        let sent = SentPart {
            vertices: self.vertices.clone(),
            superstep: self.superstep,
            aggregate: &self.aggregate,
            changed: self.changed,
            signals: &self.signals.to_bytes(),
        };
        postcard::to_stdvec(&sent).map_err(|error| RunError::Part(error.to_string()))
    }

    /// A part from its bytes.
    ///
    /// # Errors
    /// [`RunError::Part`] if they are not a part of this program.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RunError> {
        let damaged = |why: &str| RunError::Part(format!("its bytes are damaged: {why}"));
        let sent: SentPart<P::Aggregate> = postcard::from_bytes(bytes).map_err(|error| damaged(&error.to_string()))?;
        let SentPart { vertices, superstep, aggregate, changed, signals } = sent;
        let signals = Signals::from_bytes(vertices.len(), signals);
        let signals = signals.ok_or_else(|| damaged("it has not one signal for each vertex"))?;
        Ok(Self { vertices, superstep, signals, aggregate, changed })
    }
}

impl<P: VertexProgram> fmt::Display for RangeResult<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.vertices;
        write!(f, "{start} to {end} after superstep {}", self.superstep)
    }
}
