//! Records of Debezium.
//!
//! A change has the row `before` and `after`, and with `provide.transaction.metadata=true` the name of its transaction and its number
//! there. Two other records say where a transaction begins, and that it has ended with how many changes. Of PostgreSQL, the name has a
//! position after it, which is another one in each record. A changed key is two records, of a deletion and an insertion.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    event::{ChangeEvent, ChangeKind, Event, LogTable, Named, Order, SnapshotRow, Tables},
    place::Mark,
};
use crate::{BeforeImages, Change, FeedError, Images, RowChange, TableName};

#[derive(Deserialize)]
struct Record<'a> {
    /// With the schema of the record next to it.
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    op: Option<String>,
    #[serde(borrow)]
    before: Option<&'a RawValue>,
    #[serde(borrow)]
    after: Option<&'a RawValue>,
    #[serde(borrow)]
    source: Option<Source<'a>>,
    transaction: Option<InTransaction>,
    ts_ms: Option<i64>,
    // A change of the schema.
    ddl: Option<String>,
    #[serde(rename = "databaseName")]
    database_name: Option<String>,
    // The beginning or the end of a transaction.
    status: Option<String>,
    id: Option<String>,
    event_count: Option<u64>,
    data_collections: Option<Vec<CollectionCount>>,
}

#[derive(Deserialize)]
struct Source<'a> {
    connector: Option<String>,
    ts_ms: Option<i64>,
    /// Text, or in older versions also a boolean.
    #[serde(borrow)]
    snapshot: Option<&'a RawValue>,
    db: Option<String>,
    schema: Option<String>,
    table: Option<String>,
    gtid: Option<String>,
    file: Option<String>,
    pos: Option<u64>,
    row: Option<u64>,
    #[serde(rename = "txId")]
    transaction: Option<u64>,
    lsn: Option<u64>,
    /// `["30899056","30899264"]`: where the last transaction ended, and where this change is.
    sequence: Option<String>,
}

#[derive(Deserialize)]
struct InTransaction {
    id: String,
    total_order: u64,
}

/// The number of a transaction's events in one table, from its END record.
#[derive(Deserialize)]
struct CollectionCount {
    data_collection: String,
    event_count: u64,
}

/// What a record says.
pub(super) fn decode(text: &str, tables: &Tables) -> Result<Event, FeedError> {
    let unreadable = |error| FeedError::invalid(format!("it is not a record of Debezium: {}", super::fault(&error)));
    let mut record: Record<'_> = serde_json::from_str(text).map_err(unreadable)?;
    if let Some(payload) = record.payload {
        record = serde_json::from_str(payload.get()).map_err(unreadable)?;
    }
    if let Some(op) = record.op.take() {
        return record.change(&op, tables);
    }
    if let Some(status) = record.status.take() {
        return record.boundary(&status, tables);
    }
    if let Some(sql) = record.ddl.take() {
        return Ok(record.statement(sql));
    }
    // A heartbeat says no more than the time.
    if record.source.is_none() && record.after.is_none() && record.ts_ms.is_some() {
        return Ok(Event::Nothing);
    }
    let hint = "let Debezium write whole records, without ExtractNewRecordState";
    Err(FeedError::invalid("it is not a record of Debezium: it has no op, status or ddl").hint(hint))
}

impl Record<'_> {
    fn change(&self, op: &str, tables: &Tables) -> Result<Event, FeedError> {
        // A message that a program wrote into the log of PostgreSQL.
        if op == "m" {
            return Ok(Event::Nothing);
        }
        let source = self.source.as_ref().ok_or_else(|| FeedError::invalid("a change has no source"))?;
        let is_postgres = source.is_postgres();
        let schema = if is_postgres { &source.schema } else { &source.db };
        let (Some(schema), Some(name)) = (schema, &source.table) else {
            return Err(FeedError::invalid("a change does not say of which table it is"));
        };
        let table = TableName::new(schema.as_str(), name.as_str());
        let kind = match op {
            "r" => ChangeKind::Snapshot(source.snapshot_row()),
            "t" => ChangeKind::Truncate { is_alone: !is_postgres },
            "c" | "u" | "d" => ChangeKind::Row,
            other => return Err(FeedError::invalid(format!("a change has the unknown op {}", super::brief(other)))),
        };
        let change = match tables.get(&table) {
            None => None,
            Some(_) if op == "t" => Some(Change::Truncate(table.clone())),
            Some(known) => Some(self.row(op, known)?),
        };
        let named = match &self.transaction {
            _ if op == "r" => None,
            Some(it) => Some((transaction_name(&it.id).to_owned(), Order::Counted(it.total_order))),
            None => source.transaction_name().map(|name| (name, Order::Uncounted)),
        };
        let mark = match (op, &self.transaction) {
            ("r", _) => source.lsn.map(|lsn| Mark::Lsn { begin: lsn, end: lsn }),
            _ if is_postgres => source.lsn_mark(),
            (_, Some(it)) => Mark::of_name(&it.id, source.unix_s()),
            (_, None) => source.gtid.as_deref().and_then(Mark::of_gtid),
        };
        let at = source.at();
        Ok(Event::Change(Box::new(ChangeEvent {
            table,
            change,
            kind,
            transaction: named.map(|(name, order)| Named { name, at, order }),
            mark,
            committed_unix_ms: source.ts_ms.unwrap_or_default(),
        })))
    }

    fn row(&self, op: &str, table: &LogTable) -> Result<Change, FeedError> {
        let before = |raw: &RawValue| table.part_of_row(raw, false).map(|row| table.trusted(row));
        let after = || {
            let raw = self.after.ok_or_else(|| FeedError::invalid("a change has no row after it"))?;
            table.row(raw, op == "r")
        };
        let images = match op {
            "c" => Images::Insert(after()?),
            // The graph may have it already.
            "r" => Images::Update { before: None, after: after()? },
            "u" => {
                let is_complete = table.before_images == BeforeImages::Complete;
                let before = self.before.filter(|_| is_complete).map(before).transpose()?;
                let mut after = after()?;
                if let Some(before) = &before {
                    table.fill(&mut after, before);
                }
                Images::Update { before, after }
            }
            _ => {
                let raw = self.before.ok_or_else(|| {
                    FeedError::invalid(format!("a deletion of table {} does not say which row", table.columns.table))
                        .hint("give the table a primary key, or REPLICA IDENTITY FULL")
                })?;
                Images::Delete(before(raw)?)
            }
        };
        Ok(Change::Row(RowChange::new(table.columns.clone(), images)))
    }

    fn boundary(self, status: &str, tables: &Tables) -> Result<Event, FeedError> {
        let name = self.id.ok_or_else(|| FeedError::invalid("the boundary of a transaction does not name it"))?;
        let committed_unix_ms = self.ts_ms.unwrap_or_default();
        let mark = Mark::of_name(&name, committed_unix_ms / 1_000).ok_or_else(|| {
            FeedError::invalid(format!("the transaction name {} is not understood", super::brief(&name)))
        })?;
        let name = transaction_name(&name).to_owned();
        match status {
            "BEGIN" => Ok(Event::Begin { name, mark }),
            "END" => {
                let is_followed =
                    |it: &&CollectionCount| tables.all().any(|table| table.columns.table.is(&it.data_collection));
                let counts = self.data_collections.unwrap_or_default();
                if counts.is_empty() && self.event_count.is_some_and(|count| count > 0) {
                    return Err(FeedError::invalid(format!(
                        "the end of transaction {name} has no counts of its tables"
                    )));
                }
                let counts = counts.iter().filter(is_followed).map(|it| it.event_count);
                let changes = counts.fold(0, u64::saturating_add);
                Ok(Event::End { name, mark, changes, committed_unix_ms })
            }
            other => Err(FeedError::invalid(format!("a transaction has the unknown status {}", super::brief(other)))),
        }
    }

    fn statement(self, sql: String) -> Event {
        let source = self.source.as_ref();
        // Of a snapshot: how the tables are at its beginning.
        if source.is_some_and(Source::is_snapshot) {
            return Event::Nothing;
        }
        let mark = source.and_then(|it| match &it.gtid {
            Some(gtid) => Mark::of_gtid(gtid),
            None => {
                let (file, offset) = it.file.clone().zip(it.pos)?;
                Some(Mark::Binlog { unix_s: it.unix_s(), file, offset })
            }
        });
        Event::Statement { sql, database: self.database_name.unwrap_or_default(), mark }
    }
}

impl Source<'_> {
    fn is_postgres(&self) -> bool {
        self.connector.as_deref() == Some("postgresql")
    }

    fn unix_s(&self) -> i64 {
        self.ts_ms.unwrap_or_default() / 1_000
    }

    fn snapshot_text(&self) -> &str {
        self.snapshot.map_or("", |raw| raw.get().trim_matches('"'))
    }

    fn is_snapshot(&self) -> bool {
        !matches!(self.snapshot_text(), "" | "false" | "null")
    }

    fn snapshot_row(&self) -> SnapshotRow {
        match self.snapshot_text() {
            "first" => SnapshotRow::First,
            "last" => SnapshotRow::Last,
            _ => SnapshotRow::Other,
        }
    }

    /// What distinguishes a transaction from the one before it, where nothing says where it ends.
    fn transaction_name(&self) -> Option<String> {
        self.gtid.clone().or_else(|| self.transaction.map(|number| number.to_string()))
    }

    fn at(&self) -> (u64, u64) {
        match self.lsn {
            Some(lsn) => (lsn, 0),
            None => (self.pos.unwrap_or_default(), self.row.unwrap_or_default()),
        }
    }

    fn lsn_mark(&self) -> Option<Mark> {
        let lsn = self.lsn?;
        let sequence: Vec<Option<String>> = serde_json::from_str(self.sequence.as_deref()?).ok()?;
        // The first transaction that a producer sees has none before it.
        let begin = match sequence.first()? {
            Some(last) => last.parse().ok()?,
            None => lsn,
        };
        Some(Mark::Lsn { begin, end: lsn.max(begin).saturating_add(1) })
    }
}

/// The name of a transaction without the position that is different in each of its records.
fn transaction_name(id: &str) -> &str {
    match id.split_once(':') {
        Some((number, _)) if number.parse::<u64>().is_ok() => number,
        _ => id,
    }
}
