//! What is known while a traversal is lowered.

use std::{cell::RefCell, collections::HashSet, sync::Arc};

use hoplake_query::{
    error::QueryError,
    operators::Operator,
    plan::{Name, PlanStep, Settings, Steps, Work},
    value::Value,
};

use super::{arguments::Bindings, strategies::Restrictions};

pub(super) type Lowered<T> = Result<T, QueryError>;

/// An operator of any type.
pub(super) type Op = Arc<dyn Operator>;

pub(super) fn op(operator: impl Operator) -> Op {
    Arc::new(operator)
}

/// A name and its value.
pub type Named = (Box<str>, Value);

/// The values of names in a query.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names<'a>(pub &'a [(Box<str>, Value)]);

impl Names<'_> {
    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(other, _)| **other == *name).map(|(_, value)| value)
    }
}

/// What is known while a traversal is lowered.
pub(super) struct Lowering<'a> {
    pub(super) names: Bindings<'a>,
    pub(super) settings: Settings,
    /// Whether hops have to name labels.
    pub(super) rejects_unlabelled: bool,
    /// Names that no new property may have.
    pub(super) reserved: HashSet<Name>,
    /// What strategies let the traversal see.
    pub(super) restrictions: Option<Restrictions>,
    /// Labels of the steps so far.
    pub(super) seen: HashSet<Name>,
    /// Names of side effects that steps so far collect.
    pub(super) collecting: HashSet<Name>,
    pub(super) work: &'a RefCell<Work>,
}

/// A traversal of one step.
pub(super) fn only(operator: impl Operator) -> Steps {
    [Arc::new(PlanStep::plain(operator))].into()
}
