//! A source of data: tables known by name and type before the load begins, and inputs
//! that yield their rows as typed Arrow batches, as often as requested.

use std::{ops::Range, path::PathBuf, sync::Arc};

use arrow_array::RecordBatch;
use hoplake_format::{KeyType, Property};

use crate::{BadRow, BadRows, IngestError, RowTexts};

/// A source of data, understood.
pub struct Dataset {
    /// One table for each vertex label.
    pub vertex_tables: Vec<VertexTable>,
    /// One table for each edge label and kind of end points.
    pub edge_tables: Vec<EdgeTable>,
    /// The files, in an order that does not depend on the file system's.
    pub inputs: Vec<Box<dyn Input>>,
}

/// The vertices of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VertexTable {
    /// The label.
    pub label: String,
    /// The name space of its keys. A key belongs to one vertex within its id space; labels that share
    /// a space (all labels of a Neptune file) are distinguished by their rows. All labels of a space have
    /// one key type.
    pub id_space: String,
    /// The type of its keys.
    pub key_type: KeyType,
    /// Its properties, in the order of the columns of its batches.
    pub properties: Vec<Property>,
    /// Whether the vertices are only implied by edges (an edge list): then its rows may repeat a key.
    pub implied: bool,
}

/// The edges of one label between two kinds of end points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeTable {
    /// The edge label.
    pub label: String,
    /// Where its edges start.
    pub source: Endpoint,
    /// Where its edges end.
    pub target: Endpoint,
    /// Its properties, in the order of the columns of its batches.
    pub properties: Vec<Property>,
}

/// One end of an edge table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The id space in which keys are looked up.
    pub id_space: String,
    /// The label the vertex must have; `None` takes whichever label of the space has the key.
    pub label: Option<String>,
}

/// Which rows a batch holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feed {
    /// Vertices of a table: columns are the key, then the properties of the table.
    Vertices {
        /// Position in [`Dataset::vertex_tables`].
        table: usize,
    },
    /// One value each of a list property whose values stand in a file of their own:
    /// columns are the key and the value. The order of rows is the order within the list.
    ListValues {
        /// Position in [`Dataset::vertex_tables`].
        table: usize,
        /// Position in [`VertexTable::properties`].
        property: usize,
    },
    /// Edges of a table: columns are the source key, the target key, then the properties of the table.
    Edges {
        /// Position in [`Dataset::edge_tables`].
        table: usize,
    },
}

/// Which feeds a scan yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// [`Feed::Vertices`] and [`Feed::ListValues`].
    Vertices,
    /// [`Feed::Edges`].
    Edges,
}

/// A batch of rows and their source. Key columns hold no nulls.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// Which rows these are.
    pub feed: Feed,
    /// The rows.
    pub batch: RecordBatch,
    /// The line (text) or row (other files) of each row, from 1.
    pub lines: Lines,
    /// The part of the input that was read for this chunk, in bytes of the file on disk, for progress.
    pub bytes_read: u64,
}

/// The line of each row of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lines {
    /// Consecutive lines.
    Range(Range<u64>),
    /// Any lines, ascending.
    List(Vec<u64>),
}

impl Lines {
    /// The line of row `row`.
    pub fn line(&self, row: usize) -> u64 {
        match self {
            Self::Range(range) => range.start + row as u64,
            Self::List(lines) => lines[row],
        }
    }
}

/// An iterator over the chunks of one scan.
pub type Chunks = Box<dyn Iterator<Item = Result<Chunk, IngestError>> + Send>;

/// A file, or a run of rows, that can be scanned. Scans of different inputs run in parallel, and the
/// same input may be scanned more than once; every scan yields the same rows in the same order.
pub trait Input: Send + Sync {
    /// The file, for messages.
    fn path(&self) -> &PathBuf;

    /// Its size on disk in bytes, for progress.
    fn bytes(&self) -> u64;

    /// The bytes that it yields, over all phases.
    fn feeds(&self) -> &[Feed];

    /// Reads it. Rows that cannot be read as the table's types go to `bad_rows`; a row that is bad is
    /// reported in the phase that needs its values, so that skipping counts it once.
    ///
    /// # Errors
    /// [`IngestError::Read`] if the file cannot be opened; the chunks then end with the first error.
    fn scan(&self, phase: Phase, bad_rows: Arc<BadRows>) -> Result<Chunks, IngestError>;

    /// What finds its rows again.
    fn texts(&self) -> Arc<dyn RowTexts>;

    /// Reports a bad row of this input, for errors that are found downstream (an unknown key).
    ///
    /// # Errors
    /// As [`BadRows::report`].
    fn report(
        &self,
        bad_rows: &BadRows,
        line: u64,
        column: &str,
        value: String,
        why: String,
    ) -> Result<(), IngestError> {
        let file = self.path().clone();
        let column = Some(column.to_owned());
        bad_rows.report(BadRow { file, line, column, value: Some(value), why }, &self.texts())
    }
}
