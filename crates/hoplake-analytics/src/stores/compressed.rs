//! States as compressed blocks in memory.

use std::{
    ops::Range,
    sync::{Arc, Mutex},
};

use super::{
    CHUNK, Compressed, FixedWidth, SerialiseError, Serialiser, StateStore, StoreBytes, StoreError,
    chunks::{ChunkForm, chunks},
};
use crate::Value;

/// States as compressed blocks in memory, for states that are alike.
#[derive(Debug)]
pub struct CompressedStore<S> {
    /// Empty ones were never written.
    chunks: Vec<Mutex<Vec<u8>>>,
    form: ChunkForm<S>,
}

impl<S: Value> CompressedStore<S> {
    /// A store for this number of vertices.
    pub fn new(vertices: u32) -> Self {
        let chunks = (0..vertices.div_ceil(CHUNK)).map(|_| Mutex::default()).collect();
        Self { chunks, form: ChunkForm { vertices, serialiser: Arc::new(Compressed(FixedWidth)) } }
    }

    /// The same with another serialiser, such as `Compressed(Generic)`, before anything is written.
    #[must_use]
    pub fn with_serialiser(mut self, serialiser: impl Serialiser<S> + 'static) -> Self {
        self.form.serialiser = Arc::new(serialiser);
        self
    }

    fn chunk(&self, number: usize) -> Result<std::sync::MutexGuard<'_, Vec<u8>>, StoreError> {
        let chunk = self.chunks.get(number).ok_or_else(|| failed("there are no states of such vertices"))?;
        chunk.lock().map_err(failed)
    }
}

fn failed(why: impl ToString) -> StoreError {
    StoreError::new("compressed states", why)
}

/// The bytes of a chunk, if it was written.
fn written(chunk: &[u8]) -> Option<&[u8]> {
    Some(chunk).filter(|bytes| !bytes.is_empty())
}

impl<S: Value> StateStore<S> for CompressedStore<S> {
    fn read(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        let mut states = Vec::with_capacity(vertices.len());
        for (number, within, _) in chunks(&vertices) {
            self.form.read_within(number, written(&self.chunk(number)?), within, &mut states).map_err(failed)?;
        }
        Ok(states)
    }

    fn put(&self, first: u32, states: Vec<S>) -> Result<(), StoreError> {
        let vertices = first..first + states.len() as u32;
        for (number, within, at) in chunks(&vertices) {
            let mut chunk = self.chunk(number)?;
            let own = &states[at..at + within.len()];
            let bytes = self.form.write::<SerialiseError, _>(number, within, own, || Ok(written(&chunk)));
            *chunk = bytes.map_err(failed)?;
        }
        Ok(())
    }

    fn bytes(&self) -> StoreBytes {
        let memory: usize = self.chunks.iter().filter_map(|chunk| Some(chunk.lock().ok()?.capacity())).sum();
        StoreBytes { memory: memory as u64, disk: 0 }
    }
}
