//! The memory cache: blocks by object and position, within a budget of bytes, under a policy that can be chosen.
//!
//! # What it is
//! [`MemoryCache`] is split into shards by the hash of the key, each with a lock, an index and an [eviction
//! policy](eviction) of its own. A warm one-hop query does two look-ups and should take 5 µs in all, so a hit allocates
//! nothing: it hashes 12 bytes, takes a lock that is nearly always free, finds the entry, notifies the policy, and
//! clones a [`Bytes`], which is a counter.
//!
//! # Why this way
//! The project studies policies (`hoplake-cache-sim` replays traces of accesses through the same [`Shard`]), so they are
//! ours, one file each. A library's cache has its one policy inside its tables; `hoplake-compare cache` holds this one
//! against such a library.
//!
//! - *A lock for each shard rather than a reader's lock*: a hit changes the policy's books. With a shard for every 8
//!   MiB, two threads on 256 MiB meet once in 32 look-ups, for some 40 ns. The standard library's lock: another made no
//!   difference.
//! - *Budget by shard*: a shard is 8 MiB or more, so that it holds the largest block there is, and hundreds of
//!   usual ones: the shares are uneven by a few per cent. Budgets below 16 MiB have one shard.
//! - *Nothing oversized*: a block larger than a shard is handed back and counted as rejected. It would
//!   empty the shard for one use.
//! - *A seedless hash*: a writer of the graph's objects could make keys collide, and slow down reads of what they
//!   wrote. In exchange, the same accesses evict the same blocks, in a test and in the simulator.
//!
//! # Why LRFU by default
//! Requests are what a query waits and pays for. On recorded traversals of a Kronecker graph (1,815 blocks) and of a
//! social network (124), replayed at a 64th to a half of all their blocks, LRFU with λ = 0.0001 and retention costs
//! sent a tenth to four tenths fewer than LRU, S3-FIFO and W-TinyLFU, and at most a twelfth more than the best other λ.
//! LFU with retention costs comes close, but never forgets. On synthetic accesses with bursts and drifting popularity
//! (34,743 blocks), S3-FIFO and W-TinyLFU sent up to an eighth fewer in caches of a 64th, and as many in caches of a
//! quarter. A hit costs LRFU a quarter to a half more than LRU, which is still a hundredth of a warm query. `hoplake
//! cache-sim` finds the best policy for another workload.
//!
//! # What a block weighs
//! Its bytes and [`ENTRY_BYTES`] of books, so that a million pages of 300 bytes do not take half as much again.

mod counts;
pub mod eviction;
mod key;
mod retention_cost;
mod shard;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use counts::CacheCounts;
pub use eviction::{Policy, PolicyError};
pub use key::{BlockKey, hash_of};
pub use retention_cost::FetchCost;
pub use shard::{Arrival, ENTRY_BYTES, Shard, weight_of};

/// A shard is not made smaller than this, or it could not hold a block of a few MiB.
const SHARD_BYTES_MIN: u64 = 8 << 20;
/// More shards do not help threads, but make the shares more uneven.
const SHARDS_MAX: u64 = 64;

/// How a memory cache goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheSettings {
    /// The budget, in bytes. Default 256 MiB. With 0 nothing is kept.
    pub cache_bytes_max: u64,
    /// Which block goes when room is needed.
    pub policy: Policy,
    /// The cost of fetching a block again, so that a small one, which costs a full request, too, stays
    /// longer; `None` if all blocks are alike. Policies without scores ignore it
    /// ([`Policy::heeds_retention_cost`]).
    pub fetch_cost: Option<FetchCost>,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self { cache_bytes_max: 256 << 20, policy: Policy::default(), fetch_cost: Some(FetchCost::STANDARD) }
    }
}

/// Blocks in memory, or what was made of them. Shared by all threads.
#[derive(Debug)]
pub struct MemoryCache<V = Bytes> {
    /// A power of two of them.
    shards: Box<[Padded<V>]>,
    fetch_cost: Option<FetchCost>,
}

/// A shard with cache lines of its own, so that locks of neighbours do not disturb each other.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<V>(Mutex<Shard<V>>);

impl<V> Padded<V> {
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Shard<V>> {
        // A shard panics only if its bookkeeping is inconsistent, which must not fail other look-ups.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V: Clone> MemoryCache<V> {
    /// Holds nothing yet.
    pub fn new(settings: CacheSettings) -> Self {
        let CacheSettings { cache_bytes_max, policy, fetch_cost } = settings;
        let fitting = (cache_bytes_max / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        // The power of two below, so that none is too small.
        let shards = 1 << fitting.ilog2();
        let bytes_max = cache_bytes_max / shards;
        let shard = |_| Padded(Mutex::new(Shard::new(bytes_max, policy.build(bytes_max, shards as usize))));
        Self { shards: (0..shards).map(shard).collect(), fetch_cost }
    }

    /// What is kept of a block, if it is here. This counts as a use.
    #[inline]
    pub fn get(&self, key: impl Into<BlockKey>) -> Option<V> {
        let key = key.into();
        let hash = hash_of(key);
        self.shard(hash).lock().get(hash, key).cloned()
    }

    /// Whether a block is here, which is not a use: for plans, before anything is read.
    pub fn contains(&self, key: impl Into<BlockKey>) -> bool {
        let key = key.into();
        let hash = hash_of(key);
        self.shard(hash).lock().contains(hash, key)
    }

    /// Keeps what takes these bytes, and lets others go until it fits. What is larger than a shard is not kept. If the block
    /// is cached already, that counts as a use, and what is kept of it is replaced.
    pub fn keep(&self, key: impl Into<BlockKey>, value: V, bytes: u64) {
        let key = key.into();
        let hash = hash_of(key);
        let arrival = Arrival::new(key, hash, bytes, self.fetch_cost.as_ref());
        let gone = self.shard(hash).lock().insert(arrival, value);
        // Freed only now, outside the lock.
        drop(gone);
    }

    /// Takes a block out and returns it.
    pub fn remove(&self, key: impl Into<BlockKey>) -> Option<V> {
        let key = key.into();
        let hash = hash_of(key);
        self.shard(hash).lock().remove(hash, key)
    }

    /// Takes all blocks of an object out, as when it is damaged or no version names it any more. Looks at every block.
    pub fn remove_object(&self, object: u32) {
        for shard in &self.shards {
            let gone = shard.lock().remove_if(|key| key.object == object);
            drop(gone);
        }
    }

    /// Takes all blocks out. Counters go on.
    pub fn clear(&self) {
        for shard in &self.shards {
            let gone = shard.lock().clear();
            drop(gone);
        }
    }

    /// Bytes of the budget that are taken: blocks and their books. Visits every shard, so it is for metrics.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().bytes()).sum()
    }

    /// The counters so far. Shards are visited one after the other: while others use the cache, sums are of
    /// slightly different moments.
    pub fn counts(&self) -> CacheCounts {
        self.shards.iter().map(|shard| shard.lock().counts()).fold(CacheCounts::default(), CacheCounts::add)
    }

    #[inline]
    fn shard(&self, hash: u64) -> &Padded<V> {
        // The index of a shard takes the low bits and its tags the highest seven: these are in between.
        &self.shards[(hash >> 40) as usize & (self.shards.len() - 1)]
    }
}

impl MemoryCache {
    /// Keeps a block by its bytes, as [`Self::keep`].
    ///
    /// The bytes should be the block's own: a slice keeps alive what it was cut from, which no budget sees.
    pub fn insert(&self, key: impl Into<BlockKey>, block: Bytes) {
        // The first clone of bytes from a vector allocates their counter: do it here rather than in the first hit.
        drop(block.clone());
        let bytes = block.len() as u64;
        self.keep(key, block, bytes);
    }
}
