//! Changes through the service: what is acknowledged is there, once, and what is rejected is not.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use hoplake::{Graph, OpenSettings, Store};
use hoplake_server::{LimitSettings, Role, Settings, StoreOpener, v1};
use hoplake_testkit::S3Server;
use object_store::ObjectStore;
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt;

use crate::{
    held_store::until,
    running::{Running, settings},
    sample,
};

const CHANGES: &str = "/v1/graphs/g/changes";
const LINES: &str = "application/x-ndjson";
const ARROW: &str = "application/vnd.apache.arrow.stream";

fn writable(graphs: &str) -> Settings {
    Settings { writable: true, ..settings(graphs) }
}

/// A folder of graphs on this machine's disk; it lives as long as the first part.
fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}", folder.path().display());
    (folder, url)
}

/// Every URL leads to a prefix of one bucket.
fn bucket(server: &S3Server) -> StoreOpener {
    let store: Arc<dyn ObjectStore> = Arc::new(server.store());
    Arc::new(move |url| {
        let prefix = url.strip_prefix("s3://graphs/").unwrap_or_default();
        Ok(Store::new(store.clone(), prefix.into(), url))
    })
}

fn person(key: i64, name: &str) -> String {
    json!({"op": "upsert_vertex", "label": "Person", "key": key, "properties": {"name": name}}).to_string() + "\n"
}

fn knows(source: i64, target: i64) -> String {
    json!({"op": "upsert_edge", "label": "knows", "source": ["Person", source], "target": ["Person", target]})
        .to_string()
        + "\n"
}

impl Running {
    async fn make(&self, name: &str) -> (u16, Value) {
        self.try_ask("PUT", &format!("/v1/graphs/{name}"), &Value::Null).await
    }

    async fn send(&self, query: &str, kind: &str, key: Option<&str>, body: impl Into<reqwest::Body>) -> (u16, Value) {
        let request = self.request("POST", &format!("{CHANGES}{query}")).header("content-type", kind).body(body);
        let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Applies lines, which must succeed; returns the answer.
    async fn lines(&self, body: String) -> Value {
        let (status, answer) = self.send("", LINES, None, body).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    async fn names(&self, keys: &[i64]) -> Vec<Value> {
        let vertices: Vec<_> = keys.iter().map(|key| format!("Person:{key}")).collect();
        let body = json!({"vertices": vertices, "select": ["name"]});
        let answer = self.ask("POST", "/v1/graphs/g/properties", &body).await;
        answer["rows"].as_array().unwrap().iter().map(|row| row["properties"]["name"].clone()).collect()
    }

    async fn apply(&self, request: v1::ApplyRequest) -> Result<v1::ApplyResponse, tonic::Status> {
        self.graphs().await.apply(request).await.map(tonic::Response::into_inner)
    }
}

fn request(changes: String) -> v1::ApplyRequest {
    let format = v1::ChangesFormat::JsonLines.into();
    v1::ApplyRequest { graph: "g".into(), format, changes: changes.into(), ..Default::default() }
}

fn arrow(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

/// Numbers of two columns that are all bytes of a batch, over those of others.
fn overlapping() -> Vec<u8> {
    let labels: ArrayRef = Arc::new(StringArray::from(vec!["Person"; 8]));
    let numbers = || -> ArrayRef { Arc::new(Int64Array::from_iter_values(1..9)) };
    let columns = vec![("label", labels), ("key", numbers()), ("age", numbers()), ("size", numbers())];
    let mut stream = arrow(columns);
    // Positions and text of labels before them, in 64 bytes each, as all is aligned.
    for offset in [192i64, 256] {
        let from = [offset, 64].map(i64::to_le_bytes).concat();
        let place = stream.windows(16).position(|bytes| bytes == from).unwrap();
        stream[place..place + 16].copy_from_slice(&[0i64, 320].map(i64::to_le_bytes).concat());
    }
    stream
}

/// Makes a graph, fills it in each form, and reads each version back at once.
async fn fill(server: &Running) {
    assert_eq!(server.make("g").await, (201, json!({"version": 1, "created": true})));
    assert_eq!(server.make("g").await, (200, json!({"version": 1, "created": false})));
    let answer = server.lines(person(1, "Ann") + &person(2, "Bob") + &knows(1, 2)).await;
    assert_eq!((&answer["version"], &answer["changes"], &answer["repeated"]), (&json!(2), &json!(3), &json!(false)));
    let counts = json!({"vertices_added": 2, "vertices_changed": 0, "vertices_removed": 0, "edges_written": 1, "pairs_removed": 0});
    assert_eq!(answer["counts"], counts);
    assert_eq!(server.names(&[1, 2]).await, ["Ann", "Bob"]);

    let (status, answer) = server.send("", "text/csv; charset=utf-8", None, "label,key,name\nPerson,3,Cem\n").await;
    assert_eq!((status, &answer["version"]), (200, &json!(3)), "{answer}");
    let labels: ArrayRef = Arc::new(StringArray::from(vec!["Person"; 2]));
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![4, 5]));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["Dee", "Eve"]));
    let body = arrow(vec![("label", labels), ("key", keys), ("name", names)]);
    let (status, answer) = server.send("?message=of+Arrow&source_position=crm%3D17", ARROW, None, body).await;
    assert_eq!((status, &answer["version"], &answer["changes"]), (200, &json!(4), &json!(2)), "{answer}");
    assert_eq!(server.names(&[3, 4, 5]).await, ["Cem", "Dee", "Eve"]);
    // A graph with content is not made again.
    let (status, problem) = server.make("g").await;
    assert_eq!((status, &problem["reason"]), (409, &json!("CONFLICT")), "{problem}");

    // A feed that did not see the position of the other.
    let (status, problem) = server.send("?if_position=crm%3D16", LINES, None, person(6, "Fay")).await;
    assert_eq!((status, &problem["reason"]), (409, &json!("CONFLICT")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("of source crm the graph has \"17\""), "{problem}");
    let (status, problem) = server.send("?base=3", LINES, None, person(4, "Dan")).await;
    assert_eq!((status, &problem["reason"]), (409, &json!("CONFLICT")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("Person:4"), "{problem}");

    let applied = v1::ApplyRequest {
        message: "of gRPC".into(),
        base: 4,
        source_positions: [("crm".to_owned(), "18".to_owned())].into(),
        if_positions: [("crm".to_owned(), "17".to_owned())].into(),
        create_missing: true,
        ..request(knows(1, 9))
    };
    let answer = server.apply(applied).await.unwrap();
    assert_eq!((answer.version, answer.changes, answer.batches, answer.repeated), (5, 1, 1, false));
    assert_eq!(answer.counts.unwrap(), v1::ChangeCounts { vertices_added: 1, edges_written: 1, ..Default::default() });
    assert!(answer.cost.is_some());
    let edges = json!({"vertices": ["Person:1"], "hop": "out:knows", "keys": true});
    let edges = server.ask("POST", "/v1/graphs/g/neighbors", &edges).await;
    assert_eq!(edges["version"], 5);
    assert_eq!(edges["edges"].as_array().unwrap().iter().map(|edge| &edge["to_key"]).collect::<Vec<_>>(), [2, 9]);
}

#[tokio::test]
async fn a_folder_is_filled_in_every_form() {
    let (_folder, url) = folder();
    let server = Running::start(writable(&url)).await;
    fill(&server).await;
    let graph = Graph::open(&format!("{url}/g")).await.unwrap();
    assert_eq!((graph.version(), graph.source_position("crm")), (5, Some("18")));
    assert_eq!(graph.manifest().change.message, "of gRPC");
    let outcome = |outcome: &str| format!("hoplake_batches_total{{outcome=\"{outcome}\"}}");
    assert_eq!(server.metric(&outcome("COMMITTED")).await, 4.0);
    assert_eq!(server.metric(&outcome("CONFLICT")).await, 2.0);
    assert_eq!(server.metric("hoplake_commits_total").await, 4.0);
    assert_eq!(server.metric("hoplake_changes_total").await, 7.0);
    let call = "hoplake_requests_total{protocol=\"http\",call=\"Apply\",status=\"OK\"}";
    assert_eq!(server.metric(call).await, 3.0);
}

#[tokio::test]
async fn a_bucket_is_filled_in_every_form() {
    let s3 = S3Server::start().unwrap();
    let opener = bucket(&s3);
    let server = Running::start_with(writable("s3://graphs/all"), opener.clone()).await;
    fill(&server).await;
    let store = opener("s3://graphs/all/g").unwrap();
    let graph = Graph::open_with(store, &OpenSettings::default()).await.unwrap();
    assert_eq!(graph.version(), 5);
    graph.verify(|_| ()).await.unwrap();
}

#[tokio::test]
async fn without_leave_nothing_is_written() {
    let folder = sample::in_memory("g").await;
    let server = Running::start(settings(&folder)).await;
    for (status, problem) in [server.send("", LINES, None, person(1, "x")).await, server.make("h").await] {
        assert_eq!((status, &problem["reason"]), (403, &json!("READ_ONLY")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("--writable"), "{problem}");
    }
    let status = server.apply(request(person(1, "x"))).await.unwrap_err();
    let details = status.get_details_error_info().unwrap();
    assert_eq!((status.code(), details.reason.as_str()), (Code::PermissionDenied, "READ_ONLY"));
    assert_eq!(sample::embedded(&folder, "g").await.version(), 1);
    // An algorithm node has no store, so `writable` does not make it write.
    let node = format!("http://{}", server.grpc);
    let settings = Settings { role: Role::Algorithm, graphs: Vec::new(), access_nodes: vec![node], ..writable("") };
    let algorithm = Running::start(Settings { writable: false, ..settings.clone() }).await;
    let (status, problem) = algorithm.send("", LINES, None, person(1, "x")).await;
    assert_eq!((status, &problem["reason"]), (403, &json!("READ_ONLY")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("access nodes"), "{problem}");
    let rejected = settings.validate().unwrap_err();
    assert_eq!(rejected.name, "writable");
}

#[tokio::test]
async fn what_is_rejected_has_its_place() {
    let folder = sample::in_memory("g").await;
    let limits = LimitSettings { batch_max: 3, ..LimitSettings::default() };
    let server = Running::start(Settings { limits, ..writable(&folder) }).await;
    let labels = || -> ArrayRef { Arc::new(StringArray::from(vec!["knows"; 2])) };
    let ends = || -> ArrayRef { Arc::new(StringArray::from(vec!["Person"; 2])) };
    let keys = |keys: [i64; 2]| -> ArrayRef { Arc::new(Int64Array::from(keys.to_vec())) };
    let edges = arrow(vec![
        ("label", labels()),
        ("source_label", ends()),
        ("source", keys([1, 1])),
        ("target_label", ends()),
        ("target", keys([2, 9_999])),
    ]);
    // Parameters, type and body; the unit and the number of the place, and words of the reason.
    type Case = (&'static str, &'static str, Vec<u8>, &'static str, Value, &'static str);
    let cases: [Case; 9] = [
        (
            "",
            LINES,
            (person(1, "x") + &knows(1, 9_999)).into(),
            "line",
            json!(2),
            "upsert of edge Person:1 -knows-> Person:9999",
        ),
        ("", LINES, (person(1, "x") + "\n{\"op\": \"upsert\"}\n").into(), "line", json!(3), ""),
        ("", LINES, b"[]".to_vec(), "line", json!(1), "not a JSON object"),
        ("", "text/csv", b"label,key,age\nPerson,1,old\n".to_vec(), "line", json!(2), "old"),
        ("", ARROW, edges, "row", json!(2), "upsert of edge Person:1 -knows-> Person:9999"),
        (
            "?strict=true",
            LINES,
            "{\"op\": \"upsert_vertex\", \"label\": \"Cat\", \"key\": 1}".into(),
            "line",
            json!(1),
            "Cat",
        ),
        ("", LINES, [1, 2, 3, 4].map(|key| person(key, "x")).concat().into(), "line", json!(4), "a batch may have 3"),
        ("", LINES, Vec::new(), "line", Value::Null, "no changes"),
        ("?bse=1", LINES, person(1, "x").into(), "line", Value::Null, "unknown parameter"),
    ];
    for (query, kind, body, unit, number, words) in cases {
        let (status, problem) = server.send(query, kind, None, body).await;
        assert_eq!(
            (status, &problem["reason"], &problem[unit]),
            (400, &json!("INVALID"), &number),
            "{words}: {problem}"
        );
        let text = problem.to_string();
        assert!(text.contains(words), "{words}: {problem}");
    }
    let status = server.apply(request(knows(1, 9_999))).await.unwrap_err();
    let details = status.get_details_error_info().unwrap();
    assert_eq!(
        (status.code(), &details.metadata["line"], &*details.metadata["item"]),
        (Code::InvalidArgument, &"1".to_owned(), "upsert of edge Person:1 -knows-> Person:9999")
    );
    // What manifests would keep.
    let long = format!("?message={}", "m".repeat(5_000));
    let (status, problem) = server.send(&long, LINES, None, person(1, "x")).await;
    assert_eq!((status, &problem["reason"]), (400, &json!("INVALID")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("the message has 5000 bytes"), "{problem}");
    let unset = v1::ApplyRequest { format: 0, ..request(person(1, "x")) };
    assert!(server.apply(unset).await.unwrap_err().message().contains("format is missing"));
    assert_eq!(server.send("", "application/json", None, person(1, "x")).await.0, 400);
    let packed =
        server.request("POST", CHANGES).header("content-encoding", "gzip").header("content-type", LINES).body("x");
    assert_eq!(packed.send().await.unwrap().status(), 400);
    assert_eq!(sample::embedded(&folder, "g").await.version(), 1);
}

/// The key is known to another server, and to the same one after a restart.
#[tokio::test]
async fn a_batch_with_a_key_is_applied_once() {
    let (_folder, url) = folder();
    let first = Running::start(writable(&url)).await;
    first.make("g").await;
    let body = json!({"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {"name": "Ann"}}).to_string();
    let (status, answer) =
        first.send("?if_position=feed%3D&source_position=feed%3D1", LINES, Some("\"a-1\""), body.clone()).await;
    assert_eq!((status, &answer["version"], &answer["repeated"]), (200, &json!(2), &json!(false)), "{answer}");
    let second = Running::start(writable(&url)).await;
    for server in [&first, &second] {
        server.lines(person(2, "Bob")).await;
        // In conflict with itself, if it was applied again.
        let (status, again) =
            server.send("?if_position=feed%3D&source_position=feed%3D1", LINES, Some("a-1"), body.clone()).await;
        assert_eq!((status, &again["version"], &again["repeated"]), (200, &json!(2), &json!(true)), "{again}");
        assert_eq!(again["counts"], answer["counts"]);
        let repeated = v1::ApplyRequest { idempotency_key: "a-1".into(), ..request(person(1, "Zoe")) };
        let repeated = server.apply(repeated).await.unwrap();
        assert_eq!((repeated.version, repeated.repeated), (2, true));
    }
    assert_eq!(second.names(&[1]).await, ["Ann"]);
    assert_eq!(second.metric("hoplake_batches_total{outcome=\"REPEATED\"}").await, 2.0);
    // A batch that was rejected leaves no key.
    assert_eq!(first.send("", LINES, Some("b"), knows(1, 7)).await.0, 400);
    first.lines(person(7, "Gil")).await;
    assert_eq!(first.send("", LINES, Some("b"), knows(1, 7)).await.1["repeated"], false);
    for wrong in ["", "x".repeat(256).as_str()] {
        assert_eq!(first.send("", LINES, Some(wrong), person(1, "x")).await.0, 400, "{wrong}");
    }
}

/// The store does not let the manifest through: the answer is unknown, and a repetition finds out.
#[tokio::test]
async fn a_lost_answer_is_found_by_its_key() {
    let (held, opener) = sample::held().await;
    let server = Running::start_with(writable("memory://held"), opener.clone()).await;
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    held.hold_writes("manifest/");
    // A client that leaves while the version is being published.
    let left = server.request("POST", CHANGES).header("content-type", LINES).header("idempotency-key", "left");
    let left = tokio::spawn(left.body(person(2, "Bob")).send());
    until(|| held.held_back.load(Ordering::SeqCst) > 0).await;
    left.abort();
    server.until_metric("hoplake_changes_running", 0.0).await;
    // One whose deadline passes while it waits for that version.
    let (status, problem) = server.send("?time_ms=200", LINES, Some("once"), person(1, "Ann")).await;
    assert_eq!((status, &problem["reason"]), (502, &json!("UNKNOWN")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("same idempotency key"), "{problem}");
    held.release_writes();
    for (key, number, name, version) in [("left", 2, "Bob", 2), ("once", 1, "Ann", 3)] {
        let (status, answer) = server.send("", LINES, Some(key), person(number, name)).await;
        assert_eq!((status, &answer["repeated"], &answer["version"]), (200, &json!(true), &json!(version)), "{answer}");
    }
    assert_eq!(server.names(&[1, 2]).await, ["Ann", "Bob"]);
    let graph = sample::open_held(&opener).await;
    graph.verify(|_| ()).await.unwrap();
}

/// A batch that waits for its version takes its bytes and what was read of it, over gRPC as over HTTP.
#[tokio::test]
async fn a_batch_that_waits_takes_no_more_than_itself() {
    let (held, opener) = sample::held().await;
    let server = Running::start_with(writable("memory://held"), opener).await;
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    held.hold_writes("manifest/");
    let mut client = server.graphs().await;
    let waits = tokio::spawn(async move { client.apply(request(person(1, &"x".repeat(1 << 20)))).await });
    until(|| held.held_back.load(Ordering::SeqCst) > 0).await;
    // Its mebibyte once as it came, and three times as a change.
    let bytes = server.metric("hoplake_memory_bytes").await;
    assert!(bytes > 4e6 && bytes < 5e6, "{bytes}");
    held.release_writes();
    waits.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_graph_says_when_a_compaction_is_due() {
    let folder = sample::in_memory("g").await;
    let server = Running::start(writable(&folder)).await;
    let mut client = server.graphs().await;
    // With the load, four runs of one tier.
    for (commits, due) in [(2, false), (1, true)] {
        for commit in 0..commits {
            server.lines(person(1, &format!("Ann {due} {commit}"))).await;
        }
        let info = server.ask("GET", "/v1/graphs/g", &Value::Null).await;
        assert_eq!(info["compaction_due"], json!(due));
        let request = v1::GetGraphRequest { graph: crate::running::graph("g") };
        assert_eq!(client.get_graph(request).await.unwrap().into_inner().compaction_due, due);
    }
}

/// A version that was committed is known: neither who reads it next nor a repetition asks the store for one.
#[tokio::test]
async fn what_was_committed_is_found_without_a_request() {
    let (held, opener) = sample::held().await;
    let server = Running::start_with(writable("memory://held"), opener).await;
    server.lines(person(1_001, "Ann")).await;
    let before = held.count();
    let (status, answer) = server.send("", LINES, Some("k"), person(1_002, "Bob")).await;
    assert_eq!((status, &answer["version"]), (200, &json!(3)), "{answer}");
    let info = server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    assert_eq!((&info["version"], info["vertices"].as_u64()), (&json!(3), Some(sample::PEOPLE + 12)));
    let again = server.send("", LINES, Some("k"), person(1_002, "Bob")).await.1;
    assert_eq!((&again["repeated"], &again["cost"]["requests"]), (&json!(true), &json!(0)));
    let read = held.log.lock().unwrap()[before..].to_vec();
    // The rest of small objects may be read in the background.
    assert!(read.iter().all(|object| object.contains("/data/")), "{read:?}");
}

/// What is written where a graph was is lost, so a server looks whether it is still there.
#[tokio::test]
async fn a_graph_that_was_deleted_takes_no_batch() {
    let (folder, url) = folder();
    let server = Running::start(Settings { refresh_ms: 50, ..writable(&url) }).await;
    server.make("g").await;
    server.lines(person(1, "Ann")).await;
    // A commit is acknowledged before its hint is written. Written after the folder was moved, the hint would make the folder again.
    let read = |name: &str| std::fs::read(folder.path().join("g").join(name)).ok();
    until(|| read("hint") == read("manifest/00000000000000000002.hlm")).await;
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::rename(folder.path().join("g"), elsewhere.path().join("g")).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    let (status, problem) = server.send("", LINES, None, person(2, "Bob")).await;
    assert_eq!((status, &problem["reason"]), (404, &json!("NOT_FOUND")), "{problem}");
    assert!(!folder.path().join("g").exists());
    // Another graph there is another one.
    assert_eq!(server.make("g").await.0, 201);
    assert_eq!(server.lines(person(3, "Cem")).await["version"], 2);
}

/// A graph that is remembered as absent, and was loaded since, is not hidden by an empty one in a folder that is looked at first.
#[tokio::test]
async fn a_graph_is_not_made_before_one_that_is_there() {
    let first = sample::in_memory("a").await;
    let second = sample::in_memory("b").await;
    let server = Running::start(Settings { graphs: vec![first.clone(), second.clone()], ..writable("") }).await;
    assert_eq!(server.try_ask("GET", "/v1/graphs/loaded", &Value::Null).await.0, 404);
    sample::add(&second, "loaded", 7).await;
    let (status, problem) = server.make("loaded").await;
    assert_eq!((status, &problem["reason"]), (409, &json!("CONFLICT")), "{problem}");
    assert!(Graph::open(&format!("{first}/loaded")).await.is_err());
}

/// Writers of both protocols at once. The server is killed and another one takes over; who got no answer asks again with its key.
#[tokio::test]
async fn no_acknowledged_change_is_lost_or_doubled() {
    const WRITERS: i64 = 16;
    const BATCHES: i64 = 8;
    let (_folder, url) = folder();
    let mut server = Running::start(Settings { grace_ms: 0, ..writable(&url) }).await;
    server.make("g").await;
    let mut acknowledged = BTreeSet::new();
    let mut versions = BTreeSet::new();
    for round in 0..2 {
        let mut writers = Vec::new();
        for writer in 0..WRITERS {
            let mut grpc = server.graphs().await;
            let http = server.request("POST", CHANGES);
            writers.push(tokio::spawn(async move {
                let mut done = Vec::new();
                for batch in 0..BATCHES {
                    let key = writer * 1_000 + batch;
                    let name = format!("w{writer}-{batch}");
                    // Half of the first round's batches come again in the second.
                    if writer % 2 == 0 {
                        let apply = v1::ApplyRequest { idempotency_key: name.clone(), ..request(person(key, &name)) };
                        let Ok(answer) = grpc.apply(apply).await else { break };
                        done.push((key, answer.into_inner().version));
                    } else {
                        let http =
                            http.try_clone().unwrap().header("content-type", LINES).header("idempotency-key", &name);
                        let Ok(answer) = http.body(person(key, &name)).send().await else { break };
                        if answer.status() != 200 {
                            break;
                        }
                        let Ok(answer) = answer.json::<Value>().await else { break };
                        done.push((key, answer["version"].as_u64().unwrap()));
                    }
                }
                done
            }));
        }
        if round == 0 {
            // Some are acknowledged, and others are on their way.
            while server.metric("hoplake_batches_total{outcome=\"COMMITTED\"}").await < 24.0 {}
            server.stop();
        }
        for writer in writers {
            for (key, version) in writer.await.unwrap() {
                acknowledged.insert(key);
                versions.insert(version);
            }
        }
        if round == 0 {
            assert!(!acknowledged.is_empty());
            let next = Running::start(writable(&url)).await;
            std::mem::replace(&mut server, next).ended().await;
            // What was acknowledged before is there, whatever happened to the rest.
            let keys: Vec<_> = acknowledged.iter().copied().collect();
            assert_eq!(server.names(&keys).await.len(), keys.len());
        }
    }
    assert_eq!(acknowledged.len() as i64, WRITERS * BATCHES);
    let graph = Graph::open(&format!("{url}/g")).await.unwrap();
    // Each batch adds one vertex, and no key was applied twice.
    let applied: usize = graph.manifest().applied.iter().map(|of| of.requests.len()).sum();
    let unique: BTreeSet<_> = graph.manifest().applied.iter().flat_map(|of| &of.requests).collect();
    assert_eq!((applied as i64, unique.len() as i64), (WRITERS * BATCHES, WRITERS * BATCHES));
    assert_eq!(graph.info().await.unwrap().vertices as i64, WRITERS * BATCHES);
    // They share versions: without group commit there would be one for each batch.
    assert!(graph.version() < (WRITERS * BATCHES) as u64, "{}", graph.version());
    assert!(versions.iter().all(|version| *version <= graph.version()));
    graph.verify(|_| ()).await.unwrap();
}

/// A graph is made at its own URL, or below the first folder of graphs.
#[tokio::test]
async fn a_graph_is_made_where_it_is_looked_for() {
    let graph = sample::in_memory("g").await;
    let folder = sample::in_memory("other").await;
    let graphs = vec![format!("{graph}/g"), format!("own={folder}/deep/own"), folder.clone()];
    let server = Running::start(Settings { graphs, ..writable("") }).await;
    // Asked for before, and remembered as absent.
    assert_eq!(server.try_ask("GET", "/v1/graphs/new", &Value::Null).await.0, 404);
    assert_eq!(server.make("new").await.0, 201);
    assert_eq!(server.ask("GET", "/v1/graphs/new", &Value::Null).await["vertices"], 0);
    assert_eq!(server.make("own").await.0, 201);
    assert_eq!(sample::embedded(&folder, "new").await.version(), 1);
    assert_eq!(sample::embedded(&folder, "deep/own").await.version(), 1);
    let (status, problem) = server.make("a..b").await;
    assert_eq!((status, &problem["reason"]), (400, &json!("INVALID")), "{problem}");
    let made = v1::CreateGraphRequest { graph: "by-grpc".into() };
    let made = server.graphs().await.create_graph(made).await.unwrap().into_inner();
    assert_eq!(made, v1::CreateGraphResponse { version: 1, created: true });
    let single = Running::start(writable(&format!("x={graph}/g"))).await;
    assert_eq!(single.make("y").await.0, 400);
}

/// None of these takes the memory or the server with it.
#[tokio::test]
async fn hostile_bodies_are_rejected() {
    let folder = sample::in_memory("g").await;
    let budget = 64 << 20;
    let limits = LimitSettings { memory_bytes_max: 2 << 20, ..LimitSettings::default() };
    let server = Running::start(Settings { memory_bytes_max: budget, limits, ..writable(&folder) }).await;
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(
        "{{\"op\": \"upsert_vertex\", \"label\": \"Person\", \"key\": 1, \"properties\": {{\"tags\": {deep}}}}}"
    );
    let long = format!("{{\"op\": \"upsert_vertex\", \"label\": \"{}\"", "x".repeat(3 << 20));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["Person"]));
    let key: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let stream = arrow(vec![("label", text), ("key", key)]);
    let mut bodies: Vec<(&str, Vec<u8>)> = vec![
        (LINES, deep.into()),
        (LINES, long.into()),
        (LINES, vec![0xff; 1_000]),
        (LINES, vec![b'{'; 1_000_000]),
        ("text/csv", b"label,key\nPerson,\"1\n".to_vec()),
        ("text/csv", vec![b','; 1_000_000]),
        (ARROW, vec![0xff; 1_000]),
        (ARROW, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f].to_vec()),
    ];
    bodies.extend((0..stream.len()).step_by(7).map(|cut| (ARROW, stream[..cut].to_vec())));
    bodies.push((ARROW, overlapping()));
    for (kind, body) in bodies {
        let head = body[..body.len().min(40)].to_vec();
        let (status, problem) = server.send("", kind, None, body).await;
        assert_eq!((status, &problem["reason"]), (400, &json!("INVALID")), "{kind} {head:?}: {problem}");
        assert!(problem["detail"].as_str().unwrap().len() < 500, "{problem}");
    }
    // More changes than the memory of a batch, and a body beyond any.
    let many: String = (0..20_000).map(|key| person(key, "x")).collect();
    let (status, problem) = server.send("", LINES, None, many).await;
    assert_eq!((status, &problem["reason"]), (422, &json!("LIMIT")), "{problem}");
    let (status, problem) = server.send("", LINES, None, vec![b' '; 5 << 20]).await;
    assert_eq!((status, &problem["reason"]), (413, &json!("TOO_LARGE")), "{problem}");
    server.until_metric("hoplake_memory_bytes", 0.0).await;
    assert_eq!(sample::embedded(&folder, "g").await.version(), 1);
}
