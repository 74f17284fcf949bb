//! Why a query, an opening or a publication failed.

use std::sync::Arc;

use hoplake_format::FormatError;
use hoplake_storage::{Cost, StorageError};
use thiserror::Error;

use crate::write::change::Operation;

/// Why the engine could not do what it was asked.
#[derive(Debug, Error)]
pub enum EngineError {
    /// There is no label, vertex or property of that name.
    #[error("{0}")]
    NotFound(String),
    /// There is no graph.
    #[error("there is no graph at {url}")]
    NoGraph {
        /// Where it was looked for.
        url: String,
    },
    /// There is no such version, or no more.
    #[error("{0}")]
    NoVersion(String),
    /// The request contradicts itself or the schema.
    #[error("{0}")]
    Invalid(String),
    /// A change of a batch is not allowed.
    #[error("{}{operation} is refused: {why}", row_text(*row))]
    Rejected {
        /// The change; a row of columns as the single operation that it stands for.
        operation: Box<Operation>,
        /// The number of the operation in the batch, from 0.
        number: usize,
        /// The row of its columns, from 0, if it has columns.
        row: Option<usize>,
        /// Why, for programs.
        rejection: Rejection,
        /// Why, as a sentence.
        why: String,
    },
    /// Another writer published first.
    #[error("{0}")]
    Conflict(String),
    /// There is something already where a graph was to begin.
    #[error("{0}")]
    Exists(String),
    /// Another writer changed a graph that was to be replaced.
    #[error("{0}")]
    Overtaken(String),
    /// An error that several callers share.
    #[error(transparent)]
    Shared(Arc<EngineError>),
    /// Whether a version was published is not known: the store gave no answer, and did not say later.
    #[error("it is not known whether {location} was published ({why}); hoplake log shows change {writer} if it was")]
    Unknown {
        /// The manifest.
        location: String,
        /// Who tried.
        writer: String,
        /// What the store said last.
        why: String,
    },
    /// The query reached a limit that was set for it.
    #[error("the query was ended at its limit of {limit}; until then it took {} waves, {} requests and {} bytes",
        cost.waves, cost.requests, cost.store_bytes)]
    Limit {
        /// The limit, with its number and unit.
        limit: String,
        /// Whether it is memory that others hold now, so that the same may succeed later.
        is_shared: bool,
        /// What was spent until then.
        cost: Box<Cost>,
    },
    /// The store failed, or gave bytes that are not what was written.
    #[error(transparent)]
    Storage(StorageError),
    /// A structure is damaged.
    #[error("{location}: {source}")]
    Format {
        /// The object, or the part of it.
        location: String,
        /// The check that failed.
        #[source]
        source: FormatError,
    },
    /// A table of properties could not be read.
    #[error("{location} is damaged: {}", hoplake_format::pages::reason(.source))]
    Table {
        /// The table.
        location: String,
        /// What Parquet says.
        #[source]
        source: parquet::errors::ParquetError,
    },
    /// Columns could not be brought together, which only a mistake in the engine explains.
    #[error("columns could not be put together")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// What cannot be, unless the engine has a mistake.
    #[error("{0}")]
    Internal(String),
}

/// Why a change is not allowed, as far as a program may want to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// An end of an edge is not there.
    MissingEnd,
    /// The batch is strict, and names a label or a property that the graph does not have.
    Undeclared,
    /// A property would have to become float64, which cannot hold its integers exactly.
    Inexact,
    /// Anything else.
    Other,
}

fn row_text(row: Option<usize>) -> String {
    row.map_or(String::new(), |row| format!("row {row}, "))
}

impl From<StorageError> for EngineError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Limit { limit, is_shared, cost } => Self::Limit { limit, is_shared, cost },
            error => Self::Storage(error),
        }
    }
}

impl EngineError {
    pub(crate) fn no_graph(url: &str) -> Self {
        Self::NoGraph { url: url.to_owned() }
    }

    /// Whether stored bytes are damaged or missing, rather than out of reach for now.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Format { .. } | Self::Table { .. } => true,
            Self::Storage(storage) => matches!(
                storage,
                StorageError::NotFound { .. } | StorageError::Length { .. } | StorageError::Corrupt { .. }
            ),
            _ => false,
        }
    }

    /// Whether an object that a manifest names is not there: damage, unless a vacuum let the version go.
    pub(crate) fn is_missing_object(&self) -> bool {
        matches!(self, Self::Storage(StorageError::NotFound { .. }))
    }

    pub(crate) fn format(location: impl Into<String>) -> impl FnOnce(FormatError) -> Self {
        let location = location.into();
        move |source| Self::Format { location, source }
    }

    pub(crate) fn table(location: impl Into<String>) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        let location = location.into();
        move |source| Self::Table { location, source }
    }
}
