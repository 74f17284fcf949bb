//! A hop as the engine follows it, with what it tests of the hop's conditions.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use hoplake_engine::{
    Condition, PropertyOf, Snapshot,
    traversal::{self, HopDirection},
};
use hoplake_format::{Direction, EdgeTypeId};
use hoplake_storage::MemoryHold;

use super::{Ends, Hop, HopConditions, OtherEnd};
use crate::{
    error::Done,
    operators::hop_along,
    plan::{ElementCondition, PlanStep, Reaches, Steps, read_together},
    run::{
        Run,
        conditions::{Owner, Tested, TestedPart, tested},
    },
    tokens,
};

/// A hop as the engine follows it. It is made once for all batches.
#[derive(Debug)]
pub(crate) struct Followed {
    /// `None` if nothing can be reached.
    pub(crate) along: Option<traversal::Hop>,
    pub(crate) reaches: Reaches,
    /// Steps that test what the engine does not, and lead on from there.
    pub(crate) left: Steps,
    /// What it was made for.
    snapshot: Arc<Snapshot>,
    computed: usize,
    _hold: MemoryHold,
}

/// Labels that a hop is confined to, at most: the engine compares each of them with that of each edge type.
const LABELS_MAX: usize = 64;

/// Edges of a type, followed in a direction.
type Along = (EdgeTypeId, Direction);

impl Run {
    /// The hop, if it was made for what the graph is now; else it is made.
    pub(crate) fn followed(
        &self,
        before: &mut Option<Arc<Followed>>,
        hop: &Hop,
        conditions: &HopConditions,
    ) -> Done<Arc<Followed>> {
        let is_same = |it: &Followed| Arc::ptr_eq(&it.snapshot, &self.snapshot) && it.computed == self.computed.len();
        if let Some(before) = before.as_ref().filter(|before| is_same(before)) {
            return Ok(before.clone());
        }
        Ok(before.insert(Arc::new(self.follow(hop, conditions)?)).clone())
    }

    fn follow(&self, hop: &Hop, conditions: &HopConditions) -> Done<Followed> {
        let followed = |along, reaches, left: Steps, bytes| -> Done<Followed> {
            let hold = self.branch.context().hold(bytes)?;
            let snapshot = self.snapshot.clone();
            Ok(Followed { along, reaches, left, snapshot, computed: self.computed.len(), _hold: hold })
        };
        let none: Steps = Vec::new().into();
        let Some(mut along) = hop_along(&self.snapshot, hop.direction, &hop.labels) else {
            return followed(None, hop.reaches, none, 0);
        };
        if conditions.is_empty() {
            return followed(Some(along), hop.reaches, none, 0);
        }
        if !self.keep_labels(&mut along, conditions)? {
            return followed(None, hop.reaches, none, 0);
        }
        let HopConditions { on_edges, on_vertices } = conditions;
        let of_edges = self.tested_along(&along, PropertyOf::Edge, on_edges)?;
        let of_vertices = self.tested_along(&along, PropertyOf::Vertex, on_vertices)?;
        let (Tested::Some(mut of_edges), Tested::Some(mut of_vertices)) = (of_edges, of_vertices) else {
            return followed(None, hop.reaches, none, 0);
        };
        let are_edges_left = !of_edges.left.is_empty();
        if are_edges_left {
            of_edges = self.free_along(&along, PropertyOf::Edge, on_edges)?;
        }
        // Conditions on vertices come after those on edges, whose steps may fail.
        if are_edges_left || !of_vertices.left.is_empty() {
            of_vertices = self.free_along(&along, PropertyOf::Vertex, on_vertices)?;
        }
        let mut left = of_edges.left;
        let mut reaches = hop.reaches;
        if are_edges_left && hop.reaches == Reaches::Vertices {
            reaches = Reaches::Edges;
            left.push(Arc::new(match hop.direction {
                tokens::Direction::Out => PlanStep::plain(Ends { direction: tokens::Direction::In }),
                tokens::Direction::In => PlanStep::plain(Ends { direction: tokens::Direction::Out }),
                tokens::Direction::Both => PlanStep::plain(OtherEnd),
            }));
        }
        left.extend(of_vertices.left);
        along.condition = both(of_edges.condition, of_vertices.condition);
        followed(Some(along), reaches, read_together(left.into()), of_edges.bytes + of_vertices.bytes)
    }

    /// The conditions that take no read, and the steps of the others. What the engine and a step read of the same elements would be two waves, so
    /// the steps read all of it.
    fn free_along(&self, along: &traversal::Hop, of: PropertyOf, conditions: &[ElementCondition]) -> Done<TestedPart> {
        let (free, others): (Vec<_>, Vec<_>) = conditions.iter().cloned().partition(ElementCondition::is_of_labels);
        let mut part = match self.tested_along(along, of, &free)? {
            Tested::Some(part) => part,
            Tested::Never => {
                TestedPart { left: free.into_iter().map(|condition| condition.step).collect(), ..TestedPart::default() }
            }
        };
        part.left.extend(others.into_iter().map(|condition| condition.step));
        Ok(part)
    }

    /// What the engine tests of some conditions along a hop.
    fn tested_along(&self, along: &traversal::Hop, of: PropertyOf, conditions: &[ElementCondition]) -> Done<Tested> {
        let owners: Vec<Owner<'_>> = self.edges_along(along).into_iter().filter_map(|it| self.owner(it, of)).collect();
        tested(of, &owners, conditions, |name| self.is_computed(name), &self.growth)
    }

    /// Leaves out the labels of edges of which the labels of edges, or of the vertices that they lead to, match no condition: their lists are not
    /// read. Returns whether some are left.
    fn keep_labels(&self, along: &mut traversal::Hop, conditions: &HopConditions) -> Done<bool> {
        let of_labels = |conditions: &[ElementCondition]| -> Vec<ElementCondition> {
            conditions.iter().filter(|condition| condition.is_of_labels()).cloned().collect()
        };
        let both = [
            (PropertyOf::Edge, of_labels(&conditions.on_edges)),
            (PropertyOf::Vertex, of_labels(&conditions.on_vertices)),
        ];
        if both.iter().all(|(_, conditions)| conditions.is_empty()) {
            return Ok(true);
        }
        let schema = self.snapshot.schema();
        let mut kept = BTreeSet::new();
        let mut all = BTreeSet::new();
        for it in self.edges_along(along) {
            let Some(edge) = schema.edge_type(it.0) else { continue };
            let mut is_possible = true;
            for (of, conditions) in &both {
                let owner: Vec<Owner<'_>> = self.owner(it, *of).into_iter().collect();
                let verdict = tested(*of, &owner, conditions, |_| false, &self.growth)?;
                is_possible &= !matches!(verdict, Tested::Never);
            }
            all.insert(&*edge.label);
            if is_possible {
                kept.insert(&*edge.label);
            }
        }
        if kept.len() < all.len() && kept.len() <= LABELS_MAX {
            along.labels = kept.iter().map(|label| (*label).to_owned()).collect();
        }
        Ok(!kept.is_empty())
    }

    /// What a hop follows, from wherever.
    fn edges_along(&self, along: &traversal::Hop) -> Vec<Along> {
        let labels: HashSet<&str> = along.labels.iter().map(String::as_str).collect();
        let directions: &[Direction] = match along.direction {
            HopDirection::Out => &[Direction::Out],
            HopDirection::In => &[Direction::In],
            HopDirection::Both => &Direction::ALL,
        };
        let types = self.snapshot.schema().edge_types();
        let followed = types.filter(|(_, edge)| labels.is_empty() || labels.contains(edge.label.as_str()));
        followed.flat_map(|(number, _)| directions.iter().map(move |direction| (number, *direction))).collect()
    }

    /// Whose properties conditions on the edges, or on the vertices that they lead to, look at.
    fn owner(&self, (edge_type, direction): Along, of: PropertyOf) -> Option<Owner<'_>> {
        let edge = self.snapshot.schema().edge_type(edge_type)?;
        if of == PropertyOf::Edge {
            return Some(Owner { label: &edge.label, properties: &edge.properties });
        }
        let label = self.snapshot.schema().label(edge.far(direction))?;
        Some(Owner { label: &label.name, properties: &label.properties })
    }
}

fn both(left: Option<Condition>, right: Option<Condition>) -> Option<Condition> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.and(right)),
        (left, right) => left.or(right),
    }
}
