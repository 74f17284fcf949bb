//! Conditions right after `V()` become a part of it, wherever it stands.

use std::sync::Arc;

use super::{
    element_conditions::{leading, looked_up, step_count},
    place::{Place, is_plain},
    reads::reads_elements,
    replaced::{Replaced, replace_each},
};
use crate::{
    operators::{
        conditions::{Has, Where},
        sources::{FindVertices, Vertices},
    },
    plan::{By, PlanStep, Steps},
    tokens::T,
};

pub(super) fn apply(steps: &Steps, place: Place) -> Option<Steps> {
    replace_each(steps, |steps| found(steps, place))
}

fn found(steps: &[Arc<PlanStep>], place: Place) -> Option<Replaced> {
    let (first, rest) = steps.split_first()?;
    if !matches!(first.get(), Some(Vertices { ids: None })) || !is_plain(first) {
        return None;
    }
    let by_id = looked_up(rest, |ids| Arc::new(Vertices { ids: Some(ids) }));
    if by_id.is_some() {
        return by_id;
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
    let first = Arc::new(PlanStep::new(FindVertices { conditions }, labels));
    Some(Replaced { steps: vec![first], count: 1 + count })
}

/// Whether a step is `has(key, value)`, `hasLabel(…)` or `has(label, key, value)`.
fn is_comparison(step: &PlanStep) -> bool {
    let is_has = |step: &PlanStep| matches!(step.get(), Some(Has { by: By::Token(T::Label) | By::Property(_), .. }));
    let is_of_label =
        |steps: &Steps| steps.len() == 2 && steps.iter().all(|step| step.labels.is_empty() && is_has(step));
    is_has(step) || step.get().is_some_and(|Where { steps }| is_of_label(steps))
}
