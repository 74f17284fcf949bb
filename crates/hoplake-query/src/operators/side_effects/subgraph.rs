//! Edges with their vertices, under a name.

use crate::operators::prelude::*;

/// Collects edges with their vertices under a name, as each passes.
#[derive(Debug, Clone, PartialEq)]
pub struct Subgraph {
    /// The name.
    pub name: Name,
}

impl Operator for Subgraph {
    fn collects(&self) -> Option<(&Name, Collects)> {
        Some((&self.name, Collects::Graph))
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Subgraph {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.grow_graph(&self.name, &batch)?;
        Ok(Output::Same(batch))
    }
}
