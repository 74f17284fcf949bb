//! Results of queries that are repeated.
//!
//! ```text
//! key ── cache ──▶ hit
//!          └── doorkeeper ── asked for the first time ──▶ computed, and not kept
//!                    └── asked before ── computed once for all who wait ──▶ kept
//! ```
//! # Never stale
//! A key has the graph, the version and its writer's ULID, the query and its parameters: a new version is a new key. Nothing is
//! invalidated; results that are no longer requested are evicted. A key is compared as a whole and not by its hash, so that
//! no query gets the results of another.
//!
//! # What is kept
//! Values and not bytes: the same results serve each protocol and each encoding. Only what was asked before is kept
//! ([`doorkeeper`]), or a stream of queries that differ would push out what repeats. Results beyond a bound are not kept; that they
//! exceed it is, so that no request waits for them a second time.
//!
//! # Waiting
//! A request for results that another request is computing waits for them, within its own deadline. If that request fails or is
//! dropped, one of those that wait computes instead. The results are kept before they are sent, so that a client that reads slowly delays no other.
//!
//! quick_cache evicts by Clock-PRO, which keeps what was used more than once. [`hoplake::caching`]'s cache of blocks is another
//! thing: it has no placeholders to wait for, and weighs what a read costs.

mod doorkeeper;

use std::{
    fmt::{self, Write},
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use hoplake::{
    Graph,
    gremlin::{script::Script, value::Value},
};
use quick_cache::{
    Lifecycle, Weighter,
    sync::{Cache, PlaceholderGuard},
};

use self::doorkeeper::{Doorkeeper, Membership};
use crate::ResultSettings;

/// What an entry takes besides its key and its values: its place in the tables, and the counters of what it shares.
const ENTRY_BYTES: usize = 160;

/// What a usual entry takes, from which the cache guesses how many there will be.
const USUAL_BYTES: u64 = 1 << 10;

/// The longest key.
const KEY_BYTES_MAX: usize = 64 << 10;

/// Results, each with how many times it occurs.
pub(crate) type KeptResults = Arc<[(Value, u64)]>;

/// What results are kept by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ResultKey(Box<str>);

impl ResultKey {
    /// Of a script with values for its names, on the open version of a graph; with or without properties of elements. `None` if it would
    /// be large: such a query is not asked again soon, and nothing counts the memory of keys.
    pub(crate) fn new(graph: &Graph, script: &Script, names: &[(Box<str>, Value)], properties: bool) -> Option<Self> {
        let writer = &graph.manifest().change.writer;
        let version = graph.version();
        let mut key = Short(String::new());
        // The representation of a script has each of its parts, with its type, and texts in quotes: two that differ have two.
        write!(key, "{}\n{version} {writer} {properties}\n{script:?}\n{names:?}", graph.store().url()).ok()?;
        Some(Self(key.0.into()))
    }
}

/// A text that does not become large: writing more fails.
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.0.len() + more.len() > KEY_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

/// An entry.
#[derive(Debug, Clone)]
enum Kept {
    Results(KeptResults, u64),
    TooLarge,
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<ResultKey, Kept> for ByBytes {
    fn weight(&self, key: &ResultKey, kept: &Kept) -> u64 {
        let bytes = match kept {
            Kept::Results(_, bytes) => *bytes,
            Kept::TooLarge => 0,
        };
        (key.0.len() + ENTRY_BYTES) as u64 + bytes
    }
}

/// Counts evictions.
#[derive(Debug, Clone, Default)]
struct Evictions(Arc<AtomicU64>);

impl Lifecycle<ResultKey, Kept> for Evictions {
    type RequestState = ();

    fn on_evict(&self, (): &mut (), _: ResultKey, _: Kept) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// What the cache has done, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ResultCounts {
    /// Results that were there.
    pub(crate) hits: u64,
    /// Of the hits, those that waited for another request to compute them.
    pub(crate) waited: u64,
    /// Results that were asked for before and were not there.
    pub(crate) misses: u64,
    /// Results that were asked for the first time, as far as the filter knows.
    pub(crate) first_askings: u64,
    /// Of a sample of all keys, those that were asked for the first time.
    pub(crate) sampled: u64,
    /// Of these, those that the filter took for known ones.
    pub(crate) false_positives: u64,
    /// Results that were beyond the bound on one answer.
    pub(crate) too_large: u64,
    pub(crate) evictions: u64,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug, Default)]
struct Counters {
    hits: AtomicU64,
    waited: AtomicU64,
    misses: AtomicU64,
    too_large: AtomicU64,
}

/// The cache of a server.
pub(crate) struct ResultCache {
    cache: Cache<ResultKey, Kept, ByBytes, RandomState, Evictions>,
    doorkeeper: Mutex<Doorkeeper>,
    /// Drawn for each process: clients choose the keys.
    hasher: RandomState,
    counters: Counters,
    evictions: Evictions,
    entry_bytes_max: u64,
}

/// What is known of a key.
pub(crate) enum CacheLookup<'a> {
    /// Its results.
    Hit(KeptResults),
    /// Nothing; the request that gets this computes them for all.
    Compute(Filling<'a>),
    /// Nothing that would be kept.
    Bypass,
}

/// The right to fill an entry. Dropped, it goes to the next one that waits.
pub(crate) struct Filling<'a> {
    cache: &'a ResultCache,
    guard: PlaceholderGuard<'a, ResultKey, Kept, ByBytes, RandomState, Evictions>,
}

impl ResultCache {
    /// Nothing is kept yet; with a budget of 0 there is none.
    pub(crate) fn new(settings: &ResultSettings) -> Option<Self> {
        if settings.bytes_max == 0 {
            return None;
        }
        let entries = usize::try_from(settings.bytes_max / USUAL_BYTES).unwrap_or(usize::MAX).clamp(16, 1 << 20);
        let evictions = Evictions::default();
        let cache = Cache::with(entries, settings.bytes_max, ByBytes, RandomState::new(), evictions.clone());
        Some(Self {
            // A shard cannot keep what is larger than itself.
            entry_bytes_max: settings.entry_bytes_max.min(cache.shard_capacity() / 2),
            cache,
            doorkeeper: Mutex::new(Doorkeeper::new()),
            hasher: RandomState::new(),
            counters: Counters::default(),
            evictions,
        })
    }

    /// Looks for results. Waits if another request is computing them.
    pub(crate) async fn look_up(&self, key: &ResultKey) -> CacheLookup<'_> {
        if let Some(kept) = self.cache.get(key) {
            return self.found(kept);
        }
        let fingerprint = self.hasher.hash_one(key);
        let seen = self.doorkeeper.lock().unwrap_or_else(PoisonError::into_inner).ask(fingerprint);
        if seen == Membership::Absent {
            return CacheLookup::Bypass;
        }
        match self.cache.get_value_or_guard_async(key).await {
            Ok(kept) => {
                self.counters.waited.fetch_add(1, Relaxed);
                self.found(kept)
            }
            Err(guard) => {
                self.counters.misses.fetch_add(1, Relaxed);
                CacheLookup::Compute(Filling { cache: self, guard })
            }
        }
    }

    fn found(&self, kept: Kept) -> CacheLookup<'_> {
        match kept {
            Kept::Results(results, _) => {
                self.counters.hits.fetch_add(1, Relaxed);
                CacheLookup::Hit(results)
            }
            Kept::TooLarge => CacheLookup::Bypass,
        }
    }

    pub(crate) fn counts(&self) -> ResultCounts {
        let door = self.doorkeeper.lock().unwrap_or_else(PoisonError::into_inner).counts();
        ResultCounts {
            hits: self.counters.hits.load(Relaxed),
            waited: self.counters.waited.load(Relaxed),
            misses: self.counters.misses.load(Relaxed),
            first_askings: door.first_askings,
            sampled: door.sampled,
            false_positives: door.false_positives,
            too_large: self.counters.too_large.load(Relaxed),
            evictions: self.evictions.0.load(Relaxed),
            entries: self.cache.len() as u64,
            bytes: self.cache.weight(),
        }
    }
}

impl Filling<'_> {
    /// The most that results may take, in bytes.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.cache.entry_bytes_max
    }

    /// Keeps results, with their size in bytes.
    pub(crate) fn keep(self, results: KeptResults, bytes: u64) {
        // Rejected if the key was removed meanwhile, which does not happen.
        let _ = self.guard.insert(Kept::Results(results, bytes));
    }

    /// Notes that the results are too large to be kept.
    pub(crate) fn give_up(self) {
        self.cache.counters.too_large.fetch_add(1, Relaxed);
        let _ = self.guard.insert(Kept::TooLarge);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, time::Duration};

    use tokio::time::timeout;

    use super::*;

    fn cache(bytes_max: u64) -> ResultCache {
        ResultCache::new(&ResultSettings { bytes_max, ..ResultSettings::default() }).unwrap()
    }

    fn key(number: u64) -> ResultKey {
        ResultKey(format!("key {number}").into())
    }

    fn results(number: u64) -> KeptResults {
        [(Value::from(number as i64), 1)].into()
    }

    fn value_of(found: CacheLookup<'_>) -> Option<Value> {
        match found {
            CacheLookup::Hit(results) => Some(results[0].0.clone()),
            _ => None,
        }
    }

    #[test]
    fn keys_do_not_become_large() {
        let write = |length: usize| write!(Short(String::new()), "{:?}", Value::from("x".repeat(length).as_str()));
        assert!(write(KEY_BYTES_MAX / 2).is_ok());
        assert!(write(KEY_BYTES_MAX).is_err());
        assert!(write(100 * KEY_BYTES_MAX).is_err());
    }

    #[test]
    fn without_a_budget_there_is_none() {
        assert!(ResultCache::new(&ResultSettings { bytes_max: 0, ..ResultSettings::default() }).is_none());
    }

    #[tokio::test]
    async fn what_is_asked_a_second_time_is_kept() {
        let cache = cache(1 << 20);
        assert!(matches!(cache.look_up(&key(1)).await, CacheLookup::Bypass));
        let CacheLookup::Compute(filling) = cache.look_up(&key(1)).await else { panic!("it was asked before") };
        filling.keep(results(1), 100);
        assert_eq!(value_of(cache.look_up(&key(1)).await), Some(Value::from(1_i64)));
        let ResultCounts { hits, misses, first_askings, entries, bytes, .. } = cache.counts();
        assert_eq!((hits, misses, first_askings, entries), (1, 1, 1, 1));
        assert_eq!(bytes, 100 + ENTRY_BYTES as u64 + 5);
    }

    /// Against a map that keeps everything: what is found is right, and all of it within the budget.
    #[tokio::test]
    async fn it_is_a_map_that_forgets() {
        let budget = 64 << 10;
        let cache = cache(budget);
        let mut model = HashMap::new();
        let mut hits = 0;
        for step in 0..20_000_u64 {
            // Half of all askings are for 20 keys, the others for 2,000.
            let mixed = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let number = if mixed.is_multiple_of(2) { mixed % 20 } else { mixed % 2_000 };
            match cache.look_up(&key(number)).await {
                CacheLookup::Hit(found) => {
                    hits += 1;
                    assert_eq!(model.get(&number), Some(&found[0].0));
                }
                CacheLookup::Compute(filling) => {
                    filling.keep(results(number), 200);
                    model.insert(number, Value::from(number as i64));
                }
                CacheLookup::Bypass => {}
            }
            assert!(cache.counts().bytes <= budget);
        }
        let counts = cache.counts();
        assert_eq!(counts.hits, hits);
        assert!(hits > 8_000, "{counts:?}");
        assert!(counts.evictions > 0, "{counts:?}");
        assert_eq!(counts.hits + counts.misses + counts.first_askings, 20_000);
    }

    #[tokio::test]
    async fn what_is_too_large_is_waited_for_once() {
        let cache = cache(1 << 20);
        cache.look_up(&key(1)).await;
        let CacheLookup::Compute(filling) = cache.look_up(&key(1)).await else { panic!("it was asked before") };
        filling.give_up();
        for _ in 0..3 {
            assert!(matches!(cache.look_up(&key(1)).await, CacheLookup::Bypass));
        }
        assert_eq!(cache.counts().too_large, 1);
    }

    #[tokio::test]
    async fn equal_requests_are_computed_once() {
        let cache = Arc::new(cache(1 << 20));
        cache.look_up(&key(1)).await;
        let CacheLookup::Compute(filling) = cache.look_up(&key(1)).await else { panic!("it was asked before") };
        let waiting = Vec::from_iter((0..5).map(|_| {
            let cache = cache.clone();
            tokio::spawn(async move { value_of(cache.look_up(&key(1)).await) })
        }));
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(waiting.iter().all(|task| !task.is_finished()));
        filling.keep(results(1), 100);
        for task in waiting {
            assert_eq!(task.await.unwrap(), Some(Value::from(1_i64)));
        }
        assert_eq!((cache.counts().misses, cache.counts().waited), (1, 5));
    }

    #[tokio::test]
    async fn a_computation_that_is_given_up_goes_to_the_next() {
        let cache = Arc::new(cache(1 << 20));
        cache.look_up(&key(1)).await;
        let CacheLookup::Compute(filling) = cache.look_up(&key(1)).await else { panic!("it was asked before") };
        let own = key(1);
        let waiting = cache.look_up(&own);
        let mut waiting = std::pin::pin!(waiting);
        assert!(timeout(Duration::from_millis(20), waiting.as_mut()).await.is_err());
        drop(filling);
        let next = timeout(Duration::from_secs(60), waiting).await.unwrap();
        assert!(matches!(next, CacheLookup::Compute(_)));
    }
}
