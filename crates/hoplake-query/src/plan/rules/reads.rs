//! Whether steps read what a rule might take away from them.

use std::sync::Arc;

use crate::{
    operators::Reads,
    plan::{PlanStep, work::Work},
};

/// Whether steps read something of the elements that come to the first of them.
pub(super) fn reads_elements(steps: &[Arc<PlanStep>], is_root: bool, work: &mut Work) -> bool {
    let reads = Reads::of(steps);
    work.looks_at(reads.followed);
    reads.count > 0 || reads.come_out && is_root
}
