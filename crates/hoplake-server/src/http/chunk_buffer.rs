//! Bytes of a response that wait until they are a whole chunk.

use axum::body::Bytes;

use crate::{
    calls::ChunkSender,
    failure::{Failure, Reason},
};

/// A chunk is sent when it has this many bytes.
const CHUNK_BYTES: usize = 128 << 10;

/// A response that is sent in chunks. A short one is one chunk, which has its length.
pub(super) struct ChunkBuffer {
    pub(super) bytes: Vec<u8>,
    is_sent: bool,
    sender: ChunkSender<Bytes>,
}

impl ChunkBuffer {
    pub(super) fn new(sender: ChunkSender<Bytes>) -> Self {
        Self { bytes: Vec::new(), is_sent: false, sender }
    }

    /// Whether a chunk was sent, after which a failure cannot have a status any more.
    pub(super) fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// Appends a value as JSON.
    pub(super) fn write_json<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.bytes, value).map_err(unwritable)
    }

    /// Sends what is a whole chunk. The rest leaves with [`Self::finish`].
    pub(super) async fn flush(&mut self) -> Result<(), Failure> {
        if self.bytes.len() < CHUNK_BYTES {
            return Ok(());
        }
        self.is_sent = true;
        let chunk = std::mem::take(&mut self.bytes);
        // Its capacity, not its length: that is what is allocated until the socket has the chunk.
        let hold = self.sender.hold(chunk.capacity())?;
        self.sender.send(chunk.into(), hold).await
    }

    /// Sends the rest.
    pub(super) async fn finish(self) {
        let bytes = self.bytes.capacity();
        self.sender.send_last(self.bytes.into(), bytes).await;
    }

    /// Ends with a failure: before the first chunk it is another response, and later it breaks the body off.
    pub(super) async fn fail(self, failure: Failure) {
        self.sender.fail(failure).await;
    }
}

/// The failure to encode a response.
pub(super) fn unwritable(error: impl std::fmt::Display) -> Failure {
    Failure::new(Reason::Internal, format!("the answer cannot be written: {error}"))
}
