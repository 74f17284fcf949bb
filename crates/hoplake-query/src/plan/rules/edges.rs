//! Conditions on the label right behind `E()` become a part of it: edges of other labels are not read.

use std::sync::Arc;

use super::place::{Place, is_plain};
use crate::{
    operators::{
        conditions::{Has, Where},
        sources::{Edges, FindEdges},
    },
    plan::{By, Predicate, Step, Steps},
    tokens::T,
};

pub(super) fn apply(steps: &Steps, _: Place) -> Option<Steps> {
    let (first, rest) = steps.split_first()?;
    if !matches!(first.get(), Some(Edges { ids: None })) || !is_plain(first) {
        return None;
    }
    let mut labels = Vec::new();
    let mut taken = 0;
    let mut names = Vec::new();
    for step in rest {
        if let Some(predicate) = of_label(step) {
            labels.push(predicate.clone().into());
            names.clone_from(&step.labels);
            taken += 1;
            if names.is_empty() {
                continue;
            }
        } else if let Some(Where { steps }) = step.get()
            && steps.iter().all(|step| step.is::<Has>())
        {
            // has(label, key, value), which stays for the rest of it. Other steps may have a result where the label is another.
            labels.extend(steps.first().and_then(|step| of_label(step)).map(|it| it.clone().into()));
        }
        break;
    }
    if labels.is_empty() {
        return None;
    }
    let first = Arc::new(Step::new(FindEdges { labels }, names));
    Some(std::iter::once(first).chain(rest[taken..].iter().cloned()).collect())
}

fn of_label(step: &Arc<Step>) -> Option<&Predicate> {
    match step.get() {
        Some(Has { by: By::Token(T::Label), predicate }) => Some(predicate),
        _ => None,
    }
}
