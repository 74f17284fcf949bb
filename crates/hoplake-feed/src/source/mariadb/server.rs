//! What a server is, and its errors.

use crate::{FeedError, FeedErrorKind, error::COPY_ANEW};

/// What a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavour {
    MariaDb,
    MySql,
}

/// The error of a server or of a connection: `what` is the end of a sentence, such as `read the binlog`.
pub(super) fn failed(what: &str, error: &mysql_async::Error) -> FeedError {
    let kind = match error {
        mysql_async::Error::Server(server) => match server.code {
            // The position is in no binlog any more, or the server never had it.
            1236 => FeedErrorKind::Purged,
            // Too many connections, shutting down, read-only for now, lock waits, killed, and a table that was truncated or altered
            // after the snapshot in which it is read.
            1040 | 1053 | 1203 | 1205 | 1213 | 1226 | 1290 | 1317 | 1412 | 1927 | 3024 => FeedErrorKind::Unavailable,
            _ => FeedErrorKind::Invalid,
        },
        mysql_async::Error::Url(_) => FeedErrorKind::Invalid,
        _ => FeedErrorKind::Unavailable,
    };
    let error = FeedError::new(kind, format!("could not {what}: {error}"));
    match kind {
        FeedErrorKind::Purged => error.hint(format!("the server no longer has these changes; {COPY_ANEW}")),
        _ => error,
    }
}
