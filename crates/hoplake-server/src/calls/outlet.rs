//! The way of an answer from its call to the client: part by part, so that no more of it is in memory than is being
//! sent.
//!
//! A call puts [`Part`]s, which borrow from what it read. A protocol encodes each at once, and hands pieces of some 100
//! KB to an [`Outlet`], with the memory that they hold. When two pieces wait for the client, the call waits, within its
//! deadline.

use futures::future::BoxFuture;
use hoplake::{EdgeSlice, Graph, Key, MemoryBudget, MemoryHold, VertexId, gremlin};
use tokio::sync::mpsc;

use super::{EdgeColumns, LabelRows, NamedPath, ValueRows};
use crate::failure::{Failure, Reason};

/// Pieces that wait for the client.
const WAITING_MAX: usize = 2;

/// A part of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<'a> {
    /// Edges, with the keys of the vertices reached if requested, and with properties of their own if any is. An answer has at least one such
    /// part, which may be empty.
    Edges { graph: &'a Graph, edges: EdgeSlice<'a>, keys: Option<&'a [Key]>, columns: &'a EdgeColumns },
    /// Vertices at a depth. Each depth has at least one part, which may be empty.
    Vertices { depth: u32, vertices: &'a [VertexId] },
    /// Rows of one label.
    Rows(&'a LabelRows),
    /// Rows of one label that a scan found, without ids.
    Found(&'a LabelRows),
    /// Rows of one label, each with the value that a job computed.
    Values(&'a ValueRows),
    /// Walks.
    Paths(&'a [NamedPath]),
    /// Results of Gremlin, each with how many times it stands there.
    Results(&'a [(gremlin::value::Value, u64)]),
}

/// The consumer of the parts of an answer.
pub(crate) trait Parts: Send {
    /// Encodes a part, and waits until there is room for it.
    fn put<'a>(&'a mut self, part: Part<'a>) -> BoxFuture<'a, Result<(), Failure>>;
}

/// A piece on its way, or why there is none.
#[derive(Debug)]
pub(crate) struct Sent<T> {
    pub(crate) item: Result<T, Failure>,
    pub(crate) hold: Option<MemoryHold>,
    /// Whether nothing follows it.
    pub(crate) last: bool,
}

/// Takes encoded pieces to the client.
#[derive(Debug)]
pub(crate) struct Outlet<T> {
    sender: mpsc::Sender<Sent<T>>,
    memory: MemoryBudget,
}

/// Both ends of a way; what is on it counts in `memory`.
pub(crate) fn outlet<T>(memory: &MemoryBudget) -> (Outlet<T>, mpsc::Receiver<Sent<T>>) {
    // Bounded, so that a slow client slows its query down and its answer does not pile up in memory.
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (Outlet { sender, memory: memory.clone() }, receiver)
}

impl<T: Send> Outlet<T> {
    /// Reserves memory for a piece of the answer.
    ///
    /// # Errors
    /// [`Reason::Limit`] if there is none.
    pub(crate) fn hold(&self, bytes: usize) -> Result<MemoryHold, Failure> {
        Ok(self.memory.hold(bytes as u64)?)
    }

    /// Sends a piece with its memory, when there is room for it.
    ///
    /// # Errors
    /// [`Reason::ShuttingDown`] if the client has disconnected.
    pub(crate) async fn send(&self, item: T, hold: MemoryHold) -> Result<(), Failure> {
        self.pass(Sent { item: Ok(item), hold: Some(hold), last: false }).await?;
        // Encoding is work: others have their turn between two pieces.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Sends the last piece. It is encoded already, so it is sent even if its memory is not there.
    pub(crate) async fn send_last(&self, item: T, bytes: usize) {
        let hold = self.memory.hold(bytes as u64).ok();
        // No result: the call is over and has its line in the log, and a client that has disconnected needs nothing.
        let _ = self.pass(Sent { item: Ok(item), hold, last: true }).await;
    }

    /// Ends with a failure.
    pub(crate) async fn fail(&self, failure: Failure) {
        // Holds no memory: the failure may be that there is none left, and it must get through.
        let _ = self.pass(Sent { item: Err(failure), hold: None, last: true }).await;
    }

    async fn pass(&self, sent: Sent<T>) -> Result<(), Failure> {
        self.sender.send(sent).await.map_err(|_| Failure::new(Reason::ShuttingDown, "the client has disconnected"))
    }
}
