//! Clients that speak gRPC.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use anyhow::{Context, Result};
use hoplake_server::v1::{self, graphs_client::GraphsClient, query_client::QueryClient, vertex_ref};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};
use tonic::{
    Request, Status, Streaming,
    metadata::MetadataValue,
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};

use super::target::{BEARER, PATIENCE, Target};

/// Adds the token to each call.
#[derive(Debug, Clone, Copy)]
struct WithToken;

impl Interceptor for WithToken {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", MetadataValue::from_static(BEARER));
        Ok(request)
    }
}

async fn connect(target: Target) -> Result<InterceptedService<Channel, WithToken>> {
    let channel = Endpoint::new(format!("http://{}", target.grpc))?.connect().await?;
    Ok(InterceptedService::new(channel, WithToken))
}

fn graph() -> Option<v1::GraphRef> {
    Some(v1::GraphRef { name: "g".to_owned(), version: 0 })
}

fn person(key: u64) -> v1::VertexRef {
    v1::VertexRef { kind: Some(vertex_ref::Kind::Text(format!("Person:{key}"))) }
}

fn knows() -> v1::Hop {
    v1::Hop { text: "both:knows".to_owned(), ..v1::Hop::default() }
}

fn walk(start: u64, hops: usize) -> Option<v1::Traversal> {
    Some(v1::Traversal { starts: vec![person(start)], hops: vec![knows(); hops], ..v1::Traversal::default() })
}

/// What an answer ended with.
async fn outcome<T>(answer: Result<tonic::Response<Streaming<T>>, Status>) -> String {
    let read = async {
        let mut messages = answer?.into_inner();
        while messages.message().await?.is_some() {}
        Ok(())
    };
    named(read.await)
}

/// The reason that the server gives, or else the code: a connection that was closed has no reason.
fn named(ended: Result<(), Status>) -> String {
    let Err(status) = ended else { return "OK".to_owned() };
    let details = String::from_utf8_lossy(status.details());
    let reason = ["LIMIT", "BUSY", "TIME", "UNAVAILABLE", "SHUTTING_DOWN"].into_iter().find(|it| details.contains(it));
    format!("{:?}{}", status.code(), reason.map(|it| format!(" {it}")).unwrap_or_default())
}

/// All walks of `hops` hops.
pub(super) async fn paths(target: Target, start: u64, hops: usize) -> Result<String> {
    let request =
        v1::PathsRequest { graph: graph(), traversal: walk(start, hops), limit: 0, keys: true, ..Default::default() };
    Ok(outcome(GraphsClient::new(connect(target).await?).paths(request).await).await)
}

/// One hop, well-behaved.
pub(super) async fn neighbors(target: Target, start: u64) -> Result<String> {
    let mut client = GraphsClient::new(connect(target).await?);
    Ok(outcome(client.neighbors(neighbors_of([start])).await).await)
}

fn neighbors_of(keys: impl IntoIterator<Item = u64>) -> v1::NeighborsRequest {
    let vertices = keys.into_iter().map(person).collect();
    v1::NeighborsRequest { graph: graph(), vertices, hop: Some(knows()), keys: true, ..Default::default() }
}

/// 20 calls on one connection, each for the neighbours of 5,000 persons; none is read until it could be no longer.
pub(super) async fn unread_streams(target: Target, first: u64) -> Result<String> {
    let client = GraphsClient::new(connect(target).await?);
    let ask = |_| {
        let mut client = client.clone();
        async move { client.neighbors(neighbors_of(first..first + 5_000)).await }
    };
    let answers = futures::future::join_all((0..20).map(ask)).await;
    sleep(PATIENCE).await;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for answer in answers {
        *counts.entry(outcome(answer).await).or_default() += 1;
    }
    Ok(counts.into_keys().fold("late:".to_owned(), |mut text, outcome| {
        let _ = write!(text, " {outcome}");
        text
    }))
}

/// A stream of queries without end, of whose answers none is read.
pub(super) async fn unread_queries(target: Target, start: u64) -> Result<String> {
    let query = move |query| v1::QueryNeighborsRequest {
        query,
        graph: graph(),
        vertices: (start..start + 10).map(person).collect(),
        hop: Some(knows()),
    };
    let queries = tokio_stream::iter((0..).map(query));
    let answers = QueryClient::new(connect(target).await?).neighbors(queries).await;
    sleep(PATIENCE).await;
    let Ok(answers) = answers else { return Ok(outcome(answers).await) };
    let mut answers = answers.into_inner();
    // What was on the way comes first.
    for _ in 0..10_000 {
        match answers.message().await {
            Ok(Some(_)) => {}
            ended => return Ok(format!("late: {}", named(ended.map(drop)))),
        }
    }
    Ok("late: more than 10,000 answers".to_owned())
}

/// Asks for five hops, and resets the stream.
pub(super) async fn leave(target: Target, start: u64) -> Result<String> {
    let request = v1::TraverseRequest { graph: graph(), traversal: walk(start, 5), ..v1::TraverseRequest::default() };
    let mut client = GraphsClient::new(connect(target).await?);
    let answer = timeout(Duration::from_millis(100), async { outcome(client.traverse(request).await).await }).await;
    Ok(answer.unwrap_or_else(|_| "left".to_owned()))
}

/// Opens traversals, goes one step with each, and forgets them.
pub(super) async fn cursor(target: Target, start: u64) -> Result<String> {
    let mut client = GraphsClient::new(connect(target).await?);
    for _ in 0..100 {
        let opened = client.open_traversal(v1::OpenTraversalRequest { graph: graph(), limits: None }).await;
        let traversal = match opened {
            Ok(opened) => opened.into_inner().traversal,
            Err(status) => return Ok(named(Err(status))),
        };
        let step =
            v1::NextNeighborsRequest { traversal, vertices: vec![person(start)], hop: Some(knows()), keys: true };
        let ended = outcome(client.next_neighbors(step).await).await;
        if ended != "OK" {
            return Ok(ended);
        }
    }
    Ok("100 opened".to_owned())
}

/// 50 connections that say that they speak HTTP/2, and nothing more.
pub(super) async fn silent(target: Target) -> Result<String> {
    let mut all = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(target.grpc).await.context("connect")?;
        // The preface, and settings without a setting.
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await?;
        all.push(stream);
    }
    let mut closed = 0;
    for stream in &mut all {
        let mut rest = Vec::new();
        closed += usize::from(timeout(PATIENCE, stream.read_to_end(&mut rest)).await.is_ok());
    }
    Ok(format!("{closed} of 50 closed"))
}
