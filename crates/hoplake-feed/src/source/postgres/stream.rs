//! Messages of pgoutput become transactions.
//!
//! The server decodes and sends a transaction when it has been committed. What it says of a table, a *relation*, comes before the first
//! row in a connection, and again when the table has changed: nothing else shows that.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use hoplake::Name;
use pg_walstream::{ColumnData, ColumnInfo, LogicalReplicationMessage, LogicalReplicationParser, TupleData};
use pgwire_replication::{Lsn, ReplicationEvent};
use tokio::time::Instant;

use super::{Connection, catalog, failed, lsn, quoted, text, values::Decoder};
use crate::{
    Cell, Change, Columns, FeedError, FeedErrorKind, Images, Row, RowChange, TableName, Transaction,
    error::{COPY_ANEW, StopNote},
    source::{
        Following, TransactionStream,
        open_transaction::OpenTransaction,
        shape::{ColumnShape, Drift, TableShape},
    },
};

/// Microseconds from 1970 to 2000, from when the server counts.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// After how much of the log of others the position is one of its own.
const IDLE_BYTES: u64 = 16 << 20;

/// How often tables are compared with the catalog while nothing comes.
const COMPARE_EVERY: Duration = Duration::from_secs(10);

/// Rejects a slot that no longer has what follows a position.
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
        let why = format!(
            "the slot {slot} was confirmed up to {confirmed}, and the graph is at {from}: the server no longer has what was committed between the two"
        );
        return purged(why);
    }
    Ok(())
}

/// The messages of a slot.
pub(super) struct Messages {
    stream: Connection,
    /// Is asked about types, while the other one streams.
    catalog: Connection,
    publication: String,
    following: Following,
    timeout: Duration,
    from: Lsn,
    /// When the tables are to be compared with the catalog, if nothing comes.
    compare_at: Instant,
    /// Where the log was when this began: until the server has sent all before it, there is more.
    there_was: Lsn,
    parser: LogicalReplicationParser,
    relations: HashMap<u32, Option<Arc<Relation>>>,
    /// The last version of each table.
    versions: HashMap<TableName, Arc<Relation>>,
    open: Option<OpenTransaction>,
    /// The transaction that is read.
    transaction: u32,
    /// The transactions that truncated a table, as the log has them, since it was compared.
    truncated: BTreeMap<TableName, BTreeSet<u32>>,
    /// Partitions of tables, or these, by their numbers, that were written again by one of some transactions. Until the server has sent all
    /// before a position, the log may yet say that.
    unexplained: BTreeMap<(TableName, u32), (Vec<u32>, Lsn)>,
    /// All that was committed before it has been sent.
    sent: Lsn,
    /// The table that was described last, if it logs whole rows: what follows may be the partition that has them.
    whole: Option<TableName>,
}

/// Why a feed stops if it is not in the log that rows were written again.
fn why_rewritten(rewritten: &catalog::Rewritten) -> String {
    match &rewritten.partition {
        Some(partition) => format!(
            "its partition {partition} was emptied or written again; TRUNCATE of a single partition is not in the log, nor is anything while it \
             is unlogged"
        ),
        None => {
            "all its rows were written again, and what was changed while it was unlogged is not in the log".to_owned()
        }
    }
}

/// A table as the log describes it.
#[derive(Debug)]
struct Relation {
    columns: Arc<Columns>,
    decoders: Vec<Decoder>,
    /// The columns that identify a row.
    is_key: Vec<bool>,
    /// What it was made of: names, and the numbers of types.
    described: Vec<(Name, u32)>,
}

impl Messages {
    /// Requests what follows a position.
    pub(super) async fn open(
        mut stream: Connection,
        mut catalog: Connection,
        publication: String,
        from: Lsn,
        following: Following,
        timeout: Duration,
    ) -> Result<Self, FeedError> {
        let there_was = lsn(&catalog.value("SELECT pg_current_wal_lsn()").await?.unwrap_or_default())?;
        let starting = |error| failed("begin to stream", &error);
        stream.client.start().await.map_err(starting)?;
        stream.client.wait_started().await.map_err(starting)?;
        let parser = LogicalReplicationParser::with_protocol_version(1);
        let relations = HashMap::new();
        let versions = HashMap::new();
        Ok(Self {
            stream,
            catalog,
            publication,
            following,
            timeout,
            from,
            compare_at: Instant::now(),
            there_was,
            parser,
            relations,
            versions,
            open: None,
            transaction: 0,
            truncated: BTreeMap::new(),
            unexplained: BTreeMap::new(),
            sent: from,
            whole: None,
        })
    }

    async fn event(&mut self) -> Result<ReplicationEvent, FeedError> {
        let received = tokio::time::timeout(self.timeout, self.stream.client.recv()).await;
        match received {
            Ok(Ok(Some(event))) => Ok(event),
            Ok(Ok(None)) => Err(FeedError::unavailable("the server ended the stream")),
            Ok(Err(error)) => {
                let error = failed("read the log", &error);
                // A server that no longer has the publication cannot read its own log: the tables say why.
                if !error.is_transient() {
                    self.compare_all().await?;
                }
                Err(error)
            }
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
                        let table = relation.columns.table.clone();
                        self.truncated.entry(table.clone()).or_default().insert(self.transaction);
                        let change = Change::Truncate(table);
                        self.open.get_or_insert_default().push(change, &self.following)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Rejects a partition that logs less of a row than its table says: nulls stand in the log for what it does not have. A new partition
    /// has the default, whatever its table has.
    async fn check_partition(&mut self, id: u32, partition: &TableName, of: &TableName) -> Result<(), FeedError> {
        let position = self.from.to_pg_string();
        if self.is_accepted() || !catalog::is_partition(&mut self.catalog, id, of).await? {
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
        // Whether a session followed the rules of foreign keys is not in the log, and what the rules did is: so of a row that goes away,
        // the edges of others wait until their own rows say what became of them.
        let may_leave = matches!(images, Images::Delete(_) | Images::Update { before: Some(_), .. });
        let change = RowChange { checks_keys: !may_leave, ..RowChange::new(relation.columns.clone(), images) };
        self.open.get_or_insert_default().push(Change::Row(change), &self.following)
    }

    /// The table that is followed if it has this number, and another name.
    fn renamed(&self, id: u32) -> Option<TableName> {
        self.following.shapes.iter().find(|(_, shape)| shape.id == Some(id)).map(|(table, _)| table.clone())
    }

    fn is_accepted(&self) -> bool {
        self.following.accepted.as_deref() == Some(&self.from.to_pg_string())
    }

    /// Notes what the columns of a table are, and whether that can be followed.
    async fn relation(&mut self, id: u32, named: TableName, columns: &[ColumnInfo]) -> Result<(), FeedError> {
        let table = if self.following.tables.contains_key(&named) {
            named
        } else if let Some(table) = self.renamed(id) {
            if !self.is_accepted() {
                let position = self.from.to_pg_string();
                let why = format!("after {position}, table {table} was changed: it had the name {named}");
                return Err(StopNote::new(position, why).error());
            }
            // If it has its own name again, the rows are those of the table all the same.
            let now = self.shapes(std::slice::from_ref(&table)).await?;
            if now.get(&table).is_none_or(|now| now.id != Some(id)) {
                self.relations.insert(id, None);
                return Ok(());
            }
            table
        } else {
            self.relations.insert(id, None);
            return Ok(());
        };
        let described: Vec<_> = columns.iter().map(|column| (Name::from(&*column.name), column.type_id)).collect();
        let is_key: Vec<_> = columns.iter().map(|column| column.flags & 1 != 0).collect();
        let mut now = self.shapes(std::slice::from_ref(&table)).await?;
        self.compare(&table, now.remove(&table), Some((id, &described))).await?;
        let last = self.versions.get(&table).cloned();
        if let Some(last) = last.filter(|last| last.described == described && last.is_key == is_key) {
            self.relations.insert(id, Some(last));
            return Ok(());
        }
        let types: BTreeSet<u32> = described.iter().map(|(_, oid)| *oid).collect();
        let known = catalog::decoders_of_types(&mut self.catalog, &types).await?;
        let mut of_log = Columns { table: table.clone(), names: Vec::new(), kinds: Vec::new() };
        let mut decoders = Vec::new();
        for (name, oid) in &described {
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

    /// Compares a table with what the feed knows of it. The log names columns and types, and says nothing if values are computed again, so
    /// the catalog is asked. It may be ahead of the log: then the feed stops somewhat before the change. Returns whether it is another
    /// one than it was, in nothing that matters.
    async fn compare(
        &mut self,
        table: &TableName,
        mut now: Option<TableShape>,
        logged: Option<(u32, &[(Name, u32)])>,
    ) -> Result<bool, FeedError> {
        let was = self.following.shapes.get(table).cloned().unwrap_or_default();
        let carried = self.following.tables.get(table).cloned().unwrap_or_default();
        let position = self.from.to_pg_string();
        if let (Some((_, described)), Some(now)) = (logged, &mut now) {
            // The row was written before a column was dropped that is not carried.
            let is_logged = |it: &ColumnShape| described.iter().any(|(name, _)| *name == it.name);
            let is_there =
                |it: &ColumnShape| now.columns.iter().any(|other| other.name == it.name || other.number == it.number);
            let is_dropped = |it: &&ColumnShape| is_logged(it) && !carried.contains(&it.name) && !is_there(it);
            let dropped: Vec<_> = was.columns.iter().filter(is_dropped).cloned().collect();
            now.columns.extend(dropped);
        }
        let mut why = None;
        match now.as_ref().map(|now| was.drift(now, &carried, catalog::keeps_values)) {
            None => why = Some("no table has its name any more".to_owned()),
            Some(Drift::Same) => self.unexplained.retain(|(of, _), _| of != table),
            Some(Drift::Stop(reason)) => why = Some(reason),
            Some(Drift::Harmless(added)) => {
                let rewritten = now.as_ref().map(|now| was.rewritten(now)).unwrap_or_default();
                if !was.columns.is_empty() && !added.is_empty() {
                    let filled = match catalog::filled(&mut self.catalog, table, &added).await? {
                        None if !rewritten.is_empty() => catalog::has_values(&mut self.catalog, table, &added).await?,
                        filled => filled,
                    };
                    why = filled.map(|name| format!("column {name} is new, and rows have had values in it since"));
                }
                if why.is_none() && !self.is_accepted() {
                    let unexplained = self.unexplained(table, &was, &rewritten).await?;
                    why = unexplained.iter().find(|it| self.is_read_past(table, it.number)).map(why_rewritten);
                    let numbers: Vec<_> = unexplained.iter().map(|it| it.number).collect();
                    now = now.map(|now| now.with_storage_of(&was, &numbers));
                }
            }
        }
        if let (None, Some((id, described)), Some(now)) = (&why, logged.filter(|_| !was.columns.is_empty()), &now) {
            // What the catalog does not have any more was there when the row was written.
            let is_gone = |(name, _): &&(Name, u32)| !now.columns.iter().any(|it| it.name == *name);
            why = match described.iter().find(is_gone) {
                _ if now.id != Some(id) => Some("another table had its name for some time".into()),
                Some((name, _)) => Some(format!("column {name} was there for some time")),
                None => None,
            };
        }
        if let Some(why) = why.filter(|_| !self.is_accepted()) {
            let why = format!("after {position}, table {table} was changed: {why}");
            return Err(StopNote::new(position, why).error());
        }
        let Some(now) = now.filter(|now| *now != was) else { return Ok(false) };
        self.following.carry(table, was.new_in(&now));
        self.following.shapes.insert(table.clone(), now.clone());
        self.open.get_or_insert_default().note(table.clone(), now);
        Ok(true)
    }

    /// What of a table was written again, and the log has not said so until now.
    async fn unexplained(
        &mut self,
        table: &TableName,
        was: &TableShape,
        rewritten: &[u32],
    ) -> Result<Vec<catalog::Rewritten>, FeedError> {
        let mut unexplained = Vec::new();
        if !rewritten.is_empty() {
            let publication = &self.publication;
            unexplained = catalog::rewritten_without_log(&mut self.catalog, publication, rewritten, |number| {
                was.had_rows(number)
            })
            .await?;
            let truncated = self.truncated.get(table);
            let is_logged = |by: &u32| truncated.is_some_and(|truncated| truncated.contains(by));
            unexplained.retain(|it| !it.transactions.iter().any(is_logged));
        }
        if unexplained.is_empty() {
            self.truncated.remove(table);
        }
        let is_left = |number: &u32| unexplained.iter().any(|it| it.number == *number);
        self.unexplained.retain(|(of, number), _| of != table || is_left(number));
        for it in &unexplained {
            let key = (table.clone(), it.number);
            if self.unexplained.get(&key).is_none_or(|(by, _)| *by != it.transactions) {
                let there_is = lsn(&self.catalog.value("SELECT pg_current_wal_lsn()").await?.unwrap_or_default())?;
                self.unexplained.insert(key, (it.transactions.clone(), there_is));
            }
        }
        Ok(unexplained)
    }

    /// Whether the log was read to where it was when this was first seen to be written again.
    fn is_read_past(&self, table: &TableName, number: u32) -> bool {
        let unexplained = self.unexplained.get(&(table.clone(), number));
        unexplained.is_some_and(|(_, there_was)| *there_was <= self.sent)
    }

    /// Whether something that was written again is not explained, and the log has nothing more to say of it.
    fn must_compare(&self) -> bool {
        self.unexplained.values().any(|(_, there_was)| *there_was <= self.sent)
    }

    async fn shapes(&mut self, tables: &[TableName]) -> Result<BTreeMap<TableName, TableShape>, FeedError> {
        catalog::shapes(&mut self.catalog, &self.publication, tables).await
    }

    /// Compares all tables with what the feed knows of them, and returns whether one is another one than it was.
    async fn compare_all(&mut self) -> Result<bool, FeedError> {
        let tables: Vec<TableName> = self.following.tables.keys().cloned().collect();
        let mut is_other = false;
        let mut now = self.shapes(&tables).await?;
        for table in &tables {
            is_other |= self.compare(table, now.remove(table), None).await?;
        }
        Ok(is_other)
    }

    /// Compares all tables with what the feed knows of them, if that is due: a change without a row after it shows nowhere else. Returns a
    /// transaction that says what they are, if one is another one than it was.
    async fn compared(&mut self) -> Result<Option<Transaction>, FeedError> {
        if Instant::now() < self.compare_at && !self.must_compare() {
            return Ok(None);
        }
        let is_other = self.compare_all().await?;
        self.following.accepted = None;
        self.compare_at = Instant::now() + COMPARE_EVERY;
        if !is_other {
            return Ok(None);
        }
        let open = self.open.take().unwrap_or_default();
        let now = self.catalog.value("SELECT (extract(epoch FROM now()) * 1000)::bigint").await?;
        let unix_ms = now.and_then(|now| now.parse().ok()).unwrap_or_default();
        open.committed(self.from.to_pg_string(), unix_ms).map(Some)
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
            if self.following.once && self.open.is_none() && self.sent >= self.there_was {
                let compared = self.compared().await?;
                if compared.is_some() || self.unexplained.is_empty() {
                    return Ok(compared);
                }
            }
            match self.event().await? {
                ReplicationEvent::Begin { xid, .. } => {
                    self.open = Some(OpenTransaction::default());
                    self.transaction = xid;
                }
                ReplicationEvent::XLogData { data, .. } => self.take(data).await?,
                ReplicationEvent::Commit { end_lsn, commit_time_micros, .. } => {
                    // What the graph has already, the server may send again.
                    if end_lsn <= self.from {
                        self.open = None;
                        continue;
                    }
                    self.sent = self.sent.max(end_lsn);
                    if self.must_compare() {
                        self.compare_all().await?;
                    }
                    let open = self.open.take().unwrap_or_default();
                    self.from = end_lsn;
                    let committed_unix_ms = (commit_time_micros + EPOCH_MICROS) / 1_000;
                    return open.committed(end_lsn.to_pg_string(), committed_unix_ms).map(Some);
                }
                // All that was committed before it has been sent. While no one changes these tables, others may: without a position
                // that moves the server would keep all of its log.
                ReplicationEvent::KeepAlive { wal_end, server_time_micros, .. }
                    if self.open.is_none() && wal_end.as_u64().saturating_sub(self.from.as_u64()) > IDLE_BYTES =>
                {
                    self.from = wal_end;
                    self.sent = self.sent.max(wal_end);
                    let unix_ms = (server_time_micros + EPOCH_MICROS) / 1_000;
                    return OpenTransaction::default().committed(wal_end.to_pg_string(), unix_ms).map(Some);
                }
                ReplicationEvent::KeepAlive { wal_end, .. } if self.open.is_none() => {
                    self.sent = self.sent.max(wal_end);
                    if wal_end >= self.there_was && !self.following.once {
                        return self.compared().await;
                    }
                }
                _ => {}
            }
        }
    }
}
