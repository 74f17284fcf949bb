//! Gathers lists of sources of which several runs of an edge type may have entries, until all are here and can be merged
//! ([`merge_runs`]).
//!
//! Blocks arrive in any order, and a newer run may arrive last, so nothing is decided before the last block.

use std::{cmp::Reverse, collections::BTreeMap};

use hoplake_format::adjacency::Lists;
use hoplake_storage::{QueryContext, StorageError};

use super::{plan::ListTask, sink::Sink};
use crate::{
    memory::{HeldVec, bytes_of},
    read::{
        frontier::SinkError,
        hop::EdgesOf,
        merge::{ListEntry, merge_runs},
    },
};

/// A run by its newest version, and whether these are the pairs that it removed. The newest comes first.
type RunOf = (Reverse<u64>, bool);

/// Collects the lists of a [`Merge`](super::plan::Merge) until all are here.
#[derive(Debug)]
pub(super) struct Merger {
    runs: BTreeMap<RunOf, HeldVec<ListEntry>>,
    of: Option<EdgesOf>,
    context: QueryContext,
}

impl Merger {
    pub(super) fn new(context: &QueryContext) -> Self {
        Self { runs: BTreeMap::new(), of: None, context: context.clone() }
    }

    /// How many entries it has.
    pub(super) fn len(&self) -> usize {
        self.runs.values().map(|entries| entries.len()).sum()
    }

    /// Takes the lists of one task.
    pub(super) fn take(&mut self, task: &ListTask, lists: &Lists) -> Result<(), StorageError> {
        self.of = Some(task.of);
        let run = (Reverse(task.until), task.removed);
        if !self.runs.contains_key(&run) {
            self.runs.insert(run, HeldVec::new(&self.context)?);
        }
        let Some(entries) = self.runs.get_mut(&run) else { return Ok(()) };
        entries.reserve(lists.targets.len())?;
        entries.items().extend(ListEntry::all(lists));
        Ok(())
    }

    /// All lists are here: hands over what is left of each run's.
    pub(super) fn finish(self, sink: &mut impl Sink) -> Result<(), SinkError> {
        let Self { mut runs, of: Some(of), context } = self else { return Ok(()) };
        for entries in runs.values_mut() {
            // Blocks of a run came in any order; where they came in theirs, this is one look.
            entries.items().sort_unstable_by_key(|it| (it.source, it.target, it.position));
        }
        // What is left of them is built next to them: a target for each edge, and a source, a position and an end for each list.
        let _left = context.hold(bytes_of::<[u64; 4]>(runs.values().map(|entries| entries.len()).sum()))?;
        let lists: Vec<&[ListEntry]> = runs.values().map(|entries| &entries[..]).collect();
        let origins: Vec<RunOf> = runs.keys().copied().collect();
        let mut left: BTreeMap<u64, Lists> = BTreeMap::new();
        let mut before = None;
        merge_runs(&lists, ListEntry::by_pair, |run, entries| {
            let (Reverse(until), removed) = origins[run];
            if !removed {
                let lists = left.entry(until).or_default();
                // A list is cut where another run has an edge, so that lists can be put in order without a look inside.
                let goes_on = before.replace(until) == Some(until);
                for (at, edge) in entries.iter().enumerate() {
                    lists.push(edge.source, edge.position, edge.target, goes_on || at > 0);
                }
            }
        });
        left.into_iter().try_for_each(|(until, lists)| sink.take(of, until, &lists))
    }
}

#[cfg(test)]
mod tests {
    use hoplake_format::{Direction, EdgeTypeId, LabelId};
    use hoplake_storage::ReadLimits;

    use super::*;
    use crate::snapshot::sections::SectionLocation;

    const OF: EdgesOf =
        EdgesOf { edge_type: EdgeTypeId(0), direction: Direction::Out, near: LabelId(0), far: LabelId(0) };

    fn lists_of(edges: &[(u64, u64, u64)]) -> Lists {
        let mut lists = Lists::default();
        edges.iter().for_each(|(source, target, position)| {
            lists.push(*source, *position, *target, true);
        });
        lists
    }

    /// Lists with the position of their first edge.
    type Flat = Vec<(u64, u64, Vec<u64>)>;

    fn flat(lists: &Lists) -> Flat {
        lists.iter().map(|(source, first, targets)| (source, first, targets.to_vec())).collect()
    }

    #[test]
    fn lists_are_cut_where_edges_do_not_follow_each_other() {
        let lists = lists_of(&[(1, 5, 7), (1, 6, 8), (1, 9, 12), (2, 5, 13)]);
        assert_eq!(flat(&lists), [(1, 7, vec![5, 6]), (1, 12, vec![9]), (2, 13, vec![5])]);
    }

    /// Keeps what it is given, by run.
    #[derive(Default)]
    struct Kept(Vec<(u64, Flat)>);

    impl Sink for Kept {
        fn take(&mut self, _of: EdgesOf, run: u64, lists: &Lists) -> Result<(), SinkError> {
            self.0.push((run, flat(lists)));
            Ok(())
        }
    }

    #[test]
    fn runs_are_merged_in_whatever_order_their_blocks_come() {
        let task = |until, removed| {
            let location = SectionLocation { segment: 0, section: 0 };
            ListTask { of: OF, location, until, removed, block: 0..0, sources: 0..0 }
        };
        let blocks = [
            // The oldest run, whose later block comes first.
            (task(1, false), lists_of(&[(8, 3, 3)])),
            (task(1, false), lists_of(&[(7, 1, 0), (7, 2, 1), (7, 4, 2)])),
            // Version 2 adds an edge next to one, and removes another pair.
            (task(2, false), lists_of(&[(7, 2, 0), (7, 2, 1)])),
            (task(2, true), lists_of(&[(7, 4, 0)])),
            // Version 3 removes all between 8 and 3.
            (task(3, true), lists_of(&[(8, 3, 0)])),
        ];
        for turn in 0..blocks.len() {
            let mut merger = Merger::new(&QueryContext::new());
            let mut order: Vec<_> = blocks.iter().collect();
            order.rotate_left(turn);
            order.iter().for_each(|(task, lists)| merger.take(task, lists).unwrap());
            assert_eq!(merger.len(), 8);
            let mut kept = Kept::default();
            merger.finish(&mut kept).unwrap();
            assert_eq!(kept.0, [(1, vec![(7, 0, vec![1])]), (2, vec![(7, 0, vec![2, 2])])]);
        }
    }

    #[test]
    fn what_is_left_counts_against_the_budget() {
        let merge = |memory_bytes_max| {
            let context = QueryContext::new();
            let mut merger = Merger::new(&context);
            let edges: Vec<_> = (0..100).map(|target| (7, target, target)).collect();
            let location = SectionLocation { segment: 0, section: 0 };
            let task = ListTask { of: OF, location, until: 1, removed: false, block: 0..0, sources: 0..0 };
            merger.take(&task, &lists_of(&edges)).unwrap();
            let used = context.memory().used();
            context.limit(ReadLimits { memory_bytes_max: Some(used + memory_bytes_max), ..ReadLimits::default() });
            merger.finish(&mut Kept::default()).is_ok()
        };
        assert_eq!([merge(100), merge(100_000)], [false, true]);
    }
}
