//! Rows as errors show them.
//!
//! Errors go to logs, to `/status` and to people who help, and rows do not: an error names a row by the columns that
//! identify what it becomes, and does not repeat values. With `source.show_rows` it has all columns.

use crate::{Cell, Columns, Images, Row, RowChange, mapping::Entry};

/// A row of a table for which an entry is.
pub(crate) fn shown_row(entry: &Entry, columns: &Columns, row: &Row, show_rows: bool) -> String {
    let keys = entry.key_columns();
    let is_shown = |name: &hoplake::Name| show_rows || keys.contains(&name);
    let cell = |cell: &Cell| match cell {
        Cell::Value(value) => value.to_string(),
        Cell::Digits(digits) => digits.to_string(),
        Cell::Bad(_) | Cell::Absent => "?".to_owned(),
    };
    let cells = columns.names.iter().zip(row.iter()).filter(|(name, _)| is_shown(name));
    cells.map(|(name, it)| format!("{name}={}", cell(it))).collect::<Vec<_>>().join(" ")
}

/// The row of a change: as it is after it, or was.
pub(crate) fn shown_change(entry: &Entry, change: &RowChange, show_rows: bool) -> String {
    let row = match &change.images {
        Images::Insert(row) | Images::Delete(row) | Images::Update { after: row, .. } => row,
    };
    shown_row(entry, &change.columns, row, show_rows)
}
