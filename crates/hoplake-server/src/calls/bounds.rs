//! When a query must have ended.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use crate::{
    failure::{Failure, Reason},
    lifecycle::Lifecycle,
};

/// An hour: beyond any query, and within what an instant can hold.
const TIME_MS_MAX: u64 = 3_600_000;

/// The beginning of a query and its latest end.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(crate) begun: Instant,
    deadline: Option<Instant>,
    lifecycle: Lifecycle,
}

impl Bounds {
    /// From now on, without an end of its own.
    pub(crate) fn begin(lifecycle: &Lifecycle) -> Self {
        Self { begun: Instant::now(), deadline: None, lifecycle: lifecycle.clone() }
    }

    /// Ends it so long after it began, if nothing ends it before.
    pub(crate) fn shorten(&mut self, time: Duration) {
        // From the beginning and not from now: the server's limit is set only when the call enters, and the wait counts.
        let deadline = self.begun + time;
        self.deadline = Some(self.deadline.map_or(deadline, |before| before.min(deadline)));
    }

    /// The same in milliseconds; 0 changes nothing.
    pub(crate) fn shorten_ms(&mut self, time_ms: u64) {
        if time_ms > 0 {
            self.shorten(Duration::from_millis(time_ms.min(TIME_MS_MAX)));
        }
    }

    /// The remaining time.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Waits for `work` until the deadline, or until the server ends. Dropping the work ends it.
    pub(crate) async fn bounded<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            // In this order: an answer that is ready at the deadline is still sent. A query that both reaches its deadline and is
            // ended by the server fails with SHUTTING_DOWN, since it may succeed on another server.
            biased;
            outcome = work => outcome.map_err(|failure| self.judge_limit(failure)),
            () = self.lifecycle.ended() => Err(Failure::shutting_down()),
            () = self.out_of_time() => Err(self.time_is_over()),
        }
    }

    /// Waits until the deadline.
    pub(crate) async fn out_of_time(&self) {
        match self.deadline {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    }

    /// Whether the deadline is past.
    pub(crate) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// That the deadline is not past.
    ///
    /// # Errors
    /// [`Reason::Time`].
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.is_over() { Err(self.time_is_over()) } else { Ok(()) }
    }

    /// The failure that the deadline has passed.
    pub(crate) fn time_is_over(&self) -> Failure {
        let took = self.begun.elapsed().as_millis();
        Failure::new(Reason::Time, format!("the query was ended after {took} ms, at its limit of time"))
    }

    /// The engine knows that a limit was reached; which one it was shows the clock.
    pub(crate) fn judge_limit(&self, failure: Failure) -> Failure {
        let time = failure.reason == Reason::Limit && self.is_over();
        // The engine got the remaining time, which is not the limit that the client set.
        if time { Failure { cost: failure.cost, ..self.time_is_over() } } else { failure }
    }
}
