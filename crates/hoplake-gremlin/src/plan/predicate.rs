//! Tests of values.

use std::cmp::Ordering;

use crate::{
    literal::Number,
    script::Test,
    tokens::{GType, Token},
    value::{Unread, Value, compare, equals},
};

/// A test of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// A comparison with values.
    Test(Test, Vec<Value>),
    /// A regular expression is found in it, or is not.
    Regex(bool, Box<Pattern>),
    /// All of them.
    And(Vec<Predicate>),
    /// One of them.
    Or(Vec<Predicate>),
    /// Not it.
    Not(Box<Predicate>),
}

/// A regular expression; two are equal if their texts are.
#[derive(Debug, Clone)]
pub struct Pattern(pub regex::Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Predicate {
    /// Whether a value fulfils it.
    pub fn test(&self, value: &Value) -> bool {
        match self {
            Self::And(all) => all.iter().all(|one| one.test(value)),
            Self::Or(all) => all.iter().any(|one| one.test(value)),
            Self::Not(one) => !one.test(value),
            Self::Regex(found, regex) => match value {
                Value::Text(text) => regex.0.is_match(text) == *found,
                _ => false,
            },
            Self::Test(test, values) => fulfils(*test, value, values),
        }
    }

    /// Whether the values of a property fulfil it. Parts that all have to hold are conditions of their own, as in TinkerPop: of several
    /// values one may fulfil one part, and one another.
    pub fn test_any(&self, values: &[Value]) -> bool {
        let any = |test: &dyn Fn(Option<Ordering>) -> bool, other: Option<&Value>| {
            other.is_some_and(|other| values.iter().any(|value| test(compare(value, other))))
        };
        let is_less = |order: Option<Ordering>| order == Some(Ordering::Less);
        match self {
            Self::And(all) => all.iter().all(|one| one.test_any(values)),
            Self::Test(Test::Between, ends) => {
                any(&|order| order.is_some_and(Ordering::is_ge), ends.first()) && any(&is_less, ends.get(1))
            }
            Self::Test(Test::Inside, ends) => {
                any(&|order| order == Some(Ordering::Greater), ends.first()) && any(&is_less, ends.get(1))
            }
            one => values.iter().any(|value| one.test(value)),
        }
    }

    /// The same predicate, of other values.
    pub fn map<E>(&self, change: &mut impl FnMut(&Value) -> Result<Value, E>) -> Result<Self, E> {
        let mut all = |predicates: &[Self]| predicates.iter().map(|it| it.map(change)).collect::<Result<Vec<_>, E>>();
        Ok(match self {
            Self::And(predicates) => Self::And(all(predicates)?),
            Self::Or(predicates) => Self::Or(all(predicates)?),
            Self::Not(predicate) => Self::Not(Box::new(predicate.map(change)?)),
            Self::Regex(found, regex) => Self::Regex(*found, regex.clone()),
            Self::Test(test, values) => Self::Test(*test, values.iter().map(change).collect::<Result<_, E>>()?),
        })
    }

    /// Calls `look` with each of its values.
    pub fn values<'a>(&'a self, look: &mut impl FnMut(&'a Value)) {
        match self {
            Self::And(predicates) | Self::Or(predicates) => predicates.iter().for_each(|it| it.values(look)),
            Self::Not(predicate) => predicate.values(look),
            Self::Regex(..) => {}
            Self::Test(_, values) => values.iter().for_each(look),
        }
    }
}

fn fulfils(test: Test, value: &Value, values: &[Value]) -> bool {
    let first = || values.first().unwrap_or(&Value::Null);
    let second = || values.get(1).unwrap_or(&Value::Null);
    let order = |other: &Value| compare(value, other);
    match test {
        Test::Eq => equals(value, first()),
        Test::Neq => !equals(value, first()),
        Test::Lt => order(first()) == Some(Ordering::Less),
        Test::Lte => order(first()).is_some_and(Ordering::is_le),
        Test::Gt => order(first()) == Some(Ordering::Greater),
        Test::Gte => order(first()).is_some_and(Ordering::is_ge),
        Test::Inside => order(first()) == Some(Ordering::Greater) && order(second()) == Some(Ordering::Less),
        Test::Outside => order(first()) == Some(Ordering::Less) || order(second()) == Some(Ordering::Greater),
        Test::Between => order(first()).is_some_and(Ordering::is_ge) && order(second()) == Some(Ordering::Less),
        Test::Within => values.iter().any(|other| equals(value, other)),
        Test::Without => !values.iter().any(|other| equals(value, other)),
        Test::StartingWith => texts(value, first()).is_some_and(|(text, part)| text.starts_with(part)),
        Test::NotStartingWith => texts(value, first()).is_some_and(|(text, part)| !text.starts_with(part)),
        Test::EndingWith => texts(value, first()).is_some_and(|(text, part)| text.ends_with(part)),
        Test::NotEndingWith => texts(value, first()).is_some_and(|(text, part)| !text.ends_with(part)),
        Test::Containing => texts(value, first()).is_some_and(|(text, part)| text.contains(part)),
        Test::NotContaining => texts(value, first()).is_some_and(|(text, part)| !text.contains(part)),
        Test::TypeOf => match first() {
            Value::Token(Token::GType(kind)) => is_of(value, *kind),
            _ => false,
        },
        // They have a form of their own.
        Test::Regex | Test::NotRegex => false,
    }
}

fn texts<'a>(value: &'a Value, part: &'a Value) -> Option<(&'a str, &'a str)> {
    match (value, part) {
        (Value::Text(text), Value::Text(part)) => Some((text, part)),
        _ => None,
    }
}

/// Whether a value is of a type.
pub fn is_of(value: &Value, kind: GType) -> bool {
    match (kind, value) {
        (GType::Null, Value::Null)
        | (GType::Boolean, Value::Boolean(_))
        | (GType::Number, Value::Number(_))
        | (GType::String, Value::Text(_))
        | (GType::Char, Value::Char(_))
        | (GType::DateTime, Value::DateTime(..))
        | (GType::Duration, Value::Duration(_))
        | (GType::Uuid, Value::Uuid(_))
        | (GType::Binary, Value::Bytes(_))
        | (GType::List, Value::List(_))
        | (GType::Set, Value::Set(_) | Value::BulkSet(_))
        | (GType::Map, Value::Map(_))
        | (GType::Path, Value::Path(_))
        | (GType::Tree, Value::Tree(_))
        | (GType::Graph, Value::Graph(_))
        | (GType::Vertex, Value::Vertex(_))
        | (GType::Edge, Value::Edge(_))
        | (GType::VertexProperty, Value::VertexProperty(_))
        | (GType::Property, Value::Property(_)) => true,
        (GType::Vertex, Value::Unread(element)) => matches!(**element, Unread::Vertex(_)),
        (GType::Edge, Value::Unread(element)) => matches!(**element, Unread::Edge(_)),
        (GType::VertexProperty, Value::Unread(element)) => matches!(**element, Unread::VertexProperty(_)),
        (GType::Property, Value::Unread(element)) => {
            matches!(**element, Unread::Property(_) | Unread::VertexProperty(_))
        }
        (kind, Value::Number(number)) => matches!(
            (kind, number),
            (GType::Byte, Number::Byte(_))
                | (GType::Short, Number::Short(_))
                | (GType::Int, Number::Int(_))
                | (GType::Long, Number::Long(_))
                | (GType::BigInt, Number::BigInteger(_))
                | (GType::Float, Number::Float(_))
                | (GType::Double, Number::Double(_))
                | (GType::BigDecimal, Number::BigDecimal(_))
        ),
        _ => false,
    }
}
