//! Clients that mean it ill, and some that do not.
//!
//! They speak HTTP/1.1 by hand, since no library sends half a request or leaves an answer unread.

use std::{io, net::SocketAddr, time::Duration};

use hoplake_testkit::generate::SplitMix64;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

/// What is attacked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) http: SocketAddr,
    /// Persons have the keys below it.
    pub(super) vertices: u64,
}

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    LongPath,
    ManyPaths,
    ManyNeighbors,
    UnreadNeighbors,
    UnreadRows,
    Rows,
    Leaves,
    SlowBody,
    HalfHeaders,
    NoGraph,
    WellBehaved,
}

impl Kind {
    pub(super) const ALL: [Self; 11] = [
        Self::LongPath,
        Self::ManyPaths,
        Self::ManyNeighbors,
        Self::UnreadNeighbors,
        Self::UnreadRows,
        Self::Rows,
        Self::Leaves,
        Self::SlowBody,
        Self::HalfHeaders,
        Self::NoGraph,
        Self::WellBehaved,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::LongPath => "paths of 20 hops, limit 1",
            Self::ManyPaths => "paths of 8 hops, all",
            Self::ManyNeighbors => "neighbors of 100,000",
            Self::UnreadNeighbors => "neighbors of 20,000, unread",
            Self::UnreadRows => "rows of 3 hops, unread",
            Self::Rows => "rows of 3 hops",
            Self::Leaves => "5 hops, and leaves",
            Self::SlowBody => "slow body",
            Self::HalfHeaders => "50 half-sent headers",
            Self::NoGraph => "random graph names",
            Self::WellBehaved => "one hop (well-behaved)",
        }
    }
}

/// How long a client waits that does not read, or does not go on.
const PATIENCE: Duration = Duration::from_secs(60);

/// One attempt, and what came of it.
pub(super) async fn once(kind: Kind, target: Target, seed: u64) -> io::Result<String> {
    let mut random = SplitMix64::new(seed);
    let person = format!("\"Person:{}\"", random.below(target.vertices));
    let hops = |count: usize| vec!["\"both:knows\""; count].join(",");
    let walk = |count: usize, more: &str| format!("{{\"starts\":[{person}],\"hops\":[{}]{more}}}", hops(count));
    let mut many = |count: u64| {
        let first = random.below(target.vertices.saturating_sub(count).max(1));
        let names: Vec<_> =
            (first..first + count.min(target.vertices)).map(|key| format!("\"Person:{key}\"")).collect();
        format!("{{\"vertices\":[{}],\"hop\":\"both:knows\"}}", names.join(","))
    };
    match kind {
        Kind::LongPath => answer(target, "paths", &walk(20, ",\"limit\":1")).await,
        Kind::ManyPaths => answer(target, "paths", &walk(8, ",\"limit\":0,\"keys\":true")).await,
        Kind::ManyNeighbors => answer(target, "neighbors", &many(100_000)).await,
        Kind::UnreadNeighbors => unread(target, "neighbors", &many(20_000)).await,
        Kind::UnreadRows => unread(target, "traverse", &walk(3, ",\"select\":[\"name\",\"city\"]")).await,
        Kind::Rows => answer(target, "traverse", &walk(3, ",\"select\":[\"name\",\"city\"]")).await,
        Kind::Leaves => leave(target, "traverse", &walk(5, "")).await,
        Kind::SlowBody => slow_body(target).await,
        Kind::HalfHeaders => half_headers(target).await,
        Kind::NoGraph => {
            let path = format!(
                "GET /v1/graphs/none-{} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
                random.below(1 << 40)
            );
            let mut stream = TcpStream::connect(target.http).await?;
            stream.write_all(path.as_bytes()).await?;
            read_all(&mut stream).await
        }
        Kind::WellBehaved => answer(target, "traverse", &walk(1, ",\"limit\":10")).await,
    }
}

async fn send(target: Target, call: &str, body: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(target.http).await?;
    let head = format!(
        "POST /v1/graphs/g/{call} HTTP/1.1\r\nhost: x\r\nconnection: close\r\naccept: application/x-ndjson\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    Ok(stream)
}

/// The status, and the reason of a problem in the first or the last bytes.
async fn read_all(stream: &mut TcpStream) -> io::Result<String> {
    let (mut first, mut last) = (Vec::new(), Vec::new());
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

async fn answer(target: Target, call: &str, body: &str) -> io::Result<String> {
    read_all(&mut send(target, call, body).await?).await
}

/// Waits without reading, until it could be no longer.
async fn unread(target: Target, call: &str, body: &str) -> io::Result<String> {
    let mut stream = send(target, call, body).await?;
    sleep(PATIENCE).await;
    read_all(&mut stream).await.map(|outcome| format!("late: {outcome}"))
}

async fn leave(target: Target, call: &str, body: &str) -> io::Result<String> {
    let stream = send(target, call, body).await?;
    sleep(Duration::from_millis(100)).await;
    drop(stream);
    Ok("left".to_owned())
}

/// A byte a second of a body of 4 MB.
async fn slow_body(target: Target) -> io::Result<String> {
    let mut stream = TcpStream::connect(target.http).await?;
    stream.write_all(b"POST /v1/graphs/g/look-up HTTP/1.1\r\nhost: x\r\ncontent-length: 4000000\r\n\r\n").await?;
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

async fn half_headers(target: Target) -> io::Result<String> {
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
