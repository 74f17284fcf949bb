//! From settings to a server that listens, and to its end.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use futures::FutureExt;
use hoplake::{MemoryBudget, ReadPool, Store};
use hoplake_doors::{Connections, ListenError, listen};
use tokio::{
    net::TcpListener,
    task::{AbortHandle, JoinError, JoinHandle},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Failure, InvalidSetting, Resolver, Settings, Source,
    access::{AccessNodes, ServedGraphs},
    admission::Admission,
    calls::{Cursors, Service},
    catalog::{Catalog, Origin},
    compaction::Compactor,
    grpc, http,
    jobs::Jobs,
    lifecycle::Lifecycle,
    names::{StoreOpener, check_names},
    ports::{Protocol, door},
    results::ResultCache,
    telemetry::metrics::Metrics,
    workers::Workers,
};

/// After the grace, for the last answers to leave. A half of the second that is documented: giving memory back takes
/// time, too.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why a server did not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A setting cannot be.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// A source of graphs cannot be read.
    #[error(transparent)]
    Source(#[from] Failure),
    /// A port is taken, or not ours.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system has no threads for queries or jobs.
    #[error("cannot begin {threads} threads: {source}")]
    Threads {
        /// How many were to be.
        threads: usize,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A listener panicked.
    #[error("the server broke off: {0}")]
    BrokenOff(#[source] io::Error),
}

/// Free memory is returned to the system each time that usage falls by a sixteenth of the limit. That much a process may exceed its limit by;
/// smaller steps would return memory that the next query allocates again.
const RECLAIMED_PARTS: u64 = 16;
const RECLAIMED_MIN_BYTES: u64 = 16 << 20;
const RECLAIMED_MAX_BYTES: u64 = 64 << 20;

/// A server to be: settings, and the live parts it is to use.
pub struct ServerBuilder {
    settings: Settings,
    /// By URL if there is none.
    opener: Option<StoreOpener>,
    resolver: Resolver,
    reclaim: Option<fn()>,
}

impl ServerBuilder {
    /// With stores opened by URL, and access nodes found as the system finds hosts.
    pub fn new(settings: Settings) -> Self {
        let resolver: Resolver = Arc::new(|host, port| {
            let host = host.to_owned();
            async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) }.boxed()
        });
        Self { settings, opener: None, resolver, reclaim: None }
    }

    /// Opens stores by another function, for example one that is already open. Then any URL is valid.
    #[must_use]
    pub fn open_stores_with(self, opener: StoreOpener) -> Self {
        Self { opener: Some(opener), ..self }
    }

    /// Finds the addresses of access nodes in another way.
    #[must_use]
    pub fn resolve_with(self, resolver: Resolver) -> Self {
        Self { resolver, ..self }
    }

    /// Sets the function that returns free memory to the system, called each time that queries have freed much of what they used. The
    /// program chooses it, as it chooses the allocator.
    #[must_use]
    pub fn reclaim_memory_with(self, reclaim: fn()) -> Self {
        Self { reclaim: Some(reclaim), ..self }
    }

    /// Checks the settings and listens; nothing is answered before [`Server::run`]. No graph is opened.
    ///
    /// # Errors
    /// An invalid setting; an unknown URL scheme, or a folder that does not exist; a port in use.
    pub async fn bind(self) -> Result<Server, ServerError> {
        let Self { settings, opener, resolver, reclaim } = self;
        // All checks come before the ports and the threads: a wrong setting is reported without taking either.
        settings.validate()?;
        let metrics = Arc::new(Metrics::new());
        let pool = ReadPool::new(settings.read.clone()).map_err(|error| Failure::from(hoplake::Error::from(error)))?;
        let sources = settings.graphs.iter().map(|source| source.parse()).collect::<Result<Vec<Source>, _>>()?;
        check_names(&sources)?;
        if opener.is_none() {
            // Only what can never work fails here. No store gets a request: a graph may be added later.
            sources.iter().try_for_each(Source::check)?;
        }
        let opener = opener.unwrap_or_else(|| Arc::new(|url| Ok(Store::open(url)?)));
        let origin = if settings.role.has_stores() {
            Origin::Stores { sources: sources.clone(), opener: opener.clone() }
        } else {
            Origin::Nodes(AccessNodes::new(&settings.access_nodes, settings.token.as_deref(), resolver)?)
        };
        let lifecycle = Lifecycle::default();
        let compactor = Compactor::new(&settings, lifecycle.clone(), metrics.clone());
        let catalog = Catalog::new(&settings, origin, pool.clone(), compactor.clone(), metrics.clone());
        let grpc = listen(settings.grpc)?;
        let http = listen(settings.http)?;
        let threads = settings.query_threads;
        let workers =
            Workers::new("hoplake-query", threads).map_err(|source| ServerError::Threads { threads, source })?;
        let catalog = Arc::new(catalog);
        // What one request may take of it is bounded by the whole of it (`Call`): one that it rejects would have fitted alone.
        let mut memory = MemoryBudget::shared("all queries", settings.memory_bytes_max);
        if let Some(reclaim) = reclaim {
            let bytes = (settings.memory_bytes_max / RECLAIMED_PARTS).clamp(RECLAIMED_MIN_BYTES, RECLAIMED_MAX_BYTES);
            memory = memory.reclaim_with(bytes, reclaim);
        }
        let jobs = Jobs::new(&settings, catalog.clone(), memory.clone(), lifecycle.clone(), metrics.clone());
        let threads = settings.jobs.threads;
        let service = Arc::new(Service {
            workers,
            jobs: jobs.map_err(|source| ServerError::Threads { threads, source })?,
            memory,
            admission: Admission::new(&settings),
            fetches: Admission::for_fetches(&settings),
            changes: Admission::for_changes(&settings),
            served: ServedGraphs::new(sources, opener, pool, settings.graph_idle()),
            cursors: Cursors::default(),
            results: ResultCache::new(&settings.results),
            lifecycle,
            catalog,
            metrics,
            settings,
        });
        Ok(Server { service, compactor, grpc, http })
    }
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
    /// running queries end within their grace, and what is left is ended. A compaction breaks off at once, and so do jobs.
    ///
    /// # Errors
    /// If a listener breaks off.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), ServerError> {
        let Self { service, compactor, grpc: (grpc, _), http: (http, _) } = self;
        // Jobs are tasks of their own, which nothing else would end if this future was dropped or a door panicked.
        let _draining = service.lifecycle.drain_on_drop();
        let closing = CancellationToken::new();
        let keeper = tokio::spawn(keep(service.clone()));
        let connections = Arc::<Connections>::default();
        let open = |protocol, router, listener| {
            tokio::spawn(door(&service, protocol, router, &connections).open(listener, closing.clone()))
        };
        let mut grpc = open(Protocol::Grpc, grpc::router(&service).await, grpc);
        let mut http = open(Protocol::Http, http::router(&service, &connections), http);
        // A door ends by itself only if it panicked. Then the server ends: probes at the other port would still answer.
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
        // Probes fail first. Connections are accepted until balancers had the time to notice.
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
        // They were cancelled when the server began to drain.
        let jobs_ended = async { drop(timeout(grace, service.jobs.ended()).await) };
        let (ended, (), ()) = tokio::join!(wind_down(&service, grace, grpc, http), compacted, jobs_ended);
        // It never ends by itself, and holds the service.
        keeper.abort();
        tracing::info!("shut down");
        ended
    }
}

/// The end of a port; one that ends by itself panicked.
fn joined(outcome: Result<(), JoinError>) -> Result<(), ServerError> {
    outcome.map_err(|error| ServerError::BrokenOff(io::Error::other(error)))
}

/// Waits for running queries, then ends them, then for the last answers to leave.
async fn wind_down(
    service: &Service,
    grace: Duration,
    grpc: JoinHandle<()>,
    http: JoinHandle<()>,
) -> Result<(), ServerError> {
    let doors = [grpc.abort_handle(), http.abort_handle()];
    let mut both = std::pin::pin!(async { (joined(grpc.await), joined(http.await)) });
    // The first wait only borrows the doors: they go on, for the last answers, if it runs out.
    let ended = match timeout(grace, &mut both).await {
        Ok(ended) => Some(ended),
        Err(_) => {
            tracing::warn!(
                running = service.admission.running() + service.fetches.running(),
                "the grace is over; ending what still runs"
            );
            // Each call ends as SHUTTING_DOWN, and its client can still read that before the doors are closed.
            service.lifecycle.end();
            timeout(LAST_WORDS, both).await.ok()
        }
    };
    if let Some((grpc, http)) = ended {
        return grpc.and(http);
    }
    // A client that keeps its connection open must not keep the server.
    doors.iter().for_each(AbortHandle::abort);
    Ok(())
}

/// Closes idle graphs and cursors, forgets old jobs, and looks often enough that none stays open twice as long as it should.
async fn keep(service: Arc<Service>) {
    let settings = &service.settings;
    let kept = Duration::from_millis(settings.jobs.kept_ms);
    let idle = settings.graph_idle().min(settings.traversal_idle()).min(kept);
    let mut ticks = tokio::time::interval((idle / 4).max(Duration::from_millis(1)));
    loop {
        ticks.tick().await;
        service.catalog.close_idle();
        service.served.forget_idle();
        service.cursors.close_idle(service.settings.traversal_idle());
        service.jobs.forget_old();
    }
}
