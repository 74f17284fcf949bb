//! A transaction that a database's log has begun.

use crate::{Change, FeedError, Transaction, error::COPY_ANEW};

/// The changes of a transaction of which not all has come, within a bound.
#[derive(Debug, Default)]
pub(crate) struct OpenTransaction {
    changes: Vec<Change>,
    bytes: usize,
}

impl OpenTransaction {
    /// Adds a change.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if all of them take more than `bytes_max`.
    pub(crate) fn push(&mut self, change: Change, bytes_max: u64) -> Result<(), FeedError> {
        self.bytes += change.bytes();
        self.changes.push(change);
        if self.bytes as u64 <= bytes_max {
            return Ok(());
        }
        let hint = format!("raise stream.transaction_bytes_max, or {COPY_ANEW}");
        Err(FeedError::invalid(format!("a transaction has more than {bytes_max} bytes of row changes")).hint(hint))
    }

    /// The transaction, which has been committed.
    pub(crate) fn committed(self, position: String, committed_unix_ms: i64) -> Transaction {
        let Self { changes, bytes } = self;
        Transaction { position, committed_unix_ms, changes, bytes }
    }
}
