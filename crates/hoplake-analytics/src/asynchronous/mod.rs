//! Runs a vertex program without supersteps: vertices that have reason to collect do so, those with the most reason first, and what
//! they signal is seen at once.
//!
//! ```text
//!                    ┌──────────── reasons to collect ◀── scores of changed signals ──┐
//!                    ▼                                                                │
//! signals now ──▶ collect, the greatest first ──▶ states ──▶ signals, in their place ─┘
//! ```
//! Vertices pull, as in [`run()`](crate::run()): a list names those that signal to its vertex, and their signals are looked up in a
//! column. There is one column, whose values are replaced while others look them up. So there are no messages that could be lost,
//! overtake each other or fill a buffer: a vertex that looks late finds the newest signal and not all that were sent since, and
//! [`VertexProgram::collect`] folds what it finds. A change of a signal leaves only a number at the other end of an edge:
//! its score ([`VertexProgram::score`]), which adds up to that vertex's reason to collect.
//!
//! A *step* takes the greatest scores that together are half of all that wait, and those that have waited as long as any may.
//! With lists in memory ([`in_memory`]) it takes vertices, and a look at an edge's other end marks who has a reason. With streamed
//! lists ([`by_range`]) it takes ranges of vertices, and ranges without a reason are not read.
//!
//! After Signal/Collect (Stutz, Bernstein, Cohen 2010), which runs a program synchronously or by score, and for the order of
//! vertices within a step Zhao: *A fast sweeping method for eikonal equations*, 2005: ascending in one step, descending in the next.

mod by_range;
mod column;
mod in_memory;
mod waiting;

use std::{ops::Range, sync::Arc};

use hoplake_engine::EngineError;
use hoplake_storage::{Branch, CancelOnDrop, MemoryHold, QueryContext};
use rayon::prelude::*;

use crate::{
    Edge, Progress, RunError, Step, Vertex, VertexProgram, Workers,
    lists::{CHUNK, Lists},
    run::Waiting,
    stores::StateStore,
};

use column::Column;

/// How a program runs asynchronously.
#[derive(Debug, Clone)]
pub struct AsyncSettings {
    /// The least sum of scores that is a reason to collect; with 0 any score above 0.
    pub threshold: f64,
    /// How many steps a vertex that has a reason waits at most while others have greater ones.
    pub staleness_max: usize,
    /// The run ends with the step in which vertices have collected as often; no bound if there is none.
    pub collections_max: Option<u64>,
    /// The threads that compute.
    pub workers: Workers,
}

impl Default for AsyncSettings {
    fn default() -> Self {
        Self { threshold: 0.0, staleness_max: 8, collections_max: None, workers: Workers::default() }
    }
}

/// Runs a program until no vertex has reason to collect, until it says that it is settled, or until vertices have collected as often as
/// they may, and returns how far it came. States are then in `store`, those of deleted vertices as they were.
///
/// Programs whose states only ever move one way to one end come to the same states as in [`run()`](crate::run()), bit for bit, whatever
/// the order: [`Components`](crate::programs::Components), [`Levels`](crate::programs::Levels) and
/// [`ShortestPaths`](crate::programs::ShortestPaths). [`PageRank`](crate::programs::PageRank) ends within its tolerance, at ranks that
/// differ between runs on several threads. How often vertices collect differs, too.
///
/// Memory: a signal and a bit a vertex, 4 bytes if the program needs degrees; with lists in memory 4 more for a score, and otherwise
/// 4 for each pair of ranges, of which there are at most 1,024, and the lists that are on
/// their way.
///
/// # Errors
/// [`RunError::Graph`] if the program needs supersteps or the threshold is not a number from 0 on, before anything is read; if the graph
/// cannot be read, or at a limit of time or memory. [`RunError::States`] if the store fails. States are then of several steps.
pub async fn run_asynchronously<P: VertexProgram>(
    program: &Arc<P>,
    lists: &Lists,
    store: &Arc<dyn StateStore<P::State>>,
    settings: &AsyncSettings,
    observe: impl FnMut(&Progress<P::Aggregate>),
    branch: &mut Branch,
) -> Result<Progress<P::Aggregate>, RunError> {
    if P::NEEDS_SUPERSTEPS {
        let message = format!(
            "{} needs supersteps, in which all vertices see the same signals; run it synchronously",
            program.name()
        );
        return Err(EngineError::Invalid(message).into());
    }
    if settings.threshold.is_nan() || settings.threshold < 0.0 {
        let message = format!("{} is not a valid threshold of scores: it is a number from 0 on", settings.threshold);
        return Err(EngineError::Invalid(message).into());
    }
    match lists.topology() {
        Some(topology) => in_memory::run(program, lists, topology, store, settings, observe, branch).await,
        None => by_range::run(program, lists, store, settings, observe, branch).await,
    }
}

/// What all workers share.
struct Shared<P: VertexProgram> {
    program: Arc<P>,
    store: Arc<dyn StateStore<P::State>>,
    signals: Column<P::Signal>,
    /// None unless the program asks for them.
    degrees: Vec<u32>,
    deleted: Arc<Vec<u32>>,
    vertices: u32,
    /// Vertices that are not deleted.
    count: u64,
    context: QueryContext,
    _memory: MemoryHold,
}

/// What some vertices came to.
struct Done<A> {
    collections: u64,
    changed: u64,
    /// Of all states of the block, unless nothing is added up.
    aggregate: A,
}

impl<P: VertexProgram> Shared<P> {
    /// Whether states add up to anything.
    const ADDS_UP: bool = size_of::<P::Aggregate>() > 0;

    /// Acquires `bytes` and what all runs take, before lists are read for degrees. Work on other threads ends when the guard is dropped.
    async fn new(
        program: &Arc<P>,
        lists: &Lists,
        store: &Arc<dyn StateStore<P::State>>,
        bytes: u64,
        workers: &Workers,
        branch: &mut Branch,
    ) -> Result<(Arc<Self>, CancelOnDrop), RunError> {
        let vertices = lists.vertices();
        let (context, ended) = branch.context().cancellable();
        let degree_bytes = if P::NEEDS_DEGREES { u64::from(vertices) * 4 } else { 0 };
        let memory = branch.context().hold(Column::<P::Signal>::bytes(vertices) + degree_bytes + bytes)?;
        let all = 0..vertices;
        let shared = Self {
            degrees: if P::NEEDS_DEGREES { lists.degrees(&all, workers, branch).await? } else { Vec::new() },
            program: program.clone(),
            store: store.clone(),
            signals: Column::new(vertices),
            deleted: lists.deleted.clone(),
            vertices,
            count: u64::from(vertices) - lists.deleted.len() as u64,
            context,
            _memory: memory,
        };
        Ok((Arc::new(shared), ended))
    }

    fn vertex(&self, id: u32) -> Vertex {
        let degree = self.degrees.get(id as usize).copied().unwrap_or(0);
        Vertex { id, degree, vertices: self.count }
    }

    /// The vertices of a range that are not deleted.
    fn present(&self, vertices: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let from = self.deleted.partition_point(|id| *id < vertices.start);
        let mut deleted = self.deleted[from..].iter().peekable();
        vertices.filter(move |id| deleted.next_if_eq(&id).is_none())
    }

    /// Takes the states of some vertices out, has them changed, and writes them back.
    fn change<T>(
        &self,
        vertices: Range<u32>,
        change: impl FnOnce(&mut [P::State]) -> T,
    ) -> Result<(T, P::Aggregate), RunError> {
        self.context.check_time()?;
        let mut states = self.store.take(vertices.clone())?;
        let before = if Self::ADDS_UP { states.clone() } else { Vec::new() };
        let changed = change(&mut states);
        let mut aggregate = P::Aggregate::default();
        if Self::ADDS_UP {
            for id in self.present(vertices.clone()) {
                let at = (id - vertices.start) as usize;
                self.program.aggregate(&self.vertex(id), &before[at], &states[at], &mut aggregate);
            }
        }
        self.store.put(vertices.start, states)?;
        Ok((changed, aggregate))
    }

    /// Writes the initial states of a block, and what they signal.
    fn begin(&self, vertices: Range<u32>) -> Result<P::Aggregate, RunError> {
        let initial = |states: &mut [P::State]| {
            for id in self.present(vertices.clone()) {
                let vertex = self.vertex(id);
                let state = &mut states[(id - vertices.start) as usize];
                *state = self.program.initial(&vertex);
                self.signals.set(id, self.program.signal(&vertex, state));
            }
        };
        self.change(vertices.clone(), initial)?;
        if !Self::ADDS_UP {
            return Ok(P::Aggregate::default());
        }
        // Before the first step, both states are the same.
        Ok(self.change(vertices, |_| ())?.1)
    }

    /// Has a vertex collect what its list says. Returns whether that changed its state.
    #[inline]
    fn collect(
        &self,
        vertex: &Vertex,
        state: &mut P::State,
        list: &[u32],
        weights: &[f64],
        step: &Step<P::Aggregate>,
    ) -> bool {
        let program = &*self.program;
        let sent = self.signals.sent(list);
        if weights.is_empty() {
            let signals = sent.map(|(signal, _)| program.along(signal, &Edge { weight: 1.0 }));
            program.collect(vertex, state, signals, step)
        } else {
            let signals = sent.map(|(signal, at)| program.along(signal, &Edge { weight: weights[at] }));
            program.collect(vertex, state, signals, step)
        }
    }

    /// Replaces what a vertex signals, and returns the score of the change; 0 if it is not worth it, and nothing is replaced.
    #[inline]
    fn signal(&self, vertex: &Vertex, state: &P::State) -> f64 {
        let before = self.signals.get(vertex.id);
        let after = self.program.signal(vertex, state);
        if before == after {
            return 0.0;
        }
        let score = self.program.score(before, after);
        if score > 0.0 {
            self.signals.set(vertex.id, after);
            return score.clamp(waiting::SCORE_MIN, waiting::SCORE_MAX);
        }
        0.0
    }

    /// Adds up blocks in their order: sums of floats depend on it.
    fn sum(&self, blocks: &[P::Aggregate]) -> P::Aggregate {
        let mut sum = P::Aggregate::default();
        if Self::ADDS_UP {
            blocks.iter().for_each(|block| self.program.merge(&mut sum, block.clone()));
        }
        sum
    }
}

/// Where a run is.
struct Course<P: VertexProgram> {
    shared: Arc<Shared<P>>,
    settings: AsyncSettings,
    progress: Progress<P::Aggregate>,
    /// What the states of each block added up to when it was computed last.
    blocks: Vec<P::Aggregate>,
}

impl<P: VertexProgram> Course<P> {
    /// Begins with the initial states. Blocks have `size` vertices.
    async fn begin(shared: Arc<Shared<P>>, size: u32, settings: &AsyncSettings) -> Result<Self, RunError> {
        let begin = {
            let shared = shared.clone();
            move |_: &QueryContext| {
                let chunks = (0..shared.vertices).into_par_iter().step_by(CHUNK as usize);
                let of = |first: u32| shared.begin(first..shared.vertices.min(first.saturating_add(CHUNK)));
                chunks.map(of).collect::<Result<Vec<_>, RunError>>()
            }
        };
        let chunks = settings.workers.run(&shared.context, begin).await??;
        let blocks: Vec<_> = chunks.chunks((size / CHUNK) as usize).map(|chunks| shared.sum(chunks)).collect();
        let aggregate = shared.sum(&blocks);
        let progress = Progress { superstep: 0, changed: 0, aggregate, collections: 0, waiting: None };
        Ok(Self { shared, settings: settings.clone(), progress, blocks })
    }

    /// Whether there is another step, when vertices wait whose scores add up to `sum`.
    fn goes_on(&self, waiting: Waiting, sum: f64) -> bool {
        let Progress { superstep, aggregate, collections, .. } = &self.progress;
        let is_over = waiting.count == 0 || *superstep > 0 && self.shared.program.is_settled(sum, aggregate);
        !is_over && self.settings.collections_max.is_none_or(|most| *collections < most)
    }

    /// What is known when the next step begins.
    fn next_step(&mut self) -> Arc<Step<P::Aggregate>> {
        self.progress.superstep += 1;
        self.progress.changed = 0;
        let number = self.progress.superstep;
        let aggregate = self.progress.aggregate.clone();
        Arc::new(Step { number, aggregate, is_asynchronous: true })
    }

    fn count(&mut self, done: &Done<P::Aggregate>) {
        self.progress.collections += done.collections;
        self.progress.changed += done.changed;
    }

    /// Turns states into results.
    async fn end(self) -> Result<Progress<P::Aggregate>, RunError> {
        let shared = self.shared.clone();
        let aggregate = self.progress.aggregate.clone();
        let settle = move |_: &QueryContext| {
            let chunks = (0..shared.vertices).into_par_iter().step_by(CHUNK as usize);
            chunks.try_for_each(|first| {
                let vertices = first..shared.vertices.min(first.saturating_add(CHUNK));
                let settle = |states: &mut [P::State]| {
                    for id in shared.present(vertices.clone()) {
                        let state = &mut states[(id - vertices.start) as usize];
                        shared.program.settle(&shared.vertex(id), state, &aggregate);
                    }
                };
                shared.change(vertices.clone(), settle).map(|_| ())
            })
        };
        self.settings.workers.run(&self.shared.context, settle).await??;
        let store = self.shared.store.clone();
        self.settings.workers.run(&self.shared.context, move |_| store.flush()).await??;
        Ok(self.progress)
    }
}
