//! Gremlin over HTTP, as the drivers of TinkerPop 4 ask it.

use std::{process::Stdio, time::Instant};

use hoplake::{Graph, Store};
use hoplake_server::Settings;
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt, process::Command};

use crate::{
    limits::ENDED_WITHIN,
    running::{Running, settings},
    sample,
};

const GRAPH_BINARY: &str = "application/vnd.graphbinary-v4.0";

/// The server has a folder of graphs, of which none is the usual one.
async fn ask(server: &Running, mut body: Value) -> (u16, Value) {
    body["g"] = "social".into();
    server.try_ask("POST", "/gremlin", &body).await
}

#[tokio::test]
async fn a_text_is_answered_with_results_and_a_status() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(settings(&folder)).await;
    let query = "g.V('Person:1').out('knows').dedup().count()";
    let count = sample::embedded(&folder, "social").await.gremlin().query(query).await.unwrap()[0].to_json();
    let good = json!({"code": 200, "message": "", "exception": ""});
    for body in [
        json!({"gremlin": query}),
        json!({"gremlin": query, "language": "gremlin-lang", "userAgent": "x", "batchSize": 1}),
        json!({"gremlin": query.replace("'Person:1'", "who"), "parameters": "[who: 'Person:1']"}),
        json!({"gremlin": query.replace("'Person:1'", "who"), "bindings": {"who": "Person:1"}}),
    ] {
        assert_eq!(ask(&server, body).await, (200, json!({"result": {"data": [count]}, "status": good})));
    }
    let none = ask(&server, json!({"gremlin": "g.V().limit(0)"})).await;
    assert_eq!(none, (200, json!({"result": {"data": []}, "status": good})));
    let vertex = json!({"gremlin": "g.V('Person:1')", "materializeProperties": "tokens"});
    assert!(ask(&server, vertex).await.1["result"]["data"][0].get("properties").is_none());

    let bytes = server.request("POST", "/gremlin").header("accept", GRAPH_BINARY);
    let bytes = bytes.json(&json!({"gremlin": query, "g": "social"}));
    let answer = bytes.send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], GRAPH_BINARY);
    let long = [&[0x02, 0][..], &count.as_i64().unwrap().to_be_bytes()].concat();
    // A long, the marker, 200, and neither message nor exception.
    let expected = [&[0x84, 0][..], &long, &[0xfd, 0, 0, 0, 0, 0, 200, 1, 1]].concat();
    assert_eq!(answer.bytes().await.unwrap(), expected);
}

/// What values of names take when they are read is counted before, and a server that has not as much rejects them.
#[tokio::test]
async fn parameters_as_text_count_before_they_are_read() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(Settings { memory_bytes_max: 16 << 20, ..settings(&folder) }).await;
    let asked = |entries: usize| {
        let body = json!({"gremlin": "g.inject(1)", "parameters": format!("[{}a:1]", "a:1,".repeat(entries))});
        let server = &server;
        async move { ask(server, body).await }
    };
    assert_eq!(asked(10_000).await.0, 200);
    // 400 KB take 13 MB as a body, and 40 MB as values.
    let (status, rejection) = asked(100_000).await;
    assert_eq!(status, 413, "{rejection}");
}

/// The plans of all statements of a text are made before the first of them runs.
#[tokio::test]
async fn plans_of_many_statements_count() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(Settings { memory_bytes_max: 8 << 20, ..settings(&folder) }).await;
    let asked = |statements: usize| {
        let body = json!({"gremlin": format!("{}g.inject(2)", "g.inject(1);".repeat(statements))});
        let server = &server;
        async move { ask(server, body).await }
    };
    assert_eq!(asked(1_000).await.0, 200);
    // 120 KB take 4 MB as a body, and the plans 10 MB.
    let (status, rejection) = asked(10_000).await;
    assert_eq!(status, 422, "{rejection}");
}

/// A text that takes long to read, to plan or to make values of has no answer after its deadline, whatever it is made of.
#[tokio::test]
async fn large_texts_end_at_their_deadline() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(settings(&folder)).await;
    let many = |begin: &str, part: &str, end: &str| format!("{begin}{}{end}", part.repeat(40_000));
    for query in [
        many("g.inject(", "1,", "1)"),
        many("g.inject(", "'a',", "'a')"),
        many("g.inject([", "1,", "1])"),
        many("g.inject({", "1,", "1})"),
        many("g.inject([", "a:1,", "a:1])"),
        many("g.inject([", "[],", "[]])"),
        many("g.V().has('age', within(", "1,", "1))"),
        many("g.union(", "V(),", "V())"),
        many("", "g.inject(1);", "g.inject(1)"),
        many("g.inject(1)", ".identity()", ""),
    ] {
        let begun = Instant::now();
        let (status, answer) = ask(&server, json!({"gremlin": query, "timeoutMillis": 1})).await;
        assert_eq!(status, 504, "{}: {answer}", &query[..30]);
        assert!(begun.elapsed() < ENDED_WITHIN, "{}: {:?}", &query[..30], begun.elapsed());
        let begun = Instant::now();
        let (status, answer) = ask(&server, json!({"gremlin": "g.inject(1)"})).await;
        assert_eq!(status, 200, "{answer}");
        assert!(begun.elapsed() < ENDED_WITHIN, "after {}: {:?}", &query[..30], begun.elapsed());
    }
}

#[tokio::test]
async fn what_is_wrong_has_a_status() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(Settings { token: Some("s3cret".into()), ..settings(&folder) }).await;
    let stranger = server.request("POST", "/gremlin").json(&json!({"gremlin": "g.V()"})).send().await.unwrap();
    assert_eq!(stranger.status(), 401);
    let known = |accept: &str, body: String| {
        let asked = server.request("POST", "/gremlin").basic_auth("ann", Some("s3cret")).header("accept", accept);
        asked.body(body).send()
    };
    for (status, body, why) in [
        (400, json!({"gremlin": "g.V("}), "line 1"),
        (400, json!({"gremlin": "g.V().program()"}), "`program` is not supported"),
        (400, json!({"gremlin": "g.V(who)"}), "`who` has no value"),
        (400, json!({"gremlin": "g.V(who)", "parameters": "[who: 1].out()"}), "parameters are not a map"),
        (400, json!({"gremlin": "g.V(who)", "parameters": "g.V()"}), "parameters are not a map"),
        (400, json!({"gremlin": "g.V(who)", "parameters": "1), g.V("}), "parameters are not a map"),
        (400, json!({"gremlin": "g.V()", "language": "sql"}), "`language` must be gremlin-lang"),
        (400, json!({"gremlin": "g.V()", "transactionId": "x"}), "transactions over several requests"),
        (400, json!({"gremlin": "g.tx().begin()"}), "transactions over several requests"),
        (400, json!({"gremlin": "g.tx().commit()"}), "transactions over several requests"),
        (400, json!({"gremlin": "g.tx().rollback()"}), "transactions over several requests"),
        (400, json!({"gremlin": "g.V()", "materializeProperties": "some"}), "`materializeProperties` must be"),
        (400, json!({"gremlin": 1}), "at gremlin"),
        (400, json!({}), "missing field"),
        (404, json!({"gremlin": "g.V()", "g": "nothing"}), "there is no graph"),
        (403, json!({"gremlin": "g.addV('a')"}), "does not write"),
    ] {
        let answer = known("application/json", body.to_string()).await.unwrap();
        assert_eq!(answer.status(), status, "{body}");
        let answer: Value = answer.json().await.unwrap();
        let message = answer["status"]["message"].as_str().unwrap();
        assert!(answer["status"]["code"] == status && message.contains(why), "{body}: {answer}");
        let binary = known(GRAPH_BINARY, body.to_string()).await.unwrap();
        assert_eq!(
            (binary.status().as_u16(), &binary.headers()["content-type"]),
            (status, &GRAPH_BINARY.parse().unwrap())
        );
        let binary = binary.bytes().await.unwrap();
        assert_eq!(binary[..9], [0x84, 0, 0xfd, 0, 0, 0, 0, (status >> 8) as u8, status as u8]);
    }
    for body in ["", "{", "[1]", "\u{0}", &"[".repeat(100_000)] {
        assert_eq!(known("application/json", body.into()).await.unwrap().status(), 400);
    }
    // It ends at its time, by whichever name that is said.
    const ENDLESS: &str = "inject(1).repeat(__.identity()).times(1000000000)";
    let of_text = |name: &str| json!({"gremlin": format!("g.with('{name}', 200).{ENDLESS}"), "g": "social"});
    let of_body = |name: &str| json!({"gremlin": format!("g.{ENDLESS}"), "g": "social", name: 200});
    for body in [
        of_body("timeoutMillis"),
        of_body("evaluationTimeout"),
        of_body("timeoutMs"),
        of_text("timeoutMillis"),
        of_text("evaluationTimeout"),
        of_text("scriptEvaluationTimeout"),
    ] {
        for accept in ["application/json", GRAPH_BINARY] {
            assert_eq!(known(accept, body.to_string()).await.unwrap().status(), 504, "{body}");
        }
    }
}

/// What comes after the first piece has its status at the end.
#[tokio::test]
async fn a_failure_behind_results_is_at_the_end() {
    let folder = sample::in_memory("social").await;
    let mut settings = settings(&folder);
    settings.limits.results_max = 2_000;
    let server = Running::start(settings).await;
    let text = "x".repeat(1_000);
    let gremlin = format!("g.inject('{text}').repeat(union(identity(), identity())).times(12)");
    let (status, answer) = ask(&server, json!({"gremlin": gremlin})).await;
    assert_eq!((status, &answer["status"]["code"]), (200, &json!(422)), "{}", answer["status"]);
    assert_eq!(answer["result"]["data"].as_array().unwrap().len(), 2_000);
    let binary = server.request("POST", "/gremlin").header("accept", GRAPH_BINARY);
    let binary = binary.json(&json!({"gremlin": gremlin, "g": "social"}));
    let bytes = binary.send().await.unwrap().bytes().await.unwrap();
    let end = bytes.windows(7).rposition(|window| window == [0xfd, 0, 0, 0, 0, 1, 166]).unwrap();
    assert!(String::from_utf8_lossy(&bytes[end..]).contains("more than 2000 results"));
}

/// What users of the Python driver do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_driver_of_tinkerpop_4_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().to_str().unwrap();
    Graph::create(&Store::open(&format!("{url}/new")).unwrap()).await.unwrap();
    let server = Running::start(Settings { token: Some("s3cret".into()), writable: true, ..settings(url) }).await;
    let python = tokio::task::spawn_blocking(hoplake_testkit::gremlin_python_4).await.unwrap().unwrap();
    let script = include_str!("gremlin_driver_4.py");
    let mut driver = Command::new(python)
        .args(["-c", script, &format!("http://{}/gremlin", server.http), "s3cret"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = [0; 6];
    if driver.stdout.as_mut().unwrap().read_exact(&mut said).await.is_err() {
        let output = driver.wait_with_output().await.unwrap();
        panic!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(&said, b"asked\n");
    server.until_metric("hoplake_queries_running", 1.0).await;
    driver.kill().await.unwrap();
    server.until_metric("hoplake_queries_running", 0.0).await;
}
