//! One job: its state, its progress, and its result.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant, SystemTime},
};

use hoplake::{
    Graph, MemoryBudget, MemoryHold, PriceList, QueryContext,
    compute::{ComputeProgress, Computed, Figure, registry::AlgorithmSpec},
};
use tokio_util::sync::CancellationToken;

use crate::{
    catalog::OpenGraph,
    cost::PricedCost,
    failure::{Failure, Reason},
};

/// The state of a job, without what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum JobState {
    Waiting,
    Running,
    Done,
    Failed,
    Cancelled,
}

impl JobState {
    /// Its name in both protocols, in logs and counters.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Where a job stands, with what belongs to it.
#[derive(Debug)]
pub(super) enum Stage {
    Waiting,
    Running,
    /// The result, unless it was dropped.
    Done(Option<Arc<Computed>>),
    Failed(Failure),
    Cancelled,
}

/// A moment, for the clock on the wall and for times between.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    unix_ms: u64,
    instant: Instant,
}

impl Moment {
    fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { unix_ms: since.as_millis() as u64, instant: Instant::now() }
    }
}

#[derive(Debug)]
struct Progress {
    stage: Stage,
    started: Option<Moment>,
    ended: Option<Moment>,
    superstep: Option<ComputeProgress>,
    /// The query while it runs, with its prices.
    query: Option<(QueryContext, PriceList)>,
    /// The cost of a job that has ended.
    cost: PricedCost,
    /// Of a job that is done.
    supersteps: Option<usize>,
    streamed: Option<bool>,
    figures: Vec<(&'static str, Figure)>,
}

/// The version of a graph that a job reads. It holds no graph open: a result that nobody reads must not keep other graphs out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobGraph {
    pub(crate) name: String,
    pub(crate) version: u64,
    /// A graph that was loaded again may have the same version and other ids.
    created_unix_ms: u64,
}

impl JobGraph {
    pub(crate) fn of(open: &OpenGraph) -> Self {
        let created_unix_ms = open.graph.manifest().created_unix_ms;
        Self { name: open.name.clone(), version: open.graph.version(), created_unix_ms }
    }

    /// Rejects another graph of the same name and version.
    ///
    /// # Errors
    /// [`Reason::Conflict`].
    pub(crate) fn check(&self, graph: &Graph) -> Result<(), Failure> {
        if graph.manifest().created_unix_ms == self.created_unix_ms {
            return Ok(());
        }
        let Self { name, version, .. } = self;
        let message =
            format!("version {version} of {name} is another graph than the one of the job; start the job again");
        Err(Failure::new(Reason::Conflict, message))
    }
}

/// A computation that was started, until it is forgotten.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) graph: JobGraph,
    pub(super) algorithm: &'static AlgorithmSpec,
    vertices: u64,
    /// What it builds, a part of the server's budget. It holds the result after its end.
    pub(super) memory: MemoryBudget,
    pub(super) cancel: CancellationToken,
    submitted: Moment,
    progress: Mutex<Progress>,
    /// For the job itself.
    _hold: MemoryHold,
}

/// What protocols show of a job.
#[derive(Debug, Clone)]
pub(crate) struct JobInfo {
    pub(crate) id: String,
    pub(crate) graph: JobGraph,
    pub(crate) algorithm: &'static AlgorithmSpec,
    pub(crate) state: JobState,
    pub(crate) submitted_unix_ms: u64,
    pub(crate) started_unix_ms: Option<u64>,
    pub(crate) ended_unix_ms: Option<u64>,
    pub(crate) forgotten_unix_ms: Option<u64>,
    pub(crate) vertices: u64,
    pub(crate) superstep: Option<u64>,
    pub(crate) changed: Option<u64>,
    pub(crate) residual: Option<f64>,
    pub(crate) streamed: Option<bool>,
    pub(crate) triangles: Option<u64>,
    pub(crate) figures: BTreeMap<&'static str, f64>,
    pub(crate) cost: PricedCost,
    pub(crate) memory_bytes: u64,
    pub(crate) has_result: bool,
    pub(crate) failure: Option<Failure>,
}

/// How a job ended, for logs and counters.
pub(super) struct Ended {
    pub(super) state: JobState,
    pub(super) failure: Option<Failure>,
    pub(super) waited: Duration,
    pub(super) ran: Duration,
    pub(super) cost: PricedCost,
}

impl Job {
    pub(super) fn new(
        id: String,
        graph: JobGraph,
        algorithm: &'static AlgorithmSpec,
        vertices: u64,
        memory: MemoryBudget,
        hold: MemoryHold,
    ) -> Self {
        let progress = Progress {
            stage: Stage::Waiting,
            started: None,
            ended: None,
            superstep: None,
            query: None,
            cost: PricedCost::default(),
            supersteps: None,
            streamed: None,
            figures: Vec::new(),
        };
        Self {
            id,
            graph,
            algorithm,
            vertices,
            memory,
            cancel: CancellationToken::new(),
            submitted: Moment::now(),
            progress: Mutex::new(progress),
            _hold: hold,
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().expect("no thread panics with the progress of a job")
    }

    /// It has its turn; `false` if it was cancelled before.
    pub(super) fn begin(&self) -> bool {
        let mut progress = self.progress();
        let waits = matches!(progress.stage, Stage::Waiting);
        if waits {
            progress.stage = Stage::Running;
            progress.started = Some(Moment::now());
        }
        waits
    }

    /// Its query, whose meter shows the cost while it runs.
    pub(super) fn runs(&self, query: QueryContext, prices: PriceList) {
        self.progress().query = Some((query, prices));
    }

    /// A superstep has ended.
    pub(super) fn saw(&self, superstep: &ComputeProgress) {
        self.progress().superstep = Some(*superstep);
    }

    /// Ends it, once: by its outcome or by a cancellation, whichever comes first.
    pub(super) fn end(&self, stage: Stage) -> Option<Ended> {
        let mut progress = self.progress();
        if progress.ended.is_some() {
            return None;
        }
        let now = Moment::now();
        progress.ended = Some(now);
        progress.cost = progress.cost();
        progress.query = None;
        let failure = if let Stage::Failed(failure) = &stage { Some(failure.clone()) } else { None };
        progress.stage = stage;
        let started = progress.started.map_or(now.instant, |started| started.instant);
        Some(Ended {
            state: progress.state(),
            failure,
            waited: started - self.submitted.instant,
            ran: now.instant - started,
            cost: progress.cost,
        })
    }

    /// Notes what a result says apart from its rows, before its end.
    pub(super) fn found(&self, computed: &Computed) {
        let mut progress = self.progress();
        progress.figures.clone_from(&computed.figures);
        if computed.has_values() {
            progress.supersteps = computed.supersteps;
            progress.streamed = Some(computed.streamed);
        }
    }

    /// Gives the memory of the result back, when the last reader has it.
    pub(super) fn drop_result(&self) {
        let mut progress = self.progress();
        if let Stage::Done(result) = &mut progress.stage {
            *result = None;
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.progress().ended.is_some()
    }

    /// How long ago it ended, if it has.
    pub(super) fn since_end(&self) -> Option<Duration> {
        self.progress().ended.map(|ended| ended.instant.elapsed())
    }

    pub(super) fn state(&self) -> JobState {
        self.progress().state()
    }

    /// Bytes of its result, if there is one.
    pub(super) fn result_bytes(&self) -> u64 {
        match self.progress().stage {
            Stage::Done(Some(_)) => self.memory.used(),
            _ => 0,
        }
    }

    /// Its result.
    ///
    /// # Errors
    /// [`Reason::NoResult`] if it has not ended or was cancelled, or if the result was dropped; its own failure if it failed.
    pub(crate) fn result(&self) -> Result<Arc<Computed>, Failure> {
        let id = &self.id;
        let progress = self.progress();
        let none = |why: &str| Err(Failure::new(Reason::NoResult, format!("job {id} {why}")));
        match &progress.stage {
            Stage::Done(Some(computed)) => Ok(computed.clone()),
            Stage::Waiting => none("waits for its turn; ask for its result when its state is done"),
            Stage::Running => none("still runs; ask for its result when its state is done"),
            Stage::Cancelled => none("was cancelled, and has no result"),
            Stage::Done(None) if self.algorithm.value.is_none() => {
                none("has figures for the whole graph and no rows: its description has them")
            }
            Stage::Done(None) => none("is done, but its result was dropped; start it again"),
            Stage::Failed(failure) => {
                let message = format!("job {id} failed: {}", failure.message);
                Err(Failure { message, ..failure.clone() })
            }
        }
    }

    /// What protocols show; `kept` is how long it stays after its end.
    pub(super) fn info(&self, kept: Duration) -> JobInfo {
        let progress = self.progress();
        let superstep = progress.superstep;
        let failure = if let Stage::Failed(failure) = &progress.stage { Some(failure.clone()) } else { None };
        let ended_unix_ms = progress.ended.map(|ended| ended.unix_ms);
        let done = progress.supersteps.or(superstep.map(|superstep| superstep.superstep));
        JobInfo {
            id: self.id.clone(),
            graph: self.graph.clone(),
            algorithm: self.algorithm,
            state: progress.state(),
            submitted_unix_ms: self.submitted.unix_ms,
            started_unix_ms: progress.started.map(|started| started.unix_ms),
            ended_unix_ms,
            forgotten_unix_ms: ended_unix_ms.map(|ended| ended.saturating_add(kept.as_millis() as u64)),
            vertices: self.vertices,
            superstep: done.map(|superstep| superstep as u64),
            changed: superstep.map(|superstep| superstep.changed),
            residual: superstep.and_then(|superstep| superstep.residual),
            streamed: progress.streamed,
            triangles: progress.triangles(),
            figures: progress.figures.iter().map(|(name, figure)| (*name, figure.number())).collect(),
            cost: progress.cost(),
            memory_bytes: self.memory.used(),
            has_result: matches!(progress.stage, Stage::Done(Some(_))),
            failure,
        }
    }
}

impl Progress {
    /// Of which `figures` have only as many as a float counts.
    fn triangles(&self) -> Option<u64> {
        self.figures.iter().find_map(|found| match found {
            ("triangles", Figure::Count(triangles)) => Some(*triangles),
            _ => None,
        })
    }

    fn state(&self) -> JobState {
        match self.stage {
            Stage::Waiting => JobState::Waiting,
            Stage::Running => JobState::Running,
            Stage::Done(_) => JobState::Done,
            Stage::Failed(_) => JobState::Failed,
            Stage::Cancelled => JobState::Cancelled,
        }
    }

    fn cost(&self) -> PricedCost {
        match &self.query {
            Some((query, prices)) => PricedCost::of(&query.cost(), prices),
            None => self.cost,
        }
    }
}
