//! Counters for Prometheus.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::health::{FeedHealth, FeedPhase, Now};
use crate::{Cause, Event};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabels {
    cause: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

/// From 1 ms, a folder, to 100 s, a store that is away for a while.
const SECONDS: [f64; 16] = [1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// From none to a cascade over tens of tables.
const WAVES: [f64; 9] = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0];

/// A gauge of a number that is not whole.
type Real = Gauge<f64, AtomicU64>;

/// All counters of a feed.
pub(super) struct Metrics {
    registry: Registry,
    rows: Counter,
    transactions: Counter,
    commits: Counter,
    read_bytes: Counter,
    retries: Family<CauseLabels, Counter>,
    reconnects: Counter,
    set_aside: Counter,
    compactions: Counter,
    compaction_failures: Counter,
    commit_seconds: Histogram,
    look_up_waves: Histogram,
    readings: Readings,
}

/// Values that are read at each scrape.
#[derive(Default)]
struct Readings {
    lag: Real,
    pending_rows: Gauge,
    pending_transactions: Gauge,
    has_more: Gauge,
    copy_rows: Gauge,
    copy_seconds: Real,
    dead_letters: Gauge,
    held_keys: Gauge,
    edges_waiting: Gauge,
    state_bytes: Gauge,
    position_time: Real,
    version: Gauge,
    reconciliation_time: Real,
    differences: Gauge,
    resident: Gauge,
    slot_lag: Real,
    slot_kept: Real,
    oldest_transaction: Real,
    state: Family<StateLabels, Gauge>,
}

impl Metrics {
    pub(super) fn new(source: &str) -> Self {
        let labels = [("source".into(), source.to_owned().into())];
        let mut metrics = Self {
            registry: Registry::with_prefix_and_labels("hoplake_feed", labels.into_iter()),
            rows: Counter::default(),
            transactions: Counter::default(),
            commits: Counter::default(),
            read_bytes: Counter::default(),
            retries: Family::default(),
            reconnects: Counter::default(),
            set_aside: Counter::default(),
            compactions: Counter::default(),
            compaction_failures: Counter::default(),
            commit_seconds: Histogram::new(SECONDS),
            look_up_waves: Histogram::new(WAVES),
            readings: Readings::default(),
        };
        // From the beginning, so that the first of a cause is an increase.
        for cause in [Cause::Source, Cause::Store, Cause::Refused, Cause::Conflict] {
            drop(metrics.retries.get_or_create(&CauseLabels { cause: cause.name() }));
        }
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("rows", "Row changes that were applied", self.rows.clone());
        registry.register("transactions", "Transactions that were applied", self.transactions.clone());
        registry.register("commits", "Versions that they became", self.commits.clone());
        let read = "Bytes of row changes that were read, as they are in memory";
        registry.register_with_unit("read", read, Unit::Bytes, self.read_bytes.clone());
        registry.register("retries", "What was tried again after a pause, by cause", self.retries.clone());
        registry.register("reconnects", "Connections to the source's log after the first", self.reconnects.clone());
        registry.register("set_aside", "Changes that became dead letters", self.set_aside.clone());
        registry.register("compactions", "Compactions that ended", self.compactions.clone());
        registry.register("compaction_failures", "Compactions that failed", self.compaction_failures.clone());
        let commits = "Duration of commits, with what was tried again";
        registry.register_with_unit("commit", commits, Unit::Seconds, self.commit_seconds.clone());
        let waves = "Round trips of a commit to look up in the graph what its changes depend on";
        registry.register("look_up_waves", waves, self.look_up_waves.clone());
        self.readings.register(registry);
    }

    /// Counts what has happened.
    pub(super) fn record(&self, event: &Event<'_>) {
        match event {
            Event::Read { bytes, .. } => drop(self.read_bytes.inc_by(*bytes)),
            Event::Retried { cause, .. } => {
                self.retries.get_or_create(&CauseLabels { cause: cause.name() }).inc();
            }
            Event::Applied(applied, _) => {
                self.rows.inc_by(applied.rows);
                self.transactions.inc_by(applied.transactions);
                self.commits.inc();
                self.set_aside.inc_by(applied.set_aside);
                self.commit_seconds.observe(applied.commit_time.as_secs_f64());
                self.look_up_waves.observe(applied.waves as f64);
            }
            Event::Compacted(true) => drop(self.compactions.inc()),
            Event::Compacted(false) => drop(self.compaction_failures.inc()),
            _ => {}
        }
    }

    /// All of it, as Prometheus reads it.
    pub(super) fn text(&self, health: &FeedHealth, now: Now) -> String {
        self.reconnects.inner().store(health.connections.saturating_sub(1), Relaxed);
        self.readings.set(health, now);
        let mut out = String::new();
        text::encode(&mut out, &self.registry).expect("a string takes all that is written");
        out
    }
}

impl Readings {
    fn register(&self, registry: &mut Registry) {
        let lag = "Age of what the graph has while the source has more, and 0 otherwise";
        registry.register_with_unit("lag", lag, Unit::Seconds, self.lag.clone());
        let mut gauge = |name, help, gauge: &Gauge| registry.register(name, help, gauge.clone());
        gauge("pending_rows", "Row changes that were read and are not committed", &self.pending_rows);
        let pending = "Transactions that were read and are not committed, of those that change mapped tables";
        gauge("pending_transactions", pending, &self.pending_transactions);
        gauge("source_has_more", "0 if the source has no more for now, otherwise 1", &self.has_more);
        gauge("copy_rows", "Rows that the first copy of this process has read", &self.copy_rows);
        gauge("dead_letters", "Changes that are set aside", &self.dead_letters);
        gauge("held_keys", "Vertices and edges whose changes are set aside", &self.held_keys);
        gauge("edges_waiting", "Edges that wait for a vertex", &self.edges_waiting);
        gauge("graph_version", "Version of the graph", &self.version);
        let differences = "Vertices and edges that differed from the tables at the last reconciliation";
        gauge("reconciliation_differences", differences, &self.differences);
        let bytes = "Bytes of what the feed has to remember, before they are compressed";
        registry.register_with_unit("state", bytes, Unit::Bytes, self.state_bytes.clone());
        let lag = "Bytes of the source's log after what the feed has confirmed to the server";
        registry.register_with_unit("slot_lag", lag, Unit::Bytes, self.slot_lag.clone());
        let kept = "Bytes of its log that the source keeps for the feed";
        registry.register_with_unit("slot_kept", kept, Unit::Bytes, self.slot_kept.clone());
        registry.register_with_unit("resident", "Resident memory", Unit::Bytes, self.resident.clone());
        let mut seconds = |name, help, gauge: &Real| {
            registry.register_with_unit(name, help, Unit::Seconds, gauge.clone());
        };
        seconds("copy", "Duration of the first copy of this process", &self.copy_seconds);
        let position = "When the source committed the last transaction that was applied, since 1970";
        let oldest = "Age of the oldest transaction of the source that is open, 0 without one";
        seconds("oldest_transaction", oldest, &self.oldest_transaction);
        seconds("position_timestamp", position, &self.position_time);
        let reconciled = "When graph and tables were last compared, since 1970; 0 if they were not";
        seconds("reconciliation_timestamp", reconciled, &self.reconciliation_time);
        registry.register("state", "1 of the state that the feed is in", self.state.clone());
    }

    fn set(&self, health: &FeedHealth, now: Now) {
        self.lag.set(health.lag_ms(now).map_or(f64::NAN, |lag| lag as f64 / 1e3));
        self.pending_rows.set(health.pending.rows as i64);
        self.pending_transactions.set(health.pending.transactions as i64);
        self.has_more.set(health.has_more().into());
        if let Some(copy) = health.copying {
            self.copy_rows.set(copy.rows as i64);
            let ended = copy.ended.unwrap_or(now.running);
            self.copy_seconds.set(ended.saturating_sub(copy.begun).as_secs_f64());
        }
        if let Some(graph) = &health.graph {
            self.dead_letters.set(graph.dead_letters as i64);
            self.held_keys.set(graph.held_keys as i64);
            self.edges_waiting.set(graph.edges_waiting as i64);
            self.state_bytes.set(graph.state_bytes as i64);
            self.version.set(graph.version as i64);
            self.position_time.set(graph.committed_unix_ms.map_or(0.0, |ms| ms as f64 / 1e3));
        }
        if let Some((unix_ms, differences)) = health.reconciled {
            self.reconciliation_time.set(unix_ms as f64 / 1e3);
            self.differences.set(differences as i64);
        }
        let known = |number: Option<f64>| number.unwrap_or(f64::NAN);
        self.slot_lag.set(known(health.backlog.unconfirmed_bytes.map(|bytes| bytes as f64)));
        self.slot_kept.set(known(health.backlog.kept_bytes.map(|bytes| bytes as f64)));
        self.oldest_transaction.set(known(health.backlog.oldest_transaction.map(|age| age.as_secs_f64())));
        self.resident.set(resident_bytes().unwrap_or_default());
        for state in FeedPhase::ALL {
            self.state.get_or_create(&StateLabels { state: state.name() }).set((state == health.phase).into());
        }
    }
}

/// As Linux reports it; other systems do not.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<i64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::*;

    /// The names of metrics in a text, without what Prometheus adds to those of histograms.
    fn names(text: &str) -> BTreeSet<&str> {
        let starts = text.match_indices("hoplake_feed_").map(|(start, _)| &text[start..]);
        starts
            .map(|rest| {
                let end =
                    rest.find(|letter: char| !(letter.is_ascii_lowercase() || letter == '_')).unwrap_or(rest.len());
                let name = &rest[..end];
                ["_bucket", "_sum", "_count"].iter().find_map(|added| name.strip_suffix(added)).unwrap_or(name)
            })
            .collect()
    }

    #[test]
    fn documentation_and_dashboard_have_the_metrics_that_there_are() {
        let now = Now { unix_ms: 0, running: Duration::ZERO };
        let text = Metrics::new("hr").text(&FeedHealth::new(now), now);
        let samples: String =
            text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
        let there_are = names(&samples);
        assert_eq!(names(include_str!("../../../../../docs/feeding.md")), there_are);
        let dashboard = include_str!("../../../../../docs/dashboards/feed.json");
        let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
        let targets =
            dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
        let expressions: Vec<_> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
        // All of them are shown, and nothing else.
        assert_eq!(names(&expressions.join("\n")), there_are);
    }
}
