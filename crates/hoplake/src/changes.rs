//! Changes from files and texts, for a [`Commit`](crate::Commit): JSON Lines, CSV, Parquet and Arrow.
//!
//! Only a commit can detect some mistakes, such as a missing end of an edge: [`Error::operation`] is the number of the operation,
//! whose [`location`](ReadChange::location) is known here. The layouts are described in `docs/changes.md`.

use std::{
    io::{BufRead, Read},
    path::Path,
};

use arrow_array::RecordBatchReader;
use hoplake_format::Schema;
use hoplake_ingest::changes;
pub use hoplake_ingest::changes::{
    ChangeSettings, ReadChange, SourceLocation, plain_json, plain_text, property_column, value_from_json, value_to_json,
};

use crate::Error;

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
pub struct ChangeReader(changes::ChangeReader);

impl ChangeReader {
    /// Reads changes to a graph of this schema.
    pub fn new(schema: &Schema) -> Self {
        Self(changes::ChangeReader::new(schema))
    }

    /// The same, within other bounds.
    #[must_use]
    pub fn with_settings(self, settings: ChangeSettings) -> Self {
        Self(self.0.with_settings(settings))
    }

    /// The changes in a file: JSON Lines (`.jsonl`, `.ndjson`, `.json`) or CSV (`.csv`), each also with `.gz` or
    /// `.zst`, or Parquet (`.parquet`).
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if it cannot be read, or its columns are not those of changes. Each change may
    /// be one too: then it names file, line and item.
    pub fn read(&mut self, path: &Path) -> Result<Changes<'_>, Error> {
        Ok(Changes(self.0.read(path)?))
    }

    /// Changes in JSON Lines from anywhere; `name` stands for the file in messages.
    pub fn lines(&mut self, name: &str, lines: impl BufRead + Send + 'static) -> Changes<'_> {
        Changes(self.0.lines(name, lines))
    }

    /// Changes in CSV from anywhere; `name` stands for the file in messages.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if its columns are not those of changes.
    pub fn csv(&mut self, name: &str, text: impl Read + Send + 'static) -> Result<Changes<'_>, Error> {
        Ok(Changes(self.0.csv(name, text)?))
    }

    /// Changes as a stream of Arrow's IPC format, with the columns that Parquet has; `name` stands for the file in messages.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if it is damaged, has compressed columns or ones of a type that changes do not have,
    /// or if its columns are not those of changes.
    pub fn arrow(&mut self, name: &str, stream: Vec<u8>) -> Result<Changes<'_>, Error> {
        Ok(Changes(self.0.arrow(name, stream)?))
    }

    /// Changes as record batches, with the columns that Parquet has; `name` stands for the file in messages.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if it has columns of a type that changes do not have, or its columns are not those of
    /// changes.
    pub fn batches(&mut self, name: &str, batches: Box<dyn RecordBatchReader + Send>) -> Result<Changes<'_>, Error> {
        Ok(Changes(self.0.batches(name, batches)?))
    }
}

/// The changes of a file, in its order. It ends after an error.
pub struct Changes<'a>(changes::ChangeIter<'a>);

impl Iterator for Changes<'_> {
    type Item = Result<ReadChange, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_err(Error::from))
    }
}
