//! Watches over the limits of a query.

use hoplake_storage::QueryContext;

use super::query::Limits;
use crate::{EngineError, Snapshot};

/// Watches over the limits of a query: those of time, requests, bytes and dollars are the context's, and
/// reach every request; vertices are counted here.
pub(crate) struct Watch<'a> {
    vertices_max: Option<u64>,
    snapshot: &'a Snapshot,
    context: &'a QueryContext,
    vertices: u64,
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
