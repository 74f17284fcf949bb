//! What a query means: steps, each with an [`Operator`]. A language is lowered to it, and refuses what is not supported.

mod display;
mod element_condition;
mod explain;
mod formula;
mod parameters;
mod pattern;
mod predicate;
mod rules;
mod work;

use std::{collections::HashSet, fmt::Debug, sync::Arc};

pub(crate) use self::rules::read_together;
pub(crate) use self::{
    display::{write_sortings, write_values},
    predicate::every,
};
pub use self::{
    element_condition::{ElementCondition, ElementTest},
    explain::explain,
    formula::Formula,
    parameters::*,
    pattern::Pattern,
    predicate::{Predicate, Test, units},
    rules::{Flow, Reads, TOGETHER_NAMES_MAX, apply as apply_rules},
    work::{STEP_BYTES, Work},
};
use crate::{operators::Operator, tokens::BinaryOperator, value::Value};

/// A name that is shared by all that use it.
pub type Name = Arc<str>;

/// Steps, one after another.
pub type Steps = Arc<[Arc<Step>]>;

/// A traversal that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its steps.
    pub steps: Steps,
    /// How all of them run.
    pub settings: Settings,
}

/// What a traversal's source says of all of its steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Which part of a traverser's path is kept.
    pub paths: Paths,
    /// What each traverser carries at the beginning.
    pub sack: Option<Value>,
    /// What becomes of two sacks when a barrier makes one traverser of two.
    pub sack_merge: Option<BinaryOperator>,
    /// Whether equal traversers count as one once a barrier has merged them.
    pub without_bulk: bool,
    /// Side effects that are there from the beginning.
    pub side_effects: Vec<SideEffect>,
    /// Why steps that write are refused, if they are.
    pub read_only: Option<Name>,
    /// Side effects that steps collect: they are empty before the first value.
    pub collected: Vec<(Name, Collects)>,
    /// Whether a `by` without a value has `null`, but for properties of some names.
    pub productive: Option<HashSet<Name>>,
    /// What random steps begin with.
    pub seed: Option<i64>,
    /// Milliseconds.
    pub timeout_ms: Option<u64>,
    /// Bytes that the plan takes, and what runs it.
    pub plan_bytes: u64,
    /// Whether a step writes.
    pub writes: bool,
    /// Whether what each step took is the result, and not its results.
    pub profile: bool,
    /// Whether it may have another answer on the same version: random steps, the time.
    pub varies: bool,
}

/// Which part of a traverser's path is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Paths {
    /// None.
    #[default]
    Unused,
    /// The steps that have labels.
    Labelled,
    /// All of it.
    Whole,
}

/// What steps collect under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collects {
    /// Values.
    Values,
    /// Groups or counts.
    Map,
    /// A tree.
    Tree,
    /// A graph.
    Graph,
}

/// A side effect that is there from the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct SideEffect {
    /// Its name.
    pub name: Name,
    /// Its value.
    pub initial: Value,
    /// What is done with it and a value that a step adds.
    pub reduce: Option<BinaryOperator>,
}

/// A step, and the labels of what it gives.
#[derive(Debug, Clone)]
pub struct Step {
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

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        *self.operator == *other.operator && self.labels == other.labels && self.together == other.together
    }
}

impl Step {
    /// A step of some labels.
    pub fn new(operator: impl Operator, labels: Vec<Name>) -> Self {
        Self::of(Arc::new(operator), labels)
    }

    /// As [`Step::new`], of an operator that is shared.
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

impl Plan {
    /// Whether it writes.
    pub fn writes(&self) -> bool {
        self.settings.writes
    }
}

/// Whether what a traversal gives for a row depends on others that came.
pub(crate) fn is_stateful(steps: &[Arc<Step>]) -> bool {
    steps.iter().any(|step| step.operator.is_stateful())
}
