//! Along edges, to elements that fulfil conditions which the engine tests on columns.

use hoplake_engine::{Condition, PropertyOf};
use hoplake_format::{LabelId, Property};

use super::hop::{Expansion, Hop};
use crate::{
    operators::{hop_along, prelude::*},
    plan::Reaches,
    run::{
        Pipe,
        conditions::{self, Of},
    },
};

/// A hop whose elements fulfil conditions. All of them have to hold.
#[derive(Debug, Clone, PartialEq)]
pub struct HopWhere {
    /// The hop.
    pub hop: Hop,
    /// Conditions on properties.
    pub conditions: Vec<(Name, Arc<Predicate>)>,
    /// The steps that do the same one after the other, where the engine cannot test the conditions.
    pub otherwise: Steps,
}

impl Operator for HopWhere {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.hop.parameters(f)?;
        self.conditions.iter().try_for_each(|(name, predicate)| write!(f, " {name} {predicate}"))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let reached = self.hop.reach(reach, input);
        let names: Vec<Name> = self.conditions.iter().map(|(name, _)| name.clone()).collect();
        reach.reads(&reached, Some(&names));
        reached
    }

    fn start(self: Arc<Self>) -> Running {
        Running::new(Hopping { operator: self, expansion: None, otherwise: None })
    }
}

#[derive(Debug)]
struct Hopping {
    operator: Arc<HopWhere>,
    expansion: Option<Box<Expansion>>,
    /// The steps that do the same.
    otherwise: Option<Box<Pipe>>,
}

impl Stage for Hopping {
    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, _: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            match run.hop_conditions(&self.operator)? {
                OfHop::Never => {}
                OfHop::Tested(condition, bytes) => {
                    let _hold = run.branch.context().hold(bytes)?;
                    let found = run.hop(batch, &self.operator.hop, Some(condition)).await?;
                    self.expansion = found.map(Box::new);
                }
                OfHop::Untested => {
                    let otherwise = &self.operator.otherwise;
                    self.otherwise.get_or_insert_with(|| Box::new(Pipe::new(otherwise))).feed(batch);
                }
            }
            Ok(())
        })
    }

    fn poll<'a>(&'a mut self, run: &'a mut Run, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            if let Some(pipe) = &mut self.otherwise
                && let Some(batch) = pipe.next(run).await?
            {
                out.push(Output::Same(batch));
            }
            Expansion::poll(&mut self.expansion, run, out)
        })
    }
}

/// What the engine tests of the conditions of a hop.
#[derive(Debug)]
pub(crate) enum OfHop {
    /// Nothing along the hop can fulfil them.
    Never,
    /// All of them, and what the condition takes.
    Tested(Condition, u64),
    /// Not all of them.
    Untested,
}

impl Run {
    /// What the engine tests of the conditions of a hop.
    pub(crate) fn hop_conditions(&self, hop: &HopWhere) -> Done<OfHop> {
        let Some(along) = hop_along(&self.snapshot, hop.hop.direction, &hop.hop.labels) else {
            return Ok(OfHop::Never);
        };
        let schema = self.snapshot.schema();
        let near: Vec<LabelId> = (0..schema.vertex_labels.len()).map(|label| LabelId(label as u16)).collect();
        let of = match hop.hop.reaches {
            Reaches::Vertices => PropertyOf::Vertex,
            Reaches::Edges => PropertyOf::Edge,
        };
        let owners: Vec<&[Property]> = match hop.hop.reaches {
            Reaches::Vertices => {
                let reached = along.labels_reached(self.snapshot.schema(), &near);
                reached.into_iter().filter_map(|label| Some(&schema.label(label)?.properties[..])).collect()
            }
            Reaches::Edges => {
                let followed = along.edges_followed(self.snapshot.schema(), &near);
                followed.into_iter().filter_map(|(edge, _)| Some(&schema.edge_type(edge)?.properties[..])).collect()
            }
        };
        // One text may stand for values of two types, which compare in other ways.
        let differs = |name: &Name| {
            let mut types = owners.iter().filter_map(|owner| {
                owner.iter().find(|property| property.name == **name).map(|property| (property.kind, property.logical))
            });
            let first = types.next();
            types.any(|other| Some(other) != first)
        };
        if hop.conditions.iter().any(|(name, _)| differs(name)) {
            return Ok(OfHop::Untested);
        }
        // What lacks a property fulfils nothing, for the engine too.
        for owner in &owners {
            match conditions::of_properties(of, owner, &hop.conditions, |name| self.is_computed(name), &self.growth)? {
                Of::None => {}
                Of::Some(Some(condition), bytes, left) if left.is_empty() => {
                    return Ok(OfHop::Tested(condition, bytes));
                }
                Of::Some(..) => return Ok(OfHop::Untested),
            }
        }
        Ok(OfHop::Never)
    }
}
