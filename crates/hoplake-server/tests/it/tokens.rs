//! Clients that guess the token: a connection has a few attempts, over each protocol.

use std::{net::SocketAddr, time::Duration};

use axum::body::Body;
use base64::{Engine, engine::general_purpose::STANDARD};
use futures::{SinkExt, StreamExt};
use hoplake_server::Settings;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_tungstenite::{
    client_async,
    tungstenite::{Message, client::IntoClientRequest, protocol::frame::coding::CloseCode},
};

use crate::running::{Running, settings};

/// Far beyond what any of this takes; what does not come is a failure.
const PATIENCE: Duration = Duration::from_secs(60);
/// More than a connection may have, and fewer than a client tries.
const MOST: usize = 20;

async fn server() -> Running {
    Running::start(Settings { token: Some("s3cret".into()), ..settings("memory://nothing") }).await
}

#[tokio::test]
async fn a_driver_has_a_few_passwords() {
    let server = server().await;
    let request = format!("ws://{}/gremlin", server.http).into_client_request().unwrap();
    let (mut socket, _) = client_async(request, TcpStream::connect(server.http).await.unwrap()).await.unwrap();
    let mut rejected = 0;
    let closed = loop {
        let sasl = STANDARD.encode(format!("\0ann\0guess {rejected}"));
        let message = json!({"requestId": "41d2e28a-20a4-4ab0-b379-d810dede3786", "op": "authentication",
            "processor": "", "args": {"sasl": sasl}});
        let _ = socket.send(Message::text(message.to_string())).await;
        match timeout(PATIENCE, socket.next()).await.expect("it is answered") {
            Some(Ok(Message::Text(answer))) => {
                assert!(answer.contains("401"), "{answer}");
                rejected += 1;
                assert!(rejected < MOST);
            }
            Some(Ok(Message::Close(Some(close)))) => break close.code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(closed, CloseCode::Policy);
    assert!(rejected > 2);
    let counted = "hoplake_requests_total{protocol=\"gremlin\",call=\"Authentication\",status=\"UNAUTHENTICATED\"}";
    assert_eq!(server.metric(counted).await, rejected as f64);
}

/// Over HTTP/1.1, one after the other and all at once, and with the schemes that are read.
#[tokio::test]
async fn a_connection_of_http_has_a_few_tokens() {
    let server = server().await;
    for scheme in ["Bearer guess", "Basic YW5uOmd1ZXNz", ""] {
        for request in ["GET /v1/graphs", "POST /gremlin"] {
            let header = if scheme.is_empty() { String::new() } else { format!("authorization: {scheme}\r\n") };
            let one = format!("{request} HTTP/1.1\r\nhost: x\r\n{header}\r\n");
            let mut stream = TcpStream::connect(server.http).await.unwrap();
            let _ = stream.write_all(one.repeat(2_000).as_bytes()).await;
            let mut answers = Vec::new();
            let _ =
                timeout(PATIENCE, stream.read_to_end(&mut answers)).await.expect("the server closes the connection");
            let rejected = String::from_utf8_lossy(&answers).matches("HTTP/1.1 401").count();
            assert!((2..MOST).contains(&rejected), "{request} {scheme}: {rejected}");
        }
    }
}

/// The requests of HTTP/2 that are answered before the server closes the connection.
async fn over_http2(address: SocketAddr, path: &str) -> usize {
    let tcp = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), tcp).await.unwrap();
    tokio::spawn(connection);
    for answered in 0..2_000 {
        let request = hyper::Request::post(format!("http://x{path}")).header("content-type", "application/grpc");
        let request = request.header("authorization", "Bearer guess").body(Body::empty()).unwrap();
        let answer = async {
            client.ready().await?;
            client.send_request(request).await
        };
        if timeout(PATIENCE, answer).await.expect("it is answered or not").is_err() {
            return answered;
        }
    }
    2_000
}

#[tokio::test]
async fn a_connection_of_http2_has_a_few_tokens() {
    let server = server().await;
    for (address, path) in [
        (server.grpc, "/hoplake.v1.Graphs/LookUp"),
        (server.grpc, "/hoplake.v1.Query/Neighbors"),
        (server.http, "/v1/graphs/g/traverse"),
        (server.http, "/gremlin"),
    ] {
        let answered = over_http2(address, path).await;
        assert!((2..MOST).contains(&answered), "{path}: {answered}");
    }
}
