//! From settings to a server that listens, and to its end.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, serve::ListenerExt};
use futures::FutureExt;
use hoplake::{ReadPool, Store};
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};

use crate::{
    Failure, InvalidSetting, Resolver, Settings, Source,
    access::{AccessNodes, ServedGraphs},
    admission::Admission,
    calls::{Service, Traversals},
    catalog::{Catalog, Origin, StoreOpener},
    compaction::Compactor,
    grpc, http,
    lifecycle::Lifecycle,
    telemetry::metrics::Metrics,
};

/// After the grace, for the last answers to leave.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a server did not begin, or broke off.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A setting cannot be.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// What is to be served cannot be read.
    #[error(transparent)]
    Source(#[from] Failure),
    /// A port is taken, or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A listener broke off.
    #[error("the server broke off: {0}")]
    BrokenOff(#[source] io::Error),
}

/// A server to be: settings, and the live parts it is to use.
pub struct ServerBuilder {
    settings: Settings,
    opener: StoreOpener,
    resolver: Resolver,
}

impl ServerBuilder {
    /// With stores opened by URL, and access nodes found as the system finds hosts.
    pub fn new(settings: Settings) -> Self {
        let resolver: Resolver = Arc::new(|host, port| {
            let host = host.to_owned();
            async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) }.boxed()
        });
        Self { settings, opener: Arc::new(|url| Ok(Store::open(url)?)), resolver }
    }

    /// Opens stores in another way, such as one that is already at hand.
    #[must_use]
    pub fn open_stores_with(self, opener: StoreOpener) -> Self {
        Self { opener, ..self }
    }

    /// Finds the addresses of access nodes in another way.
    #[must_use]
    pub fn resolve_with(self, resolver: Resolver) -> Self {
        Self { resolver, ..self }
    }

    /// Checks the settings and listens; nothing is answered before [`Server::run`]. No graph is opened.
    ///
    /// # Errors
    /// A setting that cannot be; a port that is taken.
    pub async fn bind(self) -> Result<Server, ServerError> {
        let Self { settings, opener, resolver } = self;
        settings.validate()?;
        let metrics = Arc::new(Metrics::new());
        let pool = ReadPool::new(settings.read.clone()).map_err(|error| Failure::from(hoplake::Error::from(error)))?;
        let sources = settings.graphs.iter().map(|source| source.parse()).collect::<Result<Vec<Source>, _>>()?;
        let origin = if settings.role.has_stores() {
            Origin::Stores { sources: sources.clone(), opener: opener.clone() }
        } else {
            Origin::Nodes(AccessNodes::new(&settings.access_nodes, settings.token.as_deref(), resolver)?)
        };
        let lifecycle = Lifecycle::default();
        let compactor = Compactor::new(&settings, lifecycle.clone(), metrics.clone());
        let catalog = Catalog::new(&settings, origin, pool.clone(), compactor.clone(), metrics.clone());
        let (grpc, http) = (listen(settings.grpc).await?, listen(settings.http).await?);
        let service = Arc::new(Service {
            admission: Admission::new(&settings),
            fetches: Admission::for_fetches(&settings),
            served: ServedGraphs::new(sources, opener, pool, settings.graph_idle()),
            traversals: Traversals::default(),
            lifecycle,
            catalog: Arc::new(catalog),
            metrics,
            settings,
        });
        Ok(Server { service, compactor, grpc, http })
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServerError> {
    let failed = |source| ServerError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// A server that listens.
pub struct Server {
    service: Arc<Service>,
    compactor: Option<Arc<Compactor>>,
    grpc: (TcpListener, SocketAddr),
    http: (TcpListener, SocketAddr),
}

impl Server {
    /// Where gRPC listens.
    pub fn grpc(&self) -> SocketAddr {
        self.grpc.1
    }

    /// Where HTTP listens.
    pub fn http(&self) -> SocketAddr {
        self.http.1
    }

    /// Answers until `stop` is ready, then ends in order: probes fail, after a while no connection is accepted,
    /// running queries end within their grace, and what is left is ended. A compaction breaks off at once.
    ///
    /// # Errors
    /// If a listener breaks off.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), ServerError> {
        let Self { service, compactor, grpc: (grpc, _), http: (http, _) } = self;
        let closing = tokio_util::sync::CancellationToken::new();
        let keeper = tokio::spawn(keep(service.clone()));
        let mut grpc = tokio::spawn(answer(grpc, grpc::router(&service).await, closing.clone().cancelled_owned()));
        let mut http = tokio::spawn(answer(http, http::router(service.clone()), closing.clone().cancelled_owned()));
        let broken = tokio::select! {
            () = stop => None,
            ended = &mut grpc => Some(joined(ended)),
            ended = &mut http => Some(joined(ended)),
        };
        if let Some(outcome) = broken {
            closing.cancel();
            service.lifecycle.end();
            return outcome;
        }
        let settings = &service.settings;
        tracing::info!("shutting down");
        service.lifecycle.drain();
        tokio::time::sleep(Duration::from_millis(settings.notice_ms)).await;
        closing.cancel();
        let grace = Duration::from_millis(settings.grace_ms);
        // A compaction that cannot take its name out in time leaves it to the next vacuum.
        let compacted = async {
            if let Some(compactor) = compactor {
                let _ = timeout(grace, compactor.ended()).await;
            }
        };
        let (ended, ()) = tokio::join!(wind_down(&service, grace, grpc, http), compacted);
        keeper.abort();
        tracing::info!("shut down");
        ended
    }
}

type Running = JoinHandle<Result<(), ServerError>>;

fn joined(outcome: Result<Result<(), ServerError>, tokio::task::JoinError>) -> Result<(), ServerError> {
    outcome.unwrap_or_else(|error| Err(ServerError::BrokenOff(io::Error::other(error))))
}

/// Waits for running queries, then ends them, then for the last answers to leave.
async fn wind_down(service: &Service, grace: Duration, grpc: Running, http: Running) -> Result<(), ServerError> {
    let mut both = std::pin::pin!(async { (joined(grpc.await), joined(http.await)) });
    let ended = match timeout(grace, &mut both).await {
        Ok(ended) => Some(ended),
        Err(_) => {
            tracing::warn!(
                running = service.admission.running() + service.fetches.running(),
                "the grace is over; ending what still runs"
            );
            service.lifecycle.end();
            // A client that keeps its connection open must not keep the server.
            timeout(LAST_WORDS, both).await.ok()
        }
    };
    ended.map_or(Ok(()), |(grpc, http)| grpc.and(http))
}

/// Answers on one port. gRPC runs here too, and not in tonic's own server, which watches deadlines itself: where its
/// clock was first, the client got CANCELLED, and not what its query took.
async fn answer(
    listener: TcpListener,
    router: Router,
    closing: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServerError> {
    // A connection without it still works.
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    axum::serve(listener, router).with_graceful_shutdown(closing).await.map_err(ServerError::BrokenOff)
}

/// Closes what nobody uses, looking often enough that nothing stays open twice as long as it should.
async fn keep(service: Arc<Service>) {
    let idle = service.settings.graph_idle().min(service.settings.traversal_idle());
    let mut ticks = tokio::time::interval((idle / 4).max(Duration::from_millis(1)));
    loop {
        ticks.tick().await;
        service.catalog.close_idle();
        service.served.forget_idle();
        service.traversals.close_idle(service.settings.traversal_idle());
    }
}
