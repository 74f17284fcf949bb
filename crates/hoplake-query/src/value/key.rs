//! Equivalence: which values `dedup`, `group` and the keys of maps take for one.
//!
//! It is `equals` of Java's types: `1` and `1.0` are two, as are `1.0m` and `1.00m`; `NaN` is one; an element is its type
//! and id; a set is its items in any order.
//!
//! All that tells two values apart is in their hashes, and no one outside the process can compute these: values of one hash make a
//! table compare each with each. The hash of a collection is that of all below it, so sets of sets are hashed once for each level:
//! what becomes a set or a map from outside has at most [`TABLES_MAX`] levels.

use std::{
    hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState},
    mem,
    sync::LazyLock,
};

use super::{Metrics, Tree, Unread, Value};
use crate::literal::Number;

/// A value as a key: `Eq` and `Hash` by equivalence.
///
/// ```
/// use std::collections::HashSet;
///
/// use hoplake_query::value::{Key, Value};
///
/// let values = [Value::from(1), Value::from(1), Value::from(1.0), Value::from(f64::NAN), Value::from(f64::NAN)];
/// let distinct: HashSet<Key> = values.iter().map(Key).collect();
/// assert_eq!(distinct.len(), 3);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Key<'a>(pub &'a Value);

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        #[cfg(feature = "testing")]
        super::alike::compared::note();
        equivalent(self.0, other.0)
    }
}

impl Eq for Key<'_> {}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_value(self.0, state);
    }
}

fn equivalent(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => numbers(left, right),
        (Value::Vertex(left), Value::Vertex(right)) => equivalent(&left.id, &right.id),
        (Value::Edge(left), Value::Edge(right)) => equivalent(&left.id, &right.id),
        (Value::VertexProperty(left), Value::VertexProperty(right)) => equivalent(&left.id, &right.id),
        (Value::Property(left), Value::Property(right)) => {
            left.key == right.key && equivalent(&left.value, &right.value)
        }
        (Value::Path(left), Value::Path(right)) => {
            left.steps.len() == right.steps.len()
                && left.steps.iter().zip(&right.steps).all(|((left, left_labels), (right, right_labels))| {
                    same_labels(left_labels, right_labels) && equivalent(left, right)
                })
        }
        (Value::List(left), Value::List(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equivalent(left, right))
        }
        (Value::Set(left), Value::Set(right)) => same_entries(left, right, Key, |_, _| true),
        (Value::BulkSet(left), Value::BulkSet(right)) => {
            same_entries(left, right, |item| Key(&item.0), |left, right| left.1 == right.1)
        }
        (Value::Map(left), Value::Map(right)) => {
            same_entries(left, right, |entry| Key(&entry.0), |left, right| equivalent(&left.1, &right.1))
        }
        (Value::Entry(left), Value::Entry(right)) => equivalent(&left.0, &right.0) && equivalent(&left.1, &right.1),
        (Value::Tree(left), Value::Tree(right)) => trees(left, right),
        (Value::Graph(left), Value::Graph(right)) => {
            same_entries(&left.vertices, &right.vertices, Key, |_, _| true)
                && same_entries(&left.edges, &right.edges, Key, |_, _| true)
        }
        (Value::Traverser(left), Value::Traverser(right)) => equivalent(&left.value, &right.value),
        (Value::Unread(left), Value::Unread(right)) => unread(left, right),
        (Value::Metrics(left), Value::Metrics(right)) => {
            left.duration_nanos == right.duration_nanos && same_metrics(&left.steps, &right.steps)
        }
        // Neither the offset, as for equality.
        (Value::DateTime(left), Value::DateTime(right)) => left.utc() == right.utc(),
        (left, right) => left == right,
    }
}

fn unread(left: &Unread, right: &Unread) -> bool {
    match (left, right) {
        (Unread::Vertex(left), Unread::Vertex(right)) => left == right,
        (Unread::Edge(left), Unread::Edge(right)) => left.id() == right.id(),
        (Unread::VertexProperty(left), Unread::VertexProperty(right)) => {
            (left.element, &left.key, left.number) == (right.element, &right.key, right.number)
        }
        (Unread::Property(left), Unread::Property(right)) => {
            left.key == right.key && equivalent(&left.value, &right.value)
        }
        _ => false,
    }
}

/// Labels are sets.
fn same_labels(left: &[Box<str>], right: &[Box<str>]) -> bool {
    left == right || sorted_labels(left) == sorted_labels(right)
}

fn sorted_labels(labels: &[Box<str>]) -> Vec<&str> {
    let mut labels: Vec<&str> = labels.iter().map(|label| &**label).collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

fn same_metrics(left: &[Metrics], right: &[Metrics]) -> bool {
    let own = |it: &Metrics| (it.id.clone(), it.name.clone(), it.duration_nanos, it.counts.clone());
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| {
            let annotations = left.annotations.iter().zip(&right.annotations);
            own(left) == own(right)
                && left.annotations.len() == right.annotations.len()
                && annotations.into_iter().all(|(left, right)| left.0 == right.0 && equivalent(&left.1, &right.1))
                && same_metrics(&left.nested, &right.nested)
        })
}

fn numbers(left: &Number, right: &Number) -> bool {
    match (left, right) {
        // By their bits, so that `NaN` is one and the two zeros are two.
        (Number::Float(left), Number::Float(right)) => float_bits(*left) == float_bits(*right),
        (Number::Double(left), Number::Double(right)) => double_bits(*left) == double_bits(*right),
        (Number::BigDecimal(left), Number::BigDecimal(right)) => {
            left.as_bigint_and_exponent() == right.as_bigint_and_exponent()
        }
        (left, right) => left == right,
    }
}

fn float_bits(number: f32) -> u32 {
    if number.is_nan() { f32::NAN.to_bits() } else { number.to_bits() }
}

fn double_bits(number: f64) -> u64 {
    if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() }
}

fn trees(left: &Tree, right: &Tree) -> bool {
    same_entries(&left.branches, &right.branches, |branch| Key(&branch.0), |left, right| trees(&left.1, &right.1))
}

/// Whether both have the same keys, and each the same under it, in any order.
fn same_entries<'a, T>(
    left: &'a [T],
    right: &'a [T],
    key: impl Fn(&'a T) -> Key<'a>,
    same: impl Fn(&'a T, &'a T) -> bool,
) -> bool {
    if left.len() != right.len() {
        return false;
    }
    if let ([left], [right]) = (left, right) {
        return key(left) == key(right) && same(left, right);
    }
    let by_key: std::collections::HashMap<Key, &T> = right.iter().map(|entry| (key(entry), entry)).collect();
    left.iter().all(|entry| by_key.get(&key(entry)).is_some_and(|other| same(entry, other)))
}

fn hash_value<H: Hasher>(value: &Value, state: &mut H) {
    mem::discriminant(value).hash(state);
    match value {
        Value::Null => {}
        Value::Boolean(boolean) => boolean.hash(state),
        Value::Number(number) => hash_number(number, state),
        Value::Text(text) => text.hash(state),
        Value::Char(character) => character.hash(state),
        Value::DateTime(moment) => moment.utc().hash(state),
        Value::Duration(duration) => duration.hash(state),
        Value::Uuid(uuid) => uuid.hash(state),
        Value::Bytes(bytes) => bytes.hash(state),
        Value::List(items) => items.iter().for_each(|item| hash_value(item, state)),
        Value::Set(items) => hash_any_order(items, state, hash_value),
        Value::BulkSet(items) => hash_any_order(items, state, |(item, bulk), state| {
            hash_value(item, state);
            bulk.hash(state);
        }),
        Value::Map(entries) => hash_any_order(entries, state, |(key, value), state| {
            hash_value(key, state);
            hash_value(value, state);
        }),
        Value::Entry(entry) => {
            hash_value(&entry.0, state);
            hash_value(&entry.1, state);
        }
        Value::Tree(tree) => hash_tree(tree, state),
        Value::Graph(graph) => {
            [&graph.vertices, &graph.edges].into_iter().for_each(|all| hash_any_order(all, state, hash_value))
        }
        Value::Metrics(metrics) => {
            metrics.duration_nanos.hash(state);
            hash_metrics(&metrics.steps, state);
        }
        Value::Vertex(vertex) => hash_value(&vertex.id, state),
        Value::Edge(edge) => hash_value(&edge.id, state),
        Value::VertexProperty(property) => hash_value(&property.id, state),
        Value::Property(property) => {
            property.key.hash(state);
            hash_value(&property.value, state);
        }
        Value::Path(path) => path.steps.iter().for_each(|(item, labels)| {
            hash_value(item, state);
            sorted_labels(labels).hash(state);
        }),
        Value::Token(token) => token.hash(state),
        Value::Traverser(traverser) => hash_value(&traverser.value, state),
        Value::Unread(element) => hash_unread(element, state),
    }
}

fn hash_unread<H: Hasher>(element: &Unread, state: &mut H) {
    mem::discriminant(element).hash(state);
    match element {
        Unread::Vertex(vertex) => vertex.hash(state),
        Unread::Edge(edge) => edge.id().hash(state),
        Unread::VertexProperty(property) => (property.element, &property.key, property.number).hash(state),
        Unread::Property(property) => {
            property.key.hash(state);
            hash_value(&property.value, state);
        }
    }
}

fn hash_number<H: Hasher>(number: &Number, state: &mut H) {
    mem::discriminant(number).hash(state);
    match number {
        Number::Byte(number) => number.hash(state),
        Number::Short(number) => number.hash(state),
        Number::Int(number) => number.hash(state),
        Number::Long(number) => number.hash(state),
        Number::BigInteger(number) => number.hash(state),
        Number::Float(number) => float_bits(*number).hash(state),
        Number::Double(number) => double_bits(*number).hash(state),
        Number::BigDecimal(number) => number.as_bigint_and_exponent().hash(state),
    }
}

fn hash_tree<H: Hasher>(tree: &Tree, state: &mut H) {
    hash_any_order(&tree.branches, state, |(item, below), state| {
        hash_value(item, state);
        hash_tree(below, state);
    });
}

fn hash_metrics<H: Hasher>(all: &[Metrics], state: &mut H) {
    all.len().hash(state);
    for metrics in all {
        (&metrics.id, &metrics.name, metrics.duration_nanos, &metrics.counts).hash(state);
        for (name, value) in &metrics.annotations {
            name.hash(state);
            hash_value(value, state);
        }
        hash_metrics(&metrics.nested, state);
    }
}

/// The sum of the items' hashes does not depend on their order.
fn hash_any_order<T, H: Hasher>(items: &[T], state: &mut H, hash: impl Fn(&T, &mut DefaultHasher)) {
    // With keys that everyone knows, sets of one sum are found in seconds.
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    items.len().hash(state);
    let hash = |item| {
        let mut hasher = KEYS.build_hasher();
        hash(item, &mut hasher);
        hasher.finish()
    };
    items.iter().map(hash).fold(0_u64, u64::wrapping_add).hash(state);
}

/// Sets, and maps by their keys, within each other, at most, that arguments may have: each finds repeats in a table, for which all
/// below is hashed again.
pub const TABLES_MAX: usize = 16;

/// For how many of them a bulk set counts. It needs no table, but comparing two by runs pairs an item with up to all of the other's,
/// which doubles the work at each level.
pub const BULK_SET_TABLES: usize = 4;

/// What hashing values takes.
#[derive(Debug, Default)]
pub struct Hashed {
    /// How many values are hashed, those within others too.
    pub values: usize,
    /// In how many tables, one within another, they have been before. Less than two values need no table.
    pub tables: usize,
}

impl Hashed {
    /// That of some values.
    pub fn of<'a>(values: impl Iterator<Item = &'a Value>) -> Self {
        let mut hashed = Self::default();
        values.for_each(|value| hashed.add_within(value, 0));
        hashed
    }

    fn add_within(&mut self, value: &Value, tables: usize) {
        self.values += 1;
        self.tables = self.tables.max(tables);
        let table = |length: usize| tables + usize::from(length > 1);
        match value {
            Value::List(items) => items.iter().for_each(|item| self.add_within(item, tables)),
            Value::Set(items) => items.iter().for_each(|item| self.add_within(item, table(items.len()))),
            Value::BulkSet(items) => {
                let tables = tables + BULK_SET_TABLES * usize::from(items.len() > 1);
                items.iter().for_each(|(item, _)| self.add_within(item, tables));
            }
            Value::Map(entries) => entries.iter().for_each(|(key, value)| {
                self.add_within(key, table(entries.len()));
                self.add_within(value, tables);
            }),
            Value::Entry(entry) => [&entry.0, &entry.1].into_iter().for_each(|it| self.add_within(it, tables)),
            Value::Path(path) => path.steps.iter().for_each(|(item, _)| self.add_within(item, tables)),
            Value::Tree(tree) => self.add_tree(tree, tables),
            Value::Vertex(vertex) => self.add_within(&vertex.id, tables),
            Value::Edge(edge) => self.add_within(&edge.id, tables),
            Value::VertexProperty(property) => self.add_within(&property.id, tables),
            Value::Property(property) => self.add_within(&property.value, tables),
            Value::Traverser(traverser) => self.add_within(&traverser.value, tables),
            // Scalars, and what only results have.
            _ => {}
        }
    }

    fn add_tree(&mut self, tree: &Tree, tables: usize) {
        for (item, below) in &tree.branches {
            self.add_within(item, tables + usize::from(tree.branches.len() > 1));
            self.add_tree(below, tables);
        }
    }
}
