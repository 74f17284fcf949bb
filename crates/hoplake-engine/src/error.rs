//! Why a query, an opening or a publication failed.

use std::sync::Arc;

use hoplake_format::FormatError;
use hoplake_storage::{Cost, StorageError};
use thiserror::Error;

use crate::change::Operation;

/// Why the engine could not do what it was asked.
#[derive(Debug, Error)]
pub enum EngineError {
    /// There is no graph, version, label, vertex or property of that name.
    #[error("{0}")]
    NotFound(String),
    /// The request contradicts itself or the schema.
    #[error("{0}")]
    Invalid(String),
    /// A change of a batch is not allowed.
    #[error("{operation} is refused: {why}")]
    Refused {
        /// The change.
        operation: Box<Operation>,
        /// Its number in the batch, from 0; `None` until the batch is at hand.
        number: Option<usize>,
        /// Why, as a sentence.
        why: String,
    },
    /// Another writer published first.
    #[error("{0}")]
    Conflict(String),
    /// An error that several callers share.
    #[error(transparent)]
    Shared(Arc<EngineError>),
    /// Whether a version was published is not known: the store gave no answer, and did not say later.
    #[error("it is not known whether {place} was published ({why}); hoplake log shows change {writer} if it was")]
    Unknown {
        /// The manifest.
        place: String,
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
        /// What was spent until then.
        cost: Box<Cost>,
    },
    /// The store failed, or gave bytes that are not what was written.
    #[error(transparent)]
    Storage(StorageError),
    /// A structure is damaged.
    #[error("{place}: {source}")]
    Format {
        /// The object, or the part of it.
        place: String,
        /// The check that failed.
        #[source]
        source: FormatError,
    },
    /// A table of properties could not be read.
    #[error("{place} is damaged: {}", hoplake_format::pages::reason(.source))]
    Table {
        /// The table.
        place: String,
        /// What Parquet says.
        #[source]
        source: parquet::errors::ParquetError,
    },
    /// Columns could not be brought together.
    #[error("could not arrange columns: {0}")]
    Arrow(#[from] arrow_schema::ArrowError),
}

impl From<StorageError> for EngineError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Limit { limit, cost } => Self::Limit { limit, cost },
            error => Self::Storage(error),
        }
    }
}

impl EngineError {
    /// Whether an object that a manifest names is not there: damage, unless a vacuum let the version go.
    pub(crate) fn is_missing_object(&self) -> bool {
        matches!(self, Self::Storage(StorageError::NotFound { .. }))
    }

    pub(crate) fn format(place: impl Into<String>) -> impl FnOnce(FormatError) -> Self {
        let place = place.into();
        move |source| Self::Format { place, source }
    }

    pub(crate) fn table(place: impl Into<String>) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        let place = place.into();
        move |source| Self::Table { place, source }
    }
}
