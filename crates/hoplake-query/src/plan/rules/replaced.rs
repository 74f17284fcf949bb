//! Replacement of steps at every position of a traversal.

use std::sync::Arc;

use crate::plan::{PlanStep, Steps};

/// The replacement for the first `count` of some steps.
#[derive(Debug)]
pub(super) struct Replaced {
    /// The new steps.
    pub(super) steps: Vec<Arc<PlanStep>>,
    /// How many steps they replace.
    pub(super) count: usize,
}

/// Applies `with` to the steps from each position on and replaces those that it matches; `None` if nothing matched.
pub(super) fn replace_each(steps: &Steps, mut with: impl FnMut(&[Arc<PlanStep>]) -> Option<Replaced>) -> Option<Steps> {
    let mut changed: Option<Vec<Arc<PlanStep>>> = None;
    let mut at = 0;
    while at < steps.len() {
        match with(&steps[at..]) {
            Some(replaced) => {
                changed.get_or_insert_with(|| steps[..at].to_vec()).extend(replaced.steps);
                at += replaced.count;
            }
            None => {
                changed.iter_mut().for_each(|changed| changed.push(steps[at].clone()));
                at += 1;
            }
        }
    }
    changed.map(Into::into)
}
