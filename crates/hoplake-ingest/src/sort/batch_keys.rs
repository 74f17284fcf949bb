//! The keys by which rows are compared: sixteen bytes that are nearly always enough.
//!
//! Leading key columns of integers without nulls, as far as they sum to sixteen bytes, become one number; often that is
//! all of the key. The columns after them are encoded by Arrow's row format and break ties of equal numbers. A key that
//! starts with another column is encoded completely, and the first sixteen bytes of that are the number.

use std::{cmp::Ordering, sync::Arc};

use arrow_array::{Array, RecordBatch, cast::AsArray, types};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, Schema};

use crate::IngestError;

/// A row by its key, and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The first sixteen bytes of the key, as a number.
    pub(crate) prefix: u128,
    /// The position of its batch.
    pub(crate) batch: u32,
    /// Its row there.
    pub(crate) row: u32,
}

/// The keys of a batch.
#[derive(Debug)]
pub(crate) struct BatchKeys {
    /// The prefix of each row.
    pub(crate) prefixes: Vec<u128>,
    /// The rest of each key, or the complete key if its prefix was cut from it.
    pub(crate) rows: Option<Rows>,
}

impl BatchKeys {
    /// The bytes of the keys beyond their prefixes.
    pub(crate) fn rows_bytes(&self) -> usize {
        self.rows.as_ref().map_or(0, Rows::size)
    }
}

/// Compares two rows of batches whose keys beyond the prefix are `keys`, by position of the batch.
pub(crate) fn compare<'a>(a: &Entry, b: &Entry, keys: impl Fn(u32) -> Option<&'a Rows>) -> Ordering {
    a.prefix.cmp(&b.prefix).then_with(|| match (keys(a.batch), keys(b.batch)) {
        (Some(left), Some(right)) => left.row(a.row as usize).cmp(&right.row(b.row as usize)),
        _ => Ordering::Equal,
    })
}

/// Reads the keys of batches of one schema.
#[derive(Debug)]
pub(crate) struct KeyReader {
    /// Leading columns that become the prefix.
    numbers: Vec<usize>,
    /// The other columns, if there are any, and their encoder.
    others: Option<(Vec<usize>, RowConverter)>,
}

impl KeyReader {
    /// Keys that consist of `columns`, the most significant first.
    pub(crate) fn new(schema: &Schema, columns: &[usize]) -> Result<Self, IngestError> {
        let mut bytes = 0;
        let fits = |column: &&usize| {
            let field = schema.field(**column);
            let width = integer_bytes(field.data_type()).filter(|_| !field.is_nullable());
            bytes += width.unwrap_or(u32::MAX / 2);
            bytes <= 16
        };
        let (numbers, others) = columns.split_at(columns.iter().take_while(fits).count());
        let fields = others.iter().map(|&column| SortField::new(schema.field(column).data_type().clone()));
        let converter = (!others.is_empty()).then(|| RowConverter::new(fields.collect())).transpose()?;
        Ok(Self { numbers: numbers.to_vec(), others: converter.map(|converter| (others.to_vec(), converter)) })
    }

    /// Whether the prefix is cut from the encoded key, rather than being a number of its own.
    pub(crate) fn cuts_prefixes(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The keys of `batch`.
    pub(crate) fn read(&self, batch: &RecordBatch) -> Result<BatchKeys, IngestError> {
        let mut prefixes = vec![0; batch.num_rows()];
        self.numbers.iter().for_each(|&column| append_integers(batch.column(column), &mut prefixes));
        let Some((others, converter)) = &self.others else { return Ok(BatchKeys { prefixes, rows: None }) };
        let columns: Vec<_> = others.iter().map(|&column| Arc::clone(batch.column(column))).collect();
        let rows = converter.convert_columns(&columns)?;
        if self.cuts_prefixes() {
            prefixes.iter_mut().zip(&rows).for_each(|(number, row)| *number = prefix(row.data()));
        }
        Ok(BatchKeys { prefixes, rows: Some(rows) })
    }
}

/// The first sixteen bytes, big-endian; a shorter key ends in zeros, which keeps the order.
pub(crate) fn prefix(key: &[u8]) -> u128 {
    if let Some(bytes) = key.first_chunk() {
        return u128::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 16];
    bytes[..key.len()].copy_from_slice(key);
    u128::from_be_bytes(bytes)
}

fn integer_bytes(data_type: &DataType) -> Option<u32> {
    match data_type {
        DataType::Int64 | DataType::UInt64 => Some(8),
        DataType::UInt32 => Some(4),
        DataType::UInt16 => Some(2),
        _ => None,
    }
}

/// Shifts a column of integers into the numbers from below.
fn append_integers(column: &dyn Array, prefixes: &mut [u128]) {
    fn append<N: Copy>(values: &[N], bits: u32, prefixes: &mut [u128], number: impl Fn(N) -> u64) {
        for (prefix, &value) in prefixes.iter_mut().zip(values) {
            *prefix = *prefix << bits | u128::from(number(value));
        }
    }
    match column.data_type() {
        // The sign bit flipped: negative keys sort first.
        DataType::Int64 => {
            let values = column.as_primitive::<types::Int64Type>().values();
            append(values, 64, prefixes, |value| value as u64 ^ 1 << 63);
        }
        DataType::UInt64 => append(column.as_primitive::<types::UInt64Type>().values(), 64, prefixes, |value| value),
        DataType::UInt32 => append(column.as_primitive::<types::UInt32Type>().values(), 32, prefixes, u64::from),
        DataType::UInt16 => append(column.as_primitive::<types::UInt16Type>().values(), 16, prefixes, u64::from),
        other => unreachable!("{other} is not counted among the integers"),
    }
}
