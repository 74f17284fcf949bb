//! The service Query: many small queries on one stream.
//!
//! One task reads queries, runs them, and writes their answers, with as many under way as [`UNDER_WAY_MAX`]. While the
//! client does not read, no query is read either. Queries on blocks in memory are answered at the first poll, so that
//! answers fill whole frames.

use std::sync::{Arc, OnceLock};

use futures::{Stream, StreamExt};
use hoplake::Hop;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status, Streaming};

use super::{
    receive, send,
    service::{self, Grpc, Messages},
    writer,
};
use crate::{
    calls::{self, Call, ChunkSender, Chunks, EdgeColumns, Edges, GraphRef, Service, chunk_channel},
    cost::PricedCost,
    failure::{Failure, Reason},
    v1::{self, query_server::Query},
};

/// Queries of one stream that wait for the store at a time; the next is read when one is answered.
const UNDER_WAY_MAX: usize = 64;

/// A field that a query omits has the value of the query before it.
#[derive(Default)]
struct PreviousFields {
    graph: Option<Arc<GraphRef>>,
    hop: Option<Arc<Hop>>,
}

/// The graph, the hop and the starts of a query.
type StreamRequest = (Arc<GraphRef>, Arc<Hop>, Vec<calls::VertexName>);

/// A query that was read, or why it cannot be.
struct ReadQuery {
    query: u64,
    request: Result<StreamRequest, Failure>,
}

impl PreviousFields {
    fn read(&mut self, request: v1::QueryNeighborsRequest) -> ReadQuery {
        let v1::QueryNeighborsRequest { query, graph, vertices, hop } = request;
        ReadQuery { query, request: self.complete(graph, vertices, hop) }
    }

    fn complete(
        &mut self,
        graph: Option<v1::GraphRef>,
        vertices: Vec<v1::VertexRef>,
        hop: Option<v1::Hop>,
    ) -> Result<StreamRequest, Failure> {
        // Each is kept only once it is read: a wrong hop is not the hop of the next query.
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

/// An answer, and what it holds until it is sent.
struct StreamResponse {
    message: v1::QueryNeighborsResponse,
    cost: PricedCost,
    _edges: Option<Edges>,
}

async fn answer(service: Arc<Service>, read: ReadQuery) -> StreamResponse {
    let ReadQuery { query, request } = read;
    let outcome = match request {
        Ok((graph, hop, vertices)) => calls::stream_neighbors(&service, &graph, &vertices, &hop).await,
        Err(failure) => Err(failure),
    };
    let outcome = outcome.and_then(|(found, cost)| {
        let edges = send::all_edges(found.all.all(), None, &EdgeColumns::new())?;
        Ok((edges, found, cost))
    });
    match outcome {
        Ok((edges, found, cost)) => {
            let message = v1::QueryNeighborsResponse { query, edges, cost: Some(cost.into()), failure: None };
            StreamResponse { message, cost, _edges: Some(found) }
        }
        Err(failure) => {
            // In the answer, not as the status, which would end the stream for all other queries.
            let failure = Some((&failure).into());
            let message = v1::QueryNeighborsResponse { query, failure, ..Default::default() };
            StreamResponse { message, cost: PricedCost::default(), _edges: None }
        }
    }
}

#[tonic::async_trait]
impl Query for Grpc {
    type NeighborsStream = Messages<v1::QueryNeighborsResponse>;

    async fn neighbors(
        &self,
        request: Request<Streaming<v1::QueryNeighborsRequest>>,
    ) -> Result<Response<Self::NeighborsStream>, Status> {
        let (mut call, requests) = self.begin("Query.Neighbors", request);
        // The stream itself takes no permit: each of its queries waits for one.
        if let Err(failure) = call.check_token() {
            return service::answer(&mut call, Err(failure));
        }
        let service = self.service.clone();
        let mut before = PreviousFields::default();
        let unreadable = Arc::new(OnceLock::new());
        let answers = readable(requests, &call, unreadable.clone())
            .map(move |request| answer(service.clone(), before.read(request)))
            // Unordered: a query on blocks in memory does not wait for one that reads the store.
            .buffer_unordered(UNDER_WAY_MAX);
        let (exchange, (chunks, received)) = (call.exchange.clone(), chunk_channel(&call.memory));
        let task = AbortOnDropHandle::new(tokio::spawn(until_the_end(call, answers, unreadable, chunks)));
        // No first message is awaited: a client may wait for these headers before it sends a query.
        Ok(Response::new(writer::messages(Chunks::of_stream(received, exchange, task))))
    }
}

/// The queries of a stream until its client ends it or breaks it off, its deadline, or the server's end; or until one that cannot be
/// read, of which `unreadable` then has the status.
fn readable(
    requests: Streaming<v1::QueryNeighborsRequest>,
    call: &Call,
    unreadable: Arc<OnceLock<Status>>,
) -> impl Stream<Item = v1::QueryNeighborsRequest> + Send + use<> {
    // Draining, not ended: an open stream would else hold the server until its grace is over.
    let lifecycle = call.service.lifecycle.clone();
    let bounds = call.bounds.clone();
    let stop = async move {
        tokio::select! {
            () = lifecycle.drained() => {}
            () = bounds.out_of_time() => {}
        }
    };
    requests
        // Where a message ends is not known after one that cannot be read, so that it is the last.
        .scan((), move |(), request| {
            let request = request.map_err(|status| drop(unreadable.set(status)));
            std::future::ready(request.ok())
        })
        // Only the reading stops: queries that were read are still answered.
        .take_until(Box::pin(stop))
}

/// Sends answers, and a status if the stream did not end by itself.
async fn until_the_end(
    mut call: Call,
    answers: impl Stream<Item = StreamResponse> + Send,
    unreadable: Arc<OnceLock<Status>>,
    chunks: ChunkSender<v1::QueryNeighborsResponse>,
) {
    let mut answers = Box::pin(answers);
    let mut sent = Ok(());
    // Edges and permit of a query are kept until its message is in the channel, with memory of its own.
    while let Some(StreamResponse { message, cost, _edges }) = answers.next().await {
        call.cost += cost;
        sent = match chunks.hold(writer::message_bytes(&message)) {
            Ok(hold) => chunks.send(message, hold).await,
            Err(failure) => Err(failure),
        };
        if sent.is_err() {
            break;
        }
    }
    let ended: Result<(), Failure> = if sent.is_err() {
        sent
    } else if let Some(failure) = unreadable.get().and_then(Failure::unreadable) {
        // With OK, the answers to this query and those after it would just be missing.
        Err(failure)
    } else if call.service.lifecycle.is_draining() {
        Err(Failure::shutting_down())
    } else if call.bounds.is_over() {
        Err(call.bounds.time_is_over())
    } else {
        Ok(())
    };
    call.finish(&ended);
    if let Err(failure) = ended {
        chunks.fail(failure).await;
    }
}
