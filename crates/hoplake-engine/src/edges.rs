//! Edges as columns, in the lists in which they are stored.
//!
//! A list is what one run has of a vertex, an edge type and a direction: its edges have positions that follow each other, and
//! differ only in the vertex reached. So an edge takes the 8 bytes of that vertex, and a list 32 for the rest. Numbers of parallel
//! edges are a column of their own, which most graphs do not need.

use std::{fmt, ops::Range};

use hoplake_format::{Direction, EdgeId, EdgeTypeId, VertexId};
use hoplake_storage::{Pace, QueryContext, StorageError};

use crate::{
    Held,
    memory::HeldVec,
    pieces::{STEP, sort_by_key},
};

/// An edge, seen from the vertex that a hop left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    /// The vertex that was left.
    pub from: VertexId,
    /// The vertex that was reached.
    pub to: VertexId,
    /// The edge's type.
    pub edge_type: EdgeTypeId,
    /// The direction in which it was followed.
    pub direction: Direction,
    /// Which run holds it: the newest version whose changes the run has.
    pub run: u64,
    /// Its position in the run's adjacency of that direction.
    pub position: u64,
    /// Which of the edges of its type from its source to its target, from 0.
    pub parallel: u32,
}

impl Neighbour {
    /// The edge, from whichever end it was followed.
    pub fn id(&self) -> EdgeId {
        let (source, target) = match self.direction {
            Direction::Out => (self.from, self.to),
            Direction::In => (self.to, self.from),
        };
        EdgeId { edge_type: self.edge_type, source, target, parallel: self.parallel }
    }
}

/// Whose adjacency an edge is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) edge_type: EdgeTypeId,
    pub(crate) direction: Direction,
    pub(crate) run: u64,
}

/// Where edges are from that differ only in the vertex reached; a list begins where the one before ends.
#[derive(Debug, Clone, Copy)]
struct List {
    from: VertexId,
    position: u64,
    end: usize,
    /// Which of [`Edges::stored`].
    // An index of 4 bytes instead of 16 bytes of `Stored` keeps a list at 32 bytes.
    stored: u32,
}

/// Edges of a hop, in an order.
///
/// [`Self::iter`] has them one by one, [`Self::lists`] by the vertex that was left.
#[derive(Clone, Default)]
pub struct Edges {
    lists: Vec<List>,
    stored: Vec<Stored>,
    targets: Vec<VertexId>,
    /// Empty if all are 0.
    parallel: Vec<u32>,
}

/// Edges of one type that leave one vertex in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeList<'a> {
    /// The vertex that was left.
    pub from: VertexId,
    /// The type of the edges.
    pub edge_type: EdgeTypeId,
    /// The direction in which they were followed.
    pub direction: Direction,
    /// The vertices that were reached.
    pub targets: &'a [VertexId],
    /// The number of each among edges between the same vertices; empty if all are 0.
    pub parallel: &'a [u32],
}

/// Edges that are stored one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Piece<'a> {
    pub(crate) from: VertexId,
    pub(crate) stored: Stored,
    /// The position of the first.
    pub(crate) position: u64,
    pub(crate) targets: &'a [VertexId],
    /// Where they are among the edges.
    pub(crate) range: Range<usize>,
}

impl Edges {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// All of them.
    pub fn all(&self) -> EdgeSlice<'_> {
        EdgeSlice { edges: self, start: 0, end: self.len() }
    }

    /// Those in a range of positions.
    ///
    /// # Panics
    /// If the range ends after the last.
    pub fn slice(&self, range: Range<usize>) -> EdgeSlice<'_> {
        assert!(range.start <= range.end && range.end <= self.len(), "{range:?} of {} edges", self.len());
        EdgeSlice { edges: self, start: range.start, end: range.end }
    }

    /// The edge at a position.
    pub fn get(&self, at: usize) -> Option<Neighbour> {
        (at < self.len()).then(|| self.slice(at..at + 1).into_iter().next())?
    }

    /// The edges one by one.
    pub fn iter(&self) -> EdgeIter<'_> {
        self.all().into_iter()
    }

    /// The edges by the vertex left, their type and direction.
    pub fn lists(&self) -> impl Iterator<Item = EdgeList<'_>> {
        self.all().into_lists()
    }

    /// The vertices that they reach, one for each edge.
    pub fn targets(&self) -> &[VertexId] {
        &self.targets
    }

    /// Keeps the first.
    pub fn truncate(&mut self, count: usize) {
        self.targets.truncate(count);
        self.parallel.truncate(count);
        // The first list that reaches `count` is cut; those after it go.
        let lists = self.lists.partition_point(|list| list.end < count);
        self.lists.truncate(lists + 1);
        if let Some(last) = self.lists.last_mut() {
            last.end = last.end.min(self.targets.len());
        }
        if count == 0 {
            self.lists.clear();
        }
    }

    /// Those that are stored one after the other, together.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece<'_>> + Clone {
        self.all().into_pieces()
    }

    fn parallel_of(&self, at: usize) -> u32 {
        self.parallel.get(at).copied().unwrap_or(0)
    }
}

/// In this order.
impl FromIterator<Neighbour> for Edges {
    fn from_iter<I: IntoIterator<Item = Neighbour>>(edges: I) -> Self {
        let mut all = Self::default();
        let mut numbers = Vec::new();
        for Neighbour { from, to, edge_type, direction, run, position, parallel } in edges {
            let stored = number_of(&mut all.stored, Stored { edge_type, direction, run });
            all.targets.push(to);
            numbers.push(parallel);
            match follows(&all.lists, from, stored, position) {
                true => all.lists.last_mut().into_iter().for_each(|list| list.end += 1),
                false => all.lists.push(List { from, position, end: all.targets.len(), stored }),
            }
        }
        if numbers.iter().any(|number| *number > 0) {
            all.parallel = numbers;
        }
        all
    }
}

/// The same edges in the same order.
impl PartialEq for Edges {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Edges {}

/// Shows the edges one by one.
impl fmt::Debug for Edges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// Which of `all` it is. There are as many as a hop has edge types, directions and runs, and most lists have that of the list before.
fn number_of(all: &mut Vec<Stored>, stored: Stored) -> u32 {
    let known = all.iter().rposition(|known| *known == stored).unwrap_or_else(|| {
        all.push(stored);
        all.len() - 1
    });
    known as u32
}

/// Whether an edge follows the last one of these lists where it is stored.
fn follows(lists: &[List], from: VertexId, stored: u32, position: u64) -> bool {
    let begin = lists.len().checked_sub(2).map_or(0, |before| lists[before].end);
    lists.last().is_some_and(|last| {
        (last.from, last.stored, last.position + (last.end - begin) as u64) == (from, stored, position)
    })
}

impl<'a> IntoIterator for &'a Edges {
    type Item = Neighbour;
    type IntoIter = EdgeIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Some of the edges of [`Edges`], which follow each other.
#[derive(Debug, Clone, Copy)]
pub struct EdgeSlice<'a> {
    edges: &'a Edges,
    start: usize,
    end: usize,
}

impl<'a> EdgeSlice<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The vertices that they reach, one for each edge.
    pub fn targets(&self) -> &'a [VertexId] {
        &self.edges.targets[self.start..self.end]
    }

    /// Parts of at most `most` edges.
    pub fn chunks(self, most: usize) -> impl Iterator<Item = Self> + 'a {
        let Self { edges, start, end } = self;
        (start..end).step_by(most.max(1)).map(move |from| Self { edges, start: from, end: end.min(from + most.max(1)) })
    }

    /// The edges by the vertex left, their type and direction.
    pub fn into_lists(self) -> impl Iterator<Item = EdgeList<'a>> {
        let edges = self.edges;
        let mut pieces = self.into_pieces().peekable();
        std::iter::from_fn(move || {
            let Piece { from, stored, range, .. } = pieces.next()?;
            let of = |piece: &Piece<'_>| (piece.from, piece.stored.edge_type, piece.stored.direction);
            // Several pieces may have one vertex, type and direction: a list is cut where another run has edges between its own, and
            // where a condition has removed some.
            let same = |piece: &Piece<'_>| of(piece) == (from, stored.edge_type, stored.direction);
            let mut end = range.end;
            while let Some(next) = pieces.next_if(same) {
                end = next.range.end;
            }
            let range = range.start..end;
            // One parallel edge gives the entire hop a column of numbers; a list of zeros is reported as none.
            let parallel = edges.parallel.get(range.clone()).filter(|numbers| numbers.iter().any(|number| *number > 0));
            Some(EdgeList {
                from,
                edge_type: stored.edge_type,
                direction: stored.direction,
                targets: &edges.targets[range],
                parallel: parallel.unwrap_or_default(),
            })
        })
    }

    /// Those that are stored one after the other, together.
    pub(crate) fn into_pieces(self) -> impl Iterator<Item = Piece<'a>> + Clone {
        let Self { edges, start: from, end } = self;
        let first = edges.lists.partition_point(|list| list.end <= from);
        let mut start = first.checked_sub(1).map_or(0, |before| edges.lists[before].end);
        let lists = edges.lists[first..].iter().map(move |list| {
            let begin = std::mem::replace(&mut start, list.end);
            (begin, *list)
        });
        // `from < end` ends an empty slice, which may lie within a list.
        let lists = lists.take_while(move |(begin, _)| *begin < end && from < end);
        lists.map(move |(begin, list)| {
            let range = begin.max(from)..list.end.min(end);
            Piece {
                from: list.from,
                stored: edges.stored[list.stored as usize],
                position: list.position + (range.start - begin) as u64,
                targets: &edges.targets[range.clone()],
                range,
            }
        })
    }
}

/// The edges one by one.
impl<'a> IntoIterator for EdgeSlice<'a> {
    type Item = Neighbour;
    type IntoIter = EdgeIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        let Self { edges, start, end } = self;
        let list = edges.lists.partition_point(|list| list.end <= start);
        let begin = list.checked_sub(1).map_or(0, |before| edges.lists[before].end);
        EdgeIter { edges, range: start..end, list, begin }
    }
}

/// Edges one by one.
#[derive(Debug, Clone)]
pub struct EdgeIter<'a> {
    edges: &'a Edges,
    range: Range<usize>,
    /// The list of the next edge, and where it begins.
    list: usize,
    begin: usize,
}

impl Iterator for EdgeIter<'_> {
    type Item = Neighbour;

    fn next(&mut self) -> Option<Neighbour> {
        let at = self.range.next()?;
        let edges = self.edges;
        // No list is empty, so the next edge is in this list or in the next one.
        if at >= edges.lists[self.list].end {
            self.begin = edges.lists[self.list].end;
            self.list += 1;
        }
        let List { from, position, stored, .. } = edges.lists[self.list];
        let Stored { edge_type, direction, run } = edges.stored[stored as usize];
        let position = position + (at - self.begin) as u64;
        let (to, parallel) = (edges.targets[at], edges.parallel_of(at));
        Some(Neighbour { from, to, edge_type, direction, run, position, parallel })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl ExactSizeIterator for EdgeIter<'_> {}

/// Collects edges, and counts their memory before it takes it.
#[derive(Debug)]
pub(crate) struct EdgesBuilder {
    lists: HeldVec<List>,
    targets: HeldVec<VertexId>,
    parallel: HeldVec<u32>,
    stored: Vec<Stored>,
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

    /// Adds edges that are stored one after the other, in no order with those before; there is room for them. Their numbers among
    /// parallel ones are not known yet.
    pub(crate) fn collect(
        &mut self,
        from: VertexId,
        stored: Stored,
        position: u64,
        targets: impl Iterator<Item = VertexId>,
    ) -> Result<(), StorageError> {
        let begin = self.targets.len();
        self.targets.items().extend(targets);
        let end = self.targets.len();
        if end > begin {
            let stored = number_of(&mut self.stored, stored);
            self.lists.push(List { from, position, end, stored })?;
        }
        Ok(())
    }

    /// Adds edges that are stored one after the other and come after those before in order. What goes on with the last list
    /// becomes part of it.
    fn push(
        &mut self,
        from: VertexId,
        stored: Stored,
        position: u64,
        targets: impl Iterator<Item = VertexId>,
    ) -> Result<(), StorageError> {
        let number = number_of(&mut self.stored, stored);
        if !follows(&self.lists, from, number, position) {
            return self.collect(from, stored, position, targets);
        }
        self.targets.items().extend(targets);
        let end = self.targets.len();
        self.lists.items().last_mut().into_iter().for_each(|list| list.end = end);
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
        for Piece { from, stored, position, targets, .. } in others.into_pieces() {
            // Steps let the query rest within a hub; `push` joins them to one list again.
            for (position, step) in (position..).step_by(STEP).zip(targets.chunks(STEP)) {
                self.push(from, stored, position, step.iter().copied())?;
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
        let (mut begin, mut pace) = (0, self.context.pace());
        for step in self.lists.chunks(STEP) {
            for list in step {
                places.push((begin, *list))?;
                begin = list.end;
            }
            pace.rest(step.len() as u64).await?;
        }
        let (stored, targets) = (&self.stored, &self.targets);
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
            let (stored, targets) = (self.stored[list.stored as usize], &self.targets[*begin..list.end]);
            for (position, step) in (list.position..).step_by(STEP).zip(targets.chunks(STEP)) {
                sorted.push(list.from, stored, position, step.iter().copied())?;
                pace.rest(step.len() as u64 + 8).await?;
            }
        }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use futures::executor::block_on;
    use hoplake_format::LabelId;
    use proptest::prelude::*;

    use super::*;

    fn vertex(ordinal: u64) -> VertexId {
        VertexId::new(LabelId(0), ordinal).unwrap()
    }

    /// Edges as two runs of a type have them: in the order of edges, with their numbers. Pairs lie in one run each.
    fn ordered(pairs: &[(u64, bool, u64)]) -> Vec<Neighbour> {
        let mut pairs = pairs.to_vec();
        pairs.sort_unstable();
        let mut positions: BTreeMap<(bool, u64), u64> = BTreeMap::new();
        let mut edges: Vec<Neighbour> = Vec::new();
        for (from, against, to) in pairs {
            let run = (from + to) % 2;
            // Positions of a run have gaps where edges were left out.
            let next = positions.entry((against, run)).or_default();
            let position = *next + u64::from(to == 3);
            *next = position + 1;
            let direction = if against { Direction::In } else { Direction::Out };
            let (from, to, edge_type) = (vertex(from), vertex(to), EdgeTypeId(0));
            let mut edge = Neighbour { from, to, edge_type, direction, run, position, parallel: 0 };
            let same = |last: &&Neighbour| (last.from, last.direction, last.to) == (from, direction, to);
            edge.parallel = edges.last().filter(same).map_or(0, |last| last.parallel + 1);
            edges.push(edge);
        }
        edges
    }

    fn pairs() -> impl Strategy<Value = Vec<(u64, bool, u64)>> {
        prop::collection::vec((0u64..4, any::<bool>(), 0u64..6), 0..60)
    }

    proptest! {
        #[test]
        fn lists_in_any_order_become_the_edges_in_theirs(pairs in pairs(), seed in any::<u64>()) {
            let expected = ordered(&pairs);
            let columns: Edges = expected.iter().copied().collect();
            let mut pieces: Vec<Piece<'_>> = columns.pieces().collect();
            pieces.sort_by_key(|piece| (piece.range.start as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
            let context = QueryContext::new();
            let mut builder = EdgesBuilder::new(&context).unwrap();
            builder.reserve(expected.len()).unwrap();
            for Piece { from, stored, position, targets, .. } in pieces {
                builder.collect(from, stored, position, targets.iter().copied()).unwrap();
            }
            block_on(async {
                builder.sort().await.unwrap();
                builder.number_parallel(&mut None, &mut context.pace()).await.unwrap();
            });
            let built = builder.finish();
            prop_assert_eq!(built.iter().collect::<Vec<_>>(), expected);
            drop(built);
            prop_assert_eq!(context.memory().used(), 0);
        }

        #[test]
        fn slices_are_those_of_a_vector(pairs in pairs(), start in 0usize..60, length in 0usize..60, most in 1usize..9) {
            let rows = ordered(&pairs);
            let edges: Edges = rows.iter().copied().collect();
            let start = start.min(rows.len());
            let end = (start + length).min(rows.len());
            let slice = edges.slice(start..end);
            prop_assert_eq!(slice.into_iter().collect::<Vec<_>>(), &rows[start..end]);
            prop_assert_eq!(edges.get(start), rows.get(start).copied());
            let chunks: Vec<Vec<_>> = slice.chunks(most).map(|chunk| chunk.into_iter().collect()).collect();
            prop_assert_eq!(chunks, rows[start..end].chunks(most).map(<[_]>::to_vec).collect::<Vec<_>>());
            let of = |edge: &Neighbour| (edge.from, edge.edge_type, edge.direction);
            let lists: Vec<_> = rows[start..end].chunk_by(|a, b| of(a) == of(b)).collect();
            prop_assert_eq!(slice.into_lists().count(), lists.len());
            for (list, rows) in slice.into_lists().zip(lists) {
                prop_assert_eq!((list.from, list.edge_type, list.direction), of(&rows[0]));
                prop_assert_eq!(list.targets, rows.iter().map(|edge| edge.to).collect::<Vec<_>>());
                let numbers: Vec<_> = rows.iter().map(|edge| edge.parallel).collect();
                let expected = if numbers.iter().all(|number| *number == 0) { &[] } else { &numbers[..] };
                prop_assert_eq!(list.parallel, expected);
            }
            let mut first = edges.clone();
            first.truncate(start);
            prop_assert_eq!(first.iter().collect::<Vec<_>>(), &rows[..start]);
        }

        #[test]
        fn parts_that_are_appended_are_the_edges(pairs in pairs(), cuts in prop::collection::vec(0usize..60, 0..4)) {
            let rows = ordered(&pairs);
            let edges: Edges = rows.iter().copied().collect();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(rows.len())).chain([0, rows.len()]).collect();
            cuts.sort_unstable();
            let context = QueryContext::new();
            let mut numbered = EdgesBuilder::new(&context).unwrap();
            let mut kept = EdgesBuilder::new(&context).unwrap();
            let mut last = None;
            for cut in cuts.windows(2) {
                let part = edges.slice(cut[0]..cut[1]);
                let mut again = EdgesBuilder::new(&context).unwrap();
                again.reserve(part.len()).unwrap();
                for Piece { from, stored, position, targets, .. } in part.into_pieces() {
                    again.collect(from, stored, position, targets.iter().copied()).unwrap();
                }
                block_on(async {
                    // Numbers go on from part to part.
                    again.number_parallel(&mut last, &mut context.pace()).await.unwrap();
                    numbered.append(again.finish().all(), &mut context.pace()).await.unwrap();
                    kept.append(part, &mut context.pace()).await.unwrap();
                });
            }
            for built in [numbered.finish(), kept.finish()] {
                prop_assert_eq!(&*built, &edges);
            }
        }
    }

    #[test]
    fn edges_of_a_hub_take_the_vertex_reached() {
        let stored = Stored { edge_type: EdgeTypeId(0), direction: Direction::Out, run: 1 };
        let context = QueryContext::new();
        let mut builder = EdgesBuilder::new(&context).unwrap();
        builder.reserve(1 << 16).unwrap();
        // As it comes from many blocks.
        for block in 0..64 {
            let targets = block * 1024..(block + 1) * 1024;
            builder.collect(vertex(7), stored, targets.start, targets.map(vertex)).unwrap();
        }
        block_on(builder.sort()).unwrap();
        assert_eq!((builder.len(), builder.finish().lists().count()), (1 << 16, 1));
        assert!(context.memory().peak() <= (8 << 16) + 8192, "{}", context.memory().peak());
    }
}
