//! Equality, comparability and orderability, as the reference's provider documentation defines them.
//!
//! Until 3.7 a comparison that could not be made was a third truth value, which `not` kept. 3.8 has two: the predicate is
//! false, so `not(gt("a"))` of a number is *true*. [`compare`] returns `None` for it and leaves it to the predicate.
//!
//! The reference implementation differs from its documentation in places, and here the documentation counts: UUIDs compare as
//! their text (Java compares two signed longs), points in time by their instant alone, texts by code points and not by UTF-16 units,
//! the two zeros are equal, paths and properties with equal numbers of two types are equal (Java compares their hashes first).
//!
//! Sets, maps and trees compare in the order of their items, so both are sorted first. Sorting a set of sets compares each inner one
//! several times: one that is sorted again for each would take time exponential in the depth, in a call that nothing can end. So the
//! outermost collection keeps the orders of those within it ([`Orders`]), and each is sorted once. One with nothing of the kind in it
//! keeps none.

use std::{cell::RefCell, cmp::Ordering, collections::HashMap, rc::Rc};

use foldhash::fast::RandomState;

use super::{Property, Tree, Unread, Value, number};
use crate::literal::Number;

/// Whether two values are equal.
pub fn equals(left: &Value, right: &Value) -> bool {
    #[cfg(feature = "testing")]
    super::alike::compared::note();
    if length(left) != length(right) {
        return false;
    }
    compare(left, right) == Some(Ordering::Equal)
}

/// How two values of one type compare; `None` if they cannot be compared: values of two types, `NaN` and anything, and
/// collections with such a pair.
pub fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    by_type(left, right, &Comparability, None)
}

/// The order of two values of any type: total.
pub fn order(left: &Value, right: &Value) -> Ordering {
    ordered(left, right, None)
}

fn ordered(left: &Value, right: &Value, outer: Option<&Orders>) -> Ordering {
    by_type(left, right, &Orderability, outer).unwrap_or(Ordering::Equal)
}

/// The length of a collection: two of different lengths are unequal, whatever their items are.
fn length(value: &Value) -> Option<u128> {
    match value {
        Value::List(items) => Some(items.len() as u128),
        Value::Set(items) => Some(items.len() as u128),
        Value::BulkSet(items) => Some(items.iter().map(|(_, bulk)| u128::from(*bulk)).sum()),
        Value::Map(entries) => Some(entries.len() as u128),
        Value::Path(path) => Some(path.steps.len() as u128),
        Value::Tree(tree) => Some(tree.branches.len() as u128),
        _ => None,
    }
}

/// The orders of the collections within one: by where the items are, the places of the items in their order.
///
/// The outermost has them for as long as it is compared, so that no item moves.
#[derive(Default)]
struct Orders(RefCell<HashMap<*const (), Rc<Vec<usize>>, RandomState>>);

/// The places of the items that count, in their order. `outer` has it if they were sorted before, and keeps it if not; the
/// outermost collection has no `outer`, and is sorted once anyway.
fn sorted<T>(
    items: &[T],
    outer: Option<&Orders>,
    counts: impl Fn(&T) -> bool,
    order: impl Fn(&T, &T) -> Ordering,
) -> Rc<Vec<usize>> {
    let at = items.as_ptr().cast::<()>();
    if let Some(known) = outer.and_then(|orders| orders.0.borrow().get(&at).map(Rc::clone)) {
        return known;
    }
    let mut places: Vec<usize> = (0..items.len()).filter(|place| counts(&items[*place])).collect();
    places.sort_by(|a, b| order(&items[*a], &items[*b]));
    let places = Rc::new(places);
    if let (Some(orders), 2..) = (outer, items.len()) {
        orders.0.borrow_mut().insert(at, Rc::clone(&places));
    }
    places
}

/// What comparability and orderability do differently.
trait Relation {
    /// Values of two types.
    fn types(&self, left: u8, right: u8) -> Option<Ordering>;

    /// Two numbers.
    fn numbers(&self, left: &Number, right: &Number) -> Option<Ordering>;

    /// Pairs of items: the first that differs decides, and then the lengths.
    fn pairs(
        &self,
        orders: impl Iterator<Item = Option<Ordering>>,
        lengths: impl FnOnce() -> Ordering,
    ) -> Option<Ordering>;
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
    fn pairs(
        &self,
        orders: impl Iterator<Item = Option<Ordering>>,
        lengths: impl FnOnce() -> Ordering,
    ) -> Option<Ordering> {
        let mut decided = Ordering::Equal;
        for order in orders {
            decided = decided.then(order?);
        }
        Some(decided.then_with(lengths))
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

    fn pairs(
        &self,
        mut orders: impl Iterator<Item = Option<Ordering>>,
        lengths: impl FnOnce() -> Ordering,
    ) -> Option<Ordering> {
        let decided = orders.find(|order| *order != Some(Ordering::Equal)).flatten();
        Some(decided.unwrap_or(Ordering::Equal).then_with(lengths))
    }
}

/// The place of a type in the order of all. Types that the reference calls unknown come last, by name.
///
/// What can be compared has a place of its own, or the order would not be total: two maps that differ would both be at the place of an entry.
fn place(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Boolean(_) => 1,
        Value::Number(_) => 2,
        Value::DateTime(..) => 3,
        Value::Text(_) => 4,
        Value::Uuid(_) => 5,
        Value::Vertex(_) => 6,
        Value::Edge(_) => 8,
        Value::VertexProperty(_) => 10,
        Value::Property(_) => 12,
        Value::Path(_) => 14,
        Value::Set(_) | Value::BulkSet(_) => 15,
        Value::List(_) => 16,
        Value::Map(_) => 17,
        Value::Entry(_) => 18,
        Value::Tree(_) => 19,
        Value::Bytes(_) => 20,
        Value::Char(_) => 21,
        Value::Duration(_) => 22,
        Value::Metrics(_) => 23,
        Value::Token(_) => 24,
        Value::Traverser(_) => 25,
        Value::Graph(_) => 26,
        Value::Unread(element) => match **element {
            Unread::Vertex(_) => 7,
            Unread::Edge(_) => 9,
            Unread::VertexProperty(_) => 11,
            Unread::Property(_) => 13,
        },
    }
}

#[cfg(test)]
thread_local! {
    /// How many pairs of values have been compared.
    pub(super) static COMPARISONS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn by_type(left: &Value, right: &Value, relation: &impl Relation, outer: Option<&Orders>) -> Option<Ordering> {
    #[cfg(test)]
    COMPARISONS.set(COMPARISONS.get() + 1);
    match (left, right) {
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        (Value::Boolean(left), Value::Boolean(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => relation.numbers(left, right),
        (Value::DateTime(left), Value::DateTime(right)) => Some(left.utc().cmp(&right.utc())),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Uuid(left), Value::Uuid(right)) => Some(left.cmp(right)),
        (Value::Vertex(left), Value::Vertex(right)) => by_type(&left.id, &right.id, relation, outer),
        (Value::Edge(left), Value::Edge(right)) => by_type(&left.id, &right.id, relation, outer),
        (Value::VertexProperty(left), Value::VertexProperty(right)) => by_type(&left.id, &right.id, relation, outer),
        (Value::Property(left), Value::Property(right)) => properties(left, right, relation, outer),
        (Value::Path(left), Value::Path(right)) => {
            let orders =
                left.steps.iter().zip(&right.steps).map(|(left, right)| by_type(&left.0, &right.0, relation, outer));
            relation.pairs(orders, || left.steps.len().cmp(&right.steps.len()))
        }
        (Value::List(left), Value::List(right)) => items(left.iter(), right.iter(), relation, outer),
        (Value::Set(_) | Value::BulkSet(_), Value::Set(_) | Value::BulkSet(_)) => sets(left, right, relation, outer),
        (Value::Map(left), Value::Map(right)) => maps(left, right, relation, outer),
        (Value::Entry(left), Value::Entry(right)) => {
            let orders = [(&left.0, &right.0), (&left.1, &right.1)];
            let orders = orders.into_iter().map(|(left, right)| by_type(left, right, relation, outer));
            relation.pairs(orders, || Ordering::Equal)
        }
        (Value::Tree(left), Value::Tree(right)) => trees(left, right, relation, outer),
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        (Value::Char(left), Value::Char(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        (Value::Token(left), Value::Token(right)) => match left.enumeration().cmp(right.enumeration()) {
            Ordering::Equal => Some(left.cmp(right)),
            Ordering::Less => relation.types(0, 1),
            Ordering::Greater => relation.types(1, 0),
        },
        (Value::Traverser(left), Value::Traverser(right)) => by_type(&left.value, &right.value, relation, outer),
        (Value::Metrics(left), Value::Metrics(right)) => Some(left.duration_nanos.cmp(&right.duration_nanos)),
        (Value::Unread(left), Value::Unread(right)) => unread(left, right, relation, outer),
        _ => relation.types(place(left), place(right)),
    }
}

/// By identity: who orders by ids reads them first.
fn unread(left: &Unread, right: &Unread, relation: &impl Relation, outer: Option<&Orders>) -> Option<Ordering> {
    match (left, right) {
        (Unread::Vertex(left), Unread::Vertex(right)) => Some(left.cmp(right)),
        (Unread::Edge(left), Unread::Edge(right)) => Some(left.id().cmp(&right.id())),
        (Unread::VertexProperty(left), Unread::VertexProperty(right)) => {
            Some((left.element, &left.key, left.number).cmp(&(right.element, &right.key, right.number)))
        }
        (Unread::Property(left), Unread::Property(right)) => {
            let values = by_type(&left.value, &right.value, relation, outer)?;
            Some(left.key.cmp(&right.key).then(values))
        }
        (left, right) => {
            let [left, right] = [left, right].map(|element| place(&Value::Unread(Box::new(element.clone()))));
            relation.types(left, right)
        }
    }
}

fn properties(left: &Property, right: &Property, relation: &impl Relation, outer: Option<&Orders>) -> Option<Ordering> {
    let values = by_type(&left.value, &right.value, relation, outer)?;
    Some(left.key.cmp(&right.key).then(values))
}

fn items<'a>(
    left: impl ExactSizeIterator<Item = &'a Value>,
    right: impl ExactSizeIterator<Item = &'a Value>,
    relation: &impl Relation,
    outer: Option<&Orders>,
) -> Option<Ordering> {
    let lengths = left.len().cmp(&right.len());
    relation.pairs(left.zip(right).map(|(left, right)| by_type(left, right, relation, outer)), || lengths)
}

/// Sets compare as lists of their items in order. An item of a bulk set is in it several times, perhaps billions: they are
/// compared by runs.
fn sets(left: &Value, right: &Value, relation: &impl Relation, outer: Option<&Orders>) -> Option<Ordering> {
    let own = Orders::default();
    let within = Some(outer.unwrap_or(&own));
    let places = |set: &Value| match set {
        Value::Set(items) => sorted(items, outer, |_| true, |a, b| ordered(a, b, within)),
        Value::BulkSet(items) => sorted(items, outer, |(_, bulk)| *bulk > 0, |a, b| ordered(&a.0, &b.0, within)),
        _ => Rc::default(),
    };
    let left_places = places(left);
    let right_places = places(right);
    let mut left_runs = left_places.iter().filter_map(|place| run(left, *place));
    let mut right_runs = right_places.iter().filter_map(|place| run(right, *place));
    let mut runs = (left_runs.next(), right_runs.next());
    let orders = std::iter::from_fn(|| {
        let (Some((left_item, left_count)), Some((right_item, right_count))) = runs else { return None };
        let both = left_count.min(right_count);
        runs = (
            if left_count == both { left_runs.next() } else { Some((left_item, left_count - both)) },
            if right_count == both { right_runs.next() } else { Some((right_item, right_count - both)) },
        );
        Some(by_type(left_item, right_item, relation, within))
    });
    relation.pairs(orders, || length(left).cmp(&length(right)))
}

/// The item of a set at a place, and how many times it is there.
fn run(set: &Value, place: usize) -> Option<(&Value, u64)> {
    match set {
        Value::Set(items) => Some((items.get(place)?, 1)),
        Value::BulkSet(items) => items.get(place).map(|(item, bulk)| (item, *bulk)),
        _ => None,
    }
}

/// Maps compare as lists of their entries in order.
fn maps(
    left: &[(Value, Value)],
    right: &[(Value, Value)],
    relation: &impl Relation,
    outer: Option<&Orders>,
) -> Option<Ordering> {
    let own = Orders::default();
    let within = Some(outer.unwrap_or(&own));
    let places = |map: &[(Value, Value)]| {
        sorted(map, outer, |_| true, |a, b| ordered(&a.0, &b.0, within).then_with(|| ordered(&a.1, &b.1, within)))
    };
    let left_places = places(left);
    let right_places = places(right);
    let orders = left_places.iter().zip(right_places.iter()).map(|(a, b)| {
        let ((left_key, left_value), (right_key, right_value)) = (&left[*a], &right[*b]);
        let orders = [(left_key, right_key), (left_value, right_value)];
        let orders = orders.into_iter().map(|(left, right)| by_type(left, right, relation, within));
        relation.pairs(orders, || Ordering::Equal)
    });
    relation.pairs(orders, || left.len().cmp(&right.len()))
}

/// Trees compare as maps from values to trees.
fn trees(left: &Tree, right: &Tree, relation: &impl Relation, outer: Option<&Orders>) -> Option<Ordering> {
    let own = Orders::default();
    let within = Some(outer.unwrap_or(&own));
    let places = |tree: &Tree| {
        sorted(
            &tree.branches,
            outer,
            |_| true,
            |a, b| {
                let below = || trees(&a.1, &b.1, &Orderability, within).unwrap_or(Ordering::Equal);
                ordered(&a.0, &b.0, within).then_with(below)
            },
        )
    };
    let left_places = places(left);
    let right_places = places(right);
    let orders = left_places.iter().zip(right_places.iter()).map(|(a, b)| {
        let ((left_item, left_below), (right_item, right_below)) = (&left.branches[*a], &right.branches[*b]);
        let items = std::iter::once_with(|| by_type(left_item, right_item, relation, within));
        let below = std::iter::once_with(|| trees(left_below, right_below, relation, within));
        relation.pairs(items.chain(below), || Ordering::Equal)
    });
    relation.pairs(orders, || left.branches.len().cmp(&right.branches.len()))
}
