//! What a traversal is asked: where it starts, which hops it takes, how, and what ends it early.

use std::time::Duration;

use hoplake_format::VertexId;
use hoplake_storage::{QueryContext, ReadLimits};
use tokio::time::Instant;

use crate::read::hop::Hop;

/// In which order vertices are expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Breadth-first, level by level.
    #[default]
    Bfs,
    /// Breadth-first, each block expanded when it arrives.
    BfsPipelined,
    /// Depth-first.
    Dfs,
}

/// How often a vertex may appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VisitPolicy {
    /// Once at each depth.
    #[default]
    PerDepth,
    /// Only at the first depth that reaches it; start vertices at depth 0.
    Global,
}

/// What ends a query before it is done. `None` sets no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Time.
    pub timeout: Option<Duration>,
    /// Vertices over all depths.
    pub vertices_max: Option<u64>,
    /// Requests to the store.
    pub requests_max: Option<u64>,
    /// Bytes from the store.
    pub bytes_max: Option<u64>,
    /// US dollars for requests and bytes.
    pub usd_max: Option<f64>,
    /// Bytes of memory for all that it builds: sets, edges, paths, rows. Caches do not count.
    pub memory_bytes_max: Option<u64>,
}

/// A traversal to run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Traversal {
    /// Where it starts.
    pub starts: Vec<VertexId>,
    /// Its hops, in order.
    pub hops: Vec<Hop>,
    /// In which order vertices are expanded.
    pub strategy: Strategy,
    /// How often a vertex may appear.
    pub visit: VisitPolicy,
    /// How many threads or, depth-first, vertices at a time; 0 counts as 1.
    pub parallelism: usize,
    /// Whether and how it reads ahead of itself; pipelined it never does, being ahead already.
    pub prefetch: Option<Prefetch>,
    /// What ends it early.
    pub limits: Limits,
}

impl Limits {
    /// Has a query end at these limits; its time begins now. None at all, but on vertices, change nothing.
    pub fn apply(&self, context: &QueryContext) {
        // A traversal without limits must not lift those that the query has already.
        if (Self { vertices_max: None, ..*self }) == Self::default() {
            return;
        }
        // Rounded up, so that a short time does not become 0.
        let given = |timeout: Duration| timeout.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u64::MAX);
        // A time that ends behind all that a clock shows is no limit.
        let deadline = self.timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, given(timeout))));
        let Self { requests_max, bytes_max, usd_max, memory_bytes_max, .. } = *self;
        context.limit(ReadLimits { deadline, requests_max, bytes_max, usd_max, memory_bytes_max });
    }
}

/// How a traversal reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefetch {
    /// Reads at once.
    pub workers: usize,
    /// Vertices that may wait to be read ahead.
    pub queue_max: usize,
    /// Budget for blocks that were read ahead and not asked for yet, in bytes.
    pub cache_bytes_max: u64,
}

impl Default for Prefetch {
    fn default() -> Self {
        Self { workers: 4, queue_max: 4096, cache_bytes_max: 16 << 20 }
    }
}
