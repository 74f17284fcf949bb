//! The parts of a request that every handler uses, and its answers.

use std::{convert::Infallible, error::Error, sync::Arc};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, HeaderValue, Response, header, request::Parts},
    response::IntoResponse,
};
use hoplake_doors::Exchange;
use serde::{Serialize, de::DeserializeOwned};
use tracing::Instrument;

use super::{chunk_buffer::unwritable, problem, state::HttpState};
use crate::{
    calls::{Call, Service},
    failure::{Failure, Reason},
    request_head::{Arrival, REQUEST_ID},
    shape,
};

/// The server and the headers of a request.
pub(super) struct HttpRequest {
    service: Arc<Service>,
    pub(super) headers: HeaderMap,
    arrival: Arrival,
}

impl FromRequestParts<HttpState> for HttpRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &HttpState) -> Result<Self, Infallible> {
        Ok(Self {
            service: state.service.clone(),
            headers: parts.headers.clone(),
            arrival: Arrival::of(&parts.extensions),
        })
    }
}

impl HttpRequest {
    /// Begins a call.
    pub(super) fn begin(&self, name: &'static str) -> Call {
        Call::begin(&self.service, self.arrival.context("http", name, &self.headers))
    }

    /// Runs a call, and responds with what it returns.
    pub(super) async fn answer<T: Serialize>(
        &self,
        name: &'static str,
        work: impl AsyncFnOnce(&mut Call) -> Result<T, Failure>,
    ) -> Response<Body> {
        let mut call = self.begin(name);
        let span = call.span.clone();
        let outcome = work(&mut call).instrument(span).await;
        respond(&mut call, outcome)
    }
}

/// The body of a request, which is read within its call: not before the token is right, and so that its failure is
/// logged like others.
pub(super) struct RequestBody(Body);

impl<S: Send + Sync> FromRequest<S> for RequestBody {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        Ok(Self(request.into_body()))
    }
}

impl RequestBody {
    /// Reads JSON; an empty body is an empty object.
    ///
    /// # Errors
    /// Those of [`Self::bytes`], and that it is not a valid request.
    pub(super) async fn read<T: DeserializeOwned>(self, call: &Call) -> Result<T, Failure> {
        // No permit is held yet: a client that sends slowly keeps no query from running.
        let bytes = self.bytes(call).await?;
        // Before parsing, which is what takes the memory; a rejection asks for a retry, as the request is valid.
        let needed = Exchange::decoded_bytes(bytes.len());
        let held = call.exchange.hold_decoded(&call.service.memory, bytes.len());
        held.map_err(|full| Failure::no_memory(full, needed))?;
        parse(if bytes.is_empty() { b"{}" } else { &bytes })
    }

    /// Reads bytes; their decoder counts the memory.
    ///
    /// # Errors
    /// [`Reason::Unauthenticated`] before anything is read; that the body is too large or too slow.
    pub(super) async fn bytes(self, call: &Call) -> Result<Bytes, Failure> {
        call.check_token()?;
        call.bounded(collect(self.0)).await
    }
}

/// Reads a body; an error has its path.
fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, Failure> {
    let mut from = serde_json::Deserializer::from_slice(json);
    let body = shape::read(&mut from).map_err(|(path, error)| unfit(&path, &error))?;
    // A second object would else be dropped without a word.
    from.end().map_err(|error| unfit("", &error))?;
    Ok(body)
}

/// The failure of a body that is not a valid request.
fn unfit(path: &str, error: &serde_json::Error) -> Failure {
    let mut why = error.to_string();
    if error.is_data() {
        // A path is more precise than line and column.
        let position = format!(" at line {} column {}", error.line(), error.column());
        why.truncate(why.strip_suffix(&position).map_or(why.len(), str::len));
    }
    let path = if path.is_empty() { String::new() } else { format!(", at {path}") };
    Failure::invalid(format!("the body is not a valid request{path}: {why}"))
}

/// All of a body, which its door bounds in size and time.
async fn collect(mut body: Body) -> Result<Bytes, Failure> {
    // Not sized by `content-length`: the budget counts bytes that arrive, and a client may announce any number.
    let mut all = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await {
        let data = frame.map_err(|error| of_body(&error))?.into_data();
        all.extend_from_slice(&data.unwrap_or_default());
    }
    Ok(all.into())
}

/// Why a body is incomplete: the door's failure, or a broken connection.
fn of_body(error: &axum::Error) -> Failure {
    // Axum wraps the errors of a body.
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(own) = error.downcast_ref::<Failure>() {
            return own.clone();
        }
        cause = error.source();
    }
    Failure::new(Reason::Invalid, format!("the body did not arrive: {error}"))
}

/// Ends a call, with its result or its problem; both have the request's id.
fn respond<T: Serialize>(call: &mut Call, outcome: Result<T, Failure>) -> Response<Body> {
    let written = outcome.and_then(|answer| serde_json::to_vec(&answer).map_err(unwritable));
    let written = written.and_then(|json| {
        let cost = Some(Box::new(call.cost));
        // The cost is added by hand: the query has ended well, and its cost is not in a failure yet.
        let hold = call.memory.hold(json.len() as u64).map_err(|full| Failure { cost, ..full.into() })?;
        call.exchange.hold_next(Some(hold));
        Ok(json)
    });
    // After encoding: the log and the counters have the status that the client gets.
    call.finish(&written);
    let response = match written {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(failure) => problem::response(&failure, Some(&call.id)),
    };
    named(response, &call.id)
}

/// The response to a request of this name.
pub(super) fn named(mut response: Response<Body>, id: &str) -> Response<Body> {
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}
