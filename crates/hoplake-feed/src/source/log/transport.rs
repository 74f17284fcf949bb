//! Where the records of a log are: files, standard input, Kafka, Kinesis.

use async_trait::async_trait;
use bytes::Bytes;

use super::place::Offsets;
use crate::FeedError;

/// A record of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// The part of the log that it is in: a file, a partition, a shard.
    pub(super) part: String,
    /// Where it is, for people.
    pub(super) at: String,
    /// From where its part is read to read it again, and from where to read what comes after it. Nothing where nothing can be read
    /// again.
    pub(super) before: String,
    /// See above.
    pub(super) after: String,
    /// When it was written, by the clock of its producer or of the log's server. Not used where there is one part.
    pub(super) written_unix_ms: i64,
    pub(super) value: Bytes,
    /// Whether it is a line, which may have been written in part.
    pub(super) is_line: bool,
    /// Whether it is none of the log, and only says how far its part was read.
    pub(super) is_mark: bool,
}

impl Record {
    /// An error that is about it.
    pub(super) fn located(&self, error: FeedError) -> FeedError {
        let hint = error.own_hint().unwrap_or("is source.log_format right, and the log whole?").to_owned();
        if error.stop_note().is_some() {
            // It says where it is.
            return error;
        }
        FeedError::new(error.kind(), format!("the record at {}: {error}", self.at)).hint(hint)
    }
}

/// What comes next of a log.
#[derive(Debug)]
pub(super) enum Next {
    Record(Record),
    /// Nothing yet; there may be more that was written already.
    Nothing,
    /// Nothing, and all that was written so far has been read.
    End,
}

/// Reads the records of a log: each part in its order, and several parts merged by time. A record must not be returned before one of another part that
/// was written [`SAME_RUN_MS`] or more before it, or a change that a killed producer did not repeat could be lost.
///
/// [`SAME_RUN_MS`]: super::unfinished::SAME_RUN_MS
#[async_trait]
pub(super) trait LogConsumer: Send {
    /// The next record, or after a moment that there is none. It may be dropped while it waits.
    ///
    /// # Errors
    /// [`Unavailable`](crate::FeedErrorKind::Unavailable) if it cannot be read for now, [`Purged`](crate::FeedErrorKind::Purged) if it is
    /// gone, and [`Invalid`](crate::FeedErrorKind::Invalid) if it never will be.
    async fn next(&mut self) -> Result<Next, FeedError>;

    /// Whether it has several parts.
    fn is_split(&self) -> bool;

    /// Where each part is before what was read.
    fn offsets(&self) -> Offsets;

    /// Where each part ended when the log was opened; nothing if that is not known.
    fn ends(&self) -> Offsets {
        Offsets::new()
    }

    /// Whether an offset is not before another one of the same part.
    fn is_past(&self, _offset: &str, _end: &str) -> bool {
        false
    }
}
