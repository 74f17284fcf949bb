//! What a query means: steps, each with an [`Operator`](crate::operators::Operator). A language is lowered to it, and rejects what is not supported.

mod display;
mod element_condition;
mod explain;
mod formula;
mod options;
mod parameters;
mod pattern;
mod predicate;
mod rules;
mod settings;
mod step;
mod work;

pub(crate) use self::rules::read_together;
pub(crate) use self::{
    display::{write_sortings, write_values},
    predicate::every,
    step::{acts, is_stateful, reads_what_it_collects},
};
pub use self::{
    element_condition::{ElementCondition, ElementTest},
    explain::explain,
    formula::Formula,
    options::*,
    parameters::*,
    pattern::Pattern,
    predicate::{Predicate, Test, units},
    rules::{TOGETHER_NAMES_MAX, apply as apply_rules},
    settings::{Collects, Name, Paths, Settings, SideEffect},
    step::{By, PlanStep, Steps, Together},
    work::{STEP_BYTES, Work},
};

/// A traversal that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its steps.
    pub steps: Steps,
    /// How all of them run.
    pub settings: Settings,
}

impl Plan {
    /// Whether it writes.
    pub fn writes(&self) -> bool {
        self.settings.writes
    }
}
