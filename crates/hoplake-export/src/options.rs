//! What to export, and why that stops.

use std::path::PathBuf;

use hoplake_engine::EngineError;
use hoplake_storage::StorageError;
use thiserror::Error;

/// What a GraphML document is called.
pub const GRAPHML_NAME: &str = "graph.graphml";

/// The form of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExportFormat {
    /// Parquet, a file for each vertex label and edge type.
    Parquet,
    /// CSV, likewise.
    Csv,
    /// CSV as `neo4j-admin database import` reads it.
    Neo4j,
    /// CSV as Amazon Neptune reads it for Gremlin.
    Gremlin,
    /// One GraphML document, which does not load back.
    GraphMl,
}

/// What to export, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportOptions {
    /// The form of the files.
    pub format: ExportFormat,
    /// Vertex labels, with the edges between them; none means all.
    pub labels: Vec<String>,
    /// Whether the files of an earlier export may be replaced, and a folder may have other files.
    pub overwrite: bool,
    /// How long a file gets before the next begins, about, in bytes. Default 8 GiB. A GraphML document is one file.
    pub file_bytes_max: u64,
}

impl ExportOptions {
    /// All of a graph in a form.
    pub fn new(format: ExportFormat) -> Self {
        Self { format, labels: Vec::new(), overwrite: false, file_bytes_max: 8 << 30 }
    }
}

/// Why an export stopped.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The graph could not be read.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The destination failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// There is something at the destination.
    #[error("{0}")]
    Exists(String),
    /// There is no such label.
    #[error("{0}")]
    NotFound(String),
    /// A file could not be encoded.
    #[error("could not write {file}: {why}")]
    Encode {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
}

/// The files of a table, in order.
pub(crate) type FileNames = Vec<PathBuf>;
