//! The one public error.

use std::error::Error as StdError;

use hoplake_engine::EngineError;
use hoplake_format::FormatError;
use hoplake_ingest::IngestError;
use hoplake_storage::{NodeFault, StorageError};
use thiserror::Error as ThisError;

/// What the caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request or the input is wrong: change it.
    Invalid,
    /// What was named is not there: check the name.
    NotFound,
    /// Another writer was faster, or something is there already: look at it and try again.
    Conflict,
    /// Whether it happened is not known, since the store did not say: look at the graph before trying again.
    Unknown,
    /// The store cannot be reached or refuses: check address and credentials, or try again later.
    Unavailable,
    /// A limit was reached: raise it or ask for less.
    Limit,
    /// Stored bytes are damaged: verify, and restore from a copy.
    Corrupt,
    /// A mistake in Hoplake: report it.
    Internal,
}

/// Why something did not work: a kind to act on, a sentence to read, and the error below it.
#[derive(Debug, ThisError)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
    operation: Option<usize>,
}

impl Error {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Which operation of a batch it is about, from 0, if it is about one.
    pub fn operation(&self) -> Option<usize> {
        self.operation
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None, operation: None }
    }

    fn of(kind: ErrorKind, error: impl StdError + Send + Sync + 'static) -> Self {
        Self { kind, message: error.to_string(), source: Some(Box::new(error)), operation: None }
    }
}

fn storage_kind(error: &StorageError) -> ErrorKind {
    match error {
        StorageError::Url { .. } | StorageError::Settings(_) | StorageError::Unfit { .. } => ErrorKind::Invalid,
        StorageError::Limit { .. } => ErrorKind::Limit,
        StorageError::Unanswered { .. } => ErrorKind::Unknown,
        // The manifest names the object: that it is gone is damage.
        StorageError::NotFound { .. } | StorageError::Length { .. } | StorageError::Corrupt { .. } => {
            ErrorKind::Corrupt
        }
        StorageError::Node { fault: NodeFault::Invalid, .. } => ErrorKind::Invalid,
        StorageError::Node { fault: NodeFault::Corrupt, .. } => ErrorKind::Corrupt,
        StorageError::Node { fault: NodeFault::Internal, .. } => ErrorKind::Internal,
        StorageError::Node { fault: NodeFault::Unavailable, .. } => ErrorKind::Unavailable,
        StorageError::Unavailable { .. } | StorageError::TimedOut { .. } => ErrorKind::Unavailable,
    }
}

fn format_kind(error: &FormatError) -> ErrorKind {
    match error {
        FormatError::Corrupt { .. } => ErrorKind::Corrupt,
        FormatError::Unsupported { .. } | FormatError::Invalid(_) => ErrorKind::Invalid,
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        let operation = refused_operation(&error);
        Self { operation, ..Self::of(engine_kind(&error), error) }
    }
}

fn refused_operation(error: &EngineError) -> Option<usize> {
    match error {
        EngineError::Refused { number, .. } => *number,
        EngineError::Shared(error) => refused_operation(error),
        _ => None,
    }
}

fn engine_kind(error: &EngineError) -> ErrorKind {
    match error {
        EngineError::NotFound(_) => ErrorKind::NotFound,
        EngineError::Invalid(_) | EngineError::Refused { .. } => ErrorKind::Invalid,
        EngineError::Conflict(_) => ErrorKind::Conflict,
        EngineError::Limit { .. } => ErrorKind::Limit,
        EngineError::Storage(storage) => storage_kind(storage),
        EngineError::Format { source, .. } => format_kind(source),
        EngineError::Table { .. } => ErrorKind::Corrupt,
        EngineError::Arrow(_) => ErrorKind::Internal,
        EngineError::Unknown { .. } => ErrorKind::Unknown,
        EngineError::Shared(error) => engine_kind(error),
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        Self::of(storage_kind(&error), error)
    }
}

impl From<IngestError> for Error {
    fn from(error: IngestError) -> Self {
        let kind = match &error {
            IngestError::Memory { .. } => ErrorKind::Limit,
            IngestError::Spill(_) => ErrorKind::Unavailable,
            IngestError::Storage(storage) => storage_kind(storage),
            _ => ErrorKind::Invalid,
        };
        Self::of(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_say_what_to_do() {
        let lost = StorageError::NotFound { object: "s3://b/data/x".into() };
        assert_eq!(Error::from(EngineError::from(lost)).kind(), ErrorKind::Corrupt);
        assert_eq!(Error::from(EngineError::NotFound("no graph".into())).kind(), ErrorKind::NotFound);
        let error = Error::from(EngineError::Invalid("strategy".into()));
        assert_eq!((error.to_string(), error.kind()), ("strategy".into(), ErrorKind::Invalid));
        assert!(error.source().is_some());
    }
}
