//! Batches by columns: the same changes as a record batch for every few upserts that follow each other.

use std::{collections::BTreeSet, sync::Arc};

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray,
    builder::{ListBuilder, StringBuilder},
};
use arrow_schema::{DataType, Field};
use hoplake::{Batch, Columns, Key, KeyType, Name, Operation, Properties, Value};

/// The same batch with columns in place of upserts that follow each other and have one shape.
pub fn by_columns(batch: &Batch) -> Batch {
    let mut operations = Vec::new();
    // Only neighbours: the order of operations decides which of two changes of an item counts.
    for run in batch.operations.chunk_by(|a, b| shape(a).is_some() && shape(a) == shape(b)) {
        match shape(&run[0]) {
            Some(shape) => operations.push(columns(&shape, run)),
            None => operations.extend_from_slice(run),
        }
    }
    Batch { operations, ..batch.clone() }
}

/// What rows of one record batch have in common.
pub type Shape = (Name, Option<[Name; 2]>, bool);

/// The shape of an upsert that a row can stand for: a null in a row is not named.
pub fn shape(operation: &Operation) -> Option<Shape> {
    let named = |properties: &Properties| properties.iter().all(|(_, value)| *value != Value::Null);
    match operation {
        Operation::UpsertVertex { vertex, properties, replace } if named(properties) => {
            Some((vertex.label.clone(), None, *replace))
        }
        Operation::UpsertEdge { label, source, target, key: None, properties, replace } if named(properties) => {
            Some((label.clone(), Some([source.label.clone(), target.label.clone()]), *replace))
        }
        _ => None,
    }
}

fn key_column(keys: &[&Key]) -> ArrayRef {
    match keys[0].key_type() {
        KeyType::Int64 => {
            let keys = keys.iter().map(|key| if let Key::Int64(key) = key { *key } else { panic!("{key}") });
            Arc::new(keys.map(Some).collect::<Int64Array>())
        }
        KeyType::String => Arc::new(StringArray::from_iter_values(keys.iter().map(ToString::to_string))),
    }
}

fn value_column(rows: &[&Properties], name: &str) -> ArrayRef {
    let values: Vec<_> = rows.iter().map(|row| row.get(name)).collect();
    let is_float = |value: &&&Value| matches!(value, Value::Float64(_));
    // A column has one type: one fraction makes floats of all numbers, as it does of the property in the graph.
    match values.iter().flatten().find(is_float).or(values.iter().flatten().next()) {
        Some(Value::Float64(_)) => {
            let float = |value: &Option<&Value>| match value {
                Some(Value::Float64(number)) => Some(*number),
                Some(Value::Int64(number)) => Some(*number as f64),
                _ => None,
            };
            Arc::new(values.iter().map(float).collect::<Float64Array>())
        }
        Some(Value::Int64(_)) => {
            let int = |value: &Option<&Value>| value.map(|it| if let Value::Int64(it) = it { *it } else { panic!() });
            Arc::new(values.iter().map(int).collect::<Int64Array>())
        }
        Some(Value::String(_)) => {
            let text =
                |it: &Option<&Value>| it.map(|it| if let Value::String(it) = it { it.clone() } else { panic!() });
            Arc::new(values.iter().map(text).collect::<StringArray>())
        }
        Some(Value::List(_)) => {
            let field = Field::new("item", DataType::Utf8, true);
            let mut lists = ListBuilder::new(StringBuilder::new()).with_field(Arc::new(field));
            for value in &values {
                if let Some(Value::List(items)) = value {
                    let item = |item: &Value| if let Value::String(item) = item { Some(item.clone()) } else { None };
                    items.iter().for_each(|it| lists.values().append_option(item(it)));
                }
                lists.append(value.is_some());
            }
            Arc::new(lists.finish())
        }
        other => panic!("{other:?} is in no batch"),
    }
}

/// Operations of one shape as columns.
fn columns(shape: &Shape, operations: &[Operation]) -> Operation {
    let rows = operations.iter().map(|operation| match operation {
        Operation::UpsertVertex { properties, .. } | Operation::UpsertEdge { properties, .. } => properties,
        other => panic!("{other}"),
    });
    let rows: Vec<&Properties> = rows.collect();
    let ends = operations.iter().map(|operation| match operation {
        Operation::UpsertVertex { vertex, .. } => [&vertex.key; 2],
        Operation::UpsertEdge { source, target, .. } => [&source.key, &target.key],
        other => panic!("{other}"),
    });
    let ends: Vec<[&Key; 2]> = ends.collect();
    let of = |which: usize| key_column(&ends.iter().map(|ends| ends[which]).collect::<Vec<_>>());
    let mut named: Vec<(String, ArrayRef)> = match shape.1 {
        None => vec![("key".into(), of(0))],
        Some(_) => vec![("source".into(), of(0)), ("target".into(), of(1))],
    };
    // A row without a property of another row has a null there, which does not name the property.
    let names: BTreeSet<_> = rows.iter().flat_map(|row| row.names()).collect();
    named.extend(names.into_iter().map(|name| (name.to_string(), value_column(&rows, name))));
    let batch = RecordBatch::try_from_iter_with_nullable(named.into_iter().map(|(name, values)| (name, values, true)));
    let label = shape.0.clone();
    let batch = batch.expect("columns of one length with names of their own");
    let columns = match &shape.1 {
        None => Columns::vertices(label, &batch),
        Some([source, target]) => Columns::edges(label, source.clone(), target.clone(), &batch),
    };
    let columns = columns.expect("columns with keys");
    Operation::UpsertColumns(Arc::new(if shape.2 { columns.replacing() } else { columns }))
}
