//! Clients that speak HTTP/2 and never open the windows of their streams.

use std::{collections::BTreeSet, net::SocketAddr};

use anyhow::Result;
use futures::future::join_all;
use hyper::{Request, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpStream, time::timeout};

use super::target::PATIENCE;

/// Requests of a connection at a time.
const STREAMS: usize = 128;
/// A message of gRPC without a field.
pub(super) const EMPTY_MESSAGE: &str = "\0\0\0\0\0";

/// Asks on many streams, and holds the answers, whose bodies cannot arrive, until the server closes the connection or could have
/// done so.
pub(super) async fn closed_windows(server: SocketAddr, path: &str, body: &'static str) -> Result<String> {
    let stream = TokioIo::new(TcpStream::connect(server).await?);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(0);
    let (client, connection) = builder.handshake(stream).await?;
    let connection = tokio::spawn(connection);
    let method = if body.is_empty() { "GET" } else { "POST" };
    let ask = || {
        let mut client = client.clone();
        let request = Request::builder().method(method).uri(format!("http://{server}{path}"));
        let request = request.header("content-type", "application/grpc").body(body.to_owned());
        async move {
            client.ready().await?;
            Ok::<_, anyhow::Error>(client.send_request(request?).await?)
        }
    };
    // A request that is refused, or waits for its turn, ends with the connection at the latest.
    let held = async {
        let answers = join_all((0..STREAMS).map(|_| ask())).await;
        let _ = connection.await;
        answers
    };
    let Ok(answers) = timeout(PATIENCE, held).await else { return Ok(format!("{path}: left open")) };
    let statuses: BTreeSet<_> = answers.iter().flatten().map(|answer| answer.status().as_u16()).collect();
    Ok(format!("{path}: {statuses:?}, closed"))
}
