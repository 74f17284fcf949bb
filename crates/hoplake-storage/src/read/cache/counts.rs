//! What a cache did, and its size.

/// The counters and the size of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Look-ups that found their block.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Blocks kept, one that was there already not counted.
    pub insertions: u64,
    /// Blocks that had to go for others.
    pub evictions: u64,
    /// Blocks too large to be kept.
    pub refusals: u64,
    /// Blocks held now.
    pub blocks: u64,
    /// Bytes of the budget taken now.
    pub bytes: u64,
}

impl CacheCounts {
    pub(super) fn add(self, other: Self) -> Self {
        Self {
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            insertions: self.insertions + other.insertions,
            evictions: self.evictions + other.evictions,
            refusals: self.refusals + other.refusals,
            blocks: self.blocks + other.blocks,
            bytes: self.bytes + other.bytes,
        }
    }
}
