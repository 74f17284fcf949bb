//! Conditions right after `E()` become a part of it: edges of other labels are not read, and the engine tests properties on columns.

use std::sync::Arc;

use super::{
    element_conditions::{leading, step_count},
    place::{Place, is_plain},
    reads::reads_elements,
    taken::{Taken, take},
};
use crate::{
    operators::sources::{Edges, FindEdges},
    plan::{Step, Steps},
};

pub(super) fn apply(steps: &Steps, place: Place) -> Option<Steps> {
    let (first, rest) = steps.split_first()?;
    if !matches!(first.get(), Some(Edges { ids: None })) || !is_plain(first) {
        return None;
    }
    let found = leading(rest);
    let is_free = !reads_elements(&rest[step_count(&found)..], place.is_root);
    let Taken { conditions, labels, left, count } = take(rest, found, is_free)?;
    let first = Arc::new(Step::new(FindEdges { conditions }, labels));
    Some(std::iter::once(first).chain(left).chain(rest[count..].iter().cloned()).collect())
}
