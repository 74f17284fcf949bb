//! Splitting rows into files by a hash of their key.

use std::path::{Path, PathBuf};

use arrow_array::{Array, RecordBatch, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, SchemaRef};

use super::{integers, strings};
use crate::{
    IngestError,
    sort::{
        batch_keys::Entry,
        batch_rounds::{gather, rows_of},
        batch_runs::{BatchFile, BatchWriter},
    },
};

/// Into how many parts rows are split. A table may be as many times larger than its budget.
pub(super) const PARTITIONS: usize = 64;

/// The partition of each key of a column.
fn partitions(keys: &dyn Array) -> Result<Vec<u8>, IngestError> {
    let partition = |hash: u64| (hash % PARTITIONS as u64) as u8;
    match keys.data_type() {
        DataType::Int64 => {
            Ok(keys.as_primitive::<Int64Type>().values().iter().map(|&key| partition(integers::mix(key))).collect())
        }
        DataType::Utf8 => {
            Ok(keys.as_string::<i32>().iter().map(|key| partition(strings::hash(key.unwrap_or_default()))).collect())
        }
        other => Err(IngestError::Invalid(format!("a key column has the type {other}; keys are int64 or string"))),
    }
}

/// Writes rows to one file for each partition.
pub(super) struct PartitionWriter {
    schema: SchemaRef,
    key_column: usize,
    spill_dir: PathBuf,
    buffer_bytes: usize,
    buffered_bytes: usize,
    /// Batches, and the partition of each of their rows.
    buffer: Vec<(RecordBatch, Vec<u8>)>,
    writers: [Option<BatchWriter>; PARTITIONS],
}

impl PartitionWriter {
    /// A writer that gathers some `buffer_bytes` of rows before it writes, so that every file gets many at once.
    pub(super) fn new(schema: SchemaRef, key_column: usize, buffer_bytes: usize, spill_dir: &Path) -> Self {
        Self {
            schema,
            key_column,
            spill_dir: spill_dir.to_owned(),
            buffer_bytes,
            buffered_bytes: 0,
            buffer: Vec::new(),
            writers: std::array::from_fn(|_| None),
        }
    }

    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<(), IngestError> {
        let partitions = partitions(batch.column(self.key_column))?;
        self.buffered_bytes += batch.get_array_memory_size() + partitions.len() * (1 + size_of::<Entry>());
        self.buffer.push((batch, partitions));
        if self.buffered_bytes > self.buffer_bytes { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), IngestError> {
        let buffer = std::mem::take(&mut self.buffer);
        let bytes = std::mem::take(&mut self.buffered_bytes);
        let rows: usize = buffer.iter().map(|(batch, _)| batch.num_rows()).sum();
        let write_rows = rows_of(self.buffer_bytes / 8, rows, bytes);
        let batches: Vec<_> = buffer.iter().map(|(batch, _)| batch).collect();
        let mut parts: [Vec<Entry>; PARTITIONS] = std::array::from_fn(|_| Vec::with_capacity(rows / PARTITIONS));
        for (batch, (_, partitions)) in buffer.iter().enumerate() {
            for (row, &partition) in partitions.iter().enumerate() {
                parts[usize::from(partition)].push(Entry { prefix: 0, batch: batch as u32, row: row as u32 });
            }
        }
        for (writer, entries) in self.writers.iter_mut().zip(parts) {
            for entries in entries.chunks(write_rows) {
                let writer = match writer {
                    Some(writer) => writer,
                    None => writer.insert(BatchWriter::create(&self.schema, &self.spill_dir)?),
                };
                writer.write(&gather(&batches, entries)?)?;
            }
        }
        Ok(())
    }

    /// The file of each partition that has rows.
    pub(super) fn finish(mut self) -> Result<Vec<Option<BatchFile>>, IngestError> {
        self.flush()?;
        self.writers.into_iter().map(|writer| writer.map(BatchWriter::finish).transpose()).collect()
    }
}
