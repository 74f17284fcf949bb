//! Edges, all or by id.

use super::{
    by_id::{ById, LookedUp},
    scan::{Scan, Scanned},
};
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
            Some(_) => LookedUp::running(self),
            None => Scanned::running(|run, batch| Scan::of_edges(run, batch, &[])),
        }
    }
}

impl ById for Edges {
    async fn found(&self, run: &mut Run) -> Done<Items> {
        let found = run.edges_of(self.ids.as_deref().unwrap_or_default()).await?;
        Ok(Items::Edges(found.into_iter().flatten().collect()))
    }
}
