//! gRPC: from messages to calls and back.

mod columns;
mod graphs;
mod query_stream;
mod receive;
mod send;

use std::sync::Arc;

use tonic::{Request, Response, Status, service::Routes};
use tonic_health::ServingStatus;

use crate::{
    calls::{Call, Protocol, Service},
    failure::Failure,
    v1::{self, graphs_server::GraphsServer, query_server::QueryServer},
};

/// The services of hoplake.v1.
#[derive(Clone)]
struct Grpc {
    service: Arc<Service>,
}

/// All services: ours, health and reflection.
pub(crate) async fn router(service: &Arc<Service>) -> axum::Router {
    let grpc = Grpc { service: service.clone() };
    let bytes_max = service.settings.message_bytes_max;
    let graphs = GraphsServer::new(grpc.clone()).max_decoding_message_size(bytes_max);
    let query = QueryServer::new(grpc).max_decoding_message_size(bytes_max);
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<GraphsServer<Grpc>>().await;
    reporter.set_serving::<QueryServer<Grpc>>().await;
    let lifecycle = service.lifecycle.clone();
    tokio::spawn(async move {
        lifecycle.drained().await;
        for name in ["", "hoplake.v1.Graphs", "hoplake.v1.Query"] {
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
    Routes::new(graphs)
        .add_service(query)
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
