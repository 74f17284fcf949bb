//! Comma-separated values, in three dialects: plain, neo4j-admin's and Neptune's.
//!
//! Text always stands in quotes and what is absent never does, so that empty text (`""`) and none (nothing) are told apart, as
//! neo4j-admin and PostgreSQL do it, too.

use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::{
    cells::{Cells, ItemForm},
    encoder::Encoder,
};

/// A column of a text file.
pub(crate) struct TextColumn {
    pub(crate) header: String,
    pub(crate) content: Content,
}

/// Where its fields are from.
pub(crate) enum Content {
    /// A column of the batch.
    Column(usize),
    /// The same, with text before each.
    Prefixed(usize, String),
    /// The same text in every row.
    Constant(String),
    /// The number of the row, after some text.
    RowNumber(String),
}

impl Content {
    pub(crate) fn key(column: usize, prefix: Option<String>) -> Self {
        prefix.map_or(Self::Column(column), |prefix| Self::Prefixed(column, prefix))
    }
}

/// What differs between dialects, but for headers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// How the items of lists are written; else lists are arrays of JSON.
    pub(crate) items: Option<ItemForm>,
    pub(crate) infinity: &'static str,
}

/// Writes records.
pub(crate) struct TextEncoder {
    columns: Arc<[TextColumn]>,
    style: Style,
    /// The number of the next row in its table.
    row: u64,
    text: String,
}

impl TextEncoder {
    /// Begins with the header. `first_row` is the number of the first row in its table.
    pub(crate) fn new(columns: Arc<[TextColumn]>, style: Style, first_row: u64) -> Self {
        let mut text = String::new();
        for (number, column) in columns.iter().enumerate() {
            if number > 0 {
                text.push(',');
            }
            let is_plain = !column.header.contains(['"', ',', '\n', '\r']) && !column.header.is_empty();
            if is_plain { text.push_str(&column.header) } else { push_quoted(&column.header, &mut text) }
        }
        text.push('\n');
        Self { columns, style, row: first_row, text }
    }
}

impl Encoder for TextEncoder {
    fn write(&mut self, _table: usize, batch: &RecordBatch) -> Result<(), String> {
        let cells: Vec<Cells<'_>> =
            batch.columns().iter().map(|column| Cells::new(column.as_ref())).collect::<Result<_, _>>()?;
        let columns = self.columns.clone();
        let mut scratch = String::new();
        for row in 0..batch.num_rows() {
            for (number, column) in columns.iter().enumerate() {
                if number > 0 {
                    self.text.push(',');
                }
                scratch.clear();
                match &column.content {
                    Content::Column(at) => {
                        let pushed = self.push_cell(&cells[*at], row, &mut scratch);
                        pushed.map_err(|why| {
                            let line = self.row + 1;
                            let hint = "export to parquet or csv, which have all lists";
                            format!("row {line}, column {:?}: {why}; {hint}", column.header)
                        })?;
                    }
                    Content::Prefixed(at, prefix) => {
                        scratch.push_str(prefix);
                        cells[*at].append(row, self.style.infinity, &mut scratch);
                        push_quoted(&scratch, &mut self.text);
                    }
                    Content::Constant(text) => push_quoted(text, &mut self.text),
                    Content::RowNumber(prefix) => {
                        scratch.push_str(prefix);
                        scratch.push_str(&self.row.to_string());
                        push_quoted(&scratch, &mut self.text);
                    }
                }
            }
            self.text.push('\n');
            self.row += 1;
        }
        Ok(())
    }

    fn take(&mut self) -> Result<Vec<u8>, String> {
        Ok(std::mem::take(&mut self.text).into_bytes())
    }

    fn end(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn kept_bytes(&self) -> u64 {
        0
    }
}

impl TextEncoder {
    fn push_cell(&mut self, cells: &Cells<'_>, row: usize, scratch: &mut String) -> Result<(), &'static str> {
        let infinity = self.style.infinity;
        if cells.is_null(row) {
            return Ok(());
        }
        if !cells.is_free_text() {
            cells.append(row, infinity, &mut self.text);
            return Ok(());
        }
        match self.style.items.filter(|_| matches!(cells, Cells::List(..))) {
            Some(form) => cells.append_items(row, infinity, form, scratch)?,
            None => cells.append(row, infinity, scratch),
        }
        push_quoted(scratch, &mut self.text);
        Ok(())
    }
}

fn push_quoted(text: &str, out: &mut String) {
    out.push('"');
    for (number, piece) in text.split('"').enumerate() {
        if number > 0 {
            out.push_str("\"\"");
        }
        out.push_str(piece);
    }
    out.push('"');
}
