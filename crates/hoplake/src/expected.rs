//! What a query will need to know later, read alongside an earlier step.
//!
//! Before cells of a table can be read, the end of its file must be known, which names its pages. Read when the cells are
//! asked for, that is a wave of its own. But which tables those will be follows from the schema as soon as labels and hops
//! are known, so their ends come with the look-up of the start vertices, or with the first hop.

use std::collections::BTreeSet;

use futures::future::try_join3;
use hoplake_engine::{EngineError, Snapshot};
use hoplake_format::{Direction, EdgeTypeId, LabelId};
use hoplake_storage::{QueryContext, Wave};

/// Tables of which cells will be asked for.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// Labels of vertices.
    pub(crate) vertices: BTreeSet<LabelId>,
    /// Types of edges and the directions in which they are followed.
    pub(crate) edges: BTreeSet<(EdgeTypeId, Direction)>,
}

impl Expected {
    /// Runs a step, and reads what was expected alongside. Returns the wave after which both are known.
    pub(crate) async fn alongside<T>(
        self,
        snapshot: &Snapshot,
        after: Wave,
        context: &QueryContext,
        step: impl Future<Output = Result<(T, Wave), EngineError>>,
    ) -> Result<(T, Wave), EngineError> {
        let (vertices, edges): (Vec<_>, Vec<_>) =
            (self.vertices.into_iter().collect(), self.edges.into_iter().collect());
        let of_vertices = snapshot.touch_properties(&vertices, after, context);
        let of_edges = snapshot.touch_edge_properties(&edges, after, context);
        let ((found, wave), of_vertices, of_edges) = try_join3(step, of_vertices, of_edges).await?;
        Ok((found, wave.max(of_vertices).max(of_edges)))
    }
}
