//! The types of numbers, as they are in the bytes of an answer. Drivers that have one type of integers, such as that for Python, do not
//! show whether an answer is an int or a long, and Hoplake's own values are equal across types.

use std::{collections::BTreeSet, time::Duration};

use futures::{SinkExt, StreamExt};
use hoplake::gremlin::{
    self, graphbinary,
    graphson::{self, Version},
    literal::{Literal, Number},
    message::{Query, Request},
    script::{Argument, Statement},
    value::Value,
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, client::IntoClientRequest},
};
use uuid::Uuid;

use crate::{
    gremlin::writable,
    running::{Running, settings},
    sample,
};

/// What TinkerPop answers.
const ANSWERS: &str = include_str!("../../../hoplake-gremlin/tests/answers/answers.txt");
const STEPS: [&str; 5] = [".sum(", ".min(", ".max(", ".mean(", ".math("];
const KINDS: [&str; 8] = ["byte", "short", "int", "long", "bigint", "float", "double", "bigdecimal"];
/// Far beyond what an answer takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ways to ask, and to be answered.
#[derive(Debug, Clone, Copy)]
enum Way {
    GraphBinary,
    /// As drivers of TinkerPop 4 ask.
    GraphBinary4,
    GraphSon(Version),
    Bytecode(Version),
}

const WAYS: [Way; 6] = [
    Way::GraphBinary,
    Way::GraphBinary4,
    Way::GraphSon(Version::Second),
    Way::GraphSon(Version::Third),
    Way::Bytecode(Version::Second),
    Way::Bytecode(Version::Third),
];

/// Queries of one number, which is an answer such as `int:3`. What differs from TinkerPop on purpose, `answers/main.rs` names: sums with
/// NaN, and of many equal traversers.
fn cases() -> Vec<(&'static str, String)> {
    let lines = ANSWERS.lines().filter_map(|line| line.split_once('\t'));
    let cases = lines.filter(|(query, answer)| {
        let is_number =
            answer.split_once(':').is_some_and(|(kind, rest)| KINDS.contains(&kind) && !rest.contains('\t'));
        let is_step = STEPS.iter().any(|step| query.contains(step));
        is_number && is_step && query.starts_with("g.inject(") && !query.contains("NaN") && !query.contains("repeat(")
    });
    cases.map(|(query, answer)| (query, canonical(answer))).collect()
}

/// With floating-point numbers in Rust's form.
fn canonical(answer: &str) -> String {
    match answer.split_once(':').unwrap() {
        ("float", digits) => float(digits),
        ("double", digits) => double(digits),
        _ => answer.to_owned(),
    }
}

fn float(digits: &str) -> String {
    format!("float:{:?}", digits.parse::<f32>().unwrap())
}

fn double(digits: &str) -> String {
    format!("double:{:?}", digits.parse::<f64>().unwrap())
}

#[tokio::test]
async fn numbers_are_encoded_with_the_types_of_tinkerpop() {
    let server = Running::start(settings(&sample::in_memory("g").await)).await;
    let mut driver = Driver::connect(&server, "g").await;
    let cases = cases();
    let kinds: BTreeSet<_> = cases.iter().map(|(_, answer)| answer.split(':').next().unwrap()).collect();
    assert!(cases.len() > 400 && kinds.len() == KINDS.len(), "{} answers of {kinds:?}", cases.len());
    let mut wrong = String::new();
    let mut in_bytecode = 0;
    for (query, expected) in &cases {
        for way in WAYS {
            let Some(found) = driver.ask(query, way).await else { continue };
            in_bytecode += usize::from(matches!(way, Way::Bytecode(_)));
            if found != *expected {
                wrong.push_str(&format!("{query}, {way:?}\n  expected {expected}\n  found    {found}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(in_bytecode > 400, "{in_bytecode} answers to bytecode");
}

/// A number of a graph has the type in which it was written, or the one of 64 bits that holds it.
#[tokio::test]
async fn stored_numbers_are_encoded_with_their_types() {
    let server = writable(|_| ()).await;
    let mut driver = Driver::connect(&server, "new").await;
    let add = "g.addV('a').property('b', 1b).property('s', 1s).property('i', 1).property('l', 1l).property('n', 1n)\
               .property('f', 1.5f).property('d', 1.5d).property('m', 1.5m).values('i')";
    assert_eq!(driver.ask(add, Way::GraphBinary).await.unwrap(), "int:1");
    assert_eq!(server.metric("hoplake_commits_total").await, 1.0);
    for (names, sum, mean) in [
        ("'b'", "byte:1", "double:1.0"),
        ("'s'", "short:1", "double:1.0"),
        ("'i'", "int:1", "double:1.0"),
        ("'l'", "long:1", "double:1.0"),
        ("'n'", "long:1", "double:1.0"),
        ("'f'", "float:1.5", "double:1.5"),
        ("'d'", "double:1.5", "double:1.5"),
        ("'m'", "double:1.5", "double:1.5"),
        ("'b','s'", "short:2", "double:1.0"),
        ("'b','i'", "int:2", "double:1.0"),
        ("'i','l'", "long:2", "double:1.0"),
        ("'i','f'", "float:2.5", "double:1.25"),
        ("'l','f'", "double:2.5", "double:1.25"),
        ("'f','d'", "double:3.0", "double:1.5"),
    ] {
        let (kind, _) = sum.split_once(':').unwrap();
        for way in WAYS {
            let mut ask = async |step: &str| driver.ask(&format!("g.V().values({names}).{step}"), way).await;
            let Some(found) = ask("sum()").await else { panic!("{names}") };
            assert_eq!(found, sum, "{names}, {way:?}");
            assert_eq!(ask("mean()").await.unwrap(), mean, "{names}, {way:?}");
            for step in ["min()", "max()"] {
                let found = ask(step).await.unwrap();
                assert_eq!(found.split_once(':').unwrap().0, kind, "{names}, {step}, {way:?}: {found}");
            }
        }
    }
}

struct Driver<'a> {
    server: &'a Running,
    graph: &'static str,
    socket: WebSocketStream<TcpStream>,
}

impl<'a> Driver<'a> {
    async fn connect(server: &'a Running, graph: &'static str) -> Self {
        let request = format!("ws://{}/gremlin", server.http).into_client_request().unwrap();
        let stream = TcpStream::connect(server.http).await.unwrap();
        let (socket, _) = client_async(request, stream).await.unwrap();
        Self { server, graph, socket }
    }

    /// The only result of a query; `None` if it cannot be asked in this way.
    async fn ask(&mut self, query: &str, way: Way) -> Option<String> {
        Some(match way {
            Way::GraphBinary => {
                let mut body = Vec::new();
                graphbinary::write_request(&self.request(query), &mut body).unwrap();
                let answer = self.exchange(graphbinary::MEDIA_TYPE, &body).await;
                // The results are what the answer ends with: a list of one.
                let is_results = |at: &usize| {
                    answer[*at..].starts_with(&[9, 0, 0, 0, 0, 1]) && graphbinary::read_value(&answer[*at..]).is_ok()
                };
                let at = (0..answer.len()).find(is_results);
                at.map_or_else(|| String::from_utf8_lossy(&answer).into_owned(), |at| of_bytes(&answer[at + 6..]))
            }
            Way::GraphBinary4 => {
                let request = self.server.request("POST", "/gremlin").header("accept", graphbinary::fourth::MEDIA_TYPE);
                let request = request.json(&json!({"gremlin": query, "g": self.graph}));
                let answer = request.send().await.unwrap().bytes().await.unwrap();
                let result = answer.strip_prefix(&[0x84, 0]);
                let result = result.and_then(|rest| rest.strip_suffix(&[0xfd, 0, 0, 0, 0, 0, 200, 1, 1]));
                result.map_or_else(|| String::from_utf8_lossy(&answer).into_owned(), of_bytes)
            }
            Way::GraphSon(version) => {
                let answer =
                    self.exchange(version.media_type(), self.body("eval", &json!(query).to_string()).as_bytes()).await;
                of_answer(std::str::from_utf8(&answer).unwrap(), version)
            }
            Way::Bytecode(version) => {
                let body = self.body("bytecode", &bytecode(query)?);
                let answer = self.exchange(version.media_type(), body.as_bytes()).await;
                of_answer(std::str::from_utf8(&answer).unwrap(), version)
            }
        })
    }

    fn request(&self, query: &str) -> Request {
        let aliases = Value::Map(vec![("g".into(), self.graph.into())]);
        Request {
            id: Uuid::from_u128(7),
            op: "eval".into(),
            processor: "".into(),
            query: Some(Query::Text(query.into())),
            arguments: vec![("aliases".into(), aliases)],
        }
    }

    /// A request in GraphSON, whose query is JSON.
    fn body(&self, op: &str, query: &str) -> String {
        let id = Uuid::from_u128(7);
        let processor = if op == "bytecode" { "traversal" } else { "" };
        let graph = self.graph;
        format!(
            r#"{{"requestId":{{"@type":"g:UUID","@value":"{id}"}},"op":"{op}","processor":"{processor}",
               "args":{{"gremlin":{query},"aliases":{{"g":"{graph}"}}}}}}"#
        )
    }

    async fn exchange(&mut self, media_type: &str, body: &[u8]) -> Vec<u8> {
        let message = [&[media_type.len() as u8], media_type.as_bytes(), body].concat();
        self.socket.send(Message::Binary(message.into())).await.unwrap();
        loop {
            match timeout(PATIENCE, self.socket.next()).await.unwrap().unwrap().unwrap() {
                Message::Binary(answer) => return answer.into(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A query as the bytecode of a driver; `None` if it has other arguments than numbers and texts.
fn bytecode(query: &str) -> Option<String> {
    let script = gremlin::parse(query).unwrap();
    let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
    let argument = |argument: &Argument| {
        let value = match argument {
            Argument::Literal(Literal::Number(number)) => Value::Number(number.clone()),
            Argument::Literal(Literal::Text(text)) => Value::Text(text.clone()),
            _ => return None,
        };
        let mut json = String::new();
        graphson::write_value(&value, Version::Third, &mut json).unwrap();
        Some(json)
    };
    let mut steps = Vec::new();
    for call in &traversal.steps {
        let arguments = call.arguments.iter().map(argument).collect::<Option<Vec<_>>>()?;
        steps.push(format!("[{}]", [vec![json!(call.name).to_string()], arguments].concat().join(",")));
    }
    Some(format!(r#"{{"@type":"g:Bytecode","@value":{{"step":[{}]}}}}"#, steps.join(",")))
}

/// A number of GraphBinary: the code of its type, no null, and itself.
fn of_bytes(bytes: &[u8]) -> String {
    let [code, 0, number @ ..] = bytes else { panic!("{bytes:x?}") };
    macro_rules! fixed {
        ($kind:ty) => {
            <$kind>::from_be_bytes(number.try_into().unwrap())
        };
    }
    match code {
        0x01 => format!("int:{}", fixed!(i32)),
        0x02 => format!("long:{}", fixed!(i64)),
        0x07 => format!("double:{:?}", fixed!(f64)),
        0x08 => format!("float:{:?}", fixed!(f32)),
        0x22 => format!("bigdecimal:{}", digits(graphbinary::read_value(bytes).unwrap())),
        0x23 => format!("bigint:{}", digits(graphbinary::read_value(bytes).unwrap())),
        0x24 => format!("byte:{}", fixed!(i8)),
        0x26 => format!("short:{}", fixed!(i16)),
        other => format!("a value of the type {other:#x}"),
    }
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: Results<'a>,
}

#[derive(Deserialize)]
struct Results<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(rename = "@type")]
    kind: &'a str,
    #[serde(rename = "@value", borrow)]
    value: &'a RawValue,
}

#[derive(Deserialize)]
struct Traverser<'a> {
    #[serde(borrow)]
    value: &'a RawValue,
}

/// The only result of an answer in GraphSON.
fn of_answer(answer: &str, version: Version) -> String {
    let data = serde_json::from_str::<Answer<'_>>(answer).unwrap().result.data;
    let list = match version {
        Version::Second => Some(data),
        Version::Third => serde_json::from_str::<Typed<'_>>(data.get()).ok().map(|list| list.value),
    };
    match list.and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list.get()).ok()).as_deref() {
        Some([result]) => of_json(result),
        _ => answer.to_owned(),
    }
}

/// A number of GraphSON, or one that a traverser holds.
fn of_json(json: &RawValue) -> String {
    let Typed { kind, value } = serde_json::from_str(json.get()).unwrap();
    let text = value.get().trim_matches('"');
    match kind {
        "g:Traverser" => of_json(serde_json::from_str::<Traverser<'_>>(value.get()).unwrap().value),
        "g:Int32" => format!("int:{text}"),
        "g:Int64" => format!("long:{text}"),
        "g:Float" => float(text),
        "g:Double" => double(text),
        "gx:Byte" => format!("byte:{text}"),
        "gx:Int16" => format!("short:{text}"),
        "gx:BigInteger" => format!("bigint:{text}"),
        "gx:BigDecimal" => format!("bigdecimal:{}", digits(graphson::read_value(json.get().as_bytes()).unwrap())),
        other => format!("a value of the type {other}"),
    }
}

/// All digits of a big number.
fn digits(value: Value) -> String {
    match value {
        Value::Number(Number::BigInteger(number)) => number.to_string(),
        Value::Number(Number::BigDecimal(number)) => number.to_plain_string(),
        other => panic!("{other:?}"),
    }
}
