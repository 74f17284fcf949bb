//! Merging runs of records in rounds.

use super::radix::{Record, radix_sort};
use crate::IngestError;

/// A sorted run with a window of its next records.
pub(crate) trait Run<T> {
    /// Widens the window to `len` records or more, or to the end of the run.
    fn fill(&mut self, len: usize) -> Result<(), IngestError>;
    /// The next records.
    fn window(&self) -> &[T];
    /// Removes the first `len` records of the window.
    fn advance(&mut self, len: usize);
    /// Whether the window is the last.
    fn ends_with_window(&self) -> bool;
}

/// The merge of runs, a piece at a time.
///
/// Runs whose first record is beyond the round *wait*: input in order, whose runs do not overlap,
/// costs one copy.
pub(crate) struct Rounds<T, R> {
    active: Vec<R>,
    /// Runs by their first record, the least last.
    waiting: Vec<R>,
    /// About how many records a round yields.
    round_len: usize,
    scratch: Vec<T>,
}

impl<T: Record, R: Run<T>> Rounds<T, R> {
    /// A merge whose pieces hold about `round_len` records, and rarely more than twice as many.
    pub(crate) fn new(mut runs: Vec<R>, round_len: usize) -> Result<Self, IngestError> {
        runs.iter_mut().try_for_each(|run| run.fill(1))?;
        runs.retain(|run| !run.window().is_empty());
        runs.sort_by_key(|run| std::cmp::Reverse(run.window()[0]));
        Ok(Self { active: Vec::new(), waiting: runs, round_len, scratch: Vec::new() })
    }

    /// Replaces `piece` with the next records; false at the end.
    pub(crate) fn next_into(&mut self, piece: &mut Vec<T>) -> Result<bool, IngestError> {
        piece.clear();
        let bound = self.widen()?;
        let mut takers = 0;
        self.active.retain_mut(|run| {
            let window = run.window();
            let taken = window.partition_point(|record| *record <= bound);
            piece.extend_from_slice(&window[..taken]);
            takers += usize::from(taken > 0);
            let ended = run.ends_with_window() && taken == window.len();
            run.advance(taken);
            !ended
        });
        if takers > 1 {
            radix_sort(piece, &mut self.scratch);
        }
        Ok(!piece.is_empty())
    }

    /// Makes every run active that has a part in the round, widens their windows, and returns up to which
    /// record the windows hold all there is.
    fn widen(&mut self) -> Result<T, IngestError> {
        loop {
            let window_len = (self.round_len / self.active.len().max(1)).max(1);
            self.active.iter_mut().try_for_each(|run| run.fill(window_len))?;
            let lasts = |ends: bool| {
                let runs = self.active.iter().filter(move |run| run.ends_with_window() == ends);
                runs.map(|run| *run.window().last().expect("an active run has a window"))
            };
            let bound = lasts(false).min().or_else(|| lasts(true).max());
            let joins = |run: &R| bound.is_none_or(|bound| run.window()[0] <= bound);
            let joining = self.waiting.iter().rev().take_while(|run| joins(run)).count();
            // With nothing active the first that waits sets the bound for the others.
            let joining = if bound.is_none() { joining.min(1) } else { joining };
            if joining == 0 {
                return Ok(bound.unwrap_or_default());
            }
            self.active.extend(self.waiting.drain(self.waiting.len() - joining..));
        }
    }
}
