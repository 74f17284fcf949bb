//! Memory that others hold: whatever is asked meanwhile is rejected as something that may be asked again, and what can never fit is not.

use std::time::Duration;

use futures::{SinkExt, StreamExt, future::join_all};
use hoplake_server::{LimitSettings, Settings, v1};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};
use tokio_tungstenite::{
    client_async,
    tungstenite::{Message, client::IntoClientRequest},
};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::{
    running::{Running, graph, hop, named, settings, traversal},
    sample,
};

/// Far beyond what any of this takes; what does not come is a failure.
const PATIENCE: Duration = Duration::from_secs(60);
/// The memory of the server.
const MEMORY: usize = 32 << 20;
/// What is left of it.
const LEFT: usize = 6 << 10;

/// A body that arrives so far, and holds almost all of the memory.
async fn hold_memory(server: &Running) -> TcpStream {
    let mut stream = TcpStream::connect(server.http).await.unwrap();
    let head = format!(
        "POST /v1/graphs/g/changes HTTP/1.1\r\nhost: x\r\ncontent-type: text/csv\r\ncontent-length: {MEMORY}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; MEMORY - LEFT]).await.unwrap();
    server.until_metric("hoplake_memory_bytes", (MEMORY - LEFT) as f64).await;
    stream
}

fn lines(people: std::ops::Range<u64>) -> String {
    let line = |key: u64| json!({"op": "upsert_vertex", "label": "Person", "key": 1_000 + key, "properties": {"name": format!("name {key}")}});
    people.map(|key| line(key).to_string() + "\n").collect()
}

/// Requests of HTTP, each of which takes more than is left.
fn over_http() -> Vec<(&'static str, &'static str, String)> {
    let all: Vec<String> = (1..=256).map(|key| format!("Person:{key}")).collect();
    let where_all = json!([{"label": "Person", "where": "age >= 0"}]);
    let both = json!(["both:knows", "both:knows"]);
    [
        ("POST", "/v1/graphs/g/look-up", json!({"vertices": all})),
        ("POST", "/v1/graphs/g/neighbors", json!({"vertices": all, "hop": "both:knows"})),
        ("POST", "/v1/graphs/g/properties", json!({"vertices": all, "select": ["name"]})),
        ("POST", "/v1/graphs/g/scan", json!({"labels": ["Person"], "select": ["name", "born"], "order_by": ["name"]})),
        ("POST", "/v1/graphs/g/traverse", json!({"starts": where_all, "hops": both, "select": ["name"]})),
        ("POST", "/v1/graphs/g/paths", json!({"starts": ["Person:1"], "hops": both, "keys": true})),
        ("POST", "/v1/graphs/g/shortest-path", json!({"from": "Person:1", "to": "Town:t9", "hop": "both"})),
        ("POST", "/v1/graphs/g/traversals", json!({})),
        ("POST", "/v1/graphs/g/gremlin", json!({"gremlin": "g.V().hasLabel('Person').values('name').order()"})),
        ("POST", "/gremlin", json!({"g": "g", "gremlin": "g.V().hasLabel('Person').values('name').order()"})),
        ("POST", "/v1/graphs/g/jobs", json!({"algorithm": "pagerank", "edges": "out:knows"})),
    ]
    .map(|(method, path, body)| (method, path, body.to_string()))
    .into_iter()
    .chain([("POST", "/v1/graphs/g/changes", lines(0..200))])
    .collect()
}

fn assert_passing(what: &str, status: &Status) {
    let info = status.get_details_error_info().unwrap();
    assert_eq!((status.code(), info.reason.as_str()), (Code::ResourceExhausted, "BUSY"), "{what}: {status:?}");
    assert!(status.get_details_retry_info().unwrap().retry_delay.is_some(), "{what}: {status:?}");
}

fn roomy() -> Settings {
    let limits = LimitSettings { memory_bytes_max: 0, ..LimitSettings::default() };
    Settings {
        memory_bytes_max: MEMORY as u64,
        message_bytes_max: MEMORY,
        writable: true,
        body_timeout_ms: 600_000,
        limits,
        ..settings("")
    }
}

#[tokio::test]
async fn what_others_hold_is_never_a_permanent_rejection() {
    let server = Running::start(Settings { graphs: vec![sample::in_memory("g").await], ..roomy() }).await;
    // The graph is open, and what is kept of it as well.
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    let send = async |(method, path, body): (&str, &str, String)| {
        let kind = if path.ends_with("/changes") { "application/x-ndjson" } else { "application/json" };
        let request = server.request(method, path).header("content-type", kind).body(body);
        let answer = timeout(PATIENCE, request.send()).await.unwrap().unwrap();
        let retry = answer.headers().get("retry-after").is_some_and(|after| after == "1");
        (answer.status().as_u16(), retry, answer.text().await.unwrap())
    };
    let held = hold_memory(&server).await;
    for call in over_http() {
        let (status, retry, answer) = send(call.clone()).await;
        assert_eq!((status, retry), (429, true), "{call:?}: {answer}");
        assert!(answer.contains("Busy") || answer.contains("BUSY"), "{call:?}: {answer}");
    }
    let mut client = server.graphs().await;
    let all: Vec<_> = (1..=256).map(|key| named(&format!("Person:{key}"))).collect();
    let look_up = v1::LookUpRequest { graph: graph("g"), vertices: all.clone() };
    assert_passing("look-up", &client.look_up(look_up).await.unwrap_err());
    let neighbors =
        v1::NeighborsRequest { graph: graph("g"), vertices: all, hop: Some(hop("both:knows")), ..Default::default() };
    assert_passing("neighbors", &client.neighbors(neighbors).await.map(drop).unwrap_err());
    let traversal = traversal(&["Person:1"], &["both:knows", "both:knows"]);
    let traverse = v1::TraverseRequest { graph: graph("g"), traversal: Some(traversal), ..Default::default() };
    let traversed = async {
        let mut messages = client.traverse(traverse).await?.into_inner();
        while messages.message().await?.is_some() {}
        Ok::<_, Status>(())
    };
    assert_passing("traverse", &traversed.await.unwrap_err());
    let format = v1::ChangesFormat::JsonLines.into();
    let apply = v1::ApplyRequest { graph: "g".into(), format, changes: lines(0..200).into(), ..Default::default() };
    assert_passing("apply", &client.apply(apply).await.unwrap_err());
    let request = format!("ws://{}/gremlin", server.http).into_client_request().unwrap();
    let (mut socket, _) = client_async(request, TcpStream::connect(server.http).await.unwrap()).await.unwrap();
    let message = json!({"requestId": "41d2e28a-20a4-4ab0-b379-d810dede3786", "op": "eval", "processor": "",
        "args": {"gremlin": "g.V().hasLabel('Person').values('name').order()", "aliases": {"g": "g"}}});
    socket.send(Message::text(message.to_string())).await.unwrap();
    match timeout(PATIENCE, socket.next()).await.unwrap() {
        Some(Ok(Message::Text(answer))) => assert!(answer.contains("429"), "{answer}"),
        other => panic!("{other:?}"),
    }
    drop(held);
    server.until_metric("hoplake_memory_bytes", 0.0).await;
    for call in over_http() {
        let (status, _, answer) = send(call.clone()).await;
        assert!((200..300).contains(&status), "{call:?}: {answer}");
    }
}

#[tokio::test]
async fn what_can_never_fit_is_rejected_for_good() {
    let small = Settings { memory_bytes_max: 1 << 20, message_bytes_max: 4 << 20, ..roomy() };
    let server = Running::start(Settings { graphs: vec![sample::in_memory("g").await], ..small }).await;
    let limits = json!({"memory_bytes_max": 1_000});
    let body = json!({"starts": ["Person:1"], "hops": ["both:knows", "both:knows"], "keys": true, "limits": limits});
    let (status, problem) = server.try_ask("POST", "/v1/graphs/g/paths", &body).await;
    assert_eq!((status, &problem["reason"]), (422, &json!("LIMIT")), "{problem}");
    // A body that takes more than all of the memory when it is decoded, and one that does as it is.
    for bytes in [50_000, 2_000_000] {
        let body = json!({"vertices": ["x".repeat(bytes)]});
        let (status, problem) = server.try_ask("POST", "/v1/graphs/g/look-up", &body).await;
        assert_eq!((status, &problem["reason"]), (413, &json!("TOO_LARGE")), "{problem}");
    }
    let request = server.request("POST", "/v1/graphs/g/changes").header("content-type", "application/x-ndjson");
    let answer = request.body(lines(0..4_000)).send().await.unwrap();
    assert_eq!(answer.status(), 422, "{}", answer.text().await.unwrap());
}

/// Writers that together need more than there is: some are rejected, and all succeed when they do as they are told.
#[tokio::test(flavor = "multi_thread")]
async fn many_writers_are_asked_to_come_again() {
    let folder = sample::in_memory("g").await;
    let server = Running::start(Settings { graphs: vec![folder], memory_bytes_max: 8 << 20, ..roomy() }).await;
    let writers = (0..24).map(async |writer| {
        let mut rejected = 0;
        loop {
            let request = server.request("POST", "/v1/graphs/g/changes").header("content-type", "application/x-ndjson");
            let people = writer * 2_000..(writer + 1) * 2_000;
            let answer = request.body(lines(people)).send().await.unwrap();
            if answer.status() == 200 {
                return rejected;
            }
            let after = answer.headers().get("retry-after").cloned();
            assert_eq!((answer.status().as_u16(), after), (429, Some("1".parse().unwrap())));
            rejected += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let rejected: u64 = timeout(PATIENCE, join_all(writers)).await.unwrap().into_iter().sum();
    assert!(rejected > 0, "there was memory for all of them");
}
