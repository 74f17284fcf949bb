//! States as compressed blocks in memory.

use std::{ops::Range, sync::Mutex};

use super::{CHUNK, StateStore, StoreBytes, StoreError, chunks};
use crate::{
    Value,
    value::{decode, encode},
};

/// The fastest level that still finds repetitions.
const LEVEL: i32 = 1;

/// States as compressed blocks in memory, for states that are alike.
#[derive(Debug)]
pub struct CompressedStore<S> {
    /// Chunks as zstd has them; empty ones were never written.
    chunks: Vec<Mutex<Vec<u8>>>,
    vertices: u32,
    states: std::marker::PhantomData<fn() -> S>,
}

impl<S: Value> CompressedStore<S> {
    /// A store for this number of vertices.
    pub fn new(vertices: u32) -> Self {
        let chunks = (0..vertices.div_ceil(CHUNK)).map(|_| Mutex::default()).collect();
        Self { chunks, vertices, states: std::marker::PhantomData }
    }

    fn chunk(&self, number: usize) -> Result<std::sync::MutexGuard<'_, Vec<u8>>, StoreError> {
        let chunk = self.chunks.get(number).ok_or_else(|| failed("there are no states of such vertices"))?;
        chunk.lock().map_err(failed)
    }

    /// How many states a chunk has.
    fn length(&self, number: usize) -> usize {
        (self.vertices - number as u32 * CHUNK).min(CHUNK) as usize
    }

    fn open(&self, number: usize, bytes: &[u8]) -> Result<Vec<S>, StoreError> {
        let length = self.length(number);
        if bytes.is_empty() {
            return Ok(vec![S::default(); length]);
        }
        Ok(decode(&zstd::bulk::decompress(bytes, length * S::WIDTH).map_err(failed)?))
    }
}

fn failed(why: impl ToString) -> StoreError {
    StoreError::new("compressed states", why)
}

impl<S: Value> StateStore<S> for CompressedStore<S> {
    fn take(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        let mut taken = Vec::with_capacity(vertices.len());
        for (number, within, _) in chunks(&vertices) {
            let states = self.open(number, &self.chunk(number)?)?;
            taken.extend_from_slice(states.get(within).ok_or_else(|| failed("there are no states of such vertices"))?);
        }
        Ok(taken)
    }

    fn put(&self, first: u32, states: Vec<S>) -> Result<(), StoreError> {
        let vertices = first..first + states.len() as u32;
        for (number, within, at) in chunks(&vertices) {
            let mut chunk = self.chunk(number)?;
            let states = &states[at..at + within.len()];
            let bytes = if states.len() == self.length(number) {
                encode(states)
            } else {
                let mut whole = self.open(number, &chunk)?;
                let own = whole.get_mut(within).ok_or_else(|| failed("there are no states of such vertices"))?;
                own.copy_from_slice(states);
                encode(&whole)
            };
            *chunk = zstd::bulk::compress(&bytes, LEVEL).map_err(failed)?;
            // It has room for bytes that cannot be compressed.
            chunk.shrink_to_fit();
        }
        Ok(())
    }

    fn bytes(&self) -> StoreBytes {
        let memory: usize = self.chunks.iter().filter_map(|chunk| Some(chunk.lock().ok()?.capacity())).sum();
        StoreBytes { memory: memory as u64, disk: 0 }
    }
}
