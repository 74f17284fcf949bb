//! Changes from files and texts: JSON Lines, CSV, Parquet and Arrow become the operations of a batch.
//!
//! ```text
//! json     a line   \
//!                     RawChange (names and raw values) ── types: those of the graph ──▶ Operation, with its location
//! columns  a row    /  (csv, batch_rows)
//!          rows of Parquet or Arrow of one label, with the types of the graph ──▶ Operation of columns, with its location
//! ```
//! JSON has no dates, CSV has no types at all: the graph's schema gives a value its meaning. `types` holds those
//! of keys and properties as the graph has them, and as the file adds to them, so that a value which does not fit is
//! rejected with its file and line, before anything is sent. Only the commit can detect other mistakes, such as a
//! missing end of an edge: it names the number of the operation, whose location is known here. The
//! layouts are described in `docs/changes.md`.

mod arrow;
mod batch_rows;
mod columns;
mod csv;
mod json;
mod json_value;
mod location;
mod raw;
mod types;

use std::{
    io::{BufRead, Read},
    path::Path,
};

use arrow_array::RecordBatchReader;
use hoplake_engine::change::Operation;
use hoplake_format::Schema;

use self::{
    batch_rows::{BatchRows, ChangeInput, Source},
    raw::RawChange,
    types::GraphTypes,
};
pub use self::{
    columns::property_column,
    json_value::{plain_json, plain_text, value_from_json, value_to_json},
    location::SourceLocation,
};
use crate::{IngestError, inputs::check_is_path, source::plain::PlainFile};

/// A change, or rows of Parquet or Arrow as columns, and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadChange {
    /// The change.
    pub operation: Operation,
    /// Where it is written; of columns the first row.
    pub location: SourceLocation,
}

/// Reads changes to one graph, from one file after another.
#[derive(Debug)]
pub struct ChangeReader {
    types: GraphTypes,
    settings: ChangeSettings,
}

/// Bounds of what is read, so that a file cannot take more memory than its user means it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeSettings {
    /// The longest line of JSON, in bytes: 16 MiB by default.
    pub line_bytes_max: usize,
}

impl Default for ChangeSettings {
    fn default() -> Self {
        Self { line_bytes_max: 16 << 20 }
    }
}

/// An iterator over the changes of a file, in its order. It ends after an error.
pub struct ChangeIter<'a> {
    source: Source,
    /// Rows that are changes each, and the next of them.
    rows: Option<(BatchRows, usize)>,
    types: &'a mut GraphTypes,
    failed: bool,
}

impl ChangeReader {
    /// Reads changes to a graph of this schema.
    pub fn new(schema: &Schema) -> Self {
        Self { types: GraphTypes::new(schema), settings: ChangeSettings::default() }
    }

    /// The same, within other bounds.
    #[must_use]
    pub fn with_settings(self, settings: ChangeSettings) -> Self {
        Self { settings, ..self }
    }

    /// The changes in a file: JSON Lines (`.jsonl`, `.ndjson`, `.json`) or CSV (`.csv`), each also with `.gz` or
    /// `.zst`, or Parquet (`.parquet`).
    ///
    /// # Errors
    /// [`IngestError`] if it cannot be read, or its columns are not those of changes. Each change may
    /// be one too: then it names file, line and item.
    pub fn read(&mut self, path: &Path) -> Result<ChangeIter<'_>, IngestError> {
        check_is_path(path)?;
        let file = PlainFile::at(path)?;
        let source = match file.extension() {
            "jsonl" | "ndjson" | "json" => {
                json::lines(path.display().to_string().into(), file.text()?, self.settings.line_bytes_max)
            }
            "csv" => csv::file(&file)?,
            "parquet" => batch_rows::parquet(&file)?,
            _ => {
                let what = if path.is_dir() { "is a folder" } else { "has an unknown extension" };
                return Err(
                    file.not_as_expected(format!("{what}; changes are read from .jsonl, .csv and .parquet files"))
                );
            }
        };
        Ok(self.changes(source))
    }

    /// Changes in JSON Lines from anywhere; `name` stands for the file in messages.
    pub fn lines(&mut self, name: &str, lines: impl BufRead + Send + 'static) -> ChangeIter<'_> {
        self.changes(json::lines(name.into(), lines, self.settings.line_bytes_max))
    }

    /// Changes in CSV from anywhere; `name` stands for the file in messages.
    ///
    /// # Errors
    /// [`IngestError`] if its columns are not those of changes.
    pub fn csv(&mut self, name: &str, text: impl Read + Send + 'static) -> Result<ChangeIter<'_>, IngestError> {
        let source = csv::text(name, text)?;
        Ok(self.changes(source))
    }

    /// Changes as a stream of Arrow's IPC format, with the columns that Parquet has; `name` stands for the file in messages.
    ///
    /// # Errors
    /// [`IngestError`] if it is damaged, has compressed columns or ones of a type that changes do not have, or if its
    /// columns are not those of changes.
    pub fn arrow(&mut self, name: &str, stream: Vec<u8>) -> Result<ChangeIter<'_>, IngestError> {
        let source = arrow::stream(name, stream)?;
        Ok(self.changes(source))
    }

    /// Changes as record batches, with the columns that Parquet has; `name` stands for the file in messages.
    ///
    /// # Errors
    /// [`IngestError`] if it has columns of a type that changes do not have, or its columns are not those of changes.
    pub fn batches(
        &mut self,
        name: &str,
        batches: Box<dyn RecordBatchReader + Send>,
    ) -> Result<ChangeIter<'_>, IngestError> {
        let source = arrow::batches(name, &batches.schema(), batches)?;
        Ok(self.changes(source))
    }

    fn changes(&mut self, source: Source) -> ChangeIter<'_> {
        ChangeIter { source, rows: None, types: &mut self.types, failed: false }
    }
}

impl Iterator for ChangeIter<'_> {
    type Item = Result<ReadChange, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let read = self.read()?;
        self.failed = read.is_err();
        Some(read)
    }
}

impl ChangeIter<'_> {
    fn read(&mut self) -> Option<Result<ReadChange, IngestError>> {
        loop {
            if let Some((rows, at)) = self.rows.as_mut().filter(|(rows, at)| *at < rows.len()) {
                *at += 1;
                let location = rows.location(*at - 1);
                let written = rows.row(*at - 1);
                return Some(written.and_then(|written| meant(self.types, location, written)));
            }
            self.rows = match self.source.next()? {
                Err(error) => return Some(Err(error)),
                Ok(ChangeInput::One(location, written)) => return Some(meant(self.types, location, written)),
                Ok(ChangeInput::Rows(rows)) => {
                    // Columns stay columns if they can: no value becomes an object of its own between file and delta.
                    if let Some(operation) = rows.operation(self.types) {
                        return Some(Ok(ReadChange { operation, location: rows.location(0) }));
                    }
                    Some((rows, 0))
                }
            };
        }
    }
}

fn meant(types: &mut GraphTypes, location: SourceLocation, written: RawChange) -> Result<ReadChange, IngestError> {
    match types.operation(written) {
        Ok(operation) => Ok(ReadChange { operation, location }),
        Err(why) => Err(IngestError::change(location, why)),
    }
}
