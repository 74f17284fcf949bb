//! Rows of properties that are to be written: of single operations, and of columns, which stay as they are.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, Field};
use arrow_select::{concat::concat, take::take_record_batch};
use hoplake_format::{Property, PropertyType, ScalarType, table::table_schema};

use super::{Columns, Properties, Value};
use crate::value::column;

/// Rows by number: those of columns first, in the order of the columns, and then all others.
#[derive(Debug, Default)]
pub(crate) struct Rows<'a> {
    columns: Vec<&'a Columns>,
    of_columns: u64,
    single: Vec<&'a Properties>,
}

/// A row of [`Rows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    /// One of columns.
    OfColumns(u64),
    /// A single one.
    Single(u64),
}

impl<'a> Rows<'a> {
    /// Adds all rows of some columns, and returns the number of the first.
    pub(crate) fn add_columns(&mut self, columns: &'a Columns) -> u64 {
        let first = self.of_columns;
        self.columns.push(columns);
        self.of_columns += columns.len() as u64;
        first
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, row: &'a Properties) -> Row {
        self.single.push(row);
        Row::Single(self.single.len() as u64 - 1)
    }

    /// The number of a row, once all rows are added.
    pub(crate) fn number(&self, row: Row) -> u64 {
        match row {
            Row::OfColumns(number) => number,
            // Columns first: each is one piece as it is, and all single rows are one more.
            Row::Single(number) => self.of_columns + number,
        }
    }

    /// A column for each property; what a row does not name is null.
    pub(crate) fn record_batch(&self, properties: &[Property]) -> Result<RecordBatch, ArrowError> {
        let all = properties.iter().map(|property| self.all_of(property)).collect::<Result<Vec<_>, _>>()?;
        let rows = self.of_columns as usize + self.single.len();
        batch(None, all, rows, properties)
    }

    fn all_of(&self, property: &Property) -> Result<ArrayRef, ArrowError> {
        let mut pieces =
            self.columns.iter().map(|columns| piece(columns, property)).collect::<Result<Vec<_>, ArrowError>>()?;
        if !self.single.is_empty() || pieces.is_empty() {
            let values = self.single.iter().map(|row| row.get(&property.name).unwrap_or(&Value::Null));
            pieces.push(column(values, property.kind)?);
        }
        match &pieces[..] {
            [only] => Ok(only.clone()),
            pieces => concat(&pieces.iter().map(AsRef::as_ref).collect::<Vec<_>>()),
        }
    }
}

/// A property of the rows of columns.
fn piece(columns: &Columns, property: &Property) -> Result<ArrayRef, ArrowError> {
    let found = columns.properties().iter().find(|column| column.name == property.name);
    match found {
        Some(column) if column.kind == property.kind => Ok(column.values.clone()),
        Some(column) if widens(column.kind, property.kind) => cast(&column.values, &property.kind.arrow()),
        // A column of another type has nothing but nulls in the rows that are written.
        _ => Ok(new_null_array(&property.kind.arrow(), columns.len())),
    }
}

/// Whether a column of one type is read as another one.
pub(super) fn widens(from: PropertyType, to: PropertyType) -> bool {
    use {PropertyType::List, PropertyType::Scalar, ScalarType::Float64, ScalarType::Int64};
    matches!((from, to), (Scalar(Int64), Scalar(Float64)) | (List(Int64), List(Float64)))
}

/// Some rows of a batch of properties, in an order, after their keys if they have any.
pub(crate) fn in_order(
    key: Option<(Field, ArrayRef)>,
    all: &RecordBatch,
    order: Vec<u64>,
    properties: &[Property],
) -> Result<RecordBatch, ArrowError> {
    let count = order.len();
    let rows = take_record_batch(all, &UInt64Array::from(order))?;
    match key {
        None => Ok(rows),
        key => batch(key, rows.columns().to_vec(), count, properties),
    }
}

fn batch(
    key: Option<(Field, ArrayRef)>,
    properties_of: Vec<ArrayRef>,
    rows: usize,
    properties: &[Property],
) -> Result<RecordBatch, ArrowError> {
    let (field, keys) = key.unzip();
    let columns: Vec<ArrayRef> = keys.into_iter().chain(properties_of).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(table_schema(field, properties), columns, &options)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float64Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn rows_of_both_kinds_become_one_batch() {
        let ints = |values: &[i64]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
        let of = |values: ArrayRef| {
            let key = ints(&vec![0; values.len()]);
            Columns::vertices("A", &RecordBatch::try_from_iter([("key", key), ("p", values)]).unwrap()).unwrap()
        };
        let integers = of(ints(&[1, 2]));
        let floats = of(Arc::new(Float64Array::from(vec![0.5])));
        // A row with it can only exist if the batch writes no row of it.
        let unused = of(Arc::new(StringArray::from(vec!["x"])));
        let single = Properties::from([("p", 7)]);
        let mut rows = Rows::default();
        let last = rows.add(&single);
        assert_eq!([&integers, &floats, &unused].map(|columns| rows.add_columns(columns)), [0, 2, 3]);
        let p = [Property::new("p", PropertyType::Scalar(ScalarType::Float64))];
        let all = rows.record_batch(&p).unwrap();
        let order = vec![rows.number(last), 2, rows.number(Row::OfColumns(1))];
        let taken = in_order(None, &all, order, &p).unwrap();
        let values: Vec<_> = (0..3).map(|row| Value::at(taken.column(0), row)).collect();
        assert_eq!(values, [7.0, 0.5, 2.0].map(Value::Float64));
    }
}
