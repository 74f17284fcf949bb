//! A proxy before a real S3 server that counts what passes through it: requests, bytes and waves.
//!
//! **How it works.** Requests are held back until no further one has arrived for a moment; then all held requests are
//! forwarded together. So requests that the client sends without waiting for an answer become one wave, and those that
//! depend on an answer another. [`WaveStore`](crate::WaveStore) does the same in virtual time for a client in the same
//! process; this one counts for real processes, and does not rely on their own counts.
//!
//! **Its limit.** A client that is not given the processor for that moment in the middle of a wave makes two of it, so
//! the number of waves can come out too high on a machine that is busy, and never too low. Requests and bytes are
//! exact.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Response, body::Incoming, http, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep_until},
};

use crate::{
    RequestKind,
    sim::proxy::{Failure, kind_of, pass_on},
};

/// The quiet time after which a wave counts as complete.
const QUIET: Duration = Duration::from_millis(150);

/// A request that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// The request.
    pub kind: RequestKind,
    /// The path, with the bucket.
    pub path: String,
    /// The wave that it was in, from 1 at the last reset.
    pub wave: u64,
    /// Bytes of content that moved: read by a get, sent by a put.
    pub bytes: u64,
}

#[derive(Debug)]
struct Log {
    passed: Vec<Passed>,
    /// The wave that requests are gathered for, if one is, or the last one.
    wave: u64,
    gathering: bool,
    last: Instant,
}

#[derive(Debug)]
struct Gate {
    log: Mutex<Log>,
    /// The last wave that was let on.
    on: watch::Sender<u64>,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no test panics while it holds the log")
    }

    /// Notes a request and waits until its wave goes on. Returns its index in the log.
    async fn enter(self: &Arc<Self>, kind: RequestKind, path: &str) -> usize {
        let (index, wave, first) = {
            let mut log = self.lock();
            let first = !log.gathering;
            log.gathering = true;
            log.wave += u64::from(first);
            log.last = Instant::now();
            let wave = log.wave;
            log.passed.push(Passed { kind, path: path.to_owned(), wave, bytes: 0 });
            (log.passed.len() - 1, wave, first)
        };
        if first {
            tokio::spawn(self.clone().let_on());
        }
        let mut on = self.on.subscribe();
        // The gate outlives its requests.
        let _ = on.wait_for(|on| *on >= wave).await;
        index
    }

    async fn let_on(self: Arc<Self>) {
        loop {
            let until = self.lock().last + QUIET;
            if until <= Instant::now() {
                break;
            }
            sleep_until(until).await;
        }
        let wave = {
            let mut log = self.lock();
            log.gathering = false;
            log.wave
        };
        self.on.send_replace(wave);
    }
}

/// A proxy that counts. Ends when it is dropped.
///
/// ```no_run
/// use hoplake_testkit::{S3Server, WaveProxy};
///
/// # async fn example() -> std::io::Result<()> {
/// let server = S3Server::start()?;
/// let proxy = WaveProxy::start(&server.endpoint()).await?;
/// let environment = server.env_at(&proxy.endpoint());
/// # drop(environment);
/// println!("{:?}", proxy.take());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WaveProxy {
    address: SocketAddr,
    gate: Arc<Gate>,
    running: JoinHandle<()>,
}

impl WaveProxy {
    /// Starts a proxy before the server at `endpoint` (`http://host:port`), on the current runtime.
    ///
    /// # Errors
    /// If there is no free port, or the endpoint is of another form.
    pub async fn start(endpoint: &str) -> io::Result<Self> {
        let unknown = || io::Error::other(format!("{endpoint} is not http://host:port"));
        let server: Arc<str> = endpoint.strip_prefix("http://").ok_or_else(unknown)?.into();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let log = Log { passed: Vec::new(), wave: 0, gathering: false, last: Instant::now() };
        let gate = Arc::new(Gate { log: Mutex::new(log), on: watch::Sender::new(0) });
        let running = tokio::spawn(accept(listener, server, gate.clone()));
        Ok(Self { address, gate, running })
    }

    /// `http://127.0.0.1:<port>`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests since the last call, in the order of their arrival. No request should be in flight.
    pub fn take(&self) -> Vec<Passed> {
        let mut log = self.gate.lock();
        let passed = std::mem::take(&mut log.passed);
        let before = passed.first().map_or(log.wave, |first| first.wave - 1);
        passed.into_iter().map(|request| Passed { wave: request.wave - before, ..request }).collect()
    }
}

impl Drop for WaveProxy {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn accept(listener: TcpListener, server: Arc<str>, gate: Arc<Gate>) {
    // Ends its connections when it is dropped.
    let mut connections = JoinSet::new();
    while let Ok((connection, _)) = listener.accept().await {
        let server = server.clone();
        let gate = gate.clone();
        let serve = service_fn(move |request| answer(request, server.clone(), gate.clone()));
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), serve);
        connections.spawn(async move {
            // A connection that breaks is the client's to notice.
            let _ = connection.await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    request: http::Request<Incoming>,
    server: Arc<str>,
    gate: Arc<Gate>,
) -> Result<Response<Full<Bytes>>, Failure> {
    let kind = kind_of(request.method(), request.uri().query().unwrap_or_default());
    let path = request.uri().path().to_owned();
    let (head, body) = request.into_parts();
    let content = body.collect().await?.to_bytes();
    let index = gate.enter(kind, &path).await;
    let sent = content.len() as u64;
    let (head, content) = pass_on(head, content, &server).await?.into_parts();
    let bytes = match kind {
        RequestKind::Get if head.status.is_success() => content.len() as u64,
        RequestKind::Put => sent,
        _ => 0,
    };
    if let Some(passed) = gate.lock().passed.get_mut(index) {
        passed.bytes = bytes;
    }
    Ok(Response::from_parts(head, Full::new(content)))
}

#[cfg(test)]
mod tests {
    use futures::join;
    use object_store::{ObjectStoreExt, path::Path};

    use super::*;
    use crate::S3Server;

    #[tokio::test]
    async fn what_is_sent_together_is_a_wave() {
        let server = S3Server::start().unwrap();
        let proxy = WaveProxy::start(&server.endpoint()).await.unwrap();
        let store = server.store_at(&proxy.endpoint());
        let a = Path::from("a");
        let b = Path::from("b");
        let (first, second) = join!(store.put(&a, "hello".into()), store.put(&b, "you".into()));
        first.and(second).unwrap();
        assert_eq!(store.get_range(&a, 1..3).await.unwrap(), "el");
        assert!(store.get(&Path::from("none")).await.is_err());
        let seen: Vec<_> = proxy.take().into_iter().map(|passed| (passed.kind, passed.wave, passed.bytes)).collect();
        let mut puts = seen[..2].to_vec();
        puts.sort();
        assert_eq!(puts, [(RequestKind::Put, 1, 3), (RequestKind::Put, 1, 5)]);
        assert_eq!(seen[2..], [(RequestKind::Get, 2, 2), (RequestKind::Get, 3, 0)]);
        assert_eq!(proxy.take(), []);
    }
}
