//! Runs read from their beginning to their end, and many of them merged in order.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    fmt,
    sync::Arc,
};

use hoplake_format::FormatError;
use hoplake_storage::Branch;

use crate::{
    EngineError, Snapshot,
    index::Run,
    scan::{Ahead, Scan},
};

/// Bytes that all runs of one kind read ahead together.
const AHEAD_BYTES: u64 = 32 << 20;

/// The items of a block, in order.
pub(super) type Decode<T> = Arc<dyn Fn(&[u8]) -> Result<Vec<T>, FormatError> + Send + Sync>;

/// A run of a version, and what its blocks have.
pub(super) struct Source<T> {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) run: Run,
    pub(super) decode: Decode<T>,
}

impl<T> Source<T> {
    pub(super) fn new(snapshot: &Arc<Snapshot>, run: &Run, decode: &Decode<T>) -> Self {
        Self { snapshot: snapshot.clone(), run: run.clone(), decode: decode.clone() }
    }
}

/// A run, as far as it was read.
pub(super) struct Cursor<T> {
    scan: Scan,
    decode: Decode<T>,
    ended: bool,
    items: VecDeque<T>,
}

impl<T> fmt::Debug for Cursor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cursor({:?})", self.scan.versions())
    }
}

impl<T> Cursor<T> {
    /// Reads on if nothing is left and there is more.
    async fn fill(&mut self, branch: &mut Branch) -> Result<(), EngineError> {
        while self.items.is_empty() && !self.ended {
            match self.scan.next(branch).await? {
                None => self.ended = true,
                Some(block) => self.items.extend((self.decode)(&block).map_err(|error| self.scan.damaged(error))?),
            }
        }
        Ok(())
    }
}

/// Several runs as one, in order.
#[derive(Debug)]
pub(super) struct Merged<T>(Vec<Cursor<T>>);

impl<T: Ord> Merged<T> {
    pub(super) fn new(sources: Vec<Source<T>>) -> Self {
        let ahead = Ahead::of(AHEAD_BYTES, sources.len());
        let cursor = |Source { snapshot, run, decode }: Source<T>| {
            let scan = Scan::new(&snapshot, &run, ahead);
            Cursor { scan, decode, ended: false, items: VecDeque::new() }
        };
        Self(sources.into_iter().map(cursor).collect())
    }

    /// Whether there are no runs.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// About `limit` items more, in order, equal ones once; those that belong `together` with the last come with it. None
    /// are left if there are none.
    pub(super) async fn page(
        &mut self,
        limit: usize,
        together: impl Fn(&T, &T) -> bool,
        branch: &mut Branch,
    ) -> Result<Vec<T>, EngineError> {
        // All are asked before the first is waited for.
        for cursor in &mut self.0 {
            cursor.scan.ask(branch).await?;
        }
        for cursor in &mut self.0 {
            cursor.fill(branch).await?;
        }
        let heads = self.0.iter_mut().enumerate();
        let mut heads: BinaryHeap<_> =
            heads.filter_map(|(at, cursor)| Some(Reverse((cursor.items.pop_front()?, at)))).collect();
        let mut page: Vec<T> = Vec::new();
        while let Some(Reverse((head, _))) = heads.peek() {
            // What several runs mention ends in the page in which it began, or the next page would have it again.
            if page.len() >= limit && !page.last().is_some_and(|last| last == head || together(last, head)) {
                break;
            }
            let Some(Reverse((item, at))) = heads.pop() else { break };
            if page.last() != Some(&item) {
                page.push(item);
            }
            let cursor = &mut self.0[at];
            cursor.fill(branch).await?;
            heads.extend(cursor.items.pop_front().map(|item| Reverse((item, at))));
        }
        heads.into_iter().for_each(|Reverse((item, at))| self.0[at].items.push_front(item));
        self.0.retain(|cursor| !cursor.ended || !cursor.items.is_empty());
        Ok(page)
    }
}
