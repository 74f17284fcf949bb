//! Runs a vertex program in supersteps or asynchronously, with its states where the caller wants them.

use std::sync::Arc;

use hoplake_engine::EngineError;
use hoplake_storage::{Branch, MemoryHold};

use crate::{
    AsyncSettings, Checkpoint, Lists, Progress, RunError, RunSettings, VertexProgram, Workers, run, run_asynchronously,
    stores::{StateStore, States, StatesCache, open_states},
};

/// How a program runs, and where its states are.
#[derive(Debug, Clone, Default)]
pub struct ProgramSettings {
    /// Where states are.
    pub states: States,
    /// A cache above states that are not in memory; none unless it is set.
    pub states_cache: Option<StatesCache>,
    /// The threads that compute.
    pub workers: Workers,
    /// Where states are written now and then; nowhere without it.
    pub checkpoint: Option<Checkpoint>,
    /// Without supersteps, and without checkpoints.
    pub asynchronous: Option<Asynchronous>,
}

/// How an asynchronous computation chooses the vertices that collect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asynchronous {
    /// The least sum of scores that is a reason to collect; with 0 any score above 0.
    pub threshold: f64,
    /// How many steps a vertex that has a reason waits at most while others have greater ones.
    pub staleness_max: usize,
    /// The computation ends with the step in which vertices have collected as often; no bound if there is none, but for PageRank
    /// the number of its iterations times that of vertices.
    pub collections_max: Option<u64>,
}

impl Default for Asynchronous {
    fn default() -> Self {
        let AsyncSettings { threshold, staleness_max, collections_max, workers: _ } = AsyncSettings::default();
        Self { threshold, staleness_max, collections_max }
    }
}

/// What a program left.
pub struct ProgramRun<S, A> {
    /// The states of all vertices, by dense id.
    pub states: Arc<dyn StateStore<S>>,
    /// How far it came.
    pub progress: Progress<A>,
    /// What the store has in memory.
    pub memory: MemoryHold,
}

/// Runs a program for as many supersteps as it may take. In an asynchronous run vertices may collect as often as in that number of
/// supersteps, unless [`Asynchronous::collections_max`] is another bound.
///
/// # Errors
/// As [`run()`](crate::run()) and [`run_asynchronously`]; [`RunError::States`] if the states' place cannot be opened.
pub async fn run_program<P: VertexProgram>(
    program: &Arc<P>,
    lists: &Lists,
    settings: &ProgramSettings,
    supersteps_max: Option<usize>,
    observe: impl FnMut(&Progress<P::Aggregate>),
    branch: &mut Branch,
) -> Result<ProgramRun<P::State, P::Aggregate>, RunError> {
    let ProgramSettings { states, states_cache, workers, checkpoint, asynchronous } = settings;
    if asynchronous.is_some() && checkpoint.is_some() {
        let message = "an asynchronous computation has no checkpoints; run it in supersteps, or without one";
        return Err(EngineError::Invalid(message.into()).into());
    }
    let vertices = lists.vertices();
    let (states, memory) = open_states::<P::State>(states, *states_cache, vertices, workers, branch).await?;
    let workers = workers.clone();
    let progress = match *asynchronous {
        None => {
            let settings = RunSettings { supersteps_max, workers, checkpoint: checkpoint.clone() };
            run(program, lists, &states, &settings, observe, branch).await?
        }
        Some(Asynchronous { threshold, staleness_max, collections_max }) => {
            let as_often = supersteps_max.map(|most| u64::from(vertices).saturating_mul(most as u64));
            let collections_max = collections_max.or(as_often);
            let settings = AsyncSettings { threshold, staleness_max, collections_max, workers };
            run_asynchronously(program, lists, &states, &settings, observe, branch).await?
        }
    };
    Ok(ProgramRun { states, progress, memory })
}
