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
    let by_kind = match error.kind() {
        FeedErrorKind::Invalid | FeedErrorKind::Row => {
            "correct feed.toml or the database; hoplake feed check compares the two"
        }
        FeedErrorKind::Conflict => "hoplake feed status shows where the graph is",
        FeedErrorKind::Unavailable => "check the address, the user and the password of the database, and try again",
        FeedErrorKind::Purged => {
            "run the feed with --resnapshot: it compares all rows with the graph, and goes on from there"
        }
        FeedErrorKind::Graph => "check the address of the graph, and the credentials of its store",
    };
    let hint = error.what_to_do().unwrap_or(by_kind).to_owned();
    Failure::new(kind, error.to_string(), hint).into()
}
