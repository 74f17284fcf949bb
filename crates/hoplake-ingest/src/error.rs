//! Why input was not read.

use std::path::PathBuf;

use thiserror::Error;

use crate::{BadRow, changes::SourceLocation};

/// Why a load stopped, of which nothing is visible in the store, or why changes could not be read.
#[derive(Debug, Error)]
pub enum IngestError {
    /// A row that cannot be loaded, under the policy that stops at the first.
    #[error("{0}")]
    BadRow(BadRow),
    /// A file that cannot be parsed from a line on, under any policy: a quote that is not closed.
    #[error("{0}")]
    Broken(BadRow),
    /// A Parquet file that contradicts itself, or is truncated.
    #[error("{path}: is not a Parquet file that can be read: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The mistake.
        why: String,
    },
    /// A file of the source is larger than the limits allow.
    #[error("{path}: {why}")]
    Bound {
        /// The file.
        path: PathBuf,
        /// How large, and which setting raises the bound.
        why: String,
    },
    /// A file of the source could not be read.
    #[error("could not read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file of bad rows could not be written.
    #[error("could not write {path}: {}", hoplake_storage::system_text(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file of the source is not in the layout it was taken for.
    #[error("{path}: {why}")]
    Layout {
        /// The file or folder.
        path: PathBuf,
        /// The mistake, and what to do.
        why: String,
    },
    /// A change that cannot be read, or does not fit the graph's schema.
    #[error("{location}: {why}")]
    Change {
        /// Where it is written.
        location: SourceLocation,
        /// The mistake.
        why: String,
    },
    /// A URL where only a file of this machine is read.
    #[error("{0} is a URL; only local files are supported here")]
    Remote(PathBuf),
    /// The request is not valid.
    #[error("{0}")]
    Invalid(String),
    /// Nothing has the name of an input.
    #[error("{0}")]
    Missing(String),
    /// A store or a web server does not answer, or an input cannot be copied for now.
    #[error("{0}")]
    Unavailable(String),
    /// A bug in Hoplake.
    #[error("{0}")]
    Internal(String),
    /// The work does not fit the memory budget.
    #[error("{what} needs {needed_bytes} bytes of memory and the budget leaves {left_bytes}; raise the memory budget")]
    Memory {
        /// The step that needs it.
        what: &'static str,
        /// The memory that it needs.
        needed_bytes: u64,
        /// The memory that is left.
        left_bytes: u64,
    },
    /// The temporary folder could not be used.
    #[error("could not spill to the temporary folder: {0}")]
    Spill(#[source] std::io::Error),
    /// Arrow rejected a batch.
    #[error("could not arrange a batch: {0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// A table of properties could not be written.
    #[error("could not write a table of properties: {}", hoplake_format::pages::reason(.0))]
    Parquet(#[source] parquet::errors::ParquetError),
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] hoplake_storage::StorageError),
    /// The format rejected a value.
    #[error(transparent)]
    Format(#[from] hoplake_format::FormatError),
}

impl IngestError {
    pub(crate) fn change(location: SourceLocation, why: impl Into<String>) -> Self {
        Self::Change { location, why: why.into() }
    }
}
