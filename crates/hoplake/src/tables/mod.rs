//! Results as tables: Arrow record batches with the columns `label` and `key`, then what was asked for.
//!
//! The command line prints them, and Python gets them. A property that is called like a column of the table has a dot before its name
//! ([`property_column`]), as in changes.
//!
//! ```
//! # async fn example() -> Result<(), hoplake::Error> {
//! use hoplake::{Graph, LoadOptions, tables};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let csv = folder.path().join("knows.csv");
//! # std::fs::write(&csv, "1,2\n2,3\n").unwrap();
//! # hoplake::load("memory://docs/tables", LoadOptions::from_paths([csv])).await?;
//! let graph = Graph::open("memory://docs/tables").await?;
//! let rows = graph.query().from("vertex:1")?.out("edge").rows::<&str>([]).await?;
//! let table = tables::with_label(&rows[0])?;
//! assert_eq!(table.schema().field(1).name(), "key");
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```

mod computed;
mod edges;
mod vertices;

use std::{collections::BTreeSet, sync::Arc};

use arrow_array::{
    Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray, cast::AsArray, new_null_array, types::UInt64Type,
};
use arrow_schema::{DataType, Field, Schema as ArrowSchema, SchemaRef};
use hoplake_engine::{
    EngineError,
    change::{self, Columns, Value},
};
use hoplake_format::{Key, KeyType, LabelId, PropertyType, ScalarType, Schema, VertexLabel, constants::KEY_COLUMN};

use hoplake_ingest::source::plain::in_property_types;

pub use computed::Written;
pub use edges::{check_edge_scan, schema_of_edge_type, with_ends};
pub use vertices::{all_properties, with_distance};

use crate::{
    Error, ErrorKind, Rows,
    changes::{plain_text, property_column},
};

/// A batch with its label and key as columns before its properties.
///
/// # Errors
/// [`Internal`](crate::ErrorKind::Internal) if Arrow rejects the columns.
pub fn with_label(rows: &Rows) -> Result<RecordBatch, Error> {
    let labels: ArrayRef = Arc::new(StringArray::from(vec![rows.label.as_str(); rows.batch.num_rows()]));
    let mut fields = vec![Field::new("label", DataType::Utf8, false)];
    let mut columns = vec![labels];
    for (field, column) in rows.batch.schema().fields().iter().zip(rows.batch.columns()) {
        let key = field.name() == KEY_COLUMN;
        let name = if key { "key".into() } else { property_column(field.name()) };
        fields.push(Field::new(name, field.data_type().clone(), !key));
        columns.push(column.clone());
    }
    batch_of(fields, columns)
}

fn batch_of(fields: Vec<Field>, columns: Vec<ArrayRef>) -> Result<RecordBatch, Error> {
    Ok(RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).map_err(EngineError::from)?)
}

/// A batch with one more column before the column of a number. If a property has its name, it gets a name that says where it comes from:
/// a batch with two columns of one name could not be read by that name.
pub(crate) fn with_column(
    batch: &RecordBatch,
    at: usize,
    name: &str,
    whose: &str,
    values: ArrayRef,
) -> Result<RecordBatch, Error> {
    let taken = batch.column_by_name(name).is_some();
    let name = if taken { format!("{whose}.{name}") } else { name.to_owned() };
    let mut fields: Vec<Field> = batch.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut columns = batch.columns().to_vec();
    fields.insert(at, Field::new(name, values.data_type().clone(), true));
    columns.insert(at, values);
    batch_of(fields, columns)
}

/// The columns of a result without rows.
pub fn empty(schema: &Schema, select: &[String]) -> RecordBatch {
    let all = || schema.vertex_labels.iter().flat_map(|label| &label.properties);
    let mut fields = vec![Field::new("label", DataType::Utf8, false), Field::new("key", DataType::Utf8, false)];
    for name in select {
        let kind =
            all().find(|property| property.name == *name).map_or(DataType::Utf8, |property| property.kind.arrow());
        fields.push(Field::new(property_column(name), kind, true));
    }
    RecordBatch::new_empty(Arc::new(ArrowSchema::new(fields)))
}

/// The columns of a result without rows that might have had vertices of these labels, or of any: those of a result that has vertices of all
/// of them.
pub fn empty_of(schema: &Schema, labels: &[LabelId], select: Option<&[String]>) -> RecordBatch {
    let of_label = |label: &VertexLabel| {
        let own = all_properties(&[label]);
        let mut columns = empty(schema, select.unwrap_or(&own)).schema().fields().to_vec();
        for field in &mut columns {
            let known = schema_of_label(label, &own);
            if let Ok(known) = known.field_with_name(field.name()) {
                *field = Arc::new(known.clone());
            }
        }
        Arc::new(ArrowSchema::new(columns))
    };
    // Each once: callers name a label for each vertex that they begin at.
    let labels: BTreeSet<LabelId> = labels.iter().copied().collect();
    let schemas: Vec<SchemaRef> = match labels.is_empty() {
        true => schema.vertex_labels.iter().map(of_label).collect(),
        false => labels.iter().filter_map(|label| schema.label(*label)).map(of_label).collect(),
    };
    match schemas.is_empty() {
        true => empty(schema, select.unwrap_or_default()),
        false => RecordBatch::new_empty(schema_of_each(&schemas)),
    }
}

/// The columns of all batches, in the order of first sight. One that a batch lacks may be null; one whose types differ is text.
pub fn schema_of_all(batches: &[RecordBatch]) -> SchemaRef {
    let schemas: Vec<SchemaRef> = batches.iter().map(RecordBatch::schema).collect();
    schema_of_each(&schemas)
}

/// As [`schema_of_all`], of batches that are to come.
pub fn schema_of_each(schemas: &[SchemaRef]) -> SchemaRef {
    let mut fields: Vec<Field> = Vec::new();
    for field in schemas.iter().flat_map(|schema| schema.fields()) {
        let everywhere = schemas.iter().all(|schema| schema.column_with_name(field.name()).is_some());
        match fields.iter_mut().find(|known| known.name() == field.name()) {
            None => fields.push(field.as_ref().clone().with_nullable(field.is_nullable() || !everywhere)),
            Some(known) if known.data_type() != field.data_type() => {
                *known = known.clone().with_data_type(DataType::Utf8);
            }
            Some(_) => {}
        }
    }
    Arc::new(ArrowSchema::new(fields))
}

/// The columns of a label's vertices, as [`with_label`] names them.
pub fn schema_of_label(label: &VertexLabel, select: &[String]) -> SchemaRef {
    let mut fields = vec![Field::new("label", DataType::Utf8, false), Field::new("key", label.key_type.arrow(), false)];
    for name in select {
        let property = label.properties.iter().find(|property| property.name == *name);
        fields.extend(property.map(|property| Field::new(property_column(name), property.kind.arrow(), true)));
    }
    Arc::new(ArrowSchema::new(fields))
}

/// A batch with other columns: nulls where it lacks one, and text where one is of another type.
///
/// # Errors
/// [`Internal`](crate::ErrorKind::Internal) if Arrow rejects the columns.
pub fn fit(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Error> {
    let columns = schema.fields().iter().map(|field| match batch.column_by_name(field.name()) {
        None => new_null_array(field.data_type(), batch.num_rows()),
        Some(column) if column.data_type() == field.data_type() => column.clone(),
        Some(column) => as_text(column),
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let fitted = RecordBatch::try_new_with_options(schema.clone(), columns.collect(), &options);
    Ok(fitted.map_err(EngineError::from)?)
}

/// A column as text, as CSV has it: the one text form of each type, which changes read back.
pub fn as_text(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Utf8 => return column.clone(),
        // Not of a property, but counted here.
        DataType::UInt64 => {
            let numbers = column.as_primitive::<UInt64Type>().iter();
            return Arc::new(numbers.map(|number| Some(number?.to_string())).collect::<StringArray>());
        }
        _ => {}
    }
    let text = (0..column.len()).map(|row| plain_text(&Value::at(column, row)));
    Arc::new(text.collect::<StringArray>())
}

/// Upserts of vertices of a label, a row each, as [`Commit::upsert_vertices`](crate::Commit::upsert_vertices) takes them.
///
/// # Errors
/// As there.
pub fn vertex_columns(label: &str, rows: &RecordBatch) -> Result<Columns, Error> {
    Ok(Columns::vertices(label, &typed(rows)?)?)
}

/// Upserts of edges of a label, a row each, as [`Commit::upsert_edges`](crate::Commit::upsert_edges) takes them.
///
/// # Errors
/// As there.
pub fn edge_columns(label: &str, (source, target): (&str, &str), rows: &RecordBatch) -> Result<Columns, Error> {
    Ok(Columns::edges(label, source, target, &typed(rows)?)?)
}

/// Rows with the types that properties have.
fn typed(rows: &RecordBatch) -> Result<RecordBatch, Error> {
    in_property_types(rows).map_err(|why| Error::new(ErrorKind::Invalid, why))
}

/// Values of a property as a column: of the type that holds all of them, or of no type if all are null. The error is a sentence about them.
///
/// # Errors
/// If no type holds all of them.
pub fn column(values: &[Value]) -> Result<ArrayRef, String> {
    let mut kind: Option<PropertyType> = None;
    for value in values.iter().filter(|value| **value != Value::Null) {
        let own = match value {
            // It fits any list.
            Value::List(items) if items.iter().all(|item| *item == Value::Null) => continue,
            value => value.property_type().ok_or_else(|| format!("{value} has values of several types"))?,
        };
        kind = match kind {
            None => Some(own),
            Some(known) if known == own => Some(known),
            Some(known) => Some(wider(known, own).ok_or_else(|| format!("it has values of {known} and of {own}"))?),
        };
    }
    let is_list = values.iter().any(|value| matches!(value, Value::List(_)));
    let kind = match kind {
        Some(kind) => kind,
        None if is_list => PropertyType::List(ScalarType::String),
        None => return Ok(new_null_array(&DataType::Null, values.len())),
    };
    let conformed = values.iter().map(|value| {
        let fitted = value.clone().conform(kind);
        fitted.ok_or_else(|| format!("{value} does not fit {kind}, which other values have"))
    });
    let conformed = conformed.collect::<Result<Vec<_>, _>>()?;
    change::column(conformed.iter(), kind).map_err(|error| error.to_string())
}

/// The type that holds values of both.
fn wider(a: PropertyType, b: PropertyType) -> Option<PropertyType> {
    use PropertyType::{List, Scalar};
    use ScalarType::{Float64, Int64};
    match (a, b) {
        (Scalar(Int64), Scalar(Float64)) | (Scalar(Float64), Scalar(Int64)) => Some(Scalar(Float64)),
        (List(Int64), List(Float64)) | (List(Float64), List(Int64)) => Some(List(Float64)),
        _ => None,
    }
}

/// Keys as a column: integers if all are, else text.
pub fn keys(keys: &[Key]) -> ArrayRef {
    if keys.iter().all(|key| key.key_type() == KeyType::Int64) {
        let integers = keys.iter().map(|key| if let Key::Int64(key) = key { Some(*key) } else { None });
        Arc::new(integers.collect::<arrow_array::Int64Array>())
    } else {
        Arc::new(keys.iter().map(|key| Some(key.to_string())).collect::<StringArray>())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn columns_that_differ_become_one_table() {
        let people = batch(vec![
            ("key", Arc::new(Int64Array::from(vec![1, 2]))),
            ("age", Arc::new(Int64Array::from(vec![3, 4]))),
        ]);
        let towns = batch(vec![("key", Arc::new(StringArray::from(vec!["a"])))]);
        let batches = [people, towns];
        let schema = schema_of_all(&batches);
        let aligned = batches.map(|batch| fit(&batch, &schema).unwrap());
        assert_eq!(aligned[0].schema(), aligned[1].schema());
        assert_eq!(aligned[0].column(0).as_ref(), &StringArray::from(vec!["1", "2"]) as &dyn Array);
        assert_eq!((aligned[0].column(1).null_count(), aligned[1].column(1).null_count()), (0, 1));
    }
}
