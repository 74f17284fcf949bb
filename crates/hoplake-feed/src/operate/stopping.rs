//! The end of a feed that was asked to stop: what is under way may take some time, and no more.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use futures::future::{Either, select};
use tokio::time::{Instant, sleep_until};

/// A signal to stop, and how long what is under way may still take then.
pub(crate) struct Stop<F: Future<Output = ()>> {
    signal: Pin<Box<F>>,
    grace: Duration,
    /// Until when, once the signal has come: it is not asked again.
    until: Option<Instant>,
}

impl<F: Future<Output = ()>> Stop<F> {
    pub(crate) fn new(signal: F, grace: Duration) -> Self {
        Self { signal: Box::pin(signal), grace, until: None }
    }

    /// Is ready when the signal has come, each time.
    pub(crate) async fn wanted(&mut self) {
        if self.until.is_none() {
            self.signal.as_mut().await;
            self.until = Some(Instant::now() + self.grace);
        }
    }

    /// What `work` returns; nothing if the signal has come and the grace is over.
    pub(crate) async fn or_over<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let over = async {
            self.wanted().await;
            sleep_until(self.until.unwrap_or_else(Instant::now)).await;
        };
        // The work first: with no grace at all it still may be done already.
        match select(pin!(work), pin!(over)).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_has_the_grace_once_and_not_each_time() {
        let mut stop = Stop::new(ready(()), Duration::from_secs(10));
        stop.wanted().await;
        stop.wanted().await;
        let begun = Instant::now();
        assert_eq!(stop.or_over(sleep_until(begun + Duration::from_secs(4))).await, Some(()));
        assert_eq!(stop.or_over(pending::<()>()).await, None);
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
        assert_eq!(stop.or_over(pending::<()>()).await, None);
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
        assert_eq!(stop.or_over(ready(1)).await, Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_signal_work_takes_its_time() {
        let mut stop = Stop::new(pending(), Duration::ZERO);
        let begun = Instant::now();
        assert_eq!(stop.or_over(sleep_until(begun + Duration::from_secs(1_000))).await, Some(()));
    }
}
