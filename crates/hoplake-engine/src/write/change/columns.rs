//! Upserts as columns: a record batch with a row for each vertex or edge.
//!
//! The values, for which single operations need an allocation each, are adjacent here until they are encoded. A row
//! means what the single upsert of its cells means; a null is a property that is not named.

use std::fmt;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, cast::AsArray, types::Int64Type};
use arrow_schema::DataType;
use hoplake_format::{Key, KeyType, PropertyType, ScalarType};

use super::{Name, Operation, Properties, Value, VertexRef};
use crate::EngineError;

/// Upserts of vertices of one label, or of edges of one label between vertices of two: one for each row.
///
/// Vertices have their key in column `key`, edges the keys of their ends in `source` and `target`, as int64 or utf8.
/// Every other column is a property of its name; a dot before the name is left out, so that `.key` is the property
/// `key`.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    label: Name,
    /// The labels of the ends of edges.
    ends: Option<[Name; 2]>,
    /// The keys of vertices, or of the ends of edges.
    keys: Vec<KeyColumn>,
    rows: usize,
    properties: Vec<PropertyColumn>,
    replace: bool,
}

/// The keys of all rows.
#[derive(Debug, Clone, PartialEq)]
enum KeyColumn {
    Int64(Int64Array),
    String(StringArray),
}

/// A property of all rows.
#[derive(Debug, Clone)]
pub(super) struct PropertyColumn {
    pub(super) name: Name,
    pub(super) kind: PropertyType,
    pub(super) values: ArrayRef,
}

impl PartialEq for PropertyColumn {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.kind) == (&other.name, other.kind) && self.values.as_ref() == other.values.as_ref()
    }
}

/// A key where a batch has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyRef<'a> {
    Int64(i64),
    String(&'a str),
}

impl<'a> From<&'a Key> for KeyRef<'a> {
    fn from(key: &'a Key) -> Self {
        match key {
            Key::Int64(key) => Self::Int64(*key),
            Key::String(key) => Self::String(key),
        }
    }
}

impl Columns {
    /// Upserts of vertices of a label.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if it lacks a column `key` of a type of keys, if a key is null, if a column has a type
    /// that no property has, and if two have one name.
    pub fn vertices(label: impl Into<Name>, rows: &RecordBatch) -> Result<Self, EngineError> {
        Self::of(label.into(), None, &["key"], rows)
    }

    /// Upserts of edges of a label from vertices of one label to vertices of another one.
    ///
    /// # Errors
    /// As [`Self::vertices`], with the columns `source` and `target`.
    pub fn edges(
        label: impl Into<Name>,
        source: impl Into<Name>,
        target: impl Into<Name>,
        rows: &RecordBatch,
    ) -> Result<Self, EngineError> {
        Self::of(label.into(), Some([source.into(), target.into()]), &["source", "target"], rows)
    }

    /// Properties that a row does not name become null; otherwise they keep their values.
    #[must_use]
    pub fn replacing(self) -> Self {
        Self { replace: true, ..self }
    }

    fn of(label: Name, ends: Option<[Name; 2]>, of_keys: &[&str], rows: &RecordBatch) -> Result<Self, EngineError> {
        let what = if ends.is_some() { "edges" } else { "vertices" };
        let rejected = |why: String| EngineError::Invalid(format!("columns of {what} {label} {why}"));
        let keys = of_keys.iter().map(|name| match rows.column_by_name(name) {
            None => Err(rejected(format!("lack the column {name}"))),
            Some(column) => KeyColumn::of(name, column).map_err(&rejected),
        });
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let mut properties: Vec<PropertyColumn> = Vec::new();
        let schema = rows.schema();
        let mut keys_seen = 0;
        for (field, values) in schema.fields().iter().zip(rows.columns()) {
            if of_keys.contains(&field.name().as_str()) {
                keys_seen += 1;
                continue;
            }
            let name = field.name().strip_prefix('.').unwrap_or(field.name());
            if name.is_empty() {
                return Err(rejected("have a column without a name".into()));
            }
            if properties.iter().any(|column| column.name == name) {
                return Err(rejected(format!("have the property {name} twice")));
            }
            let kind = property_type(values.data_type());
            let kind = kind.ok_or_else(|| {
                rejected(format!("have column {name} of type {}, which no property has", values.data_type()))
            })?;
            // An Arrow array shares its buffers, so no value is copied.
            properties.push(PropertyColumn { name: name.into(), kind, values: values.clone() });
        }
        // Of two columns with one name, only the first was found above: the second would be ignored.
        if keys_seen > of_keys.len() {
            return Err(rejected(format!("have one of the columns {} twice", of_keys.join(", "))));
        }
        // In the order of a single operation's properties.
        properties.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { label, ends, keys, rows: rows.num_rows(), properties, replace: false })
    }

    /// Some of the rows.
    #[must_use]
    pub fn slice(&self, first: usize, rows: usize) -> Self {
        let key = |keys: &KeyColumn| match keys {
            KeyColumn::Int64(keys) => KeyColumn::Int64(keys.slice(first, rows)),
            KeyColumn::String(keys) => KeyColumn::String(keys.slice(first, rows)),
        };
        let property = |it: &PropertyColumn| PropertyColumn { values: it.values.slice(first, rows), ..it.clone() };
        let properties = self.properties.iter().map(property).collect();
        Self { keys: self.keys.iter().map(key).collect(), rows, properties, ..self.clone() }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The memory that the rows take, without what a slice leaves out.
    pub(super) fn memory_bytes(&self) -> usize {
        let keys = self.keys.iter().map(|keys| match keys {
            KeyColumn::Int64(keys) => keys.to_data(),
            KeyColumn::String(keys) => keys.to_data(),
        });
        let all = keys.chain(self.properties.iter().map(|column| column.values.to_data()));
        // It fails of types that no column here has.
        all.map(|data| data.get_slice_memory_size().unwrap_or_default()).sum()
    }

    /// The label of the vertices or of the edges.
    pub fn label(&self) -> &Name {
        &self.label
    }

    /// The labels of the vertices that edges leave and reach; `None` of vertices.
    pub fn ends(&self) -> Option<&[Name; 2]> {
        self.ends.as_ref()
    }

    /// The single upsert that a row stands for.
    pub fn operation(&self, row: usize) -> Operation {
        let label = self.label.clone();
        let properties = self.properties_at(row);
        let replace = self.replace;
        match self.ends {
            None => Operation::UpsertVertex { vertex: self.end(row, 0), properties, replace },
            Some(_) => {
                let source = self.end(row, 0);
                let target = self.end(row, 1);
                Operation::UpsertEdge { label, source, target, key: None, properties, replace }
            }
        }
    }

    pub(super) fn replaces(&self) -> bool {
        self.replace
    }

    /// The label of a vertex that is named: `which` is 1 of a target, 0 else.
    pub(super) fn end_label(&self, which: usize) -> &Name {
        self.ends.as_ref().map_or(&self.label, |ends| &ends[which])
    }

    pub(super) fn key_type(&self, which: usize) -> KeyType {
        match self.keys[which] {
            KeyColumn::Int64(_) => KeyType::Int64,
            KeyColumn::String(_) => KeyType::String,
        }
    }

    pub(super) fn key(&self, row: usize, which: usize) -> KeyRef<'_> {
        match &self.keys[which] {
            KeyColumn::Int64(keys) => KeyRef::Int64(keys.value(row)),
            KeyColumn::String(keys) => KeyRef::String(keys.value(row)),
        }
    }

    pub(super) fn end(&self, row: usize, which: usize) -> VertexRef {
        let key = match self.key(row, which) {
            KeyRef::Int64(key) => Key::Int64(key),
            KeyRef::String(key) => Key::String(key.to_owned()),
        };
        VertexRef { label: self.end_label(which).clone(), key }
    }

    /// Ascending by name.
    pub(super) fn properties(&self) -> &[PropertyColumn] {
        &self.properties
    }

    /// The properties of a row.
    pub(super) fn properties_at(&self, row: usize) -> Properties {
        let named = self.properties.iter().filter(|column| column.values.is_valid(row));
        named.map(|column| (column.name.clone(), Value::at(&column.values, row))).collect()
    }

    /// Whether a row names a property.
    pub(super) fn names(&self, row: usize, property: &str) -> bool {
        self.properties.iter().any(|column| column.name == property && column.values.is_valid(row))
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { label, rows, .. } = self;
        match &self.ends {
            None => write!(f, "upsert of {rows} vertices {label}"),
            Some([source, target]) => write!(f, "upsert of {rows} edges {source} -{label}-> {target}"),
        }
    }
}

impl KeyColumn {
    /// The error is the end of a sentence about the columns.
    fn of(name: &str, column: &ArrayRef) -> Result<Self, String> {
        let keys = match column.data_type() {
            DataType::Int64 => Self::Int64(column.as_primitive::<Int64Type>().clone()),
            DataType::Utf8 => Self::String(column.as_string::<i32>().clone()),
            other => return Err(format!("have column {name} of type {other}; keys are int64 or utf8")),
        };
        match (0..column.len()).find(|row| column.is_null(*row)).filter(|_| column.null_count() > 0) {
            Some(row) => Err(format!("have a null in column {name}, row {row}; every row has a key")),
            None => Ok(keys),
        }
    }
}

/// The type of property that a column is of, if it is one as it stands.
fn property_type(column: &DataType) -> Option<PropertyType> {
    use ScalarType::{Bool, Date, Float64, Int64, String, Timestamp};
    let scalars = [Bool, Int64, Float64, String, Date, Timestamp];
    let kinds = scalars.iter().flat_map(|scalar| [PropertyType::Scalar(*scalar), PropertyType::List(*scalar)]);
    kinds.into_iter().find(|kind| kind.arrow() == *column)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Date64Array;

    use super::*;

    fn batch(columns: &[(&str, ArrayRef)]) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, values)| (*name, values.clone(), true)))
            .unwrap()
    }

    fn ints(values: &[Option<i64>]) -> ArrayRef {
        Arc::new(values.iter().copied().collect::<Int64Array>())
    }

    #[test]
    fn a_row_is_a_single_upsert() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
        let rows = batch(&[
            ("target", texts),
            (".source", ints(&[Some(5), None])),
            ("source", ints(&[Some(1), Some(2)])),
            ("age", ints(&[None, Some(7)])),
        ]);
        let columns = Columns::edges("knows", "A", "B", &rows).unwrap();
        assert_eq!(columns.to_string(), "upsert of 2 edges A -knows-> B");
        let edge = |source: i64, target: &str, properties| Operation::UpsertEdge {
            label: "knows".into(),
            source: VertexRef::new("A", source),
            target: VertexRef::new("B", target),
            key: None,
            properties,
            replace: false,
        };
        assert_eq!(columns.operation(0), edge(1, "x", [("source", 5)].into()));
        assert_eq!(columns.operation(1), edge(2, "y", [("age", 7)].into()));
        let Operation::UpsertVertex { vertex, replace: true, .. } =
            Columns::vertices("A", &batch(&[("key", ints(&[Some(3)]))])).unwrap().replacing().operation(0)
        else {
            panic!()
        };
        assert_eq!(vertex, VertexRef::new("A", 3));
    }

    #[test]
    fn bad_shapes_are_rejected() {
        let one = || ints(&[Some(1)]);
        let day: ArrayRef = Arc::new(Date64Array::from(vec![0]));
        for (columns, why) in [
            (vec![("source", one())], "columns of edges knows lack the column target"),
            (vec![("source", one()), ("target", day.clone())], "column target of type Date64; keys are int64 or utf8"),
            (vec![("source", one()), ("target", ints(&[None]))], "a null in column target, row 0"),
            (
                vec![("source", one()), ("target", one()), ("at", day)],
                "column at of type Date64, which no property has",
            ),
            (vec![("source", one()), ("target", one()), ("a", one()), (".a", one())], "the property a twice"),
            (vec![("source", one()), ("target", one()), ("source", one())], "source, target twice"),
            (vec![("source", one()), ("target", one()), (".", one())], "a column without a name"),
        ] {
            let error = Columns::edges("knows", "A", "B", &batch(&columns)).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
