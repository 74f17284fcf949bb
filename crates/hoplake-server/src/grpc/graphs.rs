//! The service Graphs.

use futures::{StreamExt, stream};
use tonic::{Request, Response, Status};
use tracing::Instrument;

use super::{Grpc, Messages, answer, at_hand, receive, send, within};
use crate::{
    calls::{self, Call, PathStream, raw_id},
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
        let (mut call, request) = self.begin("Neighbors", request);
        within!(call, neighbors(&mut call, request).await.map(at_hand))
    }

    type PropertiesStream = Messages<v1::PropertiesResponse>;

    async fn properties(
        &self,
        request: Request<v1::PropertiesRequest>,
    ) -> Result<Response<Self::PropertiesStream>, Status> {
        let (mut call, request) = self.begin("Properties", request);
        within!(call, properties(&mut call, request).await.map(at_hand))
    }

    type TraverseStream = Messages<v1::TraverseResponse>;

    async fn traverse(&self, request: Request<v1::TraverseRequest>) -> Result<Response<Self::TraverseStream>, Status> {
        let (mut call, request) = self.begin("Traverse", request);
        within!(call, traverse(&mut call, request).await.map(at_hand))
    }

    type PathsStream = Messages<v1::PathsResponse>;

    async fn paths(&self, request: Request<v1::PathsRequest>) -> Result<Response<Self::PathsStream>, Status> {
        let (mut call, request) = self.begin("Paths", request);
        let span = call.span.clone();
        match paths(&mut call, request).instrument(span).await {
            // The call goes on while walks are read.
            Ok(paths) => {
                call.leave();
                Ok(Response::new(walks(call, paths)))
            }
            Err(failure) => answer(&mut call, Err(failure)),
        }
    }

    async fn shortest_path(
        &self,
        request: Request<v1::ShortestPathRequest>,
    ) -> Result<Response<v1::ShortestPathResponse>, Status> {
        let (mut call, request) = self.begin("ShortestPath", request);
        within!(call, shortest_path(&mut call, request).await)
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
        let (mut call, request) = self.begin("NextNeighbors", request);
        within!(call, next_neighbors(&mut call, request).await.map(at_hand))
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
    Ok(v1::LookUpResponse { found, cost: Some(call.spent.into()), version })
}

async fn neighbors(call: &mut Call, request: v1::NeighborsRequest) -> Result<Vec<v1::NeighborsResponse>, Failure> {
    let graph = receive::graph(request.graph.clone())?;
    Ok(send::neighbors(&calls::neighbors(call, &graph, &request.try_into()?).await?))
}

async fn properties(call: &mut Call, request: v1::PropertiesRequest) -> Result<Vec<v1::PropertiesResponse>, Failure> {
    let (graph, format) = (receive::graph(request.graph.clone())?, receive::format(request.format)?);
    let (rows, version) = calls::properties(call, &graph, &request.try_into()?).await?;
    let rows = send::rows(&rows, format)?.into_iter().map(Some);
    let message = |rows| v1::PropertiesResponse { rows, cost: None, version };
    let mut messages: Vec<_> = rows.map(message).collect();
    if messages.is_empty() {
        messages.push(message(None));
    }
    messages.last_mut().expect("there is one").cost = Some(call.spent.into());
    Ok(messages)
}

async fn traverse(call: &mut Call, request: v1::TraverseRequest) -> Result<Vec<v1::TraverseResponse>, Failure> {
    let (graph, format) = (receive::graph(request.graph.clone())?, receive::format(request.format)?);
    let found = calls::traverse(call, &graph, &request.try_into()?).await?;
    let vertices = found.vertices.iter().flat_map(|(depth, set)| send::vertices(*depth, set)).map(Kind::Vertices);
    let rows = send::rows(&found.rows, format)?.into_iter().map(Kind::Rows);
    let statistics = Kind::Statistics(found.statistics.into());
    Ok(vertices.chain(rows).chain([statistics]).map(|kind| v1::TraverseResponse { kind: Some(kind) }).collect())
}

async fn paths(call: &mut Call, request: v1::PathsRequest) -> Result<PathStream, Failure> {
    let graph = receive::graph(request.graph.clone())?;
    calls::paths(call, &graph, &request.try_into()?).await
}

/// Walks, named as they are read; the call ends with them.
fn walks(call: Call, paths: PathStream) -> Messages<v1::PathsResponse> {
    let next = |state: Option<(Call, PathStream)>| async move {
        let (mut call, mut paths) = state?;
        match paths.next(&mut call).await {
            Ok(Some((walks, statistics))) => {
                let paths_of = walks.into_iter().map(Into::into).collect();
                let message = v1::PathsResponse { paths: paths_of, statistics: statistics.map(Into::into) };
                Some((Ok(message), Some((call, paths))))
            }
            Ok(None) => {
                call.finish(&Ok(()));
                None
            }
            Err(failure) => {
                call.finish::<()>(&Err(failure.clone()));
                Some((Err(failure.status()), None))
            }
        }
    };
    stream::unfold(Some((call, paths)), next).boxed()
}

async fn shortest_path(call: &mut Call, request: v1::ShortestPathRequest) -> Result<v1::ShortestPathResponse, Failure> {
    let graph = receive::graph(request.graph.clone())?;
    let found = calls::shortest_path(call, &graph, &request.try_into()?).await?;
    let (path, version) = (found.path.map(Into::into), found.version);
    Ok(v1::ShortestPathResponse { path, cost: Some(call.spent.into()), version })
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
) -> Result<Vec<v1::NeighborsResponse>, Failure> {
    Ok(send::neighbors(&calls::next_neighbors(call, &request.try_into()?).await?))
}

async fn close_traversal(call: &mut Call, id: &str) -> Result<v1::CloseTraversalResponse, Failure> {
    let closed = calls::close(call, id).await?;
    Ok(v1::CloseTraversalResponse { cost: Some(closed.spent.into()), vertices: closed.vertices })
}
