//! What all actors of a seed share: time, chance, the bucket, the oracle, and the log of what happened.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use hoplake::Manifest;
use hoplake_testkit::generate::SplitMix64;
use tokio::{sync::Notify, time::Instant};

use crate::{
    bucket::Bucket,
    client::Uploads,
    faults::FaultSchedule,
    history::History,
    location::{GRAPHS_MAX, GraphLocation},
    machine::Machine,
    medium::Medium,
};

/// Requests of a seed, those of auditors included, which read every version of every graph completely: several times
/// what the longest take.
const REQUESTS_MAX: u64 = 250_000;

/// Parts of uploads may be so long: compactions of small graphs have several of them, or one.
const PART_BYTES: [usize; 4] = [1 << 10, 2 << 10, 4 << 10, 8 << 20];

/// Of a message of what does not hold: graphs may have long texts.
const MESSAGE_CHARACTERS_MAX: usize = 1_000;

/// What is drawn for: each has a generator of its own, so that a change of one leaves the others as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// Which faults there are.
    FaultSchedule,
    /// How long requests take, and what befalls them.
    Store,
    /// What actors do, and when.
    Actors,
    /// The batches.
    Batches,
    /// Names.
    Names,
    /// What there is at first.
    Beginning,
    /// What befalls local disks.
    Disk,
    /// Whether the graph is in a folder, and when its machine loses the power.
    Power,
    /// Which batches are by columns.
    Columns,
    /// The tables that a feed follows, and what goes wrong between it and them.
    Feed,
    /// Which tables of a feed change in which no row change shows.
    Alter,
}

/// What happens in a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// Processes change graphs.
    Graphs,
    /// A graph follows the tables of a database.
    Feeds,
}

/// An invariant that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// After how many events.
    pub step: u64,
    /// At which virtual time.
    pub at: Duration,
    /// What was expected, and what was found.
    pub message: String,
}

/// Everything that the actors of a seed share.
#[derive(Debug)]
pub struct World {
    /// Decides everything.
    pub seed: u64,
    /// Whether a feed writes the graph.
    pub is_fed: bool,
    /// What goes wrong.
    pub schedule: FaultSchedule,
    /// Where all happens but what loads do in threads of their own.
    thread: ThreadId,
    begun: Instant,
    randoms: [Mutex<SplitMix64>; 11],
    bucket: Mutex<Bucket>,
    /// Whether the graph is in a folder of one machine, on a disk that forgets what was not flushed.
    pub in_folder: bool,
    medium: Mutex<Medium>,
    /// The processes of that machine.
    machines: Mutex<Vec<Weak<Machine>>>,
    uploads: Mutex<Uploads>,
    histories: [Mutex<History>; GRAPHS_MAX],
    /// The last graph that a process began to clone.
    cloned: Mutex<GraphLocation>,
    log: Mutex<Log>,
    violated: Notify,
    published: Notify,
    calm: AtomicBool,
    requests: AtomicU64,
    /// How long the parts of an upload are, in bytes.
    pub part_bytes: usize,
}

#[derive(Debug, Default)]
struct Log {
    steps: u64,
    lines: Option<Vec<String>>,
    violation: Option<Violation>,
}

impl World {
    /// A world that begins now.
    pub fn new(scenario: Scenario, seed: u64, trace: bool) -> Arc<Self> {
        let mut random = SplitMix64::new(seed);
        // In the order of `Concern`: one that is added at the end leaves the seeds of the others as they were.
        let randoms = std::array::from_fn(|_| Mutex::new(SplitMix64::new(random.next_u64())));
        let mut schedule = FaultSchedule::draw(&mut lock(&randoms[Concern::FaultSchedule as usize]));
        let in_folder = lock(&randoms[Concern::Power as usize]).below(8) == 0;
        if in_folder {
            schedule.keep_local();
        }
        let part_bytes = PART_BYTES[lock(&randoms[Concern::Store as usize]).below(PART_BYTES.len() as u64) as usize];
        let log = Log { lines: trace.then(Vec::new), ..Log::default() };
        Arc::new(Self {
            seed,
            is_fed: scenario == Scenario::Feeds,
            schedule,
            thread: thread::current().id(),
            begun: Instant::now(),
            randoms,
            bucket: Mutex::default(),
            in_folder,
            medium: Mutex::default(),
            machines: Mutex::default(),
            uploads: Mutex::default(),
            histories: std::array::from_fn(|number| Mutex::new(History::of(GraphLocation::numbered(number)))),
            cloned: Mutex::new(GraphLocation::FIRST),
            log: Mutex::new(log),
            violated: Notify::new(),
            published: Notify::new(),
            calm: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            part_bytes,
        })
    }

    /// Virtual time since the beginning.
    pub fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether this is a thread of a load: as long as it runs, virtual time stands still, so nothing may wait in it.
    pub fn is_in_load(&self) -> bool {
        thread::current().id() != self.thread
    }

    /// The generator of a concern.
    pub fn random(&self, concern: Concern) -> MutexGuard<'_, SplitMix64> {
        lock(&self.randoms[concern as usize])
    }

    /// A number below `bound`, for what actors do.
    pub fn below(&self, bound: u64) -> u64 {
        self.random(Concern::Actors).below(bound)
    }

    /// The objects.
    pub fn bucket(&self) -> MutexGuard<'_, Bucket> {
        lock(&self.bucket)
    }

    /// The disk of the folder.
    pub fn medium(&self) -> MutexGuard<'_, Medium> {
        lock(&self.medium)
    }

    /// Takes note of a process on the machine of the folder.
    pub fn has_machine(&self, machine: &Arc<Machine>) {
        let mut machines = lock(&self.machines);
        // Processes that are over go, so that the list stays as long as there are processes.
        machines.retain(|known| known.upgrade().is_some_and(|known| !Arc::ptr_eq(&known, machine)));
        machines.push(Arc::downgrade(machine));
    }

    /// All processes end at once.
    pub fn end_all(&self) {
        let machines: Vec<_> = lock(&self.machines).drain(..).filter_map(|machine| machine.upgrade()).collect();
        machines.iter().filter(|machine| !machine.reliable && !machine.is_dead()).for_each(|machine| machine.crash());
    }

    /// The uploads in parts that are not completed.
    pub fn uploads(&self) -> MutexGuard<'_, Uploads> {
        lock(&self.uploads)
    }

    /// The oracle of the first graph.
    pub fn history(&self) -> MutexGuard<'_, History> {
        self.history_of(GraphLocation::FIRST)
    }

    /// The oracle of a graph.
    pub fn history_of(&self, location: GraphLocation) -> MutexGuard<'_, History> {
        lock(&self.histories[location.number()])
    }

    /// Gives the oracle a manifest that the store has just created; the error is a violation.
    pub fn took(&self, location: GraphLocation, manifest: Manifest, bucket: &Bucket) -> Result<(), String> {
        let mut history = self.history_of(location);
        // The first manifest of a clone: its model is that of the version it was made of.
        if location != GraphLocation::FIRST && history.newest() == 0 {
            return history.begin_as(manifest, &self.history(), bucket);
        }
        history.published(manifest, bucket)
    }

    /// A location that is not the target of a clone yet, if any.
    pub fn next_location(&self) -> Option<GraphLocation> {
        let mut cloned = lock(&self.cloned);
        *cloned = cloned.next()?;
        Some(*cloned)
    }

    /// From now on nothing goes wrong.
    pub fn calm_down(&self) {
        self.calm.store(true, Relaxed);
    }

    /// Whether nothing goes wrong any more.
    pub fn is_calm(&self) -> bool {
        self.calm.load(Relaxed) || self.now() >= self.schedule.calm_from
    }

    /// Counts a request of anybody; `false` above the maximum, which only an endless loop reaches.
    pub fn admits_request(&self) -> bool {
        let admitted = self.requests.fetch_add(1, Relaxed) < REQUESTS_MAX;
        if !admitted {
            self.violated(format!("there were {REQUESTS_MAX} requests, without an end"));
        }
        admitted
    }

    /// Notes an event; its text is made only for a trace.
    pub fn log(&self, event: impl FnOnce() -> String) {
        let now = self.now();
        let mut log = lock(&self.log);
        // Counted without a trace as well: the step of a violation is the same when the seed is run again with one.
        log.steps += 1;
        let step = log.steps;
        if let Some(lines) = &mut log.lines {
            lines.push(format!("{step:>6} {:>12.3} s  {}", now.as_secs_f64(), event()));
        }
    }

    /// Notes that an invariant does not hold. The first ends the run.
    pub fn violated(&self, message: impl Into<String>) {
        let mut message = message.into();
        if let Some((cut, _)) = message.char_indices().nth(MESSAGE_CHARACTERS_MAX) {
            message.replace_range(cut.., "…");
        }
        self.log(|| format!("VIOLATED: {message}"));
        let at = self.now();
        let mut log = lock(&self.log);
        let step = log.steps;
        // The first: those after it are often its consequences.
        log.violation.get_or_insert(Violation { step, at, message });
        // The permit stays until the run waits for it, so that a violation is not missed that comes before.
        self.violated.notify_one();
    }

    /// As [`Self::violated`], of a check that failed.
    pub fn check(&self, checked: Result<(), String>) {
        if let Err(message) = checked {
            self.violated(message);
        }
    }

    /// Returns when an invariant does not hold.
    pub async fn until_violated(&self) {
        self.violated.notified().await;
    }

    /// Notes that there is a new version.
    pub fn published(&self) {
        self.published.notify_one();
    }

    /// Returns when there is a new version.
    pub async fn until_published(&self) {
        self.published.notified().await;
    }

    /// The first violation, how many events there were, and the trace if there is one.
    pub fn outcome(&self) -> (Option<Violation>, u64, Vec<String>) {
        let mut log = lock(&self.log);
        (log.violation.clone(), log.steps, log.lines.take().unwrap_or_default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
