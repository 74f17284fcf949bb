//! Chunks: the states of consecutive vertices that a store has as one piece.

use std::{fmt::Display, ops::Range, sync::Arc};

use super::{FixedWidth, SerialiseError, Serialiser};
use crate::Value;

/// States of consecutive vertices that memory has as one piece.
pub(super) const CHUNK: u32 = 1 << 14;

/// The chunks that a range touches: number, range within, and where that begins in the range.
pub(super) fn chunks(vertices: &Range<u32>) -> impl Iterator<Item = (usize, Range<usize>, usize)> + use<> {
    let Range { start, end } = *vertices;
    let numbers = if start < end { start / CHUNK..(end - 1) / CHUNK + 1 } else { 0..0 };
    numbers.map(move |number| {
        let first = number * CHUNK;
        let within = start.max(first)..end.min(first.saturating_add(CHUNK));
        let at = (within.start - start) as usize;
        (number as usize, (within.start - first) as usize..(within.end - first) as usize, at)
    })
}

/// How many states a chunk has, of this number of vertices.
pub(super) fn length(vertices: u32, number: usize) -> usize {
    let first = u32::try_from(number).ok().and_then(|number| number.checked_mul(CHUNK));
    first.map_or(0, |first| vertices.saturating_sub(first).min(CHUNK) as usize)
}

/// How a store has its chunks as bytes.
#[derive(Debug)]
pub(super) struct ChunkForm<S> {
    pub(super) vertices: u32,
    pub(super) serialiser: Arc<dyn Serialiser<S>>,
}

impl<S: Value> ChunkForm<S> {
    pub(super) fn new(vertices: u32) -> Self {
        Self { vertices, serialiser: Arc::new(FixedWidth) }
    }

    /// The states of a chunk; the default ones if it was never written.
    pub(super) fn read(&self, number: usize, bytes: Option<&[u8]>) -> Result<Vec<S>, SerialiseError> {
        let length = length(self.vertices, number);
        let Some(bytes) = bytes else { return Ok(vec![S::default(); length]) };
        self.serialiser.read(bytes, length).map_err(|why| of_chunk(number, &why))
    }

    /// The same, of a part of it.
    pub(super) fn read_within(
        &self,
        number: usize,
        bytes: Option<&[u8]>,
        within: Range<usize>,
        into: &mut Vec<S>,
    ) -> Result<(), SerialiseError> {
        into.extend_from_slice(self.read(number, bytes)?.get(within).ok_or_else(missing)?);
        Ok(())
    }

    /// The bytes of a chunk in which these states have changed. `before` returns those that it had: it is asked only if others stay.
    pub(super) fn write<E: From<SerialiseError>, B: AsRef<[u8]>>(
        &self,
        number: usize,
        within: Range<usize>,
        states: &[S],
        before: impl FnOnce() -> Result<Option<B>, E>,
    ) -> Result<Vec<u8>, E> {
        let bytes = if states.len() == length(self.vertices, number) {
            self.serialiser.write(states)
        } else {
            let before = before()?;
            let mut whole = self.read(number, before.as_ref().map(AsRef::as_ref))?;
            whole.get_mut(within).ok_or_else(missing)?.copy_from_slice(states);
            self.serialiser.write(&whole)
        };
        Ok(bytes.map_err(|why| of_chunk(number, &why))?)
    }
}

fn of_chunk(number: usize, why: &dyn Display) -> SerialiseError {
    SerialiseError::new(format_args!("chunk {number}: {why}"))
}

fn missing() -> SerialiseError {
    SerialiseError::new("there are no states of such vertices")
}
