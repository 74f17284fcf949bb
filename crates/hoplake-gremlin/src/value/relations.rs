//! Equality, comparability and orderability, as TinkerPop's provider documentation defines them ("Gremlin Semantics").
//!
//! Until 3.7 a comparison that could not be made was a third truth value, which `not` kept. 3.8 has two: the predicate is
//! false, so `not(gt("a"))` of a number is *true*. [`compare`] returns `None` for it and leaves it to the predicate.
//!
//! The reference implementation differs from its documentation in places, and here the documentation counts: UUIDs compare as
//! their text (Java compares two signed longs), points in time by their instant alone, texts by code points and not by UTF-16 units,
//! the two zeros are equal, paths and properties with equal numbers of two types are equal (Java compares their hashes first).

use std::cmp::Ordering;

use super::{Property, Tree, Unread, Value, number};
use crate::literal::Number;

/// Whether two values are equal.
pub fn equals(left: &Value, right: &Value) -> bool {
    #[cfg(test)]
    super::alike::compared::note();
    if length(left) != length(right) {
        return false;
    }
    compare(left, right) == Some(Ordering::Equal)
}

/// How two values of one type compare; `None` if they cannot be compared: values of two types, `NaN` and anything, and
/// collections with such a pair.
pub fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    by_type(left, right, &Comparability)
}

/// The order of two values of any type: total.
pub fn order(left: &Value, right: &Value) -> Ordering {
    by_type(left, right, &Orderability).unwrap_or(Ordering::Equal)
}

/// The length of a collection: two of different lengths are unequal, whatever their items are.
fn length(value: &Value) -> Option<usize> {
    match value {
        Value::List(items) => Some(items.len()),
        Value::Map(entries) => Some(entries.len()),
        Value::Path(path) => Some(path.steps.len()),
        _ => None,
    }
}

/// What comparability and orderability do differently.
trait Relation {
    /// Values of two types.
    fn types(&self, left: u8, right: u8) -> Option<Ordering>;

    /// Two numbers.
    fn numbers(&self, left: &Number, right: &Number) -> Option<Ordering>;

    /// Pairs of items: the first that differs decides, and then the lengths.
    fn pairs(&self, orders: impl Iterator<Item = Option<Ordering>>, lengths: Ordering) -> Option<Ordering>;
}

struct Comparability;

impl Relation for Comparability {
    fn types(&self, _: u8, _: u8) -> Option<Ordering> {
        None
    }

    fn numbers(&self, left: &Number, right: &Number) -> Option<Ordering> {
        number::promoted(left, right)
    }

    /// All pairs must be comparable, also those after the one that decides.
    fn pairs(&self, orders: impl Iterator<Item = Option<Ordering>>, lengths: Ordering) -> Option<Ordering> {
        let mut decided = Ordering::Equal;
        for order in orders {
            decided = decided.then(order?);
        }
        Some(decided.then(lengths))
    }
}

struct Orderability;

impl Relation for Orderability {
    fn types(&self, left: u8, right: u8) -> Option<Ordering> {
        Some(left.cmp(&right))
    }

    fn numbers(&self, left: &Number, right: &Number) -> Option<Ordering> {
        Some(number::exact(left, right))
    }

    fn pairs(&self, mut orders: impl Iterator<Item = Option<Ordering>>, lengths: Ordering) -> Option<Ordering> {
        let decided = orders.find(|order| *order != Some(Ordering::Equal)).flatten();
        Some(decided.unwrap_or(Ordering::Equal).then(lengths))
    }
}

/// The place of a type in the order of all. Types that TinkerPop calls unknown come last, by name.
fn place(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Boolean(_) => 1,
        Value::Number(_) => 2,
        Value::DateTime(..) => 3,
        Value::Text(_) => 4,
        Value::Uuid(_) => 5,
        Value::Vertex(_) => 6,
        Value::Edge(_) => 7,
        Value::VertexProperty(_) => 8,
        Value::Property(_) => 9,
        Value::Path(_) => 10,
        Value::Set(_) | Value::BulkSet(_) => 11,
        Value::List(_) => 12,
        Value::Map(_) | Value::Entry(_) => 13,
        Value::Tree(_) => 14,
        Value::Bytes(_) => 15,
        Value::Char(_) => 16,
        Value::Duration(_) => 17,
        Value::Metrics(_) => 18,
        Value::Token(_) => 19,
        Value::Traverser(_) => 20,
        Value::Graph(_) => 21,
        Value::Unread(element) => match **element {
            Unread::Vertex(_) => 6,
            Unread::Edge(_) => 7,
            Unread::VertexProperty(_) => 8,
            Unread::Property(_) => 9,
        },
    }
}

fn by_type(left: &Value, right: &Value, relation: &impl Relation) -> Option<Ordering> {
    match (left, right) {
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        (Value::Boolean(left), Value::Boolean(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => relation.numbers(left, right),
        (Value::DateTime(left), Value::DateTime(right)) => Some(left.utc().cmp(&right.utc())),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Uuid(left), Value::Uuid(right)) => Some(left.cmp(right)),
        (Value::Vertex(left), Value::Vertex(right)) => by_type(&left.id, &right.id, relation),
        (Value::Edge(left), Value::Edge(right)) => by_type(&left.id, &right.id, relation),
        (Value::VertexProperty(left), Value::VertexProperty(right)) => by_type(&left.id, &right.id, relation),
        (Value::Property(left), Value::Property(right)) => properties(left, right, relation),
        (Value::Path(left), Value::Path(right)) => {
            let orders = left.steps.iter().zip(&right.steps).map(|(left, right)| by_type(&left.0, &right.0, relation));
            relation.pairs(orders, left.steps.len().cmp(&right.steps.len()))
        }
        (Value::List(left), Value::List(right)) => items(left.iter(), right.iter(), relation),
        (Value::Set(_) | Value::BulkSet(_), Value::Set(_) | Value::BulkSet(_)) => sets(left, right, relation),
        (Value::Map(left), Value::Map(right)) => maps(left, right, relation),
        (Value::Entry(left), Value::Entry(right)) => {
            let orders = [(&left.0, &right.0), (&left.1, &right.1)];
            let orders = orders.into_iter().map(|(left, right)| by_type(left, right, relation));
            relation.pairs(orders, Ordering::Equal)
        }
        (Value::Tree(left), Value::Tree(right)) => trees(left, right, relation),
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        (Value::Char(left), Value::Char(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        (Value::Token(left), Value::Token(right)) => match left.enumeration().cmp(right.enumeration()) {
            Ordering::Equal => Some(left.cmp(right)),
            Ordering::Less => relation.types(0, 1),
            Ordering::Greater => relation.types(1, 0),
        },
        (Value::Traverser(left), Value::Traverser(right)) => by_type(&left.value, &right.value, relation),
        (Value::Metrics(left), Value::Metrics(right)) => Some(left.duration_nanos.cmp(&right.duration_nanos)),
        (Value::Unread(left), Value::Unread(right)) => unread(left, right, relation),
        _ => relation.types(place(left), place(right)),
    }
}

/// By identity: who orders by ids reads them first.
fn unread(left: &Unread, right: &Unread, relation: &impl Relation) -> Option<Ordering> {
    match (left, right) {
        (Unread::Vertex(left), Unread::Vertex(right)) => Some(left.cmp(right)),
        (Unread::Edge(left), Unread::Edge(right)) => Some(left.id().cmp(&right.id())),
        (Unread::VertexProperty(left), Unread::VertexProperty(right)) => {
            Some((left.element, &left.key, left.number).cmp(&(right.element, &right.key, right.number)))
        }
        (Unread::Property(left), Unread::Property(right)) => {
            let values = by_type(&left.value, &right.value, relation)?;
            Some(left.key.cmp(&right.key).then(values))
        }
        (left, right) => {
            let [left, right] = [left, right].map(|element| place(&Value::Unread(Box::new(element.clone()))));
            relation.types(left, right)
        }
    }
}

fn properties(left: &Property, right: &Property, relation: &impl Relation) -> Option<Ordering> {
    let values = by_type(&left.value, &right.value, relation)?;
    Some(left.key.cmp(&right.key).then(values))
}

fn items<'a>(
    left: impl ExactSizeIterator<Item = &'a Value>,
    right: impl ExactSizeIterator<Item = &'a Value>,
    relation: &impl Relation,
) -> Option<Ordering> {
    let lengths = left.len().cmp(&right.len());
    relation.pairs(left.zip(right).map(|(left, right)| by_type(left, right, relation)), lengths)
}

/// Sets compare as lists of their items in order. An item of a bulk set is in it several times, perhaps billions: they are
/// compared by runs.
fn sets(left: &Value, right: &Value, relation: &impl Relation) -> Option<Ordering> {
    let (left, right) = (sorted_runs(left), sorted_runs(right));
    let total = |runs: &[(&Value, u64)]| runs.iter().map(|(_, count)| u128::from(*count)).sum::<u128>();
    let lengths = total(&left).cmp(&total(&right));
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let mut runs = (left.next(), right.next());
    let orders = std::iter::from_fn(|| {
        let (Some((left_item, left_count)), Some((right_item, right_count))) = runs else { return None };
        let both = left_count.min(right_count);
        runs = (
            if left_count == both { left.next() } else { Some((left_item, left_count - both)) },
            if right_count == both { right.next() } else { Some((right_item, right_count - both)) },
        );
        Some(by_type(left_item, right_item, relation))
    });
    relation.pairs(orders, lengths)
}

fn sorted_runs(set: &Value) -> Vec<(&Value, u64)> {
    let mut runs: Vec<(&Value, u64)> = match set {
        Value::Set(items) => items.iter().map(|item| (item, 1)).collect(),
        Value::BulkSet(items) => items.iter().filter(|(_, bulk)| *bulk > 0).map(|(item, bulk)| (item, *bulk)).collect(),
        _ => Vec::new(),
    };
    runs.sort_by(|left, right| order(left.0, right.0));
    runs
}

/// Maps compare as lists of their entries in order.
fn maps(left: &[(Value, Value)], right: &[(Value, Value)], relation: &impl Relation) -> Option<Ordering> {
    let sorted = |map: &'_ [(Value, Value)]| {
        let mut places: Vec<usize> = (0..map.len()).collect();
        places.sort_by(|a, b| order(&map[*a].0, &map[*b].0).then_with(|| order(&map[*a].1, &map[*b].1)));
        places
    };
    let (left_places, right_places) = (sorted(left), sorted(right));
    let orders = left_places.iter().zip(&right_places).map(|(a, b)| {
        let ((left_key, left_value), (right_key, right_value)) = (&left[*a], &right[*b]);
        let orders = [(left_key, right_key), (left_value, right_value)];
        let orders = orders.into_iter().map(|(left, right)| by_type(left, right, relation));
        relation.pairs(orders, Ordering::Equal)
    });
    relation.pairs(orders, left.len().cmp(&right.len()))
}

/// Trees compare as maps from values to trees.
fn trees(left: &Tree, right: &Tree, relation: &impl Relation) -> Option<Ordering> {
    let sorted = |tree: &'_ Tree| {
        let mut places: Vec<usize> = (0..tree.branches.len()).collect();
        let branches = &tree.branches;
        places.sort_by(|a, b| {
            let below = || trees(&branches[*a].1, &branches[*b].1, &Orderability).unwrap_or(Ordering::Equal);
            order(&branches[*a].0, &branches[*b].0).then_with(below)
        });
        places
    };
    let (left_places, right_places) = (sorted(left), sorted(right));
    let orders = left_places.iter().zip(&right_places).map(|(a, b)| {
        let ((left_item, left_below), (right_item, right_below)) = (&left.branches[*a], &right.branches[*b]);
        let items = std::iter::once_with(|| by_type(left_item, right_item, relation));
        let below = std::iter::once_with(|| trees(left_below, right_below, relation));
        relation.pairs(items.chain(below), Ordering::Equal)
    });
    relation.pairs(orders, left.branches.len().cmp(&right.branches.len()))
}
