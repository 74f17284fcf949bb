//! What a scan reads at once, and how much that is.

use std::ops::Range;

use super::stretches::Vertices;

/// What a part takes when all of its columns are decoded.
pub(super) const PART_BYTES: u64 = 8 << 20;

/// The least, where the budget is small.
pub(super) const PART_BYTES_MIN: u64 = 64 << 10;

/// Rows of a part, at most.
pub(super) const PART_ROWS: u64 = 1 << 17;

/// Rows of the first part, if only some rows are wanted.
pub(super) const FIRST_PART_ROWS: u64 = 1 << 12;

/// What the memory of a part is a multiple of: stored and decoded pages, decoded again side by side, and the rows that stay.
pub(super) const COPIES: u64 = 8;

/// Parts that are read at a time, at most.
pub(super) const PARTS_MAX: usize = 32;

/// A part that is to be read.
pub(super) struct ScanPart {
    pub(super) vertices: PartVertices,
    /// What its columns take.
    pub(super) bytes: u64,
}

/// Which vertices a part has.
pub(super) enum PartVertices {
    Vertices(Vertices),
    /// Those of some ordinals that newer runs changed.
    Changed(Range<u64>),
}
