//! Conditions right after `E()` become a part of it: edges of other labels are not read, and the engine tests properties on columns.

use std::{iter, sync::Arc};

use super::{
    element_conditions::{Leading, LookUp, labels_of, step_count},
    place::Place,
    reads::reads_elements,
    replaced::{Replaced, replace_each},
    taken::{Taken, take},
};
use crate::{
    operators::sources::{Edges, FindEdges},
    plan::{PlanStep, Steps, work::Work},
};

pub(super) fn apply(steps: &Steps, place: Place, work: &mut Work) -> Option<Steps> {
    replace_each(steps, |steps| found(steps, place, work))
}

fn found(steps: &[Arc<PlanStep>], place: Place, work: &mut Work) -> Option<Replaced> {
    let (first, rest) = steps.split_first()?;
    if !matches!(first.get(), Some(Edges { ids: None })) {
        return None;
    }
    let leading = Leading::of(rest, work);
    if let Some(LookUp { ids, others, count }) = leading.look_up(work) {
        let source = PlanStep::new(Edges { ids: Some(ids) }, labels_of(&steps[..=count]));
        let others = others.into_iter().map(|other| other.step);
        return Some(Replaced { steps: iter::once(Arc::new(source)).chain(others).collect(), count: 1 + count });
    }
    let found = leading.conditions();
    let is_free = !reads_elements(&rest[step_count(&found)..], place.is_root, work);
    let Taken { conditions, left, count } = take(found, is_free)?;
    let first = Arc::new(PlanStep::new(FindEdges { conditions }, labels_of(&steps[..=count])));
    Some(Replaced { steps: iter::once(first).chain(left).collect(), count: 1 + count })
}
