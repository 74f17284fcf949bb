//! Counters for Prometheus.
//!
//! No metric has the name of a graph, which may be any of thousands.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use hoplake::Background;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::{Atomic, Counter},
        family::Family,
        gauge::Gauge,
        histogram::Histogram,
    },
    registry::{Registry, Unit},
};

use crate::{cost::PricedCost, results::ResultCounts};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    protocol: &'static str,
    call: &'static str,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TimeLabels {
    protocol: &'static str,
    call: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ChangesLabels {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabels {
    state: &'static str,
}

/// From 10 ms, a small graph, to 5,000 s, beyond the default limit of time.
const JOB_SECONDS: [f64; 12] = [0.01, 0.05, 0.2, 1.0, 5.0, 20.0, 60.0, 200.0, 600.0, 1_800.0, 3_600.0, 5_000.0];

fn job_seconds() -> Histogram {
    Histogram::new(JOB_SECONDS)
}

/// From 100 µs, a warm hop, to 50 s, twice the default limit of time.
const SECONDS: [f64; 17] =
    [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, 50.0];

/// A function of its own: the type of `times` needs one that has a name.
fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

/// The price of a request is far below a cent, so a counter of whole numbers would not move.
type Dollars = Counter<f64, std::sync::atomic::AtomicU64>;

/// The cache of results: it counts for itself, and these have its counts when they are read.
#[derive(Default)]
struct ResultMetrics {
    hits: Counter,
    waited: Counter,
    misses: Counter,
    first_askings: Counter,
    sampled: Counter,
    false_positives: Counter,
    too_large: Counter,
    evictions: Counter,
    entries: Gauge,
    bytes: Gauge,
}

impl ResultMetrics {
    fn register(&self, registry: &mut Registry) {
        let mut counter = |name, help, counter: &Counter| registry.register(name, help, counter.clone());
        counter("result_cache_hits", "Queries whose results were kept", &self.hits);
        counter("result_cache_waited", "Of the hits, those that waited for an equal query", &self.waited);
        counter("result_cache_misses", "Queries asked before whose results were not kept", &self.misses);
        counter("result_cache_first_askings", "Queries that were asked for the first time", &self.first_askings);
        let sampled = "Of one query in 16, those that were asked for the first time";
        counter("result_cache_sampled_first_askings", sampled, &self.sampled);
        let positives = "Of the sampled, those that the filter took for asked before";
        counter("result_cache_sampled_false_positives", positives, &self.false_positives);
        counter("result_cache_too_large", "Queries whose results are too large to be kept", &self.too_large);
        counter("result_cache_evictions", "Results that made room for others", &self.evictions);
        registry.register("result_cache_entries", "Results that are kept", self.entries.clone());
        let bytes = "Bytes of the results that are kept";
        registry.register_with_unit("result_cache", bytes, Unit::Bytes, self.bytes.clone());
    }

    fn set(&self, counts: &ResultCounts) {
        let set = |counter: &Counter, count| counter.inner().store(count, Relaxed);
        set(&self.hits, counts.hits);
        set(&self.waited, counts.waited);
        set(&self.misses, counts.misses);
        set(&self.first_askings, counts.first_askings);
        set(&self.sampled, counts.sampled);
        set(&self.false_positives, counts.false_positives);
        set(&self.too_large, counts.too_large);
        set(&self.evictions, counts.evictions);
        self.entries.set(counts.entries as i64);
        self.bytes.set(counts.bytes as i64);
    }
}

/// All counters of a server.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<CallLabels, Counter>,
    times: Family<TimeLabels, Histogram, fn() -> Histogram>,
    stream_queries: Counter,
    waves: Counter,
    store_requests: Counter,
    store_bytes: Counter,
    background_requests: Counter,
    background_bytes: Counter,
    cache_hits: Counter,
    cache_bytes: Counter,
    dollars: Dollars,
    graphs_opened: Counter,
    graphs_open: Gauge,
    compactions: Counter,
    compaction_bytes: Counter,
    compaction_failures: Counter,
    batches: Family<ChangesLabels, Counter>,
    changes: Counter,
    commits: Counter,
    jobs_ended: Family<JobLabels, Counter>,
    job_times: Family<JobLabels, Histogram, fn() -> Histogram>,
    jobs_running: Gauge,
    jobs_waiting: Gauge,
    running: Gauge,
    waiting: Gauge,
    fetches: Gauge,
    changing: Gauge,
    traversals: Gauge,
    tasks: Gauge,
    memory: Gauge,
    connections: Gauge,
    half_open: Gauge,
    gremlin_connections: Gauge,
    gremlin_sessions: Gauge,
    results: ResultMetrics,
}

/// Values that are read at each scrape.
pub(crate) struct Readings {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) fetches: usize,
    pub(crate) changes: usize,
    pub(crate) traversals: usize,
    pub(crate) jobs_running: usize,
    pub(crate) jobs_waiting: usize,
    /// The background reads since the start.
    pub(crate) background: Background,
    /// Tasks on the threads of queries.
    pub(crate) tasks: usize,
    /// The memory that queries, requests and answers hold.
    pub(crate) memory_bytes: u64,
    pub(crate) connections: usize,
    /// Of these, without a complete request.
    pub(crate) half_open: usize,
    /// Of these, in WebSocket.
    pub(crate) gremlin_connections: usize,
    pub(crate) gremlin_sessions: usize,
    pub(crate) results: ResultCounts,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("hoplake"),
            requests: Family::default(),
            times: Family::new_with_constructor(seconds),
            stream_queries: Counter::default(),
            waves: Counter::default(),
            store_requests: Counter::default(),
            store_bytes: Counter::default(),
            background_requests: Counter::default(),
            background_bytes: Counter::default(),
            cache_hits: Counter::default(),
            cache_bytes: Counter::default(),
            dollars: Dollars::default(),
            graphs_opened: Counter::default(),
            graphs_open: Gauge::default(),
            compactions: Counter::default(),
            compaction_bytes: Counter::default(),
            compaction_failures: Counter::default(),
            batches: Family::default(),
            changes: Counter::default(),
            commits: Counter::default(),
            jobs_ended: Family::default(),
            job_times: Family::new_with_constructor(job_seconds),
            jobs_running: Gauge::default(),
            jobs_waiting: Gauge::default(),
            running: Gauge::default(),
            waiting: Gauge::default(),
            fetches: Gauge::default(),
            changing: Gauge::default(),
            traversals: Gauge::default(),
            tasks: Gauge::default(),
            memory: Gauge::default(),
            connections: Gauge::default(),
            half_open: Gauge::default(),
            gremlin_connections: Gauge::default(),
            gremlin_sessions: Gauge::default(),
            results: ResultMetrics::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("requests", "Requests that ended, by status; a stream is one", self.requests.clone());
        registry.register_with_unit("request", "Duration of requests", Unit::Seconds, self.times.clone());
        registry.register("stream_queries", "Queries on streams of Query.Neighbors", self.stream_queries.clone());
        registry.register("waves", "Dependent round trips of queries to the store", self.waves.clone());
        registry.register("store_requests", "Requests of queries to the store", self.store_requests.clone());
        // The unit and `total` are added to a name: this one becomes `hoplake_store_bytes_total`.
        let read = "Bytes that queries read from the store";
        registry.register_with_unit("store", read, Unit::Bytes, self.store_bytes.clone());
        let background =
            "Requests to the store in the background, for the rest of small segments of which a query read a part";
        registry.register("background_requests", background, self.background_requests.clone());
        let background = "Bytes that these brought";
        registry.register_with_unit("background", background, Unit::Bytes, self.background_bytes.clone());
        registry.register("cache_hits", "Blocks that queries found in memory", self.cache_hits.clone());
        let cached = "Bytes that queries found in memory";
        registry.register_with_unit("cache", cached, Unit::Bytes, self.cache_bytes.clone());
        registry.register(
            "usd",
            "US dollars for requests and bytes of queries, those in the background included",
            self.dollars.clone(),
        );
        registry.register("graph_opens", "Openings of graphs", self.graphs_opened.clone());
        registry.register("graphs_open", "Graphs that are open", self.graphs_open.clone());
        registry.register("compactions", "Compactions that merged something", self.compactions.clone());
        let rewritten = "Bytes that compactions wrote";
        registry.register_with_unit("compaction", rewritten, Unit::Bytes, self.compaction_bytes.clone());
        registry.register("compaction_failures", "Compactions that failed", self.compaction_failures.clone());
        let batches = "Batches of changes, by outcome: COMMITTED, REPEATED, or the reason why not";
        registry.register("batches", batches, self.batches.clone());
        registry.register("changes", "Changes of batches that were committed", self.changes.clone());
        registry.register("commits", "Versions that batches of changes became", self.commits.clone());
        registry.register("changes_running", "Batches of changes that are being applied", self.changing.clone());
        registry.register("jobs_ended", "Jobs that ended, by state", self.jobs_ended.clone());
        registry.register_with_unit(
            "job",
            "Duration of jobs, without their wait",
            Unit::Seconds,
            self.job_times.clone(),
        );
        registry.register("jobs_running", "Jobs that run", self.jobs_running.clone());
        registry.register("jobs_waiting", "Jobs that wait to run", self.jobs_waiting.clone());
        registry.register("queries_running", "Queries that run", self.running.clone());
        registry.register("queries_waiting", "Queries that wait to run", self.waiting.clone());
        registry.register("fetches_running", "Reads for other nodes that run", self.fetches.clone());
        registry.register("tasks_running", "Tasks on the threads of queries", self.tasks.clone());
        let held = "Memory that queries hold, including requests on arrival and unsent answers";
        registry.register_with_unit("memory", held, Unit::Bytes, self.memory.clone());
        registry.register("connections_open", "Connections of both ports", self.connections.clone());
        let half = "Connections without a complete request yet";
        registry.register("connections_half_open", half, self.half_open.clone());
        registry.register("gremlin_connections_open", "Connections of Gremlin", self.gremlin_connections.clone());
        registry.register("gremlin_sessions_open", "Sessions of Gremlin", self.gremlin_sessions.clone());
        self.results.register(registry);
        registry.register("traversals_open", "Traversals that clients steer", self.traversals.clone());
    }

    /// A request ended.
    pub(crate) fn request(
        &self,
        protocol: &'static str,
        call: &'static str,
        status: &'static str,
        time: Duration,
        cost: &PricedCost,
    ) {
        self.requests.get_or_create(&CallLabels { protocol, call, status }).inc();
        self.times.get_or_create(&TimeLabels { protocol, call }).observe(time.as_secs_f64());
        self.spent(cost);
    }

    /// A batch of changes ended, other than as committed.
    pub(crate) fn changes(&self, outcome: &'static str) {
        self.batches.get_or_create(&ChangesLabels { outcome }).inc();
    }

    /// A batch was committed; the first of a version counts it.
    pub(crate) fn committed(&self, changes: u64, first: bool) {
        self.changes("COMMITTED");
        self.changes.inc_by(changes);
        self.commits.inc_by(u64::from(first));
    }

    /// A job ended.
    pub(crate) fn job(&self, state: &'static str, time: Duration, cost: &PricedCost) {
        self.jobs_ended.get_or_create(&JobLabels { state }).inc();
        self.job_times.get_or_create(&JobLabels { state }).observe(time.as_secs_f64());
        self.spent(cost);
    }

    fn spent(&self, cost: &PricedCost) {
        let counters = &cost.counters;
        self.waves.inc_by(counters.waves);
        self.store_requests.inc_by(counters.requests);
        self.store_bytes.inc_by(counters.store_bytes);
        self.cache_hits.inc_by(counters.memory.blocks);
        self.cache_bytes.inc_by(counters.memory.bytes);
        Atomic::inc_by(self.dollars.inner(), cost.usd);
    }

    /// A query on a stream was answered.
    pub(crate) fn stream_query(&self) {
        self.stream_queries.inc();
    }

    pub(crate) fn graph_opened(&self) {
        self.graphs_opened.inc();
        self.graphs_open.inc();
    }

    pub(crate) fn graph_closed(&self) {
        self.graphs_open.dec();
    }

    /// A graph was compacted.
    pub(crate) fn compacted(&self, bytes_written: u64) {
        self.compactions.inc();
        self.compaction_bytes.inc_by(bytes_written);
    }

    pub(crate) fn compaction_failed(&self) {
        self.compaction_failures.inc();
    }

    /// All of it, as Prometheus reads it.
    pub(crate) fn text(&self, readings: &Readings) -> String {
        self.running.set(readings.running as i64);
        self.waiting.set(readings.waiting as i64);
        self.fetches.set(readings.fetches as i64);
        self.changing.set(readings.changes as i64);
        self.traversals.set(readings.traversals as i64);
        self.jobs_running.set(readings.jobs_running as i64);
        self.jobs_waiting.set(readings.jobs_waiting as i64);
        // Set, not added: the catalog has the sums since the start, since these reads may outlast their query.
        self.background_requests.inner().store(readings.background.requests, Relaxed);
        self.background_bytes.inner().store(readings.background.bytes, Relaxed);
        self.tasks.set(readings.tasks as i64);
        self.memory.set(readings.memory_bytes as i64);
        self.connections.set(readings.connections as i64);
        self.half_open.set(readings.half_open as i64);
        self.gremlin_connections.set(readings.gremlin_connections as i64);
        self.gremlin_sessions.set(readings.gremlin_sessions as i64);
        self.results.set(&readings.results);
        let mut out = String::new();
        text::encode(&mut out, &self.registry).expect("a string takes all that is written");
        out
    }
}
