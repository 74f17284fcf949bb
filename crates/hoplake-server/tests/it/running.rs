//! A server that runs, and clients that talk to it.

use std::{net::SocketAddr, time::Duration};

use hoplake_server::{
    Server, ServerBuilder, ServerError, Settings, StoreOpener,
    v1::{self, graphs_client::GraphsClient, query_client::QueryClient},
};
use serde_json::Value;
use tokio::{sync::oneshot, task::JoinHandle};
use tonic::transport::{Channel, Endpoint};

/// A server in this process. It ends on a signal, or with the test.
pub(crate) struct Running {
    pub(crate) grpc: SocketAddr,
    pub(crate) http: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Result<(), ServerError>>,
    client: reqwest::Client,
}

/// What tests serve with: free ports, no waiting at the end.
pub(crate) fn settings(graphs: &str) -> Settings {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    Settings { grpc: local, http: local, graphs: vec![graphs.into()], notice_ms: 0, ..Settings::default() }
}

impl Running {
    pub(crate) async fn start(settings: Settings) -> Self {
        Self::run(ServerBuilder::new(settings).bind().await.unwrap())
    }

    pub(crate) async fn start_with(settings: Settings, opener: StoreOpener) -> Self {
        Self::run(ServerBuilder::new(settings).open_stores_with(opener).bind().await.unwrap())
    }

    pub(crate) fn run(server: Server) -> Self {
        // The client of HTTP wants it named, though it speaks to loopback only.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let grpc = server.grpc();
        let http = server.http();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(server.run(async move { drop(stopped.await) }));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { grpc, http, stop: Some(stop), ended, client }
    }

    pub(crate) async fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.grpc)).unwrap().connect().await.unwrap()
    }

    pub(crate) async fn graphs(&self) -> GraphsClient<Channel> {
        GraphsClient::new(self.channel().await)
    }

    pub(crate) async fn query(&self) -> QueryClient<Channel> {
        QueryClient::new(self.channel().await)
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method.parse().unwrap(), format!("http://{}{path}", self.http))
    }

    /// A request that must succeed.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.try_ask(method, path, body).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    pub(crate) async fn try_ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.request(method, path).json(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    pub(crate) async fn text(&self, path: &str) -> (u16, String) {
        let answer = self.request("GET", path).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// A counter by its name and labels, as they stand in the text.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let (_, text) = self.text("/metrics").await;
        let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }

    /// Waits for a counter to have a value; gives up after a minute, so that one that never has is a failure.
    pub(crate) async fn until_metric(&self, name: &str, value: f64) {
        let having = async {
            while self.metric(name).await != value {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), having)
            .await
            .unwrap_or_else(|_| panic!("{name} is never {value}"));
    }

    /// Signals it to stop.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Drops its future, without an end in order. Its doors are tasks of their own, which stay with the runtime of the test.
    pub(crate) fn abort(&self) {
        self.ended.abort();
    }

    /// Waits for its end.
    pub(crate) async fn ended(self) {
        self.ended.await.unwrap().unwrap();
    }
}

pub(crate) fn graph(name: &str) -> Option<v1::GraphRef> {
    Some(v1::GraphRef { name: name.into(), version: 0 })
}

pub(crate) fn hop(text: &str) -> v1::Hop {
    v1::Hop { text: text.into(), ..v1::Hop::default() }
}

pub(crate) fn named(text: &str) -> v1::VertexRef {
    v1::VertexRef { kind: Some(v1::vertex_ref::Kind::Text(text.into())) }
}

/// A traversal of people by what they are called.
pub(crate) fn traversal(starts: &[&str], hops: &[&str]) -> v1::Traversal {
    v1::Traversal {
        starts: starts.iter().map(|start| named(start)).collect(),
        hops: hops.iter().map(|text| hop(text)).collect(),
        ..v1::Traversal::default()
    }
}

/// All messages of a stream.
pub(crate) async fn all<T>(answer: Result<tonic::Response<tonic::Streaming<T>>, tonic::Status>) -> Vec<T> {
    let mut stream = answer.unwrap().into_inner();
    let mut messages = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        messages.push(message);
    }
    messages
}
