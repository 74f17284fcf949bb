//! Where the states of a program are kept. A program runs the same over any of them.
//!
//! A superstep reads and writes states in the order of vertices, a range at a time, from several threads. So a store on a disk
//! costs two passes over it, however little memory there is.
//!
//! | store | memory a vertex | on disk | use it |
//! | --- | --- | --- | --- |
//! | [`MemoryStore`] | the state | – | if it fits |
//! | [`CompressedStore`] | what zstd leaves of it | – | if states are alike: levels, components, ranks that most vertices share |
//! | [`SlotStore`] | the page cache's | the state | if memory is for the graph |
//! | [`KeyValueStore`] | a cache of its own | the state and its B-tree | next to a run that has one open anyway |
//! | [`CachedStore`] above one of them | what it is given | what is below | if the one below is slow |
//!
//! Stores that keep bytes take a [`Serialiser`]; slots are of a fixed width by their nature.

mod cached;
mod chunks;
mod compressed;
mod key_value;
mod memory;
mod place;
mod residents;
mod serialise;
mod slots;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::Value;

pub use cached::{CacheCounts, CachePolicy, CachedStore};
use chunks::CHUNK;
pub use compressed::CompressedStore;
pub use key_value::KeyValueStore;
pub use memory::MemoryStore;
pub(crate) use place::open_states;
pub use place::{States, StatesCache};
pub use serialise::{Compressed, FixedWidth, Generic, SerialiseError, Serialiser};
pub use slots::SlotStore;

/// Why states could not be read or written: where, and what the system said.
#[derive(Debug, thiserror::Error)]
#[error("{location}: {why}")]
pub struct StoreError {
    /// The file, or what else has the states.
    pub location: String,
    /// The reason.
    pub why: String,
}

impl StoreError {
    pub(crate) fn new(location: impl ToString, why: impl ToString) -> Self {
        Self { location: location.to_string(), why: why.to_string() }
    }
}

/// The states of vertices, by dense id. Those that were never written are the default value.
pub trait StateStore<S: Value>: Send + Sync {
    /// The states of a range, which stay as they are.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read, or are damaged.
    fn read(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError>;

    /// Takes the states of a range out to change them. They are written back before anyone else asks for them: a store in memory has
    /// no copy.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn take(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        self.read(vertices)
    }

    /// Writes states, of a vertex and those after it.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be written, as on a full disk.
    fn put(&self, first: u32, states: Vec<S>) -> Result<(), StoreError>;

    /// Writes what a cache has into the store below it. A run does so when it ends.
    ///
    /// # Errors
    /// As [`Self::put`]. What could not be written stays in the cache.
    fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// What the store takes now, in memory and on disk; for tables.
    fn bytes(&self) -> StoreBytes;
}

/// What a store takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreBytes {
    /// In memory that is its own, without the system's caches.
    pub memory: u64,
    /// On disk.
    pub disk: u64,
}
