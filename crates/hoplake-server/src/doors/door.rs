//! A port: accepts connections, and hands their requests on.

use std::{convert::Infallible, future::Future, io, pin::Pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Request, Response},
};
use futures::{FutureExt, future::BoxFuture};
use hyper::{body::Incoming, service::Service as HyperService};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use super::{
    Arriving, Visit,
    bodies::Leaving,
    connection::{Attended, Connection, Connections, Patience},
};
use crate::{
    Settings,
    calls::{Protocol, Service, is_trusted},
    failure::Failure,
    grpc, http,
    server::ServerError,
};

/// Bytes of a body that a client may send ahead of what is read: of a stream, and of a connection of HTTP/2.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// Bytes of an answer that wait in HTTP/2 for the client of a stream.
const SEND_BUFFER_BYTES: usize = 256 << 10;
/// How often a connection of HTTP/2 is asked whether it is still there, and how long that may take.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_MAX: Duration = Duration::from_secs(20);
/// How often a connection is looked at, at the most seldom.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);
/// The pause before it accepts again when the process is out of file descriptors.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);

/// The bounds of a door's connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DoorSettings {
    connections_max: usize,
    half_open_max: usize,
    streams_max: u32,
    header_bytes_max: usize,
    message_bytes_max: usize,
    body: Duration,
    patience: Patience,
}

impl DoorSettings {
    pub(crate) fn new(settings: &Settings) -> Self {
        let ms = Duration::from_millis;
        Self {
            connections_max: settings.connections_max,
            half_open_max: settings.half_open_max,
            streams_max: settings.streams_max,
            header_bytes_max: settings.header_bytes_max,
            message_bytes_max: settings.message_bytes_max,
            body: ms(settings.body_timeout_ms),
            patience: Patience {
                header: ms(settings.header_timeout_ms),
                idle: ms(settings.idle_timeout_ms),
                send: ms(settings.send_timeout_ms),
            },
        }
    }

    /// Often enough that nothing stays for much longer than it should.
    fn look_every(&self) -> Duration {
        let Patience { header, idle, send } = self.patience;
        (header.min(idle).min(send) / 4).clamp(Duration::from_millis(5), LOOK_EVERY_MAX)
    }
}

/// A port and what answers there.
pub(crate) struct Door {
    protocol: Protocol,
    settings: DoorSettings,
    service: Arc<Service>,
    router: TowerToHyperService<Router>,
}

impl Door {
    pub(crate) fn new(service: &Arc<Service>, protocol: Protocol, router: Router) -> Arc<Self> {
        let (service, settings) = (service.clone(), DoorSettings::new(&service.settings));
        let router = TowerToHyperService::new(router);
        Arc::new(Self { protocol, settings, service, router })
    }

    /// Accepts connections until `closing`, and returns when the last has ended. Dropping this closes them all.
    pub(crate) async fn open(self: Arc<Self>, listener: TcpListener, closing: CancellationToken) {
        let connections: &Arc<Connections> = &self.service.connections;
        let mut attended = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = closing.cancelled() => break,
                accepted = listener.accept() => accepted,
                // Ended tasks stay in the set until they are joined.
                Some(_) = attended.join_next() => continue,
            };
            let DoorSettings { connections_max, half_open_max, .. } = self.settings;
            match accepted {
                // One that finds no room is closed at once.
                Ok((stream, _)) if connections.make_room(connections_max, half_open_max) => {
                    let attended_one = Attended(Connection::open(connections));
                    attended.spawn(self.clone().attend(stream, attended_one, closing.clone()));
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

    async fn attend(self: Arc<Self>, stream: TcpStream, attended: Attended, closing: CancellationToken) {
        // A connection without it still works.
        let _ = stream.set_nodelay(true);
        let connection = &attended.0;
        let builder = self.builder();
        let visits = Visits { door: self.clone(), connection: connection.clone() };
        let stream = TokioIo::new(stream);
        // Only that door changes protocols; the other one would lose its bound to HTTP/2.
        let is_done = match self.protocol {
            Protocol::Grpc => {
                let serving = builder.serve_connection(stream, visits);
                self.serve(serving, |serving| serving.graceful_shutdown(), connection, &closing).await
            }
            Protocol::Http | Protocol::Gremlin => {
                let serving = builder.serve_connection_with_upgrades(stream, visits);
                self.serve(serving, |serving| serving.graceful_shutdown(), connection, &closing).await
            }
        };
        if let (true, Some(work)) = (is_done, connection.then()) {
            // It learns from the server's lifecycle that it is to end.
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
        // Leaving the loop drops it: the socket closes, and the calls of all its requests are aborted.
        let mut serving = std::pin::pin!(serving);
        let mut looks = interval(self.settings.look_every());
        // After a stall of the process one look is enough.
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_closing = false;
        loop {
            tokio::select! {
                _ = serving.as_mut() => return true,
                () = connection.close.cancelled() => return false,
                () = closing.cancelled(), if !is_closing => {
                    is_closing = true;
                    shut_down(serving.as_mut());
                }
                _ = looks.tick() => {
                    // Hyper would wait for the rest of a request that has begun.
                    if is_closing && connection.is_unused() {
                        return false;
                    }
                    if let Some(why) = connection.overdue(&self.settings.patience) {
                        tracing::debug!(why, "connection closed");
                        return false;
                    }
                }
            }
        }
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        // gRPC has no mapping to HTTP/1.1. The other door finds the version by the first bytes (RFC 9113, 3.4).
        if self.protocol == Protocol::Grpc {
            builder = builder.http2_only();
        }
        // The maximum of headers is also that of a connection's buffer. Their time is checked above, for
        // both versions of HTTP alike.
        builder.http1().max_buf_size(self.settings.header_bytes_max).header_read_timeout(None);
        builder
            .http2()
            .timer(TokioTimer::new())
            // These bound what one connection holds outside of `memory_bytes_max`: its streams, times headers, windows
            // and buffers.
            .max_concurrent_streams(self.settings.streams_max)
            .max_header_list_size(u32::try_from(self.settings.header_bytes_max).unwrap_or(u32::MAX))
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_MAX);
        builder
    }

    /// A request that may take processor time, apart from what operators ask.
    fn is_work(&self, path: &str) -> bool {
        let prefix = match self.protocol {
            Protocol::Grpc => "/hoplake.v1.",
            Protocol::Http | Protocol::Gremlin => "/v1/",
        };
        path.starts_with(prefix)
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>, visit: Arc<Visit>) -> Response<Body> {
        let budget = &self.service.memory;
        let DoorSettings { body: time, patience, message_bytes_max, .. } = self.settings;
        let mut request = request.map(|body| {
            let body = match self.protocol {
                Protocol::Grpc => Arriving::prefixed(body, visit.clone(), budget),
                Protocol::Http | Protocol::Gremlin => Arriving::whole(body, visit.clone(), budget, message_bytes_max),
            };
            Body::new(body.within(time, patience.idle))
        });
        // Handlers find it there, and keep permit and memory with it.
        request.extensions_mut().insert(visit.clone());
        let router = self.router.clone();
        // Probes, counters and reflection stay on this thread: they answer even if queries keep all of theirs.
        if !self.is_work(request.uri().path()) {
            return answered(router.call(request).await);
        }
        if !is_trusted(self.service.settings.token.as_deref(), request.headers()) {
            return match self.protocol {
                // The services would decode its message first.
                Protocol::Grpc => grpc::refuse(&self.service, &request, visit),
                // The handler rejects it and leaves the body unread; hyper then closes the connection.
                Protocol::Http | Protocol::Gremlin => answered(router.call(request).await),
            };
        }
        // If the client disconnects, hyper drops this future, and with it the task.
        match self.service.workers.begin(async move { answered(router.call(request).await) }).await {
            Ok(response) => response,
            Err(error) => {
                // It panicked. Its client still gets an answer in its protocol, and the connection goes on.
                let failure = Failure::broken_off("the request", &error);
                match self.protocol {
                    Protocol::Grpc => failure.status().into_http(),
                    Protocol::Http | Protocol::Gremlin => http::refuse(&failure),
                }
            }
        }
    }
}

fn answered(outcome: Result<Response<Body>, Infallible>) -> Response<Body> {
    match outcome {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Whether an error is of the connection that would have been accepted, and not of the listener.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The requests of a connection.
struct Visits {
    door: Arc<Door>,
    connection: Arc<Connection>,
}

impl HyperService<Request<Incoming>> for Visits {
    type Response = Response<Leaving>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        // Before the future is polled: from its headers on, the request counts as under way.
        let visit = Visit::begin(&self.connection);
        let door = self.door.clone();
        async move {
            let response = door.answer(request, visit.clone()).await;
            Ok(response.map(|body| Leaving::new(body, visit)))
        }
        .boxed()
    }
}

/// A door that broke off.
pub(crate) fn joined(outcome: Result<(), tokio::task::JoinError>) -> Result<(), ServerError> {
    outcome.map_err(|error| ServerError::BrokenOff(io::Error::other(error)))
}
