//! A real S3 server behind a network that breaks for good: writers end within their time, and report what is known.

use std::{sync::Arc, time::Duration};

use hoplake::{CompactionSettings, ErrorKind, Graph, LoadOptions, OpenSettings, Store, VacuumSettings, load_with};
use hoplake_testkit::{S3Server, TcpFault, TcpProxy};
use tokio::time::timeout;

/// A task that takes this long hangs.
const HUNG: Duration = Duration::from_secs(90);

const TIMEOUT_MS: u64 = 2_000;

struct Network {
    server: S3Server,
    proxy: TcpProxy,
}

impl Network {
    async fn start() -> Self {
        let server = S3Server::start().unwrap();
        let proxy = TcpProxy::start(&server.endpoint(), 7).await.unwrap();
        let network = Self { server, proxy };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("edges.csv");
        std::fs::write(&file, "1,2\n2,3\n").unwrap();
        load_with(network.direct(), LoadOptions::from_paths([file]), Arc::new(())).await.unwrap();
        network
    }

    fn direct(&self) -> Store {
        Store::new(Arc::new(self.server.store()), "g".into(), &self.server.url("g"))
    }

    fn proxied(&self) -> Store {
        Store::new(Arc::new(self.server.store_at(&self.proxy.endpoint())), "g".into(), &self.server.url("g"))
    }

    async fn open(&self, store: Store) -> Graph {
        Graph::open_with(store, &OpenSettings::default()).await.unwrap()
    }
}

async fn add(graph: &Graph, key: i64) -> Result<u64, hoplake::Error> {
    let mut commit = graph.begin();
    let added = commit.upsert_vertex("vertex", key, [("name", "new")]).commit();
    Ok(timeout(HUNG, added).await.expect("it ends within its time")?.version)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_ends_within_its_time_whatever_the_network_does() {
    let network = Network::start().await;
    let graph = network.open(network.proxied()).await;
    graph.set_commit_timeout(Duration::from_millis(TIMEOUT_MS));
    let faults = [TcpFault::Reset, TcpFault::LoseAnswer, TcpFault::Drop, TcpFault::CutShort, TcpFault::Stall];
    for (key, fault) in (100..).zip(faults) {
        network.proxy.set_faults([(fault, 1.0), (TcpFault::Refuse, 0.5)]);
        let error = add(&graph, key).await;
        network.proxy.set_faults([]);
        // What stalled may still take effect.
        tokio::time::sleep(Duration::from_secs(4)).await;
        let newest = network.open(network.direct()).await;
        let is_there = newest.query().vertex("vertex", key).await.unwrap().is_some();
        match error {
            // Stalls are delays: it may just be in time.
            Ok(_) => assert!(is_there, "{fault:?}"),
            Err(error) if error.kind() == ErrorKind::Unavailable => assert!(!is_there, "{fault:?}: {error}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unknown, "{fault:?}: {error}"),
        }
        // Nothing is broken for those that come later.
        add(&network.open(network.proxied()).await, 1_000 + key).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_and_a_vacuum_end_within_their_time() {
    let network = Network::start().await;
    let graph = network.open(network.direct()).await;
    for key in 100..108 {
        add(&graph, key).await.unwrap();
    }
    // Each piece stalls, up to three seconds: nothing fails, and nothing gets on.
    network.proxy.set_faults([(TcpFault::Stall, 1.0)]);
    let settings = CompactionSettings { timeout_ms: Some(200), ..CompactionSettings::default() };
    let store = network.proxied();
    let compacted = timeout(HUNG, Graph::compact(&store, &settings)).await.expect("it ends within its time");
    let error = compacted.unwrap_err();
    assert!([ErrorKind::Limit, ErrorKind::Unknown].contains(&error.kind()), "{error}");
    let settings = VacuumSettings { timeout_ms: Some(200), keep_versions: Some(1), ..VacuumSettings::default() };
    let vacuumed = timeout(HUNG, Graph::vacuum(&store, &settings)).await.expect("it ends within its time");
    let error = vacuumed.unwrap_err();
    assert!([ErrorKind::Limit, ErrorKind::Unknown].contains(&error.kind()), "{error}");
    network.proxy.set_faults([]);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(Graph::verify_all(&network.direct(), |_| ()).await.unwrap().damages, []);
}
