//! What a policy learns of blocks, and what it owes the cache.

/// A block's number within one cache: small, dense, and reused after its block is evicted.
pub type Slot = u32;

/// What a policy learns about an inserted block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Incoming {
    /// The hash of its key, the same at each insertion of this block: policies that remember evicted blocks
    /// know it by that. Two blocks may share a hash; then they share a memory, too, and no harm is done.
    pub hash: u64,
    /// The bytes it takes of the budget.
    pub weight: u64,
    /// Its retention cost, relative to others; positive. 1 if all blocks are alike.
    pub retention_cost: f32,
}

/// Decides which block goes.
///
/// The policy tracks the slots that were inserted and neither removed nor evicted since.
///
/// # The caller's duties
/// - One call at a time, in the order of the accesses.
/// - [`insert`](Self::insert) only slots that are not tracked; [`hit`](Self::hit) and [`remove`](Self::remove)
///   only slots that are. Policies may panic or go wrong otherwise, but only in what they evict.
/// - Slots are dense: memory grows with the largest one.
/// - To make room first: call [`evict`](Self::evict) until the new block fits, and only then
///   `insert`. So a policy never has to weigh a newcomer that has no history against blocks that have one, and
///   the budget holds at every moment.
///
/// # The policy's duties
/// - `evict` returns a tracked slot and tracks it no more; `None` only if it tracks nothing. So the caller's loop
///   ends, and every block can be made to go.
/// - It is deterministic: the same calls give the same evictions. Where its score ties, the block used
///   least recently is evicted, unless the policy documents otherwise.
/// - `hit` allocates nothing and is at most O(log n): it runs under the lock of a shard.
/// - It keeps within some 40 bytes for a slot, which the cache counts as a part of each block's weight.
pub trait Eviction: std::fmt::Debug + Send {
    /// Tracks an inserted block, as just used.
    fn insert(&mut self, slot: Slot, block: Incoming);

    /// Notes that a tracked block was used.
    fn hit(&mut self, slot: Slot);

    /// Tracks a block no more, for a reason that is not the policy's. It is not remembered as evicted.
    fn remove(&mut self, slot: Slot);

    /// Chooses the block that goes, and tracks it no more.
    fn evict(&mut self) -> Option<Slot>;

    /// Forgets everything, also what it remembers of evicted blocks.
    fn clear(&mut self);
}
