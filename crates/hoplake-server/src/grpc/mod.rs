//! gRPC: from messages to calls and back.

mod blocks;
mod columns;
mod graphs;
mod query_stream;
mod receive;
mod send;

use std::{pin::Pin, sync::Arc};

use futures::{Stream, stream};
use tonic::{Request, Response, Status, service::Routes};
use tonic_health::ServingStatus;

use crate::{
    calls::{Call, Protocol, Service},
    failure::Failure,
    v1::{self, blocks_server::BlocksServer, graphs_server::GraphsServer, query_server::QueryServer},
};

type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A result at hand, sent as it is read.
fn at_hand<T: Send + 'static>(messages: Vec<T>) -> Messages<T> {
    Box::pin(stream::iter(messages.into_iter().map(Ok)))
}

/// Runs a call within its span.
macro_rules! within {
    ($call:ident, $work:expr) => {{
        let span = $call.span.clone();
        let outcome = tracing::Instrument::instrument(async { $work }, span).await;
        $crate::grpc::answer(&mut $call, outcome)
    }};
}

use within;

/// The services of hoplake.v1.
#[derive(Clone)]
struct Grpc {
    service: Arc<Service>,
}

/// The services of the server's role, health and reflection.
pub(crate) async fn router(service: &Arc<Service>) -> axum::Router {
    let grpc = Grpc { service: service.clone() };
    let bytes_max = service.settings.message_bytes_max;
    let role = service.settings.role;
    let mut names = vec![""];
    let mut routes = Routes::default();
    if role.traverses() {
        names.extend(["hoplake.v1.Graphs", "hoplake.v1.Query"]);
        let graphs = GraphsServer::new(grpc.clone()).max_decoding_message_size(bytes_max);
        let query = QueryServer::new(grpc.clone()).max_decoding_message_size(bytes_max);
        routes = routes.add_service(graphs).add_service(query);
    }
    if role.has_stores() {
        names.push("hoplake.v1.Blocks");
        routes = routes.add_service(BlocksServer::new(grpc).max_decoding_message_size(bytes_max));
    }
    let (reporter, health) = tonic_health::server::health_reporter();
    for name in &names {
        reporter.set_service_status(*name, ServingStatus::Serving).await;
    }
    let lifecycle = service.lifecycle.clone();
    tokio::spawn(async move {
        lifecycle.drained().await;
        for name in names {
            reporter.set_service_status(name, ServingStatus::NotServing).await;
        }
    });
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(v1::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            // Details of errors, which tools decode by it.
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
    };
    let readable = "the descriptors were compiled with the services";
    routes
        .add_service(health)
        .add_service(reflection().build_v1().expect(readable))
        .add_service(reflection().build_v1alpha().expect(readable))
        .prepare()
        .into_axum_router()
}

impl Grpc {
    /// Begins a call, and takes its message out.
    fn begin<T>(&self, name: &'static str, request: Request<T>) -> (Call, T) {
        let headers = request.metadata().clone().into_headers();
        (Call::begin(&self.service, Protocol::Grpc, name, &headers), request.into_inner())
    }

    /// The same for a call of another node, which is part of a request there.
    fn begin_for_node<T>(&self, name: &'static str, request: Request<T>) -> (Call, T) {
        let (mut call, message) = self.begin(name, request);
        call.is_for_node();
        (call, message)
    }
}

/// Ends a call, with its answer or its status; both carry the name of the request.
fn answer<T>(call: &mut Call, outcome: Result<T, Failure>) -> Result<Response<T>, Status> {
    call.finish(&outcome);
    let id = call.id.parse().ok();
    match outcome {
        Ok(message) => {
            let mut response = Response::new(message);
            id.and_then(|id| response.metadata_mut().insert(crate::calls::REQUEST_ID, id));
            Ok(response)
        }
        Err(failure) => {
            let mut status = failure.status();
            id.and_then(|id| status.metadata_mut().insert(crate::calls::REQUEST_ID, id));
            Err(status)
        }
    }
}
