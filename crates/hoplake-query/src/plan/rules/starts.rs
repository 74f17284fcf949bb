//! Conditions right after `V()` become a part of it.

use std::sync::Arc;

use super::place::{Place, is_plain};
use crate::{
    operators::{
        conditions::{Has, Where},
        sources::{FindVertices, VertexConditions, Vertices},
    },
    plan::{By, Predicate, Step, Steps, Test},
    tokens::T,
};

/// Conditions that become a part of `V()`, at most: a scan tests all of them on each of its rows at once, and those that stay steps see
/// only what is left.
const TAKEN_MAX: usize = 64;

pub(super) fn apply(steps: &Steps, _: Place) -> Option<Steps> {
    let (first, rest) = steps.split_first()?;
    if !matches!(first.get(), Some(Vertices { ids: None })) {
        return None;
    }
    let mut conditions = VertexConditions::default();
    let mut ids = None;
    let mut taken = 0;
    // Labels of the step that is taken in last are those of the vertices that are found: behind it nothing is taken in.
    let mut labels = first.labels.clone();
    while labels.is_empty()
        && let Some(next) = rest.get(taken)
        && ids.is_none()
        && taken < TAKEN_MAX
    {
        if let Some(Has { by: By::Token(T::Id), predicate: Predicate::Test(Test::Eq | Test::Within, values) }) =
            next.get()
            && taken == 0
        {
            ids = Some(values.clone());
        } else if !take(next, &mut conditions) {
            break;
        }
        labels.clone_from(&next.labels);
        taken += 1;
    }
    if taken == 0 {
        return None;
    }
    let first = Arc::new(match ids {
        Some(ids) => Step::new(Vertices { ids: Some(ids) }, labels),
        None => Step::new(FindVertices { conditions }, labels),
    });
    Some(std::iter::once(first).chain(rest[taken..].iter().cloned()).collect())
}

/// Takes a condition in, if it is one on the vertex itself.
fn take(step: &Step, conditions: &mut VertexConditions) -> bool {
    match step.get() {
        Some(Has { by: By::Token(T::Label), predicate }) => conditions.labels.push(predicate.clone().into()),
        Some(Has { by: By::Property(name), predicate }) => {
            conditions.properties.push((name.clone(), predicate.clone().into()));
        }
        Some(_) => return false,
        // has(label, key, value)
        None => {
            let Some(Where { steps }) = step.get() else { return false };
            // Seen first: a copy of what was found so far, for each of thousands of conditions, would take its square.
            let is_taken =
                |step: &Step| matches!(step.get(), Some(Has { by: By::Token(T::Label) | By::Property(_), .. }));
            return steps.len() == 2
                && steps.iter().all(|step| is_plain(step) && is_taken(step))
                && steps.iter().all(|step| take(step, conditions));
        }
    }
    true
}
