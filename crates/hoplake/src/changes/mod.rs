//! Changes from files and texts: JSON Lines, CSV, Parquet and Arrow become the operations of a batch.
//!
//! ```text
//! json     a line   \
//!                     RawChange (names and raw values) ── resolved: types of the graph ──▶ Operation, with its location
//! columns  a row    /
//!          rows of Parquet or Arrow of one label, with the types of the graph ──▶ Operation of columns, with its location
//! ```
//! JSON has no dates, CSV has no types at all: the graph's schema gives a value its meaning. `resolved` holds the types
//! of keys and properties as the graph has them, and as the file adds to them, so that a value which does not fit is
//! refused with its file and line, before anything is sent. Only the commit can detect other mistakes, such as a
//! missing end of an edge: [`Error::operation`] is the number of the operation, whose location is known here. The
//! layouts are described in `docs/changes.md`.

mod arrow;
mod columns;
mod json;
mod resolved;

use std::{
    fmt,
    io::{BufRead, Read},
    path::Path,
    sync::Arc,
};

use hoplake_engine::change::Operation;
use hoplake_format::Schema;
use hoplake_ingest::source::plain::PlainFile;

use crate::{Error, ErrorKind, Reason, load::check_local};
use columns::BatchRows;
pub use columns::property_column;
pub use json::{plain_json, plain_text, value_from_json, value_to_json};
use resolved::{RawChange, ResolvedChange};

/// Where a change is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    file: Arc<str>,
    unit: &'static str,
    number: u64,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} {}", self.file, self.unit, self.number)
    }
}

impl SourceLocation {
    /// The line of a text file, the row of any other; from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What is counted: `line` or `row`.
    pub fn unit(&self) -> &'static str {
        self.unit
    }

    /// The location `rows` further on.
    #[must_use]
    pub fn further(&self, rows: usize) -> Self {
        Self { number: self.number + rows as u64, ..self.clone() }
    }

    fn invalid(&self, why: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Invalid, format!("{self}: {why}")).at(self.clone())
    }
}

/// A change, or rows of Parquet or Arrow as columns, and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadChange {
    /// The change.
    pub operation: Operation,
    /// Where it is written; of columns the first row.
    pub location: SourceLocation,
}

/// Reads changes to one graph, from one file after another.
///
/// ```
/// # async fn example() -> Result<(), hoplake::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("knows.csv");
/// # std::fs::write(&file, "1,2\n2,3\n").unwrap();
/// # hoplake::load("memory://changes", hoplake::LoadOptions::from_paths([&file])).await?;
/// let graph = hoplake::Graph::open("memory://changes").await?;
/// let lines = r#"{"op": "upsert_vertex", "label": "vertex", "key": 7, "properties": {"name": "Ann"}}
/// {"op": "delete_edge", "label": "edge", "source": ["vertex", 1], "target": ["vertex", 2]}"#;
/// let mut reader = hoplake::changes::ChangeReader::new(graph.schema());
/// let mut commit = graph.begin();
/// for change in reader.lines("feed", lines.as_bytes()) {
///     commit.push(change?.operation);
/// }
/// let counts = commit.commit().await?.counts;
/// assert_eq!((counts.vertices_added, counts.pairs_removed), (1, 1));
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Debug)]
pub struct ChangeReader {
    resolved: ResolvedChange,
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

/// Changes as they are written, one after another.
type Source = Box<dyn Iterator<Item = Result<Piece, Error>> + Send>;

/// A change, or several side by side.
#[expect(clippy::large_enum_variant, reason = "nearly all are the large one, and each is taken at once")]
enum Piece {
    One(SourceLocation, RawChange),
    Rows(BatchRows),
}

/// The changes of a file, in its order. It ends after an error.
pub struct Changes<'a> {
    source: Source,
    /// Rows that are changes each, and the next of them.
    rows: Option<(BatchRows, usize)>,
    resolved: &'a mut ResolvedChange,
    failed: bool,
}

impl ChangeReader {
    /// Reads changes to a graph of this schema.
    pub fn new(schema: &Schema) -> Self {
        Self { resolved: ResolvedChange::new(schema), settings: ChangeSettings::default() }
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
    /// [`Invalid`](ErrorKind::Invalid) if it cannot be read, or its columns are not those of changes. Each change may
    /// be one too: then it names file, line and item.
    pub fn read(&mut self, path: &Path) -> Result<Changes<'_>, Error> {
        check_local(path)?;
        let file = PlainFile::at(path)?;
        let source: Source = match file.extension() {
            "jsonl" | "ndjson" | "json" => json::lines(path.display().to_string().into(), file.text()?, &self.settings),
            "csv" => columns::csv(&file)?,
            "parquet" => columns::parquet(&file)?,
            _ => {
                let what = if path.is_dir() { "is a folder" } else { "has another ending" };
                let why = format!("{} {what}: changes are read from .jsonl, .csv and .parquet files", path.display());
                return Err(Error::new(ErrorKind::Invalid, why).with_reason(Reason::Layout));
            }
        };
        Ok(self.changes(source))
    }

    /// Changes in JSON Lines from anywhere; `name` stands for the file in messages.
    pub fn lines(&mut self, name: &str, lines: impl BufRead + Send + 'static) -> Changes<'_> {
        self.changes(json::lines(name.into(), lines, &self.settings))
    }

    /// Changes in CSV from anywhere; `name` stands for the file in messages.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if its columns are not those of changes.
    pub fn csv(&mut self, name: &str, text: impl Read + Send + 'static) -> Result<Changes<'_>, Error> {
        let source = columns::csv_text(name, text)?;
        Ok(self.changes(source))
    }

    /// Changes as a stream of Arrow's IPC format, with the columns that Parquet has; `name` stands for the file in messages.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if it is damaged, has compressed columns or ones of a type that changes do not have, or if its
    /// columns are not those of changes.
    pub fn arrow(&mut self, name: &str, stream: Vec<u8>) -> Result<Changes<'_>, Error> {
        let source = arrow::stream(name, stream)?;
        Ok(self.changes(source))
    }

    fn changes(&mut self, source: Source) -> Changes<'_> {
        Changes { source, rows: None, resolved: &mut self.resolved, failed: false }
    }
}

impl Iterator for Changes<'_> {
    type Item = Result<ReadChange, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let read = self.read()?;
        self.failed = read.is_err();
        Some(read)
    }
}

impl Changes<'_> {
    fn read(&mut self) -> Option<Result<ReadChange, Error>> {
        loop {
            if let Some((rows, at)) = self.rows.as_mut().filter(|(rows, at)| *at < rows.len()) {
                *at += 1;
                let location = rows.location(*at - 1);
                let written = rows.row(*at - 1);
                return Some(written.and_then(|written| meant(self.resolved, location, written)));
            }
            self.rows = match self.source.next()? {
                Err(error) => return Some(Err(error)),
                Ok(Piece::One(location, written)) => return Some(meant(self.resolved, location, written)),
                Ok(Piece::Rows(rows)) => {
                    // Columns stay columns if they can: no value becomes an object of its own between file and delta.
                    if let Some(operation) = rows.operation(self.resolved) {
                        return Some(Ok(ReadChange { operation, location: rows.location(0) }));
                    }
                    Some((rows, 0))
                }
            };
        }
    }
}

fn meant(resolved: &mut ResolvedChange, location: SourceLocation, written: RawChange) -> Result<ReadChange, Error> {
    let operation = resolved.operation(written).map_err(|why| location.invalid(why))?;
    Ok(ReadChange { operation, location })
}
