//! Whether a result is what a scenario expects.
//!
//! | value | is the same if |
//! | --- | --- |
//! | number | it is equal, and of the same type if [`Types`] count; a float within 10⁻¹⁵, as Java's runner allows |
//! | element | its kind and id are |
//! | property | its key and value are |
//! | list | its items are, in their order |
//! | set, map | its items are, in any order |
//! | bulk set | a list or bulk set has the same items in any order, as drivers get it as a list |
//! | path | its objects are; scenarios do not write labels |
//! | tree | its branches are, in any order |
//! | anything else | the language takes them for equal |
//!
//! Java's runner compares the types of numbers, and Python's does not: its driver has one type of integers and one of floats.

use std::mem::discriminant;

use hoplake::gremlin::{
    literal::Number,
    value::{Tree, Value, equals},
};

use crate::show::show_all;

/// The rounding that Java's runner allows.
const TOLERANCE: f64 = 1e-15;

/// Whether `d[1].i` and `d[1].l` differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Types {
    Count,
    DoNotCount,
}

/// Whether a result is what is expected.
pub fn same(actual: &Value, expected: &Value, types: Types) -> bool {
    let same = |left: &Value, right: &Value| same(left, right, types);
    match (actual, expected) {
        (Value::Number(left), Value::Number(right)) => numbers(left, right, types),
        (Value::Vertex(left), Value::Vertex(right)) => same(&left.id, &right.id),
        (Value::Edge(left), Value::Edge(right)) => same(&left.id, &right.id),
        (Value::VertexProperty(left), Value::VertexProperty(right)) => same(&left.id, &right.id),
        (Value::Property(left), Value::Property(right)) => left.key == right.key && same(&left.value, &right.value),
        (Value::List(left), Value::List(right)) => in_order(left, right, types),
        (Value::Set(left), Value::Set(right)) => in_any_order(left, right, same),
        (Value::BulkSet(_), Value::BulkSet(_) | Value::List(_)) => in_any_order(&items(actual), &items(expected), same),
        (Value::Map(left), Value::Map(right)) => {
            in_any_order(left, right, |(key, value), (other_key, other)| same(key, other_key) && same(value, other))
        }
        (Value::Path(left), Value::Path(right)) => {
            left.steps.len() == right.steps.len()
                && left.steps.iter().zip(&right.steps).all(|((left, _), (right, _))| same(left, right))
        }
        (Value::Tree(left), Value::Tree(right)) => trees(left, right, types),
        (Value::Token(left), Value::Token(right)) => left == right,
        (Value::Traverser(left), right) => same(&left.value, right),
        (left, right) => equals(left, right),
    }
}

/// The items of a collection, each as often as it is in it, and the objects of a path; a map's entries are maps of one entry. Any other
/// value is an item.
pub fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::List(items) | Value::Set(items) => items.clone(),
        Value::BulkSet(items) => items
            .iter()
            .flat_map(|(item, bulk)| std::iter::repeat_n(item.clone(), usize::try_from(*bulk).unwrap_or(usize::MAX)))
            .collect(),
        Value::Map(entries) => entries.iter().map(|entry| Value::Map(vec![entry.clone()])).collect(),
        Value::Path(path) => path.steps.iter().map(|(object, _)| object.clone()).collect(),
        other => vec![other.clone()],
    }
}

/// Results in the order of what is expected, or what differs.
pub fn ordered(actual: &[Value], expected: &[Value], types: Types) -> Result<(), String> {
    if in_order(actual, expected, types) {
        return Ok(());
    }
    Err(format!("expected, in this order:\n  {}\nbut the results are:\n  {}", show_all(expected), show_all(actual)))
}

/// Results in any order, each as often as it is expected, or what differs.
pub fn unordered(actual: &[Value], expected: &[Value], types: Types) -> Result<(), String> {
    let (surplus, missing) = difference(actual, expected, |left, right| same(left, right, types));
    if surplus.is_empty() && missing.is_empty() {
        return Ok(());
    }
    let [surplus, missing] = [surplus, missing].map(show_all);
    Err(format!("missing:\n  {missing}\nnot expected:\n  {surplus}\nof the results:\n  {}", show_all(actual)))
}

/// Results that are each one of those expected, or which is not.
pub fn any_of(actual: &[Value], expected: &[Value], types: Types) -> Result<(), String> {
    let others: Vec<&Value> =
        actual.iter().filter(|result| !expected.iter().any(|value| same(result, value, types))).collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(format!("not expected:\n  {}\nbut one of:\n  {}", show_all(others), show_all(expected)))
}

fn numbers(left: &Number, right: &Number, types: Types) -> bool {
    if types == Types::Count && discriminant(left) != discriminant(right) {
        return false;
    }
    if let (Some(left), Some(right)) = (float(left), float(right))
        && (left.is_nan() && right.is_nan() || (left - right).abs() <= TOLERANCE)
    {
        return true;
    }
    equals(&Value::Number(left.clone()), &Value::Number(right.clone()))
}

fn float(number: &Number) -> Option<f64> {
    match number {
        Number::Float(float) => Some(f64::from(*float)),
        Number::Double(float) => Some(*float),
        _ => None,
    }
}

fn trees(left: &Tree, right: &Tree, types: Types) -> bool {
    in_any_order(&left.branches, &right.branches, |(value, below), (other, other_below)| {
        same(value, other, types) && trees(below, other_below, types)
    })
}

fn in_order(left: &[Value], right: &[Value], types: Types) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right, types))
}

fn in_any_order<T>(left: &[T], right: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    left.len() == right.len() && difference(left, right, same).1.is_empty()
}

/// What is on the left alone, and what is on the right alone.
fn difference<'a, T>(left: &'a [T], right: &'a [T], same: impl Fn(&T, &T) -> bool) -> (Vec<&'a T>, Vec<&'a T>) {
    let mut rest: Vec<&T> = left.iter().collect();
    let mut missing = Vec::new();
    for expected in right {
        match rest.iter().position(|actual| same(actual, expected)) {
            Some(place) => {
                rest.remove(place);
            }
            None => missing.push(expected),
        }
    }
    (rest, missing)
}

#[cfg(test)]
mod tests {
    use hoplake::gremlin::value::{Path, Property, Traverser, Vertex, VertexProperty};

    use super::*;

    /// Whether a result is what is expected, and whether it is if types count: they make a difference to numbers alone.
    fn same(actual: &Value, expected: &Value) -> bool {
        let is_same = super::same(actual, expected, Types::DoNotCount);
        assert_eq!(super::same(actual, expected, Types::Count), is_same, "{actual:?}, {expected:?}");
        is_same
    }

    fn vertex(id: i32, properties: Option<Vec<VertexProperty>>) -> Value {
        Value::Vertex(Box::new(Vertex { id: id.into(), label: "person".into(), properties }))
    }

    fn list(values: &[i32]) -> Value {
        Value::List(values.iter().map(|value| (*value).into()).collect())
    }

    #[test]
    fn types_of_numbers_count_if_they_are_to() {
        let ones = [
            Number::Byte(1),
            Number::Short(1),
            Number::Int(1),
            Number::Long(1),
            Number::BigInteger(1.into()),
            Number::Float(1.0),
            Number::Double(1.0),
            Number::BigDecimal(1.into()),
        ]
        .map(Value::Number);
        let wrapped = |one: &Value| {
            let tree = Tree { branches: vec![(one.clone(), Tree::default())] };
            let path = Path { steps: vec![(one.clone(), vec![])] };
            let property = Property { key: "x".into(), value: one.clone() };
            [
                one.clone(),
                Value::List(vec![one.clone()]),
                Value::Set(vec![one.clone()]),
                Value::BulkSet(vec![(one.clone(), 1)]),
                Value::Map(vec![(one.clone(), Value::Null)]),
                Value::Map(vec![(Value::Null, one.clone())]),
                Value::Path(Box::new(path)),
                Value::Tree(tree),
                Value::Property(Box::new(property)),
                Value::Traverser(Box::new(Traverser { value: one.clone(), bulk: 1 })),
            ]
        };
        for (at, left) in ones.iter().enumerate() {
            for (other, right) in ones.iter().enumerate() {
                for (left, right) in wrapped(left).iter().zip(&wrapped(right)) {
                    // Only results are traversers.
                    let right = if let Value::Traverser(it) = right { &it.value } else { right };
                    assert!(super::same(left, right, Types::DoNotCount), "{left:?}, {right:?}");
                    assert_eq!(super::same(left, right, Types::Count), at == other, "{left:?}, {right:?}");
                    let left = [left.clone()];
                    let right = [right.clone()];
                    assert_eq!(ordered(&left, &right, Types::Count).is_ok(), at == other);
                    assert_eq!(unordered(&left, &right, Types::Count).is_ok(), at == other);
                    assert_eq!(any_of(&left, &right, Types::Count).is_ok(), at == other);
                }
            }
        }
    }

    #[test]
    fn numbers_are_the_same_if_they_are_equal() {
        assert!(same(&f64::NAN.into(), &f64::NAN.into()));
        assert!(same(&f64::INFINITY.into(), &f64::INFINITY.into()));
        assert!(same(&(0.1 + 0.2).into(), &0.3.into()));
        assert!(!same(&0.300_000_1.into(), &0.3.into()));
        assert!(!same(&f64::NAN.into(), &1.0.into()));
        assert!(!same(&1.into(), &"1".into()));
        assert!(!same(&0.into(), &Value::Null));
        assert!(same(&Value::Null, &Value::Null));
    }

    #[test]
    fn elements_are_the_same_by_kind_and_id() {
        assert!(same(&vertex(1, None), &vertex(1, Some(vec![]))));
        assert!(!same(&vertex(1, None), &vertex(2, None)));
        let property = VertexProperty { id: 1.into(), key: "name".into(), value: "marko".into(), properties: None };
        assert!(!same(&vertex(1, None), &Value::VertexProperty(Box::new(property))));
        assert!(!same(&vertex(1, None), &1.into()));
    }

    #[test]
    fn lists_have_an_order_and_sets_have_none() {
        let set = |values: &[i32]| Value::Set(values.iter().map(|value| (*value).into()).collect());
        assert!(same(&list(&[1, 2]), &list(&[1, 2])));
        assert!(!same(&list(&[2, 1]), &list(&[1, 2])));
        assert!(!same(&list(&[1]), &list(&[1, 1])));
        assert!(same(&set(&[2, 1]), &set(&[1, 2])));
        assert!(!same(&set(&[1]), &list(&[1])));
        let bulk = Value::BulkSet(vec![(2.into(), 2), (1.into(), 1)]);
        assert!(same(&bulk, &list(&[1, 2, 2])));
        assert!(!same(&bulk, &list(&[1, 1, 2])));
    }

    #[test]
    fn maps_have_no_order() {
        let map = |entries: &[(&str, i32)]| {
            Value::Map(entries.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect())
        };
        assert!(same(&map(&[("a", 1), ("b", 2)]), &map(&[("b", 2), ("a", 1)])));
        assert!(!same(&map(&[("a", 1), ("b", 2)]), &map(&[("a", 1)])));
        assert!(!same(&map(&[("a", 1)]), &map(&[("a", 2)])));
    }

    #[test]
    fn paths_are_their_objects() {
        let path = |labels: Vec<Box<str>>| Value::Path(Box::new(Path { steps: vec![(vertex(1, None), labels)] }));
        assert!(same(&path(vec!["a".into()]), &path(vec![])));
        assert!(!same(&path(vec![]), &Value::Path(Box::default())));
    }

    #[test]
    fn trees_have_no_order() {
        let leaf = |value: i32| (Value::from(value), Tree::default());
        let left = Value::Tree(Tree { branches: vec![leaf(1), leaf(2)] });
        let right = Value::Tree(Tree { branches: vec![leaf(2), leaf(1)] });
        assert!(same(&left, &right));
        assert!(!same(&left, &Value::Tree(Tree { branches: vec![leaf(1)] })));
    }

    #[test]
    fn unordered_results_count() {
        let values = |numbers: &[i32]| items(&list(numbers));
        assert_eq!(unordered(&values(&[2, 1, 1]), &values(&[1, 2, 1]), Types::Count), Ok(()));
        assert!(unordered(&values(&[1, 1]), &values(&[1]), Types::Count).is_err());
        let reason = unordered(&values(&[1, 3]), &values(&[1, 2]), Types::Count).unwrap_err();
        assert!(reason.starts_with("missing:\n  d[2].i\nnot expected:\n  d[3].i\n"), "{reason}");
        assert!(ordered(&values(&[1, 2]), &values(&[2, 1]), Types::Count).is_err());
        assert_eq!(any_of(&values(&[1, 1]), &values(&[2, 1]), Types::Count), Ok(()));
        assert!(any_of(&values(&[3]), &values(&[2, 1]), Types::Count).is_err());
    }

    #[test]
    fn items_of_collections_are_taken_out() {
        assert_eq!(items(&Value::BulkSet(vec![("a".into(), 2)])), ["a".into(), "a".into()]);
        let map = Value::Map(vec![("a".into(), 1.into()), ("b".into(), 2.into())]);
        assert_eq!(items(&map)[1], Value::Map(vec![("b".into(), 2.into())]));
        assert_eq!(items(&1.into()), [1.into()]);
        let traverser = Value::Traverser(Box::new(Traverser { value: 1.into(), bulk: 2 }));
        assert!(same(&traverser, &1.into()));
    }
}
