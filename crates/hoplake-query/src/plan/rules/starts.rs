//! Conditions right after `V()` become a part of it.

use std::sync::Arc;

use super::{
    element_conditions::{leading, step_count},
    place::Place,
    reads::reads_elements,
};
use crate::{
    operators::{
        conditions::{Has, Where},
        sources::{FindVertices, Vertices},
    },
    plan::{By, Predicate, Step, Steps, Test},
    tokens::T,
};

pub(super) fn apply(steps: &Steps, place: Place) -> Option<Steps> {
    let (first, rest) = steps.split_first()?;
    if !matches!(first.get(), Some(Vertices { ids: None })) || !first.labels.is_empty() {
        return None;
    }
    if let Some(Has { by: By::Token(T::Id), predicate }) = rest.first()?.get()
        && let Predicate::Test(Test::Eq | Test::Within, values) = &**predicate
    {
        let found = Step::new(Vertices { ids: Some(values.clone()) }, rest[0].labels.clone());
        return Some(std::iter::once(Arc::new(found)).chain(rest[1..].iter().cloned()).collect());
    }
    let mut found = leading(rest);
    if reads_elements(&rest[step_count(&found)..], place.is_root) {
        // An index may answer a comparison. Other conditions share the wave of the steps that read the same vertices.
        let steps = rest.iter().take_while(|step| is_comparison(step)).count();
        found.retain(|found| found.step < steps);
    }
    let count = step_count(&found);
    let labels = rest[count.checked_sub(1)?].labels.clone();
    let conditions = found.into_iter().map(|found| found.condition).collect();
    let first = Arc::new(Step::new(FindVertices { conditions }, labels));
    Some(std::iter::once(first).chain(rest[count..].iter().cloned()).collect())
}

/// Whether a step is `has(key, value)`, `hasLabel(…)` or `has(label, key, value)`.
fn is_comparison(step: &Step) -> bool {
    let is_has = |step: &Step| matches!(step.get(), Some(Has { by: By::Token(T::Label) | By::Property(_), .. }));
    let is_of_label =
        |steps: &Steps| steps.len() == 2 && steps.iter().all(|step| step.labels.is_empty() && is_has(step));
    is_has(step) || step.get().is_some_and(|Where { steps }| is_of_label(steps))
}
