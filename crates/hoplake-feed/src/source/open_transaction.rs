//! A transaction that a database's log has begun.

use super::Following;
use crate::{
    Change, ChangeList, FeedError, TableName, Transaction,
    error::COPY_ANEW,
    source::{shape::TableShape, spill::Spilling},
};

/// The changes of a transaction of which not all has come: in memory, and in a file when they are many.
#[derive(Debug, Default)]
pub(crate) struct OpenTransaction {
    changes: Vec<Change>,
    /// Those before, if they were too many.
    spilling: Option<Spilling>,
    /// About the memory that all of them would take, and that those in memory take.
    bytes: u64,
    bytes_in_memory: u64,
    tables: Vec<(TableName, TableShape)>,
}

impl OpenTransaction {
    /// Adds a change.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if all of them take more than they may; [`Unavailable`](crate::FeedErrorKind::Unavailable)
    /// if they cannot be written to a file.
    pub(crate) fn push(&mut self, change: Change, following: &Following) -> Result<(), FeedError> {
        let bytes = change.bytes() as u64;
        self.bytes += bytes;
        self.bytes_in_memory += bytes;
        self.changes.push(change);
        let (setting, most) = match &following.spill {
            Some(spill) => ("spill_bytes_max", spill.bytes_max),
            None => ("transaction_bytes_max", following.transaction_bytes_max),
        };
        if self.bytes > most {
            let hint = format!("raise stream.{setting}, or {COPY_ANEW}");
            return Err(
                FeedError::invalid(format!("a transaction has more than {most} bytes of row changes")).hint(hint)
            );
        }
        match &following.spill {
            Some(spill) if self.bytes_in_memory > spill.memory_bytes_max => {
                let spilling = match &mut self.spilling {
                    Some(spilling) => spilling,
                    spilling => spilling.insert(Spilling::begin(spill)?),
                };
                self.changes.drain(..).try_for_each(|change| spilling.push(&change))?;
                self.bytes_in_memory = 0;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Notes what a table is by now.
    pub(crate) fn note(&mut self, table: TableName, shape: TableShape) {
        self.tables.push((table, shape));
    }

    /// The transaction, which has been committed.
    ///
    /// # Errors
    /// [`Unavailable`](crate::FeedErrorKind::Unavailable) if its file cannot be written.
    pub(crate) fn committed(self, position: String, committed_unix_ms: i64) -> Result<Transaction, FeedError> {
        let Self { changes, spilling, bytes, tables, .. } = self;
        let spilled = spilling.map(Spilling::finish).transpose()?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Transaction { position, committed_unix_ms, changes: ChangeList::new(spilled, changes), bytes, tables })
    }
}
