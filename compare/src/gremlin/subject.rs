//! Hoplake as its users reach it: a server in this process, with graphs in memory.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use hoplake::{Graph, Store};
use hoplake_server::{GremlinSettings, LimitSettings, ResultSettings, ServerBuilder, Settings};

/// A server that writes. It ends with the runtime.
pub struct Subject {
    address: SocketAddr,
    folder: String,
}

impl Subject {
    /// Starts a server without graphs.
    pub async fn start() -> Result<Self> {
        static FOLDERS: AtomicUsize = AtomicUsize::new(0);
        let folder = format!("memory://compare-gremlin-{}", FOLDERS.fetch_add(1, Ordering::Relaxed));
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let limits = LimitSettings { time_ms: 30_000, ..LimitSettings::default() };
        let settings = Settings {
            grpc: local,
            http: local,
            graphs: vec![folder.clone()],
            writable: true,
            limits,
            gremlin: GremlinSettings::default(),
            // Each query is run, and not found among results that were kept.
            results: ResultSettings { bytes_max: 0, ..ResultSettings::default() },
            ..Settings::default()
        };
        let server = ServerBuilder::new(settings).bind().await?;
        let address = server.http();
        tokio::spawn(server.run(std::future::pending()));
        Ok(Self { address, folder })
    }

    /// Where its WebSocket is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The store of a graph that it serves by that name.
    pub fn store(&self, name: &str) -> Result<Store> {
        Ok(Store::open(&format!("{}/{name}", self.folder))?)
    }

    /// Makes an empty graph.
    pub async fn create(&self, name: &str) -> Result<()> {
        Graph::create(&self.store(name)?).await?;
        Ok(())
    }
}
