//! Vertices that match conditions.

use super::scan::{Scan, Scanned};
use crate::{operators::prelude::*, plan::ElementCondition, run::conditions};

/// Vertices that match conditions, for each row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FindVertices {
    /// All have to hold. Those that the engine cannot test run as steps.
    pub conditions: Vec<ElementCondition>,
}

impl Operator for FindVertices {
    fn name(&self) -> &'static str {
        "Find"
    }

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        ElementCondition::write_all(f, &self.conditions)
    }

    fn reach(&self, reach: &mut Reach<'_>, _: Elements) -> Elements {
        reach.vertices_if(|label, growth| conditions::is_possible(label, &self.conditions, growth))
    }

    fn start(self: Arc<Self>) -> Running {
        Scanned::running(move |run, batch| Ok(Scan::of_vertices(run, batch, self.conditions.clone())))
    }
}
