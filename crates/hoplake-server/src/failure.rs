//! Why a call failed, whatever the protocol. The status in a protocol is its adapter's: `http::status`, `grpc::status` and
//! `websocket::status`.

use std::time::Duration;

use hoplake::{Error, ErrorKind, MemoryFull};
use tokio::task::JoinError;

use crate::cost::PricedCost;

/// The kind of a failure, finer than the facade's kinds where a server adds its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The request is wrong.
    Invalid,
    /// Its body is too large.
    TooLarge,
    /// It did not arrive in time.
    Slow,
    /// Its path has other methods of HTTP.
    Method,
    /// It brought no token, or a wrong one.
    Unauthenticated,
    /// The named object does not exist.
    NotFound,
    /// The server does not write.
    ReadOnly,
    /// Another writer was faster.
    Conflict,
    /// The job has not ended, or it has no result any more.
    NoResult,
    /// The query reached a limit on vertices, requests, bytes or dollars.
    Limit,
    /// Its time is over.
    Time,
    /// The server has enough to do.
    Busy,
    /// The store cannot be reached.
    Unavailable,
    /// Whether a change happened is not known.
    Unknown,
    /// The server is about to end.
    ShuttingDown,
    /// Stored bytes are damaged.
    Corrupt,
    /// A bug in Hoplake.
    Internal,
}

impl Reason {
    /// Its name in all protocols.
    pub fn name(self) -> &'static str {
        self.texts().0
    }

    /// Its meaning, in a few words.
    pub fn title(self) -> &'static str {
        self.texts().1
    }

    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Invalid => ("INVALID", "The request is wrong"),
            Self::TooLarge => ("TOO_LARGE", "The request is too large"),
            Self::Slow => ("SLOW", "The request did not arrive in time"),
            Self::Method => ("METHOD", "Method not allowed"),
            Self::Unauthenticated => ("UNAUTHENTICATED", "A token is needed"),
            Self::ReadOnly => ("READ_ONLY", "The server does not write"),
            Self::NotFound => ("NOT_FOUND", "Not found"),
            Self::Conflict => ("CONFLICT", "Another writer was faster"),
            Self::NoResult => ("NO_RESULT", "The job has no result"),
            Self::Limit => ("LIMIT", "The query reached a limit"),
            Self::Time => ("TIME", "The query ran out of time"),
            Self::Busy => ("BUSY", "The server is busy"),
            Self::Unavailable => ("UNAVAILABLE", "The store is unavailable"),
            Self::Unknown => ("UNKNOWN", "It is not known whether the change happened"),
            Self::ShuttingDown => ("SHUTTING_DOWN", "The server is shutting down"),
            Self::Corrupt => ("CORRUPT", "Stored bytes are damaged"),
            Self::Internal => ("INTERNAL", "A bug in Hoplake"),
        }
    }

    /// What a client can do about it.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Invalid => "change the request",
            Self::TooLarge => "send less at a time",
            Self::Slow => "send the request faster",
            Self::Method => "use another method",
            Self::Unauthenticated => "send the token",
            Self::ReadOnly => "ask a server that writes",
            Self::NotFound => "check the name: of a graph, a label, a vertex or a property",
            Self::Conflict => "look at the newest version and try again: another writer changed what this is based on",
            Self::NoResult => "ask again when the state is done, or start the job again",
            Self::Limit => "raise the limit, or select fewer edges and labels: the same request will reach it again",
            Self::Time => "give more time, or select fewer edges and labels",
            Self::Busy | Self::Unavailable => "try again later",
            Self::Unknown => "look at the graph before you try again",
            Self::ShuttingDown => "try another server",
            Self::Corrupt => "verify the graph, and restore it from a copy",
            Self::Internal => "report it with the log of the server",
        }
    }

    /// The delay before the next attempt, if a retry may succeed.
    pub fn retry_after(self) -> Option<Duration> {
        // Whole seconds: `Retry-After` has no fractions (RFC 9110, 10.2.3).
        matches!(self, Self::Busy | Self::ShuttingDown).then_some(Duration::from_secs(1))
    }
}

/// Why a call failed: a reason to act on, a sentence to read, and the cost until then.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Its kind.
    pub reason: Reason,
    /// A sentence.
    pub message: String,
    /// The cost, if the query had begun; in a box, to keep `Result` small.
    pub cost: Option<Box<PricedCost>>,
    /// The change of a batch that it is about.
    pub place: Option<Box<Place>>,
    /// The exact cause, if the facade has one.
    pub cause: Option<hoplake::Reason>,
}

/// A change of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What is counted: `line` or `row`.
    pub unit: &'static str,
    /// Its number, from 1.
    pub number: u64,
    /// What it changes, if it could be read.
    pub item: Option<String>,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), cost: None, place: None, cause: None }
    }

    /// The request is wrong.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Reason::Invalid, message)
    }

    /// The reason for the facade's error.
    pub(crate) fn reason_of(error: &Error) -> Reason {
        match error.kind() {
            ErrorKind::Invalid if error.reason() == Some(hoplake::Reason::ReadOnly) => Reason::ReadOnly,
            ErrorKind::Invalid => Reason::Invalid,
            ErrorKind::NotFound => Reason::NotFound,
            ErrorKind::Conflict => Reason::Conflict,
            ErrorKind::Unavailable => Reason::Unavailable,
            ErrorKind::Unknown => Reason::Unknown,
            // Not LIMIT, which is permanent.
            ErrorKind::Limit if error.reason() == Some(hoplake::Reason::MemoryInUse) => Reason::Busy,
            // The call decides whether it was the deadline, since it knows when it began.
            ErrorKind::Limit => Reason::Limit,
            ErrorKind::Corrupt => Reason::Corrupt,
            ErrorKind::Internal => Reason::Internal,
        }
    }

    /// A valid request needs so many bytes of the server's memory: it has none now, or never has.
    pub(crate) fn no_memory(full: MemoryFull, needed: u64) -> Self {
        if needed > full.bytes_max {
            return Self::new(Reason::TooLarge, format!("the request takes more than {full}; send less at a time"));
        }
        let message = format!("the server has no memory for the request now (its limit is {full}); try again later");
        Self::new(Reason::Busy, message)
    }

    /// The server is about to end.
    pub(crate) fn shutting_down() -> Self {
        Self::new(Reason::ShuttingDown, "the server is shutting down; ask another, or try again")
    }

    /// A task of the server's own panicked, or was aborted. Only the log has the cause: it may contain paths and
    /// secrets.
    pub(crate) fn broken_off(what: &str, error: &JoinError) -> Self {
        tracing::error!(%error, "{what} broke off");
        Self::new(
            Reason::Internal,
            format!("{what} broke off because of a bug in Hoplake; the log of the server has more"),
        )
    }
}

impl From<MemoryFull> for Failure {
    fn from(full: MemoryFull) -> Self {
        let limit = format!("the query was ended at its limit of {full}");
        match full.is_shared {
            true => Self::new(Reason::Busy, format!("{limit}, which others use now; try again later")),
            false => Self::new(Reason::Limit, limit),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { cause: error.reason(), ..Self::new(Self::reason_of(&error), error.to_string()) }
    }
}
