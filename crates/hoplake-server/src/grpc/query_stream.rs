//! The service Query: many small queries on one stream.
//!
//! Nothing is spawned and nothing queued: the stream's own task reads a query, runs it, and writes its answer, with
//! as many under way as [`UNDER_WAY_MAX`]. What is in memory is answered at the first look, so that answers fill whole frames.

use std::{pin::Pin, sync::Arc};

use futures::{Stream, StreamExt, stream};
use hoplake::Hop;
use tonic::{Request, Response, Status, Streaming};

use super::{Grpc, receive, send};
use crate::{
    calls::{self, Call, GraphRef, Protocol, Service},
    cost::Spent,
    failure::{Failure, Reason},
    v1::{self, query_server::Query},
};

/// Queries of one stream that wait for the store at a time; the next is read when one is answered.
const UNDER_WAY_MAX: usize = 64;

/// What a query leaves out is as in the one before it.
#[derive(Default)]
struct Before {
    graph: Option<Arc<GraphRef>>,
    hop: Option<Arc<Hop>>,
}

/// The graph, the hop and the starts of a query.
type Asked = (Arc<GraphRef>, Arc<Hop>, Vec<calls::VertexName>);

/// A query that was read, or why it cannot be.
struct Read {
    query: u64,
    asked: Result<Asked, Failure>,
}

impl Before {
    fn read(&mut self, request: v1::QueryNeighborsRequest) -> Read {
        let v1::QueryNeighborsRequest { query, graph, vertices, hop } = request;
        Read { query, asked: self.complete(graph, vertices, hop) }
    }

    fn complete(
        &mut self,
        graph: Option<v1::GraphRef>,
        vertices: Vec<v1::VertexRef>,
        hop: Option<v1::Hop>,
    ) -> Result<Asked, Failure> {
        if graph.is_some() || self.graph.is_none() {
            self.graph = Some(Arc::new(receive::graph(graph)?));
        }
        if hop.is_some() || self.hop.is_none() {
            self.hop = Some(Arc::new(receive::hop(hop)?));
        }
        let (Some(graph), Some(hop)) = (self.graph.clone(), self.hop.clone()) else {
            return Err(Failure::new(Reason::Internal, "a stream forgot its graph"));
        };
        Ok((graph, hop, receive::vertices(vertices)?))
    }
}

async fn answer(service: Arc<Service>, read: Read) -> (v1::QueryNeighborsResponse, Spent) {
    let Read { query, asked } = read;
    let outcome = match asked {
        Ok((graph, hop, vertices)) => calls::stream_neighbors(&service, &graph, &vertices, &hop).await,
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok((edges, spent)) => {
            let (edges, cost) = (send::all_edges(&edges), Some(spent.into()));
            (v1::QueryNeighborsResponse { query, edges, cost, failure: None }, spent)
        }
        Err(failure) => {
            let failure = Some((&failure).into());
            (v1::QueryNeighborsResponse { query, failure, ..Default::default() }, Spent::default())
        }
    }
}

#[tonic::async_trait]
impl Query for Grpc {
    type NeighborsStream = Pin<Box<dyn Stream<Item = Result<v1::QueryNeighborsResponse, Status>> + Send>>;

    async fn neighbors(
        &self,
        request: Request<Streaming<v1::QueryNeighborsRequest>>,
    ) -> Result<Response<Self::NeighborsStream>, Status> {
        let headers = request.metadata().clone().into_headers();
        let mut call = Call::begin(&self.service, Protocol::Grpc, "Query.Neighbors", &headers);
        if let Err(failure) = call.check_token() {
            return super::answer(&mut call, Err(failure));
        }
        let service = self.service.clone();
        let mut before = Before::default();
        let answers = readable(request.into_inner(), &call)
            .map(move |request| answer(service.clone(), before.read(request)))
            .buffer_unordered(UNDER_WAY_MAX);
        Ok(Response::new(Box::pin(until_the_end(call, answers))))
    }
}

/// The queries of a stream until its client ends it or breaks it off, its deadline, or the server's end.
fn readable(
    requests: Streaming<v1::QueryNeighborsRequest>,
    call: &Call,
) -> impl Stream<Item = v1::QueryNeighborsRequest> + Send + use<> {
    let (lifecycle, bounds) = (call.service.lifecycle.clone(), call.bounds.clone());
    let stop = async move {
        tokio::select! {
            () = lifecycle.drained() => {}
            () = bounds.out_of_time() => {}
        }
    };
    requests
        .take_while(|request| std::future::ready(request.is_ok()))
        .filter_map(async |request| request.ok())
        .take_until(Box::pin(stop))
}

/// Answers, and a status if the stream did not end by itself.
fn until_the_end(
    call: Call,
    answers: impl Stream<Item = (v1::QueryNeighborsResponse, Spent)> + Send,
) -> impl Stream<Item = Result<v1::QueryNeighborsResponse, Status>> + Send {
    let state = Some((call, Box::pin(answers)));
    stream::unfold(state, async |state| {
        let (mut call, mut answers) = state?;
        if let Some((message, spent)) = answers.next().await {
            call.spent += spent;
            return Some((Ok(message), Some((call, answers))));
        }
        let ended: Result<(), Failure> = if call.service.lifecycle.is_draining() {
            Err(Failure::shutting_down())
        } else if call.bounds.is_over() {
            Err(call.bounds.time_is_over())
        } else {
            Ok(())
        };
        call.finish(&ended);
        ended.err().map(|failure| (Err(failure.status()), None))
    })
}
