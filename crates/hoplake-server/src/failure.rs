//! Why a call failed, and its status in each protocol. Only this module maps the sets of statuses.

use std::{collections::HashMap, time::Duration};

use axum::http::StatusCode;
use hoplake::{Error, ErrorKind, MemoryFull};
use tokio::task::JoinError;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

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
    /// A mistake in Hoplake.
    Internal,
}

impl Reason {
    /// Its name in both protocols, the status of HTTP, that of gRPC, and a title.
    fn on_the_wire(self) -> (&'static str, StatusCode, Code, &'static str) {
        use StatusCode as Http;
        match self {
            Self::Invalid => ("INVALID", Http::BAD_REQUEST, Code::InvalidArgument, "The request is wrong"),
            // OUT_OF_RANGE is also what tonic's decoder answers to a message that is too large.
            Self::TooLarge => ("TOO_LARGE", Http::PAYLOAD_TOO_LARGE, Code::OutOfRange, "The request is too large"),
            Self::Slow => ("SLOW", Http::REQUEST_TIMEOUT, Code::DeadlineExceeded, "The request did not arrive in time"),
            Self::Method => ("METHOD", Http::METHOD_NOT_ALLOWED, Code::Unimplemented, "Method not allowed"),
            Self::Unauthenticated => {
                ("UNAUTHENTICATED", Http::UNAUTHORIZED, Code::Unauthenticated, "A token is needed")
            }
            Self::ReadOnly => ("READ_ONLY", Http::FORBIDDEN, Code::PermissionDenied, "The server does not write"),
            Self::NotFound => ("NOT_FOUND", Http::NOT_FOUND, Code::NotFound, "Not found"),
            Self::Conflict => ("CONFLICT", Http::CONFLICT, Code::Aborted, "Another writer was faster"),
            Self::NoResult => ("NO_RESULT", Http::CONFLICT, Code::FailedPrecondition, "The job has no result"),
            // Not 429: the same question meets the same limit again.
            Self::Limit => ("LIMIT", Http::UNPROCESSABLE_ENTITY, Code::ResourceExhausted, "The query reached a limit"),
            Self::Time => ("TIME", Http::GATEWAY_TIMEOUT, Code::DeadlineExceeded, "The query ran out of time"),
            // The same code as LIMIT; the reason, and RetryInfo, set the two apart.
            Self::Busy => ("BUSY", Http::TOO_MANY_REQUESTS, Code::ResourceExhausted, "The server is busy"),
            Self::Unavailable => {
                ("UNAVAILABLE", Http::SERVICE_UNAVAILABLE, Code::Unavailable, "The store is unavailable")
            }
            Self::Unknown => {
                ("UNKNOWN", Http::BAD_GATEWAY, Code::Unknown, "It is not known whether the change happened")
            }
            Self::ShuttingDown => {
                ("SHUTTING_DOWN", Http::SERVICE_UNAVAILABLE, Code::Unavailable, "The server is shutting down")
            }
            Self::Corrupt => ("CORRUPT", Http::INTERNAL_SERVER_ERROR, Code::DataLoss, "Stored bytes are damaged"),
            Self::Internal => ("INTERNAL", Http::INTERNAL_SERVER_ERROR, Code::Internal, "A mistake in Hoplake"),
        }
    }

    /// Its name in both protocols.
    pub fn name(self) -> &'static str {
        self.on_the_wire().0
    }

    /// The status of HTTP.
    pub fn http(self) -> StatusCode {
        self.on_the_wire().1
    }

    /// The status of gRPC.
    pub fn grpc(self) -> Code {
        self.on_the_wire().2
    }

    /// Its meaning, in a few words.
    pub fn title(self) -> &'static str {
        self.on_the_wire().3
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
        Self::new(Reason::Internal, format!("{what} broke off by a mistake in Hoplake; the log of the server has more"))
    }

    /// Why a message of a stream cannot be read, by the status that tonic or a door gave it; `None` if the client broke the stream
    /// off, who then reads no status.
    pub(crate) fn unreadable(status: &Status) -> Option<Self> {
        let reason = match status.code() {
            Code::OutOfRange => Reason::TooLarge,
            Code::DeadlineExceeded => Reason::Slow,
            Code::ResourceExhausted => Reason::Busy,
            // What tonic's decoder answers to bytes that are no message.
            Code::Internal | Code::InvalidArgument | Code::Unimplemented => Reason::Invalid,
            _ => return None,
        };
        Some(Self::new(reason, status.message()))
    }

    /// For Gremlin: the status, and the name of the exception.
    pub(crate) fn gremlin(&self) -> (i32, &'static str) {
        match (self.reason, self.cause) {
            (Reason::Invalid, Some(hoplake::Reason::Syntax)) => (597, "hoplake.SyntaxException"),
            (Reason::Invalid, Some(hoplake::Reason::Step)) => (498, "hoplake.StepException"),
            (Reason::Invalid, Some(hoplake::Reason::Call)) => (499, "hoplake.CallException"),
            (Reason::Invalid, Some(hoplake::Reason::Fail)) => (595, "hoplake.FailException"),
            (Reason::Invalid, Some(hoplake::Reason::Query)) => (500, "hoplake.QueryException"),
            (Reason::Invalid, _) => (499, "hoplake.InvalidException"),
            (Reason::NotFound, _) => (499, "hoplake.NotFoundException"),
            (Reason::TooLarge, _) => (498, "hoplake.TooLargeException"),
            (Reason::Slow | Reason::Method, _) => (498, "hoplake.RequestException"),
            (Reason::Unauthenticated, _) => (401, "hoplake.UnauthenticatedException"),
            (Reason::ReadOnly, _) => (403, "hoplake.ReadOnlyException"),
            (Reason::Busy, _) => (429, "hoplake.BusyException"),
            (Reason::Time, _) => (598, "hoplake.TimeoutException"),
            // Temporary: drivers may send the request again.
            (Reason::Unavailable, _) => (596, "hoplake.UnavailableException"),
            (Reason::ShuttingDown, _) => (596, "hoplake.ShuttingDownException"),
            (Reason::Conflict, _) => (500, "hoplake.ConflictException"),
            (Reason::Limit, _) => (500, "hoplake.LimitException"),
            (Reason::Unknown, _) => (500, "hoplake.UnknownOutcomeException"),
            (Reason::Corrupt, _) => (500, "hoplake.CorruptException"),
            (Reason::Internal | Reason::NoResult, _) => (500, "hoplake.InternalException"),
        }
    }

    /// For gRPC, with details that any client library can read.
    pub(crate) fn status(&self) -> Status {
        let cost = self.cost.as_deref().map(|cost| cost.pairs()).unwrap_or_default();
        let place = self.place.iter().flat_map(|place| {
            let item = place.item.clone().map(|item| ("item".to_owned(), item));
            [(place.unit.to_owned(), place.number.to_string())].into_iter().chain(item)
        });
        let metadata: HashMap<String, String> = cost.into_iter().chain(place).collect();
        let mut details = ErrorDetails::with_error_info(self.reason.name(), "hoplake", metadata);
        if let Some(delay) = self.reason.retry_after() {
            details.set_retry_info(Some(delay));
        }
        Status::with_error_details(self.reason.grpc(), &self.message, details)
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

#[cfg(test)]
mod tests {
    use hoplake::Cost;
    use tonic_types::StatusExt;

    use super::*;

    #[test]
    fn a_status_has_the_cost_and_when_to_retry() {
        let counters = Cost { requests: 3, ..Cost::default() };
        let cost = PricedCost { counters, usd: 0.000_002 };
        let status = Failure { cost: Some(Box::new(cost)), ..Failure::new(Reason::Limit, "too far") }.status();
        let info = status.get_details_error_info().unwrap();
        assert_eq!(
            (status.code(), info.reason.as_str(), info.domain.as_str()),
            (Code::ResourceExhausted, "LIMIT", "hoplake")
        );
        assert_eq!([&info.metadata["requests"], &info.metadata["usd"]], ["3", "0.000002"]);
        assert!(status.get_details_retry_info().is_none());
        assert!(Failure::new(Reason::Busy, "later").status().get_details_retry_info().is_some());
    }
}
