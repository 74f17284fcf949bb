//! Failures as problem documents (RFC 9457).

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{cost::PricedCost, failure::Failure};

/// Why a request failed (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// `urn:hoplake:problem:` and the reason.
    r#type: String,
    /// Its meaning, in a few words.
    title: &'static str,
    /// The status of HTTP.
    status: u16,
    /// A sentence about this request.
    detail: String,
    /// A code for programs: `INVALID`, `NOT_FOUND`, `LIMIT`, `TIME`, `BUSY`, …
    reason: &'static str,
    /// The name of the request in the server's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// The cost of the query until then, if it had begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<PricedCost>,
    /// The line of a batch that was rejected, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// The row of a batch in Arrow that was rejected, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    /// The change that was rejected, such as `upsert of vertex Person:7`.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<String>,
}

/// A failure as a problem.
pub(super) fn of(failure: &Failure, request_id: Option<&str>) -> Problem {
    let reason = failure.reason;
    let number = |unit| failure.place.as_deref().filter(|place| place.unit == unit).map(|place| place.number);
    Problem {
        r#type: format!("urn:hoplake:problem:{}", reason.name().to_ascii_lowercase().replace('_', "-")),
        title: reason.title(),
        status: reason.http().as_u16(),
        detail: failure.message.clone(),
        reason: reason.name(),
        request_id: request_id.map(str::to_owned),
        cost: failure.cost.as_deref().copied(),
        line: number("line"),
        row: number("row"),
        item: failure.place.as_ref().and_then(|place| place.item.clone()),
    }
}

/// The response to a request that failed.
pub(super) fn response(failure: &Failure, request_id: Option<&str>) -> Response<Body> {
    let reason = failure.reason;
    let body = serde_json::to_vec(&of(failure, request_id)).expect("a problem is plain data");
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = reason.http();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if let Some(delay) = reason.retry_after() {
        headers.insert(header::RETRY_AFTER, delay.as_secs().into());
    }
    // A 401 must name a scheme (RFC 9110, 15.5.2).
    if reason.http() == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
