//! The end: probes first, then running queries, then what is left.

use hoplake_server::{Settings, v1};
use serde_json::{Value, json};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};
use tonic_types::StatusExt;

use crate::{
    running::{Running, graph, hop, named, settings, traversal},
    sample,
};

const TRAVERSE: &str = "/v1/graphs/g/traverse";

fn body() -> Value {
    json!({"starts": ["Person:1"], "hops": ["both:knows"]})
}

fn request() -> v1::TraverseRequest {
    let traversal = Some(traversal(&["Person:1"], &["both:knows"]));
    v1::TraverseRequest { graph: graph("g"), traversal, ..Default::default() }
}

async fn health(server: &Running) -> ServingStatus {
    let mut client = HealthClient::new(server.channel().await);
    let service = "hoplake.v1.Graphs".into();
    client.check(HealthCheckRequest { service }).await.unwrap().into_inner().status()
}

#[tokio::test]
async fn running_queries_end_within_their_grace() {
    let (held, opener) = sample::held().await;
    let settings = Settings { notice_ms: 400, ..settings("memory://held") };
    let mut server = Running::start_with(settings, opener).await;
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    assert_eq!((server.text("/readyz").await.0, health(&server).await), (200, ServingStatus::Serving));
    held.hold();
    let over_http = tokio::spawn(server.request("POST", TRAVERSE).json(&body()).send());
    let mut client = server.graphs().await;
    let over_grpc = tokio::spawn(async move { client.traverse(request()).await.map(drop) });
    server.until_metric("hoplake_queries_running", 2.0).await;
    server.stop();
    // Within the notice: probes fail, and connections are still taken.
    while server.text("/readyz").await.0 != 503 {}
    assert_eq!(server.text("/healthz").await.0, 200);
    assert_eq!(health(&server).await, ServingStatus::NotServing);
    held.release();
    assert_eq!(over_http.await.unwrap().unwrap().status(), 200);
    over_grpc.await.unwrap().unwrap();
    let grpc = server.grpc;
    let http = server.http;
    server.ended().await;
    for address in [grpc, http] {
        assert!(tokio::net::TcpStream::connect(address).await.is_err(), "{address} still listens");
    }
}

#[tokio::test]
async fn what_outlasts_the_grace_is_ended() {
    let (held, opener) = sample::held().await;
    let settings = Settings { grace_ms: 100, ..settings("memory://held") };
    let mut server = Running::start_with(settings, opener).await;
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    held.hold();
    let over_http = tokio::spawn(server.request("POST", TRAVERSE).json(&body()).send());
    let mut client = server.graphs().await;
    let over_grpc = tokio::spawn(async move { client.traverse(request()).await.map(drop) });
    server.until_metric("hoplake_queries_running", 2.0).await;
    server.stop();
    let answer = over_http.await.unwrap().unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (503, &"1".parse().unwrap()));
    assert_eq!(answer.json::<Value>().await.unwrap()["reason"], "SHUTTING_DOWN");
    let status = over_grpc.await.unwrap().unwrap_err();
    assert_eq!(
        (status.code(), status.get_details_error_info().unwrap().reason.as_str()),
        (Code::Unavailable, "SHUTTING_DOWN")
    );
    server.ended().await;
}

/// A stream that its client keeps open does not keep the server.
#[tokio::test]
async fn a_stream_ends_with_the_server() {
    let (_held, opener) = sample::held().await;
    let mut server = Running::start_with(settings("memory://held"), opener).await;
    let first = v1::QueryNeighborsRequest {
        graph: graph("g"),
        hop: Some(hop("out:knows")),
        vertices: vec![named("Person:1")],
        query: 1,
    };
    let forever = futures::StreamExt::chain(futures::stream::iter([first]), futures::stream::pending());
    let mut answers = server.query().await.neighbors(forever).await.unwrap().into_inner();
    assert!(answers.message().await.unwrap().unwrap().failure.is_none());
    server.stop();
    let status = answers.message().await.unwrap_err();
    assert_eq!(
        (status.code(), status.get_details_error_info().unwrap().reason.as_str()),
        (Code::Unavailable, "SHUTTING_DOWN")
    );
    drop(answers);
    server.ended().await;
}
