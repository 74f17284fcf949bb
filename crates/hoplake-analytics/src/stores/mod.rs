//! Stores for the states of a program. A program computes the same with any of them.
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
//! | [`CachedStore`] above one of them | its budget | the store below | if the store below is slow |
//!
//! [`States`] selects one by text or value. It does not include the compressed store, which callers of [`run()`](crate::run()) can pass.
//!
//! Stores of bytes take a [`Serialiser`]; slots have a fixed width.

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

/// Why states could not be read or written: the location and the system's message.
#[derive(Debug, thiserror::Error)]
#[error("{location}: {why}")]
pub struct StoreError {
    /// The file, or another name of the store.
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

    /// Takes the states of a range out to change them. The caller writes them back before the next read of the range: a store in memory has
    /// no copy.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn take(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        self.read(vertices)
    }

    /// Writes the states of consecutive vertices from `first` on.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be written, as on a full disk.
    fn put(&self, first: u32, states: Vec<S>) -> Result<(), StoreError>;

    /// Writes the changes in a cache into the store below it. A run does so at its end.
    ///
    /// # Errors
    /// As [`Self::put`]. States that could not be written stay in the cache.
    fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The current size of the store, in memory and on disk; for tables.
    fn bytes(&self) -> StoreBytes;
}

/// The size of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreBytes {
    /// In its own memory, without the system's caches.
    pub memory: u64,
    /// On disk.
    pub disk: u64,
}
