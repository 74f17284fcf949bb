//! Along edges, with conditions that the engine tests on columns.

use super::hop::{Hop, Hopping};
use crate::{
    operators::prelude::*,
    plan::{ElementCondition, Reaches},
};

/// A hop along edges that match conditions, and to vertices that do.
#[derive(Debug, Clone, PartialEq)]
pub struct HopWhere {
    /// Which edges, before any condition, and whether it ends at them or at vertices.
    pub hop: Hop,
    /// Those that the engine cannot test run as steps, within this operator.
    pub conditions: HopConditions,
}

/// The conditions of a hop. All of them have to hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HopConditions {
    /// On the edges themselves. With those on vertices, they take one wave.
    pub on_edges: Vec<ElementCondition>,
    /// On the vertices that they lead to; none if the hop leads to the edges themselves.
    pub on_vertices: Vec<ElementCondition>,
}

impl HopConditions {
    /// Whether the hop follows all edges of its labels.
    pub fn is_empty(&self) -> bool {
        self.on_edges.is_empty() && self.on_vertices.is_empty()
    }

    pub(crate) fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (what, conditions) in [("edges", &self.on_edges), ("vertices", &self.on_vertices)] {
            if !conditions.is_empty() {
                write!(f, " [{what}:")?;
                ElementCondition::write_all(f, conditions)?;
                f.write_str("]")?;
            }
        }
        Ok(())
    }

    /// Notes what is read along a hop, and returns where it leads.
    pub(crate) fn reach(&self, reach: &mut Reach<'_>, input: &Elements, hop: &Hop) -> Elements {
        for (conditions, reaches) in [(&self.on_edges, Reaches::Edges), (&self.on_vertices, Reaches::Vertices)] {
            let names: Vec<Name> = conditions.iter().flat_map(ElementCondition::names).cloned().collect();
            if !names.is_empty() {
                let reached = reach.hop(input, hop.direction, &hop.labels, reaches);
                reach.reads(&reached, Some(&names));
            }
        }
        reach.hop(input, hop.direction, &hop.labels, hop.reaches)
    }
}

impl Operator for HopWhere {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.hop.parameters(f)?;
        self.conditions.write(f)
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        self.conditions.reach(reach, &input, &self.hop)
    }

    fn start(self: Arc<Self>) -> Running {
        Running::new(Hopping::new(self.hop.clone(), self.conditions.clone()))
    }
}
