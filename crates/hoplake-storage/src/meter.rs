//! What a query cost.
//!
//! A [`Wave`] travels with every answer: how many dependent round trips lie behind it. A read that
//! needs the store returns the wave after the one it depends on; a read from memory returns it
//! unchanged. The waves of a query are the longest such chain, whatever ran in parallel.
//!
//! Writes pass through a [`Store`](crate::Store) that is on the account, and carry no wave: a writer does one thing after
//! the other, and says when all waited for something ([`QueryContext::then`](crate::QueryContext::then)).

use std::{
    ops::Add,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::{PriceList, Tier};

/// The number of dependent round trips behind an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Wave(pub u32);

impl Wave {
    /// The wave of a read from the store that depends on this one.
    pub fn next(self) -> Self {
        self.later(1)
    }

    /// The wave that lies some dependent round trips after this one.
    pub fn later(self, rounds: u32) -> Self {
        Self(self.0 + rounds)
    }
}

/// Blocks that a tier served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// How many.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What was spent up to a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Dependent round trips to the store; parallel requests count once.
    pub waves: u64,
    /// Requests that read from the store, with hedges, retries and those that read ahead.
    pub requests: u64,
    /// Of these, second requests for what a first one was slow to bring.
    pub hedges: u64,
    /// Of these, requests that repeat a failed one.
    pub retries: u64,
    /// Of these, requests that read ahead.
    pub prefetches: u64,
    /// Bytes read from the store.
    pub store_bytes: u64,
    /// Requests that write to the store, or that a writer lists its objects with: what stores charge as PUT. What the store's
    /// client repeats by itself is not seen here, and deletions are free.
    pub puts: u64,
    /// Bytes written to the store.
    pub put_bytes: u64,
    /// Blocks found in memory.
    pub memory: Served,
    /// Blocks that had been read ahead.
    pub prefetched: Served,
    /// Blocks found on the local disk.
    pub disk: Served,
    /// Blocks that came with a request of another reader.
    pub shared: Served,
}

/// A counter of blocks and bytes.
#[derive(Debug, Default)]
struct Tally {
    blocks: AtomicU64,
    bytes: AtomicU64,
}

impl Tally {
    fn add(&self, blocks: u64, bytes: u64) {
        self.blocks.fetch_add(blocks, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    fn served(&self) -> Served {
        Served { blocks: self.blocks.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }
}

/// The running account of one query. Shared by all its tasks.
#[derive(Debug, Default)]
pub struct Meter {
    waves: AtomicU64,
    /// The waves behind all that is yet to come.
    behind: AtomicU64,
    requests: AtomicU64,
    hedges: AtomicU64,
    retries: AtomicU64,
    prefetches: AtomicU64,
    store_bytes: AtomicU64,
    puts: AtomicU64,
    put_bytes: AtomicU64,
    memory: Tally,
    prefetched: Tally,
    disk: Tally,
    shared: Tally,
}

impl Meter {
    /// Notes that `wave` was reached.
    pub(crate) fn reached(&self, wave: Wave) {
        self.waves.fetch_max(self.behind.load(Relaxed) + u64::from(wave.0), Relaxed);
    }

    /// Notes round trips that depend on all before, as all that comes depends on them.
    pub(crate) fn then(&self, rounds: u32) {
        let behind = self.waves.fetch_add(rounds.into(), Relaxed) + u64::from(rounds);
        self.behind.store(behind, Relaxed);
    }

    /// Notes requests that were sent.
    pub(crate) fn requested(&self, requests: u64) {
        self.requests.fetch_add(requests, Relaxed);
    }

    /// Notes that a request just noted is a hedge.
    pub(crate) fn hedged(&self) {
        self.hedges.fetch_add(1, Relaxed);
    }

    /// Notes that a request to come repeats a failed one, and returns how many did so before.
    pub(crate) fn retried(&self) -> u64 {
        self.retries.fetch_add(1, Relaxed)
    }

    /// Notes that a request just noted reads ahead.
    pub(crate) fn read_ahead(&self) {
        self.prefetches.fetch_add(1, Relaxed);
    }

    /// Notes bytes that came from the store.
    pub(crate) fn received(&self, bytes: u64) {
        self.store_bytes.fetch_add(bytes, Relaxed);
    }

    /// Notes requests that write, and what they bring there.
    pub(crate) fn wrote(&self, puts: u64, bytes: u64) {
        self.puts.fetch_add(puts, Relaxed);
        self.put_bytes.fetch_add(bytes, Relaxed);
    }

    /// Notes blocks that a tier served.
    pub(crate) fn served(&self, tier: Tier, blocks: u64, bytes: u64) {
        match tier {
            Tier::Memory => self.memory.add(blocks, bytes),
            Tier::Prefetch => self.prefetched.add(blocks, bytes),
            Tier::Disk => self.disk.add(blocks, bytes),
            Tier::Shared => self.shared.add(blocks, bytes),
            // Its requests and their bytes are noted where they are sent.
            Tier::Store => {}
        }
    }

    /// What was spent so far.
    pub fn cost(&self) -> Cost {
        Cost {
            waves: self.waves.load(Relaxed),
            requests: self.requests.load(Relaxed),
            hedges: self.hedges.load(Relaxed),
            retries: self.retries.load(Relaxed),
            prefetches: self.prefetches.load(Relaxed),
            store_bytes: self.store_bytes.load(Relaxed),
            puts: self.puts.load(Relaxed),
            put_bytes: self.put_bytes.load(Relaxed),
            memory: self.memory.served(),
            prefetched: self.prefetched.served(),
            disk: self.disk.served(),
            shared: self.shared.served(),
        }
    }
}

impl Served {
    fn since(self, earlier: Self) -> Self {
        Self { blocks: self.blocks - earlier.blocks, bytes: self.bytes - earlier.bytes }
    }
}

impl Add for Served {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { blocks: self.blocks + other.blocks, bytes: self.bytes + other.bytes }
    }
}

impl Cost {
    /// What was spent since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            waves: self.waves - earlier.waves,
            requests: self.requests - earlier.requests,
            hedges: self.hedges - earlier.hedges,
            retries: self.retries - earlier.retries,
            prefetches: self.prefetches - earlier.prefetches,
            store_bytes: self.store_bytes - earlier.store_bytes,
            puts: self.puts - earlier.puts,
            put_bytes: self.put_bytes - earlier.put_bytes,
            memory: self.memory.since(earlier.memory),
            prefetched: self.prefetched.since(earlier.prefetched),
            disk: self.disk.since(earlier.disk),
            shared: self.shared.since(earlier.shared),
        }
    }

    /// Dollars for the requests and bytes, at these prices.
    pub fn usd(&self, prices: &PriceList) -> f64 {
        prices.reads_usd(self.requests, self.store_bytes) + prices.writes_usd(self.puts, self.put_bytes)
    }
}

/// One after the other.
impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            waves: self.waves + other.waves,
            requests: self.requests + other.requests,
            hedges: self.hedges + other.hedges,
            retries: self.retries + other.retries,
            prefetches: self.prefetches + other.prefetches,
            store_bytes: self.store_bytes + other.store_bytes,
            puts: self.puts + other.puts,
            put_bytes: self.put_bytes + other.put_bytes,
            memory: self.memory + other.memory,
            prefetched: self.prefetched + other.prefetched,
            disk: self.disk + other.disk,
            shared: self.shared + other.shared,
        }
    }
}
