//! Notes which blocks a reader asks the store for.
//!
//! It stands between the reader and the store, so that it sees what no cache had, after planning: each request
//! with the blocks it is to bring.

use std::{
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use futures::future::BoxFuture;
use hoplake_storage::{Fetched, FetchedObject, ObjectInfo, ObjectSource, StorageError, Store, Wanted};

/// A request and the blocks it is to bring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The object.
    pub object: String,
    /// The blocks, ascending.
    pub blocks: Vec<Range<u64>>,
}

/// A store that remembers what was asked of it.
#[derive(Debug)]
pub struct Recorder {
    store: Store,
    blocks: AtomicU64,
    /// `None` if only numbers are kept.
    sent: Mutex<Option<Vec<Sent>>>,
}

impl Recorder {
    /// Counts blocks only, until [`Self::keep`].
    pub fn new(store: Store) -> Self {
        Self { store, blocks: AtomicU64::new(0), sent: Mutex::new(None) }
    }

    /// Keeps each request from now on.
    pub fn keep(&self) {
        *self.sent.lock().expect("nothing panics with the list") = Some(Vec::new());
    }

    /// What was kept since the last call. Hedges and repetitions are not in it.
    pub fn take(&self) -> Vec<Sent> {
        let mut sent = self.sent.lock().expect("nothing panics with the list");
        sent.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Blocks that the store was asked for, each once.
    pub fn blocks(&self) -> u64 {
        self.blocks.load(Relaxed)
    }
}

impl ObjectSource for Recorder {
    fn is_store(&self) -> bool {
        true
    }

    fn get<'a>(&'a self, name: &'a str, attempt: u32) -> BoxFuture<'a, Result<FetchedObject, StorageError>> {
        ObjectSource::get(&self.store, name, attempt)
    }

    fn fetch<'a>(
        &'a self,
        name: &'a str,
        blocks: &'a [Wanted],
        attempt: u32,
    ) -> BoxFuture<'a, Result<Fetched, StorageError>> {
        if attempt == 0 {
            self.blocks.fetch_add(blocks.len() as u64, Relaxed);
            if let Some(sent) = &mut *self.sent.lock().expect("nothing panics with the list") {
                let blocks = blocks.iter().map(|block| block.range.clone()).collect();
                sent.push(Sent { object: name.to_owned(), blocks });
            }
        }
        self.store.fetch(name, blocks, attempt)
    }

    fn list<'a>(&'a self, folder: &'a str) -> BoxFuture<'a, Result<Vec<ObjectInfo>, StorageError>> {
        ObjectSource::list(&self.store, folder)
    }

    fn diagnose<'a>(&'a self, name: &'a str, blocks: &'a [Wanted], error: StorageError) -> BoxFuture<'a, StorageError> {
        ObjectSource::diagnose(&self.store, name, blocks, error)
    }
}
