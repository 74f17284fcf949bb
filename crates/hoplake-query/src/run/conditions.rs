//! Predicates as conditions of the engine, for a label whose properties have types: as far as both mean the same.

use std::sync::Arc;

use hoplake_engine::{Comparison, Condition, PropertyName, PropertyOf, Requirement, change};
use hoplake_format::{ItemType, Property, PropertyType, ScalarType, VertexLabel};

use crate::{
    error::QueryError,
    growth::Growth,
    operators::sources::VertexConditions,
    plan::{Name, Predicate, Test, every},
    value::{Value, equals, to_f64, to_i64, value_bytes},
};

/// Tests of a condition, at most: the engine has a verdict of each for every row, and refuses conditions of more than a thousand.
const TESTS_MAX: usize = 200;

/// Values of a predicate that are looked at when only a guess is needed.
const GUESSED_MAX: usize = 64;

/// How many times a value is there: in the condition, in its copy for a label, and in the column of the property's type.
const VALUE_COPIES: usize = 3;

/// What the vertices of a label have to fulfil.
#[derive(Debug)]
pub(crate) enum Of {
    /// None can.
    None,
    /// A condition of the engine, if there is one, and what it takes; predicates that it cannot test.
    Some(Option<Condition>, u64, Vec<(Name, Arc<Predicate>)>),
}

/// How a predicate reads for the engine.
enum Reads {
    Never,
    Exactly(Condition),
    NotAtAll,
}

/// The conditions that what is sought is for the vertices of a label. Those on computed properties are left.
///
/// # Errors
/// A limit of the query.
pub(crate) fn of(
    label: &VertexLabel,
    found: &VertexConditions,
    is_computed: impl Fn(&str) -> bool,
    growth: &Growth,
) -> Result<Of, QueryError> {
    if !fulfils(&label.name, found.labels.iter().map(|predicate| &**predicate), growth)? {
        return Ok(Of::None);
    }
    of_properties(PropertyOf::Either, &label.properties, &found.properties, is_computed, growth)
}

/// The conditions on some properties, of what has properties of these types.
///
/// # Errors
/// A limit of the query.
pub(crate) fn of_properties(
    of: PropertyOf,
    known: &[Property],
    predicates: &[(Name, Arc<Predicate>)],
    is_computed: impl Fn(&str) -> bool,
    growth: &Growth,
) -> Result<Of, QueryError> {
    let mut condition: Option<Condition> = None;
    let mut tests = 0;
    let mut bytes = 0;
    let mut left = Vec::new();
    for (name, predicate) in predicates {
        growth.work(1 + known.len() as u64 / 8)?;
        let of_engine = tests + predicate.tests() <= TESTS_MAX && !is_computed(name);
        let property = known.iter().find(|property| property.name == **name);
        let property = match property {
            Some(property) if of_engine => property,
            None if !is_computed(name) => return Ok(Of::None),
            _ => {
                left.push((name.clone(), predicate.clone()));
                continue;
            }
        };
        let mut copied_bytes = 0;
        predicate.values(&mut |value| copied_bytes += VALUE_COPIES * value_bytes(value));
        growth.take(copied_bytes)?;
        match reads(&PropertyName { name: name.to_string(), of }, property, predicate) {
            Reads::Never => return Ok(Of::None),
            Reads::Exactly(part) => {
                tests += predicate.tests();
                bytes += copied_bytes;
                condition = Some(match condition {
                    Some(before) => before.and(part),
                    None => part,
                });
            }
            Reads::NotAtAll => left.push((name.clone(), predicate.clone())),
        }
    }
    Ok(Of::Some(condition, bytes as u64, left))
}

/// Whether vertices of a label may be among those that are sought: a guess, that costs little and may be wrong where one is.
pub(crate) fn is_possible(label: &VertexLabel, found: &VertexConditions, growth: &Growth) -> bool {
    let is_small = |predicate: &&Arc<Predicate>| predicate.has_at_most(GUESSED_MAX);
    let of_label = found.labels.iter().filter(is_small).map(|predicate| &**predicate);
    fulfils(&label.name, of_label, growth).unwrap_or(true)
        && found.properties.iter().take(GUESSED_MAX).all(|(name, predicate)| {
            label.properties.iter().find(|property| property.name == **name).is_some_and(|property| {
                !is_small(&predicate) || !matches!(reads(&name.as_ref().into(), property, predicate), Reads::Never)
            })
        })
}

/// Whether a label fulfils predicates.
///
/// # Errors
/// A limit of the query.
pub(crate) fn fulfils<'a>(
    label: &str,
    predicates: impl IntoIterator<Item = &'a Predicate>,
    growth: &Growth,
) -> Result<bool, QueryError> {
    let label = Value::from(label);
    every(predicates, |predicate| predicate.test(&label, growth))
}

fn reads(name: &PropertyName, property: &Property, predicate: &Predicate) -> Reads {
    let PropertyType::Scalar(kind) = property.kind else { return Reads::NotAtAll };
    match predicate {
        Predicate::And(all) => {
            let mut condition: Option<Condition> = None;
            for predicate in all {
                match reads(name, property, predicate) {
                    Reads::Exactly(part) => {
                        condition = Some(condition.map_or(part.clone(), |before| before.and(part.clone())));
                    }
                    other => return other,
                }
            }
            condition.map_or(Reads::NotAtAll, Reads::Exactly)
        }
        // A number of 32 bits is stored by its decimal form, and compared by its own.
        Predicate::Test(..) if property.logical.item == Some(ItemType::Float32) => Reads::NotAtAll,
        // Texts are stored, and are not the values: what equals one may be pushed, and their order is another.
        Predicate::Test(test, values) if property.logical.item == Some(ItemType::Uuid) => match test {
            Test::Eq | Test::Neq | Test::Within => test_reads(name, kind, *test, &texts_of_uuids(values)),
            _ => Reads::NotAtAll,
        },
        Predicate::Test(test, values) => test_reads(name, kind, *test, values),
        _ => Reads::NotAtAll,
    }
}

fn test_reads(name: &PropertyName, kind: ScalarType, test: Test, values: &[Value]) -> Reads {
    let compare = |comparison: Comparison, value: &Value| match stored_as(kind, value) {
        Stored::As(value) => Reads::Exactly(Condition::compare(name.clone(), comparison, value)),
        Stored::Never if comparison == Comparison::Equal => Reads::Never,
        _ => Reads::NotAtAll,
    };
    // A NaN is greater than all others for the engine, and than none here.
    let has_order = kind != ScalarType::Float64;
    let first = values.first();
    let both = |left: Reads, right: Reads| match (left, right) {
        (Reads::Exactly(left), Reads::Exactly(right)) => Reads::Exactly(left.and(right)),
        _ => Reads::NotAtAll,
    };
    match (test, first) {
        (Test::Eq, Some(value)) => compare(Comparison::Equal, value),
        (Test::Neq, Some(value)) => compare(Comparison::NotEqual, value),
        (Test::Lt, Some(value)) => compare(Comparison::Less, value),
        (Test::Lte, Some(value)) => compare(Comparison::LessOrEqual, value),
        (Test::Gt, Some(value)) if has_order => compare(Comparison::Greater, value),
        (Test::Gte, Some(value)) if has_order => compare(Comparison::GreaterOrEqual, value),
        (Test::Between, Some(low)) if has_order && values.len() == 2 => {
            both(compare(Comparison::GreaterOrEqual, low), compare(Comparison::Less, &values[1]))
        }
        (Test::Inside, Some(low)) if has_order && values.len() == 2 => {
            both(compare(Comparison::Greater, low), compare(Comparison::Less, &values[1]))
        }
        (Test::Within, _) => {
            let mut stored = Vec::new();
            for value in values {
                match stored_as(kind, value) {
                    Stored::As(value) => stored.push(value),
                    Stored::Never => {}
                    Stored::Unclear => return Reads::NotAtAll,
                }
            }
            match stored.is_empty() {
                true => Reads::Never,
                false => Reads::Exactly(Condition::one_of(name.clone(), stored)),
            }
        }
        (Test::StartingWith, Some(Value::Text(text))) if kind == ScalarType::String => {
            Reads::Exactly(Condition::test(name.clone(), Requirement::StartsWith(text.to_string())))
        }
        (Test::Containing, Some(Value::Text(text))) if kind == ScalarType::String => {
            Reads::Exactly(Condition::test(name.clone(), Requirement::Contains(change::Value::from(&**text).into())))
        }
        _ => Reads::NotAtAll,
    }
}

/// UUIDs as the texts that they are stored as; what is stored equals no other value.
fn texts_of_uuids(values: &[Value]) -> Vec<Value> {
    let text = |value: &Value| match value {
        Value::Uuid(uuid) => Value::Text(uuid.to_string().into()),
        _ => Value::Null,
    };
    values.iter().map(text).collect()
}

/// What a property's type has of a value.
enum Stored {
    /// This equals it.
    As(change::Value),
    /// No value of the type equals it.
    Never,
    /// One might.
    Unclear,
}

fn stored_as(kind: ScalarType, value: &Value) -> Stored {
    match (kind, value) {
        (ScalarType::String, Value::Text(text)) => Stored::As(change::Value::from(&**text)),
        (ScalarType::Bool, Value::Boolean(boolean)) => Stored::As(change::Value::Bool(*boolean)),
        (ScalarType::Int64, Value::Number(number)) => {
            let rounded = to_i64(number);
            match equals(value, &rounded.into()) {
                true => Stored::As(change::Value::Int64(rounded)),
                // Between two integers: equal to none, and greater than some.
                false => Stored::Unclear,
            }
        }
        (ScalarType::Float64, Value::Number(number)) => {
            let float = to_f64(number);
            match float.is_finite() && equals(value, &float.into()) {
                true => Stored::As(change::Value::Float64(float)),
                false => Stored::Unclear,
            }
        }
        (
            ScalarType::String | ScalarType::Bool | ScalarType::Int64 | ScalarType::Float64,
            Value::Null | Value::Text(_) | Value::Boolean(_) | Value::Number(_),
        ) => Stored::Never,
        _ => Stored::Unclear,
    }
}
