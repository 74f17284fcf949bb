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
mod query;
mod reached;
#[cfg(test)]
mod tests;
mod visits;
mod walk;
mod watch;
pub mod weighted_path;

use std::sync::Arc;

use futures::future::BoxFuture;
use hoplake_format::VertexId;
use hoplake_storage::Branch;

pub use crate::read::hop::{Hop, HopDirection};
pub use paths::{Paths, WalkCount};
pub use query::{Limits, Prefetch, Strategy, Traversal, VisitPolicy};
pub use reached::{DepthProfile, Reached};
pub use walk::Walk;
pub(crate) use watch::Watch;

use crate::{
    EngineError, Held, Snapshot,
    memory::bytes_of,
    read::{
        adjacency::{check_hop, is_on_vertices},
        hop::EdgesOf,
    },
};

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

    /// How many vertices are within `depth` hops of some vertices, themselves included.
    ///
    /// # Errors
    /// As [`Self::traverse`].
    pub fn neighbourhood<'a>(
        self: &'a Arc<Self>,
        starts: &'a [VertexId],
        hop: &'a Hop,
        depth: usize,
        parallelism: usize,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Held<Reached>, EngineError>> {
        Box::pin(async move {
            let _starts = branch.context().hold(bytes_of::<VertexId>(starts.len()))?;
            let traversal = Traversal {
                starts: starts.to_vec(),
                hops: vec![hop.clone(); depth],
                visit: VisitPolicy::Global,
                parallelism,
                ..Traversal::default()
            };
            self.traverse(&traversal, branch).await
        })
    }

    /// The edges that a hop follows, by type and direction.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the graph has no edge label of a name.
    pub fn edges_of(&self, hop: &Hop) -> Result<Vec<EdgesOf>, EngineError> {
        check_hop(self.schema(), hop)?;
        Ok(hop.edges(self.schema()).collect())
    }

    /// Whether the condition of a hop is on the vertices that it reaches, and not on its edges alone.
    pub fn is_on_vertices(&self, hop: &Hop) -> bool {
        is_on_vertices(self.schema(), hop)
    }

    fn check_traversal(&self, traversal: &Traversal) -> Result<(), EngineError> {
        if traversal.strategy == Strategy::Dfs && traversal.visit == VisitPolicy::Global {
            let message = "visit policy global depends on breadth-first order; use strategy bfs, or visit per-depth";
            return Err(EngineError::Invalid(message.into()));
        }
        for hop in &traversal.hops {
            check_hop(self.schema(), hop)?;
        }
        Ok(())
    }
}
