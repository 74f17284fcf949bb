//! From accepting to ended: what everyone in the server can ask or wait for.

use tokio_util::sync::{CancellationToken, DropGuard};

/// The stages of a server's end. Cheap to clone; all clones share the stage.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lifecycle {
    // Tokens stay cancelled: who waits for a stage after it has begun sees it at once. Both can be awaited independently,
    // since a query ignores the first and ends with the second.
    draining: CancellationToken,
    ending: CancellationToken,
}

impl Lifecycle {
    /// The server is about to end: probes fail, long streams take no more queries.
    pub(crate) fn drain(&self) {
        self.draining.cancel();
    }

    /// Begins the end when this is dropped, however the server was left.
    pub(crate) fn drain_on_drop(&self) -> DropGuard {
        self.draining.clone().drop_guard()
    }

    /// The time for running queries is over.
    pub(crate) fn end(&self) {
        self.ending.cancel();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Waits until the server is about to end.
    pub(crate) async fn drained(&self) {
        self.draining.cancelled().await;
    }

    /// Waits until the time for running queries is over.
    pub(crate) async fn ended(&self) {
        self.ending.cancelled().await;
    }
}
