//! Which block goes when room is needed: one trait, one file per policy.
//!
//! | policy | keeps | a hit costs | retention cost ([`FetchCost`](super::FetchCost)) |
//! | --- | --- | --- | --- |
//! | [`lru`] | what was used last | O(1) | has no scores: ignored |
//! | [`lfu`] | what was used most | O(log n) | multiplies the count |
//! | [`lrfu`] | both, weighed by λ | O(log n) | multiplies the score |
//! | [`s3_fifo`] | what was used twice | O(1) | has no scores: ignored |
//! | [`w_tiny_lfu`] | what was used last, if used more than what it replaces | O(1) | multiplies the counts compared |
//!
//! A policy knows blocks by [`Slot`], a small number that the cache gives and uses again. So a policy's
//! books are arrays, a hit finds them without hashing, and nothing is allocated when a block is used. The policy
//! holds no keys and no bytes, so that it cannot leak or lose one.
//!
//! Rejected: a trait with types of its own for each policy, fixed at compile time. It makes every user of the
//! cache generic for the sake of one indirect call, which is about 2 ns of a hit's 40.

mod heap;
pub mod lfu;
pub mod lrfu;
pub mod lru;
mod policy;
mod queue;
pub mod s3_fifo;
pub(in crate::read::cache) mod sketch;
pub mod w_tiny_lfu;

pub use policy::{Policy, PolicyError};

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
