//! A server that compacts the graphs it serves.
//!
//! Idle is free: whether something is due is asked only when a request has led to a newer version, and answered from
//! indexes that are in memory then. One graph is compacted at a time, within one budget; others wait for their turn,
//! each once. Each compaction is planned when its turn comes, so several servers that follow one graph are in each
//! other's way, but do no harm: the first merge counts.
//!
//! When the server drains, a compaction breaks off and takes its name out of the graph; what it has published stays.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};

use hoplake::{Compacted, CompactionSettings, Graph};
use tokio::sync::Semaphore;

use crate::{Settings, lifecycle::Lifecycle, telemetry::metrics::Metrics};

/// Compacts graphs in the background, one after the other.
pub(crate) struct Compactor {
    settings: CompactionSettings,
    /// Graphs that are compacted or wait for it, by name.
    considered: Mutex<HashSet<String>>,
    turn: Semaphore,
    lifecycle: Lifecycle,
    metrics: Arc<Metrics>,
}

impl Compactor {
    /// `None` if the server is not to compact.
    pub(crate) fn new(settings: &Settings, lifecycle: Lifecycle, metrics: Arc<Metrics>) -> Option<Arc<Self>> {
        let compaction =
            CompactionSettings { memory_bytes: settings.compact_memory_bytes, ..CompactionSettings::default() };
        settings.compact.then(|| {
            let considered = Mutex::default();
            let turn = Semaphore::new(1);
            Arc::new(Self { settings: compaction, considered, turn, lifecycle, metrics })
        })
    }

    fn considered(&self) -> MutexGuard<'_, HashSet<String>> {
        self.considered.lock().expect("no thread panics with the names")
    }

    /// Compacts a graph after a newer version was found, in a task of its own, if a compaction is due.
    pub(crate) fn consider(self: &Arc<Self>, name: &str, graph: &Graph) {
        // One entry per graph: when its turn comes, `compact_until` reads the newest version of the store anyway.
        if self.lifecycle.is_draining() || !self.considered().insert(name.to_owned()) {
            return;
        }
        let compactor = self.clone();
        let name = name.to_owned();
        let graph = graph.clone();
        tokio::spawn(async move {
            let turn = compactor.turn.acquire().await;
            // Asked again: the server may have begun to drain while this graph waited for its turn.
            if turn.is_ok() && !compactor.lifecycle.is_draining() {
                compactor.compact(&name, &graph).await;
            }
            compactor.considered().remove(&name);
        });
    }

    /// Waits until nothing is compacted. After the server began to drain, nothing will be.
    pub(crate) async fn ended(&self) {
        // The semaphore is fair: graphs that wait come first, find the server draining, and give the turn back at once.
        drop(self.turn.acquire().await);
    }

    async fn compact(&self, name: &str, graph: &Graph) {
        let begun = Instant::now();
        let time_ms = || begun.elapsed().as_millis() as u64;
        match self.compact_if_due(graph).await {
            Ok(done) if done.merges > 0 => {
                let Compacted { merges, runs, bytes_read, bytes_written, version, .. } = done;
                self.metrics.compacted(bytes_written);
                tracing::info!(
                    graph = name,
                    version,
                    runs,
                    merges,
                    bytes_read,
                    bytes_written,
                    time_ms = time_ms(),
                    "graph compacted"
                );
            }
            Ok(_) => tracing::debug!(graph = name, version = graph.version(), "no compaction is due"),
            // Not passed on: no client waits for a compaction. The next newer version leads to the next attempt.
            Err(error) => {
                self.metrics.compaction_failed();
                tracing::warn!(graph = name, %error, time_ms = time_ms(), "could not compact");
            }
        }
    }

    async fn compact_if_due(&self, graph: &Graph) -> Result<Compacted, hoplake::Error> {
        // GremlinOutcome from the open version's indexes in memory. `compact_until` reads the store and announces a writer lease,
        // so it begins only if there is something to merge.
        if !graph.compaction_is_due(&self.settings).await? {
            return Ok(Compacted::default());
        }
        Graph::compact_until(graph.store(), &self.settings, self.lifecycle.drained()).await
    }
}
