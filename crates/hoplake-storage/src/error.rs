//! Errors of stores and of the reader.

use std::{io, sync::Arc};

use hoplake_format::FormatError;
use thiserror::Error;

use crate::{Cost, StoreFault, store::fault};

/// Why an operation on a store failed.
#[derive(Debug, Clone, Error)]
pub enum StorageError {
    /// The URL does not name a store.
    #[error("{url:?} is not a valid location of a graph: {why}")]
    Url {
        /// The URL as the caller passed it.
        url: String,
        /// The mistake, and what to write instead.
        why: String,
    },
    /// The object does not exist.
    #[error("{object} does not exist")]
    NotFound {
        /// Its URL.
        object: String,
    },
    /// The store rejected the request, failed or could not be reached, after retries.
    #[error("could not {action} {object}: {}", fault::explain(source).1)]
    Unavailable {
        /// The operation: `read`, `write`, `list`.
        action: &'static str,
        /// The object.
        object: String,
        /// The store's answer.
        #[source]
        source: Arc<object_store::Error>,
    },
    /// The outcome of a create is unknown: the object may exist already, or appear later.
    #[error("it is not known whether {object} was created: {}", fault::explain(source).1)]
    Unanswered {
        /// The object.
        object: String,
        /// The error that was returned instead of an answer.
        #[source]
        source: Arc<object_store::Error>,
    },
    /// The store lets several creates of one name succeed.
    #[error(
        "{store} cannot hold a graph: its conditional create (If-None-Match: *) does not work, and commits would be lost \
        ({why}); use a store that has it"
    )]
    Unfit {
        /// The store's URL.
        store: String,
        /// The evidence.
        why: String,
    },
    /// A request to an access node failed.
    #[error("{message}")]
    Node {
        /// The cause.
        fault: NodeFault,
        /// The request, the answer, and the node that sent it.
        message: String,
        /// Whether a retry may succeed, at another node if there is one.
        may_pass: bool,
    },
    /// The store did not answer in time.
    #[error("no answer from {object} within {timeout_ms} ms")]
    TimedOut {
        /// The object.
        object: String,
        /// The timeout.
        timeout_ms: u64,
    },
    /// The query reached one of its limits.
    #[error("the query was ended at its limit of {limit}; until then it took {} waves, {} requests and {} bytes",
        cost.waves, cost.requests, cost.store_bytes)]
    Limit {
        /// The limit, with its number and unit.
        limit: String,
        /// Whether the limit is on memory that other queries share, so that a retry may succeed.
        is_shared: bool,
        /// The query's cost so far.
        cost: Box<Cost>,
    },
    /// The caller cancelled the work.
    #[error("the computation was cancelled")]
    Cancelled,
    /// The settings are invalid.
    #[error("invalid settings: {0}")]
    Settings(String),
    /// The store returned more or fewer bytes than requested.
    #[error("could not read {object}: the store returned {found} bytes instead of {expected}")]
    Length {
        /// The object.
        object: String,
        /// The length requested.
        expected: u64,
        /// The length received.
        found: u64,
    },
    /// The bytes differ from those that were written.
    #[error("{object}, bytes {start} to {end}: {source}")]
    Corrupt {
        /// The object.
        object: String,
        /// The first byte.
        start: u64,
        /// The byte after the last.
        end: u64,
        /// The check that failed.
        #[source]
        source: FormatError,
    },
}

/// Why a request to an access node failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeFault {
    /// The request was invalid.
    Invalid,
    /// The node does not answer, rejects the request, or cannot reach its store.
    Unavailable,
    /// A stored object is damaged or missing.
    Corrupt,
    /// A bug in the node or in its client.
    Internal,
}

impl StorageError {
    /// The class of the failure, if the store is its cause.
    pub fn fault(&self) -> Option<StoreFault> {
        match self {
            Self::Unavailable { source, .. } => Some(fault::explain(source).0),
            Self::TimedOut { .. } => Some(StoreFault::Unreachable),
            _ => None,
        }
    }

    /// Whether the store was full; nothing was written then.
    pub fn is_full(&self) -> bool {
        // The client wraps the system's error, in a number of layers that depends on the operation.
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if error.downcast_ref().is_some_and(is_full) {
                return true;
            }
            cause = error.source();
        }
        false
    }

    /// Whether a retry may succeed: the store was busy or unreachable, or the answer was damaged in transit.
    pub(crate) fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { source, .. } => {
                // The other kinds are decisions of the store: not found, denied, not supported. A retry does not change them.
                matches!(**source, object_store::Error::Generic { .. } | object_store::Error::JoinError { .. })
            }
            Self::Node { may_pass, .. } => *may_pass,
            // The answer may have been truncated or damaged in transit, while the stored bytes are intact.
            Self::TimedOut { .. } | Self::Length { .. } | Self::Corrupt { .. } => true,
            Self::Url { .. }
            | Self::NotFound { .. }
            | Self::Unanswered { .. }
            | Self::Unfit { .. }
            | Self::Limit { .. }
            | Self::Cancelled
            | Self::Settings(_) => false,
        }
    }
}

/// Whether the disk or the store is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
