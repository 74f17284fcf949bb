//! Events of the binlog become transactions.
//!
//! A transaction is the events between a GTID and a commit. A table's columns in it are those that the log itself names (its *table
//! map*), with the types, signs, charsets and labels that it says they had.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::StreamExt;
use hoplake::Name;
use mysql_async::{
    BinlogStream, BinlogStreamRequest, Sid,
    binlog::{
        EventType, RowsEventFlags,
        events::{Event, EventData, RowsEventData},
    },
    prelude::Queryable,
};
use uuid::Uuid;

use super::{
    Flavour, MariaDb, catalog, charsets::Charsets, failed, gtid::Gtids, table_map::TableMap,
    table_version::TableVersion,
};
use crate::{
    Change, FeedError, FeedErrorKind, RowChange, TableName, Transaction,
    error::{COPY_ANEW, StopNote},
    source::{
        Following, TransactionStream,
        open_transaction::OpenTransaction,
        shape::{ColumnShape, Drift, TableShape},
        statements::{Effect, IgnoredChanges, effects, ignored_changes, shown},
    },
};

/// Events of MariaDB alone.
const GTID: u8 = 162;
const COMPRESSED: std::ops::RangeInclusive<u8> = 165..=171;

/// Flags of MariaDB's GTID event: one statement and no commit; a part of a distributed transaction.
const STANDALONE: u8 = 1;
const XA: u8 = 64 | 128;

/// How often a server says that nothing happens.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// The binlog of a server.
pub(super) struct Binlog {
    stream: BinlogStream,
    following: Following,
    /// Which is asked for its catalog, too.
    server: MariaDb,
    flavour: Flavour,
    charsets: Charsets,
    position: Gtids,
    /// Where the log was when this began, if nothing after that is wanted.
    there_was: Option<Gtids>,
    tables: HashMap<u64, Option<Arc<TableVersion>>>,
    /// The last version of each table, which the next one is often equal to.
    versions: HashMap<TableName, Arc<TableVersion>>,
    open: Option<Open>,
}

/// A transaction whose commit has not come.
#[derive(Default)]
struct Open {
    is_standalone: bool,
    transaction: OpenTransaction,
}

impl Binlog {
    /// Requests what comes after a position.
    pub(super) async fn open(
        server: &MariaDb,
        from: &str,
        following: Following,
        server_id: u32,
    ) -> Result<Self, FeedError> {
        let mut conn = server.connect().await?;
        let flavour = catalog::flavour(&mut conn).await?;
        let mut position = Gtids::parse(from)?;
        if from == "start" {
            position = Gtids::none(flavour);
        }
        let is_right =
            matches!((&position, flavour), (Gtids::MariaDb(_), Flavour::MariaDb) | (Gtids::MySql(_), Flavour::MySql));
        if !is_right {
            return Err(FeedError::invalid(format!("the graph's position {from} is not one of this kind of server")));
        }
        catalog::check(&mut conn).await?;
        let asking = |error: mysql_async::Error| failed("ask for the binlog", &error);
        let there_was =
            if following.once { Some(Gtids::parse(&catalog::newest_position(&mut conn).await?)?) } else { None };
        let heartbeat = HEARTBEAT.as_nanos();
        conn.query_drop(format!("SET @master_heartbeat_period = {heartbeat}")).await.map_err(asking)?;
        let mut request = BinlogStreamRequest::new(server_id);
        let sids: Vec<Sid<'_>>;
        match &position {
            Gtids::MariaDb(domains) => {
                let state = if domains.is_empty() { String::new() } else { position.to_string() };
                for set in ["@mariadb_slave_capability = 4".to_owned(), format!("@slave_connect_state = '{state}'")] {
                    conn.query_drop(format!("SET {set}")).await.map_err(asking)?;
                }
                request = request.with_pos(4);
            }
            Gtids::MySql(_) => {
                sids = position.sids()?;
                request = request.with_gtid().with_gtid_set(sids);
            }
        }
        let stream = conn.get_binlog_stream(request).await.map_err(asking)?;
        let tables = HashMap::new();
        let versions = HashMap::new();
        let server = server.clone();
        let charsets = server.charsets.clone();
        Ok(Self { stream, following, server, flavour, charsets, position, there_was, tables, versions, open: None })
    }

    async fn event(&mut self) -> Result<Event, FeedError> {
        match tokio::time::timeout(self.server.timeout, self.stream.next()).await {
            Ok(Some(Ok(event))) => Ok(event),
            Ok(Some(Err(error))) => Err(failed("read the binlog", &error)),
            Ok(None) => Err(FeedError::unavailable("the server ended the binlog")),
            Err(_) => {
                let ms = self.server.timeout.as_millis();
                Err(FeedError::unavailable(format!(
                    "the server says nothing for {ms} ms, not even that nothing happens"
                )))
            }
        }
    }

    /// Takes an event; returns a transaction if it was the last of one.
    async fn take(&mut self, event: &Event) -> Result<Option<Transaction>, FeedError> {
        let raw = event.header().event_type_raw();
        if raw == GTID {
            return self.begin_mariadb(event).map(|()| None);
        }
        if COMPRESSED.contains(&raw) {
            return Err(FeedError::invalid("the binlog has compressed events").hint("set log_bin_compress=OFF"));
        }
        if raw == EventType::HEARTBEAT_EVENT as u8 || raw > 40 {
            return Ok(None);
        }
        if raw == EventType::TABLE_MAP_EVENT as u8 {
            return self.map(event.data()).await.map(|()| None);
        }
        let data = event.read_data().map_err(|error| unreadable(&error))?;
        match data {
            Some(EventData::GtidEvent(gtid)) => {
                let server = Uuid::from_bytes(gtid.sid()).to_string();
                self.position.add_of(&server, gtid.gno());
                self.open = Some(Open::default());
                Ok(None)
            }
            Some(EventData::AnonymousGtidEvent(_)) => {
                Err(FeedError::invalid("the binlog has transactions without a GTID").hint("set gtid_mode=ON"))
            }
            Some(EventData::RowsEvent(rows)) => self.rows(&rows).map(|()| None),
            Some(EventData::QueryEvent(query)) => {
                let is_over = self.statement(&query.query(), &query.schema())?;
                if is_over { self.commit(event) } else { Ok(None) }
            }
            Some(EventData::XidEvent(_)) => self.commit(event),
            Some(EventData::XaPrepareLogEvent(_)) => Err(distributed()),
            Some(EventData::IncidentEvent(_)) => {
                Err(FeedError::new(FeedErrorKind::Purged, "the server lost changes, and its binlog says so")
                    .hint(COPY_ANEW))
            }
            _ => Ok(None),
        }
    }

    fn begin_mariadb(&mut self, event: &Event) -> Result<(), FeedError> {
        let data = event.data();
        let number = data.get(..8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        let domain = data.get(8..12).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        let (Some(number), Some(domain), Some(flags)) = (number, domain, data.get(12)) else {
            return Err(FeedError::unavailable("a GTID event of the binlog is too short"));
        };
        if flags & XA != 0 {
            return Err(distributed());
        }
        self.position.add(domain, event.header().server_id(), number);
        self.open = Some(Open { is_standalone: flags & STANDALONE != 0, ..Open::default() });
        Ok(())
    }

    fn commit(&mut self, event: &Event) -> Result<Option<Transaction>, FeedError> {
        let Some(Open { transaction, .. }) = self.open.take() else { return Ok(None) };
        let committed_unix_ms = i64::from(event.header().timestamp()) * 1_000;
        transaction.committed(self.position.to_string(), committed_unix_ms).map(Some)
    }

    /// Takes a statement, and returns whether the transaction is over.
    fn statement(&mut self, statement: &str, database: &str) -> Result<bool, FeedError> {
        let Some(open) = &mut self.open else { return Ok(false) };
        let first = statement.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        match first.trim_end_matches(';') {
            "BEGIN" | "SAVEPOINT" => return Ok(false),
            // Of a table without transactions: its rows are what they are.
            "COMMIT" | "ROLLBACK" => return Ok(!statement.to_ascii_uppercase().contains(" TO ")),
            "XA" => return Err(distributed()),
            _ => {}
        }
        let is_over = open.is_standalone;
        let of_ignored = ignored_changes(statement, database, &self.following.ignored);
        let effects = match &of_ignored {
            Some(changes) if changes.are_all => Vec::new(),
            _ => effects(statement, database, &self.following.tables),
        };
        for effect in effects {
            match effect {
                Effect::Truncates(table) => {
                    open.transaction.push(Change::Truncate(table), &self.following)?;
                }
                Effect::Adds(table, names) => {
                    let shape = self.following.add_columns(&table, &names);
                    open.transaction.note(table, shape);
                }
                Effect::Unfollowable(table, why) => {
                    let position = self.position.to_string();
                    if self.following.accepted.as_deref() != Some(&position) {
                        let shown = shown(statement, self.following.show_rows);
                        let why = format!("at {position}, {why}: {shown}");
                        return Err(StopNote::new(position, why).error());
                    }
                    // Its next row says what it is.
                    if let Some(table) = table {
                        self.versions.remove(&table);
                        let shape = self.following.forget(&table);
                        open.transaction.note(table, shape);
                    }
                }
            }
        }
        if let Some(IgnoredChanges { table, dropped, added, .. }) = of_ignored {
            // Two shapes: a column that is added under the name of one that is dropped is another one.
            if !dropped.is_empty() {
                let shape = self.following.drop_ignored(&table, &dropped);
                open.transaction.note(table.clone(), shape);
            }
            if !added.is_empty() {
                let shape = self.following.add_columns(&table, &added);
                open.transaction.note(table, shape);
            }
        }
        // MySQL has no flag: a statement by itself is a transaction.
        Ok(is_over || matches!(self.position, Gtids::MySql(_)))
    }

    /// Notes what the columns of a table are.
    async fn map(&mut self, data: &[u8]) -> Result<(), FeedError> {
        let damaged = || FeedError::invalid("the binlog describes a table in a way that cannot be read");
        let map = TableMap::read(data, self.flavour).ok_or_else(damaged)?;
        let name = TableName::new(&*map.database, &*map.table);
        let id = map.id;
        let Some(followed) = self.following.tables.get(&name).cloned() else {
            self.tables.insert(id, None);
            return Ok(());
        };
        if !map.has_names() {
            let why = format!("the binlog does not name the columns of table {name}");
            return Err(FeedError::invalid(why).hint("set binlog_row_metadata=FULL"));
        }
        let known = self.versions.get(&name).filter(|version| version.described == map.described).cloned();
        let version = match known {
            Some(version) => version,
            None => {
                let mut conn = self.server.connect().await?;
                let bytes_max = self.following.transaction_bytes_max;
                let kept = self.following.shapes.get(&name).cloned().unwrap_or_default();
                let version = TableVersion::new(map, &followed, &kept, &self.charsets, &mut conn, bytes_max).await?;
                self.compare(&name, &version.names)?;
                let version = Arc::new(version);
                self.versions.insert(name, version.clone());
                version
            }
        };
        self.tables.insert(id, Some(version));
        Ok(())
    }

    /// Rejects a table that has other columns than it had, which no statement in the log explains.
    fn compare(&mut self, table: &TableName, names: &[Name]) -> Result<(), FeedError> {
        let was = self.following.shapes.get(table).cloned().unwrap_or_default();
        let kept = |name: &Name| ColumnShape {
            kind: was.kind_of(name).map(str::to_owned),
            ..ColumnShape::named(name.clone())
        };
        let now = TableShape { columns: names.iter().map(kept).collect(), ..TableShape::default() };
        let carried = self.following.tables.entry(table.clone()).or_default();
        match was.drift(&now, carried, |was, is| was == is) {
            Drift::Same => return Ok(()),
            // Of a table of which nothing was known, what is carried is known all the same.
            Drift::Harmless(_) => self.following.carry(table, was.new_in(&now)),
            Drift::Stop(why) => {
                let position = self.position.to_string();
                if self.following.accepted.as_deref() != Some(&position) {
                    let why =
                        format!("at {position}, table {table} has changed, and no statement in the log says so: {why}");
                    return Err(StopNote::new(position, why).error());
                }
            }
        }
        self.following.shapes.insert(table.clone(), now.clone());
        if let Some(open) = &mut self.open {
            open.transaction.note(table.clone(), now);
        }
        Ok(())
    }

    fn rows(&mut self, event: &RowsEventData<'_>) -> Result<(), FeedError> {
        let version = match self.tables.get(&event.table_id()) {
            Some(Some(version)) => version.clone(),
            Some(None) => return Ok(()),
            // A number of all ones stands for no table: it ends a statement.
            None if event.rows_data().is_empty() => return Ok(()),
            None => return Err(FeedError::unavailable("the binlog has rows of a table that it did not describe")),
        };
        let Some(open) = &mut self.open else {
            return Err(FeedError::unavailable("the binlog has rows outside of a transaction"));
        };
        let checks_keys = !event.flags().contains(RowsEventFlags::NO_FOREIGN_KEY_CHECKS);
        for images in version.rows(event)? {
            let change = Change::Row(RowChange { columns: version.columns.clone(), images, checks_keys });
            open.transaction.push(change, &self.following)?;
        }
        Ok(())
    }
}

fn unreadable(error: &std::io::Error) -> FeedError {
    FeedError::invalid(format!("the binlog cannot be read: {error}"))
}

fn distributed() -> FeedError {
    FeedError::invalid("the binlog has a distributed (XA) transaction, which is not supported")
        .hint(format!("keep XA away from the tables that are followed; {COPY_ANEW}"))
}

#[async_trait]
impl TransactionStream for Binlog {
    async fn next(&mut self) -> Result<Option<Transaction>, FeedError> {
        loop {
            if let Some(there_was) = self.there_was.as_ref().filter(|_| self.open.is_none())
                && there_was.is_within(&self.position)?
            {
                return Ok(None);
            }
            let event = self.event().await?;
            let is_idle = event.header().event_type_raw() == EventType::HEARTBEAT_EVENT as u8;
            if let Some(transaction) = self.take(&event).await? {
                return Ok(Some(transaction));
            }
            if is_idle && self.open.is_none() {
                return Ok(None);
            }
        }
    }
}
