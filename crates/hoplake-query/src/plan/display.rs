//! Plans as people read them.

use std::fmt::{self, Display, Formatter, Write};

use super::{By, Plan, PlanStep, Predicate, Sorting, Steps};
use crate::{deep::with_stack, tokens::Order, value::Value};

/// Values that are shown of a list.
const SHOWN: usize = 5;

impl Display for Plan {
    /// A step a line, traversals within it below.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_steps(f, &self.steps, 0)
    }
}

pub(super) fn write_steps(f: &mut impl Write, steps: &Steps, depth: usize) -> fmt::Result {
    for step in steps.iter() {
        writeln!(f, "{:indent$}{step}", "", indent = depth * 2)?;
        for steps in step.operator.nested_steps() {
            with_stack(|| write_steps(f, steps, depth + 1))?;
        }
    }
    Ok(())
}

impl Display for PlanStep {
    /// What it does, without the traversals within.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.operator.name())?;
        self.operator.parameters(f)?;
        if !self.labels.is_empty() {
            write!(f, " as {}", self.labels.join(", "))?;
        }
        let together = &self.together;
        let mut parts: Vec<&str> = together.names.iter().map(|name| &**name).collect();
        if together.all {
            parts = vec!["all properties"];
        }
        if together.results {
            parts.push("what results have");
        }
        if parts.is_empty() { Ok(()) } else { write!(f, "  [reads {} together]", parts.join(", ")) }
    }
}

/// Values behind the name of an operator: the first ones, and how many more there are.
pub(crate) fn write_values(f: &mut Formatter<'_>, values: &[Value]) -> fmt::Result {
    values.iter().take(SHOWN).try_for_each(|value| write!(f, " {value}"))?;
    match values.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

/// What is sorted by, behind the name of an operator.
pub(crate) fn write_sortings(f: &mut Formatter<'_>, sortings: &[Sorting]) -> fmt::Result {
    sortings.iter().try_for_each(|(by, order)| {
        write!(f, " {by}")?;
        f.write_str(match order {
            Order::Asc => "",
            Order::Desc => " desc",
            Order::Shuffle => " shuffled",
        })
    })
}

impl Display for By {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => f.write_str("itself"),
            Self::Property(name) => f.write_str(name),
            Self::Token(token) => f.write_str(token.name()),
            Self::Column(column) => f.write_str(column.name()),
            Self::Steps(_) => f.write_str("(below)"),
        }
    }
}

impl Display for Predicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut Formatter<'_>, all: &[Self], word: &str| {
            all.iter().enumerate().try_for_each(|(at, one)| {
                f.write_str(if at == 0 { "" } else { word })?;
                write!(f, "({one})")
            })
        };
        match self {
            Self::Test(test, values) => {
                write!(f, "{}", format!("{test:?}").to_lowercase())?;
                write_values(f, values)
            }
            Self::Regex(found, pattern) => {
                write!(f, "{} {pattern}", if *found { "regex" } else { "notRegex" })
            }
            Self::And(all) => joined(f, all, " and "),
            Self::Or(all) => joined(f, all, " or "),
            Self::Not(one) => write!(f, "not ({one})"),
        }
    }
}
