//! Settings of one subject each: the tables of the file.

use serde::{Deserialize, Serialize};

use crate::{failure::Failure, names::check_name};

/// A setting that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {name} {why}")]
pub struct InvalidSetting {
    /// Which.
    pub name: &'static str,
    /// The mistake, and what to write instead.
    pub why: String,
}

/// Bounds of each query. A request can ask for less. 0 sets no bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Time, in milliseconds. Default 30,000.
    pub time_ms: u64,
    /// Vertices over all depths, or that a scan finds. Default 20,000,000.
    pub vertices_max: u64,
    /// Requests to the store. Default none.
    pub requests_max: u64,
    /// Bytes from the store. Default none.
    pub bytes_max: u64,
    /// US dollars for requests and bytes. Default none.
    pub usd_max: f64,
    /// Memory for what the query builds and its answer holds, in bytes; caches do not count. Default 256 MiB.
    pub memory_bytes_max: u64,
    /// Vertices that a request may name, and changes that a batch may have. Default 100,000.
    pub batch_max: usize,
    /// Vertices, rows or walks that an answer may have. Default 1,000,000.
    pub results_max: usize,
    /// Hops of a traversal, and edges of a path. Default 64.
    pub hops_max: usize,
    /// Threads or, depth-first, vertices at a time. Default: as many as there are processors.
    pub parallelism_max: usize,
}

impl GremlinSettings {
    pub(super) fn validate(&self) -> Result<(), InvalidSetting> {
        let wrong = |failure: Failure| InvalidSetting { name: "gremlin.graph", why: format!("is wrong: {failure}") };
        self.graph.as_deref().map_or(Ok(()), |name| check_name(name).map(drop).map_err(wrong))
    }
}

/// Bounds of jobs. A request can ask for less time and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobSettings {
    /// Jobs that run at once. Default 1.
    pub running_max: usize,
    /// Jobs that wait for one of those to end; more are rejected. Default 16.
    pub waiting_max: usize,
    /// Threads that jobs compute on, apart from those of queries. Default: half as many as there are processors, at least 1.
    pub threads: usize,
    /// Memory of a job, in bytes, which also counts as memory of all queries. Default 0: a half of that.
    pub memory_bytes_max: u64,
    /// Time that a job runs unless its request gives another one, in milliseconds. Default 600,000.
    pub time_ms: u64,
    /// The most that a request can give, in milliseconds. Default 3,600,000.
    pub time_ms_max: u64,
    /// How long a job is kept after its end, in milliseconds. Default 600,000.
    pub kept_ms: u64,
    /// Ended jobs that are kept; beyond, the oldest are forgotten. Default 100.
    pub kept_max: usize,
    /// Memory of kept results, in bytes, which also counts as memory of all queries; beyond, the oldest are dropped. Default 0: an
    /// eighth of that.
    pub kept_bytes_max: u64,
}

/// Gremlin over WebSocket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GremlinSettings {
    /// Whether the server speaks it. Default true.
    pub enabled: bool,
    /// The graph that `g` is for drivers that name none. Default: the only graph that is served.
    pub graph: Option<String>,
    /// Requests of a connection at once; further ones wait unread. Default 64.
    pub requests_max: usize,
    /// Results in a message, unless a request says how many. Default 64.
    pub batch_size: usize,
    /// Sessions that are open. Default 256.
    pub sessions_max: usize,
    /// A session that is idle for this long is rolled back, in milliseconds. Default 600,000.
    pub session_idle_ms: u64,
    /// An idle connection is asked so often whether its client is there, in milliseconds; 0 is never, and then it is closed after
    /// `idle_timeout_ms`. Default 60,000.
    pub ping_ms: u64,
}

/// Results of queries, prepared or not, that are asked again on the same version of their graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResultSettings {
    /// What all kept results may take, in bytes, apart from the memory of queries; 0 keeps none. Default 32 MiB.
    pub bytes_max: u64,
    /// What the results of one query may take to be kept, in bytes. Default 256 KiB.
    pub entry_bytes_max: u64,
}

impl Default for ResultSettings {
    fn default() -> Self {
        Self { bytes_max: 32 << 20, entry_bytes_max: 256 << 10 }
    }
}

impl Default for GremlinSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            graph: None,
            requests_max: 64,
            batch_size: 64,
            sessions_max: 256,
            session_idle_ms: 600_000,
            ping_ms: 60_000,
        }
    }
}

impl Default for JobSettings {
    fn default() -> Self {
        Self {
            running_max: 1,
            waiting_max: 16,
            threads: (processors() / 2).max(1),
            memory_bytes_max: 0,
            time_ms: 600_000,
            time_ms_max: 3_600_000,
            kept_ms: 600_000,
            kept_max: 100,
            kept_bytes_max: 0,
        }
    }
}

impl JobSettings {
    /// Memory of a job, of a server with so much in all.
    pub(crate) fn memory_bytes_of(&self, all: u64) -> u64 {
        if self.memory_bytes_max == 0 { all / 2 } else { self.memory_bytes_max }
    }

    /// Memory of kept results, of a server with so much in all.
    pub(crate) fn kept_bytes_of(&self, all: u64) -> u64 {
        if self.kept_bytes_max == 0 { all / 8 } else { self.kept_bytes_max }
    }

    /// Checks them against the memory of the server.
    pub(super) fn validate(&self, all: u64) -> Result<(), InvalidSetting> {
        let memory = [("jobs.memory_bytes_max", self.memory_bytes_max), ("jobs.kept_bytes_max", self.kept_bytes_max)];
        if let Some((name, bytes)) = memory.into_iter().find(|(_, bytes)| *bytes > all) {
            let why = format!("is {bytes}, more than the {all} of memory_bytes_max, of which it is a part");
            return Err(InvalidSetting { name, why });
        }
        if self.time_ms > self.time_ms_max {
            let why = format!("is {}, more than the {} of jobs.time_ms_max", self.time_ms, self.time_ms_max);
            return Err(InvalidSetting { name: "jobs.time_ms", why });
        }
        Ok(())
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            time_ms: 30_000,
            vertices_max: 20_000_000,
            requests_max: 0,
            bytes_max: 0,
            usd_max: 0.0,
            memory_bytes_max: 256 << 20,
            batch_max: 100_000,
            results_max: 1_000_000,
            hops_max: 64,
            parallelism_max: processors(),
        }
    }
}

pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
