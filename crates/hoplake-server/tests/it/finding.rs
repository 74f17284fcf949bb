//! Scans, starts by condition, counts and properties of edges, in both protocols and all forms, as the facade answers.

use std::collections::BTreeMap;

use arrow_array::{Array, RecordBatch, cast::AsArray, types::Int64Type};
use arrow_ipc::reader::StreamReader;
use hoplake::{Graph, Hop, Query, ScanRequest};
use hoplake_server::{LimitSettings, Settings, v1};
use serde_json::{Value, json};

use crate::{
    running::{Running, all, graph, hop, named, settings, traversal},
    sample,
};

const SCAN: &str = "/v1/graphs/g/scan";
const NEIGHBORS: &str = "/v1/graphs/g/neighbors";

async fn started() -> (Running, Graph) {
    let folder = sample::in_memory("g").await;
    (Running::start(settings(&folder)).await, sample::embedded(&folder, "g").await)
}

impl Running {
    async fn lines_of(&self, path: &str, body: &Value) -> Vec<Value> {
        let answer =
            self.request("POST", path).header("accept", "application/x-ndjson").json(body).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.text().await.unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn arrow_of(&self, path: &str, body: &Value) -> Vec<RecordBatch> {
        let accept = "application/vnd.apache.arrow.stream";
        let answer = self.request("POST", path).header("accept", accept).json(body).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let bytes = answer.bytes().await.unwrap();
        let reader = StreamReader::try_new(&bytes[..], None).unwrap();
        let empty = RecordBatch::new_empty(reader.schema());
        // The schema is there without rows, too.
        std::iter::once(empty).chain(reader.map(Result::unwrap)).collect()
    }
}

fn names(batch: &RecordBatch) -> Vec<String> {
    batch.schema().fields().iter().map(|field| field.name().clone()).collect()
}

async fn found(query: &mut Query, request: &ScanRequest) -> Vec<i64> {
    let mut scan = query.scan(request).unwrap();
    let mut keys = Vec::new();
    while let Some(rows) = query.next_rows(&mut scan).await.unwrap() {
        keys.extend(rows.batch.column_by_name("~key").unwrap().as_primitive::<Int64Type>().values());
    }
    keys
}

#[tokio::test]
async fn a_scan_finds_what_the_facade_finds() {
    let (server, graph_) = started().await;
    let request = ScanRequest {
        labels: vec!["Person".into()],
        condition: Some("age > 40 and height < 1.0".parse().unwrap()),
        ..ScanRequest::default()
    };
    let expected = found(&mut graph_.query(), &request).await;
    assert!(expected.len() > 10);
    let body = json!({"labels": ["Person"], "condition": "age > 40 and height < 1.0", "select": ["name", "age"]});
    let answer = server.ask("POST", SCAN, &body).await;
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["key"].as_i64().unwrap()).collect::<Vec<_>>(), expected);
    let row = json!({"label": "Person", "key": expected[0],
        "properties": {"name": format!("P, {}", expected[0]), "age": expected[0] % 90}});
    assert_eq!((&rows[0], &answer["truncated"], &answer["version"]), (&row, &json!(false), &json!(1)));
    let lines = server.lines_of(SCAN, &body).await;
    assert_eq!((lines.len(), &lines[0]), (expected.len() + 1, &row));
    let batches = server.arrow_of(SCAN, &body).await;
    assert_eq!(names(&batches[0]), ["label", "key", "name", "age"]);
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), expected.len());

    let request = v1::ScanRequest {
        graph: graph("g"),
        labels: vec!["Person".into()],
        condition: "age > 40 and height < 1.0".into(),
        select: vec!["age".into()],
        ..Default::default()
    };
    let mut client = server.graphs().await;
    let messages = all(client.scan(request.clone()).await).await;
    let keys: Vec<_> =
        messages.iter().flat_map(|it| it.rows.iter()).flat_map(|rows| rows.keys.clone().unwrap().int64s).collect();
    assert_eq!(keys, expected);
    let last = messages.last().unwrap();
    assert_eq!((last.vertices, last.truncated, last.version), (expected.len() as u64, false, 1));
    let counted = all(client.scan(v1::ScanRequest { count: true, select: Vec::new(), ..request.clone() }).await).await;
    assert_eq!((counted.len(), counted[0].vertices, &counted[0].rows), (1, expected.len() as u64, &None));
    let body = json!({"labels": ["Person"], "condition": "age > 40 and height < 1.0", "output": "count"});
    let answer = server.ask("POST", SCAN, &body).await;
    assert_eq!((&answer["count"], &answer["rows"]), (&json!(expected.len()), &Value::Null));

    // Sorted, and cut.
    let body = json!({"labels": ["Person"], "select": ["age"], "order_by": ["age desc", "~key"], "limit": 3});
    let answer = server.ask("POST", SCAN, &body).await;
    let ages: Vec<_> = answer["rows"].as_array().unwrap().iter().map(|row| row["properties"]["age"].clone()).collect();
    assert_eq!((ages, &answer["truncated"]), (vec![json!(89), json!(89), json!(88)], &json!(true)));
    let sorted = v1::ScanRequest { condition: String::new(), order_by: vec!["age desc".into()], limit: 3, ..request };
    assert!(all(client.scan(sorted).await).await.last().unwrap().truncated);
}

/// A label without a selected property has nulls, so that one stream has one schema.
#[tokio::test]
async fn a_scan_of_several_labels_has_all_columns() {
    let (server, _) = started().await;
    let body = json!({"condition": "name contains 1", "select": ["name", "age"]});
    let rows = server.ask("POST", SCAN, &body).await;
    let rows = rows["rows"].as_array().unwrap();
    let town = rows.iter().find(|row| row["label"] == "Town").unwrap();
    assert_eq!(town["properties"], json!({"name": "Town 1", "age": null}));
    assert!(rows.iter().any(|row| row["label"] == "Person"));
    let batches = server.arrow_of(SCAN, &body).await;
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows.len());
    let wrong = [
        (json!({"labels": ["Cat"]}), 404, "no vertex label"),
        (json!({"labels": ["Town"], "select": ["age"]}), 404, "has a property \"age\""),
        (json!({"condition": "name ="}), 400, "not a valid condition"),
        (json!({"order_by": ["name"]}), 400, "cannot be sorted together"),
        (json!({"labels": ["Person"], "order_by": ["tags"]}), 400, "lists have no order"),
        (json!({"output": "count", "select": ["name"]}), 400, "the output is a count"),
        (json!({"select": ["name", "age", "name"]}), 400, "property \"name\" is named twice"),
        (json!({"labels": ["Town"], "order_by": ["name", "name desc"]}), 400, "property \"name\" is named twice"),
        (json!({"limit": -1}), 400, "limit"),
    ];
    for (body, status, words) in wrong {
        let (found, problem) = server.try_ask("POST", SCAN, &body).await;
        assert!(found == status && problem["detail"].as_str().unwrap().contains(words), "{body}: {problem}");
    }
}

#[tokio::test]
async fn a_scan_keeps_to_the_bounds_of_answers() {
    let folder = sample::in_memory("g").await;
    let limits = LimitSettings { results_max: 5, ..LimitSettings::default() };
    let server = Running::start(Settings { limits, ..settings(&folder) }).await;
    let answer = server.ask("POST", SCAN, &json!({"limit": 100})).await;
    assert_eq!((answer["rows"].as_array().unwrap().len(), &answer["truncated"]), (5, &json!(true)));
    let exact = server.ask("POST", SCAN, &json!({"labels": ["Town"], "condition": "name < \"Town 5\""})).await;
    assert_eq!((exact["rows"].as_array().unwrap().len(), &exact["truncated"]), (5, &json!(false)));
}

#[tokio::test]
async fn a_condition_names_the_vertices_to_start_from() {
    let (server, embedded) = started().await;
    let condition = json!({"label": "Person", "where": "age between 10 and 12"});
    let request = ScanRequest {
        labels: vec!["Person".into()],
        condition: Some("age between 10 and 12".parse().unwrap()),
        ..Default::default()
    };
    let keys = found(&mut embedded.query(), &request).await;
    let starts: Vec<_> = keys.iter().map(|key| json!(format!("Person:{key}"))).collect();
    for (path, field, rest) in [
        ("traverse", "starts", json!({"hops": ["out:knows"], "select": ["name"]})),
        ("paths", "starts", json!({"hops": ["out:knows"], "limit": 0})),
        ("neighbors", "vertices", json!({"hop": "out:knows"})),
        ("properties", "vertices", json!({"select": ["name"]})),
    ] {
        let path = format!("/v1/graphs/g/{path}");
        let with = |vertices: Value| {
            let mut body = rest.clone();
            body[field] = vertices;
            body
        };
        let mut answers = Vec::new();
        for vertices in [json!([condition]), json!(starts), json!([condition, starts[0]])] {
            let mut answer = server.ask("POST", &path, &with(vertices)).await;
            for varies in ["cost", "statistics"] {
                answer.as_object_mut().unwrap().remove(varies);
            }
            answers.push(answer);
        }
        assert_eq!(answers[0], answers[1], "{path}");
        // A set, except of walks.
        assert!(path.ends_with("paths") || answers[0] == answers[2], "{path}");
    }
    let by_condition = v1::VertexRef {
        kind: Some(v1::vertex_ref::Kind::Found(v1::vertex_ref::LabelledCondition {
            label: "Person".into(),
            condition: "age between 10 and 12".into(),
        })),
    };
    let request = |starts| v1::TraverseRequest {
        graph: graph("g"),
        traversal: Some(v1::Traversal { starts, ..traversal(&[], &["out:knows"]) }),
        output: v1::traverse_request::Output::Count.into(),
        ..Default::default()
    };
    let mut client = server.graphs().await;
    let mut counts = Vec::new();
    for starts in [vec![by_condition.clone()], keys.iter().map(|key| named(&format!("Person:{key}"))).collect()] {
        let messages = all(client.traverse(request(starts)).await).await;
        let Some(v1::traverse_response::Kind::Statistics(statistics)) = &messages[0].kind else {
            panic!("{messages:?}")
        };
        counts.push(statistics.count.unwrap());
    }
    assert!(counts[0] > 0 && counts[0] == counts[1], "{counts:?}");
    // Where one vertex is wanted, and where the condition is wrong.
    let single = json!({"from": condition, "to": "Person:1", "hop": "out:knows"});
    for (path, body) in [
        ("shortest-path", single),
        ("look-up", json!({"vertices": [condition]})),
        ("traverse", json!({"starts": [{"label": "Person", "where": "age >"}], "hops": []})),
        ("traverse", json!({"starts": [{"label": "Person", "where": "age > 1", "key": 1}], "hops": []})),
    ] {
        let (status, problem) = server.try_ask("POST", &format!("/v1/graphs/g/{path}"), &body).await;
        assert_eq!((status, &problem["reason"]), (400, &json!("INVALID")), "{body}: {problem}");
    }
    // No vertex matches it: there is nothing to start from.
    let nobody =
        json!({"starts": [{"label": "Person", "where": "age > 1000"}], "hops": ["out:knows"], "output": "count"});
    let (status, problem) = server.try_ask("POST", "/v1/graphs/g/traverse", &nobody).await;
    assert_eq!((status, &problem["reason"]), (404, &json!("NOT_FOUND")), "{problem}");
}

/// What a count has not is rejected, by both protocols in the same words.
#[tokio::test]
async fn counts_have_no_keys_or_properties() {
    let (server, _) = started().await;
    let neighbors = json!({"vertices": ["Person:1"], "hop": "out:knows", "output": "count"});
    let paths = json!({"starts": ["Person:1"], "hops": ["out:knows"], "output": "count"});
    // An Arrow stream has rows alone, so the number would be lost.
    let scan = json!({"labels": ["Person"], "output": "count"});
    for (call, body) in [("neighbors", &neighbors), ("paths", &paths), ("traverse", &paths), ("scan", &scan)] {
        let accept = "application/vnd.apache.arrow.stream";
        let path = format!("/v1/graphs/g/{call}");
        let rejected = server.request("POST", &path).header("accept", accept).json(body).send().await.unwrap();
        assert_eq!(rejected.status(), 400, "{call}");
        let problem: Value = rejected.json().await.unwrap();
        assert!(problem["detail"].as_str().unwrap().contains("ask for application/json"), "{problem}");
    }
    let mut rejected = Vec::new();
    for (path, body, field, value) in [
        ("neighbors", &neighbors, "keys", json!(true)),
        ("neighbors", &neighbors, "select_edges", json!(["since"])),
        ("paths", &paths, "keys", json!(true)),
        ("paths", &paths, "edges", json!(true)),
        ("paths", &paths, "select", json!(["name"])),
    ] {
        let mut body = body.clone();
        body[field] = value;
        let (status, problem) = server.try_ask("POST", &format!("/v1/graphs/g/{path}"), &body).await;
        assert_eq!((status, &problem["reason"]), (400, &json!("INVALID")), "{body}: {problem}");
        rejected.push(problem["detail"].as_str().unwrap().to_owned());
    }
    let request = v1::PathsRequest {
        graph: graph("g"),
        traversal: Some(traversal(&["Person:1"], &["out:knows"])),
        count: true,
        keys: true,
        ..Default::default()
    };
    let mut answer = server.graphs().await.paths(request).await;
    let status = match &mut answer {
        Ok(stream) => stream.get_mut().message().await.unwrap_err(),
        Err(status) => status.clone(),
    };
    assert_eq!(status.message(), rejected[2]);
}

/// A label that is named twice is scanned once.
#[tokio::test]
async fn labels_of_a_scan_are_a_set() {
    let (server, _) = started().await;
    for body in [json!({}), json!({"output": "count"}), json!({"condition": "name contains 1", "output": "count"})] {
        let with = |labels: Value| {
            let mut body = body.clone();
            body["labels"] = labels;
            body
        };
        let mut answers = Vec::new();
        for labels in [json!(["Town"]), json!(["Town", "Town"])] {
            let mut answer = server.ask("POST", SCAN, &with(labels)).await;
            answer.as_object_mut().unwrap().remove("cost");
            answers.push(answer);
        }
        assert_eq!(answers[0], answers[1]);
    }
}

#[tokio::test]
async fn counts_are_as_long_as_lists() {
    let (server, _) = started().await;
    let traverse = json!({"starts": ["Person:1"], "hops": ["out:knows", "out:knows"]});
    let paths = json!({"starts": ["Person:1"], "hops": ["out:knows", "out:knows"], "limit": 0});
    let neighbors = json!({"vertices": ["Person:1", "Person:2"], "hop": "both:knows[since > 2005]"});
    for (path, body, list) in
        [("traverse", traverse, "rows"), ("paths", paths, "paths"), ("neighbors", neighbors, "edges")]
    {
        let path = format!("/v1/graphs/g/{path}");
        let listed = server.ask("POST", &path, &body).await;
        let mut body = body;
        body["output"] = json!("count");
        let counted = server.ask("POST", &path, &body).await;
        let length = listed[list].as_array().unwrap().len();
        assert!(length > 0);
        assert_eq!((&counted["count"], &counted[list]), (&json!(length), &Value::Null), "{path}");
        let lines = server.lines_of(&path, &body).await;
        assert_eq!((lines.len(), &lines[0]["count"]), (1, &json!(length)), "{path}");
    }
    let all_depths = json!({"starts": ["Person:1"], "hops": ["out:knows"], "output": "count", "all_depths": true});
    let counted = server.ask("POST", "/v1/graphs/g/traverse", &all_depths).await;
    assert_eq!(
        counted["count"].as_u64().unwrap(),
        1 + counted["statistics"]["depths"][0]["vertices"].as_u64().unwrap()
    );
    let mut client = server.graphs().await;
    let request = v1::NeighborsRequest {
        graph: graph("g"),
        vertices: vec![named("Person:1")],
        hop: Some(hop("out:knows")),
        ..Default::default()
    };
    let listed: usize = all(client.neighbors(request.clone()).await)
        .await
        .iter()
        .flat_map(|it| &it.edges)
        .map(|edges| edges.to.len())
        .sum();
    let counted = all(client.neighbors(v1::NeighborsRequest { count: true, ..request }).await).await;
    assert_eq!((counted.len(), counted[0].count), (1, Some(listed as u64)));
    let request = v1::PathsRequest {
        graph: graph("g"),
        traversal: Some(traversal(&["Person:1"], &["out:knows"])),
        count: true,
        ..Default::default()
    };
    let counted = all(client.paths(request).await).await;
    assert_eq!(counted[0].statistics.as_ref().unwrap().count, Some(listed as u64));
}

#[tokio::test]
async fn edges_have_their_properties() {
    let (server, embedded) = started().await;
    let mut query = embedded.query();
    let vertices = query.vertices(&[("Person", 1.into()), ("Person", 2.into())]).await.unwrap();
    let vertices: Vec<_> = vertices.into_iter().flatten().collect();
    let hop_ = "both".parse::<Hop>().unwrap();
    let edges = query.neighbors(&vertices, &hop_).await.unwrap();
    let mut since: BTreeMap<usize, Value> = BTreeMap::new();
    for rows in query.edge_properties(&edges, &["since".into()]).await.unwrap().iter() {
        let Some(values) = rows.batch.column_by_name("since") else { continue };
        let values = values.as_primitive::<Int64Type>();
        since.extend(rows.positions.iter().zip(values.values()).map(|(edge, value)| (*edge, json!(value))));
    }
    // Edges to towns have none.
    let expected: Vec<Value> = (0..edges.len()).map(|edge| since.get(&edge).cloned().unwrap_or_default()).collect();
    assert!(expected.iter().any(Value::is_null) && since.len() > 5);
    let body = json!({"vertices": ["Person:1", "Person:2"], "hop": "both", "keys": true, "select_edges": ["since"]});
    let answer = server.ask("POST", NEIGHBORS, &body).await;
    let found = |edge: &Value| edge["properties"]["since"].clone();
    assert_eq!(answer["edges"].as_array().unwrap().iter().map(found).collect::<Vec<_>>(), expected);
    let lines = server.lines_of(NEIGHBORS, &body).await;
    assert_eq!(lines[..expected.len()].iter().map(found).collect::<Vec<_>>(), expected);
    let columns = ["id", "from", "label", "direction", "to", "to_label", "to_key", "since"];
    let batches = server.arrow_of(NEIGHBORS, &body).await;
    assert_eq!(names(&batches[0]), columns);
    let values = batches.iter().flat_map(|batch| {
        let column = batch.column_by_name("since").unwrap().as_primitive::<Int64Type>().clone();
        (0..column.len()).map(move |row| if column.is_null(row) { Value::Null } else { json!(column.value(row)) })
    });
    assert_eq!(values.collect::<Vec<_>>(), expected);
    let request = v1::NeighborsRequest {
        graph: graph("g"),
        vertices: vec![named("Person:1"), named("Person:2")],
        hop: Some(hop("both")),
        select_edges: vec!["since".into()],
        ..Default::default()
    };
    let mut values = Vec::new();
    for lists in all(server.graphs().await.neighbors(request).await).await.iter().flat_map(|message| &message.edges) {
        let [column] = &lists.columns[..] else { panic!("{lists:?}") };
        let Some(v1::column::Values::Int64s(numbers)) = &column.values else { panic!("{column:?}") };
        assert_eq!((column.name.as_str(), numbers.values.len()), ("since", lists.to.len()));
        let value = |(row, number): (u32, &i64)| if column.nulls.contains(&row) { Value::Null } else { json!(number) };
        values.extend((0..).zip(&numbers.values).map(value));
    }
    assert_eq!(values, expected);
    // Without selected properties an edge has no field `properties`. An answer without edges still has its columns.
    let plain = server.ask("POST", NEIGHBORS, &json!({"vertices": ["Person:1"], "hop": "out:knows"})).await;
    assert!(plain["edges"][0].get("properties").is_none());
    let none = json!({"vertices": ["Town:t1"], "hop": "out", "keys": true, "select_edges": ["since"]});
    assert_eq!(names(&server.arrow_of(NEIGHBORS, &none).await[0]), columns);
    let wrong = json!({"vertices": ["Person:1"], "hop": "out:livesIn", "select_edges": ["since"]});
    let (status, problem) = server.try_ask("POST", NEIGHBORS, &wrong).await;
    assert_eq!((status, &problem["reason"]), (404, &json!("NOT_FOUND")), "{problem}");
}
