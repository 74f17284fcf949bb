//! A port for operators. Nothing is changed through it, and it takes no bodies.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Json,
    body::Body,
    http::{Method, Request, Response, StatusCode, header},
    response::IntoResponse,
};
use hoplake_doors::{Bounds, Door, Exchange, Handler, ListenError, Patience, Versions, listen, open_metrics};
use hyper::body::{Body as _, Incoming};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Monitor;

/// A scraper, some probes and a person are a handful; beyond, the oldest idle connection gives way.
const BOUNDS: Bounds = Bounds {
    connections_max: 64,
    half_open_max: 32,
    streams_max: 16,
    header_bytes_max: 8 << 10,
    patience: Patience {
        header: Duration::from_secs(10),
        idle: Duration::from_secs(300),
        send: Duration::from_secs(30),
    },
};

/// A port at which a feed can be seen. It is closed when this is dropped.
pub struct Listening {
    address: SocketAddr,
    door: JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.door.abort();
    }
}

impl Listening {
    /// Listens, and answers from then on.
    ///
    /// # Errors
    /// The port is taken, or not ours.
    pub fn open(address: SocketAddr, monitor: Arc<Monitor>) -> Result<Self, ListenError> {
        let (listener, address) = listen(address)?;
        let door = Door::new(Versions::All, BOUNDS, Arc::default(), Answers(monitor));
        let door = tokio::spawn(door.open(listener, CancellationToken::new()));
        Ok(Self { address, door })
    }

    /// Where it listens: port 0 has become a free one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

struct Answers(Arc<Monitor>);

impl Handler for Answers {
    async fn answer(self: Arc<Self>, request: Request<Incoming>, _: Arc<Exchange>) -> Response<Body> {
        let monitor = &self.0;
        if !request.body().is_end_stream() {
            // Not read: the connection ends with the answer.
            let close = [(header::CONNECTION, "close")];
            return (StatusCode::PAYLOAD_TOO_LARGE, close, "no body is taken here\n").into_response();
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let allow = [(header::ALLOW, "GET, HEAD")];
            return (StatusCode::METHOD_NOT_ALLOWED, allow, "only GET is allowed here\n").into_response();
        }
        match request.uri().path() {
            "/metrics" => open_metrics(monitor.metrics()),
            "/healthz" => probe("ok\n", monitor.health()),
            "/readyz" => probe("ready\n", monitor.readiness()),
            "/status" => Json(monitor.status()).into_response(),
            _ => {
                let there_is = "there is nothing here; there are /metrics, /healthz, /readyz and /status\n";
                (StatusCode::NOT_FOUND, there_is).into_response()
            }
        }
    }
}

fn probe(well: &'static str, outcome: Result<(), String>) -> Response<Body> {
    match outcome {
        Ok(()) => well.into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}
