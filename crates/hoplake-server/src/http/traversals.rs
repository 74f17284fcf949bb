//! Traversals that the client steers: open, next neighbours, close.

use axum::{extract::Path, response::Response};
use futures::FutureExt;

use super::{
    answers::{CloseAnswer, NeighborsAnswer, OpenAnswer},
    handler::{HttpRequest, RequestBody},
    problem::Problem,
    requests::{NextBody, OpenBody},
    writer::stream,
};
use crate::calls::{self, Call, GraphRef};

/// Opens a cursor: it pins the version of the graph and has one cost meter and its limits.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/traversals", tag = "traversals",
    params(("graph" = String, Path, example = "air-routes")),
    request_body(content = OpenBody, example = json!({"limits": {"requests_max": 1000}})),
    responses((status = 200, body = OpenAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn open(request: HttpRequest, Path(graph): Path<String>, body: RequestBody) -> Response {
    let work = async |call: &mut Call| {
        let OpenBody { version, limits } = body.read(call).await?;
        let graph = GraphRef { name: graph, version };
        let opened = calls::open(call, &graph, &limits.into()).await?;
        Ok(OpenAnswer { traversal: opened.id, version: opened.version, idle_ms: opened.idle_ms })
    };
    request.answer("OpenTraversal", work).await
}

/// The edges of a hop from the vertices that the client wants to go on from.
#[utoipa::path(
    post, path = "/v1/traversals/{traversal}/neighbors", tag = "traversals",
    params(("traversal" = String, Path, description = "The id from the answer that opened it")),
    request_body(content = NextBody, example = json!({"vertices": ["airport:65"], "hop": "out:route"})),
    responses((status = 200, body = NeighborsAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn next_neighbors(request: HttpRequest, Path(id): Path<String>, body: RequestBody) -> Response {
    stream(request, "NextNeighbors", "edges", |call, writer| {
        async move {
            // The body before the traversal: whether an id exists is not for clients without a token.
            let step = body.read::<NextBody>(call).await?.step_of(id)?;
            let version = calls::next_neighbors(call, &step, writer).await?;
            Ok(NeighborsAnswer { edges: Some(Vec::new()), count: None, version, cost: call.cost })
        }
        .boxed()
    })
    .await
}

/// Closes it, and returns its total cost.
#[utoipa::path(
    delete, path = "/v1/traversals/{traversal}", tag = "traversals",
    params(("traversal" = String, Path, description = "The id from the answer that opened it")),
    responses((status = 200, body = CloseAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn close(request: HttpRequest, Path(id): Path<String>) -> Response {
    let work = async |call: &mut Call| {
        let closed = calls::close(call, &id).await?;
        Ok(CloseAnswer { vertices: closed.vertices, cost: closed.cost })
    };
    request.answer("CloseTraversal", work).await
}
