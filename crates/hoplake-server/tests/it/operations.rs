//! What operators look at: health, reflection, counters.

use futures::stream;
use hoplake_server::v1;
use serde_json::{Value, json};
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use crate::{
    running::{Running, settings},
    sample,
};

#[tokio::test]
async fn health_knows_the_services() {
    let server = Running::start(settings("memory://nothing")).await;
    let mut client = HealthClient::new(server.channel().await);
    for service in ["", "hoplake.v1.Graphs", "hoplake.v1.Query", "hoplake.v1.Jobs", "hoplake.v1.Blocks"] {
        let answer = client.check(HealthCheckRequest { service: service.into() }).await.unwrap();
        assert_eq!(answer.into_inner().status(), ServingStatus::Serving);
    }
    assert!(client.check(HealthCheckRequest { service: "hoplake.v1.Other".into() }).await.is_err());
}

macro_rules! reflection {
    ($name:ident, $version:ident, $service:literal) => {
        #[tokio::test]
        async fn $name() {
            use tonic_reflection::pb::$version::{
                ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
                server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
            };
            let server = Running::start(settings("memory://nothing")).await;
            let mut client = ServerReflectionClient::new(server.channel().await);
            let ask = |message| ServerReflectionRequest { host: String::new(), message_request: Some(message) };
            let symbol = MessageRequest::FileContainingSymbol("hoplake.v1.Graphs".into());
            let details = MessageRequest::FileContainingSymbol("google.rpc.ErrorInfo".into());
            let requests = [ask(MessageRequest::ListServices(String::new())), ask(symbol), ask(details)];
            let mut answers = client.server_reflection_info(stream::iter(requests)).await.unwrap().into_inner();
            let Some(MessageResponse::ListServicesResponse(services)) =
                answers.message().await.unwrap().unwrap().message_response
            else {
                panic!("no list of services")
            };
            let names: Vec<_> = services.service.iter().map(|service| service.name.as_str()).collect();
            for name in ["hoplake.v1.Graphs", "hoplake.v1.Query", "hoplake.v1.Jobs", "grpc.health.v1.Health", $service]
            {
                assert!(names.contains(&name), "{names:?}");
            }
            let Some(MessageResponse::FileDescriptorResponse(file)) =
                answers.message().await.unwrap().unwrap().message_response
            else {
                panic!("no file")
            };
            assert!(
                file.file_descriptor_proto.iter().any(|file| file.windows(14).any(|part| part == b"NeighborsReque"))
            );
        }
    };
}

reflection!(reflection_lists_the_services, v1, "grpc.reflection.v1.ServerReflection");
reflection!(reflection_of_old_lists_them_too, v1alpha, "grpc.reflection.v1alpha.ServerReflection");

#[tokio::test]
async fn counters_count() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(settings(&folder)).await;
    let body = json!({"starts": ["Person:1"], "hops": ["out:knows", "out:knows"]});
    let cold = server.ask("POST", "/v1/graphs/social/traverse", &body).await;
    server.ask("POST", "/v1/graphs/social/traverse", &body).await;
    server.try_ask("GET", "/v1/graphs/none", &Value::Null).await;
    let graph = crate::running::graph("social");
    server.graphs().await.look_up(v1::LookUpRequest { graph, vertices: Vec::new() }).await.unwrap();
    let requests = |protocol: &str, call: &str, status: &str| {
        format!("hoplake_requests_total{{protocol=\"{protocol}\",call=\"{call}\",status=\"{status}\"}}")
    };
    assert_eq!(server.metric(&requests("http", "Traverse", "OK")).await, 2.0);
    assert_eq!(server.metric(&requests("http", "GetGraph", "NOT_FOUND")).await, 1.0);
    assert_eq!(server.metric(&requests("grpc", "LookUp", "OK")).await, 1.0);
    assert_eq!(server.metric("hoplake_graphs_open").await, 1.0);
    let cost = &cold["statistics"]["cost"];
    for (counter, field) in [
        ("hoplake_store_requests_total", "requests"),
        ("hoplake_store_bytes_total", "bytes"),
        ("hoplake_waves_total", "waves"),
    ] {
        // The second found everything in memory.
        assert_eq!(server.metric(counter).await, cost[field].as_f64().unwrap(), "{counter}");
    }
    assert!(server.metric("hoplake_cache_hits_total").await > 0.0);
    let (_, text) = server.text("/metrics").await;
    assert!(
        text.contains("hoplake_request_seconds_bucket{le=\"0.001\",protocol=\"http\",call=\"Traverse\"}"),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"));
}
