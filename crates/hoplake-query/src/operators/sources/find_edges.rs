//! Edges of some labels.

use super::scan::{Scan, Scanned};
use crate::operators::prelude::*;

/// Edges whose labels fulfil predicates, for each row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FindEdges {
    /// On the label. All of them have to hold.
    pub labels: Vec<Arc<Predicate>>,
}

impl Operator for FindEdges {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.labels.iter().try_for_each(|predicate| write!(f, " label {predicate}"))
    }

    fn start(self: Arc<Self>) -> Running {
        Scanned::running(move |run, batch| Scan::of_edges(run, batch, &self.labels))
    }
}
