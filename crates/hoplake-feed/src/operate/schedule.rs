//! Reconciliations of a running feed, by the clock.

use std::time::Duration;

use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use crate::{
    Ends, FeedError, Reconciled, Settings,
    reconcile::{ReconcileOptions, reconcile_on},
};

/// When the tables are compared with the graph next, or the comparison that is under way.
pub(crate) struct Schedule {
    every: Option<Duration>,
    next: Instant,
    running: Option<JoinHandle<Result<Reconciled, FeedError>>>,
}

impl Drop for Schedule {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

impl Schedule {
    /// The first is one interval from now.
    pub(crate) fn new(settings: &Settings) -> Result<Self, FeedError> {
        let every = settings.reconcile.every()?;
        Ok(Self { every, next: Instant::now() + every.unwrap_or_default(), running: None })
    }

    /// What the next comparison finds; never ready without a schedule. May be dropped and asked again at any time.
    pub(crate) async fn reconciled(&mut self, ends: &Ends, settings: &Settings) -> Result<Reconciled, FeedError> {
        let Some(every) = self.every else { return std::future::pending().await };
        let running = match &mut self.running {
            Some(running) => running,
            None => {
                sleep_until(self.next).await;
                let options = ReconcileOptions {
                    repair: settings.reconcile.repair,
                    report: settings.reconcile.report.clone(),
                    ..ReconcileOptions::default()
                };
                let ends = ends.clone();
                let settings = settings.clone();
                self.running.insert(tokio::spawn(async move { reconcile_on(&ends, &settings, &options).await }))
            }
        };
        let ended = running.await;
        self.running = None;
        self.next = Instant::now() + every;
        ended.unwrap_or_else(|_| Err(FeedError::unavailable("the comparison was cut off")))
    }
}
