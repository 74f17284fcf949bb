//! Hops before a `dedup` are one traversal of the engine: how often a vertex is reached does not matter, so sets of vertices go from
//! hop to hop and not traversers.

use std::sync::Arc;

use super::place::{Place, is_plain};
use crate::{
    operators::{
        moves::{Hop, Walk},
        reductions::Dedup,
    },
    plan::{By, Name, PlanStep, Reaches, Steps, work::Work},
    tokens::Direction,
};

pub(super) fn apply(steps: &Steps, place: Place, _: &mut Work) -> Option<Steps> {
    // A path tells apart traversers at the same vertex; and traversers of other frames are not the same, either.
    if place.carries || !place.is_root {
        return None;
    }
    let mut walked: Vec<Arc<PlanStep>> = Vec::with_capacity(steps.len());
    let mut hops: Vec<(Direction, Vec<Name>)> = Vec::new();
    let mut first_of_hops = 0;
    let mut any = false;
    for (at, step) in steps.iter().enumerate() {
        if let Some(Hop { direction, labels, reaches: Reaches::Vertices }) = step.get()
            && is_plain(step)
        {
            if hops.is_empty() {
                first_of_hops = at;
            }
            hops.push((*direction, labels.clone()));
            continue;
        }
        if let Some(Dedup { names, by }) = step.get()
            && names.is_empty()
            && by[..] == [By::Identity]
            && !hops.is_empty()
        {
            walked.push(Arc::new(PlanStep::plain(Walk { hops: std::mem::take(&mut hops) })));
            any = true;
        } else {
            walked.extend(steps[first_of_hops..first_of_hops + hops.len()].iter().cloned());
            hops.clear();
        }
        walked.push(step.clone());
    }
    walked.extend(steps[first_of_hops..first_of_hops + hops.len()].iter().cloned());
    any.then(|| walked.into())
}
