//! A process, as the store and the machine treat it: it stands still, crashes, loses its credentials, its way to the
//! store, and its sense of time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::sync::Notify;

use crate::{faults::OperationKind, location::GraphLocation};

/// A process, as the store and the machine treat it.
#[derive(Debug)]
pub struct Machine {
    /// Its name in the trace.
    pub name: String,
    /// The graph that it works on.
    pub location: GraphLocation,
    /// Whether faults befall it.
    pub reliable: bool,
    /// Whether it has begun a load, which has threads of its own.
    pub(crate) loads: AtomicBool,
    dead: AtomicBool,
    died: Notify,
    /// Until when it stands still.
    pub(crate) suspended_until: Moment,
    /// Until when its credentials do not hold.
    pub(crate) expired_until: Moment,
    /// The time until which it gets no answers.
    pub(crate) cut_off_until: Moment,
    /// The error of its clock in milliseconds.
    pub(crate) clock_off_ms: AtomicI64,
    /// How often each request was sent since a caller last took a step.
    asked: Mutex<BTreeMap<(OperationKind, String), u32>>,
}

impl Machine {
    /// A process that has just begun, and works on the first graph.
    pub fn new(name: impl Into<String>, reliable: bool) -> Arc<Self> {
        Self::at(GraphLocation::FIRST, name, reliable)
    }

    /// One that works on another graph.
    pub fn at(location: GraphLocation, name: impl Into<String>, reliable: bool) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            location,
            reliable,
            loads: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            died: Notify::new(),
            suspended_until: Moment::default(),
            expired_until: Moment::default(),
            cut_off_until: Moment::default(),
            clock_off_ms: AtomicI64::new(0),
            asked: Mutex::default(),
        })
    }

    /// Returns when it has crashed.
    pub async fn until_dead(&self) {
        self.died.notified().await;
    }

    /// Whether it has crashed.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Relaxed)
    }

    /// A caller begins or ends an operation: what is asked from now on counts anew.
    pub fn stepped(&self) {
        lock(&self.asked).clear();
    }

    /// Whether it stands still.
    pub fn is_suspended(&self, now: Duration) -> bool {
        now < self.suspended_until.get()
    }

    /// Counts a request, and returns how often it was sent since a caller last took a step.
    pub(crate) fn count(&self, kind: OperationKind, name: String) -> u32 {
        let mut asked = lock(&self.asked);
        let times = asked.entry((kind, name)).or_default();
        *times += 1;
        *times
    }

    /// It ends here: nothing leaves it any more, and nothing reaches it.
    pub fn crash(&self) {
        self.dead.store(true, Relaxed);
        // The permit stays, so that a crash is not missed that comes before the wait for it.
        self.died.notify_one();
    }
}

/// Until when something lasts.
#[derive(Debug, Default)]
pub(crate) struct Moment(Mutex<Duration>);

impl Moment {
    pub(crate) fn get(&self) -> Duration {
        *lock(&self.0)
    }

    pub(crate) fn set(&self, until: Duration) {
        *lock(&self.0) = until;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
