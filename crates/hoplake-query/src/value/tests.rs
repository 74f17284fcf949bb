//! The relations and arithmetic against the reference's own (`tests/corpus/relations.txt`), and their laws.

use std::{
    cmp::Ordering,
    collections::{HashSet, hash_map::RandomState},
    hash::BuildHasher,
};

use bigdecimal::BigDecimal;
use jiff::{SignedDuration, civil, tz::Offset};
use proptest::prelude::*;
use uuid::Uuid;

use super::{
    Key, Metrics, Path, Property, TraversalMetrics, Tree, Value, Vertex,
    arithmetic::{self, ArithmeticError, Mean, Sum},
    compare, equals, order, relations,
};
use crate::{
    literal::Number,
    moment::Moment,
    tokens::{self, T, Token},
};

const CORPUS: &str = include_str!("../../tests/corpus/relations.txt");

fn value(text: &str) -> Value {
    let (kind, rest) = text.split_once(':').unwrap();
    let items = || match rest {
        "" => Vec::new(),
        _ => rest.split(';').map(value).collect::<Vec<_>>(),
    };
    match kind {
        "null" => Value::Null,
        "boolean" => Value::Boolean(rest == "true"),
        "byte" => Value::Number(Number::Byte(rest.parse().unwrap())),
        "short" => Value::Number(Number::Short(rest.parse().unwrap())),
        "int" => Value::Number(Number::Int(rest.parse().unwrap())),
        "long" => Value::Number(Number::Long(rest.parse().unwrap())),
        "bigint" => Value::Number(Number::BigInteger(rest.parse().unwrap())),
        "float" => Value::Number(Number::Float(rest.parse().unwrap())),
        "double" => Value::Number(Number::Double(rest.parse().unwrap())),
        "bigdecimal" => Value::Number(Number::BigDecimal(rest.parse().unwrap())),
        "text" => Value::Text(rest.into()),
        "uuid" => Value::Uuid(rest.parse().unwrap()),
        // Java leaves out seconds that are 0.
        "time" => Value::DateTime(Moment::parse(&rest.replace("0Z", "0:00Z")).unwrap()),
        "duration" => Value::Duration(rest.parse().unwrap()),
        "list" => Value::List(items()),
        "set" => Value::Set(items()),
        "map" => Value::Map(items().chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()),
        other => panic!("{other}"),
    }
}

fn number(text: &str) -> Number {
    match value(text) {
        Value::Number(number) => number,
        other => panic!("{other:?}"),
    }
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Number(Number::Double(number)) if number.is_nan())
        || matches!(value, Value::Number(Number::Float(number)) if number.is_nan())
}

#[test]
fn relations_are_those_of_the_reference() {
    let values: Vec<Value> = CORPUS.lines().filter_map(|line| line.strip_prefix("value\t")).map(value).collect();
    let mut checked = 0;
    for line in CORPUS.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let ["compare" | "equals" | "order", first, signs] = fields[..] else { continue };
        let first: usize = first.parse().unwrap();
        for (offset, sign) in signs.chars().enumerate() {
            let left = &values[first];
            let right = &values[first + offset];
            let ours = match fields[0] {
                "compare" => compare(left, right).map_or('?', sign_of),
                "equals" => {
                    if equals(left, right) {
                        '='
                    } else {
                        '!'
                    }
                }
                _ => sign_of(order(left, right)),
            };
            checked += 1;
            if ours == sign || zeros(left, right) || fields[0] == "order" && is_rounded(left, right) {
                continue;
            }
            panic!("{} {left:?} {right:?}: {ours}, and {sign} for the reference", fields[0]);
        }
    }
    assert_eq!(checked, 3 * values.len() * (values.len() + 1) / 2);
}

/// Java tells the two zeros apart; the documentation does not.
fn zeros(left: &Value, right: &Value) -> bool {
    let is_zero = |value: &Value| equals(value, &Value::from(0));
    is_zero(left) && is_zero(right)
}

/// The order is by exact value, and that of the reference after rounding, where both are equal.
fn is_rounded(left: &Value, right: &Value) -> bool {
    matches!((left, right), (Value::Number(_), Value::Number(_))) && equals(left, right)
}

fn sign_of(order: Ordering) -> char {
    match order {
        Ordering::Less => '<',
        Ordering::Equal => '=',
        Ordering::Greater => '>',
    }
}

#[test]
fn arithmetic_is_that_of_the_reference() {
    let mut checked = 0;
    for line in CORPUS.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [operation, left, right, expected] = fields[..] else { continue };
        let left = number(left);
        let right = number(right);
        // The one difference: `NaN` does not become 0.
        let nan = is_nan(&left.clone().into()) || is_nan(&right.clone().into());
        if nan && !matches!(operation, "min" | "max") {
            continue;
        }
        let ours = match operation {
            "add" => arithmetic::add(&left, &right),
            "subtract" => arithmetic::subtract(&left, &right),
            "multiply" => arithmetic::multiply(&left, &right),
            "divide" => arithmetic::divide(&left, &right),
            "min" => Ok(arithmetic::min(&left, &right)),
            "max" => Ok(arithmetic::max(&left, &right)),
            other => panic!("{other}"),
        };
        checked += 1;
        match (ours, expected) {
            (Err(_), "error:") => {}
            // Its loop of promotions catches the division by zero, and returns what it began with.
            (Err(ArithmeticError::DivisionByZero), "int:0") => {}
            (Ok(ours), expected) if expected != "error:" => {
                let ours = Value::Number(ours);
                let expected = Value::Number(number(expected));
                assert!(Key(&ours) == Key(&expected), "{line}: {ours:?}");
            }
            // The reference fails at infinities among big numbers; the lesser and greater of them are known.
            (Ok(_), _) if matches!(operation, "min" | "max") => {}
            (ours, _) => panic!("{line}: {ours:?}"),
        }
    }
    assert!(checked > 450, "{checked}");
}

#[test]
fn nan_is_kept_and_overflow_goes_to_the_next_type() {
    let int = Number::Int;
    assert!(matches!(arithmetic::add(&int(1), &Number::Double(f64::NAN)), Ok(Number::Double(nan)) if nan.is_nan()));
    assert_eq!(arithmetic::add(&Number::Byte(127), &Number::Byte(1)), Ok(Number::Short(128)));
    assert_eq!(arithmetic::add(&int(i32::MAX), &int(1)), Ok(Number::Long(1 << 31)));
    assert_eq!(arithmetic::add(&Number::Long(i64::MAX), &int(1)), Err(ArithmeticError::Overflow));
    assert_eq!(arithmetic::divide(&int(1), &int(0)), Err(ArithmeticError::DivisionByZero));
    let huge = Number::BigInteger(num_bigint::BigInt::from(1) << 30_000);
    assert_eq!(arithmetic::multiply(&huge, &huge), Err(ArithmeticError::TooLong));
    let tiny = Number::BigDecimal("1e-2000000000".parse().unwrap());
    assert_eq!(arithmetic::add(&tiny, &int(1)), Err(ArithmeticError::TooLong));
}

#[test]
fn sums_and_means_count_bulk() {
    let mut sum = Sum::default();
    sum.add(&Number::Int(3), 4).unwrap();
    sum.add(&Number::Int(1), 1).unwrap();
    assert_eq!(sum.finish(), Some(Number::Int(13)));
    // Bulk counts as if the number were added that often: of its own type, or the next.
    let times = |number: Number, bulk: u64| {
        let mut sum = Sum::default();
        sum.add(&number, bulk).unwrap();
        sum.finish().unwrap()
    };
    assert_eq!(times(Number::Byte(1), 200), Number::Short(200));
    assert_eq!(times(Number::Int(i32::MAX), 2), Number::Long(2 * i64::from(i32::MAX)));
    assert_eq!(times(Number::Float(0.5), 3), Number::Float(1.5));
    assert_eq!(times(Number::Float(f32::MAX), 2), Number::Double(2.0 * f64::from(f32::MAX)));
    let mut mean = Mean::default();
    mean.add(&Number::Int(3), 2).unwrap();
    mean.add(&Number::Int(4), 1).unwrap();
    assert_eq!(mean.finish(), Ok(Some(Number::Double(10.0 / 3.0))));
    assert_eq!(Mean::default().finish(), Ok(None));
}

#[test]
fn elements_are_their_type_and_id() {
    let vertex = |id: Value, label: &str| Value::Vertex(Box::new(Vertex { id, label: label.into(), properties: None }));
    assert!(equals(&vertex(1.into(), "a"), &vertex(1_i64.into(), "b")));
    assert!(Key(&vertex(1.into(), "a")) == Key(&vertex(1.into(), "b")));
    assert!(Key(&vertex(1.into(), "a")) != Key(&vertex(1_i64.into(), "a")));
    assert_eq!(compare(&vertex(1.into(), "a"), &Value::from(1)), None);
    let property = |value: Value| Value::Property(Box::new(Property { key: "k".into(), value }));
    assert!(equals(&property(1.into()), &property(1.0.into())));
    assert_eq!(compare(&property(1.into()), &property("a".into())), None);
}

#[test]
fn bulk_sets_are_compared_by_runs() {
    let set =
        |items: &[(i32, u64)]| Value::BulkSet(items.iter().map(|(item, bulk)| (Value::from(*item), *bulk)).collect());
    assert!(equals(&set(&[(1, u64::MAX), (2, 1)]), &set(&[(2, 1), (1, u64::MAX)])));
    assert_eq!(compare(&set(&[(1, 2)]), &set(&[(1, 3)])), Some(Ordering::Less));
    assert_eq!(compare(&set(&[(1, 2), (2, 1)]), &set(&[(1, 3)])), Some(Ordering::Greater));
    assert!(equals(&set(&[(1, 1)]), &Value::Set(vec![Value::from(1)])));
}

/// Sorting what is within again for each comparison would take the square of the values, and more for more items a level.
#[test]
fn nested_collections_are_sorted_once() {
    type Join = fn(Value, Value) -> Value;
    let joins: [(&str, Join); 7] = [
        ("sets", |left, right| Value::Set(vec![left, right])),
        ("bulk sets", |left, right| Value::BulkSet(vec![(left, 2), (right, 2)])),
        ("keys of maps", |left, right| Value::Map(vec![(left, 1.into()), (right, 2.into())])),
        ("values of maps", |left, right| Value::Map(vec![(1.into(), left), (1.into(), right)])),
        ("items of trees", |left, right| {
            Value::Tree(Tree { branches: vec![(left, Tree::default()), (right, Tree::default())] })
        }),
        ("trees below trees", |left, right| {
            let below = |value| match value {
                Value::Tree(tree) => tree,
                other => Tree { branches: vec![(other, Tree::default())] },
            };
            Value::Tree(Tree { branches: vec![(1.into(), below(left)), (1.into(), below(right))] })
        }),
        ("lists in sets", |left, right| Value::Set(vec![Value::List(vec![left]), Value::List(vec![right])])),
    ];
    const LEVELS: u32 = 10;
    for (name, join) in joins {
        let nested = |is_reversed: bool| {
            let mut level: Vec<Value> = (0..1 << LEVELS).map(Value::from).collect();
            while level.len() > 1 {
                let mut items = level.into_iter();
                level = std::iter::from_fn(|| {
                    let left = items.next()?;
                    let right = items.next()?;
                    Some(if is_reversed { join(right, left) } else { join(left, right) })
                })
                .collect();
            }
            level.remove(0)
        };
        let left = nested(false);
        let right = nested(true);
        let relate: [fn(&Value, &Value) -> bool; 3] = [
            equals,
            |left, right| compare(left, right) == Some(Ordering::Equal),
            |left, right| order(left, right) == Ordering::Equal,
        ];
        for is_same in relate {
            relations::COMPARISONS.set(0);
            is_same(&left, &right);
            let comparisons = relations::COMPARISONS.get();
            let most = u64::from((8 * LEVELS) << LEVELS);
            assert!(comparisons <= most, "{name}: {comparisons} comparisons");
        }
    }
}

/// What a table cannot tell apart by hashes it compares each with each.
#[test]
fn different_collections_have_different_hashes() {
    let hasher = RandomState::new();
    let tree = |value: i32| Tree { branches: vec![(value.into(), Tree::default())] };
    let metrics = |value: i32| Metrics { annotations: vec![("a".into(), value.into())], ..Metrics::default() };
    type Of<'a> = &'a dyn Fn(i32) -> Value;
    let kinds: [(&str, Of<'_>); 7] = [
        ("maps", &|it| Value::Map(vec![(1.into(), it.into())])),
        ("bulk sets", &|it| Value::BulkSet(vec![(1.into(), it as u64)])),
        ("trees", &|it| Value::Tree(Tree { branches: vec![(1.into(), tree(it))] })),
        ("paths", &|it| Value::Path(Box::new(Path { steps: vec![(1.into(), vec![it.to_string().into()])] }))),
        ("sets", &|it| Value::Set(vec![1.into(), it.into()])),
        ("metrics", &|it| Value::Metrics(Box::new(TraversalMetrics { duration_nanos: 0, steps: vec![metrics(it)] }))),
        ("nested metrics", &|it| {
            let steps = vec![Metrics { nested: vec![metrics(it)], ..Metrics::default() }];
            Value::Metrics(Box::new(TraversalMetrics { duration_nanos: 0, steps }))
        }),
    ];
    for (name, of) in kinds {
        let hashes: HashSet<u64> = (2..102).map(|it| hasher.hash_one(Key(&of(it)))).collect();
        assert_eq!(hashes.len(), 100, "{name}");
    }
}

/// The items of a collection in the order in which they are compared, sorted again wherever they are asked for.
fn items_of(value: &Value) -> Option<Vec<Value>> {
    let in_order = |mut rows: Vec<Vec<Value>>| {
        rows.sort_by(|left, right| {
            by_definition(&Value::List(left.clone()), &Value::List(right.clone()), true).unwrap()
        });
        rows.concat()
    };
    Some(match value {
        Value::List(items) => items.clone(),
        Value::Path(path) => path.steps.iter().map(|(item, _)| item.clone()).collect(),
        Value::Set(items) => in_order(items.iter().map(|item| vec![item.clone()]).collect()),
        Value::BulkSet(items) => {
            let repeated = items.iter().flat_map(|(item, bulk)| vec![vec![item.clone()]; *bulk as usize]);
            in_order(repeated.collect())
        }
        Value::Map(entries) => in_order(entries.iter().map(|(key, value)| vec![key.clone(), value.clone()]).collect()),
        Value::Tree(tree) => {
            in_order(tree.branches.iter().map(|(item, below)| vec![item.clone(), Value::Tree(below.clone())]).collect())
        }
        _ => return None,
    })
}

/// Comparability, or orderability, of collections as the documentation has it.
fn by_definition(left: &Value, right: &Value, is_total: bool) -> Option<Ordering> {
    let (Some(left_items), Some(right_items)) = (items_of(left), items_of(right)) else {
        return if is_total { Some(order(left, right)) } else { compare(left, right) };
    };
    let kind = |value: &Value| match value {
        Value::BulkSet(_) => std::mem::discriminant(&Value::Set(Vec::new())),
        other => std::mem::discriminant(other),
    };
    if kind(left) != kind(right) {
        return if is_total { Some(order(left, right)) } else { None };
    }
    let mut decided = Ordering::Equal;
    for (left, right) in left_items.iter().zip(&right_items) {
        match by_definition(left, right, is_total) {
            Some(order) => decided = decided.then(order),
            None => return None,
        }
    }
    Some(decided.then(left_items.len().cmp(&right_items.len())))
}

/// Collections of few different items, so that several levels decide.
fn any_nested() -> impl Strategy<Value = Value> {
    let item = prop_oneof![
        4 => (0..3_i32).prop_map(Value::from),
        1 => Just(Value::from(1.0)),
        1 => Just(Value::from(f64::NAN)),
        1 => Just(Value::from("a")),
    ];
    item.prop_recursive(5, 40, 3, |inner| {
        let items = || proptest::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            4 => items().prop_map(Value::Set),
            1 => items().prop_map(Value::List),
            1 => proptest::collection::vec((inner.clone(), 0..3_u64), 0..4).prop_map(Value::BulkSet),
            1 => proptest::collection::vec((inner.clone(), inner.clone()), 0..4).prop_map(Value::Map),
            1 => proptest::collection::vec((inner.clone(), inner), 0..4).prop_map(|branches| {
                let below = |value| match value {
                    Value::Tree(tree) => tree,
                    other => Tree { branches: vec![(other, Tree::default())] },
                };
                Value::Tree(Tree { branches: branches.into_iter().map(|(item, it)| (item, below(it))).collect() })
            }),
        ]
    })
}

/// A value and the same in another order, or two of one kind.
fn any_pair() -> impl Strategy<Value = (Value, Value)> {
    prop_oneof![
        (any_nested(), any_nested()),
        any_nested().prop_map(|value| (value.clone(), reversed(value))),
        (any_nested(), any_nested(), any_nested()).prop_map(|(a, b, c)| {
            let left = Value::Set(vec![a.clone(), b.clone(), c.clone()]);
            (left, Value::Set(vec![reversed(c), reversed(b), a]))
        }),
    ]
}

fn reversed(value: Value) -> Value {
    match value {
        Value::Set(items) => Value::Set(items.into_iter().rev().map(reversed).collect()),
        Value::List(items) => Value::List(items.into_iter().map(reversed).collect()),
        Value::BulkSet(items) => Value::BulkSet(items.into_iter().rev().map(|(item, n)| (reversed(item), n)).collect()),
        Value::Map(entries) => {
            Value::Map(entries.into_iter().rev().map(|(key, value)| (reversed(key), reversed(value))).collect())
        }
        other => other,
    }
}

fn any_number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i8>().prop_map(Number::Byte),
        any::<i16>().prop_map(Number::Short),
        prop_oneof![any::<i32>(), -2..3_i32, 16_777_215..16_777_219_i32].prop_map(Number::Int),
        prop_oneof![any::<i64>(), -2..3_i64, 9_007_199_254_740_991..9_007_199_254_740_995_i64].prop_map(Number::Long),
        any::<i128>().prop_map(|number| Number::BigInteger(number.into())),
        prop_oneof![any::<f32>(), Just(0.1), Just(1.0), Just(f32::NAN), Just(16_777_216.0)].prop_map(Number::Float),
        prop_oneof![any::<f64>(), Just(0.1), Just(1.0), Just(f64::NAN), Just(-0.0), Just(9_007_199_254_740_992.0)]
            .prop_map(Number::Double),
        (any::<i32>(), -30..30_i64)
            .prop_map(|(digits, scale)| Number::BigDecimal(BigDecimal::new(digits.into(), scale))),
    ]
}

fn any_scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
        any_number().prop_map(Value::Number),
        any_number().prop_map(Value::Number),
        "[a-c]{0,2}".prop_map(|text| Value::Text(text.into())),
        any::<char>().prop_map(Value::Char),
        (0..3_i64, -1..2_i8).prop_map(|(second, offset)| {
            Value::DateTime(
                Moment::of_local(
                    civil::date(1970, 1, 1).at(0, 0, 0, 0) + SignedDuration::from_secs(second),
                    Offset::constant(offset),
                )
                .unwrap(),
            )
        }),
        (0..3_i64).prop_map(|seconds| Value::Duration(SignedDuration::from_secs(seconds))),
        (0..3_u128).prop_map(|uuid| Value::Uuid(Uuid::from_u128(uuid))),
        proptest::collection::vec(any::<u8>(), 0..3).prop_map(|bytes| Value::Bytes(bytes.into())),
        Just(Value::Token(Token::T(T::Id))),
        Just(Value::Token(Token::T(T::Label))),
        Just(Value::Token(Token::Order(tokens::Order::Asc))),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    any_scalar().prop_recursive(3, 12, 3, |inner| {
        let items = || proptest::collection::vec(inner.clone(), 0..3);
        let pairs = || proptest::collection::vec((inner.clone(), inner.clone()), 0..3);
        prop_oneof![
            items().prop_map(Value::List),
            items().prop_map(|items| Value::Set(distinct(items))),
            pairs().prop_map(|entries| {
                let mut keys: Vec<Value> = Vec::new();
                let entries = entries.into_iter().filter(|(key, _)| {
                    let new = !keys.iter().any(|known| Key(known) == Key(key));
                    keys.push(key.clone());
                    new
                });
                Value::Map(entries.collect())
            }),
            items().prop_map(|items| Value::BulkSet(distinct(items).into_iter().map(|item| (item, 2)).collect())),
            items().prop_map(|items| {
                let branches = distinct(items).into_iter().map(|item| (item, Tree::default())).collect();
                Value::Tree(Tree { branches })
            }),
            items().prop_map(|items| {
                Value::Path(Box::new(Path { steps: items.into_iter().map(|item| (item, vec!["a".into()])).collect() }))
            }),
            inner.clone().prop_map(|id| Value::Vertex(Box::new(Vertex { id, label: "a".into(), properties: None }))),
            inner.prop_map(|value| Value::Property(Box::new(Property { key: "k".into(), value }))),
        ]
    })
}

fn distinct(items: Vec<Value>) -> Vec<Value> {
    let mut distinct: Vec<Value> = Vec::new();
    for item in items {
        if !distinct.iter().any(|known| Key(known) == Key(&item)) {
            distinct.push(item);
        }
    }
    distinct
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_order_is_total(a in any_value(), b in any_value(), c in any_value()) {
        prop_assert_eq!(order(&a, &a), Ordering::Equal);
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        let mut sorted = [&a, &b, &c];
        sorted.sort_by(|left, right| order(left, right));
        prop_assert!(order(sorted[0], sorted[1]).is_le());
        prop_assert!(order(sorted[1], sorted[2]).is_le());
        prop_assert!(order(sorted[0], sorted[2]).is_le());
    }

    #[test]
    fn nested_collections_compare_by_definition((left, right) in any_pair()) {
        prop_assert_eq!(order(&left, &right), by_definition(&left, &right, true).unwrap());
        prop_assert_eq!(compare(&left, &right), by_definition(&left, &right, false));
        prop_assert_eq!(equals(&left, &right), compare(&left, &right) == Some(Ordering::Equal));
    }

    #[test]
    fn numbers_are_ordered_in_total(a in any_number(), b in any_number(), c in any_number()) {
        let a = Value::Number(a);
        let b = Value::Number(b);
        let c = Value::Number(c);
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        if order(&a, &b).is_le() && order(&b, &c).is_le() {
            prop_assert!(order(&a, &c).is_le());
            prop_assert!(order(&a, &c).is_lt() || order(&a, &b).is_eq() && order(&b, &c).is_eq());
        }
        // Promotion may round, and never turns an order around.
        if let Some(compared) = compare(&a, &b) {
            prop_assert!(compared.is_eq() || compared == order(&a, &b));
        }
    }

    #[test]
    fn equality_is_that_of_comparability(a in any_value(), b in any_value()) {
        prop_assert_eq!(equals(&a, &b), compare(&a, &b) == Some(Ordering::Equal));
        prop_assert_eq!(equals(&a, &b), equals(&b, &a));
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).map(Ordering::reverse));
    }

    /// Where nothing is rounded: among numbers of one type, and all that are no numbers.
    #[test]
    fn equality_is_transitive_without_rounding(a in -3..3_i32, b in -3..3_i32, c in -3..3_i32) {
        let values = |number: i32| [
            Value::from(number),
            Value::from(i64::from(number)),
            Value::from(f64::from(number)),
            Value::Number(Number::BigDecimal(number.into())),
        ];
        for (a, b, c) in values(a).iter().zip(values(b).iter().rev()).zip(values(c).iter().skip(1)).map(|((a, b), c)| (a, b, c)) {
            prop_assert!(!(equals(a, b) && equals(b, c)) || equals(a, c));
        }
    }

    #[test]
    fn keys_hash_as_they_are_equal(a in any_value(), b in any_value()) {
        let hasher = RandomState::new();
        prop_assert!(Key(&a) == Key(&a));
        prop_assert_eq!(Key(&a) == Key(&b), Key(&b) == Key(&a));
        if Key(&a) == Key(&b) {
            prop_assert_eq!(hasher.hash_one(Key(&a)), hasher.hash_one(Key(&b)));
            // `NaN` apart, what is one key is equal.
            prop_assert_eq!(order(&a, &b), Ordering::Equal);
        }
        if let (Value::Set(items), other) = (&a, &a) {
            let reversed = Value::Set(items.iter().rev().cloned().collect());
            prop_assert!(Key(&reversed) == Key(other));
            prop_assert_eq!(hasher.hash_one(Key(&reversed)), hasher.hash_one(Key(other)));
        }
    }

    #[test]
    fn arithmetic_never_panics(a in any_number(), b in any_number()) {
        drop(arithmetic::add(&a, &b));
        drop(arithmetic::subtract(&a, &b));
        drop(arithmetic::multiply(&a, &b));
        drop(arithmetic::divide(&a, &b));
        drop(arithmetic::min(&a, &b));
        drop(arithmetic::max(&a, &b));
    }
}

#[test]
fn keys_tell_types_of_numbers_apart() {
    let numbers = [Value::from(1), Value::from(1_i64), Value::from(1.0), Value::from(0.0), Value::from(-0.0)];
    assert_eq!(numbers.iter().map(Key).collect::<HashSet<_>>().len(), 5);
}

/// Else a sort may panic: maps that differ would all be equal to an entry.
#[test]
fn the_order_is_total_over_values_that_are_alike() {
    let map = |number: i32| Value::Map(vec![("a".into(), number.into())]);
    let entry = |number: i32| Value::Entry(Box::new(("a".into(), number.into())));
    let values = [map(1), map(2), entry(1), entry(2), Value::Set(vec![1.into()]), Value::List(vec![1.into()])];
    for number in 0..values.len().pow(3) {
        let [a, b, c] = [number % 6, number / 6 % 6, number / 36].map(|at| &values[at]);
        if order(a, b).is_eq() {
            assert_eq!(order(a, c), order(b, c), "{a:?}, {b:?} and {c:?}");
        }
    }
}
