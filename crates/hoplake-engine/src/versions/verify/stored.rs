//! An object as it lies in the store, read from end to end: ranges that follow each other, fetched ahead while earlier ones
//! are checked.
//!
//! A scan ([`crate::read::scan`]) takes blocks from memory, and a reader from the disk or from an access node. Verification must not:
//! it is there for the store's own bytes, all of them, those between blocks too. It shares what a scan has below that: how
//! large an extent is, how many are on their way within a budget, and the tasks that fetch them.

use std::{collections::VecDeque, ops::Range};

use bytes::Bytes;
use hoplake_storage::Store;

use crate::{
    EngineError,
    read::scan::{Ahead, OnItsWay},
};

/// Bytes that are in memory at once: four extents.
const AHEAD_BYTES: u64 = 16 << 20;

/// A range of an object, and how many of its blocks are in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) range: Range<u64>,
    pub(crate) blocks: usize,
}

/// Cuts a range of an object into extents without gaps, so that their bytes make up a checksum of all. Each ends where a block
/// does, or between blocks, and has at most `bytes_max` bytes unless it is one block. The blocks ascend and do not overlap.
pub(crate) fn extents(
    blocks: impl Iterator<Item = Range<u64>>,
    within: Range<u64>,
    bytes_max: u64,
) -> impl Iterator<Item = Extent> {
    let mut blocks = blocks.peekable();
    let mut start = within.start;
    std::iter::from_fn(move || {
        let limit = (start + bytes_max).min(within.end);
        let mut end = start;
        let mut count = 0;
        while let Some(block) = blocks.next_if(|it| it.end <= limit || count == 0 && it.start == start) {
            (end, count) = (block.end, count + 1);
        }
        // What lies before the next block goes along, as far as it fits.
        let next = blocks.peek().map_or(within.end, |block| block.start);
        end = end.max(next.min(limit));
        let range = start..end;
        start = end;
        (!range.is_empty()).then_some(Extent { range, blocks: count })
    })
}

/// The extents of an object, in order.
pub(crate) struct StoredObject<I> {
    store: Store,
    name: String,
    extents: I,
    coming: VecDeque<(Extent, OnItsWay<Bytes>)>,
    at_once: usize,
}

impl<I: Iterator<Item = Extent>> StoredObject<I> {
    pub(crate) fn new(store: &Store, name: &str, extents: I) -> Self {
        let at_once = Ahead::of(AHEAD_BYTES, 1).extents_at_once();
        Self { store: store.clone(), name: name.to_owned(), extents, coming: VecDeque::new(), at_once }
    }

    /// The next extent and its bytes; `None` behind the last.
    pub(crate) async fn next(&mut self) -> Result<Option<(Extent, Bytes)>, EngineError> {
        while self.coming.len() < self.at_once {
            let Some(extent) = self.extents.next() else { break };
            let store = self.store.clone();
            let name = self.name.clone();
            let range = extent.range.clone();
            let read = async move { Ok(store.get_range(&name, range).await?) };
            self.coming.push_back((extent, OnItsWay::begin(read)));
        }
        let Some((extent, coming)) = self.coming.pop_front() else { return Ok(None) };
        Ok(Some((extent, coming.arrived().await?)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(blocks: &[Range<u64>], within: Range<u64>, bytes_max: u64) -> Vec<(Range<u64>, usize)> {
        extents(blocks.iter().cloned(), within, bytes_max).map(|it| (it.range, it.blocks)).collect()
    }

    #[test]
    fn extents_end_where_blocks_do() {
        assert_eq!(cut(&[0..4, 4..8, 8..12], 0..12, 10), [(0..8, 2), (8..12, 1)]);
        // A block that is longer than an extent is one.
        assert_eq!(cut(&[0..4, 4..30, 30..31], 0..31, 10), [(0..4, 1), (4..30, 1), (30..31, 1)]);
    }

    #[test]
    fn bytes_between_blocks_are_read_too() {
        assert_eq!(cut(&[2..4, 6..8], 0..9, 10), [(0..9, 2)]);
        assert_eq!(cut(&[25..40, 41..42], 0..45, 10), [(0..10, 0), (10..20, 0), (20..25, 0), (25..40, 1), (40..45, 1)]);
        assert_eq!(cut(&[], 5..20, 10), [(5..15, 0), (15..20, 0)]);
        assert_eq!(cut(&[], 5..5, 10), []);
    }

    proptest! {
        #[test]
        fn extents_have_each_byte_and_each_block_once(
            pairs in prop::collection::vec((0u64..20, 1u64..30), 0..30), spare in 0u64..30, bytes_max in 1u64..40
        ) {
            let mut end = 0;
            let blocks: Vec<Range<u64>> = pairs.into_iter().map(|(gap, length)| {
                let start = end + gap;
                end = start + length;
                start..end
            }).collect();
            let mut at = 0;
            let mut left = &blocks[..];
            for (range, count) in cut(&blocks, 0..end + spare, bytes_max) {
                prop_assert_eq!(range.start, at);
                let (own, rest) = left.split_at(count);
                prop_assert!(own.iter().all(|block| range.start <= block.start && block.end <= range.end));
                prop_assert!(rest.first().is_none_or(|block| block.start >= range.end));
                prop_assert!(range.end - range.start <= bytes_max || own.len() == 1 && own[0] == range);
                (at, left) = (range.end, rest);
            }
            prop_assert_eq!((at, left.len()), (end + spare, 0));
        }
    }
}
