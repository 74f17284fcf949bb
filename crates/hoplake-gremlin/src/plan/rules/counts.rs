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

#[cfg(test)]
mod tests {
    use super::super::kinds;
    use crate::plan::{By, StepKind};

    #[test]
    fn all_of_a_label_are_counted_by_the_statistics() {
        let counted = |query: &str| match &kinds(query)[..] {
            [StepKind::Counted(counted), rest @ ..] => {
                (counted.edges, counted.labels.len(), counted.by_label, counted.otherwise.len(), rest.len())
            }
            other => panic!("{query}: {other:?}"),
        };
        assert_eq!(counted("g.V().count()"), (false, 0, false, 2, 0));
        assert_eq!(counted("g.V().hasLabel('a').count().is(gt(1))"), (false, 1, false, 2, 1));
        assert_eq!(counted("g.E().hasLabel('a', 'b').count()"), (true, 1, false, 3, 0));
        assert_eq!(counted("g.V().groupCount().by(label)"), (false, 0, true, 2, 0));
        assert_eq!(counted("g.E().label().groupCount().unfold()"), (true, 0, true, 3, 1));
    }

    #[test]
    fn others_are_counted_one_by_one() {
        for query in [
            "g.V().has('a', 1).count()",
            "g.V().as('a').count()",
            "g.V('a').count()",
            "g.inject(1).map(__.V().count())",
            "g.V().groupCount()",
        ] {
            assert!(!kinds(query).iter().any(|kind| matches!(kind, StepKind::Counted(_))), "{query}");
        }
    }

    #[test]
    fn a_hop_that_is_counted_gives_lengths() {
        assert!(
            matches!(&kinds("g.V('a').outE('b').count()")[1..], [StepKind::CountEdges(_, labels)] if labels.len() == 1)
        );
        let within = kinds("g.V('a').order().by(__.out().count())");
        let [_, StepKind::Order(_, sorting)] = &within[..] else { panic!("{within:?}") };
        assert!(matches!(&sorting[0].0, By::Steps(steps) if matches!(steps[0].kind, StepKind::CountEdges(..))));
        assert!(matches!(&kinds("g.V('a').out().as('b').count()")[1..], [StepKind::Hop(..), StepKind::Reduce(..)]));
        assert!(matches!(&kinds("g.V('a').out().dedup().count()")[1], StepKind::Walk(_)));
    }
}
