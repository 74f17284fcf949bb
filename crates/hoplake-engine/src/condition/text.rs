//! How a condition is written, so that it is read as the same.

use std::fmt::{self, Display, Formatter};

use super::{
    Condition, Node, PropertyName, PropertyOf, Requirement, Test,
    parse::{is_plain_property, is_plain_value},
};
use crate::quoting;

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let join = |parts: &[Self], word: &str, f: &mut Formatter<'_>| {
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    write!(f, " {word} ")?;
                }
                // `or` within `and` needs its parentheses, and `and` within `or` reads better with them.
                match part {
                    Self::All(_) | Self::Any(_) => write!(f, "({part})")?,
                    Self::Not(_) | Self::Test(_) => write!(f, "{part}")?,
                }
            }
            Ok(())
        };
        match self {
            Self::All(parts) => join(parts, "and", f),
            Self::Any(parts) => join(parts, "or", f),
            Self::Not(inner) => match &**inner {
                Self::Test(Test { property, requirement: Requirement::IsNull }) => write!(f, "{property} is not null"),
                Self::Test(Test { requirement: Requirement::Compare(..), .. })
                | Self::Not(_)
                | Self::All(_)
                | Self::Any(_) => {
                    write!(f, "not ({inner})")
                }
                Self::Test(Test { property, requirement }) => {
                    write!(f, "{property} not ")?;
                    write_requirement(requirement, f)
                }
            },
            Self::Test(test) => write!(f, "{test}"),
        }
    }
}

impl Display for Test {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.property)?;
        write_requirement(&self.requirement, f)
    }
}

fn write_requirement(requirement: &Requirement, f: &mut Formatter<'_>) -> fmt::Result {
    match requirement {
        Requirement::Compare(comparison, value) => {
            write!(f, "{} ", comparison.sign())?;
            write_value(value, f)
        }
        Requirement::OneOf(values) => {
            f.write_str("in ")?;
            write_list(values, f)
        }
        Requirement::Between(least, greatest) => {
            f.write_str("between ")?;
            write_value(least, f)?;
            f.write_str(" and ")?;
            write_value(greatest, f)
        }
        Requirement::StartsWith(text) => {
            f.write_str("starts with ")?;
            write_value(text, f)
        }
        Requirement::Contains(text) => {
            f.write_str("contains ")?;
            write_value(text, f)
        }
        Requirement::IsNull => f.write_str("is null"),
    }
}

impl Display for PropertyName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.of {
            PropertyOf::Either => "",
            PropertyOf::Edge => "edge.",
            PropertyOf::Vertex => "vertex.",
        })?;
        match is_plain_property(&self.name) {
            true => f.write_str(&self.name),
            false => quoting::write_quoted(&self.name, f),
        }
    }
}

fn write_value(value: &str, f: &mut Formatter<'_>) -> fmt::Result {
    match is_plain_value(value) {
        true => f.write_str(value),
        false => quoting::write_quoted(value, f),
    }
}

fn write_list(values: &[String], f: &mut Formatter<'_>) -> fmt::Result {
    for (at, value) in values.iter().enumerate() {
        f.write_str(if at == 0 { "(" } else { ", " })?;
        write_value(value, f)?;
    }
    // Without values, `in` is never true: it is written as it is read.
    f.write_str(if values.is_empty() { "()" } else { ")" })
}
