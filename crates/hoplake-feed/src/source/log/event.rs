//! What a record of a log says, and the rows in it.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use hoplake::Name;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    place::Mark,
    values::{Decoder, Style},
};
use crate::{BeforeImages, Catalog, Cell, Change, Columns, FeedError, Row, TableName, source::Following};

/// What a record says.
#[derive(Debug)]
pub(super) enum Event {
    /// Nothing that matters here.
    Nothing,
    /// A row, or a table.
    Change(Box<ChangeEvent>),
    /// A transaction of this name begins.
    Begin { name: String, mark: Mark },
    /// A transaction of this name has ended, with so many changes of tables that are followed.
    End { name: String, mark: Mark, changes: u64, committed_unix_ms: i64 },
    /// A statement that changed the schema.
    Statement { sql: String, database: String, mark: Option<Mark> },
}

/// A change of a row or of a table.
#[derive(Debug)]
pub(super) struct ChangeEvent {
    pub(super) table: TableName,
    /// Nothing of a table that is not followed.
    pub(super) change: Option<Change>,
    pub(super) kind: ChangeKind,
    /// The transaction that it belongs to, as far as the record says.
    pub(super) transaction: Option<Named>,
    pub(super) mark: Option<Mark>,
    pub(super) committed_unix_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    /// Of one row.
    Row,
    /// A row as it was found.
    Snapshot(SnapshotRow),
    /// All rows are gone. Whether it is a transaction of its own, of which no end is written.
    Truncate { is_alone: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SnapshotRow {
    First,
    Other,
    Last,
}

/// The transaction of a change.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: String,
    /// Where the change is in it: both records of a row whose key changes are at one place.
    pub(super) at: (u64, u64),
    /// What orders the changes of a transaction.
    pub(super) order: Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The number of the change; the end of the transaction is another record, which says how many there are.
    Counted(u64),
    /// The number of the change; none of the last one, which ends the transaction.
    UntilLast(Option<u64>),
    /// As they come, and nothing says where the transaction ends.
    Uncounted,
}

/// The tables that are followed, and how their rows are read.
#[derive(Debug, Default)]
pub(super) struct Tables(HashMap<TableName, Arc<LogTable>>);

/// A table, as the catalog has it.
#[derive(Debug)]
pub(super) struct LogTable {
    pub(super) columns: Arc<Columns>,
    positions: HashMap<Name, usize>,
    decoders: Vec<Decoder>,
    /// The columns that identify a row.
    is_key: Vec<bool>,
    /// The columns that each row has.
    is_needed: Vec<bool>,
    pub(super) before_images: BeforeImages,
}

impl Tables {
    pub(super) fn new(catalog: &Catalog, following: &Following, style: Style) -> Self {
        let of = |(name, carried): (&TableName, &BTreeSet<Name>)| {
            let table = catalog.table(name)?;
            let names: Vec<_> = table.columns.iter().map(|column| column.name.clone()).collect();
            let table = LogTable {
                positions: names.iter().cloned().enumerate().map(|(at, name)| (name, at)).collect(),
                decoders: table.columns.iter().map(|column| Decoder::new(column, style)).collect(),
                is_key: names.iter().map(|name| table.primary_key.contains(name)).collect(),
                is_needed: table.columns.iter().map(|it| !it.is_nullable && carried.contains(&it.name)).collect(),
                before_images: table.before_images,
                columns: Arc::new(Columns {
                    table: name.clone(),
                    names,
                    kinds: table.columns.iter().map(|column| column.kind).collect(),
                }),
            };
            Some((name.clone(), Arc::new(table)))
        };
        Self(following.tables.iter().filter_map(of).collect())
    }

    pub(super) fn get(&self, name: &TableName) -> Option<&Arc<LogTable>> {
        self.0.get(name)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<LogTable>> {
        self.0.values()
    }
}

impl LogTable {
    /// The row that an object has.
    pub(super) fn row(&self, object: &RawValue, is_snapshot: bool) -> Result<Row, FeedError> {
        let row = self.part_of_row(object, is_snapshot)?;
        let missing = row.iter().zip(&self.is_needed).position(|(cell, is_needed)| *is_needed && *cell == Cell::Absent);
        match missing {
            Some(at) if !object.get().contains(&format!("\"{}\"", self.columns.names[at])) => {
                let why = format!("a row of table {} has no column {}", self.columns.table, self.columns.names[at]);
                Err(FeedError::invalid(why).hint("let the producer write all columns that the mapping names"))
            }
            _ => Ok(row),
        }
    }

    /// The cells that an object has; the others are absent.
    pub(super) fn part_of_row(&self, object: &RawValue, is_snapshot: bool) -> Result<Row, FeedError> {
        let table = &self.columns.table;
        let Fields(fields) = serde_json::from_str(object.get()).map_err(|error| {
            FeedError::invalid(format!("a row of table {table} is not one: {}", super::fault(&error)))
        })?;
        let mut row: Row = vec![Cell::Absent; self.decoders.len()].into_boxed_slice();
        for (name, value) in fields {
            let Some(at) = self.positions.get(&*name) else {
                let why = format!("table {table} has column {}, which the catalog does not have", super::brief(&name));
                return Err(FeedError::invalid(why).hint(
                    "write the catalog again with hoplake feed catalog, and check whether the mapping still fits",
                ));
            };
            row[*at] = self.decoders[*at].decode(value, is_snapshot);
        }
        Ok(row)
    }

    /// A row before a change, of which only the key is to be trusted unless all of it is logged.
    pub(super) fn trusted(&self, mut row: Row) -> Row {
        if self.before_images != BeforeImages::Complete {
            row.iter_mut().zip(&self.is_key).filter(|(_, is_key)| !**is_key).for_each(|(cell, _)| *cell = Cell::Absent);
        }
        row
    }

    /// Takes what was not logged again, since it has not changed, from the row before.
    pub(super) fn fill(&self, after: &mut Row, before: &Row) {
        if self.before_images == BeforeImages::Complete {
            after.iter_mut().zip(before).filter(|(cell, _)| **cell == Cell::Absent).for_each(|(cell, before)| {
                cell.clone_from(before);
            });
        }
    }
}

/// The fields of an object, as they are written.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMap;
        impl<'de> Visitor<'de> for OfMap {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the columns of a row")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(OfMap)
    }
}
