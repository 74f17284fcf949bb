//! How many queries run at once, and how many may wait.
//!
//! Permits are given in the order of requests. A query that finds the queue full, or waits in it too
//! long, fails at once, so that a balancer or a client can try another server in time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{
    Settings,
    failure::{Failure, Reason},
};

/// The gate that every query passes.
#[derive(Debug)]
pub(crate) struct Admission {
    running: Arc<Semaphore>,
    running_max: usize,
    waiting: AtomicUsize,
    waiting_max: usize,
    wait: Duration,
}

/// A place in the queue, which is freed on drop.
struct QueueSlot<'a>(&'a AtomicUsize);

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    /// For queries.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self::of(settings.queries_max, settings.queue_max, settings.queue_wait())
    }

    /// For reads that other nodes ask for; as many wait as run.
    pub(crate) fn for_fetches(settings: &Settings) -> Self {
        // A limit of their own: one wave of a query is up to 128 fetches, which would take all permits of queries.
        Self::of(settings.fetches_max, settings.fetches_max, settings.queue_wait())
    }

    /// For batches of changes; as many wait as run.
    pub(crate) fn for_changes(settings: &Settings) -> Self {
        // A limit of their own: a batch mostly waits for the version that is under way, and would keep queries waiting with it.
        Self::of(settings.changes_max, settings.changes_max, settings.queue_wait())
    }

    fn of(running_max: usize, waiting_max: usize, wait: Duration) -> Self {
        let running = Arc::new(Semaphore::new(running_max));
        Self { running, running_max, waiting: AtomicUsize::new(0), waiting_max, wait }
    }

    /// Waits for a permit to run.
    ///
    /// # Errors
    /// [`Reason::Busy`] if the queue is full, or the wait was too long.
    pub(crate) async fn admit(&self) -> Result<OwnedSemaphorePermit, Failure> {
        // Does not overtake the queue: tokio's semaphore gives a returned permit to the first that waits, so one is free only
        // if none waits.
        if let Ok(permit) = self.running.clone().try_acquire_owned() {
            return Ok(permit);
        }
        // Counted first and checked then: with a check first, requests that arrive together would all see the last place.
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.waiting_max {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            let message = format!("{} queries run and {} wait; try again later", self.running_max, self.waiting_max);
            return Err(Failure::new(Reason::Busy, message));
        }
        let _waiting = QueueSlot(&self.waiting);
        // A client that disconnects drops this future, and `QueueSlot` gives its place back.
        let Ok(permit) = timeout(self.wait, self.running.clone().acquire_owned()).await else {
            let message = format!("no query ended within {} ms; try again later", self.wait.as_millis());
            return Err(Failure::new(Reason::Busy, message));
        };
        Ok(permit.expect("the semaphore is never closed"))
    }

    /// Queries that run.
    pub(crate) fn running(&self) -> usize {
        self.running_max - self.running.available_permits()
    }

    /// Queries that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_queue_is_bounded_in_length_and_time() {
        let settings = Settings { queries_max: 1, queue_max: 1, queue_wait_ms: 20, ..Settings::default() };
        let gate = Arc::new(Admission::new(&settings));
        let first = gate.admit().await.unwrap();
        let second = tokio::spawn({
            let gate = gate.clone();
            async move { gate.admit().await.map(drop) }
        });
        while gate.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        let full = gate.admit().await.unwrap_err();
        assert!(full.message.contains("1 queries run and 1 wait"), "{full}");
        let late = second.await.unwrap().unwrap_err();
        assert_eq!((late.reason, gate.waiting(), gate.running()), (Reason::Busy, 0, 1));
        drop(first);
        assert_eq!(gate.running(), 0);
        drop(gate.admit().await.unwrap());
    }
}
