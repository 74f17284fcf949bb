//! PostgreSQL: logical replication with the plugin that every server has, pgoutput.
//!
//! ```text
//! catalog  tables, keys and identities, from pg_catalog
//! publication  what it leaves out, and how that is corrected
//! snapshot   all rows, exactly where a new slot begins
//! tunnel     TLS
//! stream     messages of pgoutput -> transactions
//! values     text forms -> values: rows of queries and of the log have the same
//! ```
//!
//! **Positions** are ends of commits in the write-ahead log (`0/16B3748`). The slot's own position lags behind; it only says what the
//! server may throw away. What follows the graph's position is requested, and what the server sends of before is passed over.
//!
//! **One connection** of the replication kind does it all: it answers queries until the stream begins.

mod catalog;
mod connection;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod publication;
mod snapshot;
mod stream;
mod tunnel;
mod values;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use async_trait::async_trait;
use hoplake::Name;
use pgwire_replication::{Lsn, ReplicationClient, ReplicationConfig};
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use self::{
    connection::{Connection, Row, failed, identifier, lsn, quoted, text},
    tunnel::TlsServer,
};
use super::{Backlog, Following, Purpose, Snapshot, Source, TransactionStream, UnequalKey, shown};
use crate::{
    Catalog, FeedError, Settings, TableName,
    source::{ComparedKey, shape::TableShape},
};

/// Text forms that do not depend on the server's settings; and that it says every three seconds that nothing happens.
const OPTIONS: &str = "-c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=iso_8601 -c extra_float_digits=1 -c bytea_output=hex -c wal_sender_timeout=6s";

/// How often a server is sent the position up to which the graph has followed: it drops a client that is silent for six seconds.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// Messages that are read ahead; each may be a large row.
const MESSAGES_AHEAD: usize = 64;

/// A server of PostgreSQL.
#[derive(Debug)]
pub struct Postgres {
    /// In the order in which they are tried.
    servers: Vec<(ReplicationConfig, Option<TlsServer>)>,
    addresses: Vec<String>,
    schema: String,
    slot: String,
    publication: String,
    timeout: Duration,
}

impl Postgres {
    /// The server of some settings. Nothing is connected.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if the URL cannot be, or the password is not where the settings say.
    pub fn new(settings: &Settings) -> Result<Self, FeedError> {
        let source = &settings.source;
        let password = source.password()?;
        let publication = format!("hoplake_{}", source.name.to_lowercase().replace(['-', '.'], "_"));
        let slot = source.slot.clone().unwrap_or_else(|| slot_of(&publication, &settings.graph));
        let publication = source.publication.clone().unwrap_or(publication);
        let config = |url: &String| {
            let invalid = |why: &str| FeedError::invalid(format!("source.url {}: {why}", shown(url)));
            let parsed = Url::parse(url).map_err(|error| invalid(&error.to_string()))?;
            let database = parsed.path().trim_start_matches('/');
            if database.is_empty() {
                return Err(invalid("the URL has no database").hint("write postgres://user@host:port/database"));
            }
            let host = parsed.host_str().ok_or_else(|| invalid("the URL has no host"))?;
            let password = password.clone().or_else(|| parsed.password().map(str::to_owned)).unwrap_or_default();
            let config = ReplicationConfig::new(
                host,
                parsed.username(),
                password,
                database,
                slot.as_str(),
                publication.as_str(),
            );
            let config = config
                .with_port(parsed.port().unwrap_or(5432))
                .with_options(OPTIONS)
                .with_status_interval(STATUS_EVERY)
                .with_buffer_size(MESSAGES_AHEAD)
                .with_max_message_size(usize::try_from(settings.stream.transaction_bytes_max).unwrap_or(usize::MAX))
                .with_application_name("hoplake feed");
            let query: HashMap<_, _> = parsed.query_pairs().into_owned().collect();
            let tls = tunnel::of_query(&query).map_err(|error| error.about(&format!("source.url {}", shown(url))))?;
            // The name of an address in brackets is the address.
            let name = host.trim_matches(['[', ']']);
            let port = parsed.port().unwrap_or(5432);
            let tls = tls.map(|tls| TlsServer::new(name, port, &tls)).transpose()?;
            Ok((config, tls))
        };
        let servers = source.url.all().iter().map(config).collect::<Result<Vec<_>, FeedError>>()?;
        Ok(Self {
            servers,
            addresses: source.url.all().iter().map(|url| shown(url)).collect(),
            schema: "public".to_owned(),
            slot,
            publication,
            timeout: Duration::from_millis(source.timeout_ms),
        })
    }

    /// A connection to the first server that answers, which is asked before it streams.
    async fn connect(&self) -> Result<Connection, FeedError> {
        self.connect_with(ReplicationConfig::clone).await
    }

    /// The same, to stream from a slot after a position, of which all up to `committed` is in the graph. The server may throw away what
    /// a client says that it has; what was only read is lost with the process.
    async fn connect_from(&self, from: Lsn, committed: Lsn, slot: &str) -> Result<Connection, FeedError> {
        let config = |server: &ReplicationConfig| {
            let mut config = server.clone().with_start_lsn(from).with_ack_lsn(committed);
            slot.clone_into(&mut config.slot);
            config
        };
        self.connect_with(config).await
    }

    async fn connect_with(
        &self,
        config: impl Fn(&ReplicationConfig) -> ReplicationConfig,
    ) -> Result<Connection, FeedError> {
        let mut last = None;
        for ((server, tls), address) in self.servers.iter().zip(&self.addresses) {
            let mut server = config(server);
            let connected = async {
                let tunnel = match tls {
                    None => None,
                    Some(tls) => Some(tls.tunnel().await?),
                };
                if let Some(tunnel) = &tunnel {
                    server.host = tunnel.path().display().to_string();
                }
                let mut connection = Connection {
                    client: ReplicationClient::connect_gated(server)
                        .await
                        .map_err(|error| failed("connect", &error))?,
                };
                connection.query("SELECT 1").await?;
                Ok::<_, FeedError>(connection)
            };
            match tokio::time::timeout(self.timeout, connected).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => {
                    last = Some(error.about(address));
                }
                Err(_) => {
                    let ms = self.timeout.as_millis();
                    last = Some(FeedError::unavailable(format!("{address} does not answer within {ms} ms")));
                }
            }
        }
        Err(last.unwrap_or_else(|| FeedError::invalid("source.url has no address")))
    }

    /// Begins a stream; `connection` is for its slot.
    async fn messages(
        &self,
        connection: Connection,
        from: Lsn,
        following: Following,
    ) -> Result<Box<dyn TransactionStream>, FeedError> {
        let catalog = self.connect().await?;
        let publication = self.publication.clone();
        Ok(Box::new(stream::Messages::open(connection, catalog, publication, from, following, self.timeout).await?))
    }
}

/// A name for the slot of a graph: of two graphs that follow one database each has its own, and a first copy replaces no other's.
fn slot_of(name: &str, graph: &str) -> String {
    let place = match graph.contains("://") {
        true => graph.trim_end_matches('/').to_owned(),
        false => std::path::absolute(graph).map_or_else(|_| graph.to_owned(), |path| path.display().to_string()),
    };
    // A name has 63 bytes at most.
    let shortened: String = name.chars().take(50).collect();
    format!("{shortened}_{:08x}", xxh3_64(place.as_bytes()) >> 32)
}

#[async_trait]
impl Source for Postgres {
    fn default_schema(&self) -> &str {
        &self.schema
    }

    async fn catalog(&self, schemas: &BTreeSet<String>) -> Result<Catalog, FeedError> {
        let mut connection = self.connect().await?;
        catalog::read(&mut connection, schemas).await
    }

    async fn shapes(&self, _: &Catalog, tables: &[TableName]) -> Result<BTreeMap<TableName, TableShape>, FeedError> {
        catalog::shapes(&mut self.connect().await?, &self.publication, tables).await
    }

    async fn prepare(&self, tables: &[TableName]) -> Result<(), FeedError> {
        let mut connection = self.connect().await?;
        publication::check(&mut connection, &self.publication, tables).await
    }

    async fn filled(&self, table: &TableName, columns: &[Name]) -> Result<Option<String>, FeedError> {
        catalog::filled(&mut self.connect().await?, table, columns).await
    }

    async fn unequal(&self, key: &ComparedKey) -> Result<Option<UnequalKey>, FeedError> {
        catalog::unequal(&mut self.connect().await?, key).await
    }

    async fn snapshot<'a>(&'a self, purpose: Purpose) -> Result<Box<dyn Snapshot + 'a>, FeedError> {
        let connection = self.connect().await?;
        Ok(Box::new(match purpose {
            Purpose::Copy | Purpose::Renew => snapshot::PostgresSnapshot::of_feed(connection, &self.slot).await?,
            Purpose::Compare => snapshot::PostgresSnapshot::temporary(connection).await?,
        }))
    }

    async fn stream(&self, from: &str, following: Following) -> Result<Box<dyn TransactionStream>, FeedError> {
        let from = lsn(from)?;
        let committed = following.committed.as_ref().map(|committed| lsn(&committed.borrow())).transpose()?;
        let mut connection = self.connect_from(from, committed.unwrap_or(from).min(from), &self.slot).await?;
        stream::check_slot(&mut connection, &self.slot, from).await?;
        self.messages(connection, from, following).await
    }

    async fn stream_aside(&self, from: &str, following: Following) -> Result<Box<dyn TransactionStream>, FeedError> {
        let from = lsn(from)?;
        let slot = snapshot::temporary_name();
        let mut connection = self.connect_from(from, from, &slot).await?;
        // A slot has one reader. The copy begins where the feed has said that it is, and the server removes it with the connection.
        let copied =
            format!("SELECT pg_copy_logical_replication_slot({}, {}, true)", quoted(&self.slot), quoted(&slot));
        connection.query(&copied).await?;
        stream::check_slot(&mut connection, &slot, from).await?;
        self.messages(connection, from, following).await
    }

    fn is_within(&self, a: &str, b: &str) -> Result<bool, FeedError> {
        Ok(lsn(a)? <= lsn(b)?)
    }

    async fn position(&self) -> Result<String, FeedError> {
        let mut connection = self.connect().await?;
        let position = connection.value("SELECT pg_current_wal_lsn()").await?;
        position.ok_or_else(|| FeedError::unavailable("the server does not say where its log is"))
    }

    async fn backlog(&self) -> Result<Option<Backlog>, FeedError> {
        let mut connection = self.connect().await?;
        // Of other users' transactions the server says nothing without pg_read_all_stats.
        let asked = format!(
            "SELECT (SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint FROM pg_replication_slots WHERE slot_name = {0}), \
             (SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint FROM pg_replication_slots WHERE slot_name = {0}), \
             (SELECT coalesce((extract(epoch FROM now() - min(began)) * 1000)::bigint, 0) FROM ( \
             SELECT xact_start AS began FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
             UNION ALL SELECT prepared FROM pg_prepared_xacts) AS open)",
            quoted(&self.slot)
        );
        let rows = connection.query(&asked).await?;
        let number = |at: usize| rows.first().and_then(|row| text(row, at)).and_then(|it| it.parse::<u64>().ok());
        Ok(Some(Backlog {
            unconfirmed_bytes: number(0),
            kept_bytes: number(1),
            oldest_transaction: number(2).map(Duration::from_millis),
        }))
    }
}
