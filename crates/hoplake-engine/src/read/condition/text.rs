//! How a condition is written, so that it is read as the same.

use std::fmt::{self, Display, Formatter};

use super::{
    Condition, Formula, Operand, PropertyName, PropertyOf, Requirement, ShownTest, Test,
    logic::Node,
    parse::{is_plain_property, is_plain_value},
};
use crate::{quoting, value::Value};

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: ShownTest> Display for Formula<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: ShownTest> Display for Node<T> {
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
                Self::Test(test) => test.fmt_negated(f),
                Self::Not(_) | Self::All(_) | Self::Any(_) => write!(f, "not ({inner})"),
            },
            Self::Test(test) => write!(f, "{test}"),
        }
    }
}

impl ShownTest for Test {
    fn fmt_negated(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.requirement() {
            Some(Requirement::IsNull) => {
                write_subject(self, f)?;
                f.write_str(" is not null")
            }
            Some(Requirement::Compare(..)) => write!(f, "not ({self})"),
            _ => {
                write_subject(self, f)?;
                f.write_str(" not ")?;
                write_rest(self, f)
            }
        }
    }
}

impl Display for Test {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_subject(self, f)?;
        f.write_str(" ")?;
        write_rest(self, f)
    }
}

fn write_subject(test: &Test, f: &mut Formatter<'_>) -> fmt::Result {
    match test {
        Test::Property(property, _) => write!(f, "{property}"),
        Test::VertexLabel(_) => f.write_str("vertex.~label"),
        Test::EdgeLabel(_) => f.write_str("edge.~label"),
        Test::Vertex(_) => f.write_str("vertex.~id"),
    }
}

/// What a test requires of its subject.
fn write_rest(test: &Test, f: &mut Formatter<'_>) -> fmt::Result {
    match test {
        Test::Property(_, requirement) | Test::VertexLabel(requirement) | Test::EdgeLabel(requirement) => {
            write_requirement(requirement, f)
        }
        Test::Vertex(vertices) => {
            f.write_str("in ")?;
            write_list(vertices, f)
        }
    }
}

fn write_requirement(requirement: &Requirement, f: &mut Formatter<'_>) -> fmt::Result {
    match requirement {
        Requirement::Compare(comparison, value) => write!(f, "{} {value}", comparison.sign()),
        Requirement::OneOf(values) => {
            f.write_str("in ")?;
            write_list(values, f)
        }
        Requirement::Between(least, greatest) => write!(f, "between {least} and {greatest}"),
        Requirement::StartsWith(text) => write_text("starts with", text, f),
        Requirement::EndsWith(text) => write_text("ends with", text, f),
        Requirement::Contains(value) => write!(f, "contains {value}"),
        Requirement::IsNull => f.write_str("is null"),
    }
}

/// A requirement and its text, in quotes if it needs them.
fn write_text(requirement: &str, text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{requirement} ")?;
    write_value(text, f)
}

fn write_value(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    match is_plain_value(text) {
        true => f.write_str(text),
        false => quoting::write_quoted(text, f),
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written(text) | Self::Value(Value::String(text)) => write_value(text, f),
            Self::Value(value) => write_value(&value.to_string(), f),
        }
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

fn write_list(values: impl IntoIterator<Item: Display>, f: &mut Formatter<'_>) -> fmt::Result {
    let mut before = "(";
    for value in values {
        write!(f, "{before}{value}")?;
        before = ", ";
    }
    // Without values, `in` is never true: it is written as it is read.
    f.write_str(if before == "(" { "()" } else { ")" })
}
