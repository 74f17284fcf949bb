//! Segments: immutable objects made of sections, which are made of sealed blocks.
//!
//! ```text
//! magic │ blocks of section 0 │ blocks of section 1 │ … │ filters │ index blocks │ root │ root length u32 │ CRC-32C u32 │ magic
//!       8                                               ^ filters_position       ^ root_position
//!                                                                 ^ index_position
//! ```
//! The index has two levels, so that neither an open nor a first query reads what grows with the graph. An [index
//! block](index_block) has the position and first item of up to 2,048 consecutive blocks of a section; the
//! [root](SegmentRoot) has the same of each index block. A section that is longer than a segment goes on in the next
//! one; the manifest says with what each begins.

mod builder;
pub mod index_block;
mod root;
mod sections;
mod writer;

use crate::{Direction, EdgeTypeId, IndexId, Key, LabelId};

pub use builder::{SegmentBuilder, SegmentSettings};
pub use index_block::{Firsts, IndexBlock};
pub use root::{IndexEntry, SectionRoot, SegmentRoot, decode_root};
pub use sections::{KeyWriter, ListWriter};
pub use writer::{SectionSize, SegmentBytes, SegmentWriter};

/// The content of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectionKind {
    /// The keys of a vertex label.
    Keys(LabelId),
    /// The neighbour lists of an edge type in one direction.
    Adjacency(EdgeTypeId, Direction),
    /// The ends of pairs that have no edge of a type any more, as lists in one direction.
    Removed(EdgeTypeId, Direction),
    /// The deleted keys of a label, with their ordinals.
    Tombstones(LabelId),
    /// Changed rows of a label: the ordinal of each as a key, and the number of its row.
    Rows(LabelId),
    /// The items of a property index.
    Values(IndexId),
    /// Items that a property index does not have any more.
    RemovedValues(IndexId),
}

impl SectionKind {
    /// Kind (1 keys, 2 adjacency out, 3 adjacency in, 4 removed out, 5 removed in, 6 tombstones, 7 rows, 8 values,
    /// 9 removed values) times 65,536 plus label,
    /// edge type or index.
    pub fn to_number(self) -> u32 {
        let (kind, owner) = match self {
            Self::Keys(label) => (1, label.0),
            Self::Adjacency(edge_type, Direction::Out) => (2, edge_type.0),
            Self::Adjacency(edge_type, Direction::In) => (3, edge_type.0),
            Self::Removed(edge_type, Direction::Out) => (4, edge_type.0),
            Self::Removed(edge_type, Direction::In) => (5, edge_type.0),
            Self::Tombstones(label) => (6, label.0),
            Self::Rows(label) => (7, label.0),
            Self::Values(index) => (8, index.0),
            Self::RemovedValues(index) => (9, index.0),
        };
        kind << 16 | u32::from(owner)
    }

    /// Whether it holds keys; lists otherwise.
    pub fn has_keys(self) -> bool {
        !matches!(self, Self::Adjacency(..) | Self::Removed(..))
    }

    /// Whether it holds items of a property index, which are text.
    pub fn has_values(self) -> bool {
        matches!(self, Self::Values(_) | Self::RemovedValues(_))
    }

    /// The kind with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        let owner = (number & 0xffff) as u16;
        match number >> 16 {
            1 => Some(Self::Keys(LabelId(owner))),
            2 => Some(Self::Adjacency(EdgeTypeId(owner), Direction::Out)),
            3 => Some(Self::Adjacency(EdgeTypeId(owner), Direction::In)),
            4 => Some(Self::Removed(EdgeTypeId(owner), Direction::Out)),
            5 => Some(Self::Removed(EdgeTypeId(owner), Direction::In)),
            6 => Some(Self::Tombstones(LabelId(owner))),
            7 => Some(Self::Rows(LabelId(owner))),
            8 => Some(Self::Values(IndexId(owner))),
            9 => Some(Self::RemovedValues(IndexId(owner))),
            _ => None,
        }
    }
}

/// The manifest entry of a finished segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentEnd {
    /// Bytes of the object.
    pub length: u64,
    /// Where the filters begin.
    pub filters_position: u64,
    /// Where the index blocks begin.
    pub index_position: u64,
    /// Where the root begins.
    pub root_position: u64,
}

/// The hash under which a source stands in a filter: that of the key of the same number.
pub fn hash_of_source(source: u64) -> u64 {
    Key::Int64(source as i64).hash()
}

#[cfg(test)]
mod tests;
