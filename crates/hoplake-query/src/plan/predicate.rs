//! Tests of values.
//!
//! A test is work of its query: `within` may have a million values, and a text a megabyte, for each of a million rows.

use std::{cmp::Ordering, mem};

use super::pattern::Pattern;
use crate::{
    error::Done,
    growth::{Growth, units_of},
    literal::Number,
    tokens::{GType, Token},
    value::{Unread, Value, compare, equals, value_bytes},
};

/// Values of `within` that are compared between two looks at how long it takes.
const PIECE_VALUES: usize = 64;

/// What a predicate tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is what it is called")]
pub enum Test {
    Eq,
    Neq,
    Lt,
    Lte,
    Gt,
    Gte,
    Inside,
    Outside,
    Between,
    Within,
    Without,
    StartingWith,
    NotStartingWith,
    EndingWith,
    NotEndingWith,
    Containing,
    NotContaining,
    Regex,
    NotRegex,
    TypeOf,
}

impl Test {
    /// The test of a name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Eq,
            "neq" => Self::Neq,
            "lt" => Self::Lt,
            "lte" => Self::Lte,
            "gt" => Self::Gt,
            "gte" => Self::Gte,
            "inside" => Self::Inside,
            "outside" => Self::Outside,
            "between" => Self::Between,
            "within" => Self::Within,
            "without" => Self::Without,
            "startingWith" => Self::StartingWith,
            "notStartingWith" => Self::NotStartingWith,
            "endingWith" => Self::EndingWith,
            "notEndingWith" => Self::NotEndingWith,
            "containing" => Self::Containing,
            "notContaining" => Self::NotContaining,
            "regex" => Self::Regex,
            "notRegex" => Self::NotRegex,
            "typeOf" => Self::TypeOf,
            _ => return None,
        })
    }
}

/// A test of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// A comparison with values.
    Test(Test, Vec<Value>),
    /// A regular expression is found in it, or is not.
    Regex(bool, Pattern),
    /// All of them.
    And(Vec<Predicate>),
    /// One of them.
    Or(Vec<Predicate>),
    /// Not it.
    Not(Box<Predicate>),
}

impl Predicate {
    /// Whether a value matches it.
    ///
    /// # Errors
    /// A limit, if the query's time is over; what a regular expression cannot do.
    pub(crate) fn test(&self, value: &Value, growth: &Growth) -> Done<bool> {
        match self {
            Self::And(all) => every(all, |one| one.test(value, growth)),
            Self::Or(all) => some(all, |one| one.test(value, growth)),
            Self::Not(one) => Ok(!one.test(value, growth)?),
            Self::Regex(found, pattern) => match value {
                Value::Text(text) => Ok(pattern.is_in(text, growth)? == *found),
                _ => Ok(false),
            },
            Self::Test(Test::Within, values) => is_within(value, values, growth),
            Self::Test(Test::Without, values) => Ok(!is_within(value, values, growth)?),
            Self::Test(test, values) => {
                growth.work(values.iter().map(|other| units(value, other)).sum())?;
                Ok(matches(*test, value, values))
            }
        }
    }

    /// Whether the values of a property match it. Parts that all have to hold are conditions of their own, as in the reference: of several
    /// values one may match one part, and one another.
    ///
    /// # Errors
    /// As [`Self::test`].
    pub(crate) fn test_any(&self, values: &[Value], growth: &Growth) -> Done<bool> {
        let any = |test: &dyn Fn(Option<Ordering>) -> bool, other| any_is(values, test, other, growth);
        let is_at_least = |order: Option<Ordering>| order.is_some_and(Ordering::is_ge);
        match self {
            Self::And(all) => every(all, |one| one.test_any(values, growth)),
            Self::Test(Test::Between, ends) => Ok(any(&is_at_least, ends.first())? && any(&is_less, ends.get(1))?),
            Self::Test(Test::Inside, ends) => Ok(any(&is_greater, ends.first())? && any(&is_less, ends.get(1))?),
            Self::Not(one) => one.test_any_not(values, growth),
            one => some(values, |value| one.test(value, growth)),
        }
    }

    /// Whether the values of a property match that it is not so. That it is none of some is that each of them is not, which are parts.
    fn test_any_not(&self, values: &[Value], growth: &Growth) -> Done<bool> {
        let any = |test: &dyn Fn(Option<Ordering>) -> bool, other| any_is(values, test, other, growth);
        match self {
            Self::Not(one) => one.test_any(values, growth),
            Self::Or(all) => every(all, |one| one.test_any_not(values, growth)),
            Self::Test(Test::Outside, ends) => {
                Ok(any(&|order| !is_less(order), ends.first())? && any(&|order| !is_greater(order), ends.get(1))?)
            }
            one => some(values, |value| Ok(!one.test(value, growth)?)),
        }
    }

    /// The same predicate, of other values.
    pub fn map<E>(&self, change: &mut impl FnMut(&Value) -> Result<Value, E>) -> Result<Self, E> {
        let mut all = |predicates: &[Self]| predicates.iter().map(|it| it.map(change)).collect::<Result<Vec<_>, E>>();
        Ok(match self {
            Self::And(predicates) => Self::And(all(predicates)?),
            Self::Or(predicates) => Self::Or(all(predicates)?),
            Self::Not(predicate) => Self::Not(Box::new(predicate.map(change)?)),
            Self::Regex(found, pattern) => Self::Regex(*found, pattern.clone()),
            Self::Test(test, values) => Self::Test(*test, values.iter().map(change).collect::<Result<_, E>>()?),
        })
    }

    /// How many tests it is made of. One between two values is two for the engine.
    pub(crate) fn tests(&self) -> usize {
        match self {
            Self::And(all) | Self::Or(all) => all.iter().map(Self::tests).sum(),
            Self::Not(one) => one.tests(),
            Self::Regex(..) => 1,
            Self::Test(..) => 2,
        }
    }

    /// Whether it has no more than some values and parts. Not more of it is looked at.
    pub(crate) fn has_at_most(&self, most: usize) -> bool {
        fn left(predicate: &Predicate, most: usize) -> Option<usize> {
            match predicate {
                Predicate::And(all) | Predicate::Or(all) => all.iter().try_fold(most, |most, one| left(one, most)),
                Predicate::Not(one) => left(one, most),
                Predicate::Regex(..) => most.checked_sub(1),
                Predicate::Test(_, values) => most.checked_sub(values.len().max(1)),
            }
        }
        left(self, most).is_some()
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

/// Whether the order of one of some values, next to another, is so.
fn any_is(
    values: &[Value],
    test: &dyn Fn(Option<Ordering>) -> bool,
    other: Option<&Value>,
    growth: &Growth,
) -> Done<bool> {
    let Some(other) = other else { return Ok(false) };
    growth.work(values.iter().map(|value| units(value, other)).sum())?;
    Ok(values.iter().any(|value| test(compare(value, other))))
}

fn is_less(order: Option<Ordering>) -> bool {
    order == Some(Ordering::Less)
}

fn is_greater(order: Option<Ordering>) -> bool {
    order == Some(Ordering::Greater)
}

fn matches(test: Test, value: &Value, values: &[Value]) -> bool {
    let first = || values.first().unwrap_or(&Value::Null);
    let second = || values.get(1).unwrap_or(&Value::Null);
    let order = |other: &Value| compare(value, other);
    // No text begins, ends with or contains anything.
    let is_null = *value == Value::Null;
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
        Test::StartingWith => texts(value, first()).is_some_and(|(text, part)| text.starts_with(part)),
        Test::NotStartingWith => is_null || texts(value, first()).is_some_and(|(text, part)| !text.starts_with(part)),
        Test::EndingWith => texts(value, first()).is_some_and(|(text, part)| text.ends_with(part)),
        Test::NotEndingWith => is_null || texts(value, first()).is_some_and(|(text, part)| !text.ends_with(part)),
        Test::Containing => texts(value, first()).is_some_and(|(text, part)| text.contains(part)),
        Test::NotContaining => is_null || texts(value, first()).is_some_and(|(text, part)| !text.contains(part)),
        Test::TypeOf => match first() {
            Value::Token(Token::GType(kind)) => is_of(value, *kind),
            _ => false,
        },
        // They have forms of their own.
        Test::Within | Test::Without | Test::Regex | Test::NotRegex => false,
    }
}

fn is_within(value: &Value, values: &[Value], growth: &Growth) -> Done<bool> {
    some(values.chunks(PIECE_VALUES), |piece| {
        growth.work(piece.iter().map(|other| units(value, other)).sum())?;
        Ok(piece.iter().any(|other| equals(value, other)))
    })
}

/// The work of comparing two values. Values of two types are unequal without a comparison.
pub fn units(value: &Value, other: &Value) -> u64 {
    let are_sets = matches!((value, other), (Value::Set(_), Value::BulkSet(_)) | (Value::BulkSet(_), Value::Set(_)));
    let bytes = match are_sets || mem::discriminant(value) == mem::discriminant(other) {
        true => value_bytes(value).saturating_add(value_bytes(other)),
        false => 0,
    };
    units_of(bytes)
}

/// Whether a test that may fail is true of all; after the first that is not, none is asked.
pub(crate) fn every<T>(all: impl IntoIterator<Item = T>, test: impl Fn(T) -> Done<bool>) -> Done<bool> {
    Ok(!some(all, |one| Ok(!test(one)?))?)
}

/// Whether it is true of one.
fn some<T>(all: impl IntoIterator<Item = T>, test: impl Fn(T) -> Done<bool>) -> Done<bool> {
    for one in all {
        if test(one)? {
            return Ok(true);
        }
    }
    Ok(false)
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

#[cfg(test)]
mod tests {
    use hoplake_storage::QueryContext;

    use super::*;

    /// As the reference takes them apart: `not(outside(a, b))` is `not(lt(a))` and `not(gt(b))`, each of which one of several values may match.
    #[test]
    fn values_of_a_property_match_parts() {
        let growth = Growth::new(&QueryContext::new()).unwrap();
        let test = |test, values: &[i64]| Predicate::Test(test, values.iter().map(|it| Value::from(*it)).collect());
        let not = |one| Predicate::Not(Box::new(one));
        let outside = test(Test::Outside, &[7, 3]);
        let either = Predicate::Or(vec![test(Test::Lt, &[7]), test(Test::Gt, &[3])]);
        for (predicate, values, expected) in [
            (not(outside.clone()), &[8, 2][..], true),
            (not(outside.clone()), &[5, 5], false),
            (not(either.clone()), &[8, 2], true),
            (not(either.clone()), &[8, 8], false),
            (not(not(test(Test::Inside, &[3, 7]))), &[8, 2], true),
            (not(test(Test::Inside, &[3, 7])), &[5, 5], false),
            (not(test(Test::Inside, &[3, 7])), &[5, 9], true),
            (outside, &[4, 4], true),
            (either, &[4], true),
        ] {
            let values: Vec<Value> = values.iter().map(|it| Value::from(*it)).collect();
            assert_eq!(predicate.test_any(&values, &growth).unwrap(), expected, "{predicate} of {values:?}");
        }
    }

    #[test]
    fn null_is_no_text_and_contains_none() {
        let growth = Growth::new(&QueryContext::new()).unwrap();
        let test = |test, value: Value| Predicate::Test(test, vec!["a".into()]).test(&value, &growth).unwrap();
        for (positive, negative) in [
            (Test::StartingWith, Test::NotStartingWith),
            (Test::EndingWith, Test::NotEndingWith),
            (Test::Containing, Test::NotContaining),
        ] {
            assert!(test(positive, "a".into()) && !test(negative, "a".into()));
            assert!(!test(positive, Value::Null) && test(negative, Value::Null));
            assert!(!test(positive, 5.into()) && !test(negative, 5.into()));
        }
    }

    /// Each kind of test, of values that take long to compare.
    #[test]
    fn tests_end_at_the_deadline() {
        let text = || Value::from("x".repeat(2 << 20).as_str());
        let list = || Value::List(vec![1.into(); 200_000]);
        let many: Vec<Value> = (0..200_000).map(Value::from).collect();
        let test = |test, values| Predicate::Test(test, values);
        let ranges = [Test::Between, Test::Inside, Test::Outside].map(|kind| test(kind, vec![text(), text()]));
        let others = [Test::Eq, Test::Neq, Test::Lt, Test::Gte, Test::Containing, Test::StartingWith, Test::EndingWith]
            .map(|kind| test(kind, vec![text()]));
        let within = [Test::Within, Test::Without].map(|kind| test(kind, many.clone()));
        let lists = [Test::Eq, Test::Within].map(|kind| test(kind, vec![list()]));
        let context = QueryContext::new();
        context.give_time(Some(0));
        let growth = Growth::new(&context).unwrap();
        let is_late = |outcome: Done<bool>, what: &Predicate| {
            let error = outcome.expect_err(&format!("{what}").chars().take(40).collect::<String>());
            assert!(error.to_string().contains("0 ms"), "{error}");
        };
        for (predicates, value) in
            [(&ranges[..], text()), (&others[..], text()), (&within[..], (-1).into()), (&lists[..], list())]
        {
            for predicate in predicates {
                for whole in [predicate.clone(), Predicate::Not(Box::new(predicate.clone()))] {
                    is_late(whole.test(&value, &growth), predicate);
                    is_late(whole.test_any(std::slice::from_ref(&value), &growth), predicate);
                }
                is_late(Predicate::And(vec![predicate.clone()]).test(&value, &growth), predicate);
                is_late(
                    Predicate::Or(vec![predicate.clone()]).test_any(std::slice::from_ref(&value), &growth),
                    predicate,
                );
            }
        }
    }
}
