//! The OpenAPI document, made from the types and the handlers.

use std::sync::LazyLock;

use axum::{
    body::Bytes,
    http::header,
    response::{IntoResponse, Response},
};
use utoipa::{
    Modify, OpenApi,
    openapi::security::{Http, HttpAuthScheme, SecurityScheme},
};

use super::{changes, graphs, jobs, probes, queries, traversals};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Hoplake",
        description = "Graphs that live in object storage. Ids hold within one version of a graph. Failures are problem \
                       documents (RFC 9457) with a `reason`, and with the cost of the query until then. Neighbors, properties, scans, traversals, \
                       paths and results of jobs are also available as JSON Lines (`Accept: application/x-ndjson`: a line for each item, then one with the \
                       rest) or as an Arrow stream (`application/vnd.apache.arrow.stream`: the items alone). If such an answer \
                       fails after its first piece, JSON Lines end with a line `problem`; the other forms break off. Status 429 has `Retry-After`, and \
                       the same request may succeed then; 413 and 422 are permanent.",
    ),
    paths(
        graphs::list, graphs::info, graphs::refresh, graphs::look_up, graphs::neighbors, graphs::properties, graphs::scan, graphs::traverse,
        graphs::paths, graphs::shortest_path, traversals::open, traversals::next_neighbors, traversals::close,
        queries::gremlin, queries::list, queries::call, queries::save, queries::delete,
        changes::apply, changes::create,
        jobs::start, jobs::list, jobs::get, jobs::cancel, jobs::result,
        probes::healthz, probes::readyz, probes::metrics, get,
    ),
    tags(
        (name = "graphs", description = "Queries, each in one call"),
        (name = "gremlin", description = "Queries of Gremlin, by text and by the names under which a graph keeps them"),
        (name = "changes", description = "Batches of changes, if the server takes them"),
        (name = "traversals", description = "Traversals that the client steers; they live in one server"),
        (name = "jobs", description = "Computations over a whole graph; they live in one server"),
        (name = "operations", description = "Without a token"),
    ),
    modifiers(&Token),
)]
struct Document;

/// A server may want a token.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        // Declared, but required of no operation: the document is the same with and without a token.
        components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "operations", responses((status = 200, description = "OpenAPI 3.", body = Object)))]
pub(super) async fn get() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document_json()).into_response()
}

/// The document, as it is sent. Making it takes milliseconds, so that is done once.
fn document_json() -> Bytes {
    static JSON: LazyLock<Bytes> =
        LazyLock::new(|| serde_json::to_vec(&Document::openapi()).expect("the document is plain data").into());
    JSON.clone()
}
