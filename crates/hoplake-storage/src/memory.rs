//! stand-in for the cache with policies
use bytes::Bytes;
use quick_cache::{Weighter, sync::Cache};

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<(u32, u64), Bytes> for ByBytes {
    fn weight(&self, _: &(u32, u64), block: &Bytes) -> u64 {
        block.len() as u64 + 64
    }
}

#[derive(Debug)]
pub(crate) struct MemoryCache(Cache<(u32, u64), Bytes, ByBytes>);

impl MemoryCache {
    pub(crate) fn new(bytes_max: u64) -> Self {
        let entries = (bytes_max >> 14).max(16) as usize;
        Self(Cache::with_weighter(entries, bytes_max, ByBytes))
    }
    pub(crate) fn get(&self, key: (u32, u64)) -> Option<Bytes> {
        self.0.get(&key)
    }
    pub(crate) fn remove(&self, key: (u32, u64)) -> Option<Bytes> {
        self.0.remove(&key).map(|(_, block)| block)
    }
    pub(crate) fn insert(&self, key: (u32, u64), block: Bytes) {
        self.0.insert(key, block);
    }
}
