//! Where tables are: a catalogue, a consistent copy, and the transactions after it.

mod declared;
mod log;
#[cfg(feature = "mariadb")]
pub mod mariadb;
#[cfg(any(feature = "mariadb", feature = "postgres"))]
mod open_transaction;
#[cfg(feature = "postgres")]
pub mod postgres;
mod statements;
#[cfg(feature = "tls")]
mod tls;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

pub use self::log::CatalogueFile;
/// For a test that runs each of them.
#[doc(hidden)]
pub use self::statements::HARMLESS as HARMLESS_CLAUSES;
/// What the fuzz targets read without a server (`docs/fuzzing.md`). It may change at any time.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    #[cfg(feature = "mariadb")]
    pub use super::mariadb::fuzzing::*;
    #[cfg(feature = "postgres")]
    pub use super::postgres::fuzzing::*;
    pub use super::{log::fuzzing::*, statements::fuzzing::*};
}

use async_trait::async_trait;
use hoplake::Name;
use tokio::sync::watch;

use crate::{
    Catalogue, Columns, FeedError, Row, Settings, SpillSettings, TableName, Transaction,
    followed::{ColumnShape, TableShape, shapes_of},
    mapping::ComparedKey,
};

/// A database whose tables a graph follows.
#[async_trait]
pub trait Source: Send + Sync {
    /// The schema of tables that are named without one.
    fn default_schema(&self) -> &str;

    /// The tables of some schemas.
    ///
    /// # Errors
    /// [`Unavailable`](crate::FeedErrorKind::Unavailable), or [`Invalid`](crate::FeedErrorKind::Invalid) with what to set.
    async fn catalogue(&self, schemas: &BTreeSet<String>) -> Result<Catalogue, FeedError>;

    /// What the tables of a catalogue are, to be compared with what they become.
    ///
    /// # Errors
    /// As [`Self::catalogue`].
    async fn shapes(
        &self,
        catalogue: &Catalogue,
        tables: &[TableName],
    ) -> Result<BTreeMap<TableName, TableShape>, FeedError> {
        Ok(shapes_of(catalogue, tables))
    }

    /// Refuses a database that is not set up to be followed in these tables.
    ///
    /// # Errors
    /// As [`Self::catalogue`].
    async fn prepare(&self, tables: &[TableName]) -> Result<(), FeedError>;

    /// Of columns that a table was given while nobody followed: one whose rows have a value that no row change shows.
    ///
    /// # Errors
    /// As [`Self::catalogue`].
    async fn filled(&self, _table: &TableName, _columns: &[Name]) -> Result<Option<String>, FeedError> {
        Ok(None)
    }

    /// A row whose foreign key the database takes as equal to a key that has another text.
    ///
    /// # Errors
    /// As [`Self::catalogue`].
    async fn unequal(&self, _key: &ComparedKey) -> Result<Option<UnequalKey>, FeedError> {
        Ok(None)
    }

    /// All rows as they are at one position, without stopping writers.
    ///
    /// # Errors
    /// As [`Self::catalogue`]; [`Invalid`](crate::FeedErrorKind::Invalid) if the source has no rows for this purpose.
    async fn snapshot<'a>(&'a self, purpose: Purpose) -> Result<Box<dyn Snapshot + 'a>, FeedError>;

    /// The transactions behind a position, with their changes of the tables that are followed.
    ///
    /// # Errors
    /// As [`Self::catalogue`]; [`Purged`](crate::FeedErrorKind::Purged) if the source no longer has them.
    async fn stream(&self, from: &str, following: Following) -> Result<Box<dyn TransactionStream>, FeedError>;

    /// The same for a second reader, whether the feed reads at the time or not.
    ///
    /// # Errors
    /// As [`Self::stream`].
    async fn stream_aside(&self, from: &str, following: Following) -> Result<Box<dyn TransactionStream>, FeedError> {
        self.stream(from, following).await
    }

    /// Whether all that is behind the position `a` is behind `b`, too.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if one of them is no position of such a source.
    fn is_within(&self, _a: &str, _b: &str) -> Result<bool, FeedError> {
        Err(FeedError::invalid("positions of this source cannot be compared"))
    }

    /// The newest position.
    ///
    /// # Errors
    /// As [`Self::catalogue`].
    async fn position(&self) -> Result<String, FeedError>;

    /// What of the database holds up a feed, or is held up by it; nothing of a source that cannot say it.
    ///
    /// # Errors
    /// As [`Self::catalogue`].
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

/// What of the transactions is wanted.
#[derive(Debug, Clone, Default)]
pub struct Following {
    /// The tables, and their columns that are carried into the graph.
    pub tables: BTreeMap<TableName, BTreeSet<Name>>,
    /// What they were at the position where the stream begins, as far as that is known.
    pub shapes: BTreeMap<TableName, TableShape>,
    /// Their columns that the mapping ignores: they are never carried, also if they are dropped and added again.
    pub ignored: BTreeMap<TableName, BTreeSet<Name>>,
    /// Row changes in memory may take this many bytes, of one transaction or of all that a log has not ended.
    pub transaction_bytes_max: u64,
    /// Where a database's transaction goes that is larger than a part of it; without, it is an error.
    pub spill: Option<SpillSettings>,
    /// The position of a statement that is passed over, whatever it does to the tables.
    pub accepted: Option<String>,
    /// Up to where the graph has followed, as it commits.
    pub committed: Option<watch::Receiver<String>>,
    /// Whether nothing more is wanted than what the source had when the stream began: it ends with `None` behind that, though others
    /// go on writing.
    pub once: bool,
    /// Whether errors may have what is in rows.
    pub show_rows: bool,
}

impl Following {
    /// The same where the mapping ignores these columns.
    #[must_use]
    pub(crate) fn ignoring(mut self, ignored: BTreeMap<TableName, BTreeSet<Name>>) -> Self {
        for (table, columns) in &ignored {
            if let Some(carried) = self.tables.get_mut(table) {
                carried.retain(|column| !columns.contains(column));
            }
        }
        self.ignored = ignored;
        self
    }

    /// Carries new columns of a table, unless the mapping ignores them.
    pub(crate) fn carry(&mut self, table: &TableName, new: Vec<Name>) {
        let ignored = self.ignored.get(table);
        let is_ignored = |column: &Name| ignored.is_some_and(|ignored| ignored.contains(column));
        let carried = self.tables.entry(table.clone()).or_default();
        carried.extend(new.into_iter().filter(|column| !is_ignored(column)));
    }

    /// Notes columns that are null in all rows of a table, or that the mapping ignores, and returns what the table is by now.
    pub(crate) fn add_columns(&mut self, table: &TableName, names: &[Name]) -> TableShape {
        let carried = self.tables.entry(table.clone()).or_default();
        // One that is not carried was dropped before: the new one may have another type.
        let was_dropped: Vec<_> = names.iter().filter(|name| !carried.contains(*name)).cloned().collect();
        self.carry(table, names.to_vec());
        let shape = self.shapes.entry(table.clone()).or_default();
        // Of a table of which nothing is known, nothing is known with them, either.
        if !shape.columns.is_empty() {
            shape.columns.retain(|column| !was_dropped.contains(&column.name));
            let new: Vec<_> = names.iter().filter(|name| !shape.has(name)).cloned().map(ColumnShape::named).collect();
            shape.columns.extend(new);
        }
        shape.clone()
    }

    /// Notes that ignored columns of a table were dropped, and returns what the table is by now.
    #[cfg(feature = "mariadb")]
    pub(crate) fn drop_ignored(&mut self, table: &TableName, names: &[Name]) -> TableShape {
        let shape = self.shapes.entry(table.clone()).or_default();
        shape.columns.retain(|column| !names.contains(&column.name));
        shape.clone()
    }

    /// Takes a table as it is seen next, whatever it was.
    pub(crate) fn forget(&mut self, table: &TableName) -> TableShape {
        self.shapes.remove(table);
        TableShape::default()
    }

    /// Takes over what a transaction says of tables.
    pub(crate) fn pass(&mut self, transaction: &Transaction) {
        for (table, shape) in &transaction.tables {
            let new = self.shapes.get(table).map_or_else(Vec::new, |was| was.new_in(shape));
            self.carry(table, new);
            self.shapes.insert(table.clone(), shape.clone());
        }
        // It was accepted once.
        if !transaction.tables.is_empty() || self.accepted.as_ref() == Some(&transaction.position) {
            self.accepted = None;
        }
    }
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
    /// As [`Source::catalogue`]; that of `rows`.
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

/// The source that settings name.
///
/// # Errors
/// [`Invalid`](crate::FeedErrorKind::Invalid) if the URL is of no kind that this build has.
pub fn open(settings: &Settings) -> Result<Arc<dyn Source>, FeedError> {
    let url = settings.source.url.all().first().map(String::as_str).unwrap_or_default();
    if log::is_log(url) {
        return Ok(Arc::new(log::ChangeLog::new(settings)?));
    }
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    match scheme {
        #[cfg(feature = "mariadb")]
        "mysql" | "mariadb" => Ok(Arc::new(mariadb::MariaDb::new(settings)?)),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => Ok(Arc::new(postgres::Postgres::new(settings)?)),
        _ => {
            let message = format!("source.url {url:?} is not of a kind of database that is supported");
            Err(FeedError::invalid(message)
                .hint("write mysql://user@host:port/database or postgres://user@host:port/database, or file:/path of a change log"))
        }
    }
}

/// The address of a source without what may be secret in it.
pub fn shown(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(url) => format!(
            "{}://{}{}{}",
            url.scheme(),
            url.host_str().unwrap_or_default(),
            url.port().map(|port| format!(":{port}")).unwrap_or_default(),
            url.path()
        ),
        Err(_) => "the source".to_owned(),
    }
}
