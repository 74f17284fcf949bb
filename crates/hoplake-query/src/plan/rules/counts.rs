//! Counts that need no traversers: those of the statistics, and lengths of lists.

use std::sync::Arc;

use super::{Place, is_plain};
use crate::{
    plan::{By, Counted, Found, Predicate, Reduction, Step, StepKind, Steps},
    tokens::{Scope, T},
};

pub(super) fn apply(steps: &Steps, place: Place) -> Option<Steps> {
    // Within another traversal they would be counted for each of its traversers.
    if place.is_root
        && let Some(counted) = of_statistics(steps)
    {
        return Some(counted);
    }
    let is_counted = |at: usize| match (&steps[at].kind, steps.get(at + 1).map(|step| &step.kind)) {
        (StepKind::Hop(..), Some(StepKind::Reduce(Reduction::Count, Scope::Global))) => is_plain(&steps[at]),
        _ => false,
    };
    if !(0..steps.len()).any(is_counted) {
        return None;
    }
    let mut counted = Vec::with_capacity(steps.len());
    let mut at = 0;
    while let Some(step) = steps.get(at) {
        match &step.kind {
            StepKind::Hop(direction, labels, _) if is_counted(at) => {
                let kind = StepKind::CountEdges(*direction, labels.clone());
                counted.push(Arc::new(Step::new(kind, steps[at + 1].labels.clone())));
                at += 1;
            }
            _ => counted.push(step.clone()),
        }
        at += 1;
    }
    Some(counted.into())
}

/// All vertices or edges of some labels, which are counted.
fn of_statistics(steps: &Steps) -> Option<Steps> {
    let (first, rest) = steps.split_first()?;
    let (edges, mut labels) = match &first.kind {
        StepKind::Vertices(None) => (false, Vec::new()),
        StepKind::Find(Found { labels, properties }) if properties.is_empty() => (false, labels.clone()),
        StepKind::Edges(None) => (true, Vec::new()),
        _ => return None,
    };
    let conditions = rest.iter().map_while(|step| match &step.kind {
        StepKind::Has(By::Token(T::Label), predicate) if is_plain(step) => Some(predicate.clone().into()),
        _ => None,
    });
    let conditions: Vec<Arc<Predicate>> = conditions.collect();
    let taken = 1 + conditions.len();
    labels.extend(conditions);
    if !is_plain(first) {
        return None;
    }
    let kind = |at: usize| steps.get(at).map(|step| &step.kind);
    let (by_label, last) = match (kind(taken), kind(taken + 1)) {
        (Some(StepKind::Reduce(Reduction::Count, Scope::Global)), _) => (false, taken),
        (Some(StepKind::GroupCount(None, By::Token(T::Label))), _) => (true, taken),
        (Some(StepKind::Token(T::Label)), Some(StepKind::GroupCount(None, By::Identity)))
            if is_plain(&steps[taken]) =>
        {
            (true, taken + 1)
        }
        _ => return None,
    };
    let otherwise = steps[..=last].iter().cloned().collect();
    let kind = StepKind::Counted(Counted { edges, labels, by_label, otherwise });
    let counted = Arc::new(Step::new(kind, steps[last].labels.clone()));
    Some(std::iter::once(counted).chain(steps[last + 1..].iter().cloned()).collect())
}
