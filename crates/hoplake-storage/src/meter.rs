//! What a query cost.
//!
//! A [`Wave`] travels with every answer: how many dependent round trips lie behind it. A read that
//! needs the store returns the wave after the one it depends on; a read from memory returns it
//! unchanged. The waves of a query are the longest such chain, whatever ran in parallel.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::PriceList;

/// The number of dependent round trips behind an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Wave(pub u32);

impl Wave {
    /// The wave of a read from the store that depends on this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The running account of one query. Shared by all its tasks.
#[derive(Debug, Default)]
pub struct Meter {
    waves: AtomicU64,
    requests: AtomicU64,
    store_bytes: AtomicU64,
    cache_hits: AtomicU64,
    cache_bytes: AtomicU64,
}

/// What was spent up to a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Dependent round trips to the store; parallel requests count once.
    pub waves: u64,
    /// Requests to the store.
    pub requests: u64,
    /// Bytes read from the store.
    pub store_bytes: u64,
    /// Blocks found in memory.
    pub cache_hits: u64,
    /// Bytes found in memory.
    pub cache_bytes: u64,
}

impl Meter {
    /// A new account.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes `requests` to the store that brought `bytes` in `wave`.
    pub fn store_read(&self, wave: Wave, requests: u64, bytes: u64) {
        self.waves.fetch_max(wave.0.into(), Ordering::Relaxed);
        self.requests.fetch_add(requests, Ordering::Relaxed);
        self.store_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes `blocks` of together `bytes` found in memory.
    pub fn cache_read(&self, blocks: u64, bytes: u64) {
        self.cache_hits.fetch_add(blocks, Ordering::Relaxed);
        self.cache_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What was spent so far.
    pub fn cost(&self) -> Cost {
        Cost {
            waves: self.waves.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            store_bytes: self.store_bytes.load(Ordering::Relaxed),
            cache_hits: self.cache_hits.load(Ordering::Relaxed),
            cache_bytes: self.cache_bytes.load(Ordering::Relaxed),
        }
    }
}

impl Cost {
    /// What was spent since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            waves: self.waves - earlier.waves,
            requests: self.requests - earlier.requests,
            store_bytes: self.store_bytes - earlier.store_bytes,
            cache_hits: self.cache_hits - earlier.cache_hits,
            cache_bytes: self.cache_bytes - earlier.cache_bytes,
        }
    }

    /// Dollars for the requests and bytes, at these prices.
    pub fn usd(&self, prices: &PriceList) -> f64 {
        prices.reads_usd(self.requests, self.store_bytes)
    }
}
