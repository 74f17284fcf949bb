//! MariaDB, and MySQL through the same reader: the binlog with complete row images.
//!
//! ```text
//! catalog   tables, keys and rules from information_schema; is the server set up?
//! snapshot    a consistent snapshot of rows, at the position of its binlog
//! stream      events of the binlog -> transactions
//! table_map   what the log says of a table
//! table_version  its rows, by that
//! logged      the bytes of a row -> values
//! charsets    the bytes of text -> text
//! values      what either path has of a value -> the value
//! gtid        positions
//! ```
//!
//! **Positions** are GTIDs: of MariaDB the last one of each domain (`0-1-18`), of MySQL a set of intervals of each server. No server of
//! MySQL was at hand: what is only of it (sets, its snapshot under a short lock) is written by its documentation and untested.
//!
//! **Why complete row images and metadata.** With `binlog_row_metadata=FULL` the log itself says which columns a row had when it was
//! written, whatever the table has become since; without it, columns have no names and numbers no signs.

mod catalog;
mod charsets;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod gtid;
mod logged;
mod server;
mod snapshot;
mod stream;
mod table_map;
mod table_version;
mod values;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use async_trait::async_trait;
use mysql_async::{Conn, Opts, OptsBuilder, prelude::Queryable};

use self::{
    catalog::ColumnDetail,
    charsets::Charsets,
    gtid::Gtids,
    server::{Flavour, failed},
    table_version::{ROW_END, is_unsaid},
};
use super::{Backlog, Following, Purpose, Snapshot, Source, TransactionStream, UnequalKey, shown};
use crate::{
    Catalog, FeedError, Settings, TableName,
    source::{
        ComparedKey,
        shape::{ColumnShape, TableShape, shapes_of},
    },
};

/// A server of MariaDB or MySQL.
#[derive(Debug, Clone)]
pub struct MariaDb {
    /// In the order in which they are tried.
    servers: Vec<Opts>,
    addresses: Vec<String>,
    database: String,
    timeout: Duration,
    server_id: u32,
    charsets: Charsets,
}

impl MariaDb {
    /// The server of some settings. Nothing is connected.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if the URL cannot be, or the password is not where the settings say.
    pub fn new(settings: &Settings) -> Result<Self, FeedError> {
        let source = &settings.source;
        let password = source.password()?;
        let mut servers = Vec::new();
        let mut database = None;
        for url in source.url.all() {
            let standard = url.replacen("mariadb://", "mysql://", 1);
            let opts = Opts::from_url(&standard)
                .map_err(|error| FeedError::invalid(format!("source.url {}: {error}", shown(url))))?;
            let of_url = opts.db_name().unwrap_or_default().to_owned();
            if of_url.is_empty() {
                let hint = "write mysql://user@host:port/database";
                return Err(
                    FeedError::invalid(format!("source.url {}: the URL has no database", shown(url))).hint(hint)
                );
            }
            if database.get_or_insert(of_url.clone()) != &of_url {
                return Err(FeedError::invalid("the addresses of source.url name different databases"));
            }
            let mut builder = OptsBuilder::from_opts(opts).prefer_socket(Some(false)).tcp_nodelay(true);
            if let Some(password) = &password {
                builder = builder.pass(Some(password.clone()));
            }
            servers.push(builder.into());
        }
        let database = database.ok_or_else(|| FeedError::invalid("source.url has no address"))?;
        Ok(Self {
            servers,
            addresses: source.url.all().iter().map(|url| shown(url)).collect(),
            database,
            timeout: Duration::from_millis(source.timeout_ms),
            server_id: source.server_id.unwrap_or_else(random_server_id),
            charsets: Charsets::default(),
        })
    }

    /// A connection to the first server that answers, in UTC.
    async fn connect(&self) -> Result<Conn, FeedError> {
        let mut last = None;
        for (server, address) in self.servers.iter().zip(&self.addresses) {
            let connected = tokio::time::timeout(self.timeout, Conn::new(server.clone())).await;
            match connected {
                Ok(Ok(mut conn)) => {
                    // Timestamps are moments, and dates are taken as they are, also those of no calendar.
                    let set = "SET time_zone = '+00:00', net_write_timeout = 600, sql_mode = ''";
                    conn.query_drop(set).await.map_err(|error| failed("set up a connection", &error))?;
                    return Ok(conn);
                }
                Ok(Err(error)) => last = Some(failed(&format!("connect to {address}"), &error)),
                Err(_) => {
                    let ms = self.timeout.as_millis();
                    last = Some(FeedError::unavailable(format!("{address} does not answer within {ms} ms")));
                }
            }
        }
        Err(last.unwrap_or_else(|| FeedError::invalid("source.url has no address")))
    }
}

/// A number of a replica. Zero means none, and small ones are those of real servers.
fn random_server_id() -> u32 {
    fastrand::u32(1 << 20..u32::MAX)
}

#[async_trait]
impl Source for MariaDb {
    fn default_schema(&self) -> &str {
        &self.database
    }

    async fn catalog(&self, schemas: &BTreeSet<String>) -> Result<Catalog, FeedError> {
        let mut conn = self.connect().await?;
        catalog::read(&mut conn, schemas).await
    }

    /// Names alone: whatever else a column is, its table map and the statements in the log say.
    async fn shapes(
        &self,
        catalog: &Catalog,
        tables: &[TableName],
    ) -> Result<BTreeMap<TableName, TableShape>, FeedError> {
        let mut shapes = shapes_of(catalog, tables);
        // What a map of the log says itself is not kept.
        let keep = |column: &mut ColumnShape| column.kind = column.kind.take().filter(|kind| is_unsaid(kind));
        shapes.values_mut().flat_map(|shape| &mut shape.columns).for_each(keep);
        let mut conn = self.connect().await?;
        for (table, shape) in &mut shapes {
            for column in catalog::details(&mut conn, table).await?.into_iter().filter(ColumnDetail::is_row_end) {
                let same = shape.columns.iter_mut().filter(|it| it.name == column.name);
                same.for_each(|it| it.kind = Some(ROW_END.to_owned()));
            }
        }
        Ok(shapes)
    }

    async fn prepare(&self, tables: &[TableName]) -> Result<(), FeedError> {
        let mut conn = self.connect().await?;
        catalog::check(&mut conn).await?;
        catalog::check_tables(&mut conn, tables).await
    }

    async fn unequal(&self, key: &ComparedKey) -> Result<Option<UnequalKey>, FeedError> {
        catalog::unequal(&mut self.connect().await?, key).await
    }

    async fn snapshot<'a>(&'a self, _purpose: Purpose) -> Result<Box<dyn Snapshot + 'a>, FeedError> {
        Ok(Box::new(snapshot::MariaDbSnapshot::begin(self.connect().await?).await?))
    }

    async fn stream(&self, from: &str, following: Following) -> Result<Box<dyn TransactionStream>, FeedError> {
        Ok(Box::new(stream::Binlog::open(self, from, following, self.server_id).await?))
    }

    /// With a number of its own: the server would cut off the feed, which has the same.
    async fn stream_aside(&self, from: &str, following: Following) -> Result<Box<dyn TransactionStream>, FeedError> {
        Ok(Box::new(stream::Binlog::open(self, from, following, random_server_id()).await?))
    }

    fn is_within(&self, a: &str, b: &str) -> Result<bool, FeedError> {
        Gtids::parse(a)?.is_within(&Gtids::parse(b)?)
    }

    async fn position(&self) -> Result<String, FeedError> {
        let mut conn = self.connect().await?;
        catalog::newest_position(&mut conn).await
    }

    async fn backlog(&self) -> Result<Option<Backlog>, FeedError> {
        let mut conn = self.connect().await?;
        // The server hides it from a user without the right PROCESS.
        let asked = "SELECT COALESCE(MAX(TIMESTAMPDIFF(SECOND, trx_started, UTC_TIMESTAMP())), 0) FROM information_schema.innodb_trx \
                     WHERE trx_mysql_thread_id <> CONNECTION_ID()";
        let age_s = conn.query_first::<u64, _>(asked).await.ok().flatten();
        Ok(Some(Backlog { oldest_transaction: age_s.map(Duration::from_secs), ..Backlog::default() }))
    }
}
