//! Names and properties as changes have them.
//!
//! A batch may have a million edges, each with a few properties. So short names are stored inline, and the properties
//! of an item are adjacent in one allocation, in the order in which they are read.

use std::{fmt, ops::Index};

use arrow_array::RecordBatch;
use hoplake_format::constants::KEY_COLUMN;
use litemap::LiteMap;
use smol_str::SmolStr;

use super::Value;

/// The name of a label or of a property. One of at most 23 bytes is stored inline; clones share a longer one.
pub type Name = SmolStr;

/// Values by the names of their properties, ascending.
///
/// ```
/// use hoplake_engine::change::{Properties, Value};
///
/// let mut ann = Properties::from([("name", "Ann"), ("city", "Ghent")]);
/// ann.insert("age", 7);
/// assert_eq!(ann.get("age"), Some(&Value::Int64(7)));
/// assert_eq!(ann.names().collect::<Vec<_>>(), ["age", "city", "name"]);
/// ```
#[derive(Clone, PartialEq, Default)]
pub struct Properties(LiteMap<Name, Value>);

impl Properties {
    /// None at all, to refer to.
    pub(crate) const NONE: &Self = &Self(LiteMap::new());

    /// None at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// The memory that they take besides their own size, without their names.
    pub(super) fn heap_bytes(&self) -> usize {
        let values = self.0.values().map(Value::heap_bytes).sum::<usize>();
        self.0.len() * size_of::<(Name, Value)>() + values
    }

    /// The properties of a row of a batch; the key of a vertex is not among them.
    pub(crate) fn at(batch: &RecordBatch, row: usize) -> Self {
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns()).filter(|(field, _)| field.name() != KEY_COLUMN);
        columns.map(|(field, column)| (field.name().as_str(), Value::at(column, row))).collect()
    }

    /// The memory that they take, without their names.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.heap_bytes()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a property, if it is named.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Gives a property a value; the one that it had is returned.
    pub fn insert(&mut self, name: impl Into<Name>, value: impl Into<Value>) -> Option<Value> {
        self.0.insert(name.into(), value.into())
    }

    /// Keeps the properties that `wanted` selects.
    pub fn retain(&mut self, mut wanted: impl FnMut(&Name, &Value) -> bool) {
        self.0.retain(|name, value| wanted(name, value));
    }

    /// The names, ascending.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().map(|(name, _)| name)
    }

    /// Names and values, ascending by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Value)> {
        self.0.iter()
    }
}

impl Index<&str> for Properties {
    type Output = Value;

    /// The value of a property that is named.
    fn index(&self, name: &str) -> &Value {
        self.get(name).unwrap_or_else(|| panic!("there is no property {name:?}"))
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter()).finish()
    }
}

impl<N: Into<Name>, V: Into<Value>> Extend<(N, V)> for Properties {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, values: I) {
        values.into_iter().for_each(|(name, value)| drop(self.insert(name, value)));
    }
}

impl<N: Into<Name>, V: Into<Value>> FromIterator<(N, V)> for Properties {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(values: I) -> Self {
        let mut values: Vec<(Name, Value)> =
            values.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        // The map appends in order and moves what is behind otherwise: a million names in no order would be quadratic. The sort is
        // stable, so of one name the last value stays the last, which wins.
        values.sort_by(|a, b| a.0.cmp(&b.0));
        let mut properties = Self(LiteMap::with_capacity(values.len()));
        properties.extend(values);
        properties
    }
}

impl<N: Into<Name>, V: Into<Value>, const LENGTH: usize> From<[(N, V); LENGTH]> for Properties {
    fn from(values: [(N, V); LENGTH]) -> Self {
        values.into_iter().collect()
    }
}

impl<'a> IntoIterator for &'a Properties {
    type Item = (&'a Name, &'a Value);
    type IntoIter = <&'a LiteMap<Name, Value> as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl IntoIterator for Properties {
    type Item = (Name, Value);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_tuple_vec().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_name_stays() {
        let mut properties = Properties::from([("b", 1), ("a", 2), ("b", 3)]);
        assert_eq!(properties, Properties::from([("a", 2), ("b", 3)]));
        properties.extend([("a", "x")]);
        assert_eq!(format!("{properties:?}"), r#"{"a": String("x"), "b": Int64(3)}"#);
        let owned: Vec<_> = properties.into_iter().collect();
        assert_eq!(owned, [("a".into(), "x".into()), ("b".into(), Value::Int64(3))]);
    }
}
