//! Errors of stores and of reads from them.

use std::{io, sync::Arc};

use hoplake_format::FormatError;
use thiserror::Error;

use crate::{Cost, StoreFault, store::fault};

/// Why the store did not give or take what was asked.
#[derive(Debug, Clone, Error)]
pub enum StorageError {
    /// The URL is not one of a store.
    #[error("{url:?} is not a valid location of a graph: {why}")]
    Url {
        /// As the caller gave it.
        url: String,
        /// The mistake, and what to write instead.
        why: String,
    },
    /// The object is not there.
    #[error("{object} does not exist")]
    NotFound {
        /// Its URL.
        object: String,
    },
    /// The store rejected, failed or could not be reached, after retries.
    #[error("could not {action} {object}: {}", fault::explain(source).1)]
    Unavailable {
        /// The operation: `read`, `write`, `list`.
        action: &'static str,
        /// On which object.
        object: String,
        /// The store's answer.
        #[source]
        source: Arc<object_store::Error>,
    },
    /// The store did not say whether it created an object: it may be there, now or later.
    #[error("it is not known whether {object} was created: {}", fault::explain(source).1)]
    Unanswered {
        /// The object.
        object: String,
        /// The error instead of an answer.
        #[source]
        source: Arc<object_store::Error>,
    },
    /// The store does not decide which of several creates of one name succeeds.
    #[error(
        "{store} cannot hold a graph: its conditional create (If-None-Match: *) does not work, and commits would be lost \
        ({why}); use a store that has it"
    )]
    Unfit {
        /// Where the store is.
        store: String,
        /// How that was found.
        why: String,
    },
    /// A node in front of the store did not bring it.
    #[error("{message}")]
    Node {
        /// Its meaning.
        fault: NodeFault,
        /// The request and the answer, with its sender.
        message: String,
        /// Whether the same request may succeed when it is sent again, to another node if there is one.
        may_pass: bool,
    },
    /// The store did not answer in time.
    #[error("no answer from {object} within {timeout_ms} ms")]
    TimedOut {
        /// The object.
        object: String,
        /// How long it had.
        timeout_ms: u64,
    },
    /// The query reached a limit that was set for it.
    #[error("the query was ended at its limit of {limit}; until then it took {} waves, {} requests and {} bytes",
        cost.waves, cost.requests, cost.store_bytes)]
    Limit {
        /// The limit, with its number and unit.
        limit: String,
        /// Whether it is memory that others hold now, so that the same may succeed later.
        is_shared: bool,
        /// The cost until then.
        cost: Box<Cost>,
    },
    /// Work ended early, since nobody waits for it any more.
    #[error("the computation was cancelled")]
    Cancelled,
    /// Settings that cannot work.
    #[error("wrong settings: {0}")]
    Settings(String),
    /// The store gave another number of bytes than asked.
    #[error("could not read {object}: the store gave {found} bytes where {expected} were due")]
    Length {
        /// The object.
        object: String,
        /// The length requested.
        expected: u64,
        /// The length received.
        found: u64,
    },
    /// The bytes are not what was written there.
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

/// The meaning of a failure of a node in front of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeFault {
    /// The request was invalid.
    Invalid,
    /// It does not answer, rejects the request, or cannot reach its store.
    Unavailable,
    /// A stored object is damaged, or missing.
    Corrupt,
    /// It, or what asks it, has a mistake.
    Internal,
}

impl StorageError {
    /// The class of the store's failure, if it is one.
    pub fn fault(&self) -> Option<StoreFault> {
        match self {
            Self::Unavailable { source, .. } => Some(fault::explain(source).0),
            Self::TimedOut { .. } => Some(StoreFault::Unreachable),
            _ => None,
        }
    }

    /// Whether the store is full: then nothing was written.
    pub fn is_full(&self) -> bool {
        // The system's error is below several of the client's, at a depth that depends on the operation.
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if error.downcast_ref().is_some_and(is_full) {
                return true;
            }
            cause = error.source();
        }
        false
    }

    /// Whether the same request may succeed when it is sent again: the store was busy or away, or the
    /// answer was damaged on its way.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unavailable { source, .. } => {
                // The other kinds are decisions of the store: not found, denied, not supported. Asking again does not change them.
                matches!(**source, object_store::Error::Generic { .. } | object_store::Error::JoinError { .. })
            }
            Self::Node { may_pass, .. } => *may_pass,
            // A short or damaged answer may have been damaged on its way, while the stored bytes are intact.
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
