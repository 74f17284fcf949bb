//! Records of Maxwell.
//!
//! A row is in `data`, and of an update the columns that changed are in `old`. The rows of a transaction are numbered, and the last one
//! says that it is. Rows of a bootstrap belong to no transaction. TRUNCATE is not written at all.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    event::{ChangeEvent, ChangeKind, Event, LogTable, Named, Order, SnapshotRow, Tables},
    place::Mark,
};
use crate::{Cell, Change, FeedError, Images, RowChange, TableName};

/// The database in which Maxwell keeps its own tables.
pub(super) const OWN_DATABASE: &str = "maxwell";

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    database: String,
    #[serde(default)]
    table: String,
    #[serde(default)]
    ts: i64,
    xid: Option<u64>,
    xoffset: Option<u64>,
    #[serde(default)]
    commit: bool,
    position: Option<String>,
    sql: Option<String>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    old: Option<&'a RawValue>,
}

/// What a record says.
pub(super) fn decode(record: &str, tables: &Tables) -> Result<Event, FeedError> {
    let record: Record<'_> = serde_json::from_str(record)
        .map_err(|error| FeedError::invalid(format!("it is not a record of Maxwell: {}", super::fault(&error))))?;
    let mark = record.position.as_deref().and_then(|position| Mark::of_binlog(position, record.unix_s()));
    match record.kind.as_str() {
        "insert" | "update" | "delete" => {
            let (Some(xid), Some(mark)) = (record.xid, mark) else {
                let why = "a row has no xid and no position, which transactions and repetitions are recognized by";
                return Err(FeedError::invalid(why).hint(
                    "let Maxwell write them: output_xoffset=true, output_commit_info=true, output_binlog_position=true",
                ));
            };
            let number = match (record.commit, record.xoffset) {
                (true, _) => None,
                (false, Some(number)) => Some(number),
                (false, None) => {
                    let why = "a row has no xoffset and does not end its transaction";
                    return Err(FeedError::invalid(why).hint("let Maxwell write it: output_xoffset=true"));
                }
            };
            let order = Order::UntilLast(number);
            let transaction = Some(Named { name: xid.to_string(), at: (number.unwrap_or(u64::MAX), 0), order });
            record.change(ChangeKind::Row, transaction, Some(mark), tables)
        }
        "bootstrap-insert" => record.change(ChangeKind::Snapshot(SnapshotRow::Other), None, None, tables),
        "bootstrap-start" | "bootstrap-complete" => Ok(Event::Nothing),
        _ => match record.sql {
            Some(sql) => Ok(Event::Statement { sql, database: record.database, mark }),
            None => Err(FeedError::invalid(format!("a record has the unknown type {}", super::brief(&record.kind)))),
        },
    }
}

impl Record<'_> {
    fn unix_s(&self) -> i64 {
        // That of a statement is in milliseconds.
        if self.sql.is_some() { self.ts / 1_000 } else { self.ts }
    }

    fn change(
        &self,
        kind: ChangeKind,
        transaction: Option<Named>,
        mark: Option<Mark>,
        tables: &Tables,
    ) -> Result<Event, FeedError> {
        let table = TableName::new(self.database.as_str(), self.table.as_str());
        let change = tables.get(&table).map(|known| self.row(known)).transpose()?;
        let committed_unix_ms = self.unix_s().saturating_mul(1_000);
        Ok(Event::Change(Box::new(ChangeEvent { table, change, kind, transaction, mark, committed_unix_ms })))
    }

    fn row(&self, table: &LogTable) -> Result<Change, FeedError> {
        let data = self.data.ok_or_else(|| FeedError::invalid("a row has no data"))?;
        let row = table.row(data, self.kind == "bootstrap-insert")?;
        let images = match self.kind.as_str() {
            "delete" => Images::Delete(row),
            "update" => {
                let mut before = row.clone();
                if let Some(old) = self.old {
                    let changed = table.part_of_row(old, false)?;
                    for (cell, old) in before.iter_mut().zip(changed).filter(|(_, old)| *old != Cell::Absent) {
                        *cell = old;
                    }
                }
                Images::Update { before: Some(before), after: row }
            }
            "insert" => Images::Insert(row),
            // The graph may have it already.
            _ => Images::Update { before: None, after: row },
        };
        Ok(Change::Row(RowChange::new(table.columns.clone(), images)))
    }
}
