//! Errors of a feed as failures of a command.

use hoplake::ErrorKind;
use hoplake_feed::{FeedError, FeedErrorKind};

use crate::failure::Failure;

/// The failure of a command.
pub fn failed(error: FeedError) -> anyhow::Error {
    let kind = match error.kind() {
        FeedErrorKind::Invalid | FeedErrorKind::Row => ErrorKind::Invalid,
        FeedErrorKind::Conflict => ErrorKind::Conflict,
        FeedErrorKind::Unavailable => ErrorKind::Unavailable,
        FeedErrorKind::Purged => ErrorKind::NotFound,
        FeedErrorKind::Graph => error.graph().map_or(ErrorKind::Internal, hoplake::Error::kind),
    };
    Failure::new(kind, error.to_string(), error.what_to_do()).into()
}
