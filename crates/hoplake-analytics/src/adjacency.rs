//! What a kernel walks over: the lists of all vertices, however they are kept.

use crate::Csr;

/// The lists of the vertices 0 to [`Self::len`].
///
/// A list is read through a cursor, which may keep what it decoded last: so a pass over vertices in their order costs what the
/// decoding of all lists costs, and lists that are kept plainly cost nothing more than a slice.
pub trait Adjacency: Sync {
    /// Reads lists. A thread has one of its own.
    type Cursor<'a>: Cursor
    where
        Self: 'a;

    /// How many vertices there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many edges all lists have.
    fn edges(&self) -> u64;

    /// How many edges a vertex has.
    ///
    /// # Panics
    /// If `vertex` is not below [`Self::len`].
    fn degree(&self, vertex: u32) -> usize;

    /// The same lists with the weights of their edges, if they have weights.
    fn weighted(&self) -> Option<&Csr> {
        None
    }

    /// Reads lists from now on.
    fn cursor(&self) -> Self::Cursor<'_>;

    /// Says whether lists will be read in the order of vertices from now on. Of mapped files the system then reads ahead by itself, which
    /// is faster than asking it block by block.
    fn expect_order(&self, in_order: bool) {
        let _ = in_order;
    }
}

/// Lists that are read in the order of vertices for as long as it is there.
pub(crate) struct InOrder<'a, A: Adjacency>(&'a A);

impl<'a, A: Adjacency> InOrder<'a, A> {
    pub(crate) fn new(lists: &'a A) -> Self {
        lists.expect_order(true);
        Self(lists)
    }
}

impl<A: Adjacency> Drop for InOrder<'_, A> {
    fn drop(&mut self) {
        self.0.expect_order(false);
    }
}

/// Reads the lists of an [`Adjacency`], fastest in the order of vertices.
pub trait Cursor {
    /// The neighbours of a vertex, ascending, once for each edge.
    ///
    /// # Panics
    /// If there is no such vertex.
    fn neighbours(&mut self, vertex: u32) -> &[u32];

    /// The same in any order, which may cost less.
    ///
    /// # Panics
    /// If there is no such vertex.
    fn unordered(&mut self, vertex: u32) -> &[u32] {
        self.neighbours(vertex)
    }

    /// Looks at the neighbours of a vertex, in the order of [`Self::unordered`], until one is wanted, and returns whether one was. Faster
    /// where lists are decoded only as far as they are looked at.
    ///
    /// # Panics
    /// If there is no such vertex.
    fn any(&mut self, vertex: u32, mut is_wanted: impl FnMut(u32) -> bool) -> bool {
        self.unordered(vertex).iter().any(|neighbour| is_wanted(*neighbour))
    }
}
