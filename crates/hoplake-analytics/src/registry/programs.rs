//! Vertex programs as the registry has them: without the types of their states and signals, so that a table can list them.

use std::sync::Arc;

use futures::future::BoxFuture;
use hoplake_engine::{EngineError, Held};
use hoplake_storage::Branch;

use super::{
    Options,
    results::{Values, first},
};
use crate::{
    Lists, Progress, RunError, Value, VertexProgram, Waiting,
    program_run::{ProgramRun, ProgramSettings, run_program},
};

/// The vertex program of an algorithm.
#[derive(Debug, Clone, Copy)]
pub struct ProgramSpec {
    /// Makes it.
    pub make: fn(ProgramInput<'_>) -> Result<Box<dyn Program>, EngineError>,
    /// Bytes of states and signals for a vertex.
    pub streamed_bytes: u64,
    /// Why it cannot run asynchronously; `None` if it can.
    pub synchronous: Option<&'static str>,
}

/// What a program is made of.
#[derive(Debug)]
pub struct ProgramInput<'a> {
    /// The options that the user gave.
    pub options: &'a Options,
    /// The vertices that the user named.
    pub starts: &'a [u32],
    /// The place of each vertex by label and key, if the algorithm reads them.
    pub places: Option<Held<Vec<u32>>>,
}

impl ProgramInput<'_> {
    /// The one vertex at which the program begins.
    pub(crate) fn start(&self) -> Result<u32, EngineError> {
        first(self.starts)
    }
}

/// How far a computation has come.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ComputeProgress {
    /// The superstep or iteration that has just ended, or the step of an asynchronous computation.
    pub superstep: usize,
    /// How many vertices it changed.
    pub changed: u64,
    /// By how much it changed all ranks in sum; of PageRank in supersteps alone.
    pub residual: Option<f64>,
    /// How many times vertices have collected.
    pub collections: u64,
    /// What waits to collect, in an asynchronous computation.
    pub waiting: Option<Waiting>,
}

/// What a program returns.
#[derive(Debug)]
pub struct ProgramResult {
    /// A value for each vertex.
    pub values: Held<Values>,
    /// How many supersteps or steps it took.
    pub supersteps: usize,
    /// How many times vertices have collected.
    pub collections: u64,
}

/// A vertex program whose states become values.
pub trait Program: Send {
    /// Runs it. `observe` gets its progress.
    ///
    /// # Errors
    /// As [`run()`](crate::run()) and [`run_asynchronously`](crate::run_asynchronously).
    fn run<'a>(
        self: Box<Self>,
        lists: &'a Lists,
        settings: &'a ProgramSettings,
        observe: &'a mut (dyn FnMut(&ComputeProgress) + Send),
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<ProgramResult, RunError>>;
}

/// A vertex program with what the registry has to know of it.
pub(crate) struct Runnable<P: VertexProgram> {
    pub(crate) program: P,
    /// The most supersteps; no bound if there is none.
    pub(crate) supersteps_max: Option<usize>,
    /// By how much a superstep changed all values in sum, if the program adds that up.
    pub(crate) residual: Option<fn(&P::Aggregate) -> f64>,
    /// What states are as values.
    pub(crate) values: fn(Vec<P::State>) -> Values,
}

impl<P: VertexProgram> Runnable<P> {
    /// A program that goes on until no state changes.
    pub(crate) fn new(program: P, values: fn(Vec<P::State>) -> Values) -> Self {
        Self { program, supersteps_max: None, residual: None, values }
    }
}

impl<P: VertexProgram> Program for Runnable<P> {
    fn run<'a>(
        self: Box<Self>,
        lists: &'a Lists,
        settings: &'a ProgramSettings,
        observe: &'a mut (dyn FnMut(&ComputeProgress) + Send),
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<ProgramResult, RunError>> {
        Box::pin(async move {
            let Self { program, supersteps_max, residual, values } = *self;
            let observe = |progress: &Progress<P::Aggregate>| {
                // What is added up in a step of an asynchronous run is of no moment in particular.
                let residual = residual.filter(|_| progress.waiting.is_none());
                let Progress { superstep, changed, collections, waiting, .. } = *progress;
                let residual = residual.map(|residual| residual(&progress.aggregate));
                observe(&ComputeProgress { superstep, changed, residual, collections, waiting });
            };
            let program = Arc::new(program);
            let ran = run_program(&program, lists, settings, supersteps_max, observe, branch).await?;
            collected(ran, lists, settings, values, branch).await
        })
    }
}

/// The states of a run as values.
async fn collected<S: Value, A>(
    ran: ProgramRun<S, A>,
    lists: &Lists,
    settings: &ProgramSettings,
    values: fn(Vec<S>) -> Values,
    branch: &Branch,
) -> Result<ProgramResult, RunError> {
    let ProgramRun { states, progress, memory: _of_states } = ran;
    let vertices = lists.vertices();
    let memory = branch.context().hold(u64::from(vertices) * size_of::<S>() as u64)?;
    // They may come from a disk or a server, which the store then lets go.
    let states = settings.workers.run(branch.context(), move |_| states.take(0..vertices)).await??;
    let Progress { superstep: supersteps, collections, .. } = progress;
    Ok(ProgramResult { values: Held::new(values(states), memory), supersteps, collections })
}
