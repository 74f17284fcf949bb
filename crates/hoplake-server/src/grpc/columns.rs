//! Rows as typed columns that any protobuf library reads, or as Arrow's IPC format.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, RecordBatch,
    cast::AsArray,
    types::{Date32Type, Float64Type, Int64Type, TimestampMicrosecondType},
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use hoplake::{KEY_COLUMN, VertexId};

use crate::{
    calls::{LabelRows, ValueRows, raw_id},
    failure::{Failure, Reason},
    v1::{self, RowFormat, column::Values},
};

/// Vertices, as numbers.
pub(super) fn ids(vertices: impl IntoIterator<Item = VertexId>) -> Vec<u64> {
    vertices.into_iter().map(raw_id).collect()
}

/// Rows as one message.
pub(super) fn rows(rows: &LabelRows, format: RowFormat) -> Result<v1::Rows, Failure> {
    let mut wire = v1::Rows {
        label: rows.label.clone(),
        ids: ids(rows.ids.iter().copied()),
        depth: rows.depth,
        ..Default::default()
    };
    if format == RowFormat::Arrow {
        wire.arrow = ipc(&rows.batch).map_err(|error| Failure::new(Reason::Internal, error.to_string()))?;
        return Ok(wire);
    }
    for (field, values) in rows.batch.schema().fields().iter().zip(rows.batch.columns()) {
        let column = column(field.name(), values)?;
        match (field.name() == KEY_COLUMN, column.values) {
            (true, Some(Values::Int64s(keys))) => wire.keys.get_or_insert_default().int64s = keys.values,
            (true, Some(Values::Strings(keys))) => wire.keys.get_or_insert_default().strings = keys.values,
            (_, values) => wire.columns.push(v1::Column { values, ..column }),
        }
    }
    Ok(wire)
}

/// Rows and their values: a column of its own, or one in Arrow's batch, after the key.
pub(super) fn value_rows(part: &ValueRows, format: RowFormat) -> Result<(v1::Rows, Option<v1::Column>), Failure> {
    const VALUE_COLUMN: &str = "value";
    if format != RowFormat::Arrow {
        return Ok((rows(&part.rows, format)?, Some(column(VALUE_COLUMN, &part.values)?)));
    }
    let batch = &part.rows.batch;
    let mut fields = batch.schema().fields().to_vec();
    let mut columns = batch.columns().to_vec();
    fields.insert(1, Arc::new(Field::new(VALUE_COLUMN, part.values.data_type().clone(), true)));
    columns.insert(1, part.values.clone());
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    let batch = batch.map_err(|error| Failure::new(Reason::Internal, error.to_string()))?;
    Ok((rows(&LabelRows { batch, ..part.rows.clone() }, format)?, None))
}

/// The properties of a path's vertex or edge.
pub(super) fn properties(batch: &RecordBatch) -> Result<v1::Properties, Failure> {
    let fields = batch.schema_ref().fields().iter().zip(batch.columns());
    Ok(v1::Properties {
        columns: fields.map(|(field, values)| column(field.name(), values)).collect::<Result<_, _>>()?,
    })
}

/// One complete stream for each message: a client reads it without the messages before.
fn ipc(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    writer.into_inner()
}

/// A column has a value for every row, so that positions in `nulls` and in the other columns are those of rows.
pub(super) fn column(name: &str, array: &ArrayRef) -> Result<v1::Column, Failure> {
    let nulls = (0u32..).take(array.len()).filter(|row| array.is_null(*row as usize)).collect();
    let rows = 0..array.len();
    // The value at a null is arbitrary; clients are promised the type's zero.
    macro_rules! primitives {
        ($kind:ty) => {{
            let array = array.as_primitive::<$kind>();
            rows.map(|row| if array.is_null(row) { Default::default() } else { array.value(row) })
        }};
    }
    let values = match array.data_type() {
        DataType::Boolean => {
            let array = array.as_boolean();
            Values::Bools(v1::Bools { values: rows.map(|row| array.is_valid(row) && array.value(row)).collect() })
        }
        DataType::Int64 => Values::Int64s(v1::Int64s { values: primitives!(Int64Type).collect() }),
        DataType::Float64 => Values::Doubles(v1::Doubles { values: primitives!(Float64Type).collect() }),
        DataType::Date32 => Values::Days(v1::Int64s { values: primitives!(Date32Type).map(i64::from).collect() }),
        DataType::Timestamp(..) => {
            Values::Micros(v1::Int64s { values: primitives!(TimestampMicrosecondType).collect() })
        }
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            let text = |row| if array.is_null(row) { String::new() } else { array.value(row).to_owned() };
            Values::Strings(v1::Strings { values: rows.map(text).collect() })
        }
        DataType::List(_) => Values::Lists(Box::new(lists(array)?)),
        other => return Err(Failure::new(Reason::Internal, format!("column {name} has the type {other}"))),
    };
    Ok(v1::Column { name: name.to_owned(), nulls, values: Some(values) })
}

/// The items of all rows in one column, and how many of them each row has.
fn lists(array: &ArrayRef) -> Result<v1::Lists, Failure> {
    let array = array.as_list::<i32>();
    let lengths = (0..array.len()).map(|row| if array.is_null(row) { 0 } else { array.value_length(row) as u32 });
    let lengths: Vec<_> = lengths.collect();
    // A null may cover items, and a slice begins and ends within them.
    let parts: Vec<_> = (0..array.len()).filter(|row| array.is_valid(*row)).map(|row| array.value(row)).collect();
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    let failed = |error: ArrowError| Failure::new(Reason::Internal, error.to_string());
    let items = if parts.is_empty() {
        array.values().slice(0, 0)
    } else {
        arrow_select::concat::concat(&parts).map_err(failed)?
    };
    Ok(v1::Lists { lengths, items: Some(Box::new(column("", &items)?)) })
}

#[cfg(test)]
mod tests {

    use arrow_array::{
        Int64Array, StringArray,
        builder::{ListBuilder, StringBuilder},
    };

    use super::*;

    #[test]
    fn columns_have_a_value_for_every_row() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(-1)]));
        let wire = column("n", &numbers).unwrap();
        assert_eq!((wire.nulls, wire.values), (vec![1], Some(Values::Int64s(v1::Int64s { values: vec![7, 0, -1] }))));
        let mut lists = ListBuilder::new(StringBuilder::new());
        lists.append_value([Some("a"), None]);
        lists.append_null();
        lists.append_value(Vec::<Option<&str>>::new());
        lists.append_value([Some("b")]);
        // A slice: the first list is another's.
        let lists: ArrayRef = Arc::new(lists.finish().slice(1, 3));
        let wire = column("l", &lists).unwrap();
        let Some(Values::Lists(wire_lists)) = wire.values else { panic!("{wire:?}") };
        let v1::Lists { lengths, items } = *wire_lists;
        assert_eq!((wire.nulls, lengths), (vec![0], vec![0, 0, 1]));
        assert_eq!(items.unwrap().values, Some(Values::Strings(v1::Strings { values: vec!["b".into()] })));
    }

    #[test]
    fn keys_stand_apart_and_arrow_has_all() {
        let keys: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
        let names: ArrayRef = Arc::new(StringArray::from(vec![Some("Ann"), None]));
        let batch = RecordBatch::try_from_iter([(KEY_COLUMN, keys), ("name", names)]).unwrap();
        let rows = LabelRows { label: "P".into(), depth: 2, ids: Vec::new(), batch };
        let wire = super::rows(&rows, RowFormat::Columns).unwrap();
        assert_eq!((wire.keys.unwrap().strings.len(), wire.columns.len(), wire.depth), (2, 1, 2));
        let wire = super::rows(&rows, RowFormat::Arrow).unwrap();
        let mut read = arrow_ipc::reader::StreamReader::try_new(&wire.arrow[..], None).unwrap();
        assert_eq!(read.next().unwrap().unwrap(), rows.batch);
    }
}
