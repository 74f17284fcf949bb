//! The statuses of gRPC.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::failure::{Failure, Reason};

impl Reason {
    /// The status of gRPC.
    pub fn grpc(self) -> Code {
        match self {
            Self::Invalid => Code::InvalidArgument,
            // OUT_OF_RANGE is also what tonic's decoder answers to a message that is too large.
            Self::TooLarge => Code::OutOfRange,
            Self::Slow | Self::Time => Code::DeadlineExceeded,
            Self::Method => Code::Unimplemented,
            Self::Unauthenticated => Code::Unauthenticated,
            Self::ReadOnly => Code::PermissionDenied,
            Self::NotFound => Code::NotFound,
            Self::Conflict => Code::Aborted,
            Self::NoResult => Code::FailedPrecondition,
            // The reason, and RetryInfo, set the two apart.
            Self::Limit | Self::Busy => Code::ResourceExhausted,
            Self::Unavailable | Self::ShuttingDown => Code::Unavailable,
            Self::Unknown => Code::Unknown,
            Self::Corrupt => Code::DataLoss,
            Self::Internal => Code::Internal,
        }
    }
}

impl Failure {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::PricedCost;
    use hoplake::Cost;

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
