//! Real servers of S3 and of Azure Blob Storage: the same answers, versions, and writers that race.

use std::{path::PathBuf, sync::Arc};

use hoplake::{
    CompactionSettings, ErrorKind, Graph, Key, LoadOptions, OpenSettings, Store, VacuumSettings, VertexOrder, load_with,
};
use hoplake_testkit::{AzuriteServer, S3Server, snb};
use object_store::path::Path;

use crate::snb::{BREADTH_FIRST, check_all};

/// The social networks, and how many checks each has at least: its sources under two visit policies.
const NETWORKS: [(&str, usize); 3] =
    [("snb-sample-903p-genuine", 200), ("snb-sf0.1-datagen", 300), ("snb-sf0.1-official-partial", 250)];

/// A server whose conditional create works.
enum Server {
    S3(S3Server),
    Azure(AzuriteServer),
}

impl Server {
    /// Versity, MinIO and Azurite.
    fn start_each() -> Vec<Self> {
        let azure = Self::Azure(AzuriteServer::start().unwrap());
        S3Server::start_each().unwrap().map(Self::S3).into_iter().chain([azure]).collect()
    }

    /// A prefix, as another process would see it.
    fn at(&self, prefix: &str) -> Store {
        match self {
            Self::S3(server) => at(server, prefix),
            Self::Azure(server) => Store::new(Arc::new(server.store()), Path::from(prefix), &server.url(prefix)),
        }
    }
}

fn at(server: &S3Server, prefix: &str) -> Store {
    Store::new(Arc::new(server.store()), Path::from(prefix), &server.url(prefix))
}

async fn load(store: &Store, options: LoadOptions) -> Result<u64, hoplake::Error> {
    Ok(load_with(store.clone(), options, Arc::new(())).await?.version)
}

/// An edge list from vertex 1 to each of `targets`.
fn star(folder: &tempfile::TempDir, targets: &[i64]) -> LoadOptions {
    let file: PathBuf = folder.path().join(format!("{}.el", targets.len()));
    let lines: Vec<_> = targets.iter().map(|target| format!("1 {target}\n")).collect();
    std::fs::write(&file, lines.concat()).unwrap();
    LoadOptions::from_paths([file])
}

async fn neighbours_of_1(store: &Store, version: Option<u64>) -> Vec<Key> {
    let settings = OpenSettings { version, ..Default::default() };
    let graph = Graph::open_with(store.clone(), &settings).await.unwrap();
    assert_eq!(Some(graph.version()), version.or(Some(graph.version())));
    let mut query = graph.query();
    let start = query.vertex("vertex", 1).await.unwrap().unwrap();
    let edges = query.neighbors(&[start], &"out:edge".parse().unwrap()).await.unwrap();
    let reached: Vec<_> = edges.iter().map(|edge| edge.to).collect();
    query.keys_of(&reached).await.unwrap().into_inner()
}

fn keys(keys: &[i64]) -> Vec<Key> {
    keys.iter().map(|key| Key::Int64(*key)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seven_traversals() {
    let s3 = Server::S3(S3Server::start().unwrap());
    let azure = Server::Azure(AzuriteServer::start().unwrap());
    // Azurite is slow; the smallest says whether it answers alike.
    let on_azure = NETWORKS.iter().take(1).map(|network| (&azure, network));
    for (server, (folder, checks)) in NETWORKS.iter().map(|network| (&s3, network)).chain(on_azure) {
        if !snb::available(folder) {
            continue;
        }
        let store = server.at(&format!("snb/{folder}"));
        assert_eq!(load(&store, LoadOptions::from_paths([snb::extract(folder)])).await.unwrap(), 1);
        let graph = Graph::open_with(store, &OpenSettings::default()).await.unwrap();
        assert_eq!(graph.open_cost().waves, 2);
        let checked = check_all(&graph, &snb::truth(folder), &BREADTH_FIRST).await;
        assert!(checked >= *checks, "{folder}: {checked}");
        graph.verify(|_| ()).await.unwrap();
    }
}

#[tokio::test]
async fn a_graph_is_only_replaced_on_request_and_its_old_version_stays() {
    for server in Server::start_each() {
        only_replaced_on_request(&server).await;
    }
}

async fn only_replaced_on_request(server: &Server) {
    let store = server.at("versions");
    let folder = tempfile::tempdir().unwrap();
    let first = star(&folder, &[2, 3]);
    let second = star(&folder, &[3, 4, 5]);
    assert_eq!(load(&store, first).await.unwrap(), 1);
    let before = store.list("").await.unwrap().len();
    let rejected = load(&store, second.clone()).await.unwrap_err();
    assert_eq!(rejected.kind(), ErrorKind::Conflict);
    let why = format!("there is a graph at {} already, in version 1", store.url());
    assert!(rejected.to_string().contains(&why), "{rejected}");
    assert_eq!(store.list("").await.unwrap().len(), before, "a refused load writes nothing");
    let opened_before = Graph::open_with(store.clone(), &OpenSettings::default()).await.unwrap();
    let replacing = LoadOptions { replace: true, order: VertexOrder::Locality, ..second };
    // Version 2 announces the load.
    assert_eq!(load(&store, replacing).await.unwrap(), 3);
    assert_eq!(Graph::versions(&store).await.unwrap(), [1, 2, 3]);
    assert_eq!(neighbours_of_1(&store, None).await.len(), 3);
    assert_eq!(neighbours_of_1(&store, Some(1)).await, keys(&[2, 3]));
    let mut newest = neighbours_of_1(&store, Some(3)).await;
    newest.sort();
    assert_eq!(newest, keys(&[3, 4, 5]));
    opened_before.verify(|_| ()).await.unwrap();
    let settings = OpenSettings { version: Some(4), ..Default::default() };
    let missing = Graph::open_with(store.clone(), &settings).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound, "{missing}");
    let missing = Graph::open_with(server.at("elsewhere"), &OpenSettings::default()).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound, "{missing}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_four_loads_at_once_one_wins_and_nothing_else_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Server::start_each();
    for (round, server) in servers.iter().cycle().take(6).enumerate() {
        let store = server.at(&format!("race/{round}"));
        let targets: [&[i64]; 4] = [&[2], &[2, 3], &[2, 3, 4], &[2, 3, 4, 5]];
        let barrier = Arc::new(tokio::sync::Barrier::new(targets.len()));
        let race = targets.map(|targets| {
            let store = store.clone();
            let options = star(&folder, targets);
            let barrier = barrier.clone();
            tokio::spawn(async move {
                barrier.wait().await;
                (targets, load(&store, options).await)
            })
        });
        let mut winners = Vec::new();
        for outcome in futures::future::join_all(race).await {
            match outcome.unwrap() {
                (targets, Ok(version)) => {
                    assert_eq!(version, 1);
                    winners.push(targets);
                }
                (_, Err(error)) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
            }
        }
        let [winner] = winners[..] else { panic!("{} loads won", winners.len()) };
        assert_eq!(neighbours_of_1(&store, None).await, keys(winner));
        let graph = Graph::open_with(store.clone(), &OpenSettings::default()).await.unwrap();
        let manifest = graph.manifest();
        let named = manifest.segments.len() + manifest.tables.len();
        assert_eq!(store.list("data").await.unwrap().len(), named);
        assert_eq!(store.list("").await.unwrap().len(), named + 2, "besides data the store has a manifest and a hint");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_acknowledged_commit_is_lost_in_a_race() {
    const WRITERS: i64 = 6;
    const COMMITS: i64 = 20;
    for server in Server::start_each() {
        let folder = tempfile::tempdir().unwrap();
        load(&server.at("race"), star(&folder, &[2])).await.unwrap();
        let writers = (0..WRITERS).map(|writer| {
            // Each is a process of its own from the view of the store.
            let store = server.at("race");
            tokio::spawn(async move {
                let mut graph = Graph::open_with(store, &OpenSettings::default()).await.unwrap();
                for commit in 0..COMMITS {
                    let key = 1_000 * (writer + 1) + commit;
                    loop {
                        let mut batch = graph.begin();
                        batch.upsert_vertex("vertex", key, [("writer", writer)]);
                        batch.upsert_edge("edge", ("vertex", 1), ("vertex", key), [("number", commit)]);
                        match batch.commit().await {
                            Ok(_) => break,
                            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
                        }
                        graph.refresh().await.unwrap();
                    }
                }
            })
        });
        for writer in futures::future::join_all(writers).await {
            writer.unwrap();
        }
        let written = (1..=WRITERS).flat_map(|writer| (0..COMMITS).map(move |commit| 1_000 * writer + commit));
        let expected: Vec<i64> = [2].into_iter().chain(written).collect();
        let mut found = neighbours_of_1(&server.at("race"), None).await;
        found.sort();
        assert_eq!(found, keys(&expected));
        assert_eq!(Graph::versions(&server.at("race")).await.unwrap().len() as i64, 1 + WRITERS * COMMITS);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_are_compacted_and_old_versions_removed() {
    for server in Server::start_each() {
        let folder = tempfile::tempdir().unwrap();
        let store = server.at("upkeep");
        load(&store, star(&folder, &[2])).await.unwrap();
        let mut graph = Graph::open_with(server.at("upkeep"), &OpenSettings::default()).await.unwrap();
        for key in 10..18 {
            let mut batch = graph.begin();
            batch.upsert_edge("edge", ("vertex", 1), ("vertex", key), [("number", key)]).upsert_vertex(
                "vertex",
                key,
                [("name", "new")],
            );
            batch.delete_vertex("vertex", key - 3).commit().await.unwrap();
            graph.refresh().await.unwrap();
        }
        let mut before = neighbours_of_1(&store, None).await;
        before.sort();
        assert_eq!(before, keys(&[2, 15, 16, 17]));
        let settings = CompactionSettings { everything: true, ..CompactionSettings::default() };
        assert!(Graph::compact(&store, &settings).await.unwrap().merges > 0);
        let settings = VacuumSettings { keep_versions: Some(1), ..VacuumSettings::default() };
        Graph::vacuum(&store, &settings).await.unwrap();
        let mut after = neighbours_of_1(&store, None).await;
        after.sort();
        assert_eq!(after, before);
        let graph = Graph::open_with(server.at("upkeep"), &OpenSettings::default()).await.unwrap();
        graph.verify(|_| ()).await.unwrap();
        // The one that was kept, and the vacuum's own.
        assert_eq!(Graph::versions(&store).await.unwrap(), [graph.version() - 1, graph.version()]);
        let manifest = graph.manifest();
        let mut named: Vec<_> = manifest.segments.iter().map(|segment| segment.name.as_str()).collect();
        named.extend(manifest.tables.iter().map(|table| table.name.as_str()));
        named.sort_unstable();
        named.dedup();
        let mut kept: Vec<_> = store.list("data").await.unwrap().into_iter().map(|object| object.name).collect();
        kept.sort();
        assert_eq!(kept, named);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_decide_who_creates_is_rejected() {
    let server = S3Server::start_negative_control().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut taken = 0;
    for number in 0..8 {
        let store = at(&server, &format!("graph-{number}"));
        match load(&store, star(&folder, &[2, 3])).await {
            Err(rejected) => {
                assert_eq!(rejected.kind(), ErrorKind::Invalid, "{rejected}");
                assert!(rejected.to_string().contains("conditional create (If-None-Match: *)"), "{rejected}");
                assert!(!rejected.to_string().contains('\n'), "{rejected}");
                assert_eq!(store.list("").await.unwrap(), []);
            }
            // On a busy machine it may get the creates of one proof one after the other, and then it answers as it should.
            Ok(_) => taken += 1,
        }
    }
    assert!(taken <= 2, "{taken} of 8 loads were let in");
    // A store with a working create is proven once, by the first writer.
    let server = S3Server::start().unwrap();
    let store = at(&server, "graph");
    assert_eq!((store.is_proven(), load(&store, star(&folder, &[2, 3])).await.unwrap()), (false, 1));
    assert!(store.is_proven());
}
