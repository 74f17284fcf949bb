//! The statuses of Gremlin's protocol.

use crate::failure::{Failure, Reason};

impl Failure {
    /// The status, and the name of the exception.
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
}
