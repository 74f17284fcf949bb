//! Properties that several steps read of the same elements are read at the first of them.

use std::sync::Arc;

use super::place::Place;
use crate::{
    operators::{Reads, maps::Project},
    plan::{PlanStep, Steps, Together, work::Work},
};

/// Names that are read together, at most: each step has a list of its own.
pub const TOGETHER_NAMES_MAX: usize = 1_000;

/// Some steps, the first of which reads what all of them need of their elements.
pub(crate) fn read_together(steps: Steps) -> Steps {
    together(&steps, false, |_| true).unwrap_or(steps)
}

pub(super) fn apply(steps: &Steps, place: Place, work: &mut Work) -> Option<Steps> {
    together(steps, place.is_root, |followed| work.looks_at(followed))
}

/// Follows the steps as long as `may_follow` says so.
fn together(steps: &Steps, is_root: bool, mut may_follow: impl FnMut(usize) -> bool) -> Option<Steps> {
    let mut changed: Option<Vec<Arc<PlanStep>>> = None;
    for (at, step) in steps.iter().enumerate() {
        // `project` reads what it needs together already, while it does other work.
        let own = Reads::of(std::slice::from_ref(step));
        if !may_follow(own.followed) {
            return None;
        }
        if own.count == 0 || step.is::<Project>() {
            continue;
        }
        let reads = Reads::of(&steps[at..]);
        if !may_follow(reads.followed) {
            return None;
        }
        let results = reads.come_out && is_root;
        if reads.count + usize::from(results) > 1 && reads.names.len() <= TOGETHER_NAMES_MAX {
            let changed = changed.get_or_insert_with(|| steps.to_vec());
            let together = Together { names: reads.names, all: reads.all, results };
            changed[at] = Arc::new(PlanStep { together, ..PlanStep::clone(step) });
        }
    }
    changed.map(Into::into)
}
