//! Whether steps read what a rule might take away from them.

use std::sync::Arc;

use crate::{operators::Reads, plan::PlanStep};

/// Whether steps read something of the elements that come to the first of them.
pub(super) fn reads_elements(steps: &[Arc<PlanStep>], is_root: bool) -> bool {
    let reads = Reads::of(steps);
    reads.count > 0 || reads.come_out && is_root
}
