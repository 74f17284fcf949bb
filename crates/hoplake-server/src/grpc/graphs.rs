//! The service Graphs.

use futures::FutureExt;
use prost::Message;
use tonic::{Request, Response, Status};

use super::{
    Grpc, Messages, queries, receive, within,
    writer::{Writer, stream},
};
use crate::{
    calls::{self, Call, Neighbors, PathsRequest, raw_id},
    failure::Failure,
    v1::{self, graphs_server::Graphs, traverse_response::Kind},
};

#[tonic::async_trait]
impl Graphs for Grpc {
    async fn get_graph(&self, request: Request<v1::GetGraphRequest>) -> Result<Response<v1::GetGraphResponse>, Status> {
        let (mut call, request) = self.begin("GetGraph", request);
        within!(call, get_graph(&mut call, request).await)
    }

    async fn refresh(&self, request: Request<v1::RefreshRequest>) -> Result<Response<v1::RefreshResponse>, Status> {
        let (mut call, request) = self.begin("Refresh", request);
        within!(call, refresh(&mut call, &request.graph).await)
    }

    async fn look_up(&self, request: Request<v1::LookUpRequest>) -> Result<Response<v1::LookUpResponse>, Status> {
        let (mut call, request) = self.begin("LookUp", request);
        within!(call, look_up(&mut call, request).await)
    }

    type NeighborsStream = Messages<v1::NeighborsResponse>;

    async fn neighbors(
        &self,
        request: Request<v1::NeighborsRequest>,
    ) -> Result<Response<Self::NeighborsStream>, Status> {
        let (call, request) = self.begin("Neighbors", request);
        stream(call, |call, parts| neighbors(call, request, parts).boxed()).await
    }

    type PropertiesStream = Messages<v1::PropertiesResponse>;

    async fn properties(
        &self,
        request: Request<v1::PropertiesRequest>,
    ) -> Result<Response<Self::PropertiesStream>, Status> {
        let (call, request) = self.begin("Properties", request);
        stream(call, |call, parts| properties(call, request, parts).boxed()).await
    }

    type ScanStream = Messages<v1::ScanResponse>;

    async fn scan(&self, request: Request<v1::ScanRequest>) -> Result<Response<Self::ScanStream>, Status> {
        let (call, request) = self.begin("Scan", request);
        stream(call, |call, parts| scan(call, request, parts).boxed()).await
    }

    type TraverseStream = Messages<v1::TraverseResponse>;

    async fn traverse(&self, request: Request<v1::TraverseRequest>) -> Result<Response<Self::TraverseStream>, Status> {
        let (call, request) = self.begin("Traverse", request);
        stream(call, |call, parts| traverse(call, request, parts).boxed()).await
    }

    type PathsStream = Messages<v1::PathsResponse>;

    async fn paths(&self, request: Request<v1::PathsRequest>) -> Result<Response<Self::PathsStream>, Status> {
        let (call, request) = self.begin("Paths", request);
        stream(call, |call, parts| paths(call, request, parts).boxed()).await
    }

    async fn shortest_path(
        &self,
        request: Request<v1::ShortestPathRequest>,
    ) -> Result<Response<v1::ShortestPathResponse>, Status> {
        let (mut call, request) = self.begin("ShortestPath", request);
        within!(call, shortest_path(&mut call, request).await)
    }

    type GremlinStream = Messages<v1::GremlinResponse>;

    async fn gremlin(&self, request: Request<v1::GremlinRequest>) -> Result<Response<Self::GremlinStream>, Status> {
        let (call, request) = self.begin("Gremlin", request);
        stream(call, |call, parts| queries::gremlin(call, request, parts).boxed()).await
    }

    type CallQueryStream = Messages<v1::GremlinResponse>;

    async fn call_query(
        &self,
        request: Request<v1::CallQueryRequest>,
    ) -> Result<Response<Self::CallQueryStream>, Status> {
        let (call, request) = self.begin("CallQuery", request);
        stream(call, |call, parts| queries::call(call, request, parts).boxed()).await
    }

    async fn list_queries(
        &self,
        request: Request<v1::ListQueriesRequest>,
    ) -> Result<Response<v1::ListQueriesResponse>, Status> {
        let (mut call, request) = self.begin("ListQueries", request);
        within!(call, queries::list(&mut call, request).await)
    }

    async fn save_query(
        &self,
        request: Request<v1::SaveQueryRequest>,
    ) -> Result<Response<v1::SaveQueryResponse>, Status> {
        let (mut call, request) = self.begin("SaveQuery", request);
        within!(call, queries::save(&mut call, request).await)
    }

    async fn delete_query(
        &self,
        request: Request<v1::DeleteQueryRequest>,
    ) -> Result<Response<v1::DeleteQueryResponse>, Status> {
        let (mut call, request) = self.begin("DeleteQuery", request);
        within!(call, queries::delete(&mut call, &request).await)
    }

    async fn apply(&self, request: Request<v1::ApplyRequest>) -> Result<Response<v1::ApplyResponse>, Status> {
        let (mut call, request) = self.begin("Apply", request);
        within!(call, apply(&mut call, request).await)
    }

    async fn create_graph(
        &self,
        request: Request<v1::CreateGraphRequest>,
    ) -> Result<Response<v1::CreateGraphResponse>, Status> {
        let (mut call, request) = self.begin("CreateGraph", request);
        within!(call, calls::create(&mut call, &request.graph).await.map(Into::into))
    }

    async fn open_traversal(
        &self,
        request: Request<v1::OpenTraversalRequest>,
    ) -> Result<Response<v1::OpenTraversalResponse>, Status> {
        let (mut call, request) = self.begin("OpenTraversal", request);
        within!(call, open_traversal(&mut call, request).await)
    }

    type NextNeighborsStream = Messages<v1::NeighborsResponse>;

    async fn next_neighbors(
        &self,
        request: Request<v1::NextNeighborsRequest>,
    ) -> Result<Response<Self::NextNeighborsStream>, Status> {
        let (call, request) = self.begin("NextNeighbors", request);
        stream(call, |call, parts| next_neighbors(call, request, parts).boxed()).await
    }

    async fn close_traversal(
        &self,
        request: Request<v1::CloseTraversalRequest>,
    ) -> Result<Response<v1::CloseTraversalResponse>, Status> {
        let (mut call, request) = self.begin("CloseTraversal", request);
        within!(call, close_traversal(&mut call, &request.traversal).await)
    }
}

async fn get_graph(call: &mut Call, request: v1::GetGraphRequest) -> Result<v1::GetGraphResponse, Failure> {
    Ok(calls::info(call, &receive::graph(request.graph)?).await?.into())
}

async fn refresh(call: &mut Call, graph: &str) -> Result<v1::RefreshResponse, Failure> {
    Ok(v1::RefreshResponse { version: calls::refresh(call, graph).await? })
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
    parts: &mut Writer<v1::NeighborsResponse>,
) -> Result<(), Failure> {
    let graph = receive::graph(request.graph.clone())?;
    let Neighbors { version, count } = calls::neighbors(call, &graph, &request.try_into()?, parts).await?;
    parts.end_neighbors(version, call.cost);
    parts.last().count = count;
    Ok(())
}

async fn properties(
    call: &mut Call,
    request: v1::PropertiesRequest,
    parts: &mut Writer<v1::PropertiesResponse>,
) -> Result<(), Failure> {
    let graph = receive::graph(request.graph.clone())?;
    parts.format = receive::format(request.format)?;
    let version = calls::properties(call, &graph, &request.try_into()?, parts).await?;
    let last = parts.last();
    last.cost = Some(call.cost.into());
    last.version = version;
    Ok(())
}

async fn scan(call: &mut Call, request: v1::ScanRequest, parts: &mut Writer<v1::ScanResponse>) -> Result<(), Failure> {
    let graph = receive::graph(request.graph.clone())?;
    parts.format = receive::format(request.format)?;
    let found = calls::scan(call, &graph, &request.try_into()?, parts).await?;
    let last = parts.last();
    last.cost = Some(call.cost.into());
    last.version = found.version;
    last.vertices = found.vertices;
    last.truncated = found.truncated;
    Ok(())
}

async fn traverse(
    call: &mut Call,
    request: v1::TraverseRequest,
    parts: &mut Writer<v1::TraverseResponse>,
) -> Result<(), Failure> {
    let graph = receive::graph(request.graph.clone())?;
    parts.format = receive::format(request.format)?;
    let statistics = calls::traverse(call, &graph, &request.try_into()?, parts).await?;
    // A message of its own: `kind` is rows, ids or statistics, never two of them.
    parts.add(v1::TraverseResponse { kind: Some(Kind::Statistics(statistics.into())) }).await
}

async fn paths(
    call: &mut Call,
    request: v1::PathsRequest,
    parts: &mut Writer<v1::PathsResponse>,
) -> Result<(), Failure> {
    let graph = receive::graph(request.graph.clone())?;
    let asked = PathsRequest::try_from(request)?;
    let statistics = match asked.count {
        true => calls::count_walks(call, &graph, &asked).await?,
        false => calls::paths(call, &graph, &asked, parts).await?,
    };
    parts.last().statistics = Some(statistics.into());
    Ok(())
}

async fn shortest_path(call: &mut Call, request: v1::ShortestPathRequest) -> Result<v1::ShortestPathResponse, Failure> {
    let graph = receive::graph(request.graph.clone())?;
    let found = calls::shortest_path(call, &graph, &request.try_into()?).await?;
    let path = found.path.as_ref().map(super::send::path).transpose()?;
    let version = found.version;
    Ok(v1::ShortestPathResponse { path, cost: Some(call.cost.into()), version })
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
    parts: &mut Writer<v1::NeighborsResponse>,
) -> Result<(), Failure> {
    let version = calls::next_neighbors(call, &request.try_into()?, parts).await?;
    parts.end_neighbors(version, call.cost);
    Ok(())
}

async fn close_traversal(call: &mut Call, id: &str) -> Result<v1::CloseTraversalResponse, Failure> {
    let closed = calls::close(call, id).await?;
    Ok(v1::CloseTraversalResponse { cost: Some(closed.cost.into()), vertices: closed.vertices })
}
