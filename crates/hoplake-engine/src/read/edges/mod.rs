//! Edges as columns, in the lists in which they are stored.
//!
//! A list contains the edges of a vertex in one run, of one edge type and direction. They have consecutive positions, and differ only in the
//! vertex reached. So an edge takes the 8 bytes of that vertex, and a list 32 for the rest. Numbers of parallel edges are a column of
//! their own, which most graphs do not need.

mod build;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, fmt, ops::Range};

use foldhash::fast::RandomState;
use hoplake_format::{Direction, EdgeId, EdgeTypeId, VertexId};

pub(crate) use build::{Begin, EdgesBuilder};

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
    /// Its run, by the newest version whose changes the run contains.
    pub run: u64,
    /// Its position in the run's adjacency of that direction.
    pub position: u64,
    /// Its number among the edges of its type from its source to its target, from 0.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
/// [`Self::iter`] returns them one by one, [`Self::lists`] by the vertex that was left.
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

/// Edges that are stored consecutively.
#[derive(Debug, Clone)]
pub(crate) struct EdgeStretch<'a> {
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

    /// Keeps the first edges.
    pub fn truncate(&mut self, count: usize) {
        self.targets.truncate(count);
        self.parallel.truncate(count);
        // The list that reaches `count` is cut; those after it are dropped.
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
    pub(crate) fn pieces(&self) -> impl Iterator<Item = EdgeStretch<'_>> + Clone {
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
        let mut numbers_of = Numbers::default();
        let mut numbers = Vec::new();
        for Neighbour { from, to, edge_type, direction, run, position, parallel } in edges {
            let stored = numbers_of.number(&mut all.stored, Stored { edge_type, direction, run });
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

/// The numbers of what is in a table of [`Stored`].
///
/// By hash, since a schema may have 65,535 edge types and each of them a hundred runs. Most lists have the number of the list before.
#[derive(Debug, Default)]
struct Numbers(HashMap<Stored, u32, RandomState>);

impl Numbers {
    /// The number of one, which is added to the table if it is not there.
    fn number(&mut self, table: &mut Vec<Stored>, stored: Stored) -> u32 {
        if table.last() == Some(&stored) {
            return table.len() as u32 - 1;
        }
        *self.0.entry(stored).or_insert_with(|| {
            table.push(stored);
            table.len() as u32 - 1
        })
    }
}

/// Whether an edge is stored directly after the last one of these lists.
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

/// A range of the edges of [`Edges`].
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
            let EdgeStretch { from, stored, range, .. } = pieces.next()?;
            let of = |piece: &EdgeStretch<'_>| (piece.from, piece.stored.edge_type, piece.stored.direction);
            // Several pieces may have one vertex, type and direction: a list is cut where another run has edges between its own, and
            // where a condition has removed some.
            let same = |piece: &EdgeStretch<'_>| of(piece) == (from, stored.edge_type, stored.direction);
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
    pub(crate) fn into_pieces(self) -> impl Iterator<Item = EdgeStretch<'a>> + Clone {
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
            EdgeStretch {
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
        let to = edges.targets[at];
        let parallel = edges.parallel_of(at);
        Some(Neighbour { from, to, edge_type, direction, run, position, parallel })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl ExactSizeIterator for EdgeIter<'_> {}
