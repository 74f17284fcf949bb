//! Properties that several steps read of the same elements are read at the first of them.

use std::sync::Arc;

use super::place::Place;
use crate::{
    operators::{Reads, maps::Project},
    plan::{PlanStep, Steps, Together},
};

/// Names that are read together, at most: each step has a list of its own.
pub const TOGETHER_NAMES_MAX: usize = 1_000;

/// Some steps, the first of which reads what all of them need of their elements.
pub(crate) fn read_together(steps: Steps) -> Steps {
    let changed = apply(&steps, Place { is_root: false, carries: false });
    changed.unwrap_or(steps)
}

pub(super) fn apply(steps: &Steps, place: Place) -> Option<Steps> {
    let mut changed: Option<Vec<Arc<PlanStep>>> = None;
    for (at, step) in steps.iter().enumerate() {
        // `project` reads what it needs together already, while it does other work.
        if Reads::of(std::slice::from_ref(step)).count == 0 || step.is::<Project>() {
            continue;
        }
        let reads = Reads::of(&steps[at..]);
        let results = reads.come_out && place.is_root;
        if reads.count + usize::from(results) > 1 && reads.names.len() <= TOGETHER_NAMES_MAX {
            let changed = changed.get_or_insert_with(|| steps.to_vec());
            let together = Together { names: reads.names, all: reads.all, results };
            changed[at] = Arc::new(PlanStep { together, ..PlanStep::clone(step) });
        }
    }
    changed.map(Into::into)
}
