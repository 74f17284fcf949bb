//! A server that compacts: when somebody asks, and in the background.

use std::time::Duration;

use hoplake::{Graph, OpenSettings, Store};
use hoplake_server::Settings;
use serde_json::{Value, json};

use crate::{
    running::{Running, settings},
    sample,
};

async fn newest(store: &Store) -> Graph {
    Graph::open_with(store.clone(), &OpenSettings::default()).await.unwrap()
}

/// Publishes versions that each add a part to people and to who knows whom.
async fn commit(store: &Store, keys: std::ops::Range<i64>) {
    for key in keys {
        let mut commit = newest(store).await.begin();
        commit.upsert_vertex("Person", key, [("name", format!("new {key}"))]);
        commit.upsert_edge("knows", ("Person", 1), ("Person", key), [("since", key)]);
        commit.commit().await.unwrap();
    }
}

/// How many parts there are, of all labels and edge types.
async fn parts(store: &Store) -> usize {
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
    let (many, last) = (parts(&store).await, newest(&store).await.version());
    // Nobody asks, so nothing is done.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(newest(&store).await.version(), last);

    assert_eq!(version().await, last);
    let before = known(&server).await;
    server.until_metric("hoplake_compactions_total", 1.0).await;
    let few = parts(&store).await;
    assert!(few + 10 <= many, "{many} parts became {few}");
    assert!(server.metric("hoplake_compaction_bytes_total").await > 0.0);
    assert!(version().await > last);
    assert_eq!(known(&server).await, before);
    // What it published itself is newer, and nothing of it is due.
    let compacted = newest(&store).await;
    assert_eq!((compacted.version(), compacted.manifest().intents.len()), (version().await, 0));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(newest(&store).await.version(), compacted.version());
    assert_eq!(server.metric("hoplake_compaction_failures_total").await, 0.0);
}
