//! A server that compacts: on request, and in the background.

use std::{sync::atomic::Ordering, time::Duration};

use hoplake::{CompactionSettings, Graph, OpenSettings, Store, VacuumSettings};
use hoplake_server::Settings;
use serde_json::{Value, json};

use crate::{
    held_store::{HeldStore, until},
    running::{Running, settings},
    sample,
};

async fn newest(store: &Store) -> Graph {
    Graph::open_with(store.clone(), &OpenSettings::default()).await.unwrap()
}

/// Publishes versions that each add a sorted run to `Person` and to `knows`.
async fn commit(store: &Store, keys: std::ops::Range<i64>) {
    for key in keys {
        let mut commit = newest(store).await.begin();
        commit.upsert_vertex("Person", key, [("name", format!("new {key}"))]);
        commit.upsert_edge("knows", ("Person", 1), ("Person", key), [("since", key)]);
        commit.commit().await.unwrap();
    }
}

/// How many runs there are, of all labels and edge types.
async fn runs(store: &Store) -> usize {
    let info = newest(store).await.info().await.unwrap();
    info.sections.len()
}

async fn known(server: &Running) -> Value {
    let path = "/v1/graphs/one/traverse";
    let query = json!({"starts": ["Person:1"], "hops": ["out:knows", "out:knows"], "select": ["name"]});
    let mut rows = server.ask("POST", path, &query).await["rows"].take();
    rows.as_array_mut().unwrap().sort_by_key(ToString::to_string);
    assert!(rows.as_array().unwrap().len() > 10);
    rows
}

#[tokio::test]
async fn a_server_compacts_what_it_is_asked_for() {
    let folder = sample::in_memory("one").await;
    let store = Store::open(&format!("{folder}/one")).unwrap();
    let server = Running::start(Settings { compact: true, ..settings(&folder) }).await;
    let version =
        async || server.ask("POST", "/v1/graphs/one/refresh", &Value::Null).await["version"].as_u64().unwrap();
    version().await;
    commit(&store, 1_000..1_006).await;
    let many = runs(&store).await;
    let last = newest(&store).await.version();
    // No request, no compaction.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(newest(&store).await.version(), last);

    assert_eq!(version().await, last);
    let before = known(&server).await;
    server.until_metric("hoplake_compactions_total", 1.0).await;
    let few = runs(&store).await;
    assert!(few + 10 <= many, "{many} runs became {few}");
    assert!(server.metric("hoplake_compaction_bytes_total").await > 0.0);
    assert!(version().await > last);
    assert_eq!(known(&server).await, before);
    // What it published itself is newer, and nothing of it is due.
    let compacted = newest(&store).await;
    assert_eq!((compacted.version(), compacted.manifest().leases.len()), (version().await, 0));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(newest(&store).await.version(), compacted.version());
    assert_eq!(server.metric("hoplake_compaction_failures_total").await, 0.0);
}

/// A server whose compaction waits for the store to take what it merged; the graph, from elsewhere; and its runs.
async fn in_the_middle(grace_ms: u64) -> (Running, HeldStore, Store, usize) {
    let (held, opener) = sample::held().await;
    let store = sample::leading_to(&held.beside())("memory://held/g").unwrap();
    let settings = Settings { compact: true, grace_ms, ..settings("memory://held") };
    let server = Running::start_with(settings, opener).await;
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    commit(&store, 1_000..1_006).await;
    held.hold_writes("/data/");
    server.ask("POST", "/v1/graphs/g/refresh", &Value::Null).await;
    until(|| held.held_back.load(Ordering::SeqCst) > 0).await;
    assert_eq!(newest(&store).await.manifest().leases.len(), 1, "it has announced itself");
    let many = runs(&store).await;
    (server, held, store, many)
}

async fn ends(server: Running) {
    tokio::time::timeout(Duration::from_secs(60), server.ended()).await.expect("it does not wait for the compaction");
}

/// Whether all of the graph can be read, and whom person 1 knows of those that were committed.
async fn is_intact(store: &Store) -> bool {
    let graph = newest(store).await;
    graph.verify(|_| ()).await.unwrap();
    let mut query = graph.query();
    let person = query.vertex("Person", 1).await.unwrap().unwrap();
    let known = query.neighbors(&[person], &"out:knows".parse().unwrap()).await.unwrap();
    let known = query.keys_of(&known.iter().map(|edge| edge.to).collect::<Vec<_>>()).await.unwrap();
    (1_000..1_006).all(|key: i64| known.contains(&key.into()))
}

#[tokio::test]
async fn a_server_that_stops_breaks_a_compaction_off() {
    // An hour of grace is for queries.
    let (mut server, _held, store, many) = in_the_middle(3_600_000).await;
    server.stop();
    ends(server).await;
    // It has taken its name out, and published nothing.
    assert_eq!((newest(&store).await.manifest().leases.len(), runs(&store).await), (0, many));
    assert!(is_intact(&store).await);
    let done = Graph::compact(&store, &CompactionSettings::default()).await.unwrap();
    assert!(done.merges > 0 && runs(&store).await < many && is_intact(&store).await, "{done:?}");
}

#[tokio::test]
async fn a_compaction_that_cannot_take_its_name_out_keeps_no_server_and_harms_no_graph() {
    let (mut server, held, store, many) = in_the_middle(50).await;
    held.hold_writes("/");
    server.stop();
    ends(server).await;
    let left = newest(&store).await.manifest().leases.clone();
    assert_eq!((left.len(), runs(&store).await), (1, many));
    assert!(is_intact(&store).await);
    // The next compaction finishes the work, and a vacuum with `--abort` removes its lease.
    let done = Graph::compact(&store, &CompactionSettings::default()).await.unwrap();
    assert!(done.merges > 0 && runs(&store).await < many && is_intact(&store).await, "{done:?}");
    let abort = vec![left[0].writer.clone()];
    Graph::vacuum(&store, &VacuumSettings { abort, keep_versions: Some(1), ..VacuumSettings::default() })
        .await
        .unwrap();
    assert_eq!(newest(&store).await.manifest().leases, []);
    assert!(is_intact(&store).await);
}
