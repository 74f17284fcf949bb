//! Errors of decoding and encoding.

use thiserror::Error;

/// Why some bytes could not be read, or some values not be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The bytes are not what was written: cut, flipped, or of something else.
    #[error("{what} is damaged: {why}")]
    Corrupt {
        /// The structure that was being read.
        what: &'static str,
        /// The check that failed, with its numbers.
        why: String,
    },
    /// The bytes are of a version or use a feature that this build does not know.
    #[error("{what} has {found}, but this build reads {supported}")]
    Unsupported {
        /// The structure that was being read.
        what: &'static str,
        /// The version that it claims.
        found: String,
        /// The versions that this build can read.
        supported: String,
    },
    /// The values given cannot be written in this format.
    #[error("{0}")]
    Invalid(String),
}

impl FormatError {
    /// A [`FormatError::Corrupt`] about `what`.
    pub fn corrupt(what: &'static str, why: impl Into<String>) -> Self {
        Self::Corrupt { what, why: why.into() }
    }
}
