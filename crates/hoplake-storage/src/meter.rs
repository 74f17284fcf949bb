//! What a query cost.
//!
//! A [`Wave`] is how many dependent round trips lie behind an answer. A [`Branch`](crate::Branch) carries it along a line of
//! work: a read that needs the store moves it on to the next, a read from memory does not. The waves of a query are the
//! longest such chain, whatever ran in parallel.
//!
//! A wave says what depends on what. What was *waited for* can be more: a depth-first traversal expands one vertex after
//! the other although none depends on the one before, and more requests than may be in flight at once go in several
//! rounds. Such waits beyond the waves are noted where they arise ([`QueryContext::waited`](crate::QueryContext::waited)).
//!
//! Writes pass through a [`Store`](crate::Store) that is on the account, which counts them; a writer that waits for one says so
//! ([`Branch::then`](crate::Branch::then)).

use std::{
    collections::BTreeMap,
    ops::Add,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
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

/// What is read for queries to come: the rest of small segments of which a query read a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Background {
    /// Requests to the store.
    pub requests: u64,
    /// Bytes from the store.
    pub bytes: u64,
}

/// What was spent up to a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Dependent round trips to the store; parallel requests count once.
    pub waves: u64,
    /// Round trips that were waited for one after the other: the waves, and what schedules and bounds added to them.
    /// Breadth-first it is the waves, unless a hop took more requests than may be in flight at once; depth-first it is
    /// the longest run of expansions of which each began when the one before was done.
    pub waits: u64,
    /// Requests that read from the store, with hedges, retries and those that read ahead; without those in the background.
    pub requests: u64,
    /// Of these, second requests for what a first one was slow to bring.
    pub hedges: u64,
    /// Of these, requests that repeat a failed one.
    pub retries: u64,
    /// Of these, requests that read ahead.
    pub prefetches: u64,
    /// Bytes read from the store; without those in the background.
    pub store_bytes: u64,
    /// What this led to in the background, besides the above. Nobody waits for it, so it is noted when it begins, as far
    /// as it is planned by then.
    pub background: Background,
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
    /// Waits beyond the waves, of schedules.
    waited: AtomicU64,
    /// By wave, the rounds beyond the first in which its requests went.
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
    /// Notes that `wave` was reached.
    pub(crate) fn reached(&self, wave: Wave) {
        self.waves.fetch_max(wave.0.into(), Relaxed);
    }

    /// Notes waits that no wave accounts for.
    pub(crate) fn waited(&self, waits: u32) {
        self.waited.fetch_add(waits.into(), Relaxed);
    }

    /// Notes that the requests of a wave go in so many rounds.
    pub(crate) fn went_in_rounds(&self, wave: Wave, rounds: u64) {
        if rounds > 1 {
            let mut all = self.rounds.lock().expect("no thread panics with the rounds");
            let most = all.entry(wave.0).or_default();
            *most = (*most).max(rounds - 1);
        }
    }

    /// Notes reads for queries to come.
    pub(crate) fn in_background(&self, read: Background) {
        self.background.add(read.requests, read.bytes);
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
        let waves = self.waves.load(Relaxed);
        let rounds: u64 = self.rounds.lock().expect("no thread panics with the rounds").values().sum();
        let Served { blocks, bytes } = self.background.served();
        Cost {
            waves,
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

impl Background {
    fn since(self, earlier: Self) -> Self {
        Self { requests: self.requests - earlier.requests, bytes: self.bytes - earlier.bytes }
    }

    /// Dollars for them, at these prices.
    pub fn usd(&self, prices: &PriceList) -> f64 {
        prices.reads_usd(self.requests, self.bytes)
    }
}

impl Add for Background {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { requests: self.requests + other.requests, bytes: self.bytes + other.bytes }
    }
}

impl Cost {
    /// What was spent since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            waves: self.waves - earlier.waves,
            waits: self.waits - earlier.waits,
            background: self.background.since(earlier.background),
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

    /// Dollars for the requests and bytes, those in the background included, at these prices.
    pub fn usd(&self, prices: &PriceList) -> f64 {
        let own = prices.reads_usd(self.requests, self.store_bytes) + prices.writes_usd(self.puts, self.put_bytes);
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
        Self {
            waves: self.waves + other.waves,
            waits: self.waits + other.waits,
            background: self.background + other.background,
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
