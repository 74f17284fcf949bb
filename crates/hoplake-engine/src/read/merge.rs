//! Merges sorted runs: of each item, the entries of the newest run that has any.
//!
//! Hops, compactions and differences all read runs that overlap, and all of them decide between runs here. What they merge are
//! slices in memory, and how the slices get there is theirs: a hop gathers blocks as they arrive, the others read sections
//! from one end to the other ([`crate::read::scan`]).
//!
//! The merge is a heap of the lists' heads, so n entries of k lists take n log k comparisons at most. Usually it is far less:
//! most runs are small next to the oldest, so entries are taken in *stretches*, all at once that one list has before the
//! head of any other. The end of a stretch is found in growing steps, as [`position_of`](crate::pieces::position_of) does.

use std::{cmp::Ordering, collections::BinaryHeap};

use hoplake_format::adjacency::Lists;

use crate::pieces::end_of;

/// An edge, or a pair of vertices without one, as a run has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListEntry {
    pub(crate) source: u64,
    pub(crate) target: u64,
    /// Of the edge, within the run.
    pub(crate) position: u64,
}

impl ListEntry {
    /// All entries of some lists.
    pub(crate) fn all(lists: &Lists) -> impl Iterator<Item = Self> + '_ {
        lists.iter().flat_map(|(source, first, targets)| {
            let entry = move |(position, target): (u64, &u64)| Self { source, target: *target, position };
            (first..).zip(targets).map(entry)
        })
    }

    /// By source and target: the edges between two vertices are one item, since an entry says all that is known of them.
    pub(crate) fn by_pair(&self, other: &Self) -> Ordering {
        (self.source, self.target).cmp(&(other.source, other.target))
    }
}

/// Merges lists that ascend by `order`, the newest first. Entries that `order` calls equal belong to one item, and a list may
/// have several; of each item, those of the first list that has any are taken, and those of later lists are passed over.
///
/// `take` gets entries in ascending order, in stretches of at least one, with the number of their list.
pub(crate) fn merge_runs<'a, T>(
    lists: &[&'a [T]],
    order: impl Fn(&T, &T) -> Ordering,
    mut take: impl FnMut(usize, &'a [T]),
) {
    let heads = lists.iter().enumerate().filter(|(_, rest)| !rest.is_empty());
    let mut heads: BinaryHeap<_> = heads.map(|(list, rest)| Head { rest, list, order: &order }).collect();
    while let Some(mut first) = heads.pop() {
        let Some(next) = heads.peek() else { return take(first.list, first.rest) };
        let until = &next.rest[0];
        let stretch = match first.cut(|entry| order(entry, until).is_lt()) {
            // Another list begins with the same item, and none of those is newer: the heap has given the newest.
            [] => first.cut(|entry| order(entry, until).is_eq()),
            stretch => stretch,
        };
        take(first.list, stretch);
        let taken = &stretch[stretch.len() - 1];
        // Other lists begin with the item only if the stretch is that one item. They are older, so their entries are replaced.
        while heads.peek().is_some_and(|older| order(&older.rest[0], taken).is_eq()) {
            let Some(mut older) = heads.pop() else { break };
            older.cut(|entry| order(entry, taken).is_eq());
            older.back_to(&mut heads);
        }
        first.back_to(&mut heads);
    }
}

/// What is left of a list, which is not empty while it is in the heap.
struct Head<'a, 'o, T, F> {
    rest: &'a [T],
    list: usize,
    order: &'o F,
}

impl<'a, T, F: Fn(&T, &T) -> Ordering> Head<'a, '_, T, F> {
    /// Takes off the entries that it begins with and that are so.
    fn cut(&mut self, is_so: impl Fn(&T) -> bool) -> &'a [T] {
        let (stretch, rest) = self.rest.split_at(end_of(self.rest, 0, is_so));
        self.rest = rest;
        stretch
    }

    fn back_to(self, heads: &mut BinaryHeap<Self>) {
        if !self.rest.is_empty() {
            heads.push(self);
        }
    }
}

/// A heap gives its greatest first: that is the least item, and of several lists that begin with it, the newest.
impl<T, F: Fn(&T, &T) -> Ordering> Ord for Head<'_, '_, T, F> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.order)(&other.rest[0], &self.rest[0]).then(other.list.cmp(&self.list))
    }
}

impl<T, F: Fn(&T, &T) -> Ordering> PartialOrd for Head<'_, '_, T, F> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T, F: Fn(&T, &T) -> Ordering> PartialEq for Head<'_, '_, T, F> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T, F: Fn(&T, &T) -> Ordering> Eq for Head<'_, '_, T, F> {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Entries of an item each: the item, and which of its entries.
    type Entries = Vec<(u64, usize)>;

    fn merged(lists: &[Entries]) -> Vec<(usize, (u64, usize))> {
        let slices: Vec<_> = lists.iter().map(Vec::as_slice).collect();
        let mut merged = Vec::new();
        merge_runs(&slices, |a, b| a.0.cmp(&b.0), |list, entries| merged.extend(entries.iter().map(|it| (list, *it))));
        merged
    }

    #[test]
    fn the_newest_list_that_has_an_item_decides_it() {
        let newest = vec![(3, 0), (5, 0)];
        let middle = vec![(1, 0), (3, 0), (3, 1)];
        let oldest = vec![(0, 0), (1, 0), (1, 1), (3, 0), (4, 0), (4, 1), (5, 0), (5, 1), (9, 0)];
        let found = merged(&[newest, middle, oldest]);
        let expected = [(2, (0, 0)), (1, (1, 0)), (0, (3, 0)), (2, (4, 0)), (2, (4, 1)), (0, (5, 0)), (2, (9, 0))];
        assert_eq!(found, expected);
    }

    #[test]
    fn lists_may_be_empty_or_missing() {
        assert_eq!(merged(&[]), []);
        assert_eq!(merged(&[vec![], vec![]]), []);
        assert_eq!(merged(&[vec![], vec![(7, 0)], vec![]]), [(1, (7, 0))]);
    }

    #[test]
    fn what_one_list_has_before_all_others_is_one_stretch() {
        let oldest: Vec<u64> = (0..1000).collect();
        let mut stretches = Vec::new();
        merge_runs(&[&[500], &oldest], u64::cmp, |list, entries| stretches.push((list, entries.len())));
        assert_eq!(stretches, [(1, 500), (0, 1), (1, 499)]);
    }

    #[test]
    fn entries_know_their_positions() {
        let lists =
            Lists { sources: vec![1, 4], first_edges: vec![10, 20], offsets: vec![0, 2, 3], targets: vec![5, 5, 6] };
        let entry = |source, target, position| ListEntry { source, target, position };
        let entries: Vec<_> = ListEntry::all(&lists).collect();
        assert_eq!(entries, [entry(1, 5, 10), entry(1, 5, 11), entry(4, 6, 20)]);
        assert_eq!(entries[0].by_pair(&entries[1]), Ordering::Equal);
        assert_eq!(entries[1].by_pair(&entries[2]), Ordering::Less);
    }

    proptest! {
        /// As a map of maps has it: each list overwrites what older ones say of its items.
        #[test]
        fn merging_is_overwriting_from_the_oldest_on(
            lists in prop::collection::vec(prop::collection::vec((0u64..40, 1usize..4), 0..60), 0..6)
        ) {
            let lists: Vec<BTreeMap<u64, usize>> = lists.into_iter().map(|list| list.into_iter().collect()).collect();
            let mut expected: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
            for (number, list) in lists.iter().enumerate().rev() {
                expected.extend(list.iter().map(|(item, count)| (*item, (number, *count))));
            }
            let expected: Vec<_> = expected
                .into_iter()
                .flat_map(|(item, (list, count))| (0..count).map(move |entry| (list, (item, entry))))
                .collect();
            let entries = |list: &BTreeMap<u64, usize>| -> Entries {
                list.iter().flat_map(|(item, count)| (0..*count).map(move |entry| (*item, entry))).collect()
            };
            prop_assert_eq!(merged(&lists.iter().map(entries).collect::<Vec<_>>()), expected);
        }
    }
}
