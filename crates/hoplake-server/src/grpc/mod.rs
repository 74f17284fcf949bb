//! gRPC: from messages to calls and back.

mod blocks;
mod columns;
mod deadline;
mod graphs;
mod jobs;
mod queries;
mod query_stream;
mod receive;
mod send;
mod service;
mod status;
mod writer;

use std::sync::Arc;

use axum::http::{HeaderValue, request::Request as HttpRequest};
use hoplake_doors::Exchange;
use tonic::{Code, Status, service::Routes};
use tonic_health::ServingStatus;

use self::service::{Grpc, PROTOCOL, answer};
use crate::{
    calls::{Call, RequestContext, Service},
    failure::Failure,
    request_head::Arrival,
    v1::{
        self, blocks_server::BlocksServer, graphs_server::GraphsServer, jobs_server::JobsServer,
        query_server::QueryServer,
    },
};

/// A message of health or reflection, which need no token: names, which their answers repeat.
const OPEN_MESSAGE_BYTES_MAX: usize = 4 << 10;

/// The names of calls, by their paths, of the services that `methods!` does not make.
const CALLS: [(&str, &str); 5] = [
    ("/hoplake.v1.Query/Neighbors", "Query.Neighbors"),
    ("/hoplake.v1.Blocks/Describe", "Blocks.Describe"),
    ("/hoplake.v1.Blocks/Get", "Blocks.Get"),
    ("/hoplake.v1.Blocks/Fetch", "Blocks.Fetch"),
    ("/hoplake.v1.Blocks/List", "Blocks.List"),
];

/// The name of a call, or `Unknown`: the label of a counter must not be a path that the client made up, or each would be a new
/// series.
pub(crate) fn call_name(path: &str) -> &'static str {
    CALLS
        .iter()
        .chain(graphs::CALLS)
        .chain(jobs::CALLS)
        .find(|(at, _)| *at == path)
        .map_or("Unknown", |(_, name)| *name)
}

/// The response, unless it says that the message of the request could not be read. Tonic takes that for a mistake of the server
/// (INTERNAL), in its services of health and reflection as in ours; it is one of the client. Of INTERNAL that the server means, there
/// are details.
pub(crate) fn unless_malformed(
    service: &Arc<Service>,
    response: Reply,
    name: &'static str,
    id: Option<&HeaderValue>,
    exchange: &Arc<Exchange>,
) -> Reply {
    // Only before any message: a status after one is in the trailers, and what reads streams answers itself.
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    if status.code() != Code::Internal || !status.details().is_empty() {
        return response;
    }
    let id = id.and_then(|id| id.to_str().ok());
    let mut call = Call::begin(service, RequestContext::new(PROTOCOL, name, id, exchange.clone(), |_| None));
    let rejected = Failure::invalid(format!("the message is not one of this call: {}", status.message()));
    match answer::<()>(&mut call, Err(rejected)) {
        Ok(_) => response,
        Err(status) => status.into_http(),
    }
}

/// Answers a request without the right token, of whose message nothing was read.
pub(crate) fn reject<T>(service: &Arc<Service>, request: &HttpRequest<T>) -> Reply {
    let path = request.uri().path();
    let role = service.settings.role;
    let is_served = if path.starts_with("/hoplake.v1.Blocks/") { role.has_stores() } else { role.traverses() };
    // As the router of this role answers with the right token: UNIMPLEMENTED for a service that it does not have.
    if !is_served {
        return Status::unimplemented("").into_http();
    }
    let context = Arrival::of(request.extensions()).context(PROTOCOL, call_name(path), request.headers());
    let mut call = Call::begin(service, context);
    let rejected = call.check_token();
    match answer(&mut call, rejected) {
        // Not reached: the door has checked the same headers.
        Ok(_) => Status::internal("the token is right").into_http(),
        Err(status) => status.into_http(),
    }
}

/// A reply, as it goes out.
type Reply = axum::http::Response<axum::body::Body>;

/// The services of the server's role, health and reflection.
pub(crate) async fn router(service: &Arc<Service>) -> axum::Router {
    let grpc = Grpc { service: service.clone() };
    let bytes_max = service.settings.message_bytes_max;
    let role = service.settings.role;
    // In the health protocol the empty name is the server as a whole (grpc.health.v1).
    let mut names = vec![""];
    let mut routes = Routes::default();
    if role.traverses() {
        names.extend(["hoplake.v1.Graphs", "hoplake.v1.Query", "hoplake.v1.Jobs"]);
        let graphs = GraphsServer::new(grpc.clone()).max_decoding_message_size(bytes_max);
        let query = QueryServer::new(grpc.clone()).max_decoding_message_size(bytes_max);
        let jobs = JobsServer::new(grpc.clone()).max_decoding_message_size(bytes_max);
        routes = routes.add_service(graphs).add_service(query).add_service(jobs);
    }
    if role.has_stores() {
        names.push("hoplake.v1.Blocks");
        routes = routes.add_service(BlocksServer::new(grpc).max_decoding_message_size(bytes_max));
    }
    let (reporter, health) = tonic_health::server::health_reporter();
    for name in &names {
        reporter.set_service_status(*name, ServingStatus::Serving).await;
    }
    // Watchers of the health service get the change while connections are still accepted.
    let lifecycle = service.lifecycle.clone();
    tokio::spawn(async move {
        lifecycle.drained().await;
        for name in names {
            reporter.set_service_status(name, ServingStatus::NotServing).await;
        }
    });
    let health = health.max_decoding_message_size(OPEN_MESSAGE_BYTES_MAX);
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
        .add_service(reflection().build_v1().expect(readable).max_decoding_message_size(OPEN_MESSAGE_BYTES_MAX))
        // Older tools ask only for v1alpha.
        .add_service(reflection().build_v1alpha().expect(readable).max_decoding_message_size(OPEN_MESSAGE_BYTES_MAX))
        .prepare()
        .into_axum_router()
}
