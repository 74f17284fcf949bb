//! Versions of the encoding, and what cannot be read or written in them.

/// Items of a bulk set that version 2 writes one by one, at most.
pub const BULK_MAX: u64 = 100_000;

/// A version of the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// GraphSON 2.
    Second,
    /// GraphSON 3.
    Third,
}

impl Version {
    /// The media type that precedes a message.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Second => "application/vnd.gremlin-v2.0+json",
            Self::Third => "application/vnd.gremlin-v3.0+json",
        }
    }
}

/// What is wrong with a message, and within which types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct DecodeError {
    /// The types from the outermost to the one that is wrong, or the line and column of what is not JSON.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// Why a value has no encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A key of a map that has no text.
    #[error("keys of maps are text in GraphSON 2, and one is a collection or an element")]
    Key,
    /// Version 2 writes each item of a bulk set as often as it is in it.
    #[error("a bulk set has more than {} items, which GraphSON 2 writes one by one", BULK_MAX)]
    Bulk,
    /// An element that was not read.
    #[error("an element has to be read before it is written")]
    Unread,
}
