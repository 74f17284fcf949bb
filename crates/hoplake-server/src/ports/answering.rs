//! Hands the requests of a door to the adapters.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Method, Request, Response, Version, header},
};
use hoplake_doors::{Bounds, Connections, Door, Exchange, Handler, Patience, Versions};
use hyper::{body::Incoming, service::Service as HyperService};
use hyper_util::service::TowerToHyperService;
use tokio::sync::Semaphore;

use super::bodies::{Arriving, Rest};
use crate::{
    Settings,
    auth::is_authenticated,
    calls::Service,
    failure::{Failure, Reason},
    grpc, http,
    request_head::{Arrival, REQUEST_ID, basic_password, bearer_token},
};

/// Streams of gRPC's reflection, over all connections: each has a few files in memory, of 100 KB, and none needs a token.
const REFLECTIONS_MAX: usize = 64;

/// What a port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Grpc,
    /// Also WebSocket, which begins as a request of HTTP.
    Http,
}

/// Answers the requests of a port.
pub(crate) struct Answering {
    protocol: Protocol,
    service: Arc<Service>,
    router: TowerToHyperService<Router>,
    /// Streams of gRPC's reflection.
    reflections: Arc<Semaphore>,
}

/// A port and what answers there. Its connections count with others of `connections`.
pub(crate) fn door(
    service: &Arc<Service>,
    protocol: Protocol,
    router: Router,
    connections: &Arc<Connections>,
) -> Arc<Door<Answering>> {
    let versions = match protocol {
        Protocol::Grpc => Versions::Http2,
        Protocol::Http => Versions::All,
    };
    let reflections = Arc::new(Semaphore::new(REFLECTIONS_MAX));
    let router = TowerToHyperService::new(router);
    let answering = Answering { protocol, service: service.clone(), router, reflections };
    Door::new(versions, bounds(&service.settings), connections.clone(), answering)
}

fn bounds(settings: &Settings) -> Bounds {
    let ms = Duration::from_millis;
    Bounds {
        connections_max: settings.connections_max,
        half_open_max: settings.half_open_max,
        streams_max: settings.streams_max,
        header_bytes_max: settings.header_bytes_max,
        patience: Patience {
            header: ms(settings.header_timeout_ms),
            idle: ms(settings.idle_timeout_ms),
            send: ms(settings.send_timeout_ms),
        },
    }
}

impl Answering {
    /// A request that may take processor time, apart from what operators ask.
    fn is_work(&self, method: &Method, path: &str) -> bool {
        match self.protocol {
            Protocol::Grpc => path.starts_with("/hoplake.v1."),
            Protocol::Http => path.starts_with("/v1/") || is_query_of_tinkerpop(method, path),
        }
    }

    /// Answers a request that needs no token, or is refused for its token: what anyone may ask for is bounded for each connection, and
    /// takes no more than its turn on the threads of the connections, which probes need as well.
    async fn answer_openly(
        &self,
        request: Request<Body>,
        exchange: Arc<Exchange>,
        is_rejected: bool,
    ) -> Response<Body> {
        if is_rejected && let Some(connection) = exchange.connection() {
            connection.count_rejected_token();
        }
        if !exchange.count_open_response() || !self.take_room_for(request.uri().path(), &exchange) {
            return self.unread();
        }
        // A client that sends thousands of requests at once has its next turn after all others.
        tokio::task::yield_now().await;
        match self.protocol {
            // The services would decode its message first.
            Protocol::Grpc if is_rejected => grpc::reject(&self.service, &request),
            // The handler rejects it and leaves the body unread; hyper then closes the connection.
            _ => routed(&self.router, request).await,
        }
    }

    /// Answers a request on the threads of queries.
    async fn answer_with_work(&self, request: Request<Body>) -> Response<Body> {
        let router = self.router.clone();
        // If the client disconnects, hyper drops this future, and with it the task.
        match self.service.workers.begin(async move { routed(&router, request).await }).await {
            Ok(response) => response,
            Err(error) => {
                // It panicked. Its client still gets a response in its protocol, and the connection stays open.
                let failure = Failure::broken_off("the request", &error);
                match self.protocol {
                    Protocol::Grpc => failure.status().into_http(),
                    Protocol::Http => http::reject(&failure),
                }
            }
        }
    }

    /// Descriptions of the services are large and made for each stream, so there are only so many streams of them.
    fn take_room_for(&self, path: &str, exchange: &Exchange) -> bool {
        if self.protocol != Protocol::Grpc || !path.starts_with("/grpc.reflection.") {
            return true;
        }
        let room = self.reflections.clone().try_acquire_owned().ok();
        room.map(|permit| exchange.hold_permit(permit)).is_some()
    }

    /// The response to a client that does not read: it has no body, which would wait with the others.
    fn unread(&self) -> Response<Body> {
        let message = "too many answers were asked for without the token, and not read yet; read them first";
        let failure = Failure::new(Reason::Busy, message);
        match self.protocol {
            Protocol::Grpc => failure.status().into_http(),
            Protocol::Http => {
                let mut response = http::reject(&failure);
                *response.body_mut() = Body::empty();
                response
            }
        }
    }
}

/// TinkerPop 4 sends its queries to the address at which WebSockets begin.
fn is_query_of_tinkerpop(method: &Method, path: &str) -> bool {
    method == Method::POST && path == "/gremlin"
}

impl Handler for Answering {
    async fn answer(self: Arc<Self>, request: Request<Incoming>, exchange: Arc<Exchange>) -> Response<Body> {
        let settings = &self.service.settings;
        let budget = &self.service.memory;
        let time = Duration::from_millis(settings.body_timeout_ms);
        let silence = Duration::from_millis(settings.idle_timeout_ms);
        let is_first_version = request.version() < Version::HTTP_2;
        let expects = request.headers().contains_key(header::EXPECT);
        let mut request = request.map(|body| {
            let body = match self.protocol {
                Protocol::Grpc => Arriving::prefixed(body, exchange.clone(), budget),
                Protocol::Http => {
                    let rest = if is_first_version && !expects { Rest::Dropped } else { Rest::Unread };
                    Arriving::whole(body, exchange.clone(), budget, settings.message_bytes_max, rest)
                }
            };
            Body::new(body.within(time, silence))
        });
        let is_work = self.is_work(request.method(), request.uri().path());
        let mut token = bearer_token(request.headers());
        if token.is_none() && is_query_of_tinkerpop(request.method(), request.uri().path()) {
            token = basic_password(request.headers());
        }
        let is_authenticated = is_authenticated(settings.token.as_deref(), token.as_deref());
        // Handlers find it there, and keep permit and memory with its exchange.
        request.extensions_mut().insert(Arrival { exchange: exchange.clone(), is_authenticated });
        // What names the request in the log, if its message cannot be read.
        let named = request.headers().get(REQUEST_ID).cloned();
        let call = grpc::call_name(request.uri().path());
        // Probes, counters and reflection stay on this thread: they answer even if queries keep all of theirs.
        let response = if is_work && is_authenticated {
            self.answer_with_work(request).await
        } else {
            self.answer_openly(request, exchange.clone(), is_work && !is_authenticated).await
        };
        match self.protocol {
            Protocol::Grpc => grpc::unless_malformed(&self.service, response, call, named.as_ref(), &exchange),
            Protocol::Http => response,
        }
    }
}

async fn routed(router: &TowerToHyperService<Router>, request: Request<Body>) -> Response<Body> {
    match router.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
