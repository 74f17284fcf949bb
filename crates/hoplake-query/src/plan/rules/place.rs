//! Where a rule is applied.

use crate::plan::PlanStep;

/// Where a traversal stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Whether it is the query itself, and not a traversal within another.
    pub(super) is_root: bool,
    /// Whether traversers are more than where they are: they have a path or a sack.
    pub(super) carries: bool,
}

/// Whether a step gives no labels.
pub(super) fn is_plain(step: &PlanStep) -> bool {
    step.labels.is_empty()
}
