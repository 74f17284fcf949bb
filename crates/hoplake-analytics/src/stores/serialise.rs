//! How states become bytes, in the stores that keep bytes.
//!
//! | serialiser | bytes of a state | use it |
//! | --- | --- | --- |
//! | [`FixedWidth`] | [`Value::WIDTH`] | unless there is a reason not to: it is the fastest |
//! | [`Generic`] | what `serde` and postcard make of it: small integers take one byte | if integers are small |
//! | [`Compressed`] | what zstd leaves of either | if states are alike and the store is slow |
//!
//! A serialiser gets a chunk of states, so that none has a length of its own: there are as many as the chunk has vertices.

use std::{fmt, io};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Value,
    value::{decode, encode},
};

/// The fastest level that still finds repetitions.
const LEVEL: i32 = 1;

/// Why states could not become bytes, or bytes states.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SerialiseError(String);

impl SerialiseError {
    /// An error with a reason, such as "its state has no value `x`".
    pub fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }
}

/// Makes bytes of states, and states of bytes. Bytes may come from a damaged file: whatever they are, there is an error and no panic.
pub trait Serialiser<S>: Send + Sync + fmt::Debug {
    /// The bytes of some states.
    ///
    /// # Errors
    /// [`SerialiseError`] if a state has no such form.
    fn write(&self, states: &[S]) -> Result<Vec<u8>, SerialiseError>;

    /// The states that [`Self::write`] made bytes of.
    ///
    /// # Errors
    /// [`SerialiseError`] if they are not the bytes of this number of states.
    fn read(&self, bytes: &[u8], count: usize) -> Result<Vec<S>, SerialiseError>;

    /// The most bytes that this number of states may take; what is compressed is opened within this bound.
    fn bytes_max(&self, count: usize) -> usize;
}

/// Each state in its [`Value::WIDTH`], little-endian.
#[derive(Debug, Clone, Copy, Default)]
pub struct FixedWidth;

impl<S: Value> Serialiser<S> for FixedWidth {
    fn write(&self, states: &[S]) -> Result<Vec<u8>, SerialiseError> {
        Ok(encode(states))
    }

    fn read(&self, bytes: &[u8], count: usize) -> Result<Vec<S>, SerialiseError> {
        if bytes.len() != Serialiser::<S>::bytes_max(self, count) {
            let why = format!("{} bytes are not {count} states of {} bytes each", bytes.len(), S::WIDTH);
            return Err(SerialiseError(why));
        }
        Ok(decode(bytes))
    }

    fn bytes_max(&self, count: usize) -> usize {
        count.saturating_mul(S::WIDTH)
    }
}

/// The form that postcard gives any type of `serde`: integers of more than a byte take as many bytes as their value needs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Generic;

impl<S: Value + Serialize + DeserializeOwned> Serialiser<S> for Generic {
    fn write(&self, states: &[S]) -> Result<Vec<u8>, SerialiseError> {
        let mut bytes = Vec::with_capacity(states.len() * S::WIDTH);
        for state in states {
            bytes = postcard::to_extend(state, bytes).map_err(SerialiseError::new)?;
        }
        let most = Serialiser::<S>::bytes_max(self, states.len());
        match bytes.len() <= most {
            true => Ok(bytes),
            false => Err(SerialiseError(format!("{} states take {} bytes, and not {most}", states.len(), bytes.len()))),
        }
    }

    fn read(&self, mut bytes: &[u8], count: usize) -> Result<Vec<S>, SerialiseError> {
        let mut states = Vec::with_capacity(count);
        for number in 0..count {
            let (state, rest) = postcard::take_from_bytes(bytes)
                .map_err(|error| SerialiseError(format!("state {number} of {count} cannot be read: {error}")))?;
            states.push(state);
            bytes = rest;
        }
        match bytes.len() {
            0 => Ok(states),
            left => Err(SerialiseError(format!("{left} bytes are left behind {count} states"))),
        }
    }

    /// Integers take at most one byte in seven more than their width, so that this is far above what a state of numbers takes.
    fn bytes_max(&self, count: usize) -> usize {
        count.saturating_mul(4 * S::WIDTH + 16)
    }
}

/// What zstd leaves of the bytes of another serialiser.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compressed<I>(pub I);

impl<S, I: Serialiser<S>> Serialiser<S> for Compressed<I> {
    fn write(&self, states: &[S]) -> Result<Vec<u8>, SerialiseError> {
        let mut bytes = zstd::bulk::compress(&self.0.write(states)?, LEVEL).map_err(SerialiseError::new)?;
        // It has room for bytes that cannot be compressed.
        bytes.shrink_to_fit();
        Ok(bytes)
    }

    fn read(&self, bytes: &[u8], count: usize) -> Result<Vec<S>, SerialiseError> {
        let damaged = |error: io::Error| SerialiseError(format!("it is not what zstd wrote: {error}"));
        // The frame says how long its content is, which may be a lie.
        let said = zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten().unwrap_or(0);
        let most = self.0.bytes_max(count);
        let capacity = usize::try_from(said).unwrap_or(usize::MAX).min(most);
        self.0.read(&zstd::bulk::decompress(bytes, capacity).map_err(damaged)?, count)
    }

    fn bytes_max(&self, count: usize) -> usize {
        zstd::zstd_safe::compress_bound(self.0.bytes_max(count))
    }
}
