//! The one public error.

use std::error::Error as StdError;

use hoplake_engine::{EngineError, Rejection};
use hoplake_format::FormatError;
use hoplake_ingest::{IngestError, changes::SourceLocation};
use hoplake_storage::{NodeFault, StorageError, StoreFault, system_text};
use thiserror::Error as ThisError;

/// The kind of an error: what the caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request or the input is wrong: change it.
    Invalid,
    /// The named object does not exist: check the name.
    NotFound,
    /// Another writer was faster, or the target exists already: look at it and try again.
    Conflict,
    /// The outcome is unknown, since the store did not answer: look at the graph before you try again.
    Unknown,
    /// The store cannot be reached or rejects the request: check address and credentials, or try again later.
    Unavailable,
    /// A limit was reached: raise it or ask for less.
    Limit,
    /// Stored bytes are damaged: verify, and restore from a copy.
    Corrupt,
    /// A bug in Hoplake: report it.
    Internal,
}

/// The exact cause, where a kind has several remedies. More variants may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The URL is not a valid location of a graph.
    Url,
    /// The graph does not exist.
    NoGraph,
    /// The version or tag does not exist, or was removed.
    NoVersion,
    /// There is a graph already.
    Exists,
    /// Another writer was faster with the same.
    Overtaken,
    /// Credentials are missing, or the store rejects them.
    Credentials,
    /// The credentials do not suffice, or access to a local file is denied.
    Denied,
    /// The bucket or container does not exist.
    NoBucket,
    /// The bucket is in another region.
    Region,
    /// The store does not answer.
    Unreachable,
    /// The disk or the store is full.
    Full,
    /// A file of the input cannot be read.
    File,
    /// A compressed file of the input is damaged, or not of the type in its name.
    Archive,
    /// The input is in a store, and not on this machine.
    Remote,
    /// A file of the input is not well-formed, so that the rest after some line cannot be read.
    Broken,
    /// A file of the input is not in the layout it was taken for.
    Layout,
    /// A row of the input cannot be loaded.
    BadRow,
    /// An end of an edge is not there.
    MissingEnd,
    /// A strict batch names what the graph does not have.
    Undeclared,
    /// A float64 cannot hold an integer exactly.
    Inexact,
    /// A graph is in a version of the format that this build does not read.
    FormatVersion,
    /// Other work holds the memory that a query needs, which may succeed later.
    MemoryInUse,
    /// A text is not a query.
    Syntax,
    /// A query has a step that is not supported, or with wrong arguments. Nothing was read.
    Step,
    /// A prepared query is not there, or is called with parameters that it does not take. Nothing was read.
    Call,
    /// A query writes where it may not.
    ReadOnly,
    /// A query failed on what it found.
    Query,
    /// A query failed because it says so, with `fail()`.
    Fail,
}

impl Reason {
    /// Its name in snake case, such as `no_graph`, by which programs of other languages tell reasons apart.
    pub fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::NoGraph => "no_graph",
            Self::NoVersion => "no_version",
            Self::Exists => "exists",
            Self::Overtaken => "overtaken",
            Self::Credentials => "credentials",
            Self::Denied => "denied",
            Self::NoBucket => "no_bucket",
            Self::Region => "region",
            Self::Unreachable => "unreachable",
            Self::Full => "full",
            Self::File => "file",
            Self::Archive => "archive",
            Self::Remote => "remote",
            Self::Broken => "broken",
            Self::Layout => "layout",
            Self::BadRow => "bad_row",
            Self::MissingEnd => "missing_end",
            Self::Undeclared => "undeclared",
            Self::Inexact => "inexact",
            Self::FormatVersion => "format_version",
            Self::MemoryInUse => "memory_in_use",
            Self::Syntax => "syntax",
            Self::Step => "step",
            Self::Call => "call",
            Self::ReadOnly => "read_only",
            Self::Query => "query",
            Self::Fail => "fail",
        }
    }
}

/// Why something did not work: a kind to act on, a sentence to read, and the error below it.
#[derive(Debug, ThisError)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
    reason: Option<Reason>,
    operation: Option<usize>,
    row: Option<usize>,
    item: Option<Box<str>>,
    location: Option<Box<SourceLocation>>,
}

impl Error {
    /// The kind: what the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The exact cause, if the kind has several.
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// Which operation of a batch it is about, from 0, if it is about one.
    pub fn operation(&self) -> Option<usize> {
        self.operation
    }

    /// Where the change that it is about is written, if it was rejected when it was read.
    pub fn location(&self) -> Option<&SourceLocation> {
        self.location.as_deref()
    }

    /// The change that it is about, as text, if it is about one.
    pub fn item(&self) -> Option<&str> {
        self.item.as_deref()
    }

    /// Which row of the columns of that operation, from 0, if it has columns.
    pub fn row(&self) -> Option<usize> {
        self.row
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
            reason: None,
            operation: None,
            row: None,
            item: None,
            location: None,
        }
    }

    pub(crate) fn with_reason(self, reason: impl Into<Option<Reason>>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    pub(crate) fn no_graph(url: &str) -> Self {
        EngineError::NoGraph { url: url.to_owned() }.into()
    }

    fn of(kind: ErrorKind, error: impl StdError + Send + Sync + 'static) -> Self {
        Self {
            kind,
            message: error.to_string(),
            source: Some(Box::new(error)),
            reason: None,
            operation: None,
            row: None,
            item: None,
            location: None,
        }
    }
}

fn storage_kind(error: &StorageError) -> ErrorKind {
    match error {
        StorageError::Url { .. } | StorageError::Settings(_) | StorageError::Unfit { .. } => ErrorKind::Invalid,
        StorageError::Limit { .. } => ErrorKind::Limit,
        // Only who waits gets an error, so nobody should see this one.
        StorageError::Cancelled => ErrorKind::Internal,
        StorageError::Unanswered { .. } => ErrorKind::Unknown,
        // The manifest names the object: its absence is damage.
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

fn storage_reason(error: &StorageError) -> Option<Reason> {
    match error {
        StorageError::Url { .. } => return Some(Reason::Url),
        StorageError::Limit { is_shared: true, .. } => return Some(Reason::MemoryInUse),
        _ => {}
    }
    match error.fault()? {
        StoreFault::Credentials => Some(Reason::Credentials),
        StoreFault::Denied => Some(Reason::Denied),
        StoreFault::NoBucket => Some(Reason::NoBucket),
        StoreFault::Region => Some(Reason::Region),
        StoreFault::Unreachable => Some(Reason::Unreachable),
        StoreFault::Full => Some(Reason::Full),
        StoreFault::Other => None,
    }
}

fn engine_reason(error: &EngineError) -> Option<Reason> {
    match error {
        EngineError::NoGraph { .. } => Some(Reason::NoGraph),
        EngineError::NoVersion(_) => Some(Reason::NoVersion),
        EngineError::Exists(_) => Some(Reason::Exists),
        EngineError::Overtaken(_) => Some(Reason::Overtaken),
        EngineError::Limit { is_shared: true, .. } => Some(Reason::MemoryInUse),
        EngineError::Rejected { rejection, .. } => match rejection {
            Rejection::MissingEnd => Some(Reason::MissingEnd),
            Rejection::Undeclared => Some(Reason::Undeclared),
            Rejection::Inexact => Some(Reason::Inexact),
            Rejection::Other => None,
        },
        EngineError::Storage(storage) => storage_reason(storage),
        EngineError::Format { source: FormatError::Unsupported { .. }, .. } => Some(Reason::FormatVersion),
        // All batches of a group commit share one error; each has its kind and reason.
        EngineError::Shared(error) => engine_reason(error),
        _ => None,
    }
}

fn ingest_reason(error: &IngestError) -> Option<Reason> {
    use std::io::ErrorKind as Io;
    match error {
        IngestError::BadRow(_) => Some(Reason::BadRow),
        IngestError::Broken(_) | IngestError::Damaged { .. } => Some(Reason::Broken),
        IngestError::Layout { .. } => Some(Reason::Layout),
        IngestError::Missing(_) => Some(Reason::File),
        IngestError::Remote(_) => Some(Reason::Remote),
        IngestError::Read { path, source } => {
            // A decompressor reports damage as an error of reading, so the name of the file and the kind of error distinguish the two.
            let packed = path.extension().is_some_and(|extension| extension == "gz" || extension == "zst");
            let missing = matches!(source.kind(), Io::NotFound | Io::PermissionDenied | Io::IsADirectory);
            Some(if packed && !missing { Reason::Archive } else { Reason::File })
        }
        IngestError::Storage(storage) => storage_reason(storage),
        _ => None,
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        let rejected = rejected_change(&error);
        let reason = engine_reason(&error);
        let operation = rejected.as_ref().map(|it| it.0);
        let row = rejected.as_ref().and_then(|it| it.1);
        let item = rejected.map(|it| it.2);
        Self { operation, row, item, ..Self::of(engine_kind(&error), error).with_reason(reason) }
    }
}

/// The operation that an error is about, the row of its columns, and its text.
fn rejected_change(error: &EngineError) -> Option<(usize, Option<usize>, Box<str>)> {
    match error {
        EngineError::Rejected { number, row, operation, .. } => Some((*number, *row, operation.to_string().into())),
        EngineError::Shared(error) => rejected_change(error),
        _ => None,
    }
}

fn engine_kind(error: &EngineError) -> ErrorKind {
    match error {
        EngineError::NotFound(_) | EngineError::NoGraph { .. } | EngineError::NoVersion(_) => ErrorKind::NotFound,
        EngineError::Invalid(_) | EngineError::Rejected { .. } => ErrorKind::Invalid,
        EngineError::Conflict(_) | EngineError::Exists(_) | EngineError::Overtaken(_) => ErrorKind::Conflict,
        EngineError::Limit { .. } => ErrorKind::Limit,
        EngineError::Storage(storage) => storage_kind(storage),
        EngineError::Format { source, .. } => format_kind(source),
        EngineError::Table { .. } => ErrorKind::Corrupt,
        EngineError::Arrow(_) | EngineError::Internal(_) => ErrorKind::Internal,
        EngineError::Unknown { .. } => ErrorKind::Unknown,
        EngineError::Shared(error) => engine_kind(error),
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        let reason = storage_reason(&error);
        Self::of(storage_kind(&error), error).with_reason(reason)
    }
}

impl From<IngestError> for Error {
    fn from(error: IngestError) -> Self {
        let kind = match &error {
            IngestError::Memory { .. } | IngestError::Bound { .. } => ErrorKind::Limit,
            IngestError::Spill(_) | IngestError::Unavailable(_) => ErrorKind::Unavailable,
            IngestError::Missing(_) => ErrorKind::NotFound,
            IngestError::Storage(storage) => storage_kind(storage),
            IngestError::Arrow(_) | IngestError::Internal(_) => ErrorKind::Internal,
            _ => ErrorKind::Invalid,
        };
        let reason = ingest_reason(&error);
        let message = match &error {
            IngestError::Read { path, source } => {
                format!("could not read {}: {}", path.display(), system_text(source))
            }
            other => other.to_string(),
        };
        let location = match &error {
            IngestError::Change { location, .. } => Some(Box::new(location.clone())),
            _ => None,
        };
        Self { message, location, ..Self::of(kind, error) }.with_reason(reason)
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
        let missing = Error::no_graph("s3://b/social");
        let expected = ("there is no graph at s3://b/social".into(), ErrorKind::NotFound, Some(Reason::NoGraph));
        assert_eq!((missing.to_string(), missing.kind(), missing.reason()), expected);
    }
}
