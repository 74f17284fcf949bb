//! Metadata that a query will need later, read in parallel with an earlier step.
//!
//! Before cells of a table can be read, the end of its file must be known, which names its pages. Read when the cells
//! are requested, that is a wave of its own. But which tables those will be follows from the schema as soon as labels
//! and hops are known, so their ends are read with the look-up of the start vertices, or with the first hop.

use std::{collections::BTreeSet, sync::Arc};

use futures::future::try_join3;
use hoplake_format::{Direction, EdgeTypeId, LabelId};
use hoplake_storage::Branch;

use crate::{EngineError, Snapshot};

/// Tables whose cells the query will request.
#[derive(Debug, Default)]
pub struct Expected {
    /// Labels of vertices.
    pub vertices: BTreeSet<LabelId>,
    /// Types of edges and the directions in which they are followed.
    pub edges: BTreeSet<(EdgeTypeId, Direction)>,
}

impl Expected {
    /// Runs a step, and reads the expected metadata in parallel: the next step depends on both.
    ///
    /// # Errors
    /// Those of the step; the store's.
    pub async fn alongside<T>(
        self,
        snapshot: &Arc<Snapshot>,
        branch: &mut Branch,
        step: impl AsyncFnOnce(&Arc<Snapshot>, &mut Branch) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let vertices: Vec<_> = self.vertices.into_iter().collect();
        let edges: Vec<_> = self.edges.into_iter().collect();
        let mut lines = [branch.clone(), branch.clone()];
        let [for_vertices, for_edges] = &mut lines;
        let of_vertices = snapshot.properties().load_vertex_metadata(&vertices, for_vertices);
        let of_edges = snapshot.properties().load_edge_metadata(&edges, for_edges);
        let (found, (), ()) = try_join3(step(snapshot, branch), of_vertices, of_edges).await?;
        branch.join(&lines);
        Ok(found)
    }
}
