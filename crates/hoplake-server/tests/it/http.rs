//! HTTP/JSON answers as gRPC and the embedded facade do, and its document describes it.

use std::collections::BTreeSet;

use hoplake::{Hop, StartKey, Traversal, TraversalRequest};
use hoplake_server::Settings;
use serde_json::{Value, json};

use crate::{
    running::{Running, settings},
    sample,
};

#[tokio::test]
async fn every_call_answers_as_the_facade() {
    let folder = sample::in_memory("social").await;
    let graph = sample::embedded(&folder, "social").await;
    let server = Running::start(settings(&folder)).await;

    let info = server.ask("GET", "/v1/graphs/social", &Value::Null).await;
    assert_eq!(info["edges"], graph.info().await.unwrap().edges);
    let found = json!({"vertices": ["Person:5", {"label": "Town", "key": "t3"}, {"label": "Person", "key": 99_999}]});
    let found = server.ask("POST", "/v1/graphs/social/look-up", &found).await;
    let mut query = graph.query();
    let keys = [("Person", 5.into()), ("Town", "t3".into()), ("Person", 99_999.into())];
    let vertices = query.vertices(&keys).await.unwrap();
    let ids: Vec<_> = vertices.iter().map(|vertex| vertex.map(|vertex| vertex.to_string())).collect();
    assert_eq!(found["ids"], json!(ids));

    // By the id that was found, and with the hop in parts.
    let hop = json!({"direction": "out", "labels": ["knows"],
        "condition": "since >= 2010"});
    let body = json!({"vertices": [{"id": ids[0]}], "hop": hop, "keys": true});
    let answer = server.ask("POST", "/v1/graphs/social/neighbors", &body).await;
    let from = [vertices[0].unwrap()];
    let edges = query.neighbors(&from, &"out:knows[since>=2010]".parse().unwrap()).await.unwrap();
    let keys = query.keys_of(&edges.iter().map(|edge| edge.to).collect::<Vec<_>>()).await.unwrap();
    assert!(!edges.is_empty());
    for ((edge, key), answer) in edges.iter().zip(keys).zip(answer["edges"].as_array().unwrap()) {
        assert_eq!(
            (&answer["to"], &answer["to_key"]),
            (&json!(edge.to.to_string()), &json!(key.to_string().parse::<i64>().unwrap()))
        );
        assert_eq!(
            (&answer["label"], &answer["direction"], &answer["to_label"]),
            (&json!("knows"), &json!("out"), &json!("Person"))
        );
    }
    assert_eq!(answer["edges"].as_array().unwrap().len(), edges.len());

    let body = json!({"vertices": ["Person:14", "Town:t3"], "select": ["name", "age", "tags", "born", "height"]});
    let rows = server.ask("POST", "/v1/graphs/social/properties", &body).await;
    let person = json!({"name": "P, 14", "age": null, "born": "1990-01-15", "height": 2.5});
    for (name, value) in person.as_object().unwrap() {
        assert_eq!(
            &rows["rows"].as_array().unwrap().iter().find(|row| row["key"] == 14).unwrap()["properties"][name],
            value
        );
    }
    assert!(rows["rows"].as_array().unwrap().iter().any(|row| row["key"] == "t3" && row["label"] == "Town"));
    traversals(&server, &graph).await;
}

async fn traversals(server: &Running, graph: &hoplake::Graph) {
    let hops: Vec<Hop> = vec!["out:knows".parse().unwrap(), "out:livesIn".parse().unwrap()];
    let starts: Vec<StartKey> = vec!["Person:1".parse().unwrap()];
    let traversal = Traversal { hops, ..Traversal::default() };
    let request = TraversalRequest { starts, traversal, select: Some(vec!["name".into()]), limit: None };
    let expected = graph.query().run(&request).await.unwrap();
    let body = json!({"starts": ["Person:1"], "hops": ["out:knows", "out:livesIn"], "select": ["name"]});
    let answer = server.ask("POST", "/v1/graphs/social/traverse", &body).await;
    let ids: Vec<_> = expected.reached.last().vertices().map(|vertex| vertex.to_string()).collect();
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["id"].as_str().unwrap()).collect::<Vec<_>>(), ids);
    assert!(rows.iter().all(|row| row["properties"]["name"].as_str().unwrap().starts_with("Town ")));
    assert_eq!(answer["statistics"]["depths"].as_array().unwrap().len(), 2);
    let body =
        json!({"starts": ["Person:1"], "hops": ["out:knows", "out:livesIn"], "output": "ids", "all_depths": true});
    let answer = server.ask("POST", "/v1/graphs/social/traverse", &body).await;
    assert_eq!(answer["vertices"][2]["ids"], json!(ids));
    assert_eq!((answer["vertices"].as_array().unwrap().len(), &answer["rows"]), (3, &Value::Null));

    let body = json!({"starts": ["Person:1"], "hops": ["out:knows", "out:livesIn"], "limit": 3, "keys": true});
    let answer = server.ask("POST", "/v1/graphs/social/paths", &body).await;
    assert_eq!((answer["paths"].as_array().unwrap().len(), &answer["statistics"]["truncated"]), (3, &json!(true)));
    assert_eq!((&answer["paths"][0][0]["key"], &answer["paths"][0][2]["label"]), (&json!(1), &json!("Town")));
    // With edges, and properties of both: a person has no `since`.
    let body =
        json!({"starts": ["Person:1"], "hops": ["out:knows", "out:livesIn"], "limit": 3, "select": ["name", "since"]});
    let answer = server.ask("POST", "/v1/graphs/social/paths", &body).await;
    let [from, over, to] = [0, 1, 2].map(|at| answer["paths"][0][at].clone());
    assert_eq!(
        (&from["key"], from["properties"].as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>()),
        (&json!(1), vec!["name"])
    );
    assert_eq!((&from["edge"]["label"], &from["edge"]["direction"]), (&json!("knows"), &json!("out")));
    assert!(from["edge"]["properties"].is_object() && from["edge"]["id"].is_string(), "{from}");
    assert_eq!((&over["edge"]["label"], to.get("edge"), &to["label"]), (&json!("livesIn"), None, &json!("Town")));
    assert!(answer["statistics"]["depths"].as_array().unwrap().len() == 2);
    let body = json!({"starts": ["Person:1"], "hops": ["out:knows"], "edges": true});
    let answer = server.ask("POST", "/v1/graphs/social/paths", &body).await;
    let first = &answer["paths"][0][0];
    assert_eq!((first.get("key"), first["edge"].get("properties")), (None, None), "{first}");
    let unknown = json!({"starts": ["Person:1"], "hops": ["out:knows"], "select": ["size"]});
    let rejected = server.request("POST", "/v1/graphs/social/paths").json(&unknown).send().await.unwrap();
    assert_eq!(rejected.status(), 404);
    // Starts by a condition, wherever a vertex is named but in a look-up.
    let by_name = json!({"starts": ["Person[~key = 1]"], "hops": ["out:knows"]});
    let by_key = json!({"starts": ["Person:1"], "hops": ["out:knows"]});
    for call in ["paths", "traverse"] {
        let path = format!("/v1/graphs/social/{call}");
        let [mut by_name, mut by_key] =
            [server.ask("POST", &path, &by_name).await, server.ask("POST", &path, &by_key).await];
        for answer in [&mut by_name, &mut by_key] {
            answer.as_object_mut().unwrap().remove("statistics");
        }
        assert_eq!(by_name, by_key);
    }
    let ask = async |call: &str, body: Value| {
        let answer = server.request("POST", &format!("/v1/graphs/social/{call}")).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let (status, problem) =
        ask("shortest-path", json!({"from": "Person[~key < 9]", "to": "Person:1", "hop": "both"})).await;
    assert!(status == 400 && problem["detail"].as_str().unwrap().contains("where one is needed"), "{status} {problem}");
    assert_eq!(ask("look-up", json!({"vertices": ["Person[~key = 1]"]})).await.0, 400);
    assert_eq!(ask("neighbors", json!({"vertices": ["Person[~key = 1]"], "hop": "out:knows"})).await.0, 200);
    assert_eq!(ask("neighbors", json!({"vertices": ["Person[~key = -1]"], "hop": "out:knows"})).await.0, 404);
    let body = json!({"from": "Person:1", "to": "Town:t0", "hop": "out:livesIn", "depth_max": 1});
    let answer = server.ask("POST", "/v1/graphs/social/shortest-path", &body).await;
    let two_hops = json!({"starts": ["Person:1"], "hops": ["both:knows", "both:knows"], "visit": "global"});
    let reached = server.ask("POST", "/v1/graphs/social/traverse", &two_hops).await;
    let far = format!("Person:{}", reached["rows"].as_array().unwrap().last().unwrap()["key"]);
    let weighted = json!({"from": "Person:1", "to": far, "hop": "both:knows", "weight": "since", "select": ["since"]});
    let found = server.ask("POST", "/v1/graphs/social/shortest-path", &weighted).await;
    let path = found["path"].as_array().unwrap();
    let lengths = path[..path.len() - 1].iter().map(|vertex| vertex["edge"]["properties"]["since"].as_f64().unwrap());
    assert_eq!(found["length"].as_f64(), Some(lengths.sum()), "{found}");
    let weightless = json!({"from": "Person:1", "to": "Person:200", "hop": "both", "weight": "since"});
    let (status, problem) = ask("shortest-path", weightless).await;
    assert!(status == 404 && problem["detail"].as_str().unwrap().contains("has no property \"since\""), "{problem}");
    let edges = json!({"vertices": ["Person:1"], "hop": "out:livesIn", "keys": true});
    let edges = server.ask("POST", "/v1/graphs/social/neighbors", &edges).await;
    assert_eq!(answer["path"].is_null(), edges["edges"][0]["to_key"] != "t0");
}

#[tokio::test]
async fn what_is_wrong_is_a_problem_that_says_so() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(settings(&folder)).await;
    let traverse = |starts: Value, hops: Value| json!({"starts": starts, "hops": hops});
    let cases = [
        (
            "POST",
            "/v1/graphs/social/traverse",
            traverse(json!(["Person:1"]), json!(["up:knows"])),
            400,
            "is not a valid hop",
        ),
        (
            "POST",
            "/v1/graphs/social/traverse",
            traverse(json!(["Person:x"]), json!([])),
            400,
            "is not a valid key of Person",
        ),
        ("POST", "/v1/graphs/social/traverse", traverse(json!(["Person:999"]), json!([])), 404, "no vertex Person:999"),
        (
            "POST",
            "/v1/graphs/social/traverse",
            traverse(json!([{"id": "7:1"}]), json!([])),
            404,
            "no vertex with id 7:1",
        ),
        (
            "POST",
            "/v1/graphs/social/traverse",
            traverse(json!(["Person:1"]), json!(["out:likes"])),
            404,
            "no edge label",
        ),
        ("POST", "/v1/graphs/social/traverse", json!({"start": []}), 400, "unknown field `start`"),
        ("POST", "/v1/graphs/social/look-up", json!({"vertices": ["Planet:1"]}), 404, "no vertex label"),
        (
            "POST",
            "/v1/graphs/social/look-up",
            json!({"vertices": [{"label": "Town", "key": 3}]}),
            400,
            "keys of Town are string",
        ),
        ("POST", "/v1/graphs/social/look-up", json!({"version": 7, "vertices": []}), 404, "with version 7"),
        ("GET", "/v1/graphs/other", Value::Null, 404, "no graph \"other\""),
        ("GET", "/v1/graphs/..%2Fsocial", Value::Null, 400, "is not a valid name of a graph"),
        ("GET", "/v1/nothing", Value::Null, 404, "/openapi.json"),
        ("DELETE", "/v1/graphs/social", Value::Null, 405, "method not allowed here"),
    ];
    for (method, path, body, status, sentence) in cases {
        let answer = server.request(method, path).json(&body).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.headers()["content-type"].to_str().unwrap()),
            (status, "application/problem+json"),
            "{path} {body}"
        );
        let problem: Value = answer.json().await.unwrap();
        assert!(problem["detail"].as_str().unwrap().contains(sentence), "{problem}");
        assert_eq!(problem["status"], status);
        // Where graphs are is not the clients' business.
        assert!(!problem.to_string().contains("memory://"), "{problem}");
    }
    let answer = server.request("GET", "/v1/graphs/other").header("x-request-id", "mine").send().await.unwrap();
    assert_eq!(answer.headers()["x-request-id"], "mine");
    assert_eq!(answer.json::<Value>().await.unwrap()["request_id"], "mine");
}

/// Each operation of the document exists, and its example works on the air routes.
#[tokio::test]
async fn the_document_describes_the_server() {
    let settings = Settings { writable: true, ..settings(&sample::air_routes().await) };
    let server = Running::start(settings).await;
    let document = server.ask("GET", "/openapi.json", &Value::Null).await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    let mut tried = BTreeSet::new();
    let mut references = BTreeSet::new();
    collect_references(&document, &mut references);
    for reference in &references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let opened = server.ask("POST", "/v1/graphs/air-routes/traversals", &json!({})).await;
    let opened = opened["traversal"].as_str().unwrap();
    let (_, job) = server.try_ask("POST", "/v1/graphs/air-routes/jobs", &json!({"algorithm": "degrees"})).await;
    let job = job["id"].as_str().unwrap();
    while server.ask("GET", &format!("/v1/jobs/{job}"), &Value::Null).await["state"] != "done" {}
    // The call is tried before the save; numbers of what is saved then do not matter.
    let save = document
        .pointer("/paths/~1v1~1graphs~1{graph}~1queries~1{query}/put/requestBody/content/application~1json/example");
    let mut save = save.unwrap().clone();
    save["description"] = json!("saved before");
    assert_eq!(server.try_ask("PUT", "/v1/graphs/air-routes/queries/routes", &save).await.0, 201);
    let mut last = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path_of = path.replace("{graph}", "air-routes").replace("{traversal}", opened).replace("{job}", job);
        let path_of = path_of.replace("{query}", "routes");
        for (method, operation) in operations.as_object().unwrap() {
            let example = operation["requestBody"]["content"]["application/json"]["example"].clone();
            let is_json = !path.ends_with("/refresh") && !path.ends_with("/changes");
            let makes_graph = method == "put" && path == "/v1/graphs/{graph}";
            let has_body = matches!(method.as_str(), "post" | "put") && is_json && !makes_graph;
            assert_eq!(has_body, !example.is_null(), "{method} {path} and its example");
            let good = match (method.as_str(), path.as_str()) {
                ("put", _) => 201,
                (_, "/v1/graphs/{graph}/jobs") => 202,
                _ => 200,
            };
            // A graph that is not there yet.
            let path_of = if makes_graph { path.replace("{graph}", "new-graph") } else { path_of.clone() };
            let described = &operation["responses"][good.to_string()];
            assert!(described.is_object() && operation["summary"].is_string(), "{path}");
            if method == "delete" {
                last.push(path_of.clone());
                continue;
            }
            let request = server.request(&method.to_uppercase(), &path_of);
            let request = match operation["requestBody"]["content"]["application/x-ndjson"]["example"].as_str() {
                Some(lines) => request.header("content-type", "application/x-ndjson").body(lines.to_owned()),
                None => request.json(&example),
            };
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), good, "{method} {path_of}: {}", answer.text().await.unwrap());
            if path.starts_with("/v1") {
                let schema = &described["content"]["application/json"]["schema"];
                check(&document, schema, &answer.json().await.unwrap(), path);
            }
            tried.insert(path.clone());
        }
    }
    let [query, job, traversal] = &last[..] else { panic!("{last:?}") };
    assert!(server.ask("DELETE", query, &Value::Null).await["version"].as_u64().unwrap() > 1);
    assert_eq!(server.ask("DELETE", job, &Value::Null).await["has_result"], false);
    let closed = server.ask("DELETE", traversal, &Value::Null).await;
    assert_eq!(closed["vertices"], 1);
    assert_eq!(tried.len(), 24, "{tried:?}");
}

fn collect_references(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            fields.get("$ref").and_then(Value::as_str).map(|to| references.insert(to.to_owned()));
            fields.values().for_each(|value| collect_references(value, references));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_references(value, references)),
        _ => {}
    }
}

/// Holds an answer against its schema: required fields are there, no field is unknown, types are right.
fn check(document: &Value, schema: &Value, answer: &Value, path_of: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.strip_prefix('#').unwrap()).unwrap();
        return check(document, target, answer, path_of);
    }
    if let (Some(properties), Some(fields)) = (schema["properties"].as_object(), answer.as_object()) {
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(fields.contains_key(name.as_str().unwrap()), "{path_of} lacks {name}: {answer}");
        }
        for (name, value) in fields {
            let schema = properties.get(name).unwrap_or_else(|| panic!("{path_of}: {name} is not in the document"));
            check(document, schema, value, &format!("{path_of}.{name}"));
        }
    }
    if let Some(items) = answer.as_array().filter(|_| schema["items"].is_object()) {
        items.iter().for_each(|item| check(document, &schema["items"], item, path_of));
    }
    let kinds: Vec<_> = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    let fits = |kind: &&str| match *kind {
        "object" => answer.is_object(),
        "array" => answer.is_array(),
        "string" => answer.is_string(),
        "integer" => answer.is_i64() || answer.is_u64(),
        "number" => answer.is_number(),
        "boolean" => answer.is_boolean(),
        "null" => answer.is_null(),
        _ => false,
    };
    assert!(kinds.iter().any(fits), "{path_of} is {answer}, not {kinds:?}");
}
