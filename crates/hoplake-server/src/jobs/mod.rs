//! Jobs: computations over a whole graph, which outlast the request that starts them.
//!
//! A job waits for its turn, runs, and ends as done, failed or cancelled. Then it is kept for a while with its result.
//! Everything is bounded: jobs that run and wait, the memory and the time of each, and how many ended jobs and how
//! many bytes of results are kept.
//!
//! Jobs compute on a pool of threads of their own, and their reads and decisions run on a runtime of their own: a
//! query never waits for a kernel to give a thread back. What they share with queries are processors, which the system
//! divides among threads, and the server's budget of memory.
//!
//! A job belongs to the process. It ends with it, and another server does not know it.

mod job;
mod query;

use std::{
    collections::BTreeMap,
    io,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use futures::FutureExt;
use hoplake::{
    Limits, MemoryBudget,
    compute::{Algorithm, ComputeOptions, Computed, Workers as ComputeWorkers, registry::AlgorithmSpec},
};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span};

use self::job::{Ended, Stage};
pub(crate) use self::{
    job::{Job, JobGraph, JobInfo, JobState},
    query::JobRequest,
};
use crate::{
    JobSettings, Settings,
    catalog::Catalog,
    failure::{Failure, Reason},
    lifecycle::Lifecycle,
    telemetry::{metrics::Metrics, traces},
    workers::Workers,
};

/// What a job takes by itself: its entry, its progress, its task.
const JOB_BYTES: u64 = 16 << 10;
/// What a named start takes in addition to its text.
const START_BYTES: u64 = 64;

/// A job that is about to be started.
pub(crate) struct NewJob {
    pub(crate) graph: JobGraph,
    pub(crate) algorithm: &'static AlgorithmSpec,
    pub(crate) computation: Algorithm,
    pub(crate) options: ComputeOptions,
    /// Without time and memory, which jobs have their own bounds for.
    pub(crate) limits: Limits,
    pub(crate) time: Duration,
    pub(crate) memory_bytes_max: u64,
    /// The vertices that take part.
    pub(crate) vertices: u64,
    /// Bytes of names of vertices.
    pub(crate) name_bytes: u64,
    /// The request that starts it.
    pub(crate) span: Span,
}

/// What a job runs.
struct Work {
    computation: Algorithm,
    options: ComputeOptions,
    limits: Limits,
    time: Duration,
}

/// The jobs of a server.
pub(crate) struct Jobs {
    settings: JobSettings,
    compute: ComputeWorkers,
    runtime: Workers,
    turns: Semaphore,
    /// By id, so in the order in which they were started: an id begins with its time.
    table: Mutex<BTreeMap<String, Arc<Job>>>,
    tasks: TaskTracker,
    catalog: Arc<Catalog>,
    memory: MemoryBudget,
    lifecycle: Lifecycle,
    metrics: Arc<Metrics>,
}

impl Jobs {
    /// None yet.
    ///
    /// # Errors
    /// The system's, if it has no threads left.
    pub(crate) fn new(
        settings: &Settings,
        catalog: Arc<Catalog>,
        memory: MemoryBudget,
        lifecycle: Lifecycle,
        metrics: Arc<Metrics>,
    ) -> io::Result<Arc<Self>> {
        let jobs = settings.jobs;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.threads).thread_name(|_| "hoplake-job".into());
        Ok(Arc::new(Self {
            compute: ComputeWorkers::new(Arc::new(pool.build().map_err(io::Error::other)?)),
            // One thread: it decides and hands out work, and gives way after each piece.
            runtime: Workers::new("hoplake-jobs", 1)?,
            turns: Semaphore::new(jobs.running_max),
            table: Mutex::default(),
            tasks: TaskTracker::new(),
            settings: JobSettings {
                memory_bytes_max: jobs.memory_bytes_of(settings.memory_bytes_max),
                kept_bytes_max: jobs.kept_bytes_of(settings.memory_bytes_max),
                ..jobs
            },
            catalog,
            memory,
            lifecycle,
            metrics,
        }))
    }

    /// Its bounds, in bytes where the settings have a share.
    pub(crate) fn settings(&self) -> &JobSettings {
        &self.settings
    }

    /// The threads that compute.
    pub(crate) fn compute_workers(&self) -> &ComputeWorkers {
        &self.compute
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Job>>> {
        self.table.lock().expect("no thread panics with the table of jobs")
    }

    fn kept(&self) -> Duration {
        Duration::from_millis(self.settings.kept_ms)
    }

    /// Starts a job, or lets it wait.
    ///
    /// # Errors
    /// [`Reason::Busy`] if too many wait, [`Reason::ShuttingDown`].
    pub(crate) fn start(self: &Arc<Self>, new: NewJob) -> Result<JobInfo, Failure> {
        if self.lifecycle.is_draining() {
            return Err(Failure::shutting_down());
        }
        let JobSettings { running_max, waiting_max, .. } = self.settings;
        let memory = self.memory.within("the job", new.memory_bytes_max);
        let needed = JOB_BYTES + new.name_bytes;
        let hold = self.memory.hold(needed).map_err(|full| Failure::no_memory(full, needed))?;
        // 80 of its bits are random, so that it cannot be guessed from another.
        let id = ulid::Ulid::generate().to_string();
        let job = Arc::new(Job::new(id.clone(), new.graph, new.algorithm, new.vertices, memory, hold));
        {
            // Locked from the check to the insertion, or jobs that start at the same time would exceed the maximum together.
            let mut table = self.table();
            if table.values().filter(|job| !job.has_ended()).count() >= running_max.saturating_add(waiting_max) {
                let message = format!("{running_max} jobs run and {waiting_max} wait; try again later, or cancel one");
                return Err(Failure::new(Reason::Busy, message));
            }
            table.insert(id, job.clone());
        }
        let info = job.info(self.kept());
        let work = Work { computation: new.computation, options: new.options, limits: new.limits, time: new.time };
        let span = traces::span_of_job(&new.span, &job.id, new.algorithm.name);
        let task = self.clone().run(job, work, span.clone());
        self.tasks.spawn_on(task.instrument(span), self.runtime.handle());
        Ok(info)
    }

    async fn run(self: Arc<Self>, job: Arc<Job>, work: Work, span: Span) {
        // Dropping the work drops its reads, and ends a kernel at its next look at the deadline.
        let stage = tokio::select! {
            biased;
            () = job.cancel.cancelled() => Stage::Cancelled,
            () = self.lifecycle.drained() => Stage::Cancelled,
            outcome = AssertUnwindSafe(self.work(&job, work)).catch_unwind() => stage_of(&job, outcome),
        };
        if !self.end(&job, stage, &span) {
            // A request has cancelled it.
            traces::end(&span, job.state().name(), None, &job.info(Duration::ZERO).cost);
        }
    }

    async fn work(&self, job: &Job, work: Work) -> Result<Computed, Failure> {
        let _turn = self.turns.acquire().await.expect("the semaphore is never closed");
        if !job.begin() {
            return Err(Failure::new(Reason::NoResult, "the job was cancelled"));
        }
        let begun = Instant::now();
        let time = work.time;
        let too_late = || {
            let message = format!("the job was ended after {} ms, at its limit of time", begun.elapsed().as_millis());
            Failure::new(Reason::Time, message)
        };
        match tokio::time::timeout(time, self.compute(job, work)).await {
            // The engine knows that a limit was reached; which one it was shows the clock.
            Ok(Err(failure)) if failure.reason == Reason::Limit && begun.elapsed() >= time => Err(too_late()),
            Ok(outcome) => outcome,
            Err(_) => Err(too_late()),
        }
    }

    async fn compute(&self, job: &Job, work: Work) -> Result<Computed, Failure> {
        let open = self.catalog.acquire(&job.graph.name, job.graph.version).await?;
        job.graph.check(&open.graph)?;
        let mut query = open.graph.query_within(&job.memory);
        // The budget of the job bounds its memory.
        query.limit(&Limits { timeout: Some(work.time), memory_bytes_max: None, ..work.limits });
        job.runs(query.context().clone(), open.graph.prices().clone());
        let outcome = query.compute(&work.computation, &work.options, |superstep| job.saw(superstep)).await;
        let outcome = outcome.map_err(Failure::from);
        // A vacuum may have removed the version that was read; that is a conflict for the client and no damage.
        self.catalog.unless_removed(&job.graph.name, &open.graph, outcome).await
    }

    /// Ends a job; `false` if it has ended before.
    fn end(&self, job: &Job, stage: Stage, span: &Span) -> bool {
        let Some(ended) = job.end(stage) else { return false };
        let Ended { state, failure, waited, ran, cost } = &ended;
        self.metrics.job(state.name(), *ran, cost);
        traces::end(span, state.name(), failure.as_ref(), cost);
        log(job, *state, failure.as_ref(), *waited, *ran);
        self.make_room();
        true
    }

    /// Drops the oldest results that are beyond the share of memory, and forgets the oldest jobs beyond their number.
    fn make_room(&self) {
        let mut table = self.table();
        let mut ended: Vec<_> = table.values().filter_map(|job| Some((job.since_end()?, job.clone()))).collect();
        // The oldest last.
        ended.sort_by_key(|(since, _)| *since);
        let mut bytes: u64 = 0;
        for (position, (_, job)) in ended.iter().enumerate() {
            bytes = bytes.saturating_add(job.result_bytes());
            if bytes > self.settings.kept_bytes_max {
                job.drop_result();
            }
            if position >= self.settings.kept_max {
                table.remove(&job.id);
            }
        }
    }

    /// Forgets jobs that ended long enough ago.
    pub(crate) fn forget_old(&self) {
        let kept = self.kept();
        self.table().retain(|_, job| job.since_end().is_none_or(|since| since < kept));
    }

    /// All jobs, in the order in which they were started.
    pub(crate) fn list(&self) -> Vec<JobInfo> {
        let kept = self.kept();
        self.table().values().map(|job| job.info(kept)).collect()
    }

    /// A job.
    ///
    /// # Errors
    /// [`Reason::NotFound`].
    pub(crate) fn get(&self, id: &str) -> Result<Arc<Job>, Failure> {
        let unknown = || {
            let message = format!(
                "no job {id:?} is on this server: a job lives in one server and ends with it, and is kept for {} s after its end; \
                 start it again",
                self.settings.kept_ms / 1_000
            );
            Failure::new(Reason::NotFound, message)
        };
        self.table().get(id).cloned().ok_or_else(unknown)
    }

    /// What there is to know of a job.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) fn info(&self, id: &str) -> Result<JobInfo, Failure> {
        Ok(self.get(id)?.info(self.kept()))
    }

    /// Cancels a job, or drops the result of one that is done. A second time changes nothing.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) fn cancel(&self, id: &str) -> Result<JobInfo, Failure> {
        let job = self.get(id)?;
        // Here and not in its task, so that the answer has the new state. The task then finds that the job has ended.
        self.end(&job, Stage::Cancelled, &Span::none());
        job.cancel.cancel();
        job.drop_result();
        Ok(job.info(self.kept()))
    }

    /// How many are in a state.
    pub(crate) fn count(&self, state: JobState) -> usize {
        self.table().values().filter(|job| job.state() == state).count()
    }

    /// Waits until none runs, after the server began to end.
    pub(crate) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// The bytes of the names of vertices.
pub(crate) fn name_bytes(starts: &[hoplake::StartKey]) -> u64 {
    let text = |start: &hoplake::StartKey| match start {
        hoplake::StartKey::Key { label, key } => label.len() + key.len(),
        // Its tests and values take several times their text.
        written @ hoplake::StartKey::SuchThat { .. } => written.to_string().len() * 8,
    };
    starts.iter().map(|start| text(start) as u64 + START_BYTES).sum()
}

fn stage_of(job: &Job, outcome: std::thread::Result<Result<Computed, Failure>>) -> Stage {
    match outcome {
        Ok(Ok(computed)) => {
            job.found(&computed);
            // What has figures alone has no rows.
            Stage::Done(computed.has_values().then(|| Arc::new(computed)))
        }
        Ok(Err(failure)) => Stage::Failed(failure),
        // Its text was printed where it panicked; it may contain paths and secrets.
        Err(_) => {
            let message = "the job broke off because of a bug in Hoplake; the log of the server has more";
            Stage::Failed(Failure::new(Reason::Internal, message))
        }
    }
}

/// The line of a job that has ended.
fn log(job: &Job, state: JobState, failure: Option<&Failure>, waited: Duration, ran: Duration) {
    let info = job.info(Duration::ZERO);
    let id = &info.id;
    let graph = &info.graph.name;
    let version = info.graph.version;
    let algorithm = info.algorithm.name;
    let state = state.name();
    let waited_us = waited.as_micros() as u64;
    let time_us = ran.as_micros() as u64;
    let vertices = info.vertices;
    let superstep = info.superstep;
    let memory_bytes = job.memory.peak();
    let requests = info.cost.counters.requests;
    let bytes = info.cost.counters.store_bytes;
    let usd = info.cost.usd;
    let error = failure.map(|failure| failure.message.as_str());
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(target: "hoplake::jobs", parent: None, id, graph, version, algorithm, state, waited_us, time_us,
                vertices, superstep, memory_bytes, requests, bytes, usd, error)
        };
    }
    match failure.map(|failure| failure.reason) {
        // As of requests: levels are for the operator.
        Some(Reason::Corrupt | Reason::Internal) => line!(error),
        Some(Reason::Unavailable) => line!(warn),
        _ => line!(info),
    }
}
