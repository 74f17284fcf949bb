//! The service Graphs.

use futures::FutureExt;
use prost::Message;

use super::{
    queries::{call_query, delete_query, gremlin, list_queries, save_query},
    receive,
    service::{methods, within},
    writer::{Writer, stream},
};
use crate::{
    calls::{self, Call, Neighbors, PathsRequest, raw_id},
    failure::Failure,
    v1::{self, graphs_server::Graphs, traverse_response::Kind},
};

methods! { Graphs {
    "GetGraph": get_graph(GetGraphRequest) -> GetGraphResponse;
    "Refresh": refresh(RefreshRequest) -> RefreshResponse;
    "LookUp": look_up(LookUpRequest) -> LookUpResponse;
    "ShortestPath": shortest_path(ShortestPathRequest) -> ShortestPathResponse;
    "ListQueries": list_queries(ListQueriesRequest) -> ListQueriesResponse;
    "SaveQuery": save_query(SaveQueryRequest) -> SaveQueryResponse;
    "DeleteQuery": delete_query(DeleteQueryRequest) -> DeleteQueryResponse;
    "Apply": apply(ApplyRequest) -> ApplyResponse;
    "CreateGraph": create_graph(CreateGraphRequest) -> CreateGraphResponse;
    "OpenTraversal": open_traversal(OpenTraversalRequest) -> OpenTraversalResponse;
    "CloseTraversal": close_traversal(CloseTraversalRequest) -> CloseTraversalResponse;
    stream "Neighbors": neighbors(NeighborsRequest) -> NeighborsResponse as NeighborsStream;
    stream "Properties": properties(PropertiesRequest) -> PropertiesResponse as PropertiesStream;
    stream "Scan": scan(ScanRequest) -> ScanResponse as ScanStream;
    stream "Traverse": traverse(TraverseRequest) -> TraverseResponse as TraverseStream;
    stream "Paths": paths(PathsRequest) -> PathsResponse as PathsStream;
    stream "Gremlin": gremlin(GremlinRequest) -> GremlinResponse as GremlinStream;
    stream "CallQuery": call_query(CallQueryRequest) -> GremlinResponse as CallQueryStream;
    stream "NextNeighbors": next_neighbors(NextNeighborsRequest) -> NeighborsResponse as NextNeighborsStream;
} }

async fn get_graph(call: &mut Call, request: v1::GetGraphRequest) -> Result<v1::GetGraphResponse, Failure> {
    Ok(calls::info(call, &receive::graph(request.graph)?).await?.into())
}

async fn refresh(call: &mut Call, request: v1::RefreshRequest) -> Result<v1::RefreshResponse, Failure> {
    Ok(v1::RefreshResponse { version: calls::refresh(call, &request.graph).await? })
}

async fn look_up(call: &mut Call, request: v1::LookUpRequest) -> Result<v1::LookUpResponse, Failure> {
    let graph = receive::graph(request.graph)?;
    let (found, version) = calls::look_up(call, &graph, &receive::vertices(request.vertices)?).await?;
    let found = found.into_iter().map(|vertex| v1::look_up_response::Found { id: vertex.map(raw_id) }).collect();
    Ok(v1::LookUpResponse { found, cost: Some(call.cost.into()), version })
}

async fn neighbors(
    call: &mut Call,
    request: v1::NeighborsRequest,
    writer: &mut Writer<v1::NeighborsResponse>,
) -> Result<(), Failure> {
    let graph = receive::graph(request.graph.clone())?;
    let Neighbors { version, count } = calls::neighbors(call, &graph, &request.try_into()?, writer).await?;
    writer.end_neighbors(version, call.cost);
    writer.last().count = count;
    Ok(())
}

async fn properties(
    call: &mut Call,
    request: v1::PropertiesRequest,
    writer: &mut Writer<v1::PropertiesResponse>,
) -> Result<(), Failure> {
    let graph = receive::graph(request.graph.clone())?;
    writer.format = receive::format(request.format)?;
    let version = calls::properties(call, &graph, &request.try_into()?, writer).await?;
    let last = writer.last();
    last.cost = Some(call.cost.into());
    last.version = version;
    Ok(())
}

async fn scan(call: &mut Call, request: v1::ScanRequest, writer: &mut Writer<v1::ScanResponse>) -> Result<(), Failure> {
    let graph = receive::graph(request.graph.clone())?;
    writer.format = receive::format(request.format)?;
    let found = calls::scan(call, &graph, &request.try_into()?, writer).await?;
    let last = writer.last();
    last.cost = Some(call.cost.into());
    last.version = found.version;
    last.vertices = found.vertices;
    last.truncated = found.truncated;
    Ok(())
}

async fn traverse(
    call: &mut Call,
    request: v1::TraverseRequest,
    writer: &mut Writer<v1::TraverseResponse>,
) -> Result<(), Failure> {
    let graph = receive::graph(request.graph.clone())?;
    writer.format = receive::format(request.format)?;
    let statistics = calls::traverse(call, &graph, &request.try_into()?, writer).await?;
    // A message of its own: `kind` is rows, ids or statistics, never two of them.
    writer.add(v1::TraverseResponse { kind: Some(Kind::Statistics(statistics.into())) }).await
}

async fn paths(
    call: &mut Call,
    request: v1::PathsRequest,
    writer: &mut Writer<v1::PathsResponse>,
) -> Result<(), Failure> {
    let graph = receive::graph(request.graph.clone())?;
    let requested = PathsRequest::try_from(request)?;
    let statistics = match requested.count {
        true => calls::count_walks(call, &graph, &requested).await?,
        false => calls::paths(call, &graph, &requested, writer).await?,
    };
    writer.last().statistics = Some(statistics.into());
    Ok(())
}

async fn shortest_path(call: &mut Call, request: v1::ShortestPathRequest) -> Result<v1::ShortestPathResponse, Failure> {
    let graph = receive::graph(request.graph.clone())?;
    let found = calls::shortest_path(call, &graph, &request.try_into()?).await?;
    let path = found.path.as_ref().map(super::send::path).transpose()?;
    let version = found.version;
    let length = found.length;
    Ok(v1::ShortestPathResponse { path, cost: Some(call.cost.into()), version, length })
}

async fn apply(call: &mut Call, request: v1::ApplyRequest) -> Result<v1::ApplyResponse, Failure> {
    // The changes are bytes still, and counted by who reads them; a batch may wait long for its turn.
    call.exchange.release_copied(request.changes.len(), request.encoded_len() - request.changes.len());
    Ok(calls::apply(call, request.try_into()?).await?.into())
}

async fn open_traversal(
    call: &mut Call,
    request: v1::OpenTraversalRequest,
) -> Result<v1::OpenTraversalResponse, Failure> {
    let opened = calls::open(call, &receive::graph(request.graph)?, &request.limits.into()).await?;
    Ok(v1::OpenTraversalResponse { traversal: opened.id, version: opened.version, idle_ms: opened.idle_ms })
}

async fn next_neighbors(
    call: &mut Call,
    request: v1::NextNeighborsRequest,
    writer: &mut Writer<v1::NeighborsResponse>,
) -> Result<(), Failure> {
    let version = calls::next_neighbors(call, &request.try_into()?, writer).await?;
    writer.end_neighbors(version, call.cost);
    Ok(())
}

async fn close_traversal(
    call: &mut Call,
    request: v1::CloseTraversalRequest,
) -> Result<v1::CloseTraversalResponse, Failure> {
    let closed = calls::close(call, &request.traversal).await?;
    Ok(v1::CloseTraversalResponse { cost: Some(closed.cost.into()), vertices: closed.vertices })
}

async fn create_graph(call: &mut Call, request: v1::CreateGraphRequest) -> Result<v1::CreateGraphResponse, Failure> {
    Ok(calls::create(call, &request.graph).await?.into())
}
