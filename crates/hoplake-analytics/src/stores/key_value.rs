//! States in an embedded key-value store.

use std::{marker::PhantomData, ops::Range, path::Path};

use redb::{Builder, Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use super::{CHUNK, StateStore, StoreBytes, StoreError, chunks};
use crate::{
    Value,
    value::{decode, encode},
};

/// Chunks of states, by number.
const STATES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("states");

/// States in an embedded key-value store (redb), a chunk a key.
#[derive(Debug)]
pub struct KeyValueStore<S> {
    database: Database,
    path: std::path::PathBuf,
    vertices: u32,
    cache_bytes: usize,
    states: PhantomData<fn() -> S>,
}

impl<S: Value> KeyValueStore<S> {
    /// A store for this number of vertices, in a file that it makes or goes on with; it keeps at most `cache_bytes` of it in memory.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be made, or is not one of redb.
    pub fn open(path: &Path, vertices: u32, cache_bytes: usize) -> Result<Self, StoreError> {
        let failed = |why: &dyn ToString| StoreError::new(path.display(), why.to_string());
        let database = Builder::new().set_cache_size(cache_bytes).create(path).map_err(|error| failed(&error))?;
        let store = Self { database, path: path.to_owned(), vertices, cache_bytes, states: PhantomData };
        // Readers need the table to be there.
        store.write(|_| Ok(()))?;
        Ok(store)
    }

    fn failed(&self, why: impl ToString) -> StoreError {
        StoreError::new(self.path.display(), why)
    }

    fn length(&self, chunk: usize) -> usize {
        self.vertices.saturating_sub(chunk as u32 * CHUNK).min(CHUNK) as usize
    }

    fn write(&self, change: impl FnOnce(&mut Table<'_>) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let mut transaction = self.database.begin_write().map_err(|error| self.failed(error))?;
        // States of a run that was stopped are written anew from its checkpoint: no superstep waits for the disk.
        transaction.set_durability(Durability::None).map_err(|error| self.failed(error))?;
        change(&mut transaction.open_table(STATES).map_err(|error| self.failed(error))?)?;
        transaction.commit().map_err(|error| self.failed(error))
    }

    fn decoded(&self, chunk: usize, bytes: Option<&[u8]>) -> Result<Vec<S>, StoreError> {
        let length = self.length(chunk);
        let states = bytes.map_or_else(|| vec![S::default(); length], decode);
        if states.len() != length {
            let why = format!("chunk {chunk} has {} states, not {length}", states.len());
            return Err(self.failed(why));
        }
        Ok(states)
    }
}

type Table<'a> = redb::Table<'a, u32, &'static [u8]>;

impl<S: Value> StateStore<S> for KeyValueStore<S> {
    fn take(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        let transaction = self.database.begin_read().map_err(|error| self.failed(error))?;
        let table = transaction.open_table(STATES).map_err(|error| self.failed(error))?;
        let mut taken = Vec::with_capacity(vertices.len());
        for (chunk, within, _) in chunks(&vertices) {
            let bytes = table.get(chunk as u32).map_err(|error| self.failed(error))?;
            let states = self.decoded(chunk, bytes.as_ref().map(|bytes| bytes.value()))?;
            let own = states.get(within).ok_or_else(|| self.failed("there are no states of such vertices"))?;
            taken.extend_from_slice(own);
        }
        Ok(taken)
    }

    fn put(&self, first: u32, states: Vec<S>) -> Result<(), StoreError> {
        let vertices = first..first + states.len() as u32;
        self.write(|table| {
            for (chunk, within, at) in chunks(&vertices) {
                let own = &states[at..at + within.len()];
                if own.len() == self.length(chunk) {
                    table.insert(chunk as u32, encode(own).as_slice()).map_err(|error| self.failed(error))?;
                    continue;
                }
                let bytes = table.get(chunk as u32).map_err(|error| self.failed(error))?;
                let mut whole = self.decoded(chunk, bytes.as_ref().map(|bytes| bytes.value()))?;
                drop(bytes);
                let slots = whole.get_mut(within).ok_or_else(|| self.failed("there are no states of such vertices"))?;
                slots.copy_from_slice(own);
                table.insert(chunk as u32, encode(&whole).as_slice()).map_err(|error| self.failed(error))?;
            }
            Ok(())
        })
    }

    fn bytes(&self) -> StoreBytes {
        let disk = std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        StoreBytes { memory: self.cache_bytes as u64, disk }
    }
}
