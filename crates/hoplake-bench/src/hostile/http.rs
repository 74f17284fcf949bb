//! Clients that speak HTTP/1.1, by hand, since no library sends half a request or leaves an answer unread.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::target::{BEARER, PATIENCE, Target};

/// Asks for a graph.
pub(super) async fn get(target: Target, graph: &str) -> io::Result<String> {
    let request =
        format!("GET /v1/graphs/{graph} HTTP/1.1\r\nhost: x\r\nauthorization: {BEARER}\r\nconnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(target.http).await?;
    stream.write_all(request.as_bytes()).await?;
    read_all(&mut stream).await
}

async fn send(target: Target, call: &str, body: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(target.http).await?;
    let head = format!(
        "POST /v1/graphs/g/{call} HTTP/1.1\r\nhost: x\r\nauthorization: {BEARER}\r\nconnection: close\r\n\
         accept: application/x-ndjson\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    Ok(stream)
}

/// The status, and the reason of a problem in the first or the last bytes.
async fn read_all(stream: &mut TcpStream) -> io::Result<String> {
    let mut first = Vec::new();
    let mut last = Vec::new();
    let mut part = vec![0; 64 << 10];
    loop {
        let count = stream.read(&mut part).await?;
        if count == 0 {
            break;
        }
        if first.len() < 1_024 {
            first.extend_from_slice(&part[..count.min(1_024)]);
        }
        last.extend_from_slice(&part[..count]);
        last.drain(..last.len().saturating_sub(1_024));
    }
    let first = String::from_utf8_lossy(&first).into_owned();
    let last = String::from_utf8_lossy(&last).into_owned();
    let Some(status) = first.split(' ').nth(1) else { return Ok("closed".to_owned()) };
    let reason = [&first, &last].into_iter().find_map(|text| text.rsplit_once("\"reason\":\"")?.1.split('"').next());
    Ok(reason.map_or_else(|| status.to_owned(), |reason| format!("{status} {reason}")))
}

/// Asks, and reads the answer.
pub(super) async fn answer(target: Target, call: &str, body: &str) -> io::Result<String> {
    read_all(&mut send(target, call, body).await?).await
}

/// Waits without reading, until it could be no longer.
pub(super) async fn unread(target: Target, call: &str, body: &str) -> io::Result<String> {
    let mut stream = send(target, call, body).await?;
    sleep(PATIENCE).await;
    read_all(&mut stream).await.map(|outcome| format!("late: {outcome}"))
}

/// Asks, and closes the connection.
pub(super) async fn leave(target: Target, call: &str, body: &str) -> io::Result<String> {
    let stream = send(target, call, body).await?;
    sleep(Duration::from_millis(100)).await;
    drop(stream);
    Ok("left".to_owned())
}

/// Asks again and again on one connection, and reads nothing.
pub(super) async fn pipelined(target: Target, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(target.http).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    Ok(format!("{path}: {}", flood(&mut stream, request.as_bytes()).await))
}

/// Sends the same bytes again and again and reads nothing, until the server closes the connection or could have done so.
pub(super) async fn flood(stream: &mut TcpStream, bytes: &[u8]) -> &'static str {
    // Large writes, so that clients leave the processors to the server.
    let many = bytes.repeat((32 << 10) / bytes.len() + 1);
    let sending = async { while stream.write_all(&many).await.is_ok() {} };
    timeout(PATIENCE, sending).await.map_or("left open", |_| "closed")
}

/// A byte a second of a body of 4 MB.
pub(super) async fn slow_body(target: Target) -> io::Result<String> {
    let mut stream = TcpStream::connect(target.http).await?;
    let head = format!(
        "POST /v1/graphs/g/look-up HTTP/1.1\r\nhost: x\r\nauthorization: {BEARER}\r\ncontent-length: 4000000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&vec![b' '; 1 << 20]).await?;
    let mut status = [0; 12];
    let answered = async {
        loop {
            if let Ok(read) = timeout(Duration::from_secs(1), stream.read(&mut status)).await {
                return read;
            }
            stream.write_all(b" ").await?;
        }
    };
    let read = answered.await?;
    Ok(String::from_utf8_lossy(&status[..read]).into_owned())
}

/// Sends the first bytes of 50 requests, and waits.
pub(super) async fn half_headers(target: Target) -> io::Result<String> {
    let mut all = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(target.http).await?;
        stream.write_all(b"GET /v1/graphs HTTP/1.1\r\nhost: x\r\nx-h").await?;
        all.push(stream);
    }
    let mut closed = 0;
    for stream in &mut all {
        let mut byte = [0];
        closed += usize::from(timeout(PATIENCE, stream.read(&mut byte)).await.is_ok());
    }
    Ok(format!("{closed} of 50 closed"))
}
