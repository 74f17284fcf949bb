//! A connection that answers queries, texts in SQL, and the errors of servers.

use bytes::Bytes;
use pgwire_replication::{Lsn, PgWireError, ReplicationClient};

use crate::{FeedError, FeedErrorKind, error::COPY_ANEW};

/// A row of a query: text, or null.
pub(super) type Row = Vec<Option<Bytes>>;

/// A connection that answers queries until it streams.
pub(super) struct Connection {
    pub(super) client: ReplicationClient,
}

impl Connection {
    pub(super) async fn query(&mut self, sql: &str) -> Result<Vec<Row>, FeedError> {
        self.client.simple_query(sql).await.map_err(|error| {
            let shortened: String = sql.chars().take(80).collect();
            failed(&format!("run `{shortened}`"), &error)
        })
    }

    /// The first column of the first row, if it is not null.
    pub(super) async fn value(&mut self, sql: &str) -> Result<Option<String>, FeedError> {
        let rows = self.query(sql).await?;
        Ok(rows.first().and_then(|row| text(row, 0)))
    }
}

/// A column of a row; null is nothing.
pub(super) fn text(row: &Row, column: usize) -> Option<String> {
    row.get(column)?.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// A text as a literal.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name as an identifier.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The error of a server or of a connection: `what` is the end of a sentence.
pub(super) fn failed(what: &str, error: &PgWireError) -> FeedError {
    let said = error.to_string();
    let has = |codes: &[&str]| codes.iter().any(|code| said.contains(code));
    let kind = match error {
        // The log was removed, or the slot.
        PgWireError::Server(_) if has(&["58P01", "55000", "42704"]) && has(&["slot", "WAL", "segment"]) => {
            FeedErrorKind::Purged
        }
        // Shutting down, starting, full; the slot is still held by a process that is gone.
        PgWireError::Server(_) if has(&["57P0", "53300", "53400", "40001", "55006", "25006", "08006", "08003"]) => {
            FeedErrorKind::Unavailable
        }
        PgWireError::Server(_) | PgWireError::Auth(_) | PgWireError::Tls(_) | PgWireError::MessageTooLarge { .. } => {
            FeedErrorKind::Invalid
        }
        _ => FeedErrorKind::Unavailable,
    };
    let error = FeedError::new(kind, format!("could not {what}: {said}"));
    if kind == FeedErrorKind::Purged {
        error.hint(format!("the server no longer has these changes; {COPY_ANEW}"))
    } else {
        error
    }
}

pub(super) fn lsn(text: &str) -> Result<Lsn, FeedError> {
    Lsn::parse(text).map_err(|_| FeedError::invalid(format!("{text:?} is not a position of PostgreSQL")))
}
