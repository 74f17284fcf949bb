//! Sections read from their beginning to their end, some blocks at a time, and many of them merged in order.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    fmt,
    sync::Arc,
};

use futures::future::try_join_all;
use hoplake_format::FormatError;
use hoplake_storage::{BlockRequest, QueryContext, Wave};

use crate::{EngineError, Snapshot, snapshot::SectionPlace};

/// Blocks of a section that are read at a time.
const BLOCKS: usize = 16;

/// The items of a block, in order.
pub(super) type Decode<T> = Arc<dyn Fn(&[u8]) -> Result<Vec<T>, FormatError> + Send + Sync>;

/// A section, as far as it was read.
pub(super) struct Cursor<T> {
    snapshot: Arc<Snapshot>,
    place: SectionPlace,
    decode: Decode<T>,
    next_block: usize,
    ended: bool,
    items: VecDeque<T>,
}

impl<T> fmt::Debug for Cursor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cursor({:?}, block {})", self.place, self.next_block)
    }
}

impl<T> Cursor<T> {
    pub(super) fn new(snapshot: &Arc<Snapshot>, place: SectionPlace, decode: &Decode<T>) -> Self {
        let (snapshot, decode) = (snapshot.clone(), decode.clone());
        Self { snapshot, place, decode, next_block: 0, ended: false, items: VecDeque::new() }
    }

    /// Reads on if nothing is left and there is more.
    async fn fill(&mut self, after: Wave, context: &QueryContext) -> Result<Wave, EngineError> {
        let mut wave = after;
        while self.items.is_empty() && !self.ended {
            wave = self.snapshot.make_resident([self.place], wave, context).await?;
            let section = self.snapshot.section(self.place)?;
            let blocks = self.next_block..section.index.block_count().min(self.next_block + BLOCKS);
            let requests: Vec<BlockRequest<'_>> = blocks.clone().map(|block| section.request(block)).collect();
            let (payloads, came) = self.snapshot.reader().read(wave, &requests, context).await?;
            for payload in payloads {
                let place = || self.snapshot.reader().store().place(&section.object.name);
                self.items.extend((self.decode)(&payload).map_err(|error| EngineError::format(place())(error))?);
            }
            wave = came;
            self.next_block = blocks.end;
            self.ended = blocks.end == section.index.block_count();
        }
        Ok(wave)
    }
}

/// Several sections as one, in order.
#[derive(Debug)]
pub(super) struct Merged<T>(Vec<Cursor<T>>);

impl<T: Ord> Merged<T> {
    pub(super) fn new(cursors: Vec<Cursor<T>>) -> Self {
        Self(cursors)
    }

    /// Whether there are no sections.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// About `limit` items more, in order, equal ones once; those that belong `together` with the last come with it. None
    /// are left if there are none.
    pub(super) async fn page(
        &mut self,
        limit: usize,
        together: impl Fn(&T, &T) -> bool,
        after: Wave,
        context: &QueryContext,
    ) -> Result<(Vec<T>, Wave), EngineError> {
        let waves = try_join_all(self.0.iter_mut().map(|cursor| cursor.fill(after, context))).await?;
        let mut wave = waves.into_iter().max().unwrap_or(after);
        let heads = self.0.iter_mut().enumerate();
        let mut heads: BinaryHeap<_> =
            heads.filter_map(|(at, cursor)| Some(Reverse((cursor.items.pop_front()?, at)))).collect();
        let mut page: Vec<T> = Vec::new();
        while let Some(Reverse((head, _))) = heads.peek() {
            // What several sections mention ends in the page in which it began, or the next page would have it again.
            if page.len() >= limit && !page.last().is_some_and(|last| last == head || together(last, head)) {
                break;
            }
            let Some(Reverse((item, at))) = heads.pop() else { break };
            if page.last() != Some(&item) {
                page.push(item);
            }
            let cursor = &mut self.0[at];
            wave = cursor.fill(wave, context).await?;
            heads.extend(cursor.items.pop_front().map(|item| Reverse((item, at))));
        }
        heads.into_iter().for_each(|Reverse((item, at))| self.0[at].items.push_front(item));
        self.0.retain(|cursor| !cursor.ended || !cursor.items.is_empty());
        Ok((page, wave))
    }
}
