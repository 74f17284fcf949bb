//! Conditions right after `V()` become a part of it, wherever it stands.

use std::{iter, sync::Arc};

use super::{
    element_conditions::{Leading, LookUp, labels_of, step_count},
    place::Place,
    reads::reads_elements,
    replaced::{Replaced, replace_each},
};
use crate::{
    operators::{
        conditions::{Has, Where},
        sources::{FindVertices, Vertices},
    },
    plan::{By, PlanStep, Steps, work::Work},
    tokens::T,
};

pub(super) fn apply(steps: &Steps, place: Place, work: &mut Work) -> Option<Steps> {
    replace_each(steps, |steps| found(steps, place, work))
}

fn found(steps: &[Arc<PlanStep>], place: Place, work: &mut Work) -> Option<Replaced> {
    let (first, rest) = steps.split_first()?;
    if !matches!(first.get(), Some(Vertices { ids: None, .. })) {
        return None;
    }
    let leading = Leading::of(rest, work);
    if let Some(LookUp { ids, others, count }) = leading.look_up(work) {
        let labels = others.iter().filter_map(|other| other.label().cloned()).collect();
        let source = PlanStep::new(Vertices { ids: Some(ids), labels }, labels_of(&steps[..=count]));
        let others = others.into_iter().filter(|other| other.label().is_none()).map(|other| other.step);
        return Some(Replaced { steps: iter::once(Arc::new(source)).chain(others).collect(), count: 1 + count });
    }
    let mut found = leading.conditions();
    if reads_elements(&rest[step_count(&found)..], place.is_root, work) {
        // An index may answer a comparison. Other conditions share the wave of the steps that read the same vertices.
        let steps = rest.iter().take_while(|step| is_comparison(step)).count();
        found.retain(|found| found.step < steps);
    }
    if found.is_empty() {
        return None;
    }
    let count = step_count(&found);
    let conditions = found.into_iter().map(|found| found.condition).collect();
    let first = Arc::new(PlanStep::new(FindVertices { conditions }, labels_of(&steps[..=count])));
    Some(Replaced { steps: vec![first], count: 1 + count })
}

/// Whether a step is `has(key, value)`, `hasLabel(…)` or `has(label, key, value)`.
fn is_comparison(step: &PlanStep) -> bool {
    let is_has = |step: &PlanStep| matches!(step.get(), Some(Has { by: By::Token(T::Label) | By::Property(_), .. }));
    let is_of_label =
        |steps: &Steps| steps.len() == 2 && steps.iter().all(|step| step.labels.is_empty() && is_has(step));
    is_has(step) || step.get().is_some_and(|Where { steps }| is_of_label(steps))
}
