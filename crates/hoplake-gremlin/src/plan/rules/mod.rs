//! Rules that make a plan read less, and give the same.
//!
//! | rule | from | to |
//! | --- | --- | --- |
//! | [`starts`] | `V().hasId(x)`, `V().has(label, key, value)` | a look-up of keys; a scan with the conditions, which an index may answer |

mod starts;

use super::{Step, Steps};

/// Applies all rules to the steps of a traversal.
pub(super) fn apply(steps: &Steps) -> Steps {
    starts::apply(steps)
}

/// Whether a step changes nothing but which traversers there are, and gives them no labels.
fn is_plain(step: &Step) -> bool {
    step.labels.is_empty()
}
