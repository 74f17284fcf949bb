//! Collects edges, and brings them in order.

use std::mem::take;

use hoplake_format::{Direction, EdgeTypeId, VertexId};
use hoplake_storage::{Pace, QueryContext, StorageError};

use super::{EdgeSlice, EdgeStretch, Edges, List, Numbers, Stored, follows};
use crate::{
    Held,
    memory::HeldVec,
    pieces::{STEP, sort_by_key},
};

/// Collects edges, and counts their memory before it takes it.
#[derive(Debug)]
pub(crate) struct EdgesBuilder {
    lists: HeldVec<List>,
    targets: HeldVec<VertexId>,
    parallel: HeldVec<u32>,
    stored: Vec<Stored>,
    numbers: Numbers,
    context: QueryContext,
}

/// What edges are ordered by before the vertex reached.
pub(crate) type Begin = (VertexId, EdgeTypeId, Direction);

/// The last edge of those that were numbered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Last {
    of: Begin,
    to: VertexId,
    parallel: u32,
}

impl EdgesBuilder {
    pub(crate) fn new(context: &QueryContext) -> Result<Self, StorageError> {
        Ok(Self {
            lists: HeldVec::new(context)?,
            targets: HeldVec::new(context)?,
            parallel: HeldVec::new(context)?,
            stored: Vec::new(),
            numbers: Numbers::default(),
            context: context.clone(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.targets.len()
    }

    /// The vertices that the edges reach.
    pub(crate) fn targets(&self) -> &[VertexId] {
        &self.targets
    }

    /// Makes room for more edges.
    pub(crate) fn reserve(&mut self, edges: usize) -> Result<(), StorageError> {
        self.targets.reserve(edges)
    }

    /// The number by which lists name where they are stored.
    pub(crate) fn number(&mut self, stored: Stored) -> u32 {
        self.numbers.number(&mut self.stored, stored)
    }

    /// Adds edges that are stored one after the other; there is room for them. They become part of the last list if they may and if
    /// they follow its last edge: not where edges are collected in no order, since lists are what is sorted. Their numbers among
    /// parallel edges are not known yet.
    pub(crate) fn push(
        &mut self,
        from: VertexId,
        stored: u32,
        position: u64,
        targets: impl Iterator<Item = VertexId>,
        may_go_on: bool,
    ) -> Result<(), StorageError> {
        let begin = self.targets.len();
        self.targets.items().extend(targets);
        let end = self.targets.len();
        if may_go_on && follows(&self.lists, from, stored, position) {
            self.lists.items().last_mut().into_iter().for_each(|list| list.end = end);
        } else if end > begin {
            self.lists.push(List { from, position, end, stored })?;
        }
        Ok(())
    }

    /// Adds edges of others after these, with their numbers.
    pub(crate) async fn append(&mut self, others: EdgeSlice<'_>, pace: &mut Pace) -> Result<(), StorageError> {
        // The column begins with the first edges that have numbers; all edges before them get 0.
        if let Some(numbers) = others.edges.parallel.get(others.start..others.end) {
            self.number_up_to(self.len())?;
            self.parallel.reserve(numbers.len())?;
            self.parallel.items().extend_from_slice(numbers);
        }
        self.reserve(others.len())?;
        for EdgeStretch { from, stored, position, targets, .. } in others.into_pieces() {
            let stored = self.number(stored);
            // Steps let the query rest within a hub; `push` joins them to one list again.
            for (position, step) in (position..).step_by(STEP).zip(targets.chunks(STEP)) {
                self.push(from, stored, position, step.iter().copied(), true)?;
                pace.rest(step.len() as u64 + 8).await?;
            }
        }
        // Once the column exists, it has a number for every edge.
        if !self.parallel.is_empty() {
            self.number_up_to(self.len())?;
        }
        Ok(())
    }

    /// Has edges up to a position that have no number yet be the first of theirs.
    fn number_up_to(&mut self, end: usize) -> Result<(), StorageError> {
        let more = end.saturating_sub(self.parallel.len());
        self.parallel.reserve(more)?;
        self.parallel.items().extend(std::iter::repeat_n(0, more));
        Ok(())
    }

    /// Numbers parallel edges, which follow each other if all are in order. `last` is the edge before the first, if there is one,
    /// and then the last.
    pub(crate) async fn number_parallel(
        &mut self,
        last: &mut Option<Last>,
        pace: &mut Pace,
    ) -> Result<(), StorageError> {
        let mut begin = 0;
        for at in 0..self.lists.len() {
            let List { from, end, stored, .. } = self.lists[at];
            let Stored { edge_type, direction, .. } = self.stored[stored as usize];
            let of = (from, edge_type, direction);
            // All edges between two vertices lie in one run, in the same order from either end.
            let (mut to, mut number) = match last {
                Some(last) if last.of == of => (Some(last.to), last.parallel),
                _ => (None, 0),
            };
            for start in (begin..end).step_by(STEP) {
                let end = (start + STEP).min(end);
                for edge in start..end {
                    let target = self.targets[edge];
                    number = if to == Some(target) { number + 1 } else { 0 };
                    to = Some(target);
                    if number > 0 {
                        self.number_up_to(self.targets.len())?;
                        self.parallel.items()[edge] = number;
                    }
                }
                pace.rest((end - start) as u64).await?;
            }
            pace.rest(8).await?;
            *last = to.map(|to| Last { of, to, parallel: number });
            begin = end;
        }
        Ok(())
    }

    /// Brings the edges in order: by vertex left, type, direction, vertex reached and position. Lists that are not cut where
    /// another run has an edge between theirs cannot be ordered.
    pub(crate) async fn sort(&mut self) -> Result<(), StorageError> {
        // Lists are sorted, not edges: within a list edges are in order already, and a list is smaller to move than its edges. The first
        // target decides between lists of one vertex, which do not overlap.
        let mut places = HeldVec::new(&self.context)?;
        places.reserve(self.lists.len())?;
        let mut begin = 0;
        let mut pace = self.context.pace();
        for step in self.lists.chunks(STEP) {
            for list in step {
                places.push((begin, *list))?;
                begin = list.end;
            }
            pace.rest(step.len() as u64).await?;
        }
        let stored = &self.stored;
        let targets = &self.targets;
        let order = |(begin, list): &(usize, List)| {
            let Stored { edge_type, direction, .. } = stored[list.stored as usize];
            (list.from, edge_type, direction, targets[*begin], list.position)
        };
        // In order already if nothing moved.
        sort_by_key(places.items(), order, &self.context).await?;
        if places.is_sorted_by_key(|(begin, _)| *begin) {
            return Ok(());
        }
        let mut sorted = Self::new(&self.context)?;
        sorted.reserve(self.len())?;
        for (begin, list) in places.iter() {
            let targets = &self.targets[*begin..list.end];
            for (position, step) in (list.position..).step_by(STEP).zip(targets.chunks(STEP)) {
                sorted.push(list.from, list.stored, position, step.iter().copied(), true)?;
                pace.rest(step.len() as u64 + 8).await?;
            }
        }
        sorted.stored = take(&mut self.stored);
        sorted.numbers = take(&mut self.numbers);
        *self = sorted;
        Ok(())
    }

    /// How many edges begin at most there; edges are in order.
    pub(crate) fn len_up_to(&self, begin: Begin) -> usize {
        let up_to = self.lists.partition_point(|list| {
            let Stored { edge_type, direction, .. } = self.stored[list.stored as usize];
            (list.from, edge_type, direction) <= begin
        });
        up_to.checked_sub(1).map_or(0, |last| self.lists[last].end)
    }

    pub(crate) fn finish(self) -> Held<Edges> {
        let Self { lists, targets, parallel, stored, .. } = self;
        let mut targets = targets.finish();
        let lists = targets.absorb(lists.finish());
        let parallel = targets.absorb(parallel.finish());
        targets.map(|targets| Edges { lists, stored, targets, parallel })
    }
}
