//! The way of an answer from its call to the client: part by part, so that no more of it is in memory than is being
//! sent.
//!
//! A call puts [`Part`]s, which borrow from what it read. A protocol encodes each at once, and hands chunks of some 100
//! KB to an [`ChunkSender`], with the memory that they hold. When two chunks wait for the client, the call waits, within its
//! deadline.

use hoplake::{MemoryBudget, MemoryHold};
use tokio::sync::mpsc;

use crate::failure::{Failure, Reason};

/// Chunks that wait for the client.
const WAITING_MAX: usize = 2;

/// A chunk on its way, or why there is none.
#[derive(Debug)]
pub(crate) struct Chunk<T> {
    pub(crate) item: Result<T, Failure>,
    pub(crate) hold: Option<MemoryHold>,
    /// Whether nothing follows it.
    pub(crate) last: bool,
}

/// Takes encoded chunks to the client.
#[derive(Debug)]
pub(crate) struct ChunkSender<T> {
    sender: mpsc::Sender<Chunk<T>>,
    memory: MemoryBudget,
}

/// Both ends of a way; what is on it counts in `memory`.
pub(crate) fn chunk_channel<T>(memory: &MemoryBudget) -> (ChunkSender<T>, mpsc::Receiver<Chunk<T>>) {
    // Bounded, so that a slow client slows its query down and its answer does not pile up in memory.
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (ChunkSender { sender, memory: memory.clone() }, receiver)
}

impl<T: Send> ChunkSender<T> {
    /// Reserves memory for a chunk of the answer.
    ///
    /// # Errors
    /// [`Reason::Limit`] if there is none.
    pub(crate) fn hold(&self, bytes: usize) -> Result<MemoryHold, Failure> {
        Ok(self.memory.hold(bytes as u64)?)
    }

    /// Sends a chunk with its memory, when there is room for it.
    ///
    /// # Errors
    /// [`Reason::ShuttingDown`] if the client has disconnected.
    pub(crate) async fn send(&self, item: T, hold: MemoryHold) -> Result<(), Failure> {
        self.pass(Chunk { item: Ok(item), hold: Some(hold), last: false }).await?;
        // Encoding is work: others have their turn between two chunks.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Sends the last chunk. It is encoded already, so it is sent even if its memory is not there.
    pub(crate) async fn send_last(&self, item: T, bytes: usize) {
        let hold = self.memory.hold(bytes as u64).ok();
        // No result: the call is over and has its line in the log, and a client that has disconnected needs nothing.
        let _ = self.pass(Chunk { item: Ok(item), hold, last: true }).await;
    }

    /// Ends with a failure.
    pub(crate) async fn fail(&self, failure: Failure) {
        // Holds no memory: the failure may be that there is none left, and it must get through.
        let _ = self.pass(Chunk { item: Err(failure), hold: None, last: true }).await;
    }

    async fn pass(&self, sent: Chunk<T>) -> Result<(), Failure> {
        self.sender.send(sent).await.map_err(|_| Failure::new(Reason::ShuttingDown, "the client has disconnected"))
    }
}
