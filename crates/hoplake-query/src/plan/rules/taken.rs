//! Which of the conditions after a hop or a scan become a part of it.

use std::sync::Arc;

use super::element_conditions::LeadingCondition;
use crate::plan::{ElementCondition, PlanStep};

/// Conditions that become a part of the step before them.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) conditions: Vec<ElementCondition>,
    /// The rest of a step that was taken in part.
    pub(super) left: Vec<Arc<PlanStep>>,
    /// How many steps were taken, as a whole or in part.
    pub(super) count: usize,
}

/// Takes all conditions that `steps` begin with; or those on labels alone, if the wave of the others `is_free` of use: steps after them
/// read other properties of the same elements, and would share it. `None` if there is nothing to take.
pub(super) fn take(found: Vec<LeadingCondition>, is_free: bool) -> Option<Taken> {
    let of_labels = || found.iter().take_while(|found| found.condition.is_of_labels()).count();
    let taken = if is_free { found.len() } else { of_labels() };
    let last = found.get(taken.checked_sub(1)?)?.step;
    let (whole, rest) = found.split_at(taken);
    let conditions = whole.iter().map(|found| found.condition.clone()).collect();
    let left = rest.iter().take_while(|found| found.step == last).map(|found| found.condition.step.clone()).collect();
    Some(Taken { conditions, left, count: last + 1 })
}
