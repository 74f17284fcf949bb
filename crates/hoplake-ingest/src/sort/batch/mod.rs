//! Sorting rows of any columns.
//!
//! Batches gather in memory with the keys of their rows. When they fill the budget, the rows are put
//! in order through an index and written to a file, in batches small enough that one of every run fits
//! the budget later. Rows with equal keys keep the order in which they were pushed.
//!
//! These count against the budget: the batches by their allocations, 32 bytes a row for the index, and
//! the encoded keys where they are needed. A slice that keeps a much larger batch alive is copied.

use std::path::{Path, PathBuf};

use arrow_array::{Array, RecordBatch, UInt32Array};
use arrow_row::Rows;
use arrow_schema::SchemaRef;
use arrow_select::take::take_record_batch;

use super::{
    batch_keys::{BatchKeys, Entry, KeyReader, compare, prefix},
    batch_rounds::{BatchRounds, gather, rows_of},
    batch_runs::{BatchFile, BatchWriter},
};
use crate::IngestError;

const FAN_IN_MAX: usize = 64;
/// The memory of a run while it is merged: its batch as read and as decoded, its keys, its part of the round
/// and of the output.
const BATCHES_PER_RUN: usize = 4;
const BATCH_BYTES_MAX: usize = 1 << 20;
const BATCH_BYTES_MIN: usize = 4 << 10;

/// Sorts record batches by key columns, ascending and stably, within a memory budget.
///
/// Key columns of integers that the schema declares not nullable are compared as numbers; anything else
/// that Arrow can order works too (nulls first). One thread fills a sorter; several threads fill one
/// each, and [`finish_all`](Self::finish_all) merges them.
#[derive(Debug)]
pub struct BatchSorter {
    schema: SchemaRef,
    keys: KeyReader,
    spill_dir: PathBuf,
    budget_bytes: usize,
    /// The size of a batch in a run.
    batch_bytes: usize,
    buffer: Buffer,
    files: Vec<BatchFile>,
}

/// Rows in memory, in the order of their arrival.
#[derive(Debug, Default)]
struct Buffer {
    batches: Vec<RecordBatch>,
    rows: Vec<Option<Rows>>,
    entries: Vec<Entry>,
    batches_bytes: usize,
    rows_bytes: usize,
    /// How many bytes all keys begin with alike, where prefixes are cut from them.
    shared: Option<usize>,
}

impl Buffer {
    fn bytes(&self) -> usize {
        self.batches_bytes + self.rows_bytes + self.entries.len() * size_of::<Entry>()
    }

    fn push(&mut self, batch: RecordBatch, bytes: usize, keys: BatchKeys, cut: bool) {
        let position = self.batches.len() as u32;
        let entries = (0..).zip(&keys.prefixes).map(|(row, &prefix)| Entry { prefix, batch: position, row });
        self.entries.extend(entries);
        self.batches_bytes += bytes;
        self.rows_bytes += keys.rows_bytes();
        if let Some(rows) = keys.rows.as_ref().filter(|_| cut) {
            self.shared = match self.rows.first() {
                Some(Some(first)) => self.shared.map(|shared| shared_bytes(first, rows, shared)),
                _ => Some(shared_bytes(rows, rows, usize::MAX)),
            };
        }
        self.rows.push(keys.rows);
        self.batches.push(batch);
    }

    fn sort(&mut self) {
        let Self { entries, rows, .. } = self;
        // Keys such as addresses begin alike for longer than the prefix; looking at what follows instead
        // saves most comparisons a trip to memory: for addresses of pages the sort took a third of the time.
        if let Some(shared) = self.shared.filter(|&shared| shared > 0) {
            for entry in entries.iter_mut() {
                let rows = rows[entry.batch as usize].as_ref().expect("keys with equal prefixes are complete");
                entry.prefix = prefix(&rows.row(entry.row as usize).data()[shared..]);
            }
        }
        let order = |a: &Entry, b: &Entry| {
            compare(a, b, |batch| rows[batch as usize].as_ref()).then((a.batch, a.row).cmp(&(b.batch, b.row)))
        };
        // In place; a stable sort would need half the index again.
        entries.sort_unstable_by(order);
    }

    /// The rows from `start` on of the sorted index that make a batch of `batch_bytes`.
    fn gather(&self, start: usize, batch_bytes: usize) -> Result<Option<RecordBatch>, IngestError> {
        let rows = rows_of(batch_bytes, self.entries.len(), self.batches_bytes);
        let entries = &self.entries[start..self.entries.len().min(start + rows)];
        if entries.is_empty() {
            return Ok(None);
        }
        gather(&self.batches.iter().collect::<Vec<_>>(), entries).map(Some)
    }

    /// Appends the rows of `other`, which arrived later.
    fn append(&mut self, other: Self) {
        let offset = self.batches.len() as u32;
        self.entries.extend(other.entries.into_iter().map(|entry| Entry { batch: entry.batch + offset, ..entry }));
        self.batches.extend(other.batches);
        self.rows.extend(other.rows);
        self.batches_bytes += other.batches_bytes;
        self.rows_bytes += other.rows_bytes;
        // A second pass over all keys would not pay.
        self.shared = None;
    }
}

/// How many of the first `most` bytes all keys share with the first key of `first`.
fn shared_bytes(first: &Rows, keys: &Rows, most: usize) -> usize {
    let Some(first) = first.iter().next() else { return 0 };
    keys.iter().fold(most.min(first.data().len()), |shared, key| {
        let differ = first.data()[..shared].iter().zip(key.data()).position(|(a, b)| a != b);
        differ.unwrap_or(shared.min(key.data().len()))
    })
}

impl BatchSorter {
    /// A sorter of batches of `schema` by the columns `key_columns`, the most significant first, that keeps
    /// to `budget_bytes` and writes what does not fit to files in `spill_dir`.
    ///
    /// # Errors
    /// [`IngestError::Arrow`] if a key column has a type without an order.
    pub fn new(
        schema: SchemaRef,
        key_columns: &[usize],
        budget_bytes: usize,
        spill_dir: &Path,
    ) -> Result<Self, IngestError> {
        let batch_bytes = budget_bytes / (BATCHES_PER_RUN * FAN_IN_MAX);
        Ok(Self {
            keys: KeyReader::new(&schema, key_columns)?,
            schema,
            spill_dir: spill_dir.to_owned(),
            budget_bytes,
            batch_bytes: batch_bytes.clamp(BATCH_BYTES_MIN, BATCH_BYTES_MAX),
            buffer: Buffer::default(),
            files: Vec::new(),
        })
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// [`IngestError::Spill`] if a run cannot be written.
    pub fn push(&mut self, batch: RecordBatch) -> Result<(), IngestError> {
        let batch = own(batch)?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let keys = self.keys.read(&batch)?;
        let bytes = batch.get_array_memory_size();
        let added_bytes = bytes + keys.rows_bytes() + batch.num_rows() * size_of::<Entry>();
        if self.buffer.bytes() + added_bytes + BATCHES_PER_RUN * self.batch_bytes > self.budget_bytes {
            self.spill()?;
        }
        self.buffer.push(batch, bytes, keys, self.keys.cuts_prefixes());
        // The next batch, likely of the same size, exists before it is pushed.
        if self.buffer.bytes() + 2 * bytes + BATCHES_PER_RUN * self.batch_bytes > self.budget_bytes {
            self.spill()?;
        }
        Ok(())
    }

    /// All rows in order, in batches of up to 8,192 rows.
    ///
    /// # Errors
    /// [`IngestError::Spill`] if a run cannot be written or read.
    pub fn finish(self) -> Result<SortedBatches, IngestError> {
        Self::finish_all(vec![self])
    }

    /// All rows of all sorters in order, within the sum of their budgets; among equal keys those of an
    /// earlier sorter are first. The sorters must agree in schema and key columns.
    ///
    /// # Errors
    /// [`IngestError::Spill`] if a run cannot be written or read.
    pub fn finish_all(mut sorters: Vec<Self>) -> Result<SortedBatches, IngestError> {
        let budget_bytes: usize = sorters.iter().map(|sorter| sorter.budget_bytes).sum();
        let buffered_bytes: usize = sorters.iter().map(|sorter| sorter.buffer.bytes()).sum();
        // One buffer is sorted in place; joining several takes a second index for a moment.
        let fits = sorters.len() == 1 || buffered_bytes <= budget_bytes / 2;
        if fits && sorters.iter().all(|sorter| sorter.files.is_empty()) {
            return Ok(SortedBatches::in_memory(sorters));
        }
        std::thread::scope(|scope| {
            let spills: Vec<_> = sorters.iter_mut().map(|sorter| scope.spawn(|| sorter.spill())).collect();
            spills.into_iter().try_for_each(|spill| spill.join().expect("a spill does not panic"))
        })?;
        let mut files = Vec::new();
        let mut last = None;
        for mut sorter in sorters {
            files.append(&mut sorter.files);
            last = Some(sorter);
        }
        let sorter = last.expect("without sorters everything fits");
        let fan_in = (budget_bytes / (BATCHES_PER_RUN * sorter.batch_bytes)).clamp(2, FAN_IN_MAX);
        sorter.merge(files, fan_in)
    }

    /// Merges files, which are in the order of arrival; only neighbours may be merged.
    fn merge(self, mut files: Vec<BatchFile>, fan_in: usize) -> Result<SortedBatches, IngestError> {
        let Self { schema, mut keys, spill_dir, batch_bytes, .. } = self;
        while files.len() > fan_in {
            let mut merged = Vec::with_capacity(files.len().div_ceil(fan_in));
            let mut rest = files.into_iter();
            loop {
                let few: Vec<_> = rest.by_ref().take(fan_in).collect();
                if few.is_empty() {
                    break;
                }
                let mut rounds = BatchRounds::new(few, keys, batch_bytes)?;
                let mut writer = BatchWriter::create(&schema, &spill_dir)?;
                while let Some(batch) = rounds.next_batch()? {
                    writer.write(&batch)?;
                }
                merged.push(writer.finish()?);
                keys = rounds.into_keys();
            }
            files = merged;
        }
        Ok(SortedBatches { rows: SortedRows::Merged(BatchRounds::new(files, keys, batch_bytes)?) })
    }

    fn spill(&mut self) -> Result<(), IngestError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        if buffer.entries.is_empty() {
            return Ok(());
        }
        buffer.sort();
        buffer.rows = Vec::new();
        let mut writer = BatchWriter::create(&self.schema, &self.spill_dir)?;
        let mut start = 0;
        while let Some(batch) = buffer.gather(start, self.batch_bytes)? {
            start += batch.num_rows();
            writer.write(&batch)?;
        }
        self.files.push(writer.finish()?);
        Ok(())
    }
}

/// The batch in memory of its own, if it is a small part of a larger one.
fn own(batch: RecordBatch) -> Result<RecordBatch, IngestError> {
    let needed = batch.columns().iter().map(|column| column.to_data().get_slice_memory_size());
    let needed_bytes = needed.sum::<Result<usize, _>>()?;
    if batch.get_array_memory_size() <= 2 * needed_bytes + (4 << 10) {
        return Ok(batch);
    }
    let all = UInt32Array::from_iter_values(0..batch.num_rows() as u32);
    Ok(take_record_batch(&batch, &all)?)
}

/// Sorted rows, batch by batch.
pub struct SortedBatches {
    rows: SortedRows,
}

enum SortedRows {
    Memory { buffer: Buffer, start: usize },
    Merged(BatchRounds),
}

impl SortedBatches {
    fn in_memory(sorters: Vec<BatchSorter>) -> Self {
        let mut buffer = Buffer::default();
        for sorter in sorters {
            if buffer.batches.is_empty() {
                buffer = sorter.buffer;
            } else {
                buffer.append(sorter.buffer);
            }
        }
        buffer.sort();
        buffer.rows = Vec::new();
        Self { rows: SortedRows::Memory { buffer, start: 0 } }
    }
}

impl Iterator for SortedBatches {
    type Item = Result<RecordBatch, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.rows {
            SortedRows::Memory { buffer, start } => {
                let batch = buffer.gather(*start, BATCH_BYTES_MAX).transpose()?;
                Some(batch.inspect(|batch| *start += batch.num_rows()))
            }
            SortedRows::Merged(rounds) => rounds.next_batch().transpose(),
        }
    }
}

#[cfg(test)]
mod tests;
