//! A table as the log describes it, and its rows.
//!
//! A *version* is made of a table map. Values are read by the map alone. What no map says is whether bytes are a `uuid` or an address,
//! and whether a time is the end of a row's period: the graph keeps that with its position, and the catalog says it of columns that came
//! later. The catalog also says that a column is computed when it is read.
//!
//! **Tables with system versioning** log the past as rows, too: an update inserts the row as it was, and a deletion is an update of the
//! period's end. A row whose period has not ended is the current one; the others are none.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use hoplake::{Name, Value};
use mysql_async::{Conn, binlog::events::RowsEventData};

use super::{
    catalog::{self, ColumnDetail},
    charsets::{Charset, Charsets},
    logged::{Hint, Logged, row},
    table_map::{Bytes, LoggedColumn, TableMap, types},
};
use crate::{
    Cell, Columns, FeedError, Images, Row, TableName,
    source::{declared::declaration, shape::TableShape},
};

/// The ends of a period that has none: the last moment that a server knows, of 31 and of 32 bits.
const NO_END: [i64; 2] = [2_147_483_647_999_999, 4_294_967_295_999_999];

/// A table as the log describes it.
pub(super) struct TableVersion {
    pub(super) columns: Arc<Columns>,
    /// Its own columns, without those that only the server sees.
    pub(super) names: Vec<Name>,
    decoders: Vec<Logged>,
    /// What it was made of.
    pub(super) described: Vec<u8>,
    /// The column with the end of a row's period.
    row_end: Option<usize>,
}

/// A column, as the server's catalog describes it.
#[derive(Debug, Clone, Copy)]
struct CatalogColumn {
    hint: Hint,
    /// Whether rows have no value of it, but the server computes it.
    is_virtual: bool,
    is_row_end: bool,
}

impl TableVersion {
    /// Of a table map. `followed` are the columns that are carried into the graph, `kept` is what is known of the table at its position; a
    /// value may take `bytes_max`.
    pub(super) async fn new(
        map: TableMap,
        followed: &BTreeSet<Name>,
        kept: &TableShape,
        charsets: &Charsets,
        conn: &mut Conn,
        bytes_max: u64,
    ) -> Result<Self, FeedError> {
        let table = TableName::new(map.database, map.table);
        let known = known(conn, &table).await?;
        let mut columns = Columns { table, names: Vec::new(), kinds: Vec::new() };
        let mut names = Vec::new();
        let mut decoders = Vec::new();
        let mut row_end = implicit_row_end(&map.columns, kept, &known);
        for (at, column) in map.columns.iter().enumerate() {
            let charset = match column.collation {
                Some(number) => charsets.of_collation(conn, number).await?,
                None => Charset::Utf8,
            };
            let of_catalog = known.get(&column.name);
            let hint = match kept.kind_of(&column.name) {
                Some(declared) => hint_of(declared),
                None => of_catalog.map_or(Hint::Unknown, |known| known.hint),
            };
            let decoder = Logged::new(column, &charset, hint, bytes_max).map_err(|kind| {
                let why = format!("table {}: column {} has type {kind}", columns.table, column.name);
                FeedError::invalid(format!("{why} in the log, which cannot be read"))
                    .hint("change the type of the column, then run the feed with --resnapshot")
            })?;
            let is_row_end = match kept.kind_of(&column.name) {
                Some(kind) => kind == ROW_END,
                None => of_catalog.is_some_and(|known| known.is_row_end),
            };
            if is_row_end && is_moment(column) {
                row_end = Some(at);
            }
            // Columns that only the server sees, such as hashes and implicit periods, are no properties.
            let is_followed = followed.contains(&column.name);
            let is_meant = of_catalog.is_some_and(|known| !known.is_virtual) || is_followed;
            if of_catalog.is_some() || is_followed || kept.has(&column.name) {
                names.push(column.name.clone());
            }
            columns.names.push(column.name.clone());
            columns.kinds.push(decoder.property().filter(|_| is_meant));
            decoders.push(decoder);
        }
        Ok(Self { columns: Arc::new(columns), names, decoders, described: map.described, row_end })
    }

    /// The changes of an event.
    pub(super) fn rows(&self, event: &RowsEventData<'_>) -> Result<Vec<Images>, FeedError> {
        let bitmaps = [event.columns_before_image(), event.columns_after_image()];
        let is_partial = bitmaps.iter().flatten().any(|bits| bits.count_ones() != self.decoders.len());
        if matches!(event, RowsEventData::PartialUpdateRowsEvent(_)) {
            let why = format!("the binlog has parts of JSON values of table {}", self.columns.table);
            return Err(FeedError::invalid(why).hint("set binlog_row_value_options=''"));
        }
        if is_partial {
            let why = format!("the binlog has a part of a row of table {} only", self.columns.table);
            return Err(FeedError::invalid(why).hint("set binlog_row_image=FULL also in sessions"));
        }
        let mut bytes = Bytes(event.rows_data());
        let mut changes = Vec::new();
        while !bytes.0.is_empty() {
            let mut image = |bits: Option<_>| match bits {
                Some(_) => row(&self.decoders, &mut bytes).map(Some).ok_or_else(|| self.unfit()),
                None => Ok(None),
            };
            let [before, after] = bitmaps;
            let before = image(before)?.filter(|row| self.is_current(row));
            let after = image(after)?.filter(|row| self.is_current(row));
            changes.extend(match (before, after) {
                (None, Some(after)) => Some(Images::Insert(after)),
                (Some(before), Some(after)) => Some(Images::Update { before: Some(before), after }),
                (Some(before), None) => Some(Images::Delete(before)),
                (None, None) => None,
            });
        }
        Ok(changes)
    }

    /// Whether a row's period has not ended.
    fn is_current(&self, row: &Row) -> bool {
        self.row_end.is_none_or(|at| matches!(row[at], Cell::Value(Value::Timestamp(end)) if NO_END.contains(&end)))
    }

    fn unfit(&self) -> FeedError {
        let why = format!("the rows of table {} in the binlog do not fit its description there", self.columns.table);
        FeedError::invalid(why).hint(OLD_FRACTIONS)
    }
}

/// What to do about columns that the log does not describe.
pub(super) const OLD_FRACTIONS: &str = "times with fractions in the format before MariaDB 10.1 are not described in the log: run SET GLOBAL \
     mysql56_temporal_format=ON, then ALTER TABLE … FORCE";

/// Whether a column has the type of the ends of periods.
fn is_moment(column: &LoggedColumn) -> bool {
    column.kind == types::TIMESTAMP && column.metadata == 6
}

/// Periods that nothing declares have these names, at the end.
fn implicit_row_end(
    columns: &[LoggedColumn],
    kept: &TableShape,
    known: &HashMap<Name, CatalogColumn>,
) -> Option<usize> {
    let [.., start, end] = columns else { return None };
    let is_declared = |name: &Name| match kept.columns.is_empty() {
        true => known.contains_key(name),
        false => kept.has(name),
    };
    let is_hidden =
        |column: &LoggedColumn, name: &str| column.name == name && is_moment(column) && !is_declared(&column.name);
    (is_hidden(start, "row_start") && is_hidden(end, "row_end")).then(|| columns.len() - 1)
}

fn hint_of(declared: &str) -> Hint {
    match declaration(declared).0.as_str() {
        "uuid" => Hint::Uuid,
        "inet4" => Hint::Inet4,
        "inet6" => Hint::Inet6,
        _ => Hint::Binary,
    }
}

/// The type that the graph keeps of a column with the end of a row's period.
pub(super) const ROW_END: &str = "timestamp(6) as row end";

/// Whether the log does not say of what type the values of a column are, or whether they end periods.
pub(super) fn is_unsaid(declared: &str) -> bool {
    hint_of(declared) != Hint::Binary || declared.starts_with("binary(") || declared.starts_with("timestamp(6)")
}

/// What the catalog says of the columns of a table.
async fn known(conn: &mut Conn, table: &TableName) -> Result<HashMap<Name, CatalogColumn>, FeedError> {
    let known = |detail: ColumnDetail| {
        let hint = hint_of(&detail.declared);
        let is_virtual = detail.is_virtual;
        let is_row_end = detail.is_row_end();
        (detail.name, CatalogColumn { hint, is_virtual, is_row_end })
    };
    Ok(catalog::details(conn, table).await?.into_iter().map(known).collect())
}
