//! The cost of a query.
//!
//! A [`Wave`] is the number of dependent round trips that an answer took. A [`Branch`](crate::Branch) tracks it along a
//! line of work: a read from the store advances it, a read from memory does not. The waves of a query are the longest
//! such chain, whatever ran in parallel.
//!
//! Waves express dependence. A query can *wait* more often: a depth-first traversal expands one vertex after the other
//! although none depends on the one before, and requests beyond the in-flight limit are sent in several rounds. These additional
//! waits are counted where they occur ([`QueryContext::waited`](crate::QueryContext::waited)).
//!
//! Writes pass through a [`Store`](crate::Store) with a meter, which counts them; a writer that waits for a write
//! advances its branch ([`Branch::then`](crate::Branch::then)).

use std::{
    collections::BTreeMap,
    ops::{Add, Sub},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use crate::{PriceList, Tier};

/// The number of dependent round trips that an answer took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Wave(pub u32);

impl Wave {
    /// The wave of a read from the store that depends on this one.
    pub fn next(self) -> Self {
        self.later(1)
    }

    /// The wave a number of dependent round trips later.
    pub fn later(self, rounds: u32) -> Self {
        Self(self.0 + rounds)
    }
}

/// Blocks that a tier served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// The number of blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Reads for later queries: the rest of small segments of which a query read a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Background {
    /// Requests to the store.
    pub requests: u64,
    /// Bytes from the store.
    pub bytes: u64,
}

/// A reading of a meter: the cost of a query, a load or a commit so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Dependent round trips to the store; parallel requests count once.
    pub waves: u64,
    /// Round trips that the query waited for in sequence: the waves, and those that the traversal order and the in-flight limit added.
    /// Breadth-first, it equals the waves unless a hop exceeds the in-flight limit; depth-first, it is the longest sequence of expansions
    /// in which each began when the one before ended.
    pub waits: u64,
    /// Requests that read from the store, with hedges, retries and those that read ahead; without those in the
    /// background.
    pub requests: u64,
    /// Of these, hedges: second copies of slow requests.
    pub hedges: u64,
    /// Of these, requests that repeat a failed one.
    pub retries: u64,
    /// Of these, requests that read ahead.
    pub prefetches: u64,
    /// Bytes read from the store; without those in the background.
    pub store_bytes: u64,
    /// Additional reads that the query started in the background. No query waits for them, so they count as planned when they begin.
    pub background: Background,
    /// Requests that stores charge as PUT: writes, and a writer's listings. Retries by the store's client do not count, and deletions are
    /// free.
    pub puts: u64,
    /// Bytes written to the store.
    pub put_bytes: u64,
    /// Blocks found in memory, or in mapped files.
    pub memory: Served,
    /// Blocks that had been read ahead.
    pub prefetched: Served,
    /// Blocks found on the local disk.
    pub disk: Served,
    /// Blocks that arrived with a request of another reader.
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

/// The running cost of one query. All its tasks share it.
#[derive(Debug, Default)]
pub struct Meter {
    waves: AtomicU64,
    /// Waits beyond the waves that the traversal order adds.
    waited: AtomicU64,
    /// By wave, the rounds of its requests beyond the first.
    rounds: Mutex<BTreeMap<u32, u64>>,
    requests: AtomicU64,
    hedges: AtomicU64,
    retries: AtomicU64,
    prefetches: AtomicU64,
    store_bytes: AtomicU64,
    background: Tally,
    puts: AtomicU64,
    put_bytes: AtomicU64,
    memory: Tally,
    prefetched: Tally,
    disk: Tally,
    shared: Tally,
}

impl Meter {
    /// Records that `wave` was reached.
    pub(crate) fn reached(&self, wave: Wave) {
        self.waves.fetch_max(wave.0.into(), Relaxed);
    }

    /// Counts waits beyond the waves.
    pub(crate) fn waited(&self, waits: u32) {
        self.waited.fetch_add(waits.into(), Relaxed);
    }

    /// Records in how many rounds the requests of a wave are sent.
    pub(crate) fn went_in_rounds(&self, wave: Wave, rounds: u64) {
        if rounds > 1 {
            let mut all = self.rounds.lock().expect("no thread panics with the rounds");
            // Branches of one wave wait at the same time: the wave takes as many rounds as its slowest branch, not their sum.
            let most = all.entry(wave.0).or_default();
            *most = (*most).max(rounds - 1);
        }
    }

    /// Counts background reads for later queries.
    pub(crate) fn in_background(&self, read: Background) {
        self.background.add(read.requests, read.bytes);
    }

    /// Counts requests that were sent.
    pub(crate) fn requested(&self, requests: u64) {
        self.requests.fetch_add(requests, Relaxed);
    }

    /// Counts the last request as a hedge.
    pub(crate) fn hedged(&self) {
        self.hedges.fetch_add(1, Relaxed);
    }

    /// Counts a retry, if there were fewer than `max`, and returns whether the caller may send it.
    pub(crate) fn retry(&self, max: u64) -> bool {
        self.retries.fetch_update(Relaxed, Relaxed, |retries| (retries < max).then_some(retries + 1)).is_ok()
    }

    /// Counts the last request as one that reads ahead.
    pub(crate) fn read_ahead(&self) {
        self.prefetches.fetch_add(1, Relaxed);
    }

    /// Counts bytes that arrived from the store.
    pub(crate) fn received(&self, bytes: u64) {
        self.store_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts requests that write, and their bytes.
    pub(crate) fn wrote(&self, puts: u64, bytes: u64) {
        self.puts.fetch_add(puts, Relaxed);
        self.put_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts blocks that a tier served.
    pub(crate) fn served(&self, tier: Tier, blocks: u64, bytes: u64) {
        match tier {
            Tier::Memory => self.memory.add(blocks, bytes),
            Tier::Prefetch => self.prefetched.add(blocks, bytes),
            Tier::Disk => self.disk.add(blocks, bytes),
            Tier::Shared => self.shared.add(blocks, bytes),
            // Its requests and their bytes are counted where they are sent.
            Tier::Store => {}
        }
    }

    /// The cost so far.
    pub fn cost(&self) -> Cost {
        let waves = self.waves.load(Relaxed);
        let rounds: u64 = self.rounds.lock().expect("no thread panics with the rounds").values().sum();
        let Served { blocks, bytes } = self.background.served();
        Cost {
            waves,
            // Counters are read one after the other: while tasks still run, a reading may be between two of their updates.
            waits: waves + rounds + self.waited.load(Relaxed),
            background: Background { requests: blocks, bytes },
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
    fn zip(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self { blocks: combine(self.blocks, other.blocks), bytes: combine(self.bytes, other.bytes) }
    }
}

impl Background {
    fn zip(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self { requests: combine(self.requests, other.requests), bytes: combine(self.bytes, other.bytes) }
    }

    /// Dollars for them, at these prices.
    pub fn usd(&self, prices: &PriceList) -> f64 {
        prices.reads_usd(self.requests, self.bytes)
    }
}

impl Cost {
    /// What the work since `earlier` cost.
    pub fn since(&self, earlier: &Self) -> Self {
        self.zip(earlier, u64::sub)
    }

    /// Combines each counter with the same counter of another cost.
    // All fields are named: a counter that is added cannot be forgotten in sums and differences.
    fn zip(&self, other: &Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            waves: combine(self.waves, other.waves),
            waits: combine(self.waits, other.waits),
            background: self.background.zip(other.background, combine),
            requests: combine(self.requests, other.requests),
            hedges: combine(self.hedges, other.hedges),
            retries: combine(self.retries, other.retries),
            prefetches: combine(self.prefetches, other.prefetches),
            store_bytes: combine(self.store_bytes, other.store_bytes),
            puts: combine(self.puts, other.puts),
            put_bytes: combine(self.put_bytes, other.put_bytes),
            memory: self.memory.zip(other.memory, combine),
            prefetched: self.prefetched.zip(other.prefetched, combine),
            disk: self.disk.zip(other.disk, combine),
            shared: self.shared.zip(other.shared, combine),
        }
    }

    /// Dollars for the requests and bytes, those in the background included, at these prices.
    pub fn usd(&self, prices: &PriceList) -> f64 {
        let own = prices.reads_usd(self.requests, self.store_bytes) + prices.writes_usd(self.puts, self.put_bytes);
        // The query waited for none of it, but it caused the cost.
        own + self.background.usd(prices)
    }

    /// The same without what was read in the background.
    #[must_use]
    pub fn foreground(&self) -> Self {
        Self { background: Background::default(), ..*self }
    }
}

/// One after the other.
impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(&other, u64::add)
    }
}
