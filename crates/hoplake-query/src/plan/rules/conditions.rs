//! Conditions right after a hop are tested by the engine, column by column, and not by a value for each element.
//!
//! The wave for their properties stays: it comes after that of the edges, as it would for steps of their own. Steps that read other
//! properties of the same elements would share it, so conditions before such steps are left to [`together`](super::together), but for those on
//! labels, which read nothing. Conditions on edges and on the vertices that they lead to are one wave, where two steps would have two. What is
//! only counted needs no traversers.

use std::sync::Arc;

use super::{
    counts::is_count,
    element_conditions::{Leading, labels_of, step_count},
    place::{Place, is_plain},
    reads::reads_elements,
    replaced::{Replaced, replace_each},
    taken::{Taken, take},
};
use crate::{
    operators::moves::{CountEdges, Ends, Hop, HopConditions, HopWhere, OtherEnd},
    plan::{PlanStep, Reaches, Steps, work::Work},
    tokens::Direction,
};

pub(super) fn apply(steps: &Steps, place: Place, work: &mut Work) -> Option<Steps> {
    replace_each(steps, |steps| fused(steps, place, work))
}

/// What a hop at the beginning of some steps becomes with the conditions after it.
fn fused(steps: &[Arc<PlanStep>], place: Place, work: &mut Work) -> Option<Replaced> {
    let (first, rest) = steps.split_first()?;
    let hop = first.get::<Hop>()?;
    let mut hop = hop.clone();
    let mut left = Vec::new();
    let mut conditions = HopConditions::default();
    let mut count = 1;
    // The step that leads to the elements that the hop reaches.
    let mut last_move = 0;
    if hop.reaches == Reaches::Edges {
        let found = Leading::of(rest, work).conditions();
        let is_free = !reads_elements(&rest[step_count(&found)..], place.is_root, work);
        if let Some(taken) = take(found, is_free) {
            count += taken.count;
            Taken { conditions: conditions.on_edges, left, .. } = taken;
        }
        // A path or a label would have the edge, too.
        let is_edge_kept = place.carries || !steps[..count].iter().all(|step| is_plain(step));
        let leads_on = steps.get(count).is_some_and(|step| leads_on(step, hop.direction));
        if leads_on && left.is_empty() && !is_edge_kept {
            hop.reaches = Reaches::Vertices;
            last_move = count;
            count += 1;
        }
    }
    if hop.reaches == Reaches::Vertices {
        let rest = &steps[count..];
        let found = Leading::of(rest, work).conditions();
        let is_free = !reads_elements(&rest[step_count(&found)..], place.is_root, work);
        if let Some(taken) = take(found, is_free) {
            count += taken.count;
            Taken { conditions: conditions.on_vertices, left, .. } = taken;
        }
    }
    if conditions.is_empty() {
        return None;
    }
    let labels = labels_of(&steps[last_move..count]);
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
