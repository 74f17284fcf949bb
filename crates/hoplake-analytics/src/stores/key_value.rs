//! States in an embedded key-value store.

use std::{ops::Range, path::Path, sync::Arc};

use redb::{Builder, Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use super::{
    SerialiseError, Serialiser, StateStore, StoreBytes, StoreError,
    chunks::{ChunkForm, chunks},
};
use crate::Value;

/// Chunks of states, by number.
const STATES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("states");

/// States in an embedded key-value store (redb), a chunk a key.
#[derive(Debug)]
pub struct KeyValueStore<S> {
    database: Database,
    path: std::path::PathBuf,
    cache_bytes: usize,
    form: ChunkForm<S>,
}

impl<S: Value> KeyValueStore<S> {
    /// A store for this number of vertices, in a file that it makes or goes on with; it keeps at most `cache_bytes` of it in memory.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be made, or is not one of redb.
    pub fn open(path: &Path, vertices: u32, cache_bytes: usize) -> Result<Self, StoreError> {
        let failed = |why: &dyn ToString| StoreError::new(path.display(), why.to_string());
        let database = Builder::new().set_cache_size(cache_bytes).create(path).map_err(|error| failed(&error))?;
        let store = Self { database, path: path.to_owned(), cache_bytes, form: ChunkForm::new(vertices) };
        // Readers need the table to be there.
        store.write(|_| Ok(()))?;
        Ok(store)
    }

    /// The same with another serialiser; a file that is there has to be of the same one.
    #[must_use]
    pub fn with_serialiser(mut self, serialiser: impl Serialiser<S> + 'static) -> Self {
        self.form.serialiser = Arc::new(serialiser);
        self
    }

    fn failed(&self, why: impl ToString) -> StoreError {
        StoreError::new(self.path.display(), why)
    }

    fn write(&self, change: impl FnOnce(&mut Table<'_>) -> Result<(), Failure>) -> Result<(), StoreError> {
        let mut transaction = self.database.begin_write().map_err(|error| self.failed(error))?;
        // States of a run that was stopped are written anew from its checkpoint: no superstep waits for the disk.
        transaction.set_durability(Durability::None).map_err(|error| self.failed(error))?;
        change(&mut transaction.open_table(STATES).map_err(|error| self.failed(error))?)
            .map_err(|Failure(why)| self.failed(why))?;
        transaction.commit().map_err(|error| self.failed(error))
    }
}

type Table<'a> = redb::Table<'a, u32, &'static [u8]>;

/// Why a change failed; the store adds where.
struct Failure(String);

impl From<SerialiseError> for Failure {
    fn from(error: SerialiseError) -> Self {
        Self(error.to_string())
    }
}

impl From<redb::StorageError> for Failure {
    fn from(error: redb::StorageError) -> Self {
        Self(error.to_string())
    }
}

impl<S: Value> StateStore<S> for KeyValueStore<S> {
    fn read(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        let transaction = self.database.begin_read().map_err(|error| self.failed(error))?;
        let table = transaction.open_table(STATES).map_err(|error| self.failed(error))?;
        let mut states = Vec::with_capacity(vertices.len());
        for (chunk, within, _) in chunks(&vertices) {
            let bytes = table.get(chunk as u32).map_err(|error| self.failed(error))?;
            let bytes = bytes.as_ref().map(|bytes| bytes.value());
            self.form.read_within(chunk, bytes, within, &mut states).map_err(|error| self.failed(error))?;
        }
        Ok(states)
    }

    fn put(&self, first: u32, states: Vec<S>) -> Result<(), StoreError> {
        let vertices = first..first + states.len() as u32;
        self.write(|table| {
            for (chunk, within, at) in chunks(&vertices) {
                let own = &states[at..at + within.len()];
                let before = || Ok::<_, Failure>(table.get(chunk as u32)?.map(|bytes| bytes.value().to_vec()));
                let bytes = self.form.write(chunk, within, own, before)?;
                table.insert(chunk as u32, bytes.as_slice())?;
            }
            Ok(())
        })
    }

    fn bytes(&self) -> StoreBytes {
        let disk = std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        StoreBytes { memory: self.cache_bytes as u64, disk }
    }
}
