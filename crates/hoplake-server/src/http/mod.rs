//! HTTP/JSON: from bodies to calls and back; probes, counters and the OpenAPI document.

mod answers;
mod arrow;
mod changes;
mod chunk_buffer;
mod graphs;
mod handler;
mod job_body;
mod jobs;
mod openapi;
mod paths;
mod probes;
mod problem;
mod queries;
mod requests;
mod rows;
mod shapes;
mod state;
mod status;
mod tinkerpop;
mod traversals;
mod values;
mod writer;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::{delete, get, post},
};
use hoplake_doors::Connections;

use self::state::HttpState;
use crate::{
    calls::Service,
    failure::{Failure, Reason},
    websocket,
};

/// All routes. Each has its operation in `openapi`; a test holds the two against each other. An access node has those
/// for operators alone.
pub(crate) fn router(service: &Arc<Service>, connections: &Arc<Connections>) -> Router {
    let calls = if service.settings.role.traverses() { calls() } else { Router::new() };
    let gremlin = service.settings.role.traverses() && service.settings.gremlin.enabled;
    let calls = if gremlin { calls.route("/gremlin", get(upgrade).post(tinkerpop::query)) } else { calls };
    calls
        .route("/healthz", get(probes::healthz))
        .route("/readyz", get(probes::readyz))
        .route("/metrics", get(probes::metrics))
        .route("/openapi.json", get(openapi::get))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .with_state(HttpState::new(service, connections))
}

/// Makes a WebSocket of the connection of a request.
async fn upgrade(State(state): State<HttpState>, request: Request) -> Response {
    websocket::upgrade(&state.service, &state.websockets, request).unwrap_or_else(|failure| reject(&failure))
}

fn calls() -> Router<HttpState> {
    Router::new()
        .route("/v1/graphs", get(graphs::list))
        .route("/v1/graphs/{graph}", get(graphs::info).put(changes::create))
        .route("/v1/graphs/{graph}/changes", post(changes::apply))
        .route("/v1/graphs/{graph}/refresh", post(graphs::refresh))
        .route("/v1/graphs/{graph}/look-up", post(graphs::look_up))
        .route("/v1/graphs/{graph}/neighbors", post(graphs::neighbors))
        .route("/v1/graphs/{graph}/properties", post(graphs::properties))
        .route("/v1/graphs/{graph}/scan", post(graphs::scan))
        .route("/v1/graphs/{graph}/traverse", post(graphs::traverse))
        .route("/v1/graphs/{graph}/paths", post(graphs::paths))
        .route("/v1/graphs/{graph}/shortest-path", post(graphs::shortest_path))
        .route("/v1/graphs/{graph}/traversals", post(traversals::open))
        .route("/v1/graphs/{graph}/gremlin", post(queries::gremlin))
        .route("/v1/graphs/{graph}/queries", get(queries::list))
        .route("/v1/graphs/{graph}/queries/{query}", post(queries::call).put(queries::save).delete(queries::delete))
        .route("/v1/graphs/{graph}/jobs", post(jobs::start))
        .route("/v1/jobs", get(jobs::list))
        .route("/v1/jobs/{job}", get(jobs::get).delete(jobs::cancel))
        .route("/v1/jobs/{job}/result", get(jobs::result))
        .route("/v1/traversals/{traversal}/neighbors", post(traversals::next_neighbors))
        .route("/v1/traversals/{traversal}", delete(traversals::close))
}

/// The response to a request that no handler accepted.
pub(crate) fn reject(failure: &Failure) -> Response {
    problem::response(failure, None)
}

/// A problem like any other: without it, axum answers with an empty body.
async fn no_such_path() -> Response {
    let message = "there is nothing here; /openapi.json lists what there is";
    problem::response(&Failure::new(Reason::NotFound, message), None)
}

/// Axum adds `Allow`, which a 405 must have (RFC 9110, 15.5.6).
async fn no_such_method() -> Response {
    let message = "method not allowed here; /openapi.json lists the methods";
    problem::response(&Failure::new(Reason::Method, message), None)
}
