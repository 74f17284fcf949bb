//! Edges, all or by id.

use super::scan::{Scan, Scanned, crossed};
use crate::{operators::prelude::*, plan::write_values};

/// Edges, for each row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Edges {
    /// Their ids; all without.
    pub ids: Option<Vec<Value>>,
}

impl Operator for Edges {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_values(f, self.ids.as_deref().unwrap_or_default())
    }

    fn start(self: Arc<Self>) -> Running {
        match self.ids {
            Some(_) => PerBatch::source(self),
            None => Scanned::running(|run, batch| Scan::of_edges(run, batch, &[])),
        }
    }
}

impl Each for Edges {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let ids = self.ids.as_deref().unwrap_or_default();
        let found: Vec<_> = run.edges_of(ids).await?.into_iter().flatten().collect();
        let (parents, places) = crossed(batch.len(), found.len(), &run.growth)?;
        let items = Items::Edges(places.into_iter().map(|place| found[place]).collect());
        run.derived(&batch, &parents, items).map(Output::Next)
    }
}
