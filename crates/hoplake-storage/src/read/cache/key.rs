//! Names of blocks, and their hashes.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// Names a block: an object's number, which is unique within a reader, and where in it the block begins, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockKey {
    /// The object's number.
    pub object: u32,
    /// The block's first byte.
    pub position: u64,
}

impl From<(u32, u64)> for BlockKey {
    fn from((object, position): (u32, u64)) -> Self {
        Self { object, position }
    }
}

/// The hash of a key, for [`Shard`](super::Shard), index and policy: the same in every process.
#[inline]
pub fn hash_of(key: BlockKey) -> u64 {
    FixedState::default().hash_one(key)
}
