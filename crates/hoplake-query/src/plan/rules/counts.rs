//! Counts that need no traversers: those of the statistics, and lengths of lists.

use std::sync::Arc;

use super::place::{Place, is_plain};
use crate::{
    operators::{
        conditions::Has,
        maps::Token,
        moves::{CountEdges, Hop, HopConditions},
        reductions::{GroupCount, Reduce},
        sources::{Counted, Edges, FindVertices, Vertices},
    },
    plan::{By, PlanStep, Predicate, Reduction, Steps, work::Work},
    tokens::T,
};

pub(super) fn apply(steps: &Steps, place: Place, _: &mut Work) -> Option<Steps> {
    // Within another traversal they would be counted for each of its traversers.
    if place.is_root
        && let Some(counted) = of_statistics(steps)
    {
        return Some(counted);
    }
    let counted_hop = |at: usize| {
        let is_counted = steps.get(at + 1).is_some_and(|step| is_count(step)) && is_plain(&steps[at]);
        steps[at].get::<Hop>().filter(|_| is_counted)
    };
    if !(0..steps.len()).any(|at| counted_hop(at).is_some()) {
        return None;
    }
    let mut counted = Vec::with_capacity(steps.len());
    let mut at = 0;
    while let Some(step) = steps.get(at) {
        match counted_hop(at) {
            Some(hop) => {
                let lengths = CountEdges { hop: hop.clone(), conditions: HopConditions::default() };
                counted.push(Arc::new(PlanStep::new(lengths, steps[at + 1].labels.clone())));
                at += 1;
            }
            None => counted.push(step.clone()),
        }
        at += 1;
    }
    Some(counted.into())
}

pub(super) fn is_count(step: &PlanStep) -> bool {
    matches!(step.get(), Some(Reduce { reduction: Reduction::Count }))
}

/// All vertices or edges of some labels, which are counted.
fn of_statistics(steps: &Steps) -> Option<Steps> {
    let (first, rest) = steps.split_first()?;
    let edges = matches!(first.get(), Some(Edges { ids: None }));
    let mut labels = if let Some(FindVertices { conditions }) = first.get() {
        conditions.iter().map(|condition| condition.label().cloned()).collect::<Option<Vec<_>>>()?
    } else if edges || matches!(first.get(), Some(Vertices { ids: None, .. })) {
        Vec::new()
    } else {
        return None;
    };
    let conditions = rest.iter().map_while(|step| match step.get() {
        Some(Has { by: By::Token(T::Label), predicate }) if is_plain(step) => Some(predicate.clone()),
        _ => None,
    });
    let conditions: Vec<Arc<Predicate>> = conditions.collect();
    let taken = 1 + conditions.len();
    labels.extend(conditions);
    if !is_plain(first) {
        return None;
    }
    let next = steps.get(taken)?;
    let (by_label, last) = if is_count(next) {
        (false, taken)
    } else if let Some(GroupCount { name: None, by: By::Token(T::Label) }) = next.get() {
        (true, taken)
    } else if let (Some(Token { token: T::Label }), Some(GroupCount { name: None, by: By::Identity })) =
        (next.get(), steps.get(taken + 1)?.get())
        && is_plain(next)
    {
        (true, taken + 1)
    } else {
        return None;
    };
    let otherwise = steps[..=last].iter().cloned().collect();
    let counted = Counted { edges, labels, by_label, otherwise };
    let counted = Arc::new(PlanStep::new(counted, steps[last].labels.clone()));
    Some(std::iter::once(counted).chain(steps[last + 1..].iter().cloned()).collect())
}
