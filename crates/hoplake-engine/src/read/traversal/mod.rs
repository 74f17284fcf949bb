//! Multi-hop traversals.
//!
//! A [`Traversal`] is a set of start vertices and a list of [`Hop`]s. Under the visit policy *per-depth* the
//! result at depth d is the set of vertices that some walk of d hops reaches; under *global* a vertex
//! belongs only to the first depth that reaches it.
//!
//! * `breadth_first`: level by level, one wave a hop; or pipelined, where a block that arrives is
//!   expanded at once and a slow request delays only its own walks.
//! * `depth_first`: one vertex at a time from a stack, or several at a time.
//!
//! All return the same sets, and a property test holds them to a naive oracle.

mod breadth_first;
mod depth_first;
pub mod path;
mod paths;
mod pipelined;
mod prefetch;
#[cfg(test)]
mod tests;
mod visits;
mod walk;

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use hoplake_format::VertexId;
use hoplake_storage::{Branch, Cost, QueryContext, ReadLimits};
use tokio::time::Instant;

pub use crate::read::hop::{Hop, HopDirection};
pub use paths::{Paths, WalkCount};
pub use prefetch::Prefetch;
pub use walk::Walk;

use crate::{
    EngineError, Frontier, Held, Snapshot,
    read::{adjacency::check_condition, hop::EdgesOf},
};

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

/// What one depth took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DepthProfile {
    /// Edges that were followed to it.
    pub edges: u64,
    /// Vertices in its set.
    pub vertices: u64,
    /// What it cost. Only level by level are depths apart in time; elsewhere all is put on the last.
    pub cost: Cost,
    /// How long it took, in microseconds.
    pub time_us: u64,
}

/// What a traversal found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reached {
    /// The set at each depth, from the start at 0 to the last hop.
    pub depths: Vec<Frontier>,
    /// What each hop took.
    pub profile: Vec<DepthProfile>,
}

impl Reached {
    /// The set at the last hop.
    pub fn last(&self) -> &Frontier {
        self.depths.last().expect("depth 0 is always there")
    }
}

impl Snapshot {
    /// Runs a traversal.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if depth-first is to visit globally, a label does not exist or a condition
    /// cannot be read; [`EngineError::Limit`] with the cost so far; the store's.
    pub fn traverse<'a>(
        self: &'a Arc<Self>,
        traversal: &'a Traversal,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Held<Reached>, EngineError>> {
        Box::pin(async move {
            self.check_traversal(traversal)?;
            match traversal.strategy {
                Strategy::Bfs => breadth_first::run(self, traversal, branch).await,
                Strategy::BfsPipelined => pipelined::run(self, traversal, branch).await,
                Strategy::Dfs => depth_first::run(self, traversal, branch).await,
            }
        })
    }

    /// The edges that a hop follows, by type and direction.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the graph has no edge label of a name.
    pub fn edges_of(&self, hop: &Hop) -> Result<Vec<EdgesOf>, EngineError> {
        self.check_hop(hop)?;
        Ok(hop.edges(self.schema()).collect())
    }

    fn check_traversal(&self, traversal: &Traversal) -> Result<(), EngineError> {
        if traversal.strategy == Strategy::Dfs && traversal.visit == VisitPolicy::Global {
            let message = "visit policy global depends on breadth-first order; use strategy bfs, or visit per-depth";
            return Err(EngineError::Invalid(message.into()));
        }
        for hop in &traversal.hops {
            self.check_hop(hop)?;
        }
        Ok(())
    }

    /// Refuses a hop along labels that the graph does not have, or with a condition that cannot be.
    pub(crate) fn check_hop(&self, hop: &Hop) -> Result<(), EngineError> {
        for label in &hop.labels {
            if !self.schema().edge_types.iter().any(|edge| edge.label == *label) {
                let mut known: Vec<_> = self.schema().edge_types.iter().map(|edge| edge.label.as_str()).collect();
                known.sort_unstable();
                known.dedup();
                let message = format!("the graph has no edge label {label:?}; it has {}", known.join(", "));
                return Err(EngineError::NotFound(message));
            }
        }
        check_condition(self.schema(), hop)
    }
}

/// Watches over the limits of a query: those of time, requests, bytes and dollars are the context's, and
/// reach every request; vertices are counted here.
pub(crate) struct Watch<'a> {
    vertices_max: Option<u64>,
    snapshot: &'a Snapshot,
    context: &'a QueryContext,
    vertices: u64,
}

impl Limits {
    /// Has a query end at these limits; its time begins now. None at all, but on vertices, change nothing.
    pub fn apply(&self, context: &QueryContext) {
        // A traversal without limits must not lift those that the query has already.
        if (Self { vertices_max: None, ..*self }) == Self::default() {
            return;
        }
        // Rounded up: nobody asks for no time at all.
        let given = |timeout: Duration| timeout.as_nanos().div_ceil(1_000_000) as u64;
        let deadline = self.timeout.map(|timeout| (Instant::now() + timeout, given(timeout)));
        let Self { requests_max, bytes_max, usd_max, memory_bytes_max, .. } = *self;
        context.limit(ReadLimits { deadline, requests_max, bytes_max, usd_max, memory_bytes_max });
    }
}

impl<'a> Watch<'a> {
    pub(crate) fn new(limits: &Limits, snapshot: &'a Snapshot, context: &'a QueryContext) -> Self {
        limits.apply(context);
        Self { vertices_max: limits.vertices_max, snapshot, context, vertices: 0 }
    }

    /// Counts vertices that were reached and checks all limits.
    pub(crate) fn visited(&mut self, vertices: usize) -> Result<(), EngineError> {
        self.vertices += vertices as u64;
        if let Some(limit) = self.vertices_max.filter(|limit| self.vertices > *limit) {
            let cost = Box::new(self.context.cost());
            return Err(EngineError::Limit { limit: format!("{limit} vertices"), is_shared: false, cost });
        }
        Ok(self.context.check(self.snapshot.reader().store().prices())?)
    }
}
