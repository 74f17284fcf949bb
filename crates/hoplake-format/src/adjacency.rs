//! The block codec of neighbour lists.
//!
//! The adjacency of one section (one edge type in one direction) is a run of blocks. A block holds
//! the lists of ascending sources, each a sorted list of targets in which a target may repeat, and
//! can be read without any other. It can be decoded completely ([`Block::decode_all`]), by one source
//! ([`Block::list`]) or by several ([`Block::lists`]).
//!
//! # How
//!
//! All lists of a block make one sequence of numbers: a list's first target (relative to the
//! smallest such of the block), then the gaps to its next targets. Sixteen at a time are bit-packed
//! at the width of the largest. Sources without edges are not there at all. The others are stored
//! by groups of 64 as gaps and degrees, packed likewise. A small directory locates each
//! group, and a checkpoint every 32 chunks leads to the targets, so that one list costs a search in
//! the directory, at most 64 gaps and degrees, and its own chunks.
//!
//! # Why this way
//!
//! Chunks as short as 16 follow the density of a list, where longer ones must suit their largest
//! gap. On a Kronecker graph in locality order a block takes 11.5 bits per edge, everything
//! included; packed by 128 the gaps alone would take 13.5, patched by 32 they would take as much
//! as the entire block does. Rice and Elias-Fano codes take a bit less, and half as long again to
//! decode. RFC 0002 has the measurements and the normative layout of the bytes.

mod decode;
mod encode;
mod group;
mod layout;
mod lists;
mod pack;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use decode::{Block, ListReader};
pub use encode::{BlockEncoder, EncodedBlock};
pub use lists::Lists;

/// The default block size of a load, in bytes.
pub const BLOCK_BYTES_DEFAULT: usize = 16 << 10;

/// The block sizes there may be, in bytes.
pub const BLOCK_BYTES: Range<usize> = 64..(64 << 10) + 1;

/// The entry of a block in its section's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEntry {
    /// The source of the block's first list.
    pub first_source: u64,
    /// The position of the block's first edge in the section: the number of edges before it.
    pub first_edge: u64,
    /// The number of edges in the block, from 1 to 65,535.
    pub edges: u32,
}

/// The blocks that may hold edges of `source`: one, or the several of a hub, or none.
///
/// `first_sources` are those of a section's blocks, in order. A list that is split starts a block,
/// so all its pieces are at the front of their blocks. O(log n).
pub fn blocks_of(first_sources: &[u64], source: u64) -> Range<usize> {
    let end = first_sources.partition_point(|&first| first <= source);
    let start = first_sources[..end].partition_point(|&first| first < source);
    start.min(end.saturating_sub(1))..end
}
