//! Conditions right after a hop are tested by the engine, column by column, and not by a value for each element.
//!
//! The wave for their properties stays: it comes after that of the edges, as it would for steps of their own. Steps that read other
//! properties of the same elements would share it, so conditions before such steps are left to [`together`](super::together), but for those on
//! labels, which read nothing. Conditions on edges and on the vertices that they lead to are one wave, where two steps would have two. What is
//! only counted needs no traversers.

use std::sync::Arc;

use super::{
    counts::is_count,
    element_conditions::{leading, step_count},
    place::{Place, is_plain},
    reads::reads_elements,
    replaced::{Replaced, replace_each},
    taken::{Taken, take},
};
use crate::{
    operators::moves::{CountEdges, Ends, Hop, HopConditions, HopWhere, OtherEnd},
    plan::{Name, PlanStep, Reaches, Steps},
    tokens::Direction,
};

pub(super) fn apply(steps: &Steps, place: Place) -> Option<Steps> {
    replace_each(steps, |steps| fused(steps, place))
}

/// What a hop at the beginning of some steps becomes with the conditions after it.
fn fused(steps: &[Arc<PlanStep>], place: Place) -> Option<Replaced> {
    let (first, rest) = steps.split_first()?;
    let hop = first.get::<Hop>()?;
    if !is_plain(first) {
        return None;
    }
    let mut hop = hop.clone();
    let mut labels: Vec<Name> = Vec::new();
    let mut left = Vec::new();
    let mut conditions = HopConditions::default();
    let mut count = 1;
    let found = leading(rest);
    if hop.reaches == Reaches::Edges {
        let is_free = !reads_elements(&rest[step_count(&found)..], place.is_root);
        if let Some(taken) = take(rest, found, is_free) {
            count += taken.count;
            Taken { conditions: conditions.on_edges, labels, left, .. } = taken;
        }
        // A path would have the edge, too.
        let ends = steps.get(count).filter(|step| leads_on(step, hop.direction) && labels.is_empty() && !place.carries);
        if let Some(ends) = ends
            && left.is_empty()
        {
            hop.reaches = Reaches::Vertices;
            labels.clone_from(&ends.labels);
            count += 1;
        }
    }
    if hop.reaches == Reaches::Vertices && labels.is_empty() {
        let rest = &steps[count..];
        let found = leading(rest);
        let is_free = !reads_elements(&rest[step_count(&found)..], place.is_root);
        if let Some(taken) = take(rest, found, is_free) {
            count += taken.count;
            Taken { conditions: conditions.on_vertices, labels, left, .. } = taken;
        }
    }
    if conditions.is_empty() {
        return None;
    }
    let mut operators = Vec::new();
    match steps.get(count) {
        Some(next) if is_count(next) && labels.is_empty() && left.is_empty() => {
            operators.push(Arc::new(PlanStep::new(CountEdges { hop, conditions }, next.labels.clone())));
            count += 1;
        }
        _ => operators.push(Arc::new(PlanStep::new(HopWhere { hop, conditions }, labels))),
    }
    operators.extend(left);
    Some(Replaced { steps: operators, count })
}

/// Whether a step goes from edges that were followed in a direction to the vertices that they lead to.
fn leads_on(step: &PlanStep, direction: Direction) -> bool {
    match (step.get(), direction) {
        (Some(Ends { direction: end }), Direction::Out) => *end == Direction::In,
        (Some(Ends { direction: end }), Direction::In) => *end == Direction::Out,
        _ => step.is::<OtherEnd>(),
    }
}
