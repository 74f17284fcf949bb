//! Merging runs of batches in rounds, stably.
//!
//! The window of a run is the batch that was read last. A round takes the rows up to the least last
//! key, and where several windows end with that key, up to the end of the first of them only: a later
//! run must not pass rows with an equal key that an earlier run still has in its file.

use arrow_array::RecordBatch;
use arrow_row::Rows;
use arrow_select::interleave::interleave_record_batch;

use super::{
    batch_keys::{BatchKeys, Entry, KeyReader, compare},
    batch_runs::{BatchFile, BatchReader},
};
use crate::IngestError;

/// Rows in an output batch.
pub(crate) const ROWS_MAX: usize = 8192;

/// A run and its current batch.
struct Window {
    reader: BatchReader,
    batch: RecordBatch,
    keys: BatchKeys,
    start: usize,
}

impl Window {
    fn open(file: BatchFile, keys: &KeyReader) -> Result<Option<Self>, IngestError> {
        let mut reader = file.read()?;
        let Some(batch) = reader.next().transpose()? else { return Ok(None) };
        Ok(Some(Self { reader, keys: keys.read(&batch)?, batch, start: 0 }))
    }

    /// Reads the next batch if this one is used up; false at the end of the run.
    fn fill(&mut self, keys: &KeyReader) -> Result<bool, IngestError> {
        while self.start == self.batch.num_rows() {
            let Some(batch) = self.reader.next().transpose()? else { return Ok(false) };
            self.keys = keys.read(&batch)?;
            self.batch = batch;
            self.start = 0;
        }
        Ok(true)
    }

    fn entry(&self, run: usize, row: usize) -> Entry {
        Entry { prefix: self.keys.prefixes[row], batch: run as u32, row: row as u32 }
    }
}

/// The merge of runs that arrived in this order.
pub(crate) struct BatchRounds {
    keys: KeyReader,
    windows: Vec<Window>,
    /// Rows of the windows in order, from `start` on still to be put out.
    entries: Vec<Entry>,
    start: usize,
    batch_bytes: usize,
}

impl BatchRounds {
    /// A merge that yields batches of about `batch_bytes` at most.
    pub(crate) fn new(files: Vec<BatchFile>, keys: KeyReader, batch_bytes: usize) -> Result<Self, IngestError> {
        let windows = files.into_iter().filter_map(|file| Window::open(file, &keys).transpose());
        let windows = windows.collect::<Result<_, _>>()?;
        Ok(Self { keys, windows, entries: Vec::new(), start: 0, batch_bytes })
    }

    /// Gives the reader of keys back, for another merge.
    pub(crate) fn into_keys(self) -> KeyReader {
        self.keys
    }

    /// The next batch.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>, IngestError> {
        if self.start == self.entries.len() && !self.next_round()? {
            return Ok(None);
        }
        let (rows, bytes) = self.windows.iter().fold((0, 0), |(rows, bytes), window| {
            (rows + window.batch.num_rows(), bytes + window.batch.get_array_memory_size())
        });
        let take = rows_of(self.batch_bytes, rows, bytes).min(self.entries.len() - self.start);
        let entries = &self.entries[self.start..self.start + take];
        let batches: Vec<_> = self.windows.iter().map(|window| &window.batch).collect();
        let batch = gather(&batches, entries)?;
        self.start += take;
        Ok(Some(batch))
    }

    /// Puts the rows of the next round in order; false at the end.
    fn next_round(&mut self) -> Result<bool, IngestError> {
        let mut windows = std::mem::take(&mut self.windows);
        let mut failed = None;
        // The order of the others stays: a position in `windows` still says which of two runs is the earlier.
        windows.retain_mut(|window| window.fill(&self.keys).unwrap_or_else(|error| failed.replace(error).is_some()));
        if let Some(error) = failed {
            return Err(error);
        }
        self.windows = windows;
        let rows_of = |run: u32| self.windows[run as usize].keys.rows.as_ref();
        // A run that is read to its end cannot bring smaller rows any more, so only the others bound the round.
        let ends = self.windows.iter().enumerate().filter(|(_, window)| window.reader.batches_left() > 0);
        let bound = ends
            .map(|(run, window)| window.entry(run, window.batch.num_rows() - 1))
            // The run breaks ties, here and in `window_end`: equal rows of later runs wait until the earlier run has no more of them.
            .min_by(|a, b| compare(a, b, rows_of).then(a.batch.cmp(&b.batch)));
        self.entries.clear();
        self.start = 0;
        let mut taken = Vec::with_capacity(self.windows.len());
        for (run, window) in self.windows.iter().enumerate() {
            let end = bound.map_or(window.batch.num_rows(), |bound| window_end(window, run, &bound, rows_of));
            self.entries.extend((window.start..end).map(|row| window.entry(run, row)));
            taken.push(end);
        }
        // The standard stable sort finds the runs and merges them.
        self.entries.sort_by(|a, b| compare(a, b, rows_of));
        // The batches stay until the entries are put out: `fill` replaces a batch only in the next round.
        self.windows.iter_mut().zip(taken).for_each(|(window, end)| window.start = end);
        Ok(!self.entries.is_empty())
    }
}

/// One past the last row of the window that is within the round.
fn window_end<'a>(window: &Window, run: usize, bound: &Entry, rows: impl Fn(u32) -> Option<&'a Rows> + Copy) -> usize {
    let mut low = window.start;
    let mut high = window.batch.num_rows();
    while low < high {
        let middle = low.midpoint(high);
        let entry = window.entry(run, middle);
        if compare(&entry, bound, rows).then(entry.batch.cmp(&bound.batch)).is_le() {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// How many rows make a batch of `batch_bytes`, if `rows` rows take `bytes`.
pub(crate) fn rows_of(batch_bytes: usize, rows: usize, bytes: usize) -> usize {
    (batch_bytes / (bytes / rows.max(1)).max(1)).clamp(1, ROWS_MAX)
}

/// The rows of `entries` as a batch.
pub(crate) fn gather(batches: &[&RecordBatch], entries: &[Entry]) -> Result<RecordBatch, IngestError> {
    let indices: Vec<_> = entries.iter().map(|entry| (entry.batch as usize, entry.row as usize)).collect();
    Ok(interleave_record_batch(batches, &indices)?)
}
