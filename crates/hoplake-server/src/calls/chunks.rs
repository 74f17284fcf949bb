//! The chunks of a response on their way to the client: no more of it is in memory than is being sent.
//!
//! A protocol hands chunks of some 100 KB to a [`ChunkSender`], with the memory that they hold. When two of them wait for the client,
//! the call waits, within its deadline.

use std::sync::Arc;

use futures::{Stream, future::BoxFuture, stream};
use hoplake::{MemoryBudget, MemoryHold};
use hoplake_doors::Exchange;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::failure::{Failure, Reason};

/// Chunks that wait for the client.
const WAITING_MAX: usize = 2;

/// A chunk, or why there is none.
#[derive(Debug)]
pub(crate) struct Chunk<T> {
    item: Result<T, Failure>,
    hold: Option<MemoryHold>,
    /// Whether nothing follows it.
    is_last: bool,
}

/// Sends encoded chunks to the client.
#[derive(Debug)]
pub(crate) struct ChunkSender<T> {
    sender: mpsc::Sender<Chunk<T>>,
    memory: MemoryBudget,
}

/// Both ends of a channel; what waits in it counts in `memory`.
pub(crate) fn chunk_channel<T>(memory: &MemoryBudget) -> (ChunkSender<T>, mpsc::Receiver<Chunk<T>>) {
    // Bounded, so that a slow client slows its query down and its response does not pile up in memory.
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (ChunkSender { sender, memory: memory.clone() }, receiver)
}

impl<T: Send> ChunkSender<T> {
    /// Reserves memory for a chunk.
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
        self.pass(Chunk { item: Ok(item), hold: Some(hold), is_last: false }).await?;
        // Encoding is work: others have their turn between two chunks.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Sends the last chunk. It is encoded already, so it is sent even if its memory is not there.
    pub(crate) async fn send_last(&self, item: T, bytes: usize) {
        let hold = self.memory.hold(bytes as u64).ok();
        // No result: the call is over and has its line in the log, and a client that has disconnected needs nothing.
        let _ = self.pass(Chunk { item: Ok(item), hold, is_last: true }).await;
    }

    /// Ends with a failure.
    pub(crate) async fn fail(&self, failure: Failure) {
        // Holds no memory: the failure may be that there is none left, and it must get through.
        let _ = self.pass(Chunk { item: Err(failure), hold: None, is_last: true }).await;
    }

    async fn pass(&self, sent: Chunk<T>) -> Result<(), Failure> {
        self.sender.send(sent).await.map_err(|_| Failure::new(Reason::ShuttingDown, "the client has disconnected"))
    }
}

/// The chunks of a response on the side of the client. Dropping it ends the work that sends them.
pub(crate) struct Chunks<T> {
    first: Option<T>,
    receiver: mpsc::Receiver<Chunk<T>>,
    exchange: Arc<Exchange>,
    task: Option<AbortOnDropHandle<()>>,
    /// Whether one is marked as the last. Without it, the end of the channel is the end of the response.
    is_marked: bool,
    has_ended: bool,
}

impl<T: Send + 'static> Chunks<T> {
    /// Begins the work of a response, and waits for the first chunk.
    ///
    /// # Errors
    /// The failure of the work before the first chunk.
    pub(crate) async fn begin(
        mut work: BoxFuture<'static, ()>,
        mut receiver: mpsc::Receiver<Chunk<T>>,
        exchange: Arc<Exchange>,
    ) -> Result<Self, Failure> {
        // Most responses are one chunk, and need no task of their own.
        let (first, task) = tokio::select! {
            // The work first: if it ends at once, its chunks are in the channel, and one alone is known to be the last.
            biased;
            () = work.as_mut() => (receiver.recv().await, None),
            first = receiver.recv() => (first, Some(AbortOnDropHandle::new(tokio::spawn(work)))),
        };
        let Chunk { item, hold, is_last } = first.ok_or_else(broken_off)?;
        let first = Some(item?);
        exchange.hold_next(hold);
        Ok(Self { first, receiver, exchange, task, is_marked: true, has_ended: is_last })
    }

    /// Those of a stream, which may have none and no last one.
    pub(crate) fn of_stream(
        receiver: mpsc::Receiver<Chunk<T>>,
        exchange: Arc<Exchange>,
        task: AbortOnDropHandle<()>,
    ) -> Self {
        Self { first: None, receiver, exchange, task: Some(task), is_marked: false, has_ended: false }
    }

    /// The first chunk, if it is the only one.
    pub(crate) fn take_only(&mut self) -> Option<T> {
        if self.has_ended { self.first.take() } else { None }
    }

    async fn next(&mut self) -> Option<Result<T, Failure>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        if self.has_ended {
            return None;
        }
        let Some(Chunk { item, hold, is_last }) = self.receiver.recv().await else {
            self.has_ended = true;
            // Without its last chunk the task panicked, and what was sent must not pass for the whole response.
            return self.is_marked.then(|| Err(broken_off()));
        };
        self.has_ended = is_last;
        if is_last {
            self.task = None;
        }
        // Before the chunk is returned: the port gives the next bytes all memory that was handed.
        self.exchange.hold_next(hold);
        Some(item)
    }

    /// All of them.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<T, Failure>> + Send {
        stream::unfold(self, async |mut chunks| Some((chunks.next().await?, chunks)))
    }
}

fn broken_off() -> Failure {
    Failure::new(Reason::Internal, "the call broke off")
}
