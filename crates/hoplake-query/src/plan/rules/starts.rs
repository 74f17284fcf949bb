//! Conditions right after `V()` become a part of it.

use std::sync::Arc;

use super::{Place, is_plain};
use crate::{
    plan::Test,
    plan::{By, Found, Predicate, Step, StepKind, Steps},
    tokens::T,
};

/// Conditions that become a part of `V()`, at most: a scan tests all of them on each of its rows at once, and those that stay steps see
/// only what is left.
const TAKEN_MAX: usize = 64;

pub(super) fn apply(steps: &Steps, _: Place) -> Option<Steps> {
    let (first, rest) = steps.split_first()?;
    if first.kind != StepKind::Vertices(None) {
        return None;
    }
    let mut found = Found::default();
    let mut ids = None;
    let mut taken = 0;
    // Labels of the step that is taken in last are those of the vertices that are found: behind it nothing is taken in.
    let mut labels = first.labels.clone();
    while labels.is_empty()
        && let Some(next) = rest.get(taken)
        && ids.is_none()
        && taken < TAKEN_MAX
    {
        if let StepKind::Has(By::Token(T::Id), Predicate::Test(Test::Eq | Test::Within, values)) = &next.kind
            && taken == 0
        {
            ids = Some(values.clone());
        } else if !take(&next.kind, &mut found) {
            break;
        }
        labels.clone_from(&next.labels);
        taken += 1;
    }
    if taken == 0 {
        return None;
    }
    let kind = match ids {
        Some(ids) => StepKind::Vertices(Some(ids)),
        None => StepKind::Find(found),
    };
    let first = Arc::new(Step::new(kind, labels));
    Some(std::iter::once(first).chain(rest[taken..].iter().cloned()).collect())
}

/// Takes a condition in, if it is one on the vertex itself.
fn take(kind: &StepKind, found: &mut Found) -> bool {
    match kind {
        StepKind::Has(By::Token(T::Label), predicate) => found.labels.push(predicate.clone().into()),
        StepKind::Has(By::Property(name), predicate) => found.properties.push((name.clone(), predicate.clone().into())),
        // has(label, key, value)
        StepKind::Where(steps) if steps.len() == 2 && steps.iter().all(|step| is_plain(step)) => {
            // Seen first: a copy of what was found so far, for each of thousands of conditions, would take its square.
            let is_taken = |kind: &StepKind| matches!(kind, StepKind::Has(By::Token(T::Label) | By::Property(_), _));
            if !steps.iter().all(|step| is_taken(&step.kind)) {
                return false;
            }
            return steps.iter().all(|step| take(&step.kind, found));
        }
        _ => return false,
    }
    true
}
