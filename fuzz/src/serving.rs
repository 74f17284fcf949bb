//! A server of the golden graph, for targets that are its clients.

use std::net::SocketAddr;

use hoplake_server::{LimitSettings, ServerBuilder, Settings};
use tokio::runtime::{Builder, Runtime};

use crate::golden::{objects, store_of};

/// The server's own budget, and what serving takes besides.
pub const BYTES_MAX: usize = 256 << 20;

/// Starts it on a thread of its own: the runtime that it ends with, and where it listens for HTTP. Each request has so much time.
pub fn start(time_ms: u64) -> (Runtime, SocketAddr) {
    let server = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime can be had");
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let settings = Settings {
        grpc: local,
        http: local,
        graphs: vec!["g=memory://fuzz/g".into()],
        limits: LimitSettings { time_ms, memory_bytes_max: 64 << 20, ..LimitSettings::default() },
        query_threads: 1,
        memory_bytes_max: 128 << 20,
        ..Settings::default()
    };
    let running = server.block_on(async {
        let store = store_of(&objects()).await;
        let builder = ServerBuilder::new(settings).open_stores_with(std::sync::Arc::new(move |_| Ok(store.clone())));
        builder.bind().await.expect("a port is free")
    });
    let http = running.http();
    server.spawn(running.run(std::future::pending()));
    (server, http)
}
