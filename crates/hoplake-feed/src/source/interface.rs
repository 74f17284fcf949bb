//! The contract of sources: a catalog, a consistent snapshot, and the transactions after it.

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

    /// The catalog of the tables in some schemas.
    ///
    /// # Errors
    /// [`Unavailable`](crate::FeedErrorKind::Unavailable), or [`Invalid`](crate::FeedErrorKind::Invalid) with what to set.
    async fn catalog(&self, schemas: &BTreeSet<String>) -> Result<Catalog, FeedError>;

    /// The shapes of tables of a catalog, to detect later changes of them.
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

    /// Checks that the database is set up so that a feed can follow these tables.
    ///
    /// # Errors
    /// As [`Self::catalog`].
    async fn prepare(&self, tables: &[TableName]) -> Result<(), FeedError>;

    /// A column that was added to a table while no feed ran, and whose existing rows have a value that no row change contains.
    ///
    /// # Errors
    /// As [`Self::catalog`].
    async fn filled(&self, _table: &TableName, _columns: &[Name]) -> Result<Option<String>, FeedError> {
        Ok(None)
    }

    /// A row whose foreign key the database considers equal to a key with another text.
    ///
    /// # Errors
    /// As [`Self::catalog`].
    async fn unequal(&self, _key: &ComparedKey) -> Result<Option<UnequalKey>, FeedError> {
        Ok(None)
    }

    /// A consistent snapshot of all rows, at one position, which does not block writers.
    ///
    /// # Errors
    /// As [`Self::catalog`]; [`Invalid`](crate::FeedErrorKind::Invalid) if the source has no rows for this purpose.
    async fn snapshot<'a>(&'a self, purpose: Purpose) -> Result<Box<dyn Snapshot + 'a>, FeedError>;

    /// The transactions after a position, with their changes of the mapped tables.
    ///
    /// # Errors
    /// As [`Self::catalog`]; [`Purged`](crate::FeedErrorKind::Purged) if the source no longer has them.
    async fn stream(&self, from: &str, following: Following) -> Result<Box<dyn TransactionStream>, FeedError>;

    /// A stream for a second reader, while the feed may read its own.
    ///
    /// # Errors
    /// As [`Self::stream`].
    async fn stream_aside(&self, from: &str, following: Following) -> Result<Box<dyn TransactionStream>, FeedError> {
        self.stream(from, following).await
    }

    /// Whether position `b` is at or after `a`: every transaction before `a` is before `b`.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if one of them is not a valid position of this source.
    fn is_within(&self, _a: &str, _b: &str) -> Result<bool, FeedError> {
        Err(FeedError::invalid("positions of this source cannot be compared"))
    }

    /// The newest position.
    ///
    /// # Errors
    /// As [`Self::catalog`].
    async fn position(&self) -> Result<String, FeedError>;

    /// The backlog at the database; empty if the source does not report one.
    ///
    /// # Errors
    /// As [`Self::catalog`].
    async fn backlog(&self) -> Result<Option<Backlog>, FeedError> {
        Ok(None)
    }
}

/// What the feed waits for at the database, and what the database keeps for the feed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Backlog {
    /// Bytes of the log between the position that the feed has confirmed to the server and the end of the log.
    pub unconfirmed_bytes: Option<u64>,
    /// Bytes of the log that the server keeps for the feed.
    pub kept_bytes: Option<u64>,
    /// The age of the oldest open transaction. Its changes reach the log only when it ends, and the server keeps the log from its beginning
    /// on.
    pub oldest_transaction: Option<Duration>,
}

/// A foreign key that the database compares by a collation, whereas the graph compares texts byte by byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedKey {
    /// The table with the foreign key.
    pub table: TableName,
    /// The columns that identify a row there.
    pub row: Vec<Name>,
    /// Its columns.
    pub columns: Vec<Name>,
    /// The referenced table.
    pub target: TableName,
    /// The columns there.
    pub target_columns: Vec<Name>,
    /// The collation.
    pub compared_by: Name,
}

/// A foreign key whose text differs from that of the referenced key, although the database considers them equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnequalKey {
    /// The row that has it, such as `id=1`.
    pub row: String,
    /// Its text.
    pub names: String,
    /// The text of the referenced key.
    pub target: String,
}

/// The purpose of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Rows are read once, and a stream continues from there: the source keeps the log after the snapshot.
    Copy,
    /// As before, but rows may be read again.
    Renew,
    /// Nothing remains at the source afterwards.
    Compare,
}

/// All rows at one position.
#[async_trait]
pub trait Snapshot: Send {
    /// The position. A log that contains the rows before the changes knows it only after they were read.
    fn position(&self) -> &str;

    /// Reads all rows of tables.
    ///
    /// # Errors
    /// As [`Source::catalog`]; that of `rows`.
    async fn rows(&mut self, tables: &[TableName], rows: &mut dyn RowSink) -> Result<(), FeedError>;
}

/// Receives the rows of a snapshot.
#[async_trait]
pub trait RowSink: Send {
    /// Receives some rows of a table.
    ///
    /// # Errors
    /// Ends the copy.
    async fn rows(&mut self, columns: &Arc<Columns>, rows: Vec<Row>) -> Result<(), FeedError>;
}

/// Transactions in the order of their commits.
#[async_trait]
pub trait TransactionStream: Send {
    /// The next transaction, also if it changes no mapped table; `None` if the source has none for now.
    ///
    /// # Errors
    /// [`Unavailable`](crate::FeedErrorKind::Unavailable) if the connection is lost: a new stream continues from the last position.
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if the feed cannot follow the next change.
    async fn next(&mut self) -> Result<Option<Transaction>, FeedError>;
}
