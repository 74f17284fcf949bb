//! Access nodes that can be killed, and algorithm nodes before them.

use std::{net::SocketAddr, sync::Arc};

use hoplake::ReadSettings;
use hoplake_server::{Role, ServerBuilder, ServerError, Settings};
use hoplake_testkit::ReservedPort;
use tokio::{runtime::Runtime, sync::oneshot};

use crate::{
    held_store::HeldStore,
    running::{Running, settings},
    sample,
};

/// An access node on a runtime of its own, so that its end can be as sudden as a machine's.
pub(crate) struct AccessNode {
    pub(crate) address: SocketAddr,
    /// What it reads from.
    pub(crate) store: HeldStore,
    runtime: Option<Runtime>,
    /// Also while it is not there.
    port: Arc<ReservedPort>,
}

impl AccessNode {
    /// In front of a store, with its own counts.
    pub(crate) async fn start(store: &HeldStore) -> Self {
        Self::start_at(store, Arc::new(ReservedPort::new().unwrap())).await
    }

    async fn start_at(store: &HeldStore, port: Arc<ReservedPort>) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], port.number()));
        let store = store.beside();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let settings = Settings { role: Role::Access, grpc: address, ..settings("memory://held") };
        let opener = sample::leading_to(&store);
        let (tell, told) = oneshot::channel();
        runtime.spawn(async move {
            let server = loop {
                match ServerBuilder::new(settings.clone()).open_stores_with(opener.clone()).bind().await {
                    // The one before it may still run.
                    Err(ServerError::Listen(_)) => tokio::task::yield_now().await,
                    bound => break bound.unwrap(),
                }
            };
            tell.send(()).unwrap();
            server.run(std::future::pending()).await.unwrap();
        });
        told.await.unwrap();
        Self { address, store, runtime: Some(runtime), port }
    }

    pub(crate) async fn several<const N: usize>(store: &HeldStore) -> [Self; N] {
        let nodes = futures::future::join_all((0..N).map(|_| Self::start(store))).await;
        nodes.try_into().unwrap_or_else(|_| unreachable!("there are {N}"))
    }

    /// All its connections break.
    pub(crate) fn kill(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }

    /// Its successor, with empty caches.
    pub(crate) async fn start_again(&mut self) {
        *self = Self::start_at(&self.store, self.port.clone()).await;
    }
}

impl Drop for AccessNode {
    fn drop(&mut self) {
        // In a test's runtime, none may be waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What an algorithm node before these access nodes is set to.
pub(crate) fn algorithm(nodes: &[SocketAddr]) -> Settings {
    let access_nodes = nodes.iter().map(|address| format!("http://{address}")).collect();
    Settings { role: Role::Algorithm, graphs: Vec::new(), access_nodes, ..settings("") }
}

/// The same without a cache, so that every query asks access nodes.
pub(crate) fn forgetful(nodes: &[SocketAddr]) -> Settings {
    let read = ReadSettings { cache_bytes_max: 0, ..ReadSettings::default() };
    Settings { read, ..algorithm(nodes) }
}

/// An algorithm node before some access nodes.
pub(crate) async fn before(nodes: &[AccessNode]) -> Running {
    Running::start(algorithm(&addresses(nodes))).await
}

pub(crate) fn addresses(nodes: &[AccessNode]) -> Vec<SocketAddr> {
    nodes.iter().map(|node| node.address).collect()
}
