//! Sessions: transactions over several requests.
//!
//! A session belongs to the connection that began it, and is rolled back when that ends. Its requests take turns, in the order in
//! which they arrived.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::sync::{MutexGuard, OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{
    GremlinSettings,
    calls::GremlinWork,
    failure::{Failure, Reason},
};

/// Names of sessions that are remembered after their time was over.
const ENDED_MAX: usize = 256;
/// The longest name of a session, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// How many sessions there may be, over all connections of a server.
#[derive(Debug, Clone)]
pub(crate) struct SessionLimit {
    room: Arc<Semaphore>,
    max: usize,
}

impl SessionLimit {
    pub(super) fn new(settings: &GremlinSettings) -> Self {
        let max = settings.sessions_max.min(Semaphore::MAX_PERMITS);
        Self { room: Arc::new(Semaphore::new(max)), max }
    }

    /// Sessions that are open.
    pub(crate) fn count(&self) -> usize {
        self.max - self.room.available_permits()
    }
}

/// A session.
struct Session {
    work: tokio::sync::Mutex<Option<GremlinWork>>,
    /// Told when the last request has had its turn.
    last: Mutex<Option<oneshot::Receiver<()>>>,
    used: Mutex<Instant>,
    _room: OwnedSemaphorePermit,
}

enum Slot {
    Open(Arc<Session>),
    /// It was idle for too long. A request that continues it must fail, and not silently begin another one.
    Ended,
}

/// The sessions of a connection.
#[derive(Default)]
pub(super) struct Sessions(HashMap<Box<str>, Slot>);

/// The turn of a request.
pub(super) struct Turn {
    session: Arc<Session>,
    before: Option<oneshot::Receiver<()>>,
    /// Its drop is the turn of the next.
    _after: oneshot::Sender<()>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with a part of a session")
}

impl Sessions {
    /// The place of a request in the session of a name, which begins if it is not there.
    ///
    /// # Errors
    /// [`Reason::Busy`] if too many are open, [`Reason::Conflict`] if it was rolled back for its time.
    pub(super) fn enter(&mut self, name: &str, limit: &SessionLimit) -> Result<Turn, Failure> {
        match self.0.get(name) {
            Some(Slot::Open(session)) => return Ok(Session::turn(session)),
            Some(Slot::Ended) => {
                let message = format!("session {name} was idle for too long, and was rolled back; begin another");
                return Err(Failure::new(Reason::Conflict, message));
            }
            None if name.len() > NAME_BYTES_MAX => {
                return Err(Failure::invalid(format!("the name of a session has {NAME_BYTES_MAX} bytes at most")));
            }
            None => {}
        }
        let Ok(room) = limit.room.clone().try_acquire_owned() else {
            let message = format!("{} sessions are open; close one, or try again later", limit.count());
            return Err(Failure::new(Reason::Busy, message));
        };
        let session = Arc::new(Session {
            work: tokio::sync::Mutex::new(None),
            last: Mutex::default(),
            used: Mutex::new(Instant::now()),
            _room: room,
        });
        self.0.insert(name.into(), Slot::Open(session.clone()));
        Ok(Session::turn(&session))
    }

    /// Takes a session out; the turn is that of its end.
    pub(super) fn close(&mut self, name: &str) -> Option<Turn> {
        match self.0.remove(name)? {
            Slot::Open(session) => Some(Session::turn(&session)),
            Slot::Ended => None,
        }
    }

    /// Rolls back those that were idle for so long.
    pub(super) fn close_idle(&mut self, idle: Duration) {
        // One that is held elsewhere has a request that runs or waits.
        for slot in self.0.values_mut() {
            if matches!(slot, Slot::Open(session) if Arc::strong_count(session) == 1 && session.idle() >= idle) {
                *slot = Slot::Ended;
            }
        }
        if self.0.len() > ENDED_MAX {
            self.0.retain(|_, slot| matches!(slot, Slot::Open(_)));
        }
    }
}

impl Session {
    fn turn(session: &Arc<Self>) -> Turn {
        let (after, next) = oneshot::channel();
        let before = locked(&session.last).replace(next);
        Turn { session: session.clone(), before, _after: after }
    }

    fn idle(&self) -> Duration {
        locked(&self.used).elapsed()
    }
}

impl Turn {
    /// Waits for the turn.
    pub(super) async fn wait(&mut self) -> MutexGuard<'_, Option<GremlinWork>> {
        if let Some(before) = self.before.take() {
            // An error is the drop of the other end, which is what it waits for.
            let _ = before.await;
        }
        self.session.work.lock().await
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *locked(&self.session.used) = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_take_turns_in_their_order() {
        let limit = SessionLimit::new(&GremlinSettings { sessions_max: 1, ..GremlinSettings::default() });
        let mut sessions = Sessions::default();
        let mut first = sessions.enter("a", &limit).unwrap();
        let mut second = sessions.enter("a", &limit).unwrap();
        assert!(futures::FutureExt::now_or_never(second.wait()).is_none());
        drop(first.wait().await);
        drop(first);
        drop(second.wait().await);
        let full = sessions.enter("b", &limit).err().unwrap();
        assert_eq!((full.reason, limit.count()), (Reason::Busy, 1));
        drop(second);
        sessions.close_idle(Duration::ZERO);
        assert_eq!(sessions.enter("a", &limit).err().unwrap().reason, Reason::Conflict);
        assert_eq!(limit.count(), 0);
        assert!(sessions.close("a").is_none());
        drop(sessions.enter("a", &limit).unwrap());
    }
}
