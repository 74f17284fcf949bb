//! Vertices that fulfil conditions.

use super::scan::{Scan, Scanned};
use crate::{operators::prelude::*, run::conditions};

/// Vertices that fulfil conditions, for each row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FindVertices {
    /// The conditions.
    pub conditions: VertexConditions,
}

/// Conditions on the vertices that are sought. All of them have to hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VertexConditions {
    /// On the label.
    pub labels: Vec<Arc<Predicate>>,
    /// On properties.
    pub properties: Vec<(Name, Arc<Predicate>)>,
}

impl Operator for FindVertices {
    fn name(&self) -> &'static str {
        "Find"
    }

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let VertexConditions { labels, properties } = &self.conditions;
        labels.iter().try_for_each(|predicate| write!(f, " label {predicate}"))?;
        properties.iter().try_for_each(|(name, predicate)| write!(f, " {name} {predicate}"))
    }

    fn reach(&self, reach: &mut Reach<'_>, _: Elements) -> Elements {
        reach.vertices_if(|label, growth| conditions::is_possible(label, &self.conditions, growth))
    }

    fn start(self: Arc<Self>) -> Running {
        Scanned::running(move |run, batch| Ok(Scan::of_vertices(run, batch, self.conditions.clone())))
    }
}
