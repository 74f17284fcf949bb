//! Bodies of a wrong shape: all are rejected with their path and with what to write, and without the name of a type.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    running::{Running, settings},
    sample,
};

async fn server() -> Running {
    Running::start(settings(&sample::in_memory("g").await)).await
}

/// The sentence with which a body is rejected.
async fn rejection(server: &Running, call: &str, body: &Value) -> String {
    let (status, problem) = server.try_ask("POST", &format!("/v1/graphs/g/{call}"), body).await;
    assert_eq!((status, &problem["reason"]), (400, &json!("INVALID")), "{call} {body}: {problem}");
    let detail = problem["detail"].as_str().unwrap().to_owned();
    let is_type = |name: &str| detail.contains(name);
    assert!(!["Body", "struct", "enum", "usize", "u64", "i64"].into_iter().any(is_type), "{body}: {detail}");
    detail
}

fn hops(hop: &Value) -> Value {
    json!({"starts": ["Person:1"], "hops": ["out:knows", hop]})
}

fn starts(vertex: &Value) -> Value {
    json!({"starts": [vertex], "hops": []})
}

#[tokio::test]
async fn no_field_of_an_object_within_is_ignored() {
    let server = server().await;
    let cases = [
        (hops(&json!({"direction": "both", "label": ["knows"]})), "hops[1]", "label"),
        (hops(&json!({"direction": "out", "labels": ["knows"], "conditions": []})), "hops[1]", "conditions"),
        (starts(&json!({"label": "Person", "key": 5, "foo": 1})), "starts[0]", "foo"),
        (starts(&json!({"id": "0:1", "label_": "Person"})), "starts[0]", "label_"),
        (json!({"starts": [], "hops": [], "limits": {"time": 1}}), "limits", "time"),
    ];
    for (body, path, field) in cases {
        let detail = rejection(&server, "traverse", &body).await;
        assert!(detail.contains(&format!(", at {path}: unknown field `{field}`, expected one of")), "{detail}");
    }
    // It is ambiguous which of both was meant.
    let both = starts(&json!({"label": "Person", "key": 5, "id": "0:7"}));
    let detail = rejection(&server, "traverse", &both).await;
    assert!(
        detail.contains(r#", at starts[0]: write "LABEL:KEY", {"label", "key"}, {"label", "where"} or {"id"}"#),
        "{detail}"
    );
}

#[tokio::test]
async fn a_wrong_shape_is_rejected_with_its_path_and_what_to_write() {
    let server = server().await;
    let vertex = r#"write "LABEL:KEY", {"label", "key"}, {"label", "where"} or {"id"}, not"#;
    let hop = r#"write a hop such as "out:LABEL", or {"direction", "labels", "condition"}, not"#;
    let count = "write a whole number, 0 or more, not";
    let with = |name: &str, value: Value| {
        let mut body = json!({"starts": [], "hops": []});
        body[name] = value;
        body
    };
    let cases = [
        ("starts[0]", vertex, starts(&json!(5))),
        ("starts[0]", vertex, starts(&json!(["Person:1"]))),
        ("starts[0]", vertex, starts(&json!({"label": "Person"}))),
        (
            "starts[0].key",
            "write a whole number of 64 bits, or text, not 5.5",
            starts(&json!({"label": "Person", "key": 5.5})),
        ),
        (
            "starts[0].key",
            "write a whole number of 64 bits, or text, not 9223372036854775808",
            starts(&json!({"label": "Person", "key": 1u64 << 63})),
        ),
        ("starts[0].id", "write text, not 1", starts(&json!({"id": 1}))),
        ("starts", "write a list, in [ ], not \"Person:1\"", json!({"starts": "Person:1", "hops": []})),
        ("hops[1]", "missing field `direction`", hops(&json!({}))),
        ("hops[1]", hop, hops(&json!(1))),
        ("hops[1].direction", "write out, in or both, not \"sideways\"", hops(&json!({"direction": "sideways"}))),
        ("hops[1].labels", "write a list, in [ ], not", hops(&json!({"direction": "in", "labels": "knows"}))),
        ("limit", count, with("limit", json!(-1))),
        ("limit", count, with("limit", json!(1.5))),
        ("limit", count, with("limit", json!("1"))),
        ("version", count, with("version", json!(null))),
        ("limits.time_ms", count, with("limits", json!({"time_ms": "1s"}))),
        ("limits.usd_max", "write a number, not true", with("limits", json!({"usd_max": true}))),
        ("limits", "write an object with time_ms, vertices_max", with("limits", json!([1]))),
        ("all_depths", "write true or false, not 1", with("all_depths", json!(1))),
        ("output", "write rows, ids, nothing or count, not \"all\"", with("output", json!("all"))),
        ("select[0]", "write text, not 7", with("select", json!([7]))),
    ];
    for (path, words, body) in cases {
        let detail = rejection(&server, "traverse", &body).await;
        assert!(detail.contains(&format!(", at {path}: {words}")), "{body}: {detail}");
    }
    for (call, words) in [
        ("look-up", "write an object with version, vertices, not a list"),
        ("neighbors", "write an object with version, vertices, hop, keys, select_edges, output, limits, not a list"),
        ("properties", "write an object with version, vertices, select, limits, not a list"),
        ("traverse", "write an object with version, starts, hops,"),
        ("paths", "write an object with version, starts, hops,"),
        ("shortest-path", "write an object with version, from, to, hop,"),
        ("traversals", "write an object with version, limits, not a list"),
    ] {
        let detail = rejection(&server, call, &json!([0, ["Person:1"]])).await;
        assert!(detail.contains(words), "{call}: {detail}");
    }
    let (status, _) = server.try_ask("POST", "/v1/graphs/g/look-up", &json!({"vertices": ["Person:1"]})).await;
    assert_eq!(status, 200);
}

/// An error of JSON has its line; bytes after a body are not ignored.
#[tokio::test]
async fn a_body_is_one_document() {
    let server = server().await;
    for (body, words) in [
        ("{\"vertices\": [}", "at line 1 column 15"),
        ("{\"vertices\": []} {}", "trailing characters at line 1 column 18"),
        ("{\"vertices\":\n[\"Person:1\"", "EOF while parsing a list at line 2"),
    ] {
        let answer = server.request("POST", "/v1/graphs/g/look-up").body(body).send().await.unwrap();
        let problem: Value = answer.json().await.unwrap();
        assert!(problem["status"] == 400 && problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
}

/// The OpenAPI document agrees: every object of every body is closed.
#[tokio::test]
async fn the_document_closes_every_object_of_a_body() {
    let server = server().await;
    let document = server.ask("GET", "/openapi.json", &Value::Null).await;
    let mut seen = BTreeSet::new();
    for operation in document["paths"].as_object().unwrap().values().flat_map(|it| it.as_object().unwrap().values()) {
        closed(&document, &operation["requestBody"]["content"]["application/json"]["schema"], "", &mut seen);
    }
    for name in ["TraverseBody", "VertexBody", "IdBody", "LabelKeyBody", "HopBody", "HopPartsBody"] {
        assert!(seen.contains(&format!("#/components/schemas/{name}")), "{name}: {seen:?}");
    }
}

fn closed(document: &Value, schema: &Value, path: &str, seen: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        if seen.insert(reference.to_owned()) {
            closed(document, document.pointer(&reference[1..]).unwrap(), reference, seen);
        }
        return;
    }
    if let Some(properties) = schema["properties"].as_object() {
        assert_eq!(schema["additionalProperties"], json!(false), "{path}: {schema}");
        properties.iter().for_each(|(name, schema)| closed(document, schema, &format!("{path}.{name}"), seen));
    }
    for list in ["oneOf", "anyOf", "allOf"] {
        schema[list].as_array().into_iter().flatten().for_each(|schema| closed(document, schema, path, seen));
    }
    if schema["items"].is_object() {
        closed(document, &schema["items"], path, seen);
    }
}

/// A property that is not there is the same mistake in a condition and in a selection.
#[tokio::test]
async fn a_property_that_is_not_there_is_not_found() {
    let server = server().await;
    let hop = "out:knows[nope=1]";
    let cases = [
        ("traverse", json!({"starts": ["Person:1"], "hops": [hop]})),
        ("traverse", json!({"starts": ["Person:1"], "hops": [], "select": ["nope"]})),
        ("paths", json!({"starts": ["Person:1"], "hops": ["both", "both[nope=1]"]})),
        ("neighbors", json!({"vertices": ["Person:1"], "hop": hop})),
        ("properties", json!({"vertices": ["Person:1"], "select": ["nope"]})),
        // Of people, and not of what is reached.
        ("neighbors", json!({"vertices": ["Person:1"], "hop": "out:livesIn[since=1]"})),
    ];
    for (call, body) in cases {
        let (status, problem) = server.try_ask("POST", &format!("/v1/graphs/g/{call}"), &body).await;
        assert_eq!((status, &problem["reason"]), (404, &json!("NOT_FOUND")), "{call} {body}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains("property"), "{problem}");
    }
    let opened = server.ask("POST", "/v1/graphs/g/traversals", &json!({})).await;
    let path = format!("/v1/traversals/{}/neighbors", opened["traversal"].as_str().unwrap());
    let (status, problem) = server.try_ask("POST", &path, &json!({"vertices": ["Person:1"], "hop": hop})).await;
    assert_eq!(status, 404, "{problem}");
    // Of the vertex reached, whichever end that is; of a value that does not fit, the request is wrong.
    for hop in ["in:livesIn[age>1]", "both:livesIn[age>1]", "out:livesIn[name=x]", "both[since>2000]"] {
        server.ask("POST", "/v1/graphs/g/neighbors", &json!({"vertices": ["Town:t1"], "hop": hop})).await;
    }
    let body = json!({"vertices": ["Person:1"], "hop": "out:knows[since=x]"});
    assert_eq!(server.try_ask("POST", "/v1/graphs/g/neighbors", &body).await.0, 400);
}
