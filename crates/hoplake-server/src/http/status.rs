//! The statuses of HTTP.

use axum::http::StatusCode;

use crate::failure::Reason;

impl Reason {
    /// The status of HTTP.
    pub fn http(self) -> StatusCode {
        match self {
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::ReadOnly => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Conflict | Self::NoResult => StatusCode::CONFLICT,
            // Not 429: the same question meets the same limit again.
            Self::Limit => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Time => StatusCode::GATEWAY_TIMEOUT,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable | Self::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unknown => StatusCode::BAD_GATEWAY,
            Self::Corrupt | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}
