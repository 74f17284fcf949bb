//! Gremlin over WebSocket: frames, statuses, sessions, the token, time, and clients that misbehave.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::{SinkExt, StreamExt};
use hoplake::gremlin::{
    graphbinary, graphson,
    message::{Query, Request, Response},
    value::Value,
};
use hoplake_server::{GremlinSettings, LimitSettings, Settings};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest, protocol::frame::coding::CloseCode},
};
use uuid::Uuid;

use crate::{
    running::{Running, settings},
    sample,
};

/// Far beyond what any of this takes; what does not come is a failure.
const PATIENCE: Duration = Duration::from_secs(60);
/// It runs until its time is over.
const ENDLESS: &str = "g.inject(1).repeat(__.identity()).times(1000000000)";
/// 512 results, which are equal and so bulked.
const MANY: &str = "g.inject(1).repeat(__.union(__.identity(), __.identity())).times(9)";

/// A driver.
pub(crate) struct Driver {
    socket: WebSocketStream<TcpStream>,
    graph: &'static str,
}

impl Driver {
    pub(crate) async fn connect(server: &Running, graph: &'static str) -> Self {
        Self::connect_with(server, graph, &[]).await.unwrap()
    }

    async fn connect_with(
        server: &Running,
        graph: &'static str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, Error> {
        let mut request = format!("ws://{}/gremlin", server.http).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let (socket, _) = client_async(request, TcpStream::connect(server.http).await.unwrap()).await?;
        Ok(Self { socket, graph })
    }

    pub(crate) fn request(&self, text: &str) -> Request {
        let aliases = Value::Map(vec![("g".into(), self.graph.into())]);
        Request {
            id: Uuid::from_u128(rand()),
            op: "eval".into(),
            processor: "".into(),
            query: Some(Query::Text(text.into())),
            arguments: vec![("aliases".into(), aliases)],
        }
    }

    async fn send(&mut self, request: &Request) {
        let mut message = vec![graphbinary::MEDIA_TYPE.len() as u8];
        message.extend(graphbinary::MEDIA_TYPE.as_bytes());
        graphbinary::write_request(request, &mut message).unwrap();
        self.socket.send(Message::Binary(message.into())).await.unwrap();
    }

    async fn next(&mut self) -> Option<Result<Message, Error>> {
        timeout(PATIENCE, self.socket.next()).await.expect("the server says something")
    }

    async fn response(&mut self) -> Response {
        match self.next().await.unwrap().unwrap() {
            Message::Binary(bytes) => graphbinary::read_response(&bytes).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// All responses to a request, of which this driver has one at a time.
    async fn responses(&mut self, request: &Request) -> Vec<Response> {
        self.send(request).await;
        let mut all = Vec::new();
        loop {
            let response = self.response().await;
            assert_eq!(response.request_id, Some(request.id), "{response:?}");
            let is_last = response.status != 206;
            all.push(response);
            if is_last {
                return all;
            }
        }
    }

    /// The results of a text, and its last response.
    pub(crate) async fn answer(&mut self, request: &Request) -> (Vec<Value>, Response) {
        let mut responses = self.responses(request).await;
        let results = responses.iter().flat_map(|response| list(&response.data)).collect();
        (results, responses.pop().unwrap())
    }

    async fn results(&mut self, text: &str) -> Vec<Value> {
        let (results, last) = self.answer(&self.request(text)).await;
        assert!([200, 204].contains(&last.status), "{text}: {last:?}");
        results
    }

    async fn failure(&mut self, text: &str) -> Response {
        self.answer(&self.request(text)).await.1
    }

    /// A statement of a session.
    fn in_session(&self, session: &str, text: &str) -> Request {
        let mut request = self.request(text);
        request.processor = "session".into();
        request.arguments.push(("session".into(), session.into()));
        request
    }

    async fn say(&mut self, session: &str, text: &str) -> (Vec<Value>, Response) {
        self.answer(&self.in_session(session, text)).await
    }

    async fn close_session(&mut self, session: &str) -> Response {
        let mut request = self.in_session(session, "");
        request.op = "close".into();
        request.query = None;
        self.answer(&request).await.1
    }

    fn authentication(&self, id: Uuid, sasl: &str) -> Request {
        let arguments = vec![("sasl".into(), Value::Text(STANDARD.encode(sasl).into()))];
        Request { id, op: "authentication".into(), processor: "traversal".into(), query: None, arguments }
    }

    /// The code with which the server closes the connection.
    async fn closed(&mut self) -> Option<CloseCode> {
        loop {
            match self.next().await {
                Some(Ok(Message::Close(close))) => return close.map(|close| close.code),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }
}

fn list(value: &Value) -> Vec<Value> {
    match value {
        Value::List(items) => items.clone(),
        Value::Null => Vec::new(),
        other => panic!("{other:?}"),
    }
}

fn rand() -> u128 {
    ulid::Ulid::generate().into()
}

fn exception(response: &Response) -> String {
    let (_, exceptions) = response.attributes.iter().find(|(name, _)| *name == "exceptions".into()).unwrap();
    match &list(exceptions)[..] {
        [Value::Text(name)] => name.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A server that writes, with the empty graph `new`.
pub(crate) async fn writable(change: impl FnOnce(&mut Settings)) -> Running {
    let mut settings = Settings { writable: true, ..settings(&sample::in_memory("g").await) };
    change(&mut settings);
    let token = settings.token.clone();
    let server = Running::start(settings).await;
    let create = server.request("PUT", "/v1/graphs/new");
    let create = token.iter().fold(create, |create, token| create.bearer_auth(token));
    assert_eq!(create.send().await.unwrap().status(), 201);
    server
}

#[tokio::test]
async fn results_come_in_batches() {
    let server = Running::start(settings(&sample::in_memory("g").await)).await;
    let mut driver = Driver::connect(&server, "g").await;
    assert_eq!(driver.results("g.V().hasLabel('Person').count()").await, [Value::from(256_i64)]);
    assert_eq!(driver.results("g.V().hasLabel('Nobody')").await, []);
    let statuses =
        |responses: &[Response]| responses.iter().map(|it| (it.status, list(&it.data).len())).collect::<Vec<_>>();
    // Equal results come as often as they are there, and an exact number of batches has no empty one at its end.
    let responses = driver.responses(&driver.request(MANY)).await;
    assert_eq!(statuses(&responses), [[(206, 64); 7].as_slice(), &[(200, 64)]].concat());
    let mut request = driver.request("g.V().hasLabel('Person').values('name')");
    request.arguments.push(("batchSize".into(), 100.into()));
    assert_eq!(statuses(&driver.responses(&request).await), [(206, 100), (206, 100), (200, 56)]);
    // Large results are divided further.
    let text = "x".repeat(300_000);
    let large = format!("g.inject('{text}').repeat(__.union(__.identity(), __.identity())).times(3)");
    assert_eq!(statuses(&driver.responses(&driver.request(&large)).await), [(206, 2), (206, 2), (206, 2), (200, 2)]);
    // Elements have their properties unless the driver does without.
    let mut request = driver.request("g.V().hasLabel('Person').limit(1)");
    let has_properties = |results: &[Value]| match results {
        [Value::Vertex(vertex)] => vertex.properties.as_ref().is_some_and(|properties| !properties.is_empty()),
        other => panic!("{other:?}"),
    };
    assert!(has_properties(&driver.answer(&request).await.0));
    request.arguments.push(("materializeProperties".into(), "tokens".into()));
    assert!(!has_properties(&driver.answer(&request).await.0));
    assert_eq!(driver.results("g.V().hasLabel('Person').hasNext()").await, [Value::from(true)]);
    assert_eq!(driver.results("g.inject(1, 1, 2).toSet()").await.len(), 2);
    assert_eq!(driver.results(&format!("{MANY}.next(100)")).await.len(), 100);
    assert_eq!(driver.results("g.V().count(); g.inject(7)").await, [Value::from(7)]);
    let named = [("x".into(), Value::from("Person"))];
    let mut request = driver.request("g.V().hasLabel(x).count()");
    request.arguments.push(("bindings".into(), Value::Map(named.to_vec())));
    assert_eq!(driver.answer(&request).await.0, [Value::from(256_i64)]);
    let ended = "hoplake_requests_total{protocol=\"gremlin\",call=\"Eval\",status=\"OK\"}";
    assert_eq!(server.metric(ended).await, 12.0);
    assert_eq!(server.metric("hoplake_gremlin_connections_open").await, 1.0);
}

#[tokio::test]
async fn answers_are_encoded_as_their_request() {
    let server = Running::start(settings(&sample::in_memory("g").await)).await;
    let mut driver = Driver::connect(&server, "g").await;
    let id = Uuid::from_u128(7);
    let steps = json!({"step": [["V"], ["hasLabel", "Person"], ["count"]]});
    let bytecode = json!({"@type": "g:Bytecode", "@value": steps});
    let body = |op: &str, processor: &str, gremlin: serde_json::Value| {
        let args = json!({"gremlin": gremlin, "aliases": {"g": "g"}});
        json!({"requestId": {"@type": "g:UUID", "@value": id.to_string()}, "op": op, "processor": processor, "args": args}).to_string()
    };
    let binary = |media_type: &str, body: &str| {
        Message::Binary([&[media_type.len() as u8], media_type.as_bytes(), body.as_bytes()].concat().into())
    };
    for version in [graphson::Version::Third, graphson::Version::Second] {
        driver.socket.send(binary(version.media_type(), &body("eval", "", json!("g.inject(5)")))).await.unwrap();
        let Message::Binary(answer) = driver.next().await.unwrap().unwrap() else { panic!("binary") };
        let response = graphson::read_response(&answer).unwrap();
        assert_eq!((response.request_id, response.status), (Some(id), 200));
        assert_eq!(list(&response.data), [Value::from(5)]);
        // Bytecode is answered with traversers.
        driver
            .socket
            .send(binary(version.media_type(), &body("bytecode", "traversal", bytecode.clone())))
            .await
            .unwrap();
        let Message::Binary(answer) = driver.next().await.unwrap().unwrap() else { panic!("binary") };
        let response = graphson::read_response(&answer).unwrap();
        assert!(
            matches!(&list(&response.data)[..], [Value::Traverser(it)] if it.bulk == 1 && it.value == Value::from(256_i64))
        );
    }
    driver.socket.send(Message::text(body("eval", "", json!("g.inject('ä')")))).await.unwrap();
    let Message::Text(answer) = driver.next().await.unwrap().unwrap() else { panic!("text") };
    assert_eq!(list(&graphson::read_response(answer.as_bytes()).unwrap().data), [Value::from("ä")]);
    // What is no request is told so, and the connection goes on.
    let untyped = "application/vnd.gremlin-v3.0+json-untyped";
    for message in [
        binary(untyped, &body("eval", "", json!("g"))),
        binary("application/vnd.gremlin-v3.0+json", &body("eval", "", json!(1))),
    ] {
        driver.socket.send(message).await.unwrap();
        let Message::Binary(answer) = driver.next().await.unwrap().unwrap() else { panic!("binary") };
        let response = graphson::read_response(&answer).unwrap();
        assert_eq!((response.request_id, response.status), (Some(id), 498), "{response:?}");
    }
    for message in [
        vec![],
        vec![0],
        vec![200, 1, 2],
        b"\x05texts".to_vec(),
        [b"\x20", graphbinary::MEDIA_TYPE.as_bytes(), &[0x81]].concat(),
    ] {
        driver.socket.send(Message::Binary(message.into())).await.unwrap();
        let response = driver.response().await;
        assert_eq!((response.request_id, response.status), (None, 498), "{response:?}");
    }
    assert_eq!(driver.results("g.inject(1)").await.len(), 1);
}

#[tokio::test]
async fn a_mistake_has_its_status() {
    let server = Running::start(settings(&sample::in_memory("g").await)).await;
    let mut driver = Driver::connect(&server, "g").await;
    for (text, status, name, words) in [
        ("g.V(", 597, "hoplake.SyntaxException", "line 1, column 5"),
        ("g.V().foo()", 498, "hoplake.StepException", "`foo`"),
        ("g.V().explain().count()", 498, "hoplake.StepException", "explain"),
        ("g.inject('a').sum()", 500, "hoplake.QueryException", "sum"),
        ("g.V().hasLabel('Nobody').next()", 500, "hoplake.QueryException", "no result"),
        ("g.V().fail('enough')", 595, "hoplake.FailException", "enough"),
        ("g.addV('person')", 403, "hoplake.ReadOnlyException", "--writable"),
    ] {
        let response = driver.failure(text).await;
        assert_eq!((response.status, exception(&response).as_str()), (status, name), "{text}: {response:?}");
        assert!(response.message.as_deref().unwrap().contains(words), "{text}: {response:?}");
    }
    let mut request = driver.request("g.V()");
    request.op = "run".into();
    assert_eq!(driver.answer(&request).await.1.status, 498);
    request.op = "eval".into();
    request.processor = "cypher".into();
    assert_eq!(driver.answer(&request).await.1.status, 499);
    request.processor = "session".into();
    let response = driver.answer(&request).await.1;
    assert!(response.status == 499 && response.message.as_deref().unwrap().contains("session"), "{response:?}");
    driver.graph = "h";
    let response = driver.failure("g.V()").await;
    assert!(
        response.status == 499 && response.message.as_deref().unwrap().ends_with("this server knows g"),
        "{response:?}"
    );
}

/// `g` is the only graph, or the one of the settings.
#[tokio::test]
async fn g_is_the_usual_graph() {
    let folder = sample::in_memory("g").await;
    sample::add(&folder, "other", 8).await;
    let only = Settings { graphs: vec![format!("people={folder}/other")], ..settings("") };
    let set = GremlinSettings { graph: Some("other".into()), ..GremlinSettings::default() };
    let set = Settings { gremlin: set, ..settings(&folder) };
    for settings in [only, set] {
        let server = Running::start(settings).await;
        let mut driver = Driver::connect(&server, "g").await;
        assert_eq!(driver.results("g.V().hasLabel('Person').count()").await, [Value::from(256_i64)]);
    }
    let off = GremlinSettings { enabled: false, ..GremlinSettings::default() };
    let server = Running::start(Settings { gremlin: off, ..settings(&folder) }).await;
    assert!(
        matches!(Driver::connect_with(&server, "g", &[]).await, Err(Error::Http(answer)) if answer.status() == 404)
    );
}

#[tokio::test]
async fn the_token_is_the_password() {
    let server = Running::start(Settings {
        token: Some("s3cret".into()),
        header_timeout_ms: 2_000,
        ..settings(&sample::in_memory("g").await)
    })
    .await;
    let mut driver = Driver::connect(&server, "g").await;
    let first = driver.request("g.inject(1)");
    driver.send(&first).await;
    let challenge = driver.response().await;
    assert_eq!((challenge.request_id, challenge.status), (Some(first.id), 407));
    let wrong = driver.authentication(first.id, "\0ann\0wrong");
    assert_eq!(driver.answer(&wrong).await.1.status, 401);
    // The next one may be right, and what waits for it is answered then.
    let first = driver.request("g.inject(1)");
    let second = driver.request("g.inject(2)");
    driver.send(&first).await;
    assert_eq!(driver.response().await.status, 407);
    driver.send(&second).await;
    driver.send(&driver.authentication(first.id, "\0ann\0s3cret")).await;
    let mut answered = [driver.response().await, driver.response().await].map(|it| (it.request_id, it.status));
    answered.sort_by_key(|(id, _)| *id != Some(first.id));
    assert_eq!(answered, [(Some(first.id), 200), (Some(second.id), 200)]);
    assert_eq!(driver.results("g.inject(3)").await, [Value::from(3)]);
    let mut known = Driver::connect_with(&server, "g", &[("authorization", "Bearer s3cret")]).await.unwrap();
    assert_eq!(known.results("g.inject(3)").await, [Value::from(3)]);
    // Pings do not keep a connection that has not brought it.
    let mut silent = Driver::connect(&server, "g").await;
    silent.socket.send(Message::Ping(vec![1].into())).await.unwrap();
    assert_eq!(silent.closed().await, Some(CloseCode::Policy));
    assert_eq!(known.results("g.inject(3)").await, [Value::from(3)]);
}

#[tokio::test]
async fn a_query_has_its_time_and_ends_with_its_client() {
    let server = Running::start(Settings {
        limits: LimitSettings { time_ms: 60_000, ..LimitSettings::default() },
        ..settings(&sample::in_memory("g").await)
    })
    .await;
    let mut driver = Driver::connect(&server, "g").await;
    let response = driver.failure(&ENDLESS.replace("g.", "g.with('evaluationTimeout', 50).")).await;
    assert_eq!((response.status, exception(&response).as_str()), (598, "hoplake.TimeoutException"));
    let mut request = driver.request(ENDLESS);
    request.arguments.push(("evaluationTimeout".into(), 50_i64.into()));
    assert_eq!(driver.answer(&request).await.1.status, 598);
    server.until_metric("hoplake_queries_running", 0.0).await;
    driver.send(&driver.request(ENDLESS)).await;
    server.until_metric("hoplake_queries_running", 1.0).await;
    drop(driver);
    server.until_metric("hoplake_requests_total{protocol=\"gremlin\",call=\"Eval\",status=\"CANCELLED\"}", 1.0).await;
    server.until_metric("hoplake_queries_running", 0.0).await;
    server.until_metric("hoplake_gremlin_connections_open", 0.0).await;
    server.until_metric("hoplake_memory_bytes", 0.0).await;
}

#[tokio::test]
async fn a_request_that_writes_is_one_commit() {
    let server = writable(|_| ()).await;
    let mut driver = Driver::connect(&server, "new").await;
    let add = "g.addV('person').property('name', 'Ann').as('a').addV('person').property('name', 'Bo').addE('knows').from('a')";
    assert_eq!(driver.results(&format!("{add}.iterate()")).await, []);
    assert_eq!(driver.results("g.V().has('name', 'Ann').out('knows').values('name')").await, [Value::from("Bo")]);
    assert_eq!(server.metric("hoplake_commits_total").await, 1.0);
    assert_eq!(server.metric("hoplake_changes_total").await, 3.0);
    // One that fails changes nothing, also with statements before the mistake.
    assert_eq!(driver.failure("g.addV('person'); g.V().fail('no')").await.status, 595);
    assert_eq!(driver.results("g.V().count()").await, [Value::from(2_i64)]);
    // A transaction within a text.
    let text = "g.addV('person'); g.tx().commit(); g.addV('person'); g.tx().rollback(); g.V().count()";
    assert_eq!(driver.results(text).await, [Value::from(3_i64)]);
}

#[tokio::test]
async fn a_session_is_one_transaction() {
    let server = writable(|_| ()).await;
    let mut driver = Driver::connect(&server, "new").await;
    let mut other = Driver::connect(&server, "new").await;
    let count = "g.V().count()";
    let none = [Value::from(0_i64)];
    let one = [Value::from(1_i64)];
    driver.say("a", "g.addV('person').property('name', 'Ann')").await;
    assert_eq!((driver.say("a", count).await.0, other.results(count).await), (one.to_vec(), none.to_vec()));
    // A mistake leaves the transaction as it was.
    assert_eq!(driver.say("a", "g.addV('person').fail('no')").await.1.status, 595);
    assert_eq!(driver.say("a", count).await.0, one);
    assert_eq!(driver.say("a", "g.tx().rollback()").await.1.status, 204);
    assert_eq!(driver.say("a", count).await.0, none);
    driver.say("a", "g.addV('person').property('name', 'Ann')").await;
    assert_eq!(driver.say("a", "g.tx().commit()").await.1.status, 204);
    assert_eq!(other.results(count).await, one);
    // Its end is a rollback, as is that of its connection.
    driver.say("a", "g.addV('person')").await;
    assert_eq!(driver.close_session("a").await.status, 204);
    assert_eq!(driver.close_session("a").await.status, 204);
    driver.say("b", "g.addV('person')").await;
    assert_eq!(server.metric("hoplake_gremlin_sessions_open").await, 1.0);
    drop(driver);
    server.until_metric("hoplake_gremlin_sessions_open", 0.0).await;
    assert_eq!(other.results(count).await, one);
    // Requests of a session take turns, in the order in which they were sent.
    let texts = ["g.addV('x')", "g.V().count()", "g.addV('x')", "g.V().count()", "g.tx().commit()"];
    for text in texts {
        other.send(&other.in_session("c", text)).await;
    }
    let mut counts = Vec::new();
    for _ in texts {
        let response = other.response().await;
        assert!(response.status < 300, "{response:?}");
        counts.extend(list(&response.data).into_iter().filter(|value| matches!(value, Value::Number(_))));
    }
    assert_eq!(counts, [Value::from(2_i64), Value::from(3_i64)]);
    other.graph = "g";
    assert_eq!(other.say("c", "g.V().hasLabel('Person').count()").await.0, [Value::from(256_i64)]);
    other.graph = "new";
    let response = other.say("c", count).await.1;
    assert!(response.status == 499 && response.message.as_deref().unwrap().contains("\"g\""), "{response:?}");
}

#[tokio::test]
async fn the_second_of_two_that_change_the_same_is_a_conflict() {
    let server = writable(|_| ()).await;
    let mut driver = Driver::connect(&server, "new").await;
    driver.results("g.addV('person').property('name', 'Ann')").await;
    for session in ["a", "b"] {
        let (_, last) = driver.say(session, "g.V().has('name', 'Ann').property(single, 'age', 7).iterate()").await;
        assert_eq!(last.status, 204, "{last:?}");
    }
    assert_eq!(driver.say("a", "g.tx().commit()").await.1.status, 204);
    let response = driver.say("b", "g.tx().commit()").await.1;
    assert_eq!((response.status, exception(&response).as_str()), (500, "hoplake.ConflictException"), "{response:?}");
    // Again, from the beginning.
    driver.say("b", "g.V().has('name', 'Ann').property(single, 'age', 8).iterate()").await;
    assert_eq!(driver.say("b", "g.tx().commit()").await.1.status, 204);
    assert_eq!(driver.results("g.V().values('age')").await, [Value::from(8)]);
}

#[tokio::test]
async fn sessions_are_bounded_in_number_and_time() {
    let server = writable(|settings| {
        settings.gremlin.sessions_max = 2;
        settings.gremlin.session_idle_ms = 200;
    })
    .await;
    let mut driver = Driver::connect(&server, "new").await;
    for session in ["a", "b"] {
        assert_eq!(driver.say(session, "g.addV('person').iterate()").await.1.status, 204);
    }
    assert_eq!(driver.say("c", "g.V()").await.1.status, 429);
    server.until_metric("hoplake_gremlin_sessions_open", 0.0).await;
    // The driver learns that what it did is gone, and does not commit nothing.
    let response = driver.say("a", "g.tx().commit()").await.1;
    assert!(response.status == 500 && response.message.as_deref().unwrap().contains("rolled back"), "{response:?}");
    assert_eq!(driver.close_session("a").await.status, 204);
    assert_eq!(driver.say("a", "g.V().count()").await.0, [Value::from(0_i64)]);
}

/// Requests beyond the bound wait unread, and all are answered.
#[tokio::test]
async fn requests_are_pipelined_within_a_bound() {
    let gremlin = GremlinSettings { requests_max: 2, ..GremlinSettings::default() };
    let server = Running::start(Settings { gremlin, ..settings(&sample::in_memory("g").await) }).await;
    let mut driver = Driver::connect(&server, "g").await;
    let requests: Vec<_> = (0..100).map(|number| driver.request(&format!("g.inject({number})"))).collect();
    for request in &requests {
        driver.send(request).await;
    }
    let mut answered = Vec::new();
    for _ in &requests {
        let response = driver.response().await;
        assert_eq!(response.status, 200);
        answered.push(response.request_id.unwrap());
    }
    answered.sort();
    let mut ids: Vec<_> = requests.iter().map(|request| request.id).collect();
    ids.sort();
    assert_eq!(answered, ids);
}

/// The text of a handshake.
fn handshake() -> &'static [u8] {
    b"GET /gremlin HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
      sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
}

/// A connection after its handshake, byte by byte.
async fn raw(server: &Running) -> TcpStream {
    let mut stream = TcpStream::connect(server.http).await.unwrap();
    stream.write_all(handshake()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(PATIENCE, stream.read_u8()).await.unwrap().unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    stream
}

#[tokio::test]
async fn hostile_frames_end_their_connection_alone() {
    let server = Running::start(Settings {
        message_bytes_max: 100_000,
        body_timeout_ms: 300,
        ..settings(&sample::in_memory("g").await)
    })
    .await;
    let mut driver = Driver::connect(&server, "g").await;
    let mut large = Driver::connect(&server, "g").await;
    large.socket.send(Message::Binary(vec![7; 100_001].into())).await.unwrap();
    assert_eq!(large.closed().await, Some(CloseCode::Size));
    let frames: [&[u8]; 6] = [
        // Without a mask.
        &[0x82, 0x01, 0x00],
        // A reserved opcode, and reserved bits.
        &[0x83, 0x80, 0, 0, 0, 0],
        &[0xf2, 0x80, 0, 0, 0, 0],
        // A message of 2^62 bytes.
        &[0x82, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        // Text that is not UTF-8.
        &[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xff],
        // A ping that is too long, and a message that never ends.
        &[0x89, 0xfe, 0x10, 0, 0, 0, 0, 0, 1],
    ];
    for frame in frames {
        let mut stream = raw(&server).await;
        stream.write_all(frame).await.unwrap();
        let mut rest = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the server closes the connection");
    }
    // One that comes too slowly, with pings in between.
    let mut slow = raw(&server).await;
    slow.write_all(&[0x02, 0x83, 0, 0, 0, 0, 1, 2, 3]).await.unwrap();
    let pings = async {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if slow.write_all(&[0x89, 0x80, 0, 0, 0, 0]).await.is_err() {
                break;
            }
        }
    };
    timeout(PATIENCE, pings).await.expect("the server closes the connection");
    // Half of a handshake and half of a connection.
    let mut half = raw(&server).await;
    half.shutdown().await.unwrap();
    let mut rest = Vec::new();
    timeout(PATIENCE, half.read_to_end(&mut rest)).await.unwrap().unwrap();
    server.until_metric("hoplake_gremlin_connections_open", 1.0).await;
    server.until_metric("hoplake_memory_bytes", 0.0).await;
    assert_eq!(driver.results("g.inject(1)").await, [Value::from(1)]);
}

/// A query waits for its client, and a client that reads nothing loses its connection.
#[tokio::test]
async fn a_client_that_does_not_read_stops_its_query() {
    let server = Running::start(Settings { send_timeout_ms: 300, ..settings(&sample::in_memory("g").await) }).await;
    let mut driver = Driver::connect(&server, "g").await;
    let text = "x".repeat(1_000);
    let many = format!("g.inject('{text}').repeat(__.union(__.identity(), __.identity())).times(15)");
    driver.send(&driver.request(&many)).await;
    server.until_metric("hoplake_requests_total{protocol=\"gremlin\",call=\"Eval\",status=\"CANCELLED\"}", 1.0).await;
    server.until_metric("hoplake_gremlin_connections_open", 0.0).await;
    server.until_metric("hoplake_memory_bytes", 0.0).await;
}

#[tokio::test]
async fn idle_connections_are_asked_whether_they_are_there() {
    let gremlin = GremlinSettings { ping_ms: 50, ..GremlinSettings::default() };
    let settings = Settings { gremlin, idle_timeout_ms: 400, header_timeout_ms: 200, ..settings("memory://nothing") };
    let server = Running::start(settings).await;
    let mut driver = Driver::connect(&server, "g").await;
    let mut gone = raw(&server).await;
    for _ in 0..20 {
        // Reading it answers it.
        assert!(matches!(driver.next().await.unwrap().unwrap(), Message::Ping(_)));
    }
    // The other one was silent for longer than it may be.
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, gone.read_to_end(&mut rest)).await.expect("the server closes the connection");
    assert_eq!(driver.failure("g.V()").await.status, 499);
}

#[tokio::test]
async fn the_end_of_the_server_is_told() {
    let settings = Settings { notice_ms: 200, ..settings(&sample::in_memory("g").await) };
    let mut server = Running::start(settings).await;
    let mut idle = Driver::connect(&server, "g").await;
    let mut busy = Driver::connect(&server, "g").await;
    let mut request = busy.request(ENDLESS);
    request.arguments.push(("evaluationTimeout".into(), 500_i64.into()));
    busy.send(&request).await;
    server.until_metric("hoplake_queries_running", 1.0).await;
    server.stop();
    assert_eq!(idle.closed().await, Some(CloseCode::Away));
    // What runs is answered before.
    assert_eq!(busy.response().await.status, 598);
    assert_eq!(busy.closed().await, Some(CloseCode::Away));
    timeout(PATIENCE, server.ended()).await.unwrap();
}
