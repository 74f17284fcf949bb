//! Requests that cannot be read: messages that are none, and bodies that are announced as too large. They are rejected at once, as what
//! they are, whatever is asked.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use hoplake_server::{Settings, v1};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::{
    running::{Running, settings},
    sample,
};

/// Far beyond what any of this takes; what does not come is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// The parts of descriptors (descriptor.proto) that name the methods.
#[derive(Message)]
struct Files {
    #[prost(message, repeated, tag = "1")]
    file: Vec<File>,
}

#[derive(Message)]
struct File {
    #[prost(string, tag = "2")]
    package: String,
    #[prost(message, repeated, tag = "6")]
    service: Vec<Service>,
}

#[derive(Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    method: Vec<Method>,
}

#[derive(Message)]
struct Method {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bool, tag = "5")]
    client_streaming: bool,
}

/// The paths of all methods, and whether they read a stream.
fn methods() -> Vec<(String, bool)> {
    let mut methods = Vec::new();
    for descriptors in [v1::DESCRIPTORS, tonic_health::pb::FILE_DESCRIPTOR_SET] {
        for File { package, service } in Files::decode(descriptors).unwrap().file {
            for Service { name, method } in service {
                methods.extend(method.iter().map(|it| (format!("/{package}.{name}/{}", it.name), it.client_streaming)));
            }
        }
    }
    methods
}

type Client = hyper::client::conn::http2::SendRequest<Body>;

async fn http2_at(address: std::net::SocketAddr) -> Client {
    let tcp = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (client, connection) = http2::handshake(TokioExecutor::new(), tcp).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The status of an answer of gRPC, which is in its headers or in its trailers.
async fn status(answer: hyper::Response<hyper::body::Incoming>) -> Status {
    if let Some(status) = Status::from_header_map(answer.headers()) {
        return status;
    }
    let mut body = answer.into_body();
    while let Some(frame) = std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(trailers) = frame.unwrap().into_trailers() {
            return Status::from_header_map(&trailers).unwrap();
        }
    }
    panic!("an answer without a status")
}

#[tokio::test]
async fn bytes_that_are_no_message_are_the_clients_mistake_in_every_call() {
    let server = Running::start(settings(&sample::in_memory("g").await)).await;
    let mut client = http2_at(server.grpc).await;
    let methods = methods();
    assert!(methods.len() > 30, "{methods:?}");
    for (path, is_stream) in methods {
        for (what, bytes) in [
            ("a field that breaks off", &[0, 0, 0, 0, 2, 0xff, 0xff][..]),
            ("a field of an unknown kind", &[0, 0, 0, 0, 1, 0x07]),
            ("a message that breaks off", &[0, 0, 0, 0, 9, 1]),
            ("a flag that is none", &[9, 0, 0, 0, 0]),
            ("compressed as nothing was agreed", &[1, 0, 0, 0, 0]),
            ("no message", &[]),
        ] {
            if is_stream && bytes.is_empty() {
                continue;
            }
            let request = hyper::Request::post(format!("http://x{path}")).header("content-type", "application/grpc");
            let answer = client.send_request(request.body(Body::from(bytes)).unwrap());
            let answer = timeout(PATIENCE, answer).await.expect("it is refused").unwrap();
            let status = status(answer).await;
            assert_eq!(status.code(), Code::InvalidArgument, "{path}, {what}: {status:?}");
            if path.starts_with("/hoplake.v1.") && !is_stream {
                assert_eq!(status.get_details_error_info().unwrap().reason, "INVALID", "{path}, {what}");
            }
        }
    }
    let counted = "hoplake_requests_total{protocol=\"grpc\",call=\"LookUp\",status=\"INVALID\"}";
    assert_eq!(server.metric(counted).await, 6.0);
}

/// All of a connection until its server closes it or an answer is complete in its first part.
async fn first_answer(stream: &mut TcpStream) -> String {
    let mut buffer = vec![0; 64 << 10];
    let read = timeout(PATIENCE, stream.read(&mut buffer)).await.expect("it is answered").unwrap();
    String::from_utf8_lossy(&buffer[..read]).into_owned()
}

#[tokio::test]
async fn a_body_that_is_announced_as_too_large_is_rejected_before_it_is_sent() {
    let folder = sample::in_memory("g").await;
    let server = Running::start(Settings { writable: true, ..settings(&folder) }).await;
    let document = server.ask("GET", "/openapi.json", &Value::Null).await;
    let mut tried = vec![("POST".to_owned(), "/gremlin".to_owned(), "application/json")];
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let Some(content) = operation["requestBody"]["content"].as_object() else { continue };
            let path = path.replace("{graph}", "g").replace("{query}", "q").replace("{traversal}", "t");
            let kind = if content.contains_key("application/json") { "application/json" } else { "text/csv" };
            tried.push((method.to_uppercase(), path, kind));
        }
    }
    assert!(tried.len() > 10, "{tried:?}");
    const LENGTH: u64 = 10_000_000_000;
    let mut over_http2 = http2_at(server.http).await;
    for (method, path, kind) in tried {
        for expect in ["", "expect: 100-continue\r\n"] {
            let head = format!(
                "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\n{expect}content-length: {LENGTH}\r\n\r\n"
            );
            let mut stream = TcpStream::connect(server.http).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            let answer = first_answer(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 413 "), "{method} {path} {expect}: {answer}");
        }
        let request = hyper::Request::builder().method(method.as_str()).uri(format!("http://x{path}"));
        let request = request.header("content-type", kind).header("content-length", LENGTH);
        let never = Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
        let answer = over_http2.send_request(request.body(never).unwrap());
        let answer = timeout(PATIENCE, answer).await.expect("it is answered").unwrap();
        assert_eq!(answer.status(), 413, "{method} {path}");
    }
    server.until_metric("hoplake_memory_bytes", 0.0).await;
}
