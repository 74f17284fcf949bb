//! Entries: what entries of some runs are of, in order and without repeats, a page at a time.

use std::{collections::VecDeque, fmt};

use hoplake_storage::Branch;

use crate::{
    EngineError,
    read::scan::{MergedScan, Source},
};

/// Bytes that all runs of one kind read ahead together.
const AHEAD_BYTES: u64 = 32 << 20;

/// What several runs have entries of. Which of them is newer does not matter: what an item is in a version is looked up there.
pub(super) struct Entries<T> {
    scan: MergedScan<T>,
    /// Merged, and not part of a page yet.
    ready: VecDeque<T>,
}

impl<T> fmt::Debug for Entries<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entries({} ready)", self.ready.len())
    }
}

impl<T: Ord + Clone> Entries<T> {
    pub(super) fn new(sources: Vec<Source<T>>) -> Self {
        Self { scan: MergedScan::new(sources, AHEAD_BYTES, T::cmp), ready: VecDeque::new() }
    }

    /// Whether none are left.
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.scan.is_ended()
    }

    /// About `limit` candidates more, in order, equal ones once; those that belong `together` with the last come with it. A
    /// page that has none is the last.
    pub(super) async fn page(
        &mut self,
        limit: usize,
        together: impl Fn(&T, &T) -> bool,
        branch: &mut Branch,
    ) -> Result<Vec<T>, EngineError> {
        let mut page = Vec::new();
        while !cut(&mut self.ready, limit, &together, &mut page) {
            let batch = self.scan.next(branch).await?;
            if batch.is_empty() {
                break;
            }
            // Of a pair of vertices a run has an entry for each edge: `cut` leaves repeats out.
            self.ready.extend(batch.into_iter().map(|(_, item)| item));
        }
        Ok(page)
    }
}

/// Moves items to a page, equal ones once, and says whether the page is full: it has `limit`, and the next does not belong
/// together with the last.
fn cut<T: PartialEq>(
    ready: &mut VecDeque<T>,
    limit: usize,
    together: impl Fn(&T, &T) -> bool,
    page: &mut Vec<T>,
) -> bool {
    while let Some(next) = ready.front() {
        let last = page.last();
        let is_repeat = last == Some(next);
        if page.len() >= limit && !is_repeat && !last.is_some_and(|last| together(last, next)) {
            return true;
        }
        let next = ready.pop_front();
        page.extend(next.filter(|_| !is_repeat));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_nothing_belongs_together() {
        let mut ready: VecDeque<(u64, u64)> = [(1, 1), (1, 2), (1, 2), (1, 3), (2, 0), (2, 0), (3, 0)].into();
        let same_source = |a: &(u64, u64), b: &(u64, u64)| a.0 == b.0;
        let mut page = Vec::new();
        assert!(cut(&mut ready, 2, same_source, &mut page));
        assert_eq!(page, [(1, 1), (1, 2), (1, 3)], "all pairs of the source, each once");
        let mut page = Vec::new();
        assert!(cut(&mut ready, 1, |_, _| false, &mut page));
        assert_eq!(page, [(2, 0)], "a repeat is no candidate of the next page");
        let mut page = Vec::new();
        assert!(!cut(&mut ready, 1, |_, _| false, &mut page), "the next may belong to it");
        assert_eq!((page, ready.len()), (vec![(3, 0)], 0));
    }
}
