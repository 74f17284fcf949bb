//! Which of the conditions after a hop or a scan become a part of it.

use std::sync::Arc;

use super::element_conditions::LeadingCondition;
use crate::plan::{ElementCondition, Name, PlanStep};

/// Conditions that become a part of the step before them.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) conditions: Vec<ElementCondition>,
    /// The labels of the last step that was taken as a whole.
    pub(super) labels: Vec<Name>,
    /// The rest of a step that was taken in part.
    pub(super) left: Vec<Arc<PlanStep>>,
    /// How many steps were taken, as a whole or in part.
    pub(super) count: usize,
}

/// Takes all conditions that `steps` begin with; or those on labels alone, if the wave of the others `is_free` of use: steps after them
/// read other properties of the same elements, and would share it. `None` if there is nothing to take.
pub(super) fn take(steps: &[Arc<PlanStep>], found: Vec<LeadingCondition>, is_free: bool) -> Option<Taken> {
    let of_labels = || found.iter().take_while(|found| found.condition.is_of_labels()).count();
    let taken = if is_free { found.len() } else { of_labels() };
    let last = found.get(taken.checked_sub(1)?)?.step;
    let labels = steps[last].labels.clone();
    let (whole, rest) = found.split_at(taken);
    let conditions = whole.iter().map(|found| found.condition.clone()).collect();
    let mut left: Vec<Arc<PlanStep>> =
        rest.iter().take_while(|found| found.step == last).map(|found| found.condition.step.clone()).collect();
    match left.last_mut() {
        Some(end) => *end = Arc::new(PlanStep::of(end.operator.clone(), labels)),
        None => return Some(Taken { conditions, labels, left, count: last + 1 }),
    }
    Some(Taken { conditions, labels: Vec::new(), left, count: last + 1 })
}
