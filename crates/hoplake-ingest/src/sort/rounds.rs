//! Merging runs of records in rounds.

use super::radix::{Record, radix_sort};
use crate::IngestError;

/// A sorted run, of which a window of the next records is at hand.
pub(crate) trait Run<T> {
    /// Widens the window to `len` records or more, or to the end of the run.
    fn fill(&mut self, len: usize) -> Result<(), IngestError>;
    /// The next records.
    fn window(&self) -> &[T];
    /// Leaves the first `len` records of the window behind.
    fn advance(&mut self, len: usize);
    /// Whether nothing comes after the window.
    fn ends_with_window(&self) -> bool;
}

/// The merge of `runs`, a piece at a time.
pub(crate) struct Rounds<T, R> {
    runs: Vec<R>,
    /// About how many records a round yields.
    round_len: usize,
    scratch: Vec<T>,
}

impl<T: Record, R: Run<T>> Rounds<T, R> {
    /// A merge whose pieces hold about `round_len` records, and never more than twice as many (or
    /// 256 for each run if that is more).
    pub(crate) fn new(runs: Vec<R>, round_len: usize) -> Self {
        Self { runs, round_len, scratch: Vec::new() }
    }

    /// Replaces `piece` with the next records; false at the end.
    pub(crate) fn next_into(&mut self, piece: &mut Vec<T>) -> Result<bool, IngestError> {
        piece.clear();
        let Some(window_len) = self.round_len.checked_div(self.runs.len()) else { return Ok(false) };
        let mut bound = None;
        for run in &mut self.runs {
            run.fill(window_len.max(1))?;
            if !run.ends_with_window() {
                let last = *run.window().last().expect("a run with more to come has a window");
                bound = Some(bound.map_or(last, |bound| last.min(bound)));
            }
        }
        let mut takers = 0;
        self.runs.retain_mut(|run| {
            let window = run.window();
            let taken = bound.map_or(window.len(), |bound| window.partition_point(|record| *record <= bound));
            piece.extend_from_slice(&window[..taken]);
            takers += usize::from(taken > 0);
            let ended = run.ends_with_window() && taken == window.len();
            run.advance(taken);
            !ended
        });
        if takers > 1 {
            radix_sort(piece, &mut self.scratch);
        }
        // Only empty runs yield an empty piece, and they have all ended.
        Ok(!piece.is_empty())
    }
}
