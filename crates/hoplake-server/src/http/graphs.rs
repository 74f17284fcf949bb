//! Queries, each in one call. The examples are on the air routes of `hoplake quickstart`.

use axum::{extract::Path, response::Response};
use futures::FutureExt;

use super::{
    answers::{
        GraphAnswer, GraphName, LookUpAnswer, NeighborsAnswer, PropertiesAnswer, RefreshAnswer, ScanAnswer,
        TraverseAnswer,
    },
    handler::{HttpRequest, RequestBody},
    paths::{PathsAnswer, ShortestPathAnswer, path},
    problem::Problem,
    requests::{
        LookUpBody, NeighborsBody, OutputBody, PathsBody, PropertiesBody, ScanBody, ShortestPathBody, TraverseBody,
        vertices,
    },
    writer::stream,
};
use crate::calls::{self, Call, GraphRef, Neighbors, NeighborsRequest, PathsRequest, ScanRequest};

fn graph_ref(name: String, version: u64) -> GraphRef {
    GraphRef { name, version }
}

/// Graphs that are open, or have a name of their own. Those below a prefix are found when a request names them.
#[utoipa::path(
    get, path = "/v1/graphs", tag = "graphs",
    responses((status = 200, body = Vec<GraphName>), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn list(request: HttpRequest) -> Response {
    let work = async |call: &mut Call| {
        call.check_token()?;
        // Names in memory: no permit, and no request to a store, which is never listed.
        let names = call.service.catalog.names().into_iter();
        Ok(names.map(|(name, open)| GraphName { name, open }).collect::<Vec<_>>())
    };
    request.answer("ListGraphs", work).await
}

/// Schema, counts and sizes of the newest version.
#[utoipa::path(
    get, path = "/v1/graphs/{graph}", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    responses((status = 200, body = GraphAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn info(request: HttpRequest, Path(graph): Path<String>) -> Response {
    let work = async |call: &mut Call| calls::info(call, &graph_ref(graph, 0)).await.map(GraphAnswer::from);
    request.answer("GetGraph", work).await
}

/// Moves the server on to the newest version: what was published before is in it. Without, it looks for newer versions
/// at an interval of its own, while there are requests.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/refresh", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    responses((status = 200, body = RefreshAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn refresh(request: HttpRequest, Path(graph): Path<String>) -> Response {
    let work = async |call: &mut Call| calls::refresh(call, &graph).await.map(|version| RefreshAnswer { version });
    request.answer("Refresh", work).await
}

/// The ids of some vertices.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/look-up", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    request_body(content = LookUpBody, example = json!({"vertices": ["airport:65", {"label": "airport", "key": 81}]})),
    responses((status = 200, body = LookUpAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn look_up(request: HttpRequest, Path(graph): Path<String>, body: RequestBody) -> Response {
    let work = async |call: &mut Call| {
        let body: LookUpBody = body.read(call).await?;
        let names = vertices(body.vertices)?;
        let (found, version) = calls::look_up(call, &graph_ref(graph, body.version), &names).await?;
        Ok(LookUpAnswer::of(&found, version, call.cost))
    };
    request.answer("LookUp", work).await
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
pub(super) async fn neighbors(request: HttpRequest, Path(graph): Path<String>, body: RequestBody) -> Response {
    stream(request, "Neighbors", "edges", |call, writer| {
        async move {
            let body: NeighborsBody = body.read(call).await?;
            let graph = graph_ref(graph, body.version);
            let requested = NeighborsRequest::try_from(body)?;
            if requested.count {
                writer.without_list()?;
            }
            let Neighbors { version, count } = calls::neighbors(call, &graph, &requested, writer).await?;
            Ok(NeighborsAnswer { edges: writer.list.map(|_| Vec::new()), count, version, cost: call.cost })
        }
        .boxed()
    })
    .await
}

/// Keys and properties of some vertices.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/properties", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    request_body(content = PropertiesBody, example = json!({"vertices": ["airport:65", "airport:81"], "select": ["code", "city"]})),
    responses((status = 200, body = PropertiesAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn properties(request: HttpRequest, Path(graph): Path<String>, body: RequestBody) -> Response {
    stream(request, "Properties", "rows", |call, writer| {
        async move {
            let body: PropertiesBody = body.read(call).await?;
            let graph = graph_ref(graph, body.version);
            let version = calls::properties(call, &graph, &body.try_into()?, writer).await?;
            Ok(PropertiesAnswer { rows: Vec::new(), version, cost: call.cost })
        }
        .boxed()
    })
    .await
}

/// The vertices of labels that match a condition.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/scan", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    request_body(
        content = ScanBody,
        example = json!({
            "labels": ["airport"], "condition": "country = US and runways >= 6", "select": ["code", "elev"],
            "order_by": ["elev desc"], "limit": 3
        })
    ),
    responses((status = 200, body = ScanAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn scan(request: HttpRequest, Path(graph): Path<String>, body: RequestBody) -> Response {
    stream(request, "Scan", "rows", |call, writer| {
        async move {
            let body: ScanBody = body.read(call).await?;
            let graph = graph_ref(graph, body.version);
            let requested = ScanRequest::try_from(body)?;
            if requested.count {
                writer.without_list()?;
            }
            let found = calls::scan(call, &graph, &requested, writer).await?;
            Ok(ScanAnswer::of(found, requested.count, call.cost))
        }
        .boxed()
    })
    .await
}

/// A complete traversal.
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
pub(super) async fn traverse(request: HttpRequest, Path(graph): Path<String>, body: RequestBody) -> Response {
    stream(request, "Traverse", "rows", |call, writer| {
        async move {
            let body: TraverseBody = body.read(call).await?;
            let graph = graph_ref(graph, body.version);
            let output = body.output;
            // The name of the list is in the body, which is read only within the call.
            match output {
                OutputBody::Rows => {}
                OutputBody::Ids => writer.list = Some("vertices"),
                OutputBody::Nothing | OutputBody::Count => writer.without_list()?,
            }
            Ok(TraverseAnswer::of(calls::traverse(call, &graph, &body.try_into()?, writer).await?, output))
        }
        .boxed()
    })
    .await
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
pub(super) async fn paths(request: HttpRequest, Path(graph): Path<String>, body: RequestBody) -> Response {
    stream(request, "Paths", "paths", |call, writer| {
        async move {
            let body: PathsBody = body.read(call).await?;
            let graph = graph_ref(graph, body.version);
            let requested = PathsRequest::try_from(body)?;
            if requested.count {
                writer.without_list()?;
                let counted = calls::count_walks(call, &graph, &requested).await?;
                return Ok(PathsAnswer { paths: None, count: counted.count, statistics: counted.into() });
            }
            let statistics = calls::paths(call, &graph, &requested, writer).await?.into();
            Ok(PathsAnswer { paths: Some(Vec::new()), count: None, statistics })
        }
        .boxed()
    })
    .await
}

/// A shortest path, by number of edges or by a property of them.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/shortest-path", tag = "graphs", params(("graph" = String, Path, example = "air-routes")),
    request_body(
        content = ShortestPathBody,
        example = json!({"from": "airport:65", "to": "airport:81", "hop": "out:route", "keys": true})
    ),
    responses((status = 200, body = ShortestPathAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn shortest_path(request: HttpRequest, Path(graph): Path<String>, body: RequestBody) -> Response {
    let work = async |call: &mut Call| {
        let body: ShortestPathBody = body.read(call).await?;
        let graph = graph_ref(graph, body.version);
        let found = calls::shortest_path(call, &graph, &body.try_into()?).await?;
        Ok(ShortestPathAnswer {
            path: found.path.as_ref().map(path).transpose()?,
            length: found.length,
            version: found.version,
            cost: call.cost,
        })
    };
    request.answer("ShortestPath", work).await
}
