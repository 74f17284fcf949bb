//! Steps that change the graph.

use super::{Batch, Done, Graph, Run, paths::Labels};
use crate::{error::GremlinError, plan::StepKind};

/// What a query has changed and not committed yet.
#[derive(Debug)]
pub(super) struct Changes {
}

impl Changes {
    pub(super) fn new(_graph: &Graph) -> Self {
        Self {}
    }
}

impl Run {
    pub(super) async fn change(&mut self, kind: &StepKind, _labels: &Labels, _batch: Batch) -> Done<Batch> {
        Err(GremlinError::unsupported(format!("{kind:?}")))
    }

    pub(super) async fn commit(&mut self) -> Done<()> {
        Ok(())
    }
}
