//! Conditions on elements that rules extract from steps, so that the engine can test them on columns.
//!
//! The engine's [`Formula`] combines the tests, here with two truth values: an element without the property fails every test of it, and
//! passes the negation. `run::conditions` translates the formula into a condition of the engine, whose tests have three truth values.

use std::{
    fmt::{self, Display, Formatter},
    sync::Arc,
};

use hoplake_engine::{Formula, ShownTest};

use super::{Name, PlanStep, Predicate};

/// A test of an element.
#[derive(Debug, Clone, PartialEq)]
pub enum ElementTest {
    /// A value of a property matches a predicate.
    Property(Name, Arc<Predicate>),
    /// It has a property.
    HasProperty(Name),
    /// Its label matches a predicate.
    Label(Arc<Predicate>),
    /// Its id fulfils a predicate. The engine does not test it; a source may look it up.
    Id(Arc<Predicate>),
}

/// A condition on elements, and the equivalent step.
#[derive(Debug, Clone, PartialEq)]
pub struct ElementCondition {
    /// The condition that the engine can test instead of the step.
    pub formula: Formula<ElementTest>,
    /// The step, without labels. It runs where the engine cannot test the condition.
    pub step: Arc<PlanStep>,
}

impl ElementCondition {
    /// Whether it tests only labels, which are known without a read.
    pub(crate) fn is_of_labels(&self) -> bool {
        self.formula.tests().iter().all(|test| matches!(test, ElementTest::Label(_)))
    }

    /// Whether it looks at an id.
    pub(crate) fn has_id(&self) -> bool {
        self.formula.tests().iter().any(|test| matches!(test, ElementTest::Id(_)))
    }

    /// What the label has to fulfil, if that is the condition.
    pub(crate) fn label(&self) -> Option<&Arc<Predicate>> {
        if let Some(ElementTest::Label(predicate)) = self.formula.as_test() { Some(predicate) } else { None }
    }

    /// The names of the properties that it reads.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.formula.tests().into_iter().filter_map(|test| match test {
            ElementTest::Property(name, _) | ElementTest::HasProperty(name) => Some(name),
            ElementTest::Label(_) | ElementTest::Id(_) => None,
        })
    }

    /// Writes the conjunction of conditions in the form that `explain` shows.
    pub(crate) fn write_all(f: &mut Formatter<'_>, conditions: &[Self]) -> fmt::Result {
        match Formula::all(conditions.iter().map(|condition| condition.formula.clone())) {
            Some(all) => write!(f, " {all}"),
            None => Ok(()),
        }
    }
}

impl Display for ElementTest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Property(name, predicate) => write_test(f, name, predicate),
            Self::HasProperty(name) => write!(f, "{name} is not null"),
            Self::Label(predicate) => write_test(f, "label", predicate),
            Self::Id(predicate) => write_test(f, "id", predicate),
        }
    }
}

impl ShownTest for ElementTest {
    fn fmt_negated(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::HasProperty(name) => write!(f, "{name} is null"),
            other => write!(f, "not ({other})"),
        }
    }
}

fn write_test(f: &mut Formatter<'_>, what: &str, predicate: &Predicate) -> fmt::Result {
    match predicate {
        Predicate::And(_) | Predicate::Or(_) => write!(f, "{what} ({predicate})"),
        _ => write!(f, "{what} {predicate}"),
    }
}
