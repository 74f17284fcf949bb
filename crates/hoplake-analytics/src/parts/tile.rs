//! The edges from one part to another.

use std::ops::Range;

use hoplake_engine::EngineError;
use hoplake_storage::QueryContext;
use rayon::prelude::*;

/// Targets of a tile that a thread folds at a time.
pub(super) const TARGETS_AT_ONCE: usize = 1 << 13;

/// The edges from one part to another, by target. 4 bytes an edge, 8 more for its weight, 8 for a target and 4 for a source.
#[derive(Debug, Default)]
pub(super) struct Tile {
    /// Rows of targets, ascending.
    pub(super) targets: Vec<u32>,
    /// How many edges each has here.
    pub(super) lengths: Vec<u32>,
    /// The first edge of every [`TARGETS_AT_ONCE`]th target.
    starts: Vec<usize>,
    /// The source of each edge, as its position in `needed`.
    pub(super) sources: Vec<u32>,
    /// Of each edge, if they were selected.
    pub(super) weights: Vec<f64>,
    /// Rows of the sources in their part, ascending.
    pub(super) needed: Vec<u32>,
}

/// A list of a tile.
pub(super) struct TileList<'a> {
    pub(super) target: u32,
    pub(super) sources: &'a [u32],
    pub(super) weights: &'a [f64],
}

impl Tile {
    /// What its arrays take.
    pub(super) fn bytes(&self) -> u64 {
        let Self { targets, lengths, sources, needed, weights, starts } = self;
        let numbers = targets.capacity() + lengths.capacity() + sources.capacity() + needed.capacity();
        numbers as u64 * 4 + (weights.capacity() + starts.capacity()) as u64 * 8
    }

    /// Adds the list of the next target. Sources are dense ids until [`Self::finish`].
    pub(super) fn push(&mut self, target: u32, sources: &[u32], weights: &[f64]) {
        self.targets.push(target);
        self.lengths.push(sources.len() as u32);
        self.sources.extend_from_slice(sources);
        self.weights.extend_from_slice(weights);
    }

    /// Bytes that this takes beyond what it has: what [`Self::finish`] needs for sources of a range.
    pub(super) fn finish_bytes(&self, range: &Range<u32>) -> u64 {
        let words = (range.len() as u64).div_ceil(64);
        words * 12 + (self.sources.len() as u64).min(range.len() as u64) * 4
    }

    /// Numbers sources by their positions among those that are needed. `deleted` are ids that have no row, ascending.
    pub(super) fn finish(
        &mut self,
        range: &Range<u32>,
        deleted: &[u32],
        context: &QueryContext,
    ) -> Result<(), EngineError> {
        let mut is_needed = vec![0u64; range.len().div_ceil(64)];
        for (done, source) in self.sources.iter().enumerate() {
            if done % (1 << 20) == 0 {
                context.check_time()?;
            }
            let at = (source - range.start) as usize;
            is_needed[at / 64] |= 1 << (at % 64);
        }
        let mut count = 0;
        let before = is_needed.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        let before: Vec<u32> = before.collect();
        context.check_time()?;
        self.sources.par_iter_mut().for_each(|source| {
            let at = (*source - range.start) as usize;
            let lower = is_needed[at / 64] & ((1u64 << (at % 64)) - 1);
            *source = before[at / 64] + lower.count_ones();
        });
        self.needed.reserve_exact(count as usize);
        let mut rows = Rows::new(range, deleted);
        for (word, mut bits) in is_needed.into_iter().enumerate() {
            while bits != 0 {
                self.needed.push(rows.of(range.start + (word * 64) as u32 + bits.trailing_zeros()));
                bits &= bits - 1;
            }
        }
        let mut next = 0;
        self.starts = self
            .lengths
            .chunks(TARGETS_AT_ONCE)
            .map(|lengths| {
                let start = next;
                next += lengths.iter().map(|length| *length as usize).sum::<usize>();
                start
            })
            .collect();
        Ok(())
    }

    /// How many pieces of targets it has.
    pub(super) fn pieces(&self) -> usize {
        self.starts.len()
    }

    /// The targets of a piece.
    pub(super) fn targets_of(&self, piece: usize) -> &[u32] {
        let begin = piece * TARGETS_AT_ONCE;
        &self.targets[begin..self.targets.len().min(begin + TARGETS_AT_ONCE)]
    }

    /// The lists of a piece.
    pub(super) fn lists(&self, piece: usize) -> impl Iterator<Item = TileList<'_>> {
        let begin = piece * TARGETS_AT_ONCE;
        let targets = self.targets_of(piece);
        let mut next = self.starts[piece];
        targets.iter().zip(&self.lengths[begin..]).map(move |(target, length)| {
            let edges = next..next + *length as usize;
            next = edges.end;
            let weights = self.weights.get(edges.clone()).unwrap_or_default();
            TileList { target: *target, sources: &self.sources[edges], weights }
        })
    }

    /// The lists of some rows.
    pub(super) fn lists_of(&self, rows: &Range<u32>) -> impl Iterator<Item = TileList<'_>> {
        let first = self.targets.partition_point(|target| *target < rows.start) / TARGETS_AT_ONCE;
        let Range { start, end } = *rows;
        let lists = (first..self.pieces()).flat_map(|piece| self.lists(piece));
        lists.skip_while(move |list| list.target < start).take_while(move |list| list.target < end)
    }
}

/// Rows of ascending ids of a range: ids that were deleted have none.
pub(super) struct Rows<'a> {
    start: u32,
    deleted: &'a [u32],
    passed: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn new(range: &Range<u32>, deleted: &'a [u32]) -> Self {
        Self { start: range.start, deleted: deleted_in(deleted, range), passed: 0 }
    }

    /// The row of an id that is not before the last.
    pub(super) fn of(&mut self, id: u32) -> u32 {
        while self.deleted.get(self.passed).is_some_and(|deleted| *deleted < id) {
            self.passed += 1;
        }
        id - self.start - self.passed as u32
    }
}

/// Those of ascending ids that are in a range.
pub(super) fn deleted_in<'a>(deleted: &'a [u32], range: &Range<u32>) -> &'a [u32] {
    let [first, end] = [range.start, range.end].map(|bound| deleted.partition_point(|id| *id < bound));
    &deleted[first..end]
}
