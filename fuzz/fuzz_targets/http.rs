//! HTTP: any body to one of [`ROUTES`] of a server that serves a small graph is answered, in time, and never with a mistake of the
//! server (500) or with a connection that breaks off. Not among them are scans, changes, jobs, probes, and what creates graphs or
//! saves, lists and deletes prepared queries.

#![no_main]

use std::{
    net::SocketAddr,
    sync::{LazyLock, Mutex},
};

use bytes::Bytes;
use hoplake_fuzz::{
    begin, bounded,
    serving::{self, BYTES_MAX},
};
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use libfuzzer_sys::fuzz_target;
use tokio::{
    net::TcpStream,
    runtime::{Builder, Runtime},
};

const ROUTES: &[(&str, &str)] = &[
    ("POST", "/v1/graphs/g/look-up"),
    ("POST", "/v1/graphs/g/neighbors"),
    ("POST", "/v1/graphs/g/properties"),
    ("POST", "/v1/graphs/g/traverse"),
    ("POST", "/v1/graphs/g/paths"),
    ("POST", "/v1/graphs/g/shortest-path"),
    ("POST", "/v1/graphs/g/traversals"),
    ("POST", "/v1/graphs/g/refresh"),
    ("POST", "/v1/traversals/{}/neighbors"),
    ("DELETE", "/v1/traversals/{}"),
    ("GET", "/v1/graphs/g"),
    ("GET", "/v1/graphs"),
    ("PUT", "/v1/graphs/g/look-up"),
    ("POST", "/v1/graphs/other/look-up"),
    ("POST", "/gremlin"),
    ("POST", "/v1/graphs/g/gremlin"),
    ("POST", "/v1/graphs/g/queries/q"),
];
const ACCEPTS: [&str; 5] = [
    "application/json",
    "application/x-ndjson",
    "application/vnd.apache.arrow.stream",
    "*/*",
    "application/vnd.graphbinary-v4.0",
];
struct Fixture {
    client: Runtime,
    connection: Mutex<Option<SendRequest<Full<Bytes>>>>,
    /// The traversal that was opened last, for those who steer one.
    traversal: Mutex<String>,
    http: SocketAddr,
    _server: Runtime,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let (server, http) = serving::start(5_000);
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime can be had");
    Fixture { client, connection: Mutex::new(None), traversal: Mutex::new("none".into()), http, _server: server }
});

fuzz_target!(
    init: {
        begin();
        LazyLock::force(&FIXTURE);
    },
    |bytes: &[u8]| {
        // Two bytes say where it goes and what is to come back; the others are the body.
        let [route, accept, body @ ..] = bytes else { return };
        let (method, path) = ROUTES[usize::from(*route) % ROUTES.len()];
        let path = path.replace("{}", &FIXTURE.traversal.lock().expect("nobody panicked"));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", ACCEPTS[usize::from(*accept) % ACCEPTS.len()])
            .body(Full::new(Bytes::copy_from_slice(body)))
            .expect("a request is made of these");
        bounded(BYTES_MAX, || FIXTURE.client.block_on(ask(request)));
    }
);

async fn ask(request: Request<Full<Bytes>>) {
    let mut connection = FIXTURE.connection.lock().expect("nobody panicked").take();
    if connection.as_ref().is_none_or(|connection| connection.is_closed()) {
        let stream = TcpStream::connect(FIXTURE.http).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket has the option");
        let (sender, driver) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("it speaks HTTP");
        tokio::spawn(driver);
        connection = Some(sender);
    }
    let mut connection = connection.expect("there is one now");
    connection.ready().await.expect("the connection stays");
    let response = connection.send_request(request).await.expect("every request is answered");
    let status = response.status();
    let body = response.into_body().collect().await.expect("every answer ends").to_bytes();
    let is_mistake = status == StatusCode::INTERNAL_SERVER_ERROR || status == StatusCode::BAD_GATEWAY;
    assert!(!is_mistake, "{status}: {}", String::from_utf8_lossy(&body));
    let answer = serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default();
    if let Some(opened) = answer["traversal"].as_str().filter(|_| status == StatusCode::OK) {
        opened.clone_into(&mut FIXTURE.traversal.lock().expect("nobody panicked"));
    }
    *FIXTURE.connection.lock().expect("nobody panicked") = Some(connection);
}
