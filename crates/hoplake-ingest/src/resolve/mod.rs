//! From the keys a user gave to the vertices they name.
//!
//! A [`KeyTable`] holds the keys of one id space. It chooses its form by itself:
//!
//! | form | when | memory | look-up, 1 M keys |
//! | --- | --- | --- | --- |
//! | spans | integer keys without gaps, or with few | none to speak of | arithmetic |
//! | integers | other integer keys | 19–20 bytes a key | one cache miss |
//! | strings | string keys | 22 bytes and the text a key | two cache misses, overlapped |
//! | partitioned | the table would not fit its budget | buffers | through [`ResolveJoin`] only |
//!
//! Edges are resolved by a [`ResolveJoin`], which looks keys up row by row if the tables are in
//! memory, and otherwise joins partition by partition (a Grace hash join, Kitsuregawa et al. 1983): rows
//! and table are split by a hash of the key, and one part of the table is in memory at a time.

mod integers;
mod join;
mod partitions;
mod slots;
mod spans;
mod strings;
mod table;

use hoplake_format::{LabelId, VertexId};

pub use join::{End, JoinSide, ResolveJoin, ResolvedRows, UnknownKey};
pub use table::{KeyTable, KeyTableBuilder};

/// The result of a look-up of an absent key. No vertex has this number: there are fewer than
/// 65,536 labels.
pub const UNKNOWN: u64 = u64::MAX;

/// A vertex as one number: label in the upper 16 bits, ordinal in the lower 48. Orders as [`VertexId`].
pub fn pack(vertex: VertexId) -> u64 {
    u64::from(vertex.label().0) << 48 | vertex.ordinal()
}

/// The vertex of a number made by [`pack`]; `None` for [`UNKNOWN`].
pub fn unpack(packed: u64) -> Option<VertexId> {
    let (label, ordinal) = parts(packed);
    (packed != UNKNOWN).then(|| VertexId::new(label, ordinal))?
}

/// Label and ordinal of a packed vertex that was found.
pub(crate) fn parts(packed: u64) -> (LabelId, u64) {
    (LabelId((packed >> 48) as u16), packed & VertexId::ORDINAL_MAX)
}

/// Keys looked up together, so that their cache misses overlap.
const GROUP_LEN: usize = 64;

/// Grows `values` for `more` of them by an eighth at least: doubling would hold half of the budget empty.
fn reserve<T>(values: &mut Vec<T>, more: usize) {
    if values.capacity() - values.len() < more {
        values.reserve_exact(more.max(values.len() / 8).max(1024));
    }
}

/// The packed vertex if it has the label asked for.
#[inline]
fn with_label(vertex: u64, label: Option<LabelId>) -> u64 {
    match label {
        Some(label) if vertex >> 48 != u64::from(label.0) => UNKNOWN,
        _ => vertex,
    }
}

#[cfg(test)]
mod tests;
