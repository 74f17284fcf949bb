//! Tables of text, readable without colour.

use std::{
    fmt,
    io::{self, IsTerminal, stdout},
};

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// One line below the header and none elsewhere: rows stay easy to copy and to search.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Characters in a line of a table that is wrapped.
const WRAPPED_WIDTH: u16 = 120;

/// The width of the terminal that standard output is, as COLUMNS or the terminal itself says; `None` if it is none.
pub fn terminal_width() -> Option<u16> {
    if !stdout().is_terminal() {
        return None;
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.filter(|columns| *columns > 0).or_else(|| Table::new().width())
}

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

    /// Fits the table into a terminal of this width, by display width: each row stays a line, and what does not fit is cut with `…`.
    pub fn fitted(mut self, width: Option<u16>) -> Self {
        let Some(width) = width else {
            self.0.set_content_arrangement(ContentArrangement::Disabled);
            return self;
        };
        self.0.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        // Wrapped at no word: the first line of a cell is as long as its column is wide.
        self.0.set_delimiter('\0');
        self.0.row_iter_mut().for_each(|row| {
            row.max_height(1);
        });
        self
    }

    /// Adds a row.
    pub fn add_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.add_row(cells.into_iter().map(printable).collect::<Vec<_>>());
    }
}

/// Text whose control characters are escaped, as `\u{1b}`: what a graph has must not move a terminal's cursor or change its colours. A
/// table breaks lines itself.
pub fn printable(text: String) -> String {
    if !text.contains(moves) {
        return text;
    }
    let each = |next: char| if moves(next) { next.escape_default().to_string() } else { next.to_string() };
    text.chars().map(each).collect()
}

/// Whether a character moves a terminal's cursor.
fn moves(next: char) -> bool {
    next.is_control() && next != '\n'
}

/// Writes text as [`printable`] has it, without keeping it: a result may have many megabytes.
pub struct Printable<W>(pub W);

impl<W: io::Write> fmt::Write for Printable<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(moves) {
            let (before, behind) = rest.split_at(at);
            let mut behind = behind.chars();
            let escaped = behind.next().map(|next| next.escape_default().to_string()).unwrap_or_default();
            self.0
                .write_all(before.as_bytes())
                .and_then(|()| self.0.write_all(escaped.as_bytes()))
                .map_err(|_| fmt::Error)?;
            rest = behind.as_str();
        }
        self.0.write_all(rest.as_bytes()).map_err(|_| fmt::Error)
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.trim_fmt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn airports(width: Option<u16>) -> Vec<String> {
        let mut text = table(&["key", "name", "city"], &[0]);
        text.add_row(["3", "Austin Bergstrom International Airport", "Austin"].map(str::to_owned));
        text.add_row(["1", "two\nlines", "東京都庁の空港"].map(str::to_owned));
        text.fitted(width).to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_a_graph_has_does_not_command_a_terminal() {
        let mut text = table(&["name"], &[]);
        text.add_row(["\u{1b}[31mred\u{7}\tÉ".to_owned()]);
        assert!(text.to_string().ends_with("\\u{1b}[31mred\\u{7}\\tÉ"), "{text}");
    }

    #[test]
    fn a_row_of_a_table_is_a_line_that_fits_the_terminal() {
        let wide = airports(None);
        assert!(wide[2].contains("Austin Bergstrom International Airport"), "{wide:?}");
        for width in [24u16, 30, 40] {
            let lines = airports(Some(width));
            assert_eq!(lines.len(), 4, "a header, its line, two rows: {lines:?}");
            for line in &lines {
                // Of these characters only the Chinese and Japanese ones take two columns.
                let columns: usize =
                    line.chars().map(|next| if ('\u{3000}'..'\u{a000}').contains(&next) { 2 } else { 1 }).sum();
                assert!(columns <= usize::from(width), "{columns} of {width}: {line}");
            }
            assert!(lines[2].contains('…') && lines[2].contains("Aus"), "{lines:?}");
        }
        assert_eq!(airports(Some(200))[2], wide[2]);
    }
}
