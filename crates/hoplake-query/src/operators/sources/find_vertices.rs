//! Vertices that fulfil conditions.

use hoplake_format::LabelId;

use super::scan::{Scan, Scanned};
use crate::{operators::prelude::*, plan::ElementCondition, run::conditions};

/// Vertices that fulfil conditions, for each row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FindVertices {
    /// The conditions. All of them have to hold.
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
        let is_possible = |label: &LabelId| {
            let label = reach.snapshot.schema().label(*label);
            label.is_some_and(|label| conditions::is_possible(label, &self.conditions, reach.growth))
        };
        Elements { vertices: reach.labels().filter(is_possible).collect(), ..Elements::default() }
    }

    fn start(self: Arc<Self>) -> Running {
        Scanned::running(move |run, batch| Ok(Scan::of_vertices(run, batch, self.conditions.clone())))
    }
}
