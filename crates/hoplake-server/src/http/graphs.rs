//! Queries, each in one call. The examples are on the air routes of `hoplake quickstart`.

use axum::{extract::Path, response::Response};
use tracing::Instrument;

use super::{
    answers::{
        GraphAnswer, GraphName, LookUpAnswer, NeighborsAnswer, PathsAnswer, PropertiesAnswer, RefreshAnswer,
        ShortestPathAnswer, TraverseAnswer, path,
    },
    exchange::{Exchange, JsonBody, respond},
    problem::Problem,
    requests::{
        LookUpBody, NeighborsBody, OutputBody, PathsBody, PropertiesBody, ShortestPathBody, TraverseBody, vertices,
    },
};
use crate::calls::{self, Call, GraphRef, PathStream};
use crate::failure::Failure;

fn graph_ref(name: String, version: u64) -> GraphRef {
    GraphRef { name, version }
}

/// Graphs that are open, or have a name of their own. Those below a prefix are found when they are asked for.
#[utoipa::path(
    get, path = "/v1/graphs", tag = "graphs",
    responses((status = 200, body = Vec<GraphName>), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn list(exchange: Exchange) -> Response {
    let mut call = exchange.begin("ListGraphs");
    let names = call.check_token().map(|()| {
        let names = call.service.catalog.names().into_iter();
        names.map(|(name, open)| GraphName { name, open }).collect::<Vec<_>>()
    });
    respond(&mut call, names)
}

/// Schema, counts and sizes of the newest version.
#[utoipa::path(
    get, path = "/v1/graphs/{graph}", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    responses((status = 200, body = GraphAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn info(exchange: Exchange, Path(graph): Path<String>) -> Response {
    let mut call = exchange.begin("GetGraph");
    let span = call.span.clone();
    let answer = calls::info(&mut call, &graph_ref(graph, 0)).instrument(span).await.map(GraphAnswer::from);
    respond(&mut call, answer)
}

/// Moves the server on to the newest version: what was published before is in it. Without, it looks for newer versions at
/// an interval of its own, while there are requests.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/refresh", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    responses((status = 200, body = RefreshAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn refresh(exchange: Exchange, Path(graph): Path<String>) -> Response {
    let mut call = exchange.begin("Refresh");
    let span = call.span.clone();
    let answer = calls::refresh(&mut call, &graph).instrument(span).await.map(|version| RefreshAnswer { version });
    respond(&mut call, answer)
}

/// The ids of some vertices.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/look-up", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    request_body(content = LookUpBody, example = json!({"vertices": ["airport:65", {"label": "airport", "key": 81}]})),
    responses((status = 200, body = LookUpAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn look_up(exchange: Exchange, Path(graph): Path<String>, body: JsonBody) -> Response {
    let mut call = exchange.begin("LookUp");
    let span = call.span.clone();
    let answer = async {
        let body: LookUpBody = body.read()?;
        let names = vertices(body.vertices)?;
        let (found, version) = calls::look_up(&mut call, &graph_ref(graph, body.version), &names).await?;
        Ok(LookUpAnswer::of(&found, version, call.spent))
    };
    let answer = answer.instrument(span).await;
    respond(&mut call, answer)
}

/// The edges of a hop from some vertices.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/neighbors", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    request_body(
        content = NeighborsBody,
        example = json!({"vertices": ["airport:65"], "hop": "out:route[dist<400]", "keys": true})
    ),
    responses((status = 200, body = NeighborsAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn neighbors(exchange: Exchange, Path(graph): Path<String>, body: JsonBody) -> Response {
    let mut call = exchange.begin("Neighbors");
    let span = call.span.clone();
    let answer = async {
        let body: NeighborsBody = body.read()?;
        let graph = graph_ref(graph, body.version);
        Ok(NeighborsAnswer::of(&calls::neighbors(&mut call, &graph, &body.try_into()?).await?))
    };
    let answer = answer.instrument(span).await;
    respond(&mut call, answer)
}

/// Keys and properties of some vertices.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/properties", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    request_body(content = PropertiesBody, example = json!({"vertices": ["airport:65", "airport:81"], "select": ["code", "city"]})),
    responses((status = 200, body = PropertiesAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn properties(exchange: Exchange, Path(graph): Path<String>, body: JsonBody) -> Response {
    let mut call = exchange.begin("Properties");
    let span = call.span.clone();
    let answer = async {
        let body: PropertiesBody = body.read()?;
        let graph = graph_ref(graph, body.version);
        let (rows, version) = calls::properties(&mut call, &graph, &body.try_into()?).await?;
        PropertiesAnswer::of(&rows, version, call.spent)
    };
    let answer = answer.instrument(span).await;
    respond(&mut call, answer)
}

/// A whole traversal.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/traverse", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    request_body(
        content = TraverseBody,
        example = json!({
            "starts": ["airport:65"], "hops": ["out:route", {"direction": "out", "labels": ["route"]}],
            "visit": "global", "select": ["code", "city"], "limit": 3, "limits": {"time_ms": 5000}
        })
    ),
    responses((status = 200, body = TraverseAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn traverse(exchange: Exchange, Path(graph): Path<String>, body: JsonBody) -> Response {
    let mut call = exchange.begin("Traverse");
    let span = call.span.clone();
    let answer = async {
        let body: TraverseBody = body.read()?;
        let (graph, output) = (graph_ref(graph, body.version), OutputBody::of(&body));
        TraverseAnswer::of(calls::traverse(&mut call, &graph, &body.try_into()?).await?, output)
    };
    let answer = answer.instrument(span).await;
    respond(&mut call, answer)
}

/// The walks of a traversal, one by one.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/paths", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    request_body(
        content = PathsBody,
        example = json!({"starts": ["airport:65"], "hops": ["out:route", "out:route"], "limit": 5, "keys": true})
    ),
    responses((status = 200, body = PathsAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn paths(exchange: Exchange, Path(graph): Path<String>, body: JsonBody) -> Response {
    let mut call = exchange.begin("Paths");
    let span = call.span.clone();
    let answer = async {
        let body: PathsBody = body.read()?;
        let graph = graph_ref(graph, body.version);
        let paths = calls::paths(&mut call, &graph, &body.try_into()?).await?;
        all_paths(&mut call, paths).await
    };
    let answer = answer.instrument(span).await;
    respond(&mut call, answer)
}

async fn all_paths(call: &mut Call, mut paths: PathStream) -> Result<PathsAnswer, Failure> {
    let (mut all, mut statistics) = (Vec::new(), None);
    while let Some((walks, last)) = paths.next(call).await? {
        all.extend(walks.into_iter().map(path));
        statistics = last;
    }
    let statistics = statistics.expect("statistics come beside the last walks").into();
    Ok(PathsAnswer { paths: all, statistics })
}

/// A shortest path by number of edges.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/shortest-path", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    request_body(
        content = ShortestPathBody,
        example = json!({"from": "airport:65", "to": "airport:81", "hop": "out:route", "keys": true})
    ),
    responses((status = 200, body = ShortestPathAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn shortest_path(exchange: Exchange, Path(graph): Path<String>, body: JsonBody) -> Response {
    let mut call = exchange.begin("ShortestPath");
    let span = call.span.clone();
    let answer = async {
        let body: ShortestPathBody = body.read()?;
        let graph = graph_ref(graph, body.version);
        let found = calls::shortest_path(&mut call, &graph, &body.try_into()?).await?;
        Ok(ShortestPathAnswer { path: found.path.map(path), version: found.version, cost: call.spent })
    };
    let answer = answer.instrument(span).await;
    respond(&mut call, answer)
}
