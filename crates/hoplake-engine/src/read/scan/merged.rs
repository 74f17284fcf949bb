//! Scans of several runs as one stream of entries: of each item, those of the newest run that has any.
//!
//! ```text
//! scan of a run ── decoded ──▶ buffer ─┐
//! scan of a run ── decoded ──▶ buffer ─┼─ entries before the first of the buffers' ends ── merge_runs ──▶ a batch
//! scan of a run ── decoded ──▶ buffer ─┘
//! ```
//! Each run has a buffer of entries. What may be merged are the entries before the *bound*, the least of the buffers' last
//! entries: no block to come has anything before it. The bound itself has to wait, since an item may go on in the next block,
//! as many edges between two vertices do. Memory is about a block of each run.

use std::{cmp::Ordering, ops::Range, sync::Arc};

use hoplake_format::FormatError;
use hoplake_storage::Branch;

use super::{Ahead, ListRange, Scan, decode_lists};
use crate::{
    EngineError, Snapshot,
    read::merge::{ListEntry, merge_runs},
    snapshot::sections::Run,
};

/// The entries of a block, in order.
pub(crate) type Decode<T> = Arc<dyn Fn(&[u8]) -> Result<Vec<T>, FormatError> + Send + Sync>;

/// The order of entries; those that are equal by it are of one item.
pub(crate) type Order<T> = fn(&T, &T) -> Ordering;

/// A run of a version, and what its blocks have.
pub(crate) struct Source<T> {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) run: Run,
    /// Of which sources, if not of all.
    pub(crate) sources: Option<Range<u64>>,
    pub(crate) decode: Decode<T>,
}

impl<T> Source<T> {
    /// All that a run has.
    pub(crate) fn new(snapshot: &Arc<Snapshot>, run: &Run, decode: &Decode<T>) -> Self {
        Self { snapshot: snapshot.clone(), run: run.clone(), sources: None, decode: decode.clone() }
    }
}

impl Source<ListEntry> {
    /// The lists of a range that a run has.
    pub(crate) fn lists(snapshot: &Arc<Snapshot>, run: &Run, range: &ListRange) -> Self {
        let sources = range.sources.clone();
        let decode: Decode<_> = Arc::new(move |block| decode_lists(block, &sources));
        Self { sources: Some(range.sources.clone()), ..Self::new(snapshot, run, &decode) }
    }
}

/// Several runs as one.
pub(crate) struct MergedScan<T> {
    inputs: Vec<Input<T>>,
    buffers: Vec<Buffer<T>>,
    order: Order<T>,
}

struct Input<T> {
    scan: Scan,
    decode: Decode<T>,
}

impl<T: Clone> MergedScan<T> {
    /// Merges runs, the newest first, which together read ahead `ahead_bytes`.
    pub(crate) fn new(sources: Vec<Source<T>>, ahead_bytes: u64, order: Order<T>) -> Self {
        let ahead = Ahead::of(ahead_bytes, sources.len());
        let input = |source: Source<T>| {
            let scan = Scan::new(&source.snapshot, &source.run, source.sources, ahead);
            Input { scan, decode: source.decode }
        };
        let inputs: Vec<_> = sources.into_iter().map(input).collect();
        let buffers = inputs.iter().map(|_| Buffer::default()).collect();
        Self { inputs, buffers, order }
    }

    /// Whether nothing is left.
    pub(crate) fn is_ended(&self) -> bool {
        self.buffers.iter().all(|buffer| buffer.ended && buffer.entries.is_empty())
    }

    /// The next entries, in order, each with the number of its run among those that are merged. None come only behind the last.
    pub(crate) async fn next(&mut self, branch: &mut Branch) -> Result<Vec<(usize, T)>, EngineError> {
        self.ask(branch).await?;
        for (input, buffer) in self.inputs.iter_mut().zip(&mut self.buffers) {
            while buffer.wants_more(self.order) {
                match input.scan.next(branch).await? {
                    None => buffer.ended = true,
                    Some(block) => {
                        buffer.entries.extend((input.decode)(&block).map_err(|error| input.scan.damaged(error))?);
                    }
                }
            }
        }
        Ok(merge_ready(&mut self.buffers, self.order))
    }

    /// Asks for what all runs read ahead, before the first is waited for: else each would have a round trip of its own.
    pub(crate) async fn ask(&mut self, branch: &mut Branch) -> Result<(), EngineError> {
        for (input, buffer) in self.inputs.iter_mut().zip(&self.buffers) {
            if !buffer.ended {
                input.scan.ask(branch).await?;
            }
        }
        Ok(())
    }
}

/// Entries of a run that were read and not merged yet.
struct Buffer<T> {
    entries: Vec<T>,
    /// Whether no more come.
    ended: bool,
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), ended: false }
    }
}

impl<T> Buffer<T> {
    /// Whether it has nothing before its last item, and so nothing that may be merged, if more is to come.
    fn wants_more(&self, order: Order<T>) -> bool {
        // The last item may continue in the next block, so it does not count.
        let has_before = self.entries.first().zip(self.entries.last()).is_some_and(|(a, b)| order(a, b).is_lt());
        !self.ended && !has_before
    }
}

/// Takes what may be merged out of buffers of which none wants more, and merges it.
fn merge_ready<T: Clone>(buffers: &mut [Buffer<T>], order: Order<T>) -> Vec<(usize, T)> {
    // A run that has ended has nothing to wait for: its last item may be merged, too.
    let going_on = buffers.iter().filter(|buffer| !buffer.ended);
    let bound = going_on.filter_map(|buffer| buffer.entries.last()).min_by(|a, b| order(a, b));
    let end = |buffer: &Buffer<T>| match bound {
        Some(bound) => buffer.entries.partition_point(|entry| order(entry, bound).is_lt()),
        None => buffer.entries.len(),
    };
    let ends: Vec<usize> = buffers.iter().map(end).collect();
    let lists: Vec<&[T]> = buffers.iter().zip(&ends).map(|(buffer, end)| &buffer.entries[..*end]).collect();
    let mut merged = Vec::new();
    merge_runs(&lists, order, |run, entries| merged.extend(entries.iter().map(|entry| (run, entry.clone()))));
    for (buffer, end) in buffers.iter_mut().zip(ends) {
        buffer.entries.drain(..end);
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_item(a: &(u64, usize), b: &(u64, usize)) -> Ordering {
        a.0.cmp(&b.0)
    }

    /// Merges runs that come in blocks, as a scan does.
    fn in_blocks(mut runs: Vec<std::vec::IntoIter<Vec<(u64, usize)>>>) -> Vec<(usize, (u64, usize))> {
        let mut buffers: Vec<_> = runs.iter().map(|_| Buffer::default()).collect();
        let mut merged = Vec::new();
        loop {
            for (run, buffer) in runs.iter_mut().zip(&mut buffers) {
                while buffer.wants_more(by_item) {
                    match run.next() {
                        None => buffer.ended = true,
                        Some(block) => buffer.entries.extend(block),
                    }
                }
            }
            let batch = merge_ready(&mut buffers, by_item);
            if batch.is_empty() {
                return merged;
            }
            merged.extend(batch);
        }
    }

    #[test]
    fn an_item_that_goes_on_in_the_next_block_is_waited_for() {
        let newer = vec![vec![(5, 0)], vec![(5, 1), (6, 0)]];
        let older = vec![vec![(4, 0), (5, 0)], vec![(5, 1)], vec![(5, 2)], vec![(7, 0)]];
        let found = in_blocks(vec![newer.into_iter(), older.into_iter()]);
        assert_eq!(found, [(1, (4, 0)), (0, (5, 0)), (0, (5, 1)), (0, (6, 0)), (1, (7, 0))]);
    }

    #[test]
    fn memory_is_of_the_blocks_at_hand() {
        let mut buffers = [
            Buffer { entries: vec![(1, 0), (2, 0), (3, 0)], ended: false },
            Buffer { entries: vec![(2, 0), (90, 0)], ended: false },
        ];
        assert_eq!(merge_ready(&mut buffers, by_item), [(0, (1, 0)), (0, (2, 0))]);
        assert!(buffers[0].wants_more(by_item) && !buffers[0].ended);
        assert_eq!((buffers[0].entries.len(), buffers[1].entries.len()), (1, 1));
    }

    proptest! {
        #[test]
        fn merged_in_blocks_is_merged(
            runs in prop::collection::vec(prop::collection::vec((0u64..30, 1usize..4), 0..40), 0..5), length in 1usize..7
        ) {
            let entries = |run: Vec<(u64, usize)>| -> Vec<(u64, usize)> {
                let counts: std::collections::BTreeMap<_, _> = run.into_iter().collect();
                counts.into_iter().flat_map(|(item, count)| (0..count).map(move |entry| (item, entry))).collect()
            };
            let runs: Vec<_> = runs.into_iter().map(entries).collect();
            let lists: Vec<_> = runs.iter().map(Vec::as_slice).collect();
            let mut whole = Vec::new();
            merge_runs(&lists, by_item, |run, entries| whole.extend(entries.iter().map(|entry| (run, *entry))));
            let blocks = |run: &Vec<(u64, usize)>| {
                run.chunks(length).map(<[_]>::to_vec).collect::<Vec<_>>().into_iter()
            };
            prop_assert_eq!(in_blocks(runs.iter().map(blocks).collect()), whole);
        }
    }
}
