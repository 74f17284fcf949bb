//! Every field of a request of Gremlin with every kind of bad value, over each protocol: the same value has the same answer.

use hoplake::gremlin::value::Value;
use hoplake_server::v1;
use serde_json::json;

use crate::{
    gremlin::Driver,
    running::{Running, all, graph, settings},
    sample,
};

/// What a value of a field is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Accepted,
    /// With the name of the field.
    Rejected,
}

use Outcome::{Accepted, Rejected};

/// The fields of drivers' requests, by the names that both protocols have for them, and how each value is answered.
fn fields() -> Vec<(&'static str, Vec<(serde_json::Value, Outcome)>)> {
    let times = || {
        let bad = [json!(-1), json!(1.5), json!("5"), json!(true), json!([1])];
        let good = [json!(null), json!(0), json!(60_000), json!(i64::MAX)];
        outcomes(&good, &bad)
    };
    vec![
        (
            "batchSize",
            outcomes(
                &[json!(null), json!(1), json!(10_001), json!(i64::MAX)],
                &[json!(0), json!(-1), json!(1.5), json!("5"), json!(true), json!([1])],
            ),
        ),
        ("evaluationTimeout", times()),
        ("timeoutMillis", times()),
        ("timeoutMs", times()),
        (
            "materializeProperties",
            outcomes(&[json!(null), json!("all"), json!("tokens")], &[json!("some"), json!(0), json!(true)]),
        ),
        ("bulkResults", outcomes(&[json!(null), json!(true), json!(false)], &[json!("true"), json!(0)])),
        (
            "language",
            outcomes(&[json!(null), json!("gremlin-lang"), json!("gremlin-groovy")], &[json!("sql"), json!(0)]),
        ),
    ]
}

fn outcomes(good: &[serde_json::Value], bad: &[serde_json::Value]) -> Vec<(serde_json::Value, Outcome)> {
    let all = good.iter().map(|value| (value, Accepted)).chain(bad.iter().map(|value| (value, Rejected)));
    all.map(|(value, outcome)| (value.clone(), outcome)).collect()
}

/// What a driver would send for a value of JSON.
fn value_of(json: &serde_json::Value) -> Value {
    hoplake::gremlin::graphson::read_value(json.to_string().as_bytes()).unwrap()
}

/// The outcome of an answer: `invalid` is the status of an invalid request.
fn outcome(status: i64, message: &str, invalid: i64, field: &str) -> Outcome {
    match status {
        200 => Accepted,
        status if status == invalid && message.contains(field) => Rejected,
        _ => panic!("{field}: {status} {message}"),
    }
}

#[tokio::test]
async fn a_value_of_a_field_has_the_same_answer_over_each_protocol_of_drivers() {
    let server = Running::start(settings(&sample::in_memory("g").await)).await;
    let mut driver = Driver::connect(&server, "g").await;
    for (field, values) in fields() {
        for (value, expected) in values {
            let mut request = driver.request("g.inject(1)");
            request.arguments.push((field.into(), value_of(&value)));
            let response = driver.answer(&request).await.1;
            let message = response.message.as_deref().unwrap_or_default();
            let over_websocket = outcome(response.status.into(), message, 499, field);
            let body = json!({"gremlin": "g.inject(1)", "g": "g", field: value});
            let (status, answer) = server.try_ask("POST", "/gremlin", &body).await;
            assert_eq!(answer["status"]["code"], status);
            let message = answer["status"]["message"].as_str().unwrap();
            let over_http = outcome(status.into(), message, 400, field);
            assert_eq!((over_websocket, over_http), (expected, expected), "{field}: {value}");
        }
    }
}

/// Names and their values: a map, or none.
#[tokio::test]
async fn values_of_names_are_a_map_over_each_protocol() {
    let server = Running::start(settings(&sample::in_memory("g").await)).await;
    let mut driver = Driver::connect(&server, "g").await;
    let mut client = server.graphs().await;
    for (given, expected) in [
        (json!(null), Accepted),
        (json!({}), Accepted),
        (json!({"x": 1}), Accepted),
        (json!(0), Rejected),
        (json!([1]), Rejected),
    ] {
        let mut request = driver.request("g.inject(1)");
        request.arguments.push(("bindings".into(), value_of(&given)));
        let response = driver.answer(&request).await.1;
        let message = response.message.as_deref().unwrap_or_default();
        assert_eq!(outcome(response.status.into(), message, 499, "bindings"), expected, "{given}");
        for field in ["bindings", "parameters"] {
            let body = json!({"gremlin": "g.inject(1)", "g": "g", field: given});
            let (status, answer) = server.try_ask("POST", "/gremlin", &body).await;
            let message = answer["status"]["message"].as_str().unwrap();
            assert_eq!(outcome(status.into(), message, 400, field), expected, "{given}");
        }
        // Hoplake's own: a field that is null is not one that is absent, as in all its bodies.
        if !given.is_null() {
            let body = json!({"gremlin": "g.inject(1)", "bindings": given});
            let (status, answer) = server.try_ask("POST", "/v1/graphs/g/gremlin", &body).await;
            let message = answer["detail"].as_str().unwrap_or_default();
            assert_eq!(outcome(status.into(), message, 400, "bindings"), expected, "{given}");
        }
        if let Some(given) = given.as_object() {
            let bindings = given.iter().map(|(name, json)| (name.clone(), json.to_string())).collect();
            let request =
                v1::GremlinRequest { graph: graph("g"), gremlin: "g.inject(1)".into(), bindings, limits: None };
            assert_eq!(all(client.gremlin(request).await).await.len(), 1);
        }
    }
}

/// The limits of Hoplake's own protocols: 0 and what is too large are the server's.
#[tokio::test]
async fn limits_have_the_same_answer_over_each_of_hoplakes_protocols() {
    let server = Running::start(settings(&sample::in_memory("g").await)).await;
    let mut client = server.graphs().await;
    for field in ["time_ms", "vertices_max", "requests_max", "bytes_max", "memory_bytes_max"] {
        for (value, expected) in outcomes(
            &[json!(0), json!(u64::MAX)],
            &[json!(-1), json!(1.5), json!("5"), json!(true), json!(null), json!([1])],
        ) {
            let body = json!({"gremlin": "g.inject(1)", "limits": {field: value}});
            let (status, answer) = server.try_ask("POST", "/v1/graphs/g/gremlin", &body).await;
            let message = answer["detail"].as_str().unwrap_or_default();
            assert_eq!(outcome(status.into(), message, 400, field), expected, "{field}: {value}");
            // The other values do not fit the message.
            let Some(number) = value.as_u64() else { continue };
            let mut limits = v1::Limits::default();
            let to = match field {
                "time_ms" => &mut limits.time_ms,
                "vertices_max" => &mut limits.vertices_max,
                "requests_max" => &mut limits.requests_max,
                "bytes_max" => &mut limits.bytes_max,
                _ => &mut limits.memory_bytes_max,
            };
            *to = number;
            let bindings = Default::default();
            let gremlin = "g.inject(1)".into();
            let request = v1::GremlinRequest { graph: graph("g"), gremlin, bindings, limits: Some(limits) };
            assert_eq!(all(client.gremlin(request).await).await.len(), 1, "{field}: {value}");
        }
    }
}

/// One bound on results for all protocols: so many are sent, or none, and then the failure.
#[tokio::test]
async fn the_maximum_of_results_is_the_same_over_each_protocol() {
    let mut settings = settings(&sample::in_memory("g").await);
    settings.limits.results_max = 10;
    let server = Running::start(settings).await;
    let mut driver = Driver::connect(&server, "g").await;
    let mut client = server.graphs().await;
    let bulked = |count: u64| format!("g.inject(7).repeat(union(identity(), identity())).times(4).limit({count})");
    let single = |count: u64| format!("g.V().hasLabel('Person').limit({count}).values('name')");
    // The third time they come from the cache.
    for text in [bulked, single].iter().flat_map(|text| [text(10), text(11)]).flat_map(|text| vec![text; 3]) {
        let fits = text.contains("limit(10)");
        let (results, response) = driver.answer(&driver.request(&text)).await;
        let message = response.message.as_deref().unwrap_or_default();
        assert_eq!((response.status == 200, message.contains("more than 10 results")), (fits, !fits), "{text}");
        assert!(results.len() <= 10 && (!fits || results.len() == 10), "{text}");
        let body = json!({"gremlin": text, "g": "g"});
        let (status, answer) = server.try_ask("POST", "/gremlin", &body).await;
        assert_eq!(status, if fits { 200 } else { 422 }, "{text}: {answer}");
        let (status, answer) = server.try_ask("POST", "/v1/graphs/g/gremlin", &json!({"gremlin": text})).await;
        assert_eq!(status, if fits { 200 } else { 422 }, "{text}: {answer}");
        let gremlin = text.clone();
        let request = v1::GremlinRequest { graph: graph("g"), gremlin, ..v1::GremlinRequest::default() };
        match client.gremlin(request).await {
            Ok(answer) => {
                let count: usize = all(Ok(answer)).await.iter().map(|message| message.results.len()).sum();
                assert_eq!((fits, count), (true, 10), "{text}");
            }
            Err(status) => assert!(!fits && status.message().contains("more than 10 results"), "{text}: {status}"),
        }
    }
}
