//! Properties that several steps read of the same elements are read at the first of them.

use std::{collections::HashSet, sync::Arc};

use super::Place;
use crate::{
    plan::{By, Given, Name, Step, StepKind, Steps, TextStep, Together},
    tokens::{Scope, T},
};

/// How many steps ahead are looked at.
const AHEAD: usize = 16;

/// Names that are read together, at most: each step has a list of its own.
pub const TOGETHER_NAMES_MAX: usize = 1_000;

/// What some steps read of the elements that come to them.
#[derive(Debug, Default)]
struct Reads {
    names: Vec<Name>,
    known: HashSet<Name>,
    all: bool,
    /// Parts that are read for themselves if nothing reads them together.
    count: usize,
}

impl Reads {
    fn name(&mut self, name: &Name) {
        self.count += 1;
        self.add(name);
    }

    fn add(&mut self, name: &Name) {
        if self.known.insert(name.clone()) {
            self.names.push(name.clone());
        }
    }

    fn names(&mut self, names: &[Name]) {
        self.count += 1;
        self.all |= names.is_empty();
        names.iter().for_each(|name| self.add(name));
    }

    /// What a step reads of the elements that come to it.
    fn step(&mut self, kind: &StepKind) {
        match kind {
            StepKind::Has(by, _) | StepKind::Sample(_, _, by) | StepKind::SackWith(_, by) => self.by(by),
            StepKind::HasSteps(name, _) | StepKind::HasProperty(name) | StepKind::HasNot(name) => self.name(name),
            StepKind::Values(names) | StepKind::Properties(names) | StepKind::PropertyMap(names) => self.names(names),
            StepKind::ValueMap(names, ..) | StepKind::ElementMap(names) => self.names(names),
            StepKind::Token(T::Id) => self.count += 1,
            StepKind::Order(Scope::Global, sortings) => sortings.iter().for_each(|(by, _)| self.by(by)),
            StepKind::Dedup(Scope::Global, names, by) if names.is_empty() => by.iter().for_each(|by| self.by(by)),
            StepKind::Aggregate(_, _, by) | StepKind::GroupCount(_, by) => self.by(by),
            StepKind::Group(_, key, _) => self.by(key),
            StepKind::Project(_, by) | StepKind::Math(_, by) => by.iter().for_each(|by| self.by(by)),
            StepKind::Where(steps)
            | StepKind::Not(steps)
            | StepKind::Map(steps)
            | StepKind::FlatMap(steps)
            | StepKind::Local(steps)
            | StepKind::Optional(steps)
            | StepKind::SideEffect(steps) => {
                self.steps(steps);
            }
            StepKind::And(all) | StepKind::Or(all) | StepKind::Union(all) | StepKind::Coalesce(all) => {
                for steps in all {
                    self.steps(steps);
                }
            }
            StepKind::Text(_, TextStep::Concat(all)) => {
                for given in all {
                    if let Given::Steps(steps) = given {
                        self.steps(steps);
                    }
                }
            }
            _ => {}
        }
    }

    fn by(&mut self, by: &By) {
        match by {
            By::Property(name) => self.name(name),
            By::Token(T::Id) => self.count += 1,
            By::Steps(steps) => {
                self.steps(steps);
            }
            _ => {}
        }
    }

    /// What steps read of the elements that come to the first of them; `true` if those come out at the end.
    fn steps(&mut self, steps: &[Arc<Step>]) -> bool {
        for step in steps.iter().take(AHEAD) {
            self.step(&step.kind);
            if !keeps(&step.kind) {
                return false;
            }
        }
        steps.len() <= AHEAD
    }
}

/// Whether what comes out of a step are elements that came to it.
fn keeps(kind: &StepKind) -> bool {
    match kind {
        StepKind::Has(..)
        | StepKind::HasSteps(..)
        | StepKind::HasProperty(_)
        | StepKind::HasNot(_)
        | StepKind::WherePredicate(..)
        | StepKind::Where(_)
        | StepKind::Not(_)
        | StepKind::And(_)
        | StepKind::Or(_)
        | StepKind::SimplePath(..)
        | StepKind::Coin(_)
        | StepKind::Barrier
        | StepKind::Identity
        | StepKind::Aggregate(..)
        | StepKind::SackWith(..)
        | StepKind::SideEffect(_) => true,
        StepKind::Range(scope, ..)
        | StepKind::Tail(scope, _)
        | StepKind::Dedup(scope, ..)
        | StepKind::Order(scope, _)
        | StepKind::Sample(scope, ..) => *scope == Scope::Global,
        StepKind::Group(name, ..) | StepKind::GroupCount(name, _) | StepKind::Tree(name, _) => name.is_some(),
        _ => false,
    }
}

/// Whether steps read something of the elements that come to the first of them.
pub(super) fn reads_elements(steps: &[Arc<Step>], is_root: bool) -> bool {
    let mut reads = Reads::default();
    let are_results = reads.steps(steps) && is_root;
    reads.count > 0 || are_results
}

pub(super) fn apply(steps: &Steps, place: Place) -> Option<Steps> {
    let mut changed: Option<Vec<Arc<Step>>> = None;
    for (at, step) in steps.iter().enumerate() {
        let mut own = Reads::default();
        own.step(&step.kind);
        // These read their own together already, while they do other work.
        if own.count == 0 || matches!(step.kind, StepKind::Project(..)) {
            continue;
        }
        let mut reads = Reads::default();
        let results = reads.steps(&steps[at..]) && place.is_root;
        if reads.count + usize::from(results) > 1 && reads.names.len() <= TOGETHER_NAMES_MAX {
            let changed = changed.get_or_insert_with(|| steps.to_vec());
            let together = Together { names: reads.names, all: reads.all, results };
            changed[at] = Arc::new(Step { together, ..Step::clone(step) });
        }
    }
    changed.map(Into::into)
}
