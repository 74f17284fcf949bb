//! Lists of one source from several runs become one: the newest run that mentions a pair of vertices decides it.

use std::{cmp::Reverse, collections::BTreeMap};

use hoplake_format::adjacency::Lists;
use hoplake_storage::{QueryContext, StorageError};

use super::{pipeline::Sink, plan::ListTask};
use crate::{frontier::SinkError, hop::EdgesOf, memory::HeldVec};

/// An edge, or that there is none, as one run says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListEntry {
    pub(crate) source: u64,
    pub(crate) target: u64,
    /// The newest version of the run.
    pub(crate) until: u64,
    pub(crate) removed: bool,
    /// Of the edge, within the run.
    pub(crate) position: u64,
}

/// What is left of the entries of some runs, in the order of source, target and position: of each pair, what the newest
/// run says.
pub(crate) fn decided(entries: &mut [ListEntry]) -> impl Iterator<Item = &ListEntry> {
    entries.sort_unstable_by_key(|it| (it.source, it.target, Reverse(it.until), it.position));
    let pairs = entries.chunk_by(|a, b| (a.source, a.target) == (b.source, b.target));
    pairs.flat_map(|pair| pair.iter().take_while(|it| it.until == pair[0].until))
}

/// Collects the lists of a [`Merge`](super::plan::Merge) until all are here.
#[derive(Debug)]
pub(super) struct Merger {
    entries: HeldVec<ListEntry>,
    of: Option<EdgesOf>,
}

impl Merger {
    pub(super) fn new(context: &QueryContext) -> Result<Self, StorageError> {
        Ok(Self { entries: HeldVec::new(context)?, of: None })
    }

    /// How many mentions it has.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Takes the lists of one task.
    pub(super) fn take(&mut self, task: &ListTask, lists: &Lists) -> Result<(), StorageError> {
        self.of = Some(task.of);
        self.entries.reserve(lists.targets.len())?;
        for (source, first_edge, targets) in lists.iter() {
            let entry = |(position, target): (u64, &u64)| ListEntry {
                source,
                target: *target,
                until: task.until,
                removed: task.removed,
                position,
            };
            self.entries.items().extend((first_edge..).zip(targets).map(entry));
        }
        Ok(())
    }

    /// All lists are here: hands over what is left of each run's.
    pub(super) fn finish(self, sink: &mut impl Sink) -> Result<(), SinkError> {
        let Self { mut entries, of: Some(of) } = self else { return Ok(()) };
        let mut left: BTreeMap<u64, Lists> = BTreeMap::new();
        for edge in decided(entries.items()).filter(|it| !it.removed) {
            push(left.entry(edge.until).or_default(), edge);
        }
        left.into_iter().try_for_each(|(until, lists)| sink.take(of, until, &lists))
    }
}

/// Adds an edge. Lists whose edges do not follow each other in their run are several with the same source.
fn push(lists: &mut Lists, edge: &ListEntry) {
    let goes_on = lists.sources.last().zip(lists.first_edges.last()).is_some_and(|(source, first)| {
        let length = lists.offsets[lists.len()] - lists.offsets[lists.len() - 1];
        (*source, first + length as u64) == (edge.source, edge.position)
    });
    if goes_on {
        lists.offsets.pop();
    } else {
        lists.sources.push(edge.source);
        lists.first_edges.push(edge.position);
    }
    lists.targets.push(edge.target);
    lists.offsets.push(lists.targets.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_where_edges_do_not_follow_each_other() {
        let mut lists = Lists::default();
        for (source, target, position) in [(1, 5, 7), (1, 6, 8), (1, 9, 12), (2, 5, 13)] {
            push(&mut lists, &ListEntry { source, target, until: 3, removed: false, position });
        }
        let found: Vec<_> = lists.iter().map(|(source, first, targets)| (source, first, targets.to_vec())).collect();
        assert_eq!(found, [(1, 7, vec![5, 6]), (1, 12, vec![9]), (2, 13, vec![5])]);
    }
}
