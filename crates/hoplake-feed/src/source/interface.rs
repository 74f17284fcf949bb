//! What a source has to do: a catalog, a consistent snapshot, and the transactions after it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use hoplake::Name;

use super::{
    catalog::{Catalog, TableName},
    change::{Columns, Row, Transaction},
    following::Following,
    shape::{TableShape, shapes_of},
};
use crate::FeedError;

/// A database whose tables a graph follows.
#[async_trait]
pub trait Source: Send + Sync {
    /// The schema of tables that are named without one.
    fn default_schema(&self) -> &str;

    /// The tables of some schemas.
    ///
    /// # Errors
    /// [`Unavailable`](crate::FeedErrorKind::Unavailable), or [`Invalid`](crate::FeedErrorKind::Invalid) with what to set.
    async fn catalog(&self, schemas: &BTreeSet<String>) -> Result<Catalog, FeedError>;

    /// What the tables of a catalog are, to be compared with what they become.
    ///
    /// # Errors
    /// As [`Self::catalog`].
    async fn shapes(
        &self,
        catalog: &Catalog,
        tables: &[TableName],
    ) -> Result<BTreeMap<TableName, TableShape>, FeedError> {
        Ok(shapes_of(catalog, tables))
    }

    /// Rejects a database that is not set up to be followed in these tables.
    ///
    /// # Errors
    /// As [`Self::catalog`].
    async fn prepare(&self, tables: &[TableName]) -> Result<(), FeedError>;

    /// Of columns that a table was given while no feed ran: one whose rows have a value that no row change shows.
    ///
    /// # Errors
    /// As [`Self::catalog`].
    async fn filled(&self, _table: &TableName, _columns: &[Name]) -> Result<Option<String>, FeedError> {
        Ok(None)
    }

    /// A row whose foreign key the database takes as equal to a key that has another text.
    ///
    /// # Errors
    /// As [`Self::catalog`].
    async fn unequal(&self, _key: &ComparedKey) -> Result<Option<UnequalKey>, FeedError> {
        Ok(None)
    }

    /// All rows as they are at one position, without stopping writers.
    ///
    /// # Errors
    /// As [`Self::catalog`]; [`Invalid`](crate::FeedErrorKind::Invalid) if the source has no rows for this purpose.
    async fn snapshot<'a>(&'a self, purpose: Purpose) -> Result<Box<dyn Snapshot + 'a>, FeedError>;

    /// The transactions after a position, with their changes of the tables that are followed.
    ///
    /// # Errors
    /// As [`Self::catalog`]; [`Purged`](crate::FeedErrorKind::Purged) if the source no longer has them.
    async fn stream(&self, from: &str, following: Following) -> Result<Box<dyn TransactionStream>, FeedError>;

    /// The same for a second reader, whether the feed reads at the time or not.
    ///
    /// # Errors
    /// As [`Self::stream`].
    async fn stream_aside(&self, from: &str, following: Following) -> Result<Box<dyn TransactionStream>, FeedError> {
        self.stream(from, following).await
    }

    /// Whether the position `b` is at or after `a`: all that comes before `a` comes before `b`.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if one of them is no position of such a source.
    fn is_within(&self, _a: &str, _b: &str) -> Result<bool, FeedError> {
        Err(FeedError::invalid("positions of this source cannot be compared"))
    }

    /// The newest position.
    ///
    /// # Errors
    /// As [`Self::catalog`].
    async fn position(&self) -> Result<String, FeedError>;

    /// What of the database holds up a feed, or is held up by it; nothing of a source that cannot say it.
    ///
    /// # Errors
    /// As [`Self::catalog`].
    async fn backlog(&self) -> Result<Option<Backlog>, FeedError> {
        Ok(None)
    }
}

/// What of a database holds up a feed, or is held up by it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Backlog {
    /// Bytes of the log between what the feed has confirmed to the server and the log's end.
    pub unconfirmed_bytes: Option<u64>,
    /// Bytes of the log that the server keeps for the feed.
    pub kept_bytes: Option<u64>,
    /// The age of the oldest transaction that is open: nothing of it is in the log before its end, and the server keeps its log from its
    /// beginning on.
    pub oldest_transaction: Option<Duration>,
}

/// A foreign key whose rows the database finds by a collation, and the graph by the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedKey {
    /// The table that has it.
    pub table: TableName,
    /// The columns that identify a row there.
    pub row: Vec<Name>,
    /// Its columns.
    pub columns: Vec<Name>,
    /// The table that it names rows of.
    pub target: TableName,
    /// The columns there.
    pub target_columns: Vec<Name>,
    /// The collation.
    pub compared_by: Name,
}

/// A foreign key and what it names, which are equal only for the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnequalKey {
    /// The row that has it, such as `id=1`.
    pub row: String,
    /// Its text.
    pub names: String,
    /// The text of the key that it names.
    pub target: String,
}

/// What a snapshot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Rows are read once, and a stream goes on from there: the source keeps what comes after them.
    Copy,
    /// The same, and rows may be read again.
    Renew,
    /// Nothing is left of it at the source.
    Compare,
}

/// All rows as they are at one position.
#[async_trait]
pub trait Snapshot: Send {
    /// The position. A log that has rows before changes knows it when they were read.
    fn position(&self) -> &str;

    /// Reads all rows of tables.
    ///
    /// # Errors
    /// As [`Source::catalog`]; that of `rows`.
    async fn rows(&mut self, tables: &[TableName], rows: &mut dyn RowSink) -> Result<(), FeedError>;
}

/// What takes the rows of a snapshot.
#[async_trait]
pub trait RowSink: Send {
    /// Takes some rows of a table.
    ///
    /// # Errors
    /// Ends the copy.
    async fn rows(&mut self, columns: &Arc<Columns>, rows: Vec<Row>) -> Result<(), FeedError>;
}

/// Transactions in the order of their commits.
#[async_trait]
pub trait TransactionStream: Send {
    /// The next one, also if it changes none of the tables; `None` if the source says that there is none for now.
    ///
    /// # Errors
    /// [`Unavailable`](crate::FeedErrorKind::Unavailable) if the connection is lost: another stream goes on from the last position.
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if what comes next cannot be followed.
    async fn next(&mut self) -> Result<Option<Transaction>, FeedError>;
}
