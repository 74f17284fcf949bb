//! Hands the requests of a door on.

use std::{io, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Request, Response},
};
use hoplake_doors::{Bounds, Door, Handler, Patience, Versions};
use hyper::{body::Incoming, service::Service as HyperService};
use hyper_util::service::TowerToHyperService;

use super::{Arriving, Visit};
use crate::{
    Settings,
    calls::{Protocol, Service, is_trusted},
    failure::Failure,
    grpc, http,
    server::ServerError,
};

/// Answers the requests of a port.
pub(crate) struct Answering {
    protocol: Protocol,
    service: Arc<Service>,
    router: TowerToHyperService<Router>,
}

/// A port and what answers there.
pub(crate) fn door(service: &Arc<Service>, protocol: Protocol, router: Router) -> Arc<Door<Answering>> {
    let versions = match protocol {
        Protocol::Grpc => Versions::Http2,
        Protocol::Http | Protocol::Gremlin => Versions::All,
    };
    let answering = Answering { protocol, service: service.clone(), router: TowerToHyperService::new(router) };
    Door::new(versions, bounds(&service.settings), service.connections.clone(), answering)
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
    fn is_work(&self, path: &str) -> bool {
        let prefix = match self.protocol {
            Protocol::Grpc => "/hoplake.v1.",
            Protocol::Http | Protocol::Gremlin => "/v1/",
        };
        path.starts_with(prefix)
    }
}

impl Handler for Answering {
    async fn answer(self: Arc<Self>, request: Request<Incoming>, visit: Arc<Visit>) -> Response<Body> {
        let (settings, budget) = (&self.service.settings, &self.service.memory);
        let time = Duration::from_millis(settings.body_timeout_ms);
        let silence = Duration::from_millis(settings.idle_timeout_ms);
        let mut request = request.map(|body| {
            let body = match self.protocol {
                Protocol::Grpc => Arriving::prefixed(body, visit.clone(), budget),
                Protocol::Http | Protocol::Gremlin => {
                    Arriving::whole(body, visit.clone(), budget, settings.message_bytes_max)
                }
            };
            Body::new(body.within(time, silence))
        });
        // Handlers find it there, and keep permit and memory with it.
        request.extensions_mut().insert(visit.clone());
        let router = self.router.clone();
        // Probes, counters and reflection stay on this thread: they answer even if queries keep all of theirs.
        if !self.is_work(request.uri().path()) {
            return routed(&router, request).await;
        }
        if !is_trusted(settings.token.as_deref(), request.headers()) {
            return match self.protocol {
                // The services would decode its message first.
                Protocol::Grpc => grpc::refuse(&self.service, &request, visit),
                // The handler rejects it and leaves the body unread; hyper then closes the connection.
                Protocol::Http | Protocol::Gremlin => routed(&router, request).await,
            };
        }
        // If the client disconnects, hyper drops this future, and with it the task.
        match self.service.workers.begin(async move { routed(&router, request).await }).await {
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

async fn routed(router: &TowerToHyperService<Router>, request: Request<Body>) -> Response<Body> {
    match router.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// A door that broke off.
pub(crate) fn joined(outcome: Result<(), tokio::task::JoinError>) -> Result<(), ServerError> {
    outcome.map_err(|error| ServerError::BrokenOff(io::Error::other(error)))
}
