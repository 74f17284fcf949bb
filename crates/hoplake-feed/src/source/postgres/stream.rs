//! Messages of pgoutput become transactions.
//!
//! The server decodes and sends a transaction when it has been committed. What it says of a table, a *relation*, comes before the first
//! row in a connection, and again when the table has changed: nothing else shows that.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use hoplake::Name;
use pg_walstream::{ColumnData, ColumnInfo, LogicalReplicationMessage, LogicalReplicationParser, TupleData};
use pgwire_replication::{Lsn, ReplicationEvent};

use super::{Connection, catalogue, failed, lsn, quoted, text, values::Decoder};
use crate::{
    Cell, Change, Columns, FeedError, FeedErrorKind, Images, Row, RowChange, TableName, Transaction,
    error::COPY_ANEW,
    source::{Following, TransactionStream, open_transaction::OpenTransaction},
};

/// Microseconds from 1970 to 2000, from when the server counts.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// After how much of the log of others the position is one of its own.
const IDLE_BYTES: u64 = 16 << 20;

/// Refuses a slot that no longer has what follows a position.
pub(super) async fn check_slot(connection: &mut Connection, slot: &str, from: Lsn) -> Result<(), FeedError> {
    let purged = |why: String| Err(FeedError::new(FeedErrorKind::Purged, why).hint(COPY_ANEW));
    let asked =
        format!("SELECT confirmed_flush_lsn, wal_status FROM pg_replication_slots WHERE slot_name = {}", quoted(slot));
    let rows = connection.query(&asked).await?;
    let Some(row) = rows.first() else { return purged(format!("the server has no replication slot {slot}")) };
    if text(row, 1).as_deref() == Some("lost") {
        return purged(format!("the server has removed the log that the slot {slot} needs"));
    }
    let confirmed = lsn(&text(row, 0).unwrap_or_default())?;
    if confirmed > from {
        return purged(format!("the slot {slot} is at {confirmed}, behind the graph's position {from}"));
    }
    Ok(())
}

/// The messages of a slot.
pub(super) struct Messages {
    stream: Connection,
    /// Is asked about types, while the other one streams.
    catalogue: Connection,
    following: Following,
    timeout: Duration,
    from: Lsn,
    /// Where the log was when this began: until the server has sent all before it, there is more.
    there_was: Lsn,
    parser: LogicalReplicationParser,
    relations: HashMap<u32, Option<Arc<Relation>>>,
    /// The last version of each table.
    versions: HashMap<TableName, Arc<Relation>>,
    open: Option<OpenTransaction>,
    /// The table that was described last, if it logs whole rows: what follows may be the partition that has them.
    whole: Option<TableName>,
}

/// A table as the log describes it.
#[derive(Debug)]
struct Relation {
    columns: Arc<Columns>,
    decoders: Vec<Decoder>,
    /// The columns that identify a row.
    is_key: Vec<bool>,
    /// What it was made of: names and types.
    described: Vec<(Name, TypeOf)>,
}

/// The type of a column, and its modifier: a length, or digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TypeOf {
    oid: u32,
    modifier: i32,
}

impl TypeOf {
    /// Whether all values are the same in another type.
    fn keeps_values_in(self, new: Self) -> bool {
        const INTEGERS: [u32; 3] = [21, 23, 20];
        const TEXTS: [u32; 2] = [25, 1043];
        const NUMERIC: u32 = 1700;
        let width = |oid| INTEGERS.iter().position(|it| *it == oid);
        // No modifier is no limit.
        let is_wider = new.modifier < 0 || (0..=new.modifier).contains(&self.modifier);
        match (self.oid, new.oid) {
            (NUMERIC, NUMERIC) => {
                let scale = |modifier: i32| (modifier - 4) & 0xffff;
                is_wider && (new.modifier < 0 || scale(self.modifier) == scale(new.modifier))
            }
            (old, new) if TEXTS.contains(&old) && TEXTS.contains(&new) => is_wider,
            (old, other) if old == other => self.modifier == new.modifier,
            (old, new) => width(old).zip(width(new)).is_some_and(|(old, new)| old <= new),
        }
    }
}

impl Messages {
    /// Requests what follows a position.
    pub(super) async fn open(
        mut stream: Connection,
        mut catalogue: Connection,
        from: Lsn,
        following: Following,
        timeout: Duration,
    ) -> Result<Self, FeedError> {
        let there_was = lsn(&catalogue.value("SELECT pg_current_wal_lsn()").await?.unwrap_or_default())?;
        let starting = |error| failed("begin to stream", &error);
        stream.client.start().await.map_err(starting)?;
        stream.client.wait_started().await.map_err(starting)?;
        let parser = LogicalReplicationParser::with_protocol_version(1);
        let (relations, versions) = (HashMap::new(), HashMap::new());
        Ok(Self {
            stream,
            catalogue,
            following,
            timeout,
            from,
            there_was,
            parser,
            relations,
            versions,
            open: None,
            whole: None,
        })
    }

    async fn event(&mut self) -> Result<ReplicationEvent, FeedError> {
        match tokio::time::timeout(self.timeout, self.stream.client.recv()).await {
            Ok(Ok(Some(event))) => Ok(event),
            Ok(Ok(None)) => Err(FeedError::unavailable("the server ended the stream")),
            Ok(Err(error)) => Err(failed("read the log", &error)),
            Err(_) => {
                let ms = self.timeout.as_millis();
                Err(FeedError::unavailable(format!(
                    "the server says nothing for {ms} ms, not even that nothing happens"
                )))
            }
        }
    }

    /// Tells the server up to where the graph has followed, so that it may throw away what is before.
    fn acknowledge(&mut self) {
        let Some(committed) = &mut self.following.committed else { return };
        let position = committed.borrow_and_update().clone();
        if let Ok(position) = lsn(&position) {
            self.stream.client.update_applied_lsn(position);
        }
    }

    async fn take(&mut self, data: bytes::Bytes) -> Result<(), FeedError> {
        let unreadable =
            |error: pg_walstream::ReplicationError| FeedError::invalid(format!("the log cannot be read: {error}"));
        let described = self.whole.take();
        match self.parser.parse_wal_message_bytes(data).map_err(unreadable)?.message {
            LogicalReplicationMessage::Relation {
                relation_id,
                namespace,
                relation_name,
                columns,
                replica_identity,
            } => {
                let table = TableName::new(&*namespace, &*relation_name);
                let is_whole = char::from(replica_identity) == 'f';
                let is_followed = self.following.tables.contains_key(&table);
                if let Some(whole) = described.filter(|_| !is_whole && !is_followed) {
                    self.check_partition(relation_id, &table, &whole).await?;
                }
                self.whole = (is_whole && is_followed).then(|| table.clone());
                self.relation(relation_id, table, &columns).await
            }
            LogicalReplicationMessage::Insert { relation_id, tuple } => {
                let Some(relation) = self.table(relation_id)? else { return Ok(()) };
                let images = Images::Insert(relation.row(&tuple, None));
                self.push(&relation, images)
            }
            LogicalReplicationMessage::Update { relation_id, old_tuple, new_tuple, key_type } => {
                let Some(relation) = self.table(relation_id)? else { return Ok(()) };
                let before = old_tuple.map(|tuple| relation.before(&tuple, key_type));
                let after = relation.row(&new_tuple, before.as_ref());
                self.push(&relation, Images::Update { before, after })
            }
            LogicalReplicationMessage::Delete { relation_id, old_tuple, key_type } => {
                let Some(relation) = self.table(relation_id)? else { return Ok(()) };
                let images = Images::Delete(relation.before(&old_tuple, Some(key_type)));
                self.push(&relation, images)
            }
            LogicalReplicationMessage::Truncate { relation_ids, .. } => {
                for id in relation_ids {
                    if let Some(relation) = self.table(id)? {
                        let change = Change::Truncate(relation.columns.table.clone());
                        self.open.get_or_insert_default().push(change, &self.following)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Refuses a partition that logs less of a row than its table says: nulls stand in the log for what it does not have. A new partition
    /// has the default, whatever its table has.
    async fn check_partition(&mut self, id: u32, partition: &TableName, of: &TableName) -> Result<(), FeedError> {
        let position = self.from.to_pg_string();
        if self.following.accepted.as_deref() == Some(&position)
            || !catalogue::is_partition(&mut self.catalogue, id, of).await?
        {
            return Ok(());
        }
        let why =
            format!("after {position}, the partition {partition} of table {of} logs less of a row than its table says");
        let hint = format!("run: ALTER TABLE {} REPLICA IDENTITY FULL; -- then {COPY_ANEW}", partition.quoted('"'));
        Err(FeedError::invalid(why).hint(hint))
    }

    fn table(&self, id: u32) -> Result<Option<Arc<Relation>>, FeedError> {
        let known = self.relations.get(&id).cloned();
        known.ok_or_else(|| FeedError::unavailable("the log has rows of a table that it did not describe"))
    }

    fn push(&mut self, relation: &Relation, images: Images) -> Result<(), FeedError> {
        let change = Change::Row(RowChange { columns: relation.columns.clone(), images });
        self.open.get_or_insert_default().push(change, &self.following)
    }

    /// Notes what the columns of a table are, and whether that can be followed.
    async fn relation(&mut self, id: u32, table: TableName, columns: &[ColumnInfo]) -> Result<(), FeedError> {
        if !self.following.tables.contains_key(&table) {
            self.relations.insert(id, None);
            return Ok(());
        }
        let type_of = |column: &ColumnInfo| TypeOf { oid: column.type_id, modifier: column.type_modifier };
        let described: Vec<_> = columns.iter().map(|column| (Name::from(&*column.name), type_of(column))).collect();
        let is_key: Vec<_> = columns.iter().map(|column| column.flags & 1 != 0).collect();
        let last = self.versions.get(&table).cloned();
        if let Some(last) = last.as_ref().filter(|last| last.described == described && last.is_key == is_key) {
            self.relations.insert(id, Some(last.clone()));
            return Ok(());
        }
        if let Some(last) = &last {
            self.check_change(&table, last, &described).await?;
        }
        let types: BTreeSet<u32> = described.iter().map(|(_, it)| it.oid).collect();
        let known = catalogue::decoders_of_types(&mut self.catalogue, &types).await?;
        let mut of_log = Columns { table: table.clone(), names: Vec::new(), kinds: Vec::new() };
        let mut decoders = Vec::new();
        for (name, TypeOf { oid, .. }) in &described {
            let decoder = known.get(oid).copied().unwrap_or(Decoder::One(super::values::Scalar::Text));
            of_log.names.push(name.clone());
            of_log.kinds.push(Some(decoder.kind()));
            decoders.push(decoder);
        }
        let relation = Arc::new(Relation { columns: Arc::new(of_log), decoders, is_key, described });
        self.versions.insert(table, relation.clone());
        self.relations.insert(id, Some(relation));
        Ok(())
    }

    /// Refuses a change of a table after which rows may be other than the graph has them.
    async fn check_change(
        &mut self,
        table: &TableName,
        last: &Relation,
        now: &[(Name, TypeOf)],
    ) -> Result<(), FeedError> {
        let carried = self.following.tables.get(table).cloned().unwrap_or_default();
        let mut why = None;
        for (name, was) in &last.described {
            match now.iter().find(|(other, _)| other == name) {
                None if carried.contains(name) => why = Some(format!("column {name} is gone")),
                Some((_, is)) if !was.keeps_values_in(*is) && carried.contains(name) => {
                    why = Some(format!("column {name} has another type"))
                }
                _ => {}
            }
        }
        let is_new = |name: &&Name| !last.described.iter().any(|(before, _)| before == *name);
        let added: Vec<Name> = now.iter().map(|(name, _)| name).filter(is_new).cloned().collect();
        if why.is_none() && !added.is_empty() {
            let filled = catalogue::filled(&mut self.catalogue, table, &added).await?;
            why = filled.map(|name| format!("column {name} is new, and each row has a value in it"));
        }
        let Some(why) = why.filter(|_| self.following.accepted.as_deref() != Some(&self.from.to_pg_string())) else {
            return Ok(());
        };
        let position = self.from.to_pg_string();
        let hint = format!(
            "{COPY_ANEW}; or, if you know that the graph is right without it, run the feed with --accept-ddl {position}"
        );
        Err(FeedError::invalid(format!("after {position}, table {table} was changed: {why}")).hint(hint))
    }
}

impl Relation {
    /// A row, in which a long value that has not changed is taken from the row before, if that is complete.
    fn row(&self, tuple: &TupleData, before: Option<&Row>) -> Row {
        let cell = |(at, decoder): (usize, &Decoder)| match tuple.get_column(at) {
            None => Cell::Absent,
            Some(data) if data.is_unchanged() => before.map_or(Cell::Absent, |before| before[at].clone()),
            Some(data) => decoder.decode(bytes_of(data)),
        };
        self.decoders.iter().enumerate().map(cell).collect()
    }

    /// A row before a change: all of it, or its key, and then null stands for what is not said.
    fn before(&self, tuple: &TupleData, key_type: Option<char>) -> Row {
        let mut row = self.row(tuple, None);
        if key_type != Some('O') {
            row.iter_mut().zip(&self.is_key).filter(|(_, is_key)| !**is_key).for_each(|(cell, _)| *cell = Cell::Absent);
        }
        row
    }
}

fn bytes_of(data: &ColumnData) -> Option<&[u8]> {
    if data.is_null() { None } else { Some(data.as_bytes()) }
}

#[async_trait]
impl TransactionStream for Messages {
    async fn next(&mut self) -> Result<Option<Transaction>, FeedError> {
        loop {
            self.acknowledge();
            if self.following.once && self.open.is_none() && self.from >= self.there_was {
                return Ok(None);
            }
            match self.event().await? {
                ReplicationEvent::Begin { .. } => self.open = Some(OpenTransaction::default()),
                ReplicationEvent::XLogData { data, .. } => self.take(data).await?,
                ReplicationEvent::Commit { end_lsn, commit_time_micros, .. } => {
                    let open = self.open.take().unwrap_or_default();
                    // What the graph has already, the server may send again.
                    if end_lsn <= self.from {
                        continue;
                    }
                    self.from = end_lsn;
                    let committed_unix_ms = (commit_time_micros + EPOCH_MICROS) / 1_000;
                    return open.committed(end_lsn.to_pg_string(), committed_unix_ms).map(Some);
                }
                // All that was committed before it has been sent. While nobody changes these tables, others may: without a position
                // that moves the server would keep all of its log.
                ReplicationEvent::KeepAlive { wal_end, server_time_micros, .. }
                    if self.open.is_none() && wal_end.as_u64().saturating_sub(self.from.as_u64()) > IDLE_BYTES =>
                {
                    self.from = wal_end;
                    let unix_ms = (server_time_micros + EPOCH_MICROS) / 1_000;
                    return OpenTransaction::default().committed(wal_end.to_pg_string(), unix_ms).map(Some);
                }
                ReplicationEvent::KeepAlive { wal_end, .. } if self.open.is_none() && wal_end >= self.there_was => {
                    return Ok(None);
                }
                _ => {}
            }
        }
    }
}
