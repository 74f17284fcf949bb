//! The state that all open graphs of a process share: caches, bounds, and observations of the store.

use std::{
    any::Any,
    hash::BuildHasher,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};

use tokio::sync::{Semaphore, watch};

use crate::{
    Background, Disk, Object, ReadSettings, StorageError,
    cost::meter::Meter,
    read::{
        cache::{CacheCounts, CacheSettings, MemoryCache},
        disk::DiskCache,
        hedge::Hedge,
    },
    trace::Trace,
};

/// Bytes in flight are counted in units of this, since a semaphore counts to 32 bits.
pub(crate) const IN_FLIGHT_UNIT_BYTES: u64 = 1 << 10;

/// Values that were decoded from a block, of a type that its readers know.
pub(crate) type Decoded = Arc<dyn Any + Send + Sync>;

/// The part of the memory cache's budget for decoded values: 1 in this many bytes.
const DECODED_PART: u64 = 8;

/// Below this budget there are no decoded values: they would take the place of blocks that cost requests.
const DECODED_FROM_BYTES: u64 = 16 << 20;

/// The caches and bounds of a process. Every open graph reads through one.
#[derive(Debug)]
pub struct ReadPool {
    pub(crate) settings: ReadSettings,
    pub(crate) memory: MemoryCache,
    /// Values that were decoded from blocks in memory.
    pub(crate) decoded: MemoryCache<Decoded>,
    pub(crate) disk: Option<DiskCache>,
    pub(crate) hedge: Hedge,
    pub(crate) in_flight: Semaphore,
    pub(crate) trace: Trace,
    /// Background reads so far.
    pub(crate) background: Meter,
    /// Each read in the background that is under way holds a receiver.
    pub(crate) under_way: watch::Sender<()>,
    /// The seed of pauses.
    pub(crate) seed: u64,
    /// How many were drawn.
    pub(crate) pauses: AtomicU64,
    next_object: AtomicU32,
}

impl ReadPool {
    /// A pool with an empty memory cache, and with whatever the disk cache's folder has.
    ///
    /// # Errors
    /// [`StorageError::Settings`] if they cannot work or the disk cache's folder cannot be written.
    pub fn new(settings: ReadSettings) -> Result<Arc<Self>, StorageError> {
        Self::traced(settings, Trace::off())
    }

    /// A pool that records every access to a block.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn traced(settings: ReadSettings, trace: Trace) -> Result<Arc<Self>, StorageError> {
        settings.validate()?;
        let disk = settings.disk.as_ref().map(DiskCache::in_folder).transpose()?;
        Ok(Self::with(settings, disk, trace))
    }

    /// A pool whose disk cache is on a given disk, where it takes `bytes_max` at most. A folder in the settings
    /// is not used.
    ///
    /// # Errors
    /// [`StorageError::Settings`] if they cannot work or the disk's logs cannot be listed.
    pub fn on_disk(settings: ReadSettings, disk: Arc<dyn Disk>, bytes_max: u64) -> Result<Arc<Self>, StorageError> {
        settings.validate()?;
        let failed = |error| StorageError::Settings(format!("the disk cache cannot use its disk: {error}"));
        let disk = DiskCache::open(disk, bytes_max).map_err(failed)?;
        Ok(Self::with(settings, Some(disk), Trace::off()))
    }

    fn with(settings: ReadSettings, disk: Option<DiskCache>, trace: Trace) -> Arc<Self> {
        // A trace has every use of a block; values would hide those after the first.
        let decoded = if settings.cache_bytes_max < DECODED_FROM_BYTES || trace.is_on() {
            0
        } else {
            settings.cache_bytes_max / DECODED_PART
        };
        let cache = CacheSettings { policy: settings.cache_policy, ..CacheSettings::default() };
        Arc::new(Self {
            memory: MemoryCache::new(CacheSettings { cache_bytes_max: settings.cache_bytes_max - decoded, ..cache }),
            // Each takes some microseconds to decode, whatever its size.
            decoded: MemoryCache::new(CacheSettings { cache_bytes_max: decoded, fetch_cost: None, ..cache }),
            trace,
            // A meter of its own: the queries that caused these reads may have ended before them.
            background: Meter::default(),
            under_way: watch::Sender::new(()),
            disk,
            hedge: Hedge::new(settings.hedge),
            in_flight: Semaphore::new((settings.in_flight_bytes_max.div_ceil(IN_FLIGHT_UNIT_BYTES) as usize).max(1)),
            // Drawn at random, so that processes that failed together do not pause alike; given where a run must be repeatable.
            seed: settings.retry.seed.unwrap_or_else(|| std::hash::RandomState::new().hash_one(0)),
            pauses: AtomicU64::new(0),
            next_object: AtomicU32::new(0),
            settings,
        })
    }

    /// How it reads.
    pub fn settings(&self) -> &ReadSettings {
        &self.settings
    }

    /// The finished background reads of all queries: the rest of small segments of which a query read a
    /// part.
    pub fn background(&self) -> Background {
        self.background.cost().background
    }

    /// Waits until no read in the background is under way.
    pub async fn settled(&self) {
        self.under_way.closed().await;
    }

    /// Empties the memory cache: if memory is short, or to measure the other tiers.
    pub fn forget_blocks(&self) {
        self.memory.clear();
        self.decoded.clear();
    }

    /// The counters and the size of its memory cache.
    pub fn memory_counts(&self) -> CacheCounts {
        self.memory.counts()
    }

    /// An object of a store, with a number no other object of the pool has.
    pub(crate) fn object(&self, store_url: &str, name: &str) -> Object {
        Object::new(store_url, name, self.next_object.fetch_add(1, Relaxed))
    }
}
