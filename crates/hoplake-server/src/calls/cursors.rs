//! The cursors that are open: traversals that clients steer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use hoplake::{Limits, MemoryHold, Query};

use crate::{
    catalog::OpenGraph,
    failure::{Failure, Reason},
};

/// An open traversal. It holds its graph, so the version stays open even if the server follows a newer one.
pub(super) struct Cursor {
    pub(super) open: Arc<OpenGraph>,
    pub(super) limits: Limits,
    pub(super) time_ms: u64,
    pub(super) steps: tokio::sync::Mutex<Steps>,
    pub(super) used: Mutex<Instant>,
    pub(super) _hold: MemoryHold,
}

/// What the steps of a cursor share. Behind a lock that is held for a whole step, so that steps take turns on the meter.
pub(super) struct Steps {
    pub(super) query: Query,
    /// Vertices that the steps went on from.
    pub(super) vertices: u64,
}

impl Cursor {
    pub(super) fn touch(&self) {
        *self.used.lock().expect("no thread panics with the time") = Instant::now();
    }

    fn idle(&self) -> Duration {
        self.used.lock().expect("no thread panics with the time").elapsed()
    }
}

/// All open cursors.
#[derive(Default)]
pub(crate) struct Cursors(Mutex<HashMap<String, Arc<Cursor>>>);

impl Cursors {
    pub(super) fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Cursor>>> {
        self.0.lock().expect("no thread panics with the traversals")
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.all().len()
    }

    pub(super) fn get(&self, id: &str) -> Result<Arc<Cursor>, Failure> {
        self.all().get(id).cloned().ok_or_else(|| unknown(id))
    }

    /// Closes cursors that were idle for so long.
    pub(crate) fn close_idle(&self, idle: Duration) {
        // A cursor that is held elsewhere has a step that runs or waits, however long ago the last one ended.
        self.all().retain(|_, cursor| Arc::strong_count(cursor) > 1 || cursor.idle() < idle);
    }
}

pub(super) fn unknown(id: &str) -> Failure {
    let message = format!("no traversal {id:?} is open on this server: it was closed, or it was idle for too long");
    Failure::new(Reason::NotFound, message)
}
