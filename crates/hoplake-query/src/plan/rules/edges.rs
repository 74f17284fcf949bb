//! Conditions right after `E()` become a part of it: edges of other labels are not read, and the engine tests properties on columns.

use std::sync::Arc;

use super::{
    element_conditions::{leading, looked_up, step_count},
    place::{Place, is_plain},
    reads::reads_elements,
    replaced::{Replaced, replace_each},
    taken::{Taken, take},
};
use crate::{
    operators::sources::{Edges, FindEdges},
    plan::{PlanStep, Steps},
};

pub(super) fn apply(steps: &Steps, place: Place) -> Option<Steps> {
    replace_each(steps, |steps| found(steps, place))
}

fn found(steps: &[Arc<PlanStep>], place: Place) -> Option<Replaced> {
    let (first, rest) = steps.split_first()?;
    if !matches!(first.get(), Some(Edges { ids: None })) || !is_plain(first) {
        return None;
    }
    let by_id = looked_up(rest, |ids| Arc::new(Edges { ids: Some(ids) }));
    if by_id.is_some() {
        return by_id;
    }
    let found = leading(rest);
    let is_free = !reads_elements(&rest[step_count(&found)..], place.is_root);
    let Taken { conditions, labels, left, count } = take(rest, found, is_free)?;
    let first = Arc::new(PlanStep::new(FindEdges { conditions }, labels));
    Some(Replaced { steps: std::iter::once(first).chain(left).collect(), count: 1 + count })
}
