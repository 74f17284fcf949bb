//! An object of any length, written in parts while it is made.
//!
//! One part is in memory at a time. The object does not exist before the last part: a dropped upload leaves parts that
//! the store removes later, or a vacuum on a file system.

use object_store::{MultipartUpload, ObjectStoreExt};

use crate::{StorageError, Store};

/// An object that is being written in parts.
#[derive(Debug)]
pub struct Upload {
    store: Store,
    name: String,
    buffer: Vec<u8>,
    checksum: u32,
    parts: Option<Box<dyn MultipartUpload>>,
    rounds: u32,
}

impl Upload {
    pub(crate) fn new(store: &Store, name: &str) -> Self {
        Self { store: store.clone(), name: name.to_owned(), buffer: Vec::new(), checksum: 0, parts: None, rounds: 0 }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] if the store fails.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
        let part_bytes = self.store.part_bytes;
        let mut left = bytes;
        while !left.is_empty() {
            let (head, rest) = left.split_at(left.len().min(part_bytes - self.buffer.len()));
            let needed = self.buffer.len() + head.len();
            if needed > self.buffer.capacity() {
                // Doubled, but never beyond a part: several objects are written at a time.
                let capacity = needed.max(2 * self.buffer.capacity()).min(part_bytes);
                self.buffer.reserve_exact(capacity - self.buffer.len());
            }
            self.buffer.extend_from_slice(head);
            if self.buffer.len() == part_bytes {
                // Sent as soon as it is full, and awaited: one part is in memory, however long the object is.
                let part = std::mem::take(&mut self.buffer);
                self.send(part).await?;
            }
            left = rest;
        }
        Ok(())
    }

    /// Round trips that it has waited for so far, one after the other.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Round trips that [`Self::finish`] will wait for.
    pub fn rounds_left(&self) -> u32 {
        1 + u32::from(self.parts.is_some() && !self.buffer.is_empty())
    }

    async fn send(&mut self, part: Vec<u8>) -> Result<(), StorageError> {
        let failed = self.store.failed("write", &self.name);
        // Begun with the first full part only: a shorter object is one PUT instead of three requests.
        let parts = match &mut self.parts {
            Some(parts) => parts,
            None => {
                self.store.wrote(1, 0);
                self.rounds += 1;
                let path = self.store.path(&self.name);
                let begin = async { self.store.inner.put_multipart(&path).await.map_err(&failed) };
                let begun = self.store.in_time(begin).await?;
                self.parts.insert(begun)
            }
        };
        self.store.wrote(1, part.len());
        self.rounds += 1;
        let sent = parts.put_part(part.into());
        self.store.in_time(async { sent.await.map_err(&failed) }).await
    }

    /// Ends the object and returns the CRC-32C of all its bytes.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] if the store fails; then, as far as the store knows, the object does not exist.
    pub async fn finish(mut self) -> Result<u32, StorageError> {
        let rest = std::mem::take(&mut self.buffer);
        if self.parts.is_none() {
            self.store.put(&self.name, rest.into()).await?;
            return Ok(self.checksum);
        }
        if !rest.is_empty() {
            self.send(rest).await?;
        }
        if let Some(mut parts) = self.parts.take() {
            self.store.wrote(1, 0);
            let complete = async { parts.complete().await.map_err(self.store.failed("write", &self.name)) };
            self.store.in_time(complete).await?;
        }
        Ok(self.checksum)
    }

    /// Gives up: parts that were sent are removed.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] if the store fails; then parts may remain until the store expires them.
    pub async fn abort(mut self) -> Result<(), StorageError> {
        match self.parts.take() {
            Some(mut parts) => parts.abort().await.map_err(self.store.failed("abort", &self.name)),
            None => Ok(()),
        }
    }
}
