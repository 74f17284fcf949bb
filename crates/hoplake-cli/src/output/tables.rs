//! Tables of text, readable without colour.

use std::{
    fmt,
    io::{IsTerminal, stdout},
};

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// One line below the header and none elsewhere: rows stay easy to copy and to search.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Characters in a line of a table that is wrapped.
const WRAPPED_WIDTH: u16 = 120;

/// A table of text.
#[derive(Debug)]
pub struct TextTable(Table);

/// An empty table with a header; columns in `right` are aligned to the right.
pub fn table<H: AsRef<str>>(header: &[H], right: &[usize]) -> TextTable {
    let mut table = Table::new();
    table.load_style(STYLE);
    // Only a terminal has a width to fit; a file or pipe gets each row in one line.
    if stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table.set_header(header.iter().map(AsRef::as_ref).collect::<Vec<_>>());
    for column in right {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    TextTable(table)
}

impl TextTable {
    /// Wraps long cells, also without a terminal, which has no width.
    pub fn wrapped(mut self) -> Self {
        if !stdout().is_terminal() {
            self.0.set_content_arrangement(ContentArrangement::Dynamic).set_width(WRAPPED_WIDTH);
        }
        self
    }

    /// Adds a row.
    pub fn add_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.add_row(cells.into_iter().collect::<Vec<_>>());
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.trim_fmt())
    }
}
