//! `hoplake serve`: it prints its addresses, answers, traces, and ends with status 0 on a signal.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    time::Duration,
};

use hoplake_testkit::HoplakeServer;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value, trace::v1::span,
};
use prost::Message;
use serde_json::{Value, json};

use crate::{collector::Collector, hoplake::Shell};

/// A server that ends with the test.
struct Serving(HoplakeServer);

impl Serving {
    fn start(command: &mut Command) -> Self {
        // Short, since every test waits for its end.
        Self(HoplakeServer::start(command.args(["--set", "notice_ms=10"]).stderr(Stdio::piped())).unwrap())
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.0.http()).unwrap();
        let body = body.to_string();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    /// Asks it to end; returns status and log.
    fn terminate(mut self) -> (Option<i32>, String) {
        let status = self.0.terminate(Duration::from_secs(60)).unwrap();
        (status.and_then(|status| status.code()), self.0.into_log().unwrap())
    }
}

#[test]
fn it_serves_until_it_is_told_to_end() {
    let shell = Shell::with_graph();
    let collector = Collector::start();
    let mut command = shell.command(&["serve", ".", "--log-format", "json", "--set", "limits.hops_max=2"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    let server = Serving::start(&mut command);
    let body = json!({"starts": ["Person:1"], "hops": ["out:knows", "out:knows"], "select": ["name"]});
    let (status, answer) = server.post("/v1/graphs/graph/traverse", &body);
    let names: Vec<_> = answer["rows"].as_array().unwrap().iter().map(|row| &row["properties"]["name"]).collect();
    assert_eq!((status, names), (200, vec![&json!("Cid"), &json!("Dee, D.")]));
    let (status, _) = server.post("/v1/graphs/graph/traverse", &json!({"starts": [], "hops": ["out", "out", "out"]}));
    assert_eq!(status, 400);
    let (status, log) = server.terminate();
    assert_eq!(status, Some(0), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let requests: Vec<_> = lines.iter().filter(|line| line["target"] == "hoplake::requests").collect();
    assert_eq!(requests.len(), 2, "{log}");
    assert_eq!(
        (&requests[0]["call"], &requests[0]["graph"], &requests[0]["status"]),
        (&json!("Traverse"), &json!("graph"), &json!("OK"))
    );
    assert_eq!(
        (&requests[0]["waves"], &requests[1]["status"]),
        (&answer["statistics"]["cost"]["waves"], &json!("INVALID"))
    );

    // The spans left before the end: one for each request, with an event for each hop.
    let trace = collector.trace.recv_timeout(Duration::from_secs(30)).unwrap();
    let resource = &ExportTraceServiceRequest::decode(&trace[..]).unwrap().resource_spans[0];
    let service =
        resource.resource.as_ref().unwrap().attributes.iter().find(|pair| pair.key == "service.name").unwrap();
    assert_eq!(service.value.clone().unwrap().value, Some(any_value::Value::StringValue("hoplake".into())));
    let spans = &resource.scope_spans[0].spans;
    assert_eq!(spans.iter().map(|span| &*span.name).collect::<Vec<_>>(), ["Traverse", "Traverse"]);
    let waves = |event: &span::Event| {
        let pair = event.attributes.iter().find(|pair| pair.key == "waves").unwrap();
        pair.value.clone().unwrap().value
    };
    // The entire graph is in one block: the first hop read it, the second had it.
    let expected = [1, 0].map(|waves| Some(any_value::Value::IntValue(waves)));
    assert_eq!(spans[0].events.iter().map(waves).collect::<Vec<_>>(), expected);
    assert!(spans[0].events.iter().all(|event| event.name == "hop"));
}

#[test]
fn queries_and_their_blocks_are_served_by_two_processes() {
    let shell = Shell::with_graph();
    let access = Serving::start(&mut shell.command(&["serve", ".", "--role", "access"]));
    let nodes = format!("http://{}", access.0.grpc());
    let algorithm = ["serve", "--role", "algorithm", "--access-nodes", &nodes];
    let algorithm = Serving::start(&mut shell.command(&algorithm));
    let body = json!({"starts": ["Person:1"], "hops": ["out:knows", "out:knows"], "select": ["name"]});
    let (status, answer) = algorithm.post("/v1/graphs/graph/traverse", &body);
    let names: Vec<_> = answer["rows"].as_array().unwrap().iter().map(|row| &row["properties"]["name"]).collect();
    assert_eq!((status, names), (200, vec![&json!("Cid"), &json!("Dee, D.")]));
    assert_eq!(access.post("/v1/graphs/graph/traverse", &body).0, 404);
    for server in [algorithm, access] {
        let (status, log) = server.terminate();
        assert_eq!(status, Some(0), "{log}");
    }
    shell.run(&["serve", "--role", "algorithm"]).fails(2, "access_nodes is empty", "docs/serving.md");
    let wrong = shell.run(&["serve", "--role", "algorithm", "--access-nodes", "access:7480"]);
    wrong.fails(2, "write http://HOST:PORT", "docs/serving.md");
}

#[test]
fn a_server_follows_what_is_applied_and_compacts_it() {
    let shell = Shell::with_graph();
    let args = ["serve", ".", "--refresh", "1ms", "--compact", "--compact-memory", "64MiB"];
    let server = Serving::start(&mut shell.command(&args));
    let seen = || {
        let (status, answer) = server.post("/v1/graphs/graph/look-up", &json!({"vertices": ["Person:1"]}));
        assert_eq!(status, 200, "{answer}");
        answer["version"].as_u64().unwrap()
    };
    assert_eq!(seen(), 1);
    let mut applied = 1;
    for key in 5..10 {
        let line = json!({"op": "upsert_vertex", "label": "Person", "key": key, "properties": {"name": "new"}});
        shell.write("one.jsonl", &line.to_string());
        let run = shell.run(&["apply", "graph", "one.jsonl", "--json"]).ok().json().remove(0);
        applied = run["version"].as_u64().unwrap();
    }
    let kinds = || -> Vec<Value> { shell.run(&["log", "graph", "--json"]).ok().json() };
    let compacted = || kinds().iter().any(|version| version["kind"] == "compaction");
    // It is asked until it has found them, and what it made of them.
    let begun = std::time::Instant::now();
    while !(seen() > applied && compacted()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never follows and compacts: {:?}", kinds());
        std::thread::sleep(Duration::from_millis(400));
    }
    let (status, log) = server.terminate();
    assert_eq!(status, Some(0), "{log}");
    shell.run(&["verify", "graph"]).ok();
    // Where it could not listen, so that it ends in any case.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let little = ["serve", "graph", "--compact", "--compact-memory", "1MiB", "--http", &taken];
    shell.run(&little).fails(2, "compact_memory_bytes", "docs/serving.md");
}

#[test]
fn settings_come_from_a_file_and_wrong_ones_are_rejected() {
    let shell = Shell::with_graph();
    shell.write("serve.toml", "graphs = ['people=graph']\ntoken = 'x'\n[limits]\nvertices_max = 1\n");
    let mut command = shell.command(&["serve", "--config", "serve.toml"]);
    let server = Serving::start(&mut command);
    assert_eq!(server.post("/v1/graphs/people/look-up", &json!({"vertices": []})).0, 401);
    assert_eq!(server.terminate().0, Some(0));
    shell.run(&["serve"]).fails(2, "graphs is empty", "docs/serving.md");
    shell.run(&["serve", "graph", "--set", "limits.time=3"]).fails(2, "unknown field `time`", "docs/serving.md");
    shell.run(&["serve", "graph", "--set", "queries_max=0"]).fails(2, "at least 1", "docs/serving.md");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let run = shell.run(&["serve", "graph", "--grpc", "127.0.0.1:0", "--http", &taken]);
    run.fails(4, &format!("cannot listen on {taken}"), "--http");
}
