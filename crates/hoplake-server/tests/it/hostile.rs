//! Clients that send slowly, do not read, ask for too much, or leave: none of them moves the server's bounds.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use hoplake::Store;
use hoplake_server::{LimitSettings, Settings, StoreOpener, v1};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{
    running::{Running, graph, hop, named, settings, traversal},
    sample,
};

/// Far beyond what any of this takes; what does not come is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Walks by the hundred thousand, each of some 200 bytes.
fn many_walks(time_ms: u64) -> Value {
    let hops = vec!["both:knows"; 4];
    json!({"starts": ["Person:1"], "hops": hops, "limit": 0, "keys": true, "limits": {"time_ms": time_ms}})
}

/// A request as text, on a connection of its own.
async fn send(server: &Running, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.http).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

fn post(path: &str, headers: &str, body: &Value) -> String {
    let body = body.to_string();
    format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// All that comes until the server closes the connection.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut all)).await.expect("the server closes the connection");
    String::from_utf8_lossy(&all).into_owned()
}

#[tokio::test]
async fn without_the_token_no_body_is_waited_for() {
    let server = Running::start(Settings { token: Some("s3cret".into()), ..settings("memory://nothing") }).await;
    for path in
        ["/v1/graphs/g/traverse", "/v1/graphs/g/look-up", "/v1/graphs/g/traversals", "/v1/traversals/x/neighbors"]
    {
        let half = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n{{\"ver");
        let answer = until_closed(&mut send(&server, &half).await).await;
        assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("UNAUTHENTICATED"), "{path}: {answer}");
    }
    let tcp = TokioIo::new(TcpStream::connect(server.grpc).await.unwrap());
    let (mut client, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), tcp).await.unwrap();
    tokio::spawn(connection);
    // A message that never comes.
    let body = axum::body::Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let request = hyper::Request::post("http://x/hoplake.v1.Graphs/LookUp").header("content-type", "application/grpc");
    let answer = client.send_request(request.body(body).unwrap());
    let answer = timeout(PATIENCE, answer).await.expect("it is refused").unwrap();
    assert_eq!(answer.headers()["grpc-status"], (Code::Unauthenticated as i32).to_string());
    let rejected = "hoplake_requests_total{protocol=\"grpc\",call=\"LookUp\",status=\"UNAUTHENTICATED\"}";
    server.until_metric(rejected, 1.0).await;
}

/// A client that writes its complete request before it reads finds the rejection, and the connection stays open.
#[tokio::test]
async fn a_body_that_is_rejected_is_answered_on_a_connection_that_goes_on() {
    let budget = 4 << 20;
    let limits = LimitSettings { memory_bytes_max: budget, ..LimitSettings::default() };
    let server = Running::start(Settings { memory_bytes_max: budget, limits, ..settings("memory://nothing") }).await;
    // The first takes more than the memory when it is decoded, the second is announced as too large.
    for (bytes, status) in [(3 << 20, "413"), (6 << 20, "413")] {
        let head = format!("POST /v1/graphs/g/look-up HTTP/1.1\r\nhost: x\r\ncontent-length: {bytes}\r\n\r\n");
        let mut stream = send(&server, &head).await;
        for _ in 0..bytes >> 16 {
            stream.write_all(&[b' '; 1 << 16]).await.unwrap();
        }
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let answers = until_closed(&mut stream).await;
        let statuses: Vec<_> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
        assert_eq!(statuses, [status, "200"], "{answers}");
    }
    // Twice the maximum of a body, and the client no longer reads.
    let endless = "POST /v1/graphs/g/look-up HTTP/1.1\r\nhost: x\r\ncontent-length: 4000000000\r\n\r\n";
    let mut stream = send(&server, endless).await;
    let writing = async { while stream.write_all(&[b' '; 1 << 16]).await.is_ok() {} };
    timeout(PATIENCE, writing).await.expect("the server closes the connection");
}

#[tokio::test]
async fn half_sent_headers_end_and_make_room() {
    let settings = Settings { half_open_max: 20, header_timeout_ms: 400, ..settings("memory://nothing") };
    let server = Running::start(settings).await;
    let mut halves = Vec::new();
    for number in 0..500 {
        halves.push(send(&server, ["", "GET /v1/gra", "POST /v1/graphs HTTP/1.1\r\nhost: x\r\nx-"][number % 3]).await);
        if number % 100 == 99 {
            assert_eq!(server.text("/healthz").await.0, 200);
            let half_open = server.metric("hoplake_connections_half_open").await;
            assert!(half_open <= 21.0, "{half_open}");
        }
    }
    for half in &mut halves {
        assert_eq!(until_closed(half).await, "");
    }
    server.until_metric("hoplake_connections_half_open", 0.0).await;
}

#[tokio::test]
async fn the_oldest_idle_connection_gives_way() {
    let server = Running::start(Settings { connections_max: 2, ..settings("memory://nothing") }).await;
    let get = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut all = Vec::new();
    for _ in 0..5 {
        let mut stream = send(&server, get).await;
        let mut answer = [0; 12];
        timeout(PATIENCE, stream.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        all.push(stream);
    }
    // The first three were closed.
    for stream in &mut all[..3] {
        until_closed(stream).await;
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let folder = sample::in_memory("g").await;
    let settings = Settings { body_timeout_ms: 200, memory_bytes_max: 4 << 20, ..settings(&folder) };
    let server = Running::start(settings).await;
    let half = "POST /v1/graphs/g/traverse HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n{\"starts";
    let answer = until_closed(&mut send(&server, half).await).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("SLOW"), "{answer}");
    // A prefix that promises a message.
    let tcp = TokioIo::new(TcpStream::connect(server.grpc).await.unwrap());
    let (mut client, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), tcp).await.unwrap();
    tokio::spawn(connection);
    let prefix = futures::stream::iter([Ok::<_, std::io::Error>(vec![0, 0, 0, 1, 0, 7])]);
    let body = axum::body::Body::from_stream(futures::StreamExt::chain(prefix, futures::stream::pending()));
    let request = hyper::Request::post("http://x/hoplake.v1.Graphs/LookUp").header("content-type", "application/grpc");
    let answer = timeout(PATIENCE, client.send_request(request.body(body).unwrap())).await.unwrap().unwrap();
    assert_eq!(answer.headers()["grpc-status"], (Code::DeadlineExceeded as i32).to_string());
    // A body larger than the whole memory of the server.
    let names = vec!["Person:1"; 50_000];
    let (status, problem) = server.try_ask("POST", "/v1/graphs/g/look-up", &json!({"vertices": names})).await;
    assert_eq!((status, &problem["reason"]), (413, &json!("TOO_LARGE")), "{problem}");
    server.until_metric("hoplake_memory_bytes", 0.0).await;
}

#[tokio::test]
async fn an_unread_answer_keeps_its_permit_and_is_ended() {
    let folder = sample::in_memory("g").await;
    let server = Running::start(Settings { send_timeout_ms: 1_000, ..settings(&folder) }).await;
    let request = post("/v1/graphs/g/paths", "", &many_walks(0));
    let mut unread = [send(&server, &request).await, send(&server, &request).await];
    server.until_metric("hoplake_queries_running", 2.0).await;
    let mut client = server.graphs().await;
    let spec = Some(traversal(&["Person:1"], &["both:knows"; 4]));
    let paths = v1::PathsRequest { graph: graph("g"), traversal: spec, limit: 0, keys: true, ..Default::default() };
    let over_grpc = client.paths(paths).await.unwrap();
    server.until_metric("hoplake_queries_running", 3.0).await;
    let held = server.metric("hoplake_memory_bytes").await;
    assert!(held > 0.0 && held < 16e6, "{held}");
    server.until_metric("hoplake_queries_running", 0.0).await;
    server.until_metric("hoplake_memory_bytes", 0.0).await;
    server.until_metric("hoplake_tasks_running", 0.0).await;
    for stream in &mut unread {
        // Chunks, and not the one that ends them.
        let all = until_closed(stream).await;
        assert!(all.starts_with("HTTP/1.1 200") && !all.ends_with("\r\n0\r\n\r\n"));
    }
    let mut messages = over_grpc.into_inner();
    while let Ok(message) = messages.message().await {
        assert!(message.is_some(), "it looks whole");
    }
}

#[tokio::test]
async fn the_deadline_holds_while_an_answer_is_sent() {
    let folder = sample::in_memory("g").await;
    let server = Running::start(settings(&folder)).await;
    let lines = "accept: application/x-ndjson\r\nconnection: close\r\n";
    let mut stream = send(&server, &post("/v1/graphs/g/paths", lines, &many_walks(700))).await;
    let ended = "hoplake_requests_total{protocol=\"http\",call=\"Paths\",status=\"TIME\"}";
    server.until_metric(ended, 1.0).await;
    let all = until_closed(&mut stream).await;
    let last = all.lines().rfind(|line| line.starts_with('{')).unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!((&last["problem"]["reason"], last["problem"]["cost"].is_object()), (&json!("TIME"), true), "{last}");
    // One object cannot contain the error: it is truncated.
    let answer = server.request("POST", "/v1/graphs/g/paths").json(&many_walks(700)).send().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    assert!(answer.bytes().await.is_err());
    server.until_metric("hoplake_tasks_running", 0.0).await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_answer() {
    let folder = sample::in_memory("g").await;
    let server = Running::start(settings(&folder)).await;
    let stream = send(&server, &post("/v1/graphs/g/paths", "", &many_walks(0))).await;
    server.until_metric("hoplake_queries_running", 1.0).await;
    drop(stream);
    server.until_metric("hoplake_queries_running", 0.0).await;
    server.until_metric("hoplake_tasks_running", 0.0).await;
    let left = "hoplake_requests_total{protocol=\"http\",call=\"Paths\",status=\"CANCELLED\"}";
    server.until_metric(left, 1.0).await;
}

/// Opens stores only when it is released: who opens one keeps a thread until then.
fn blocking() -> (mpsc::Sender<()>, Arc<AtomicUsize>, StoreOpener) {
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let blocked = Arc::new(AtomicUsize::new(0));
    let counter = blocked.clone();
    let opener = move |url: &str| {
        counter.fetch_add(1, Ordering::SeqCst);
        let _ = released.lock().unwrap().recv();
        Ok(Store::open(url)?)
    };
    (release, blocked, Arc::new(opener))
}

/// However busy the threads of queries are, probes answer, and the server ends.
#[tokio::test]
async fn probes_answer_and_the_server_ends_while_queries_keep_their_threads() {
    let (release, blocked, opener) = blocking();
    let settings = Settings { query_threads: 1, grace_ms: 100, ..settings("memory://nothing") };
    let mut server = Running::start_with(settings, opener).await;
    let hung = tokio::spawn(server.request("GET", "/v1/graphs/g").send());
    crate::held_store::until(|| blocked.load(Ordering::SeqCst) == 1).await;
    for probe in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        assert_eq!(server.text(probe).await.0, 200, "{probe}");
    }
    let mut health = HealthClient::new(server.channel().await);
    health.check(HealthCheckRequest { service: "hoplake.v1.Graphs".into() }).await.unwrap();
    server.stop();
    timeout(PATIENCE, server.ended()).await.expect("it ends");
    drop(release);
    assert!(hung.await.unwrap().is_err());
}

#[tokio::test]
async fn names_that_lead_nowhere_close_no_graph_and_are_remembered() {
    let folder = sample::in_memory("one").await;
    let opened = Arc::new(AtomicUsize::new(0));
    let counter = opened.clone();
    let opener: StoreOpener = Arc::new(move |url: &str| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(Store::open(url)?)
    });
    let server = Running::start_with(Settings { graphs_open_max: 1, ..settings(&folder) }, opener).await;
    server.ask("GET", "/v1/graphs/one", &Value::Null).await;
    for number in 0..20 {
        let path = format!("/v1/graphs/none-{number}");
        for _ in 0..5 {
            assert_eq!(server.try_ask("GET", &path, &Value::Null).await.0, 404);
        }
    }
    server.ask("GET", "/v1/graphs/one", &Value::Null).await;
    let counts = (server.metric("hoplake_graphs_open").await, server.metric("hoplake_graph_opens_total").await);
    assert_eq!((counts, opened.load(Ordering::SeqCst)), ((1.0, 1.0), 21));
    // Who has just loaded it asks for the newest version.
    sample::add(&folder, "none-1", 3).await;
    server.ask("POST", "/v1/graphs/none-1/refresh", &Value::Null).await;
    server.ask("GET", "/v1/graphs/none-1", &Value::Null).await;
}

/// The bodies of all calls over HTTP that take limits, with more than one vertex, request, byte and result each.
fn calls_with(limits: &Value) -> Vec<(&'static str, Value)> {
    let two = json!(["Person:1", "Person:2"]);
    let walk = json!({"starts": two, "hops": ["both:knows", "both:knows"], "limits": limits});
    let with = |name: &str, value: Value| {
        let mut body = walk.clone();
        body[name] = value;
        body
    };
    vec![
        ("neighbors", json!({"vertices": two, "hop": "both:knows", "keys": true, "limits": limits})),
        ("properties", json!({"vertices": two, "select": ["name"], "limits": limits})),
        ("traverse", with("select", json!(["name"]))),
        ("traverse", with("all_depths", json!(true))),
        ("traverse", with("output", json!("ids"))),
        ("paths", with("keys", json!(true))),
        ("shortest-path", json!({"from": "Person:1", "to": "Person:200", "hop": "out:knows", "limits": limits})),
    ]
}

#[tokio::test]
async fn every_limit_binds_every_call() {
    let (_held, opener) = sample::held().await;
    let mut settings = settings("memory://held");
    settings.read.cache_bytes_max = 0;
    let server = Running::start_with(settings, opener).await;
    let mut wrong = Vec::new();
    for (limit, sentence) in [
        ("vertices_max", "vertices"),
        ("requests_max", "requests"),
        ("bytes_max", "bytes"),
        ("memory_bytes_max", "memory"),
    ] {
        let limits = json!({limit: 1});
        for (call, body) in calls_with(&limits) {
            let (status, problem) = server.try_ask("POST", &format!("/v1/graphs/g/{call}"), &body).await;
            if (status, &problem["reason"]) != (422, &json!("LIMIT"))
                || !problem["detail"].as_str().is_some_and(|detail| detail.contains(sentence))
                || !problem["cost"].is_object()
            {
                wrong.push(format!("{call} with {limits}: {status} {}", problem["detail"]));
            }
        }
        let opened = server.ask("POST", "/v1/graphs/g/traversals", &json!({"limits": limits})).await;
        let path = format!("/v1/traversals/{}/neighbors", opened["traversal"].as_str().unwrap());
        let step = json!({"vertices": ["Person:1", "Person:2"], "hop": "both:knows"});
        let (status, problem) = server.try_ask("POST", &path, &step).await;
        if (status, &problem["reason"]) != (422, &json!("LIMIT")) {
            wrong.push(format!("a step with {limits}: {status} {problem}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A property that is named a hundred thousand times is not a column each time.
#[tokio::test]
async fn names_that_are_repeated_are_rejected() {
    let folder = sample::in_memory("g").await;
    let server = Running::start(settings(&folder)).await;
    // Towns have no age, and their edges no `since`: each column would be of nulls.
    let ages = vec!["age"; 100_000];
    let since = vec!["since"; 100_000];
    let walk = json!({"starts": ["Town:t1"], "hops": ["in:livesIn"], "select": ages});
    let ends = json!({"from": "Town:t1", "to": "Person:1", "hop": "both", "select": ages});
    for (call, body) in [
        ("scan", json!({"select": ages})),
        ("scan", json!({"labels": ["Person"], "order_by": ages})),
        ("neighbors", json!({"vertices": ["Town:t1"], "hop": "both", "select_edges": since})),
        ("properties", json!({"vertices": ["Town:t1"], "select": ages})),
        ("traverse", walk.clone()),
        ("paths", walk),
        ("shortest-path", ends),
    ] {
        let (status, problem) = server.try_ask("POST", &format!("/v1/graphs/g/{call}"), &body).await;
        assert_eq!((status, &problem["reason"]), (400, &json!("INVALID")), "{call}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains("is named twice"), "{call}: {problem}");
    }
    let scan = v1::ScanRequest { graph: graph("g"), select: vec!["age".into(); 100_000], ..Default::default() };
    let rejected = match server.graphs().await.scan(scan).await {
        Ok(mut stream) => stream.get_mut().message().await.unwrap_err(),
        Err(status) => status,
    };
    assert_eq!(rejected.code(), Code::InvalidArgument);
    let started = server.request("POST", "/v1/graphs/g/jobs").json(&json!({"algorithm": "degrees"})).send();
    let job: Value = started.await.unwrap().json().await.unwrap();
    let path = format!("/v1/jobs/{}/result?select=age,age", job["id"].as_str().unwrap());
    assert_eq!(server.try_ask("GET", &path, &Value::Null).await.0, 400);
    server.until_metric("hoplake_queries_running", 0.0).await;
}

#[tokio::test]
async fn no_answer_has_more_than_the_server_allows() {
    let folder = sample::in_memory("g").await;
    let limits = LimitSettings { results_max: 3, ..LimitSettings::default() };
    let server = Running::start(Settings { limits, ..settings(&folder) }).await;
    let people = json!(["Person:1", "Person:2", "Person:3", "Person:4"]);
    let rejected = [
        ("neighbors", json!({"vertices": people, "hop": "both:knows"})),
        ("properties", json!({"vertices": people})),
        ("properties", json!({"vertices": [{"label": "Person", "where": "age >= 0"}]})),
        ("look-up", json!({"vertices": people})),
    ];
    for (call, body) in rejected {
        let (status, problem) = server.try_ask("POST", &format!("/v1/graphs/g/{call}"), &body).await;
        assert_eq!((status, &problem["reason"]), (422, &json!("LIMIT")), "{call}");
    }
    for (list, output) in [("rows", "rows"), ("vertices", "ids")] {
        let body = json!({"starts": people, "hops": ["both:knows"], "output": output});
        let answer = server.ask("POST", "/v1/graphs/g/traverse", &body).await;
        let items = if output == "ids" { &answer[list][0]["ids"] } else { &answer[list] };
        assert_eq!((items.as_array().unwrap().len(), &answer["statistics"]["truncated"]), (3, &json!(true)));
    }
    let answer = server.ask("POST", "/v1/graphs/g/paths", &json!({"starts": people, "hops": ["both:knows"]})).await;
    assert_eq!(answer["paths"].as_array().unwrap().len(), 3);
    let vertices: Vec<_> = (1..=4).map(|person| named(&format!("Person:{person}"))).collect();
    let edges =
        v1::NeighborsRequest { graph: graph("g"), vertices, hop: Some(hop("both:knows")), ..Default::default() };
    let status = server.graphs().await.neighbors(edges).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let query = v1::QueryNeighborsRequest {
        graph: graph("g"),
        vertices: vec![named("Person:1")],
        hop: Some(hop("both:knows")),
        query: 1,
    };
    let mut answers = server.query().await.neighbors(futures::stream::iter([query])).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().failure.unwrap().reason, "LIMIT");
}

#[tokio::test]
async fn open_traversals_are_counted() {
    let folder = sample::in_memory("g").await;
    let server = Running::start(settings(&folder)).await;
    let opened = server.ask("POST", "/v1/graphs/g/traversals", &json!({})).await;
    let held = server.metric("hoplake_memory_bytes").await;
    assert!(held >= 16_384.0, "{held}");
    server.ask("DELETE", &format!("/v1/traversals/{}", opened["traversal"].as_str().unwrap()), &Value::Null).await;
    server.until_metric("hoplake_memory_bytes", 0.0).await;
}

/// Every form of an answer has the same items, in pieces or in one.
#[tokio::test]
async fn forms_of_an_answer_are_alike() {
    let folder = sample::in_memory("g").await;
    let server = Running::start(settings(&folder)).await;
    let walk = json!({"starts": ["Person:1"], "hops": ["both:knows", "both:knows", "out:livesIn"], "keys": true, "limit": 3_000});
    let set = |output: &str| json!({"starts": ["Person:1"], "hops": ["both:knows", "both"], "all_depths": true, "output": output});
    let people: Vec<_> = (1..=256).map(|person| format!("Person:{person}")).collect();
    let cases = [
        ("neighbors", json!({"vertices": people, "hop": "both", "keys": true}), "edges"),
        ("properties", json!({"vertices": people, "select": ["name", "tags", "born"]}), "rows"),
        ("traverse", set("rows"), "rows"),
        ("paths", walk, "paths"),
    ];
    for (call, body, list) in cases {
        let path = format!("/v1/graphs/g/{call}");
        let whole = server.ask("POST", &path, &body).await;
        let with = |kind: &str| server.request("POST", &path).header("accept", kind).json(&body).send();
        let lines = with("application/x-ndjson").await.unwrap().text().await.unwrap();
        let mut lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let summary = lines.pop().unwrap();
        assert_eq!(&json!(lines), &whole[list], "{call}");
        assert!(lines.len() > 100 && summary.get(list).is_none(), "{call}: {} {summary}", lines.len());
        assert!(summary["cost"].is_object() || summary["statistics"]["cost"].is_object(), "{summary}");
        let arrow = with("application/vnd.apache.arrow.stream").await.unwrap();
        assert_eq!(arrow.headers()["content-type"], "application/vnd.apache.arrow.stream");
        let arrow = arrow.bytes().await.unwrap();
        let batches = arrow_ipc::reader::StreamReader::try_new(&arrow[..], None).unwrap();
        let count: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(count, lines.len(), "{call}");
    }
    let whole = server.ask("POST", "/v1/graphs/g/traverse", &set("ids")).await;
    let depths = 3;
    assert_eq!(whole["vertices"].as_array().unwrap().len(), depths);
}
