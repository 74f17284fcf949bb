//! Edges that match conditions.

use super::scan::{Scan, Scanned};
use crate::{operators::prelude::*, plan::ElementCondition};

/// Edges that match conditions, for each row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FindEdges {
    /// All have to hold. Those that the engine cannot test run as steps.
    pub conditions: Vec<ElementCondition>,
}

impl Operator for FindEdges {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        ElementCondition::write_all(f, &self.conditions)
    }

    fn start(self: Arc<Self>) -> Running {
        Scanned::running(move |run, batch| Scan::of_edges(run, batch, &self.conditions))
    }
}
