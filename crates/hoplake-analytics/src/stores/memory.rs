//! States as arrays in memory.

use std::{
    ops::Range,
    sync::{Mutex, MutexGuard},
};

use super::{CHUNK, StateStore, StoreBytes, StoreError, chunks::chunks};
use crate::Value;

/// States as arrays in memory: the fastest store.
#[derive(Debug)]
pub struct MemoryStore<S> {
    /// A lock a chunk: threads work on different ones.
    chunks: Vec<Mutex<Vec<S>>>,
}

impl<S: Value> MemoryStore<S> {
    /// A store for this number of vertices.
    pub fn new(vertices: u32) -> Self {
        let chunks = (0..vertices).step_by(CHUNK as usize).map(|first| (vertices - first).min(CHUNK));
        Self { chunks: chunks.map(|length| Mutex::new(vec![S::default(); length as usize])).collect() }
    }

    fn chunk(&self, number: usize) -> Result<MutexGuard<'_, Vec<S>>, StoreError> {
        self.chunks.get(number).ok_or_else(missing)?.lock().map_err(|_| missing())
    }
}

fn missing() -> StoreError {
    StoreError::new("states in memory", "there are no states of such vertices")
}

impl<S: Value> StateStore<S> for MemoryStore<S> {
    fn read(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        let mut states = Vec::with_capacity(vertices.len());
        for (number, within, _) in chunks(&vertices) {
            let chunk = self.chunk(number)?;
            states.extend_from_slice(chunk.get(within).ok_or_else(missing)?);
        }
        Ok(states)
    }

    fn take(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        let mut whole = chunks(&vertices).filter(|(_, within, _)| within.len() == vertices.len());
        if let Some((number, within, _)) = whole.next() {
            let mut chunk = self.chunk(number)?;
            // A whole chunk changes hands: nothing is copied.
            if within == (0..chunk.len()) {
                return Ok(std::mem::take(&mut *chunk));
            }
        }
        self.read(vertices)
    }

    fn put(&self, first: u32, states: Vec<S>) -> Result<(), StoreError> {
        let vertices = first..first + states.len() as u32;
        for (number, within, at) in chunks(&vertices) {
            let mut chunk = self.chunk(number)?;
            if chunk.is_empty() && within.len() == states.len() {
                *chunk = states;
                return Ok(());
            }
            let own = &states[at..at + within.len()];
            chunk.get_mut(within).ok_or_else(missing)?.copy_from_slice(own);
        }
        Ok(())
    }

    fn bytes(&self) -> StoreBytes {
        let states: usize = self.chunks.iter().filter_map(|chunk| Some(chunk.lock().ok()?.len())).sum();
        StoreBytes { memory: (states * size_of::<S>()) as u64, disk: 0 }
    }
}
