//! A cache above a slow store.
//!
//! It has whole chunks, as the stores below have them: a run asks for ranges of a chunk's length, and a store that is asked for less
//! reads a chunk anyway. States are written back when their chunk leaves, or at the end: what stays in the cache costs the store
//! below nothing.
//!
//! Each chunk has a lock, held while the store below is asked for it, so that threads wait for each other only where they want the same
//! chunk. The order in which chunks leave has a lock of its own, held for moments. No thread holds two of either.

use std::{
    ops::Range,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

pub use super::residents::CachePolicy;
use super::{
    CHUNK, StateStore, StoreBytes, StoreError,
    chunks::{chunks, length},
    residents::Residents,
};
use crate::Value;

/// A cache above another store, which writes back what changed when it leaves the cache, or at [`StateStore::flush`].
#[derive(Debug)]
pub struct CachedStore<S, I> {
    below: I,
    vertices: u32,
    chunks: Vec<Mutex<Option<Cached<S>>>>,
    residents: Mutex<Residents>,
    counts: Counts,
}

/// A chunk in the cache.
#[derive(Debug)]
struct Cached<S> {
    states: Vec<S>,
    /// Whether the store below has other states.
    is_changed: bool,
}

/// What a cache did so far, in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Visits that found their chunk. To take a range out of a chunk is one, and to put it back is another.
    pub hits: u64,
    /// Visits that did not.
    pub misses: u64,
    /// Chunks read from the store below: not those that are written as a whole.
    pub reads: u64,
    /// Chunks written to it.
    pub writes: u64,
}

#[derive(Debug, Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
}

impl<S: Value, I: StateStore<S>> CachedStore<S, I> {
    /// A cache of at most `bytes_max` above a store of this number of vertices. While threads read or write, each may have a chunk
    /// more.
    ///
    /// # Errors
    /// [`StoreError`] if there is no room for a chunk.
    pub fn new(below: I, vertices: u32, policy: CachePolicy, bytes_max: u64) -> Result<Self, StoreError> {
        let least = length(vertices, 0) as u64 * size_of::<S>() as u64;
        if bytes_max < least {
            let why = format!("{bytes_max} bytes have no room for a chunk of states: give it {least} or more");
            return Err(StoreError::new("cache of states", why));
        }
        let chunks = (0..vertices.div_ceil(CHUNK)).map(|_| Mutex::default()).collect();
        let residents = Mutex::new(Residents::new(policy, vertices, size_of::<S>(), bytes_max));
        Ok(Self { below, vertices, chunks, residents, counts: Counts::default() })
    }

    /// The most memory that such a cache takes while threads use it.
    pub fn memory_bytes(vertices: u32, bytes_max: u64, threads: usize) -> u64 {
        let all = u64::from(vertices) * size_of::<S>() as u64;
        let chunk = length(vertices, 0) as u64 * size_of::<S>() as u64;
        all.min(bytes_max.saturating_add(threads as u64 * chunk))
    }

    /// What it did so far.
    pub fn counts(&self) -> CacheCounts {
        let Counts { hits, misses, reads, writes } = &self.counts;
        let [hits, misses, reads, writes] = [hits, misses, reads, writes].map(|count| count.load(Relaxed));
        CacheCounts { hits, misses, reads, writes }
    }

    fn chunk(&self, number: usize) -> Result<MutexGuard<'_, Option<Cached<S>>>, StoreError> {
        let chunk = self.chunks.get(number).ok_or_else(missing)?;
        chunk.lock().map_err(|_| poisoned())
    }

    fn residents(&self) -> Result<MutexGuard<'_, Residents>, StoreError> {
        self.residents.lock().map_err(|_| poisoned())
    }

    fn read_below(&self, number: usize) -> Result<Vec<S>, StoreError> {
        self.counts.reads.fetch_add(1, Relaxed);
        let first = number as u32 * CHUNK;
        let length = length(self.vertices, number);
        let states = self.below.read(first..first + length as u32)?;
        if states.len() != length {
            let why = format!("the store below has {} states in chunk {number}, not {length}", states.len());
            return Err(StoreError::new("cache of states", why));
        }
        Ok(states)
    }

    /// Writes a chunk back if it has changed.
    fn write_below(&self, number: usize, cached: &mut Cached<S>) -> Result<(), StoreError> {
        if cached.is_changed {
            // A copy: states that could not be written stay here.
            self.below.put(number as u32 * CHUNK, cached.states.clone())?;
            self.counts.writes.fetch_add(1, Relaxed);
            cached.is_changed = false;
        }
        Ok(())
    }

    fn count(&self, is_hit: bool) {
        let count = if is_hit { &self.counts.hits } else { &self.counts.misses };
        count.fetch_add(1, Relaxed);
    }

    /// Counts a visit of a chunk that is there now, and sends others away until there is room. No lock is held.
    fn visited(&self, number: usize) -> Result<(), StoreError> {
        self.residents()?.visit(number);
        loop {
            let Some(leaving) = self.residents()?.leave_for(number) else { return Ok(()) };
            let mut chunk = self.chunk(leaving)?;
            // Another thread may have visited it meanwhile: its states are safe in any case, here or below.
            let Some(cached) = &mut *chunk else { continue };
            if let Err(error) = self.write_below(leaving, cached) {
                drop(chunk);
                // It stays, so that a flush tries again, or fails.
                self.residents()?.visit(leaving);
                return Err(error);
            }
            *chunk = None;
        }
    }
}

fn missing() -> StoreError {
    StoreError::new("cache of states", "there are no states of such vertices")
}

fn poisoned() -> StoreError {
    StoreError::new("cache of states", "a thread panicked in it; run the computation again")
}

impl<S: Value, I: StateStore<S>> StateStore<S> for CachedStore<S, I> {
    fn read(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        let mut states = Vec::with_capacity(vertices.len());
        for (number, within, _) in chunks(&vertices) {
            {
                let mut chunk = self.chunk(number)?;
                self.count(chunk.is_some());
                let cached = match &mut *chunk {
                    Some(cached) => cached,
                    none => none.insert(Cached { states: self.read_below(number)?, is_changed: false }),
                };
                states.extend_from_slice(cached.states.get(within).ok_or_else(missing)?);
            }
            self.visited(number)?;
        }
        Ok(states)
    }

    fn put(&self, first: u32, mut states: Vec<S>) -> Result<(), StoreError> {
        let vertices = first..first + states.len() as u32;
        for (number, within, at) in chunks(&vertices) {
            {
                let mut chunk = self.chunk(number)?;
                self.count(chunk.is_some());
                if within == (0..length(self.vertices, number)) {
                    // All that was asked for is one chunk, as a rule: then nothing is copied.
                    let is_all = within.len() == states.len();
                    let own = if is_all { std::mem::take(&mut states) } else { states[at..at + within.len()].to_vec() };
                    *chunk = Some(Cached { states: own, is_changed: true });
                } else {
                    let cached = match &mut *chunk {
                        Some(cached) => cached,
                        none => none.insert(Cached { states: self.read_below(number)?, is_changed: false }),
                    };
                    let own = &states[at..at + within.len()];
                    cached.states.get_mut(within).ok_or_else(missing)?.copy_from_slice(own);
                    cached.is_changed = true;
                }
            }
            self.visited(number)?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        for number in 0..self.chunks.len() {
            if let Some(cached) = &mut *self.chunk(number)? {
                self.write_below(number, cached)?;
            }
        }
        self.below.flush()
    }

    fn bytes(&self) -> StoreBytes {
        let StoreBytes { memory, disk } = self.below.bytes();
        let cached = self.residents.lock().map_or(0, |residents| residents.bytes());
        StoreBytes { memory: memory + cached, disk }
    }
}

/// A store that is shared.
impl<S: Value, I: StateStore<S> + ?Sized> StateStore<S> for std::sync::Arc<I> {
    fn read(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        (**self).read(vertices)
    }

    fn take(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        (**self).take(vertices)
    }

    fn put(&self, first: u32, states: Vec<S>) -> Result<(), StoreError> {
        (**self).put(first, states)
    }

    fn flush(&self) -> Result<(), StoreError> {
        (**self).flush()
    }

    fn bytes(&self) -> StoreBytes {
        (**self).bytes()
    }
}
