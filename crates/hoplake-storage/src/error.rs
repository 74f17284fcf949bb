//! What can go wrong between here and a store.

use hoplake_format::FormatError;
use thiserror::Error;

/// Why the store did not give or take what was asked.
#[derive(Debug, Error)]
pub enum StorageError {
    /// The URL names no store.
    #[error("{url:?} names no store: {why}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong with it, and what to write instead.
        why: String,
    },
    /// The object is not there.
    #[error("{object} does not exist")]
    NotFound {
        /// Its full place.
        object: String,
    },
    /// The store refused, failed or could not be reached, after retries.
    #[error("could not {action} {object}: {source}")]
    Unavailable {
        /// What was tried: `read`, `write`, `list`.
        action: &'static str,
        /// On which object.
        object: String,
        /// What the store said.
        #[source]
        source: object_store::Error,
    },
    /// The store gave another number of bytes than asked.
    #[error("could not read {object}: the store gave {found} bytes where {expected} were due")]
    Length {
        /// The object.
        object: String,
        /// What was asked.
        expected: u64,
        /// What came.
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
