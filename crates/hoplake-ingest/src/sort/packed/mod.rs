//! Sorting edges that are one number each.
//!
//! Records gather in a buffer in pieces that fit the cache, each sorted when it is full. A full
//! buffer is merged into a file. At the end the pieces in memory, or else the files, are merged.
//! A record is thus sorted twice in the cache (4–5 ns each) instead of once outside of it, nothing
//! needs a second buffer of the size of the first, and input that is sorted already (an edge list by
//! source) is recognized piece by piece and is only copied.
//!
//! Where the budget goes, for a record of `BYTES`:
//!
//! | part | while filling | while merging files |
//! | --- | --- | --- |
//! | buffer | the rest | – |
//! | round and its scratch | 2 × round | 2 × round |
//! | windows | – | about 1 round |
//! | file buffers and blocks | 1 | 1 a run |

use std::{collections::VecDeque, ops::Range, path::Path, path::PathBuf, sync::Arc};

use super::{
    radix::{Record, radix_sort},
    record_runs::{FILE_BUFFER_BYTES, RecordFile, RecordRun, RecordWriter},
    rounds::Rounds,
};
use crate::IngestError;

/// Records in a piece that is sorted in the cache.
const PIECE_LEN_MAX: usize = 128 << 10;
/// Runs merged at once; more would not fit the processor's first cache or the limit of open files.
const FAN_IN_MAX: usize = 128;

/// How a budget is used.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// Records in the buffer.
    buffer_len: usize,
    /// Records in a piece and in a round.
    piece_len: usize,
    /// Runs merged at once.
    fan_in: usize,
    /// The buffer of a file.
    file_buffer_bytes: usize,
}

impl Plan {
    fn new<T: Record>(budget_bytes: usize) -> Self {
        let piece_len = (budget_bytes / (16 * T::BYTES)).clamp(16, PIECE_LEN_MAX);
        let file_buffer_bytes = (budget_bytes / 32).clamp(512, FILE_BUFFER_BYTES);
        let fixed_bytes = 2 * piece_len * T::BYTES + file_buffer_bytes;
        // A run being merged has a file buffer, a block as read (4 KiB) and a window of at least a
        // block of 256 records.
        let run_bytes = file_buffer_bytes + (4 << 10) + 2 * 256 * T::BYTES;
        Self {
            buffer_len: (budget_bytes.saturating_sub(fixed_bytes) / T::BYTES).max(piece_len),
            piece_len,
            fan_in: (budget_bytes.saturating_sub(3 * piece_len * T::BYTES) / run_bytes).clamp(2, FAN_IN_MAX),
            file_buffer_bytes,
        }
    }
}

/// Sorts records within a memory budget. Equal records are all kept.
///
/// One thread fills it. Several threads fill one each, and [`finish_all`](Self::finish_all) merges them.
#[derive(Debug)]
pub struct PackedSorter<T> {
    plan: Plan,
    budget_bytes: usize,
    spill_dir: PathBuf,
    /// Sorted pieces, then one that is being filled.
    buffer: Vec<T>,
    /// The sorted pieces; neighbours that are in order are one.
    pieces: Vec<Range<usize>>,
    scratch: Vec<T>,
    files: VecDeque<RecordFile>,
}

impl<T: Record> PackedSorter<T> {
    /// A sorter that keeps to `budget_bytes`, and writes what does not fit to files in `spill_dir`.
    pub fn new(budget_bytes: usize, spill_dir: &Path) -> Self {
        Self {
            plan: Plan::new::<T>(budget_bytes),
            budget_bytes,
            spill_dir: spill_dir.to_owned(),
            buffer: Vec::new(),
            pieces: Vec::new(),
            scratch: Vec::new(),
            files: VecDeque::new(),
        }
    }

    /// Adds records, in any order. Cheapest for some thousands at a time.
    ///
    /// # Errors
    /// [`IngestError::Spill`] if a run cannot be written.
    pub fn push(&mut self, mut records: &[T]) -> Result<(), IngestError> {
        // Reserved at once: the system provides pages on first use, and the buffer never moves.
        let room = self.plan.buffer_len - self.buffer.len();
        self.buffer.try_reserve_exact(room).map_err(|_| {
            let bytes = self.plan.buffer_len as u64 * size_of::<T>() as u64;
            IngestError::Invalid(format!(
                "the system has no {bytes} bytes for sorting edges; give the load less memory"
            ))
        })?;
        while !records.is_empty() {
            let filled = self.buffer.len() - self.sorted_len();
            let room = (self.plan.piece_len - filled).min(self.plan.buffer_len - self.buffer.len());
            let (head, rest) = records.split_at(room.min(records.len()));
            self.buffer.extend_from_slice(head);
            records = rest;
            if head.len() == room {
                self.sort_piece();
                if self.buffer.len() == self.plan.buffer_len {
                    self.spill()?;
                }
            }
        }
        Ok(())
    }

    /// All records in order.
    ///
    /// # Errors
    /// [`IngestError::Spill`] if a run cannot be written or read.
    pub fn finish(self) -> Result<SortedRecords<T>, IngestError> {
        Self::finish_all(vec![self])
    }

    /// All records of all sorters in order, within the sum of their budgets.
    ///
    /// # Errors
    /// [`IngestError::Spill`] if a run cannot be written or read.
    pub fn finish_all(mut sorters: Vec<Self>) -> Result<SortedRecords<T>, IngestError> {
        for sorter in &mut sorters {
            sorter.sort_piece();
        }
        if sorters.iter().all(|sorter| sorter.files.is_empty()) {
            return Ok(SortedRecords { rounds: merge_memory(sorters)? });
        }
        std::thread::scope(|scope| {
            let spills: Vec<_> = sorters.iter_mut().map(|sorter| scope.spawn(|| sorter.spill_last())).collect();
            spills.into_iter().try_for_each(|spill| spill.join().expect("a spill does not panic"))
        })?;
        let plan = Plan::new::<T>(sorters.iter().map(|sorter| sorter.budget_bytes).sum());
        let spill_dir = sorters[0].spill_dir.clone();
        let files = sorters.into_iter().flat_map(|sorter| sorter.files).collect();
        Ok(SortedRecords { rounds: merge_files(files, plan, &spill_dir)? })
    }

    fn sorted_len(&self) -> usize {
        self.pieces.last().map_or(0, |piece| piece.end)
    }

    fn sort_piece(&mut self) {
        let start = self.sorted_len();
        if start == self.buffer.len() {
            return;
        }
        radix_sort(&mut self.buffer[start..], &mut self.scratch);
        match self.pieces.last_mut() {
            Some(piece) if self.buffer[start - 1] <= self.buffer[start] => piece.end = self.buffer.len(),
            _ => self.pieces.push(start..self.buffer.len()),
        }
    }

    /// Makes the sorted pieces of the buffer a run in a file.
    fn spill(&mut self) -> Result<(), IngestError> {
        let buffer = Arc::new(std::mem::take(&mut self.buffer));
        let runs: Vec<_> = self.pieces.drain(..).map(|piece| RecordRun::memory(&buffer, piece)).collect();
        let round_len = round_len(self.plan.piece_len, runs.len());
        let mut rounds = Rounds::new(runs, round_len)?;
        self.files.push_back(write_run(&mut rounds, &self.spill_dir, self.plan.file_buffer_bytes)?);
        drop(rounds);
        self.buffer = Arc::into_inner(buffer).expect("the merge that shared the buffer is over");
        self.buffer.clear();
        Ok(())
    }

    /// Spills what is left and gives up the buffer.
    fn spill_last(&mut self) -> Result<(), IngestError> {
        if !self.buffer.is_empty() {
            self.spill()?;
        }
        self.buffer = Vec::new();
        self.scratch = Vec::new();
        Ok(())
    }
}

/// Sorted records, piece by piece.
pub struct SortedRecords<T> {
    rounds: Rounds<T, RecordRun<T>>,
}

impl<T: Record> SortedRecords<T> {
    /// Replaces `piece` with the next records, some ten thousands; false at the end.
    ///
    /// # Errors
    /// [`IngestError::Spill`] if a run cannot be read.
    pub fn next_into(&mut self, piece: &mut Vec<T>) -> Result<bool, IngestError> {
        self.rounds.next_into(piece)
    }
}

impl<T: Record> Iterator for SortedRecords<T> {
    type Item = Result<Vec<T>, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut piece = Vec::new();
        self.next_into(&mut piece).map(|more| more.then_some(piece)).transpose()
    }
}

/// A round long enough that a window pays for its binary search.
fn round_len(piece_len: usize, runs: usize) -> usize {
    piece_len.max(128 * runs)
}

fn merge_memory<T: Record>(sorters: Vec<PackedSorter<T>>) -> Result<Rounds<T, RecordRun<T>>, IngestError> {
    let piece_len = sorters.first().map_or(1, |sorter| sorter.plan.piece_len);
    let mut runs = Vec::new();
    for sorter in sorters {
        let buffer = Arc::new(sorter.buffer);
        runs.extend(sorter.pieces.into_iter().map(|piece| RecordRun::memory(&buffer, piece)));
    }
    let round_len = round_len(piece_len, runs.len());
    Rounds::new(runs, round_len)
}

/// Merges files into fewer, as long as there are more than can be merged at once.
fn merge_files<T: Record>(
    mut files: VecDeque<RecordFile>,
    plan: Plan,
    spill_dir: &Path,
) -> Result<Rounds<T, RecordRun<T>>, IngestError> {
    while files.len() > plan.fan_in {
        // As few as make the last merge a full one: these records are written and read twice.
        let surplus = files.len() - plan.fan_in + 1;
        let few = files.drain(..surplus.clamp(2, plan.fan_in)).collect();
        files.push_back(write_run(&mut open::<T>(few, plan)?, spill_dir, plan.file_buffer_bytes)?);
    }
    open(files, plan)
}

fn open<T: Record>(files: VecDeque<RecordFile>, plan: Plan) -> Result<Rounds<T, RecordRun<T>>, IngestError> {
    let runs = files.into_iter().map(|file| RecordRun::file(file, plan.file_buffer_bytes)).collect::<Result<_, _>>()?;
    Rounds::new(runs, plan.piece_len)
}

fn write_run<T: Record>(
    rounds: &mut Rounds<T, RecordRun<T>>,
    spill_dir: &Path,
    buffer_bytes: usize,
) -> Result<RecordFile, IngestError> {
    let mut writer = RecordWriter::create(spill_dir, buffer_bytes)?;
    let mut piece = Vec::new();
    while rounds.next_into(&mut piece)? {
        writer.write(&piece)?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests;
