//! What can be seen of a feed that runs: counters, probes and its state, over HTTP.
//!
//! ```text
//! feed ──events──▶ Monitor ──▶ health    where the feed is, and whether it is well
//!                     │  └───▶ metrics   counters for Prometheus
//!                     └ http: /metrics, /healthz, /readyz, /status
//! ```
//!
//! **How far behind** is the age of what the graph has: of the last transaction that was applied, or of the moment at which the
//! source had no more and all of it was applied. It is 0 while the source has no more.
//!
//! **Stuck** is a feed of which nothing is heard: from commits while one is under way, from either side otherwise.

mod health;
mod http;
mod metrics;
mod status;

use std::{
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

pub use self::http::Listening;
use self::{
    health::{FeedHealth, Now},
    metrics::Metrics,
};
use crate::{Event, Progress, Settings, settings::HttpSettings};

/// Watches a feed.
pub struct Monitor {
    source: String,
    graph: String,
    settings: HttpSettings,
    begun: Instant,
    health: Mutex<FeedHealth>,
    metrics: Metrics,
}

impl Monitor {
    /// Of a feed that has not begun.
    pub fn new(settings: &Settings) -> Self {
        let begun = Instant::now();
        let source = settings.source.name.clone();
        let graph = settings.graph.clone();
        let metrics = Metrics::new(&source);
        let health = Mutex::new(FeedHealth::new(now(begun)));
        Self { source, graph, settings: settings.http.clone(), begun, health, metrics }
    }

    fn current(&self) -> MutexGuard<'_, FeedHealth> {
        self.health.lock().expect("no thread panics with the health")
    }

    /// Counters, as Prometheus reads them.
    pub fn metrics(&self) -> String {
        self.metrics.text(&self.current(), now(self.begun))
    }

    /// The feed as JSON.
    pub fn status(&self) -> serde_json::Value {
        status::json(&self.source, &self.graph, &self.current(), now(self.begun))
    }

    /// That the feed works.
    ///
    /// # Errors
    /// For how long it has been stuck.
    pub fn health(&self) -> Result<(), String> {
        let silent = self.current().silent(now(self.begun));
        if silent.as_millis() as u64 <= self.settings.stuck_ms {
            return Ok(());
        }
        Err(format!("the feed is stuck: nothing was heard of it for {} s", silent.as_secs()))
    }

    /// That the first copy is made and the graph follows.
    ///
    /// # Errors
    /// Why not.
    pub fn readiness(&self) -> Result<(), String> {
        self.current().readiness(now(self.begun), self.settings.ready_lag_ms)
    }
}

impl Progress for Monitor {
    fn report(&self, event: &Event<'_>) {
        self.metrics.record(event);
        self.current().record(event, now(self.begun));
    }
}

fn now(begun: Instant) -> Now {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Now { unix_ms: unix.as_millis() as i64, running: begun.elapsed() }
}
