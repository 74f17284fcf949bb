//! Steps, and what they compute for each row.

use std::{collections::HashSet, sync::Arc};

use super::Name;
use crate::{
    deep::with_stack,
    operators::Operator,
    tokens::{Column, T},
};

/// Steps, one after another.
pub type Steps = Arc<[Arc<PlanStep>]>;

/// A step of a plan: its operator, and the labels of its results.
#[derive(Debug, Clone)]
pub struct PlanStep {
    /// What it does.
    pub operator: Arc<dyn Operator>,
    /// Its labels.
    pub labels: Vec<Name>,
    /// What is read before it.
    pub together: Together,
}

/// What a step and those behind it need of the same elements, and is read in one wave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Together {
    /// Properties.
    pub names: Vec<Name>,
    /// Whether all properties are.
    pub all: bool,
    /// Whether the elements are results of the query: their ids are read, and their properties if the caller wants them.
    pub results: bool,
}

impl PartialEq for PlanStep {
    fn eq(&self, other: &Self) -> bool {
        *self.operator == *other.operator && self.labels == other.labels && self.together == other.together
    }
}

impl PlanStep {
    /// A step of some labels.
    pub fn new(operator: impl Operator, labels: Vec<Name>) -> Self {
        Self::of(Arc::new(operator), labels)
    }

    /// As [`PlanStep::new`], of an operator that is shared.
    pub fn of(operator: Arc<dyn Operator>, labels: Vec<Name>) -> Self {
        Self { operator, labels, together: Together::default() }
    }

    /// A step without labels.
    pub fn plain(operator: impl Operator) -> Self {
        Self::new(operator, Vec::new())
    }

    /// Its operator, if that is of a type.
    pub fn get<O: Operator>(&self) -> Option<&O> {
        self.operator.get()
    }

    /// Whether its operator is of a type.
    pub fn is<O: Operator>(&self) -> bool {
        self.operator.is::<O>()
    }
}

/// What a step computes for each of its results.
#[derive(Debug, Clone, PartialEq)]
pub enum By {
    /// The result itself.
    Identity,
    /// A property of it, or an entry if it is a map.
    Property(Name),
    /// Its id, label, key or value.
    Token(T),
    /// The keys or values of a map.
    Column(Column),
    /// What a traversal gives first.
    Steps(Steps),
}

/// Whether what a traversal gives for a row depends on others that came.
pub(crate) fn is_stateful(steps: &[Arc<PlanStep>]) -> bool {
    steps.iter().any(|step| step.operator.is_stateful())
}

/// Whether a traversal does something each time that it runs, besides its results: collects, writes, or draws.
pub(crate) fn acts(steps: &Steps) -> bool {
    let acts_within =
        |step: &PlanStep| step.operator.nested_steps().into_iter().any(|steps| with_stack(|| acts(steps)));
    steps.iter().any(|step| step.operator.acts() || acts_within(step))
}

/// Whether a traversal reads a side effect behind a step that adds to it: for each traverser it is another then.
pub(crate) fn reads_what_it_collects(steps: &Steps) -> bool {
    let mut collected: HashSet<&Name> = HashSet::new();
    steps.iter().any(|step| {
        collected.extend(step.operator.collects().map(|(name, _)| name));
        step.operator.reads_names().iter().any(|name| collected.contains(name))
    })
}
