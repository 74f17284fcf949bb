//! Parquet files of two columns of integers: edges, and vertices with a date.

use std::{io::Write, sync::Arc};

use anyhow::Result;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};

/// Writes `pairs` under these names, and returns how many there were.
pub fn write(out: impl Write + Send, names: [&str; 2], mut pairs: impl Iterator<Item = (i64, i64)>) -> Result<u64> {
    let batch = |pairs: &[(i64, i64)]| {
        let column =
            |end: fn(&(i64, i64)) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(pairs.iter().map(end))) };
        RecordBatch::try_from_iter([(names[0], column(|pair| pair.0)), (names[1], column(|pair| pair.1))])
    };
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(out, batch(&[])?.schema(), Some(properties))?;
    let mut written = 0;
    loop {
        let piece: Vec<_> = pairs.by_ref().take(1 << 16).collect();
        if piece.is_empty() {
            writer.close()?;
            return Ok(written);
        }
        written += piece.len() as u64;
        writer.write(&batch(&piece)?)?;
    }
}
