//! Prepared queries over HTTP, gRPC and Gremlin, and the cache of results.

use hoplake::{Graph, QueryEdition, Store, gremlin};
use hoplake_server::{ResultSettings, Settings, v1};
use serde_json::{Value, json};

use crate::{
    running::{Running, all, graph, settings},
    sample,
};

const TEXT: &str = "g.V(who).out('knows').dedup().limit(most).values('name')";
const SOME: &str = "/v1/graphs/social/queries/friends";

fn friends() -> Value {
    json!({"text": TEXT, "parameters": [{"name": "who", "type": "string"}, {"name": "most", "type": "int64", "default": 3}]})
}

async fn writable(folder: &str) -> Running {
    Running::start(Settings { writable: true, ..settings(folder) }).await
}

/// A server whose graph has the query.
async fn with_friends(folder: &str) -> Running {
    let server = writable(folder).await;
    let (status, saved) = server.try_ask("PUT", SOME, &friends()).await;
    assert_eq!((status, &saved["number"]), (201, &json!(1)), "{saved}");
    server
}

async fn call(server: &Running, parameters: Value) -> Value {
    server.ask("POST", SOME, &json!({"parameters": parameters})).await
}

#[tokio::test]
async fn a_query_is_saved_called_and_deleted() {
    let folder = sample::in_memory("social").await;
    let server = with_friends(&folder).await;
    let text = TEXT.replace("who", "'Person:1'").replace("most", "3");
    let expected = sample::embedded(&folder, "social").await.gremlin().query(&text).await.unwrap();
    let expected = Value::from_iter(expected.iter().map(gremlin::value::Value::to_json));
    assert_eq!(expected.as_array().unwrap().len(), 3);
    let answer = call(&server, json!({"who": "Person:1"})).await;
    assert_eq!((&answer["results"], &answer["version"], &answer["cached"]), (&expected, &json!(2), &json!(false)));
    assert!(answer["cost"]["waves"].as_u64().unwrap() > 0, "{answer}");

    // The same again is no new edition.
    let (status, same) = server.try_ask("PUT", SOME, &friends()).await;
    assert_eq!((status, &same["number"], &same["version"]), (200, &json!(1), &json!(2)));
    let (status, second) = server.try_ask("PUT", SOME, &json!({"text": "g.V().count()"})).await;
    assert_eq!((status, &second["number"]), (201, &json!(2)));
    assert_eq!(call(&server, json!({})).await["results"], json!([266]));
    let old = format!("{SOME}@1");
    let body = json!({"parameters": {"who": "Person:1", "most": 1}});
    assert_eq!(server.ask("POST", &old, &body).await["results"], json!([expected[0]]));

    let listed = server.ask("GET", "/v1/graphs/social/queries", &Value::Null).await;
    let queries = listed["queries"].as_array().unwrap();
    assert_eq!((queries.len(), &queries[0]["text"], &queries[1]["number"]), (2, &json!(TEXT), &json!(2)), "{listed}");
    assert_eq!(queries[0]["parameters"], friends()["parameters"]);

    server.ask("DELETE", &format!("{SOME}@2"), &Value::Null).await;
    assert_eq!(call(&server, json!({"who": "Person:1"})).await["results"], expected);
    server.ask("DELETE", SOME, &Value::Null).await;
    let (status, missing) = server.try_ask("POST", SOME, &json!({})).await;
    assert_eq!((status, &missing["reason"]), (404, &json!("NOT_FOUND")), "{missing}");
    assert_eq!(server.try_ask("DELETE", SOME, &Value::Null).await.0, 404);
}

#[tokio::test]
async fn grpc_and_drivers_call_it_too() {
    let folder = sample::in_memory("social").await;
    let server = writable(&folder).await;
    let mut client = server.graphs().await;
    let parameter = |name: &str, kind: &str, default: Option<&str>| v1::QueryParameter {
        name: name.into(),
        r#type: kind.into(),
        default: default.map(str::to_owned),
    };
    let saved = client.save_query(v1::SaveQueryRequest {
        graph: "social".into(),
        name: "friends".into(),
        text: TEXT.into(),
        parameters: vec![parameter("who", "string", None), parameter("most", "int64", Some("3"))],
        description: "whom someone knows".into(),
    });
    assert_eq!(saved.await.unwrap().into_inner(), v1::SaveQueryResponse { number: 1, version: 2 });
    let listed = client.list_queries(v1::ListQueriesRequest { graph: graph("social") }).await.unwrap().into_inner();
    assert_eq!((listed.queries.len(), &*listed.queries[0].description), (1, "whom someone knows"));
    let by_http = call(&server, json!({"who": "Person:1"})).await["results"].clone();
    let request = v1::CallQueryRequest {
        graph: graph("social"),
        query: "friends".into(),
        parameters: [("who".to_owned(), "\"Person:1\"".to_owned())].into(),
        limits: None,
    };
    let results = |answers: &[v1::GremlinResponse]| {
        let texts = answers.iter().flat_map(|answer| &answer.results);
        Value::from_iter(texts.map(|text| serde_json::from_str::<Value>(text).unwrap()))
    };
    let answers = all(client.call_query(request).await).await;
    assert_eq!(results(&answers), by_http);
    assert_eq!(answers.last().unwrap().version, 2);
    // By the step, with a step behind it.
    let text = "g.call('friends', [who: person, most: 2]).count()";
    let request = v1::GremlinRequest {
        graph: graph("social"),
        gremlin: text.into(),
        bindings: [("person".to_owned(), "\"Person:1\"".to_owned())].into(),
        limits: None,
    };
    assert_eq!(results(&all(client.gremlin(request).await).await), json!([2]));
    let body = json!({"gremlin": text, "bindings": {"person": "Person:1"}});
    assert_eq!(server.ask("POST", "/v1/graphs/social/gremlin", &body).await["results"], json!([2]));
    let names = server.ask("POST", "/v1/graphs/social/gremlin", &json!({"gremlin": "g.call()"})).await;
    assert_eq!(names["results"], json!(["friends"]));
    let request = v1::DeleteQueryRequest { graph: "social".into(), query: "friends".into() };
    assert_eq!(client.delete_query(request).await.unwrap().into_inner().version, 3);
}

#[tokio::test]
async fn mistakes_are_explained() {
    let folder = sample::in_memory("social").await;
    let server = with_friends(&folder).await;
    for (body, says) in [
        (json!({}), "needs parameter who; it takes who: string, most: int64 = 3"),
        (json!({"parameters": {"who": 7}}), "takes a string as parameter who, and 7 is not one"),
        (json!({"parameters": {"who": "a", "most": 1.5}}), "takes a int64 as parameter most"),
        (json!({"parameters": {"who": "a", "other": 1}}), "has no parameter other"),
        (json!({"parameters": {"who": {"@type": "g:Nothing", "@value": 1}}}), "the value of who cannot be read"),
        (json!({"parameter": {}}), "unknown field `parameter`"),
        (json!({"parameters": {"who": "x".repeat(100_000), "most": "x".repeat(100_000)}}), "takes a int64"),
    ] {
        let (status, problem) = server.try_ask("POST", SOME, &body).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(status == 400 && detail.contains(says) && detail.len() < 400, "{says}: {problem}");
    }
    let put = |path: String, body: Value| {
        let server = &server;
        async move {
            let (status, problem) = server.try_ask("PUT", &path, &body).await;
            assert_eq!(status, 400, "{problem}");
            problem["detail"].as_str().unwrap().to_owned()
        }
    };
    let some = || SOME.to_owned();
    assert!(put(some(), json!({"text": "g.V("})).await.contains("line 1, column 5"));
    assert!(put(some(), json!({"text": "g.V().io('x')"})).await.contains("`io` is not supported"));
    assert!(put(some(), json!({"text": "g.V(who)"})).await.contains("`who` has no value"));
    assert!(put(some(), json!({"text": "x".repeat(20_000)})).await.len() < 400);
    let long = format!("g.inject('{}')", "x".repeat(20_000));
    assert!(put(some(), json!({"text": long})).await.contains("16384 is the most"));
    let deep = format!("g.V(){}{}", ".where(__.out()".repeat(900), ")".repeat(900));
    assert!(put(some(), json!({"text": deep})).await.contains("deep"));
    let wrong = json!({"text": "g.V(who)", "parameters": [{"name": "who", "type": "text"}]});
    assert!(put(some(), wrong).await.contains("\"text\" is not the type of a parameter"));
    for name in ["7", "a@2", "%0A", &"a".repeat(300)] {
        let detail = put(format!("/v1/graphs/social/queries/{name}"), json!({"text": "g.V()"})).await;
        assert!(detail.contains("cannot be the name of a query"), "{detail}");
    }
    let read_only = Running::start(settings(&folder)).await;
    assert_eq!(read_only.try_ask("PUT", SOME, &friends()).await.0, 403);
    assert_eq!(read_only.try_ask("DELETE", SOME, &Value::Null).await.0, 403);
    assert_eq!(call(&read_only, json!({"who": "Person:1"})).await["results"].as_array().unwrap().len(), 3);
    let arrow = server.request("POST", SOME).header("accept", "application/vnd.apache.arrow.stream");
    assert_eq!(arrow.json(&json!({"parameters": {"who": "Person:1"}})).send().await.unwrap().status(), 400);
    let lines = server.request("POST", SOME).header("accept", "application/x-ndjson");
    let lines = lines.json(&json!({"parameters": {"who": "Person:1"}})).send().await.unwrap().text().await.unwrap();
    assert_eq!(lines.lines().count(), 4, "{lines}");
}

#[tokio::test]
async fn what_is_asked_again_is_kept_and_never_stale() {
    let folder = sample::in_memory("social").await;
    let server = with_friends(&folder).await;
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(call(&server, json!({"who": "Person:1"})).await);
    }
    let cached = Vec::from_iter(answers.iter().map(|answer| answer["cached"].as_bool().unwrap()));
    assert_eq!(cached, [false, false, true, true]);
    assert!(answers.iter().all(|answer| answer["results"] == answers[0]["results"]));
    let cost = &answers[3]["cost"];
    assert_eq!((cost["waves"].as_u64(), cost["cache_hits"].as_u64()), (Some(0), Some(0)), "{cost}");
    for (counter, value) in [("hits", 2.0), ("misses", 1.0), ("first_askings", 1.0)] {
        assert_eq!(server.metric(&format!("hoplake_result_cache_{counter}_total")).await, value, "{counter}");
    }
    // Another parameter is another key, and so is a new version; the old one is still answered as it was.
    assert_eq!(call(&server, json!({"who": "Person:1", "most": 2})).await["cached"], json!(false));
    let count = json!({"gremlin": "g.V().hasLabel('Person').count()"});
    let path = "/v1/graphs/social/gremlin";
    for _ in 0..3 {
        assert_eq!(server.ask("POST", path, &count).await["results"], json!([256]));
    }
    let add = json!({"gremlin": "g.addV('Person').property(T.id, 1000).property('name', 'New').values('name')"});
    for _ in 0..1 {
        assert_eq!(server.ask("POST", path, &add).await["results"], json!(["New"]));
    }
    let fresh = server.ask("POST", path, &count).await;
    assert_eq!((&fresh["results"], &fresh["cached"]), (&json!([257]), &json!(false)));
    let old = json!({"gremlin": "g.V().hasLabel('Person').count()", "version": 2});
    assert_eq!(server.ask("POST", path, &old).await["results"], json!([256]));
    // A version that is named is read alone.
    let write = json!({"gremlin": "g.addV('Person')", "version": 2});
    assert_eq!(server.try_ask("POST", path, &write).await.0, 403);
}

#[tokio::test]
async fn what_writes_or_varies_is_not_kept() {
    let folder = sample::in_memory("social").await;
    let server = writable(&folder).await;
    let path = "/v1/graphs/social/gremlin";
    for text in [
        "g.V().hasLabel('Town').order().by(shuffle).limit(1)",
        "g.V().hasLabel('Town').sample(1)",
        "g.inject(1).coin(0.5)",
        "g.inject(datetime())",
        "g.addV('Person').property('name', 'x').values('name')",
    ] {
        for _ in 0..3 {
            let answer = server.ask("POST", path, &json!({"gremlin": text})).await;
            assert_eq!(answer["cached"], json!(false), "{text}");
        }
    }
    assert_eq!(server.metric("hoplake_result_cache_first_askings_total").await, 0.0);
    assert_eq!(server.metric("hoplake_result_cache_entries").await, 0.0);
    let added = json!({"gremlin": "g.V().has('name', 'x').count()"});
    assert_eq!(server.ask("POST", path, &added).await["results"], json!([3]));
    // What it would keep it does not, if there is no budget.
    let none = Settings { results: ResultSettings { bytes_max: 0, ..Default::default() }, ..settings(&folder) };
    let server = Running::start(none).await;
    for _ in 0..3 {
        assert_eq!(server.ask("POST", path, &added).await["cached"], json!(false));
    }
}

#[tokio::test]
async fn large_results_and_deadlines() {
    let folder = sample::in_memory("social").await;
    let results = ResultSettings { entry_bytes_max: 1_000, ..ResultSettings::default() };
    let server = Running::start(Settings { results, ..settings(&folder) }).await;
    let path = "/v1/graphs/social/gremlin";
    let all = json!({"gremlin": "g.V().hasLabel('Person').values('name')"});
    for _ in 0..4 {
        let answer = server.ask("POST", path, &all).await;
        assert_eq!((answer["results"].as_array().unwrap().len(), &answer["cached"]), (256, &json!(false)));
    }
    assert_eq!(server.metric("hoplake_result_cache_too_large_total").await, 1.0);
    let endless = json!({"gremlin": "g.inject(1).repeat(__.identity()).times(1000000000)", "limits": {"time_ms": 100}});
    for _ in 0..3 {
        let (status, problem) = server.try_ask("POST", path, &endless).await;
        assert_eq!((status, &problem["reason"]), (504, &json!("TIME")), "{problem}");
    }
    // Three at a time: two of them wait for the third, and none for longer than its own time.
    let asked = (0..3).map(|_| server.try_ask("POST", path, &endless));
    for (status, problem) in futures::future::join_all(asked).await {
        assert_eq!(status, 504, "{problem}");
    }
    assert_eq!(server.metric("hoplake_memory_bytes").await, 0.0);
}

#[tokio::test]
async fn another_server_finds_what_one_saved() {
    let folder = sample::in_memory("social").await;
    let first = writable(&folder).await;
    let second = writable(&folder).await;
    assert_eq!(second.try_ask("POST", SOME, &json!({})).await.0, 404);
    first.try_ask("PUT", SOME, &friends()).await;
    second.ask("POST", "/v1/graphs/social/refresh", &Value::Null).await;
    let [one, other] =
        [call(&first, json!({"who": "Person:2"})).await, call(&second, json!({"who": "Person:2"})).await];
    assert_eq!(one["results"], other["results"]);
    // Both save at once: each gets a number.
    let bodies = [json!({"text": "g.V().count()"}), json!({"text": "g.E().count()"})];
    let (a, b) = tokio::join!(first.try_ask("PUT", SOME, &bodies[0]), second.try_ask("PUT", SOME, &bodies[1]));
    let mut numbers = [a.1["number"].as_u64(), b.1["number"].as_u64()];
    numbers.sort_unstable();
    assert_eq!(numbers, [Some(2), Some(3)], "{a:?} {b:?}");
    // A load keeps them, as it keeps tags.
    sample::add(&folder, "social", 8).await;
    let graph = sample::embedded(&folder, "social").await;
    assert_eq!(graph.queries().0["friends"].editions.len(), 3);
    let store = Store::open(&format!("{folder}/social")).unwrap();
    let edition = QueryEdition { text: "g.V(".into(), ..QueryEdition::default() };
    assert!(Graph::save_query(&store, "x", &edition).await.is_err());
}
