//! What every handler has of its request, and how it answers.

use std::{convert::Infallible, sync::Arc};

use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, FromRequestParts, Request, rejection::BytesRejection},
    http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts},
    response::IntoResponse,
};
use serde::{Serialize, de::DeserializeOwned};

use super::problem;
use crate::{
    calls::{Call, Protocol, REQUEST_ID, Service},
    failure::{Failure, Reason},
};

/// The server and the headers of a request.
pub(super) struct Exchange {
    service: Arc<Service>,
    headers: HeaderMap,
}

impl FromRequestParts<Arc<Service>> for Exchange {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Infallible> {
        Ok(Self { service: service.clone(), headers: parts.headers.clone() })
    }
}

impl Exchange {
    /// Begins a call.
    pub(super) fn begin(&self, name: &'static str) -> Call {
        Call::begin(&self.service, Protocol::Http, name, &self.headers)
    }
}

/// The body of a request, or why it did not come. Read within the call, so that its failure is logged like others.
pub(super) struct JsonBody(Result<Bytes, BytesRejection>);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = Infallible;

    async fn from_request(request: Request, state: &S) -> Result<Self, Infallible> {
        Ok(Self(Bytes::from_request(request, state).await))
    }
}

impl JsonBody {
    /// Reads it; an empty body is an empty object.
    pub(super) fn read<T: DeserializeOwned>(self) -> Result<T, Failure> {
        let bytes = self.0.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                Failure::new(Reason::TooLarge, "the body is larger than this server takes")
            }
            _ => Failure::invalid(format!("the body did not come: {rejection}")),
        })?;
        let json: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(json)
            .map_err(|error| Failure::invalid(format!("the body is not what is asked here: {error}")))
    }
}

/// Ends a call, with its answer or its problem; both carry the name of the request.
pub(super) fn respond<T: Serialize>(call: &mut Call, outcome: Result<T, Failure>) -> Response<Body> {
    let unwritable = |error| Failure::new(Reason::Internal, format!("the answer cannot be written: {error}"));
    let written = outcome.and_then(|answer| serde_json::to_vec(&answer).map_err(unwritable));
    call.finish(&written);
    let mut response = match written {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(failure) => problem::response(&failure, Some(&call.id)),
    };
    if let Ok(id) = HeaderValue::from_str(&call.id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}
