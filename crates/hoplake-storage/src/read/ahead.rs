//! Blocks that were read ahead for one query.
//!
//! They have a small cache of their own, so that guesses do not evict requested blocks. A block that is requested moves
//! to the memory cache.

use bytes::Bytes;

use crate::read::cache::{BlockKey, CacheSettings, MemoryCache, Policy};

/// The blocks that were read ahead for a query.
#[derive(Debug)]
pub(crate) struct Ahead(MemoryCache);

impl Ahead {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self(MemoryCache::new(CacheSettings { cache_bytes_max: bytes_max, policy: Policy::Lru, fetch_cost: None }))
    }

    pub(crate) fn contains(&self, key: BlockKey) -> bool {
        self.0.contains(key)
    }

    pub(crate) fn insert(&self, key: BlockKey, payload: Bytes) {
        self.0.insert(key, payload);
    }

    pub(crate) fn take(&self, key: BlockKey) -> Option<Bytes> {
        self.0.remove(key)
    }
}
