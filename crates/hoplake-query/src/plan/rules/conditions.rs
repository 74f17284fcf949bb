//! Conditions right after a hop are tested by the engine, column by column, and not by a value for each element.
//!
//! The wave for their properties stays: it comes after that of the edges, as it would for steps of their own. Steps that read other properties
//! of the same elements would share it, so conditions before such steps are left to [`together`](super::together).

use std::sync::Arc;

use super::{
    place::{Place, is_plain},
    reads::reads_elements,
};
use crate::{
    operators::{
        conditions::Has,
        moves::{Hop, HopWhere},
    },
    plan::{By, Name, Predicate, Step, Steps},
};

/// Conditions of a hop, at most: the engine has a verdict of each for every edge.
const TAKEN_MAX: usize = 64;

pub(super) fn apply(steps: &Steps, place: Place) -> Option<Steps> {
    let mut changed: Option<Vec<Arc<Step>>> = None;
    let mut at = 0;
    while at < steps.len() {
        let taken = taken(&steps[at..], place);
        match &taken {
            Some((step, count)) => {
                changed.get_or_insert_with(|| steps[..at].to_vec()).push(step.clone());
                at += count;
            }
            None => {
                changed.iter_mut().for_each(|changed| changed.push(steps[at].clone()));
                at += 1;
            }
        }
    }
    changed.map(Into::into)
}

/// The hop that some steps begin with and the conditions after it, as one step, and how many steps it replaces.
fn taken(steps: &[Arc<Step>], place: Place) -> Option<(Arc<Step>, usize)> {
    let (first, rest) = steps.split_first()?;
    let hop = first.get::<Hop>()?;
    if !is_plain(first) {
        return None;
    }
    let mut conditions: Vec<(Name, Arc<Predicate>)> = Vec::new();
    let mut labels = &first.labels;
    for step in rest.iter().take(TAKEN_MAX) {
        let Some(Has { by: By::Property(name), predicate }) = step.get() else { break };
        conditions.push((name.clone(), predicate.clone().into()));
        labels = &step.labels;
        if !labels.is_empty() {
            break;
        }
    }
    let count = 1 + conditions.len();
    if conditions.is_empty() || reads_elements(&steps[count..], place.is_root) {
        return None;
    }
    let otherwise = steps[..count].iter().map(without_labels).collect();
    let hop = HopWhere { hop: hop.clone(), conditions, otherwise };
    Some((Arc::new(Step::new(hop, labels.clone())), count))
}

/// A step that gives no labels. Its operator is shared: a predicate may have a million values.
fn without_labels(step: &Arc<Step>) -> Arc<Step> {
    if is_plain(step) { step.clone() } else { Arc::new(Step::of(step.operator.clone(), Vec::new())) }
}
