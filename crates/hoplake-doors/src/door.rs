//! A port: accepts connections, and hands their requests to a handler.

use std::{convert::Infallible, future::Future, io, pin::Pin, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{Request, Response, header},
    response::IntoResponse,
};
use futures::{FutureExt, future::BoxFuture};
use hyper::{body::Incoming, service::Service};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Exchange,
    connection::{Connection, ConnectionGuard, Connections, Patience},
    response::ResponseBody,
};

/// Bytes of a body that a client may send ahead of what is read: of a stream, and of a connection of HTTP/2.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// Bytes of a response that wait in HTTP/2 for the client of a stream.
const SEND_BUFFER_BYTES: usize = 256 << 10;
/// How often a connection of HTTP/2 is pinged, and how long the pong may take.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_MAX: Duration = Duration::from_secs(20);
/// The longest interval between two checks of a connection.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);
/// The pause before it accepts again when the process is out of file descriptors.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);

/// What answers the requests of a door.
pub trait Handler: Send + Sync + 'static {
    /// Answers a request; the handler reads and bounds the body. Dropping the future aborts the response.
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        exchange: Arc<Exchange>,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// The response with the text of a registry of metrics.
pub fn open_metrics(text: impl Into<Body>) -> Response<Body> {
    // With this type Prometheus reads OpenMetrics.
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text.into()).into_response()
}

/// The versions of HTTP at a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// The one that the first bytes show (RFC 9113, 3.4). A request may upgrade the connection.
    All,
    /// HTTP/2, for gRPC, which has no mapping to HTTP/1.1.
    Http2,
}

/// The bounds of a door's connections.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Connections over all doors that share [`Connections`].
    pub connections_max: usize,
    /// Of these, without a complete request.
    pub half_open_max: usize,
    /// Streams of a connection of HTTP/2.
    pub streams_max: u32,
    /// Headers of a request, at least 8 KiB.
    pub header_bytes_max: usize,
    /// How long a connection may take.
    pub patience: Patience,
}

impl Bounds {
    /// Often enough that no limit of time is exceeded by much.
    fn look_every(&self) -> Duration {
        let Patience { header, idle, send } = self.patience;
        (header.min(idle).min(send) / 4).clamp(Duration::from_millis(5), LOOK_EVERY_MAX)
    }
}

/// A port and what answers there.
pub struct Door<H> {
    versions: Versions,
    bounds: Bounds,
    connections: Arc<Connections>,
    handler: Arc<H>,
}

impl<H: Handler> Door<H> {
    /// A door whose connections count with others of `connections`.
    pub fn new(versions: Versions, bounds: Bounds, connections: Arc<Connections>, handler: H) -> Arc<Self> {
        Arc::new(Self { versions, bounds, connections, handler: Arc::new(handler) })
    }

    /// Accepts connections until `closing`, and returns when the last has ended. Dropping this closes them all.
    pub async fn open(self: Arc<Self>, listener: TcpListener, closing: CancellationToken) {
        let connections = &self.connections;
        let mut attended = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = closing.cancelled() => break,
                accepted = listener.accept() => accepted,
                // Ended tasks stay in the set until they are joined.
                Some(_) = attended.join_next() => continue,
            };
            let Bounds { connections_max, half_open_max, .. } = self.bounds;
            match accepted {
                // One that finds no room is closed at once.
                Ok((stream, _)) if connections.make_room(connections_max, half_open_max) => {
                    let guard = ConnectionGuard(Connection::open(connections));
                    attended.spawn(self.clone().attend(stream, guard, closing.clone()));
                }
                Ok(_) => tracing::warn!(connections_max, "a connection was refused: all are busy"),
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted");
                    // As if the number that is open were the maximum: closing one returns its descriptor. The pause is
                    // because the system keeps the new connection waiting, so that `accept` fails again at once.
                    connections.make_room(connections.count().0, half_open_max);
                    tokio::time::sleep(NO_DESCRIPTOR).await;
                }
            }
        }
        // From here on the system refuses connections, and clients try another server.
        drop(listener);
        while attended.join_next().await.is_some() {}
    }

    async fn attend(self: Arc<Self>, stream: TcpStream, attended: ConnectionGuard, closing: CancellationToken) {
        // A connection without it still works.
        let _ = stream.set_nodelay(true);
        let connection = &attended.0;
        let builder = self.builder();
        let exchanges = Exchanges { handler: self.handler.clone(), connection: connection.clone() };
        let stream = TokioIo::new(stream);
        // A door that lets requests change the protocol loses its bound to HTTP/2.
        let is_done = match self.versions {
            Versions::Http2 => {
                let serving = builder.serve_connection(stream, exchanges);
                self.serve(serving, |serving| serving.graceful_shutdown(), connection, &closing).await
            }
            Versions::All => {
                let serving = builder.serve_connection_with_upgrades(stream, exchanges);
                self.serve(serving, |serving| serving.graceful_shutdown(), connection, &closing).await
            }
        };
        if let (true, Some(work)) = (is_done, connection.take_upgrade()) {
            // The program tells it when to end.
            self.serve(work, |_| (), connection, &closing).await;
        }
    }

    /// Serves a connection until it ends or is to be closed. Returns whether it ended by itself.
    async fn serve<S: Future>(
        &self,
        serving: S,
        shut_down: impl Fn(Pin<&mut S>),
        connection: &Connection,
        closing: &CancellationToken,
    ) -> bool {
        // ResponseBody the loop drops it: the socket closes, and the calls of all its requests are aborted.
        let mut serving = std::pin::pin!(serving);
        let mut looks = interval(self.bounds.look_every());
        // After a stall of the process one look is enough.
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_closing = false;
        loop {
            tokio::select! {
                _ = serving.as_mut() => return true,
                () = connection.close.cancelled() => return false,
                () = either(closing, &connection.leave), if !is_closing => {
                    is_closing = true;
                    shut_down(serving.as_mut());
                }
                _ = looks.tick() => {
                    // Hyper would wait for the rest of a request that has begun.
                    if is_closing && connection.is_unused() {
                        return false;
                    }
                    if let Some(why) = connection.overdue(&self.bounds.patience) {
                        tracing::debug!(why, "connection closed");
                        return false;
                    }
                }
            }
        }
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        if self.versions == Versions::Http2 {
            builder = builder.http2_only();
        }
        // The maximum of headers is also that of a connection's buffer. Their time is checked above, for
        // both versions of HTTP alike.
        builder.http1().max_buf_size(self.bounds.header_bytes_max).header_read_timeout(None);
        builder
            .http2()
            .timer(TokioTimer::new())
            // These bound what one connection holds outside of `memory_bytes_max`: its streams, times headers, windows
            // and buffers.
            .max_concurrent_streams(self.bounds.streams_max)
            .max_header_list_size(u32::try_from(self.bounds.header_bytes_max).unwrap_or(u32::MAX))
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_MAX);
        builder
    }
}

/// Ready when one of the two is cancelled.
async fn either(one: &CancellationToken, other: &CancellationToken) {
    tokio::select! {
        () = one.cancelled() => {}
        () = other.cancelled() => {}
    }
}

/// Whether an error is of the connection that would have been accepted, and not of the listener.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The requests of a connection.
struct Exchanges<H> {
    handler: Arc<H>,
    connection: Arc<Connection>,
}

impl<H: Handler> Service<Request<Incoming>> for Exchanges<H> {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        // Before the future is polled: from its headers on, the request counts as under way.
        let exchange = Exchange::begin(&self.connection);
        let handler = self.handler.clone();
        async move {
            let response = handler.answer(request, exchange.clone()).await;
            Ok(response.map(|body| ResponseBody::new(body, exchange)))
        }
        .boxed()
    }
}
