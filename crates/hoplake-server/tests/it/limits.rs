//! What ends a query or rejects it, and with which status.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{SinkExt, StreamExt};
use hoplake::gremlin::{graphson, message::Response};
use hoplake_server::{LimitSettings, Settings, v1};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};
use tonic::Code;
use tonic_types::StatusExt;
use uuid::Uuid;

use crate::{
    held_store::until,
    running::{Running, graph, hop, named, settings, traversal},
    sample,
};

fn request(limits: v1::Limits) -> v1::TraverseRequest {
    let traversal = v1::Traversal { limits: Some(limits), ..traversal(&["Person:1"], &["both:knows", "both:knows"]) };
    v1::TraverseRequest { graph: graph("g"), traversal: Some(traversal), ..Default::default() }
}

const TRAVERSE: &str = "/v1/graphs/g/traverse";

fn body(limits: &Value) -> Value {
    json!({"starts": ["Person:1"], "hops": ["both:knows", "both:knows"], "limits": limits})
}

#[tokio::test]
async fn a_limit_ends_a_query_with_what_it_took() {
    let (_held, opener) = sample::held().await;
    let server = Running::start_with(settings("memory://held"), opener).await;
    let mut client = server.graphs().await;
    // Cold, so that there are requests and bytes to be over; each time from what the time before left out.
    let limits = [
        (v1::Limits { requests_max: 1, ..Default::default() }, "1 requests"),
        (v1::Limits { vertices_max: 3, ..Default::default() }, "3 vertices"),
    ];
    for (limits, sentence) in limits {
        let status = client.traverse(request(limits)).await.unwrap_err();
        assert_eq!((status.code(), status.message().contains(sentence)), (Code::ResourceExhausted, true), "{status}");
        let info = status.get_details_error_info().unwrap();
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("LIMIT", "hoplake"));
        let number = |name: &str| info.metadata[name].parse::<u64>().unwrap();
        assert!(number("requests") + number("cache_hits") > 0, "{info:?}");
        assert!(status.metadata().contains_key("x-request-id"));
    }
    let (status, problem) = server.try_ask("POST", TRAVERSE, &body(&json!({"vertices_max": 3}))).await;
    assert_eq!((status, &problem["reason"]), (422, &json!("LIMIT")));
    assert!(problem["cost"]["cache_hits"].as_u64().unwrap() > 0, "{problem}");
    let neighbors = json!({"vertices": ["Person:1"], "hop": "both:knows", "limits": {"vertices_max": 1}});
    let (status, problem) = server.try_ask("POST", "/v1/graphs/g/neighbors", &neighbors).await;
    assert_eq!((status, &problem["reason"]), (422, &json!("LIMIT")), "{problem}");
}

#[tokio::test]
async fn the_servers_own_limits_hold_in_any_case() {
    let (_held, opener) = sample::held().await;
    let limits = LimitSettings { vertices_max: 3, batch_max: 2, hops_max: 2, ..LimitSettings::default() };
    let settings = Settings { limits, message_bytes_max: 2_000, ..settings("memory://held") };
    let server = Running::start_with(settings, opener).await;
    let (status, _) = server.try_ask("POST", TRAVERSE, &body(&json!({"vertices_max": 1_000_000}))).await;
    assert_eq!(status, 422);
    let batch = json!({"vertices": ["Person:1", "Person:2", "Person:3"]});
    let (status, problem) = server.try_ask("POST", "/v1/graphs/g/look-up", &batch).await;
    assert_eq!((status, problem["detail"].as_str().unwrap().contains("may name 2")), (400, true), "{problem}");
    let (status, problem) =
        server.try_ask("POST", TRAVERSE, &json!({"starts": [], "hops": ["out", "out", "out"]})).await;
    assert_eq!((status, problem["detail"].as_str().unwrap().contains("3 hops")), (400, true), "{problem}");
    let (status, problem) = server.try_ask("POST", TRAVERSE, &json!({"starts": ["x".repeat(3_000)], "hops": []})).await;
    assert_eq!((status, &problem["reason"]), (413, &json!("TOO_LARGE")));
    let large = v1::LookUpRequest { graph: graph("g"), vertices: vec![named(&"x".repeat(3_000))] };
    assert_eq!(server.graphs().await.look_up(large).await.unwrap_err().code(), Code::OutOfRange);
}

#[tokio::test]
async fn time_ends_a_query_that_waits_for_the_store() {
    let (held, opener) = sample::held().await;
    let server = Running::start_with(settings("memory://held"), opener).await;
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    held.hold();
    let (status, problem) = server.try_ask("POST", TRAVERSE, &body(&json!({"time_ms": 50}))).await;
    assert_eq!((status, &problem["reason"]), (504, &json!("TIME")), "{problem}");
    assert!(problem["cost"].is_object());
    let status =
        server.graphs().await.traverse(request(v1::Limits { time_ms: 50, ..Default::default() })).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(status.get_details_error_info().unwrap().reason, "TIME");
    // The deadline of the client, which is only in a header.
    let mut deadline = tonic::Request::new(request(v1::Limits::default()));
    deadline.metadata_mut().insert("grpc-timeout", "400m".parse().unwrap());
    let status = server.graphs().await.traverse(deadline).await.unwrap_err();
    // The client's library looks at the header as well, and is sometimes first.
    match status.get_details_error_info() {
        Some(info) => assert_eq!((status.code(), info.reason.as_str()), (Code::DeadlineExceeded, "TIME")),
        None => assert_eq!(status.message(), "Timeout expired"),
    }
    // The reads were cancelled, not leaked.
    until(|| held.waiting.load(Ordering::SeqCst) == 0).await;
    assert!(held.given_up.load(Ordering::SeqCst) >= 3);
    held.release();
    server.ask("POST", TRAVERSE, &body(&json!({}))).await;
}

/// The time in which a small query is answered, and one that is at its limit. A build without optimisation on a machine that builds
/// others is slow.
pub(crate) const ENDED_WITHIN: Duration = Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 1 });

/// Reading the text takes longer than the first limit, and planning longer than the text's own.
#[tokio::test]
async fn time_ends_a_query_that_is_planned() {
    let (_held, opener) = sample::held().await;
    let server = Running::start_with(settings("memory://held"), opener).await;
    let parts = [format!("V(){}", ".identity()".repeat(90_000)), format!("inject({}1)", "1,".repeat(400_000))];
    let limited = parts.iter().map(|part| json!({"gremlin": format!("g.{part}"), "limits": {"time_ms": 1}}));
    let limits_itself = parts.iter().map(|part| json!({"gremlin": format!("g.with('evaluationTimeout', 1).{part}")}));
    for body in limited.chain(limits_itself) {
        let begun = Instant::now();
        let (status, problem) = server.try_ask("POST", "/v1/graphs/g/gremlin", &body).await;
        assert!(begun.elapsed() < ENDED_WITHIN, "{:?}", begun.elapsed());
        assert_eq!((status, &problem["reason"]), (504, &json!("TIME")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().ends_with("at its limit of time"), "{problem}");
    }
}

async fn connect(server: &Running) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(server.http).await.unwrap();
    client_async(format!("ws://{}/gremlin", server.http), stream).await.unwrap().0
}

/// The first response to a text, and the time until then.
async fn first_response(
    socket: &mut WebSocketStream<TcpStream>,
    gremlin: &str,
    timeout_ms: u64,
) -> (Response, Duration) {
    let timeout = json!({"@type": "g:Int64", "@value": timeout_ms});
    let args = json!({"gremlin": gremlin, "aliases": {"g": "g"}, "evaluationTimeout": timeout});
    let id = json!({"@type": "g:UUID", "@value": Uuid::from_u128(7).to_string()});
    let request = json!({"requestId": id, "op": "eval", "processor": "", "args": args}).to_string();
    let begun = Instant::now();
    socket.send(Message::text(request)).await.unwrap();
    let Message::Text(answer) = socket.next().await.unwrap().unwrap() else { panic!("no text") };
    (graphson::read_response(answer.as_bytes()).unwrap(), begun.elapsed())
}

/// Three connections ask for what is not planned within its limit, again and again, of a server with one thread for queries. Behind
/// any of them another query would wait for the most of its limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_does_not_wait_for_what_others_plan() {
    const ASKED: u32 = 20;
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 300 } else { 20 });
    let limit_ms = limit.as_millis() as u64;
    let settings = Settings { query_threads: 1, ..settings(&sample::in_memory("g").await) };
    let server = Running::start(settings).await;
    let has_ended = Arc::new(AtomicBool::new(false));
    let mut others = Vec::new();
    for _ in 0..3 {
        let mut socket = connect(&server).await;
        let gremlin = format!("g.V(){}", ".identity()".repeat(100_000));
        let has_ended = has_ended.clone();
        others.push(tokio::spawn(async move {
            while !has_ended.load(Ordering::SeqCst) {
                let (response, taken) = first_response(&mut socket, &gremlin, limit_ms).await;
                assert_eq!(response.status, 598, "{response:?}");
                assert!((limit..limit + ENDED_WITHIN).contains(&taken), "{taken:?}");
            }
        }));
    }
    let mut socket = connect(&server).await;
    let mut waited = Duration::ZERO;
    for _ in 0..ASKED {
        let (response, taken) = first_response(&mut socket, "g.inject(1)", 60_000).await;
        assert_eq!(response.status, 200, "{response:?}");
        waited += taken;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    has_ended.store(true, Ordering::SeqCst);
    for other in others {
        other.await.unwrap();
    }
    let average = waited / ASKED;
    assert!(average < limit / 2, "{average:?}");
}

/// A single-threaded engine, so that nothing but the query's own future reads.
#[tokio::test]
async fn a_client_that_hangs_up_ends_its_query() {
    let (held, opener) = sample::held().await;
    let server = Running::start_with(settings("memory://held"), opener).await;
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    held.hold();
    let mut client = server.graphs().await;
    let hung = tokio::spawn(async move { client.traverse(request(v1::Limits::default())).await.map(drop) });
    held.until_waiting(1).await;
    hung.abort();
    until(|| held.waiting.load(Ordering::SeqCst) == 0).await;
    let over_http = server.request("POST", TRAVERSE).json(&body(&json!({}))).send();
    let hung = tokio::spawn(over_http);
    held.until_waiting(1).await;
    hung.abort();
    until(|| held.waiting.load(Ordering::SeqCst) == 0).await;
    for protocol in ["grpc", "http"] {
        let name = format!("hoplake_requests_total{{protocol=\"{protocol}\",call=\"Traverse\",status=\"CANCELLED\"}}");
        server.until_metric(&name, 1.0).await;
    }
    server.until_metric("hoplake_queries_running", 0.0).await;
}

#[tokio::test]
async fn the_queue_is_bounded() {
    let (held, opener) = sample::held().await;
    let settings = Settings { queries_max: 1, queue_max: 1, queue_wait_ms: 60_000, ..settings("memory://held") };
    let server = Running::start_with(settings, opener).await;
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    held.hold();
    let first = tokio::spawn(server.request("POST", TRAVERSE).json(&body(&json!({}))).send());
    held.until_waiting(1).await;
    let second = tokio::spawn(server.request("POST", TRAVERSE).json(&body(&json!({}))).send());
    server.until_metric("hoplake_queries_waiting", 1.0).await;
    let rejected = server.request("POST", TRAVERSE).json(&body(&json!({}))).send().await.unwrap();
    assert_eq!((rejected.status().as_u16(), &rejected.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    assert_eq!(rejected.json::<Value>().await.unwrap()["reason"], "BUSY");
    let status = server.graphs().await.traverse(request(v1::Limits::default())).await.unwrap_err();
    assert_eq!(
        (status.code(), status.get_details_error_info().unwrap().reason.as_str()),
        (Code::ResourceExhausted, "BUSY")
    );
    assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_secs(1)));
    held.release();
    for answer in [first, second] {
        assert_eq!(answer.await.unwrap().unwrap().status(), 200);
    }
}

#[tokio::test]
async fn without_the_token_nothing_is_told() {
    let (_held, opener) = sample::held().await;
    let settings = Settings { token: Some("s3cret".into()), ..settings("memory://held") };
    let server = Running::start_with(settings, opener).await;
    let answer = server.request("GET", "/v1/graphs").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["www-authenticate"]), (401, &"Bearer".parse().unwrap()));
    let steps = ["/v1/graphs/g/traversals", "/v1/traversals/x/neighbors", "/v1/graphs/g/look-up"];
    for path in steps {
        let step = json!({"vertices": [], "hop": "out"});
        let empty = if path.ends_with("neighbors") { step } else { json!({"vertices": []}) };
        let body = if path.ends_with("traversals") { json!({}) } else { empty };
        assert_eq!(server.try_ask("POST", path, &body).await.0, 401, "{path}");
    }
    let neighbors = |token: Option<&str>| {
        let hop = Some(hop("out:knows"));
        let message =
            v1::NeighborsRequest { graph: graph("g"), vertices: vec![named("Person:1")], hop, ..Default::default() };
        let mut request = tonic::Request::new(message);
        token.map(|token| request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap()));
        request
    };
    let mut client = server.graphs().await;
    for wrong in [None, Some("s3cre")] {
        assert_eq!(client.neighbors(neighbors(wrong)).await.unwrap_err().code(), Code::Unauthenticated);
    }
    client.neighbors(neighbors(Some("s3cret"))).await.unwrap();
    let mut stream = server.query().await;
    assert_eq!(stream.neighbors(futures::stream::empty()).await.unwrap_err().code(), Code::Unauthenticated);
    // Probes need none.
    assert_eq!(server.text("/healthz").await.0, 200);
}
