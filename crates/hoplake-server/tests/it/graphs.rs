//! Many graphs: found by name, opened once, closed when idle, followed to newer versions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use hoplake::{CompactionSettings, Graph, OpenSettings, Store, VacuumSettings};
use hoplake_server::{Settings, StoreOpener, v1};
use serde_json::{Value, json};

use crate::{
    held_store::until,
    running::{Running, settings},
    sample,
};

/// Counts how often a store is opened, once for each URL that is looked at.
fn counted() -> (Arc<AtomicUsize>, StoreOpener) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let opener = move |url: &str| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(Store::open(url)?)
    };
    (count, Arc::new(opener))
}

#[tokio::test]
async fn a_graph_is_found_by_its_name_without_a_listing() {
    let folder = sample::in_memory("one").await;
    sample::add(&folder, "two", 8).await;
    let other = sample::in_memory("three").await;
    let graphs = vec![folder.clone(), format!("third={other}/three"), format!("{folder}/two")];
    let server = Running::start(Settings { graphs, ..settings("") }).await;
    assert_eq!(server.ask("GET", "/v1/graphs", &Value::Null).await, json!([{"name": "third", "open": false}]));
    for name in ["one", "two", "third"] {
        let answer = server.ask("GET", &format!("/v1/graphs/{name}"), &Value::Null).await;
        assert_eq!(answer["name"], name);
    }
    for missing in ["three", "four"] {
        assert_eq!(server.try_ask("GET", &format!("/v1/graphs/{missing}"), &Value::Null).await.0, 404);
    }
    let listed = server.ask("GET", "/v1/graphs", &Value::Null).await;
    let open = |name: &str| json!({"name": name, "open": true});
    assert_eq!(listed, json!([open("one"), open("third"), open("two")]));
}

#[tokio::test]
async fn a_hundred_first_requests_open_once() {
    let (held, opener) = sample::held().await;
    let server = Running::start_with(settings("memory://held"), opener).await;
    held.hold();
    held.reads.store(0, Ordering::SeqCst);
    let ask = || tokio::spawn(server.request("GET", "/v1/graphs/g").send());
    let first = ask();
    held.until_waiting(1).await;
    let others: Vec<_> = (0..99).map(|_| ask()).collect();
    // The first leaves: the opening is not its own.
    first.abort();
    server.until_metric("hoplake_queries_running", 64.0).await;
    held.release();
    for answer in join_all(others).await {
        assert_eq!(answer.unwrap().unwrap().status(), 200);
    }
    assert_eq!(server.metric("hoplake_graph_opens_total").await, 1.0);
    let once = held.reads.swap(0, Ordering::SeqCst);
    let alone = sample::open_held(&sample::leading_to(&held)).await;
    assert!(once <= alone.open_cost().requests as usize + 2, "{once}");
}

#[tokio::test]
async fn a_failure_is_forgotten() {
    let folder = sample::in_memory("early").await;
    let (count, opener) = counted();
    let server = Running::start_with(settings(&folder), opener).await;
    let asked = join_all((0..20).map(|_| server.try_ask("GET", "/v1/graphs/late", &Value::Null))).await;
    assert!(asked.iter().all(|(status, _)| *status == 404));
    assert!(count.load(Ordering::SeqCst) <= 20);
    sample::add(&folder, "late", 9).await;
    // That it was not there is believed for a moment, unless the newest version is asked for.
    server.ask("POST", "/v1/graphs/late/refresh", &Value::Null).await;
    server.ask("GET", "/v1/graphs/late", &Value::Null).await;
}

#[tokio::test]
async fn graphs_that_nobody_uses_are_closed() {
    let folder = sample::in_memory("one").await;
    let server = Running::start(Settings { graph_idle_ms: 40, ..settings(&folder) }).await;
    // A cursor uses its graph.
    let opened = server.ask("POST", "/v1/graphs/one/traversals", &json!({})).await;
    assert_eq!(server.metric("hoplake_graphs_open").await, 1.0);
    tokio::time::sleep(std::time::Duration::from_millis(120)).await;
    assert_eq!(server.metric("hoplake_graphs_open").await, 1.0);
    let path_of = format!("/v1/traversals/{}", opened["traversal"].as_str().unwrap());
    server.ask("DELETE", &path_of, &Value::Null).await;
    server.until_metric("hoplake_graphs_open", 0.0).await;
    server.ask("GET", "/v1/graphs/one", &Value::Null).await;
    assert_eq!(server.metric("hoplake_graph_opens_total").await, 2.0);
}

#[tokio::test]
async fn only_so_many_graphs_are_open() {
    let folder = sample::in_memory("one").await;
    sample::add(&folder, "two", 8).await;
    let server = Running::start(Settings { graphs_open_max: 1, ..settings(&folder) }).await;
    server.ask("GET", "/v1/graphs/one", &Value::Null).await;
    // An idle graph is closed to make room.
    let opened = server.ask("POST", "/v1/graphs/two/traversals", &json!({})).await;
    assert_eq!(server.metric("hoplake_graphs_open").await, 1.0);
    let (status, problem) = server.try_ask("GET", "/v1/graphs/one", &Value::Null).await;
    assert_eq!((status, &problem["reason"]), (429, &json!("BUSY")));
    server.ask("GET", "/v1/graphs/two", &Value::Null).await;
    server.ask("DELETE", &format!("/v1/traversals/{}", opened["traversal"].as_str().unwrap()), &Value::Null).await;
    server.ask("GET", "/v1/graphs/one", &Value::Null).await;
}

#[tokio::test]
async fn newer_versions_are_followed_and_old_ones_can_be_asked() {
    let folder = sample::in_memory("one").await;
    let server = Running::start(Settings { refresh_ms: 1, ..settings(&folder) }).await;
    let version = async || server.ask("GET", "/v1/graphs/one", &Value::Null).await["version"].as_u64().unwrap();
    let look_up = |version: u64| json!({"version": version, "vertices": ["Person:1"]});
    assert_eq!(version().await, 1);
    let pinned = server.ask("POST", "/v1/graphs/one/traversals", &json!({})).await;
    let mut options_seed = 20;
    // A load on top of a graph makes two versions: its lease, and its publication.
    sample::add(&folder, "one", options_seed).await;
    options_seed += 1;
    let mut seen = 1;
    until_newer(&mut seen, &version).await;
    if seen == 2 {
        until_newer(&mut seen, &version).await;
    }
    assert_eq!((seen, options_seed), (3, 21));
    let path = "/v1/graphs/one/look-up";
    for wanted in [1, 3] {
        assert_eq!(server.ask("POST", path, &look_up(wanted)).await["version"], wanted);
    }
    let step = json!({"vertices": ["Person:1"], "hop": "out:knows"});
    let path_of = format!("/v1/traversals/{}/neighbors", pinned["traversal"].as_str().unwrap());
    assert_eq!(server.ask("POST", &path_of, &step).await["version"], 1);
}

/// Publishes one version more.
async fn change(store: Store, key: i64) -> u64 {
    let graph = Graph::open_with(store, &OpenSettings::default()).await.unwrap();
    let mut commit = graph.begin();
    commit.upsert_vertex("Person", key, [("name", "new")]).commit().await.unwrap().version
}

/// Objects of a version that a vacuum removed are missed by queries that have it open: that is not damage.
#[tokio::test]
async fn a_version_that_was_removed_is_a_conflict_and_the_next_request_has_a_newer_one() {
    let (held, opener) = sample::held().await;
    let server = Running::start_with(settings("memory://held"), opener).await;
    let first = server.ask("GET", "/v1/graphs/g", &Value::Null).await["version"].as_u64().unwrap();
    let store = sample::leading_to(&held.beside())("memory://held/g").unwrap();
    change(store.clone(), 1_000).await;
    let everything = CompactionSettings { everything: true, ..CompactionSettings::default() };
    Graph::compact(&store, &everything).await.unwrap();
    let removed = Graph::vacuum(&store, &VacuumSettings { keep_versions: Some(0), ..VacuumSettings::default() }).await;
    assert!(removed.unwrap().objects > 0);
    let names = json!({"vertices": ["Person:1"], "select": ["name"]});
    let (status, problem) = server.try_ask("POST", "/v1/graphs/g/properties", &names).await;
    assert_eq!((status, &problem["reason"]), (409, &json!("CONFLICT")), "{problem}");
    let answer = server.ask("POST", "/v1/graphs/g/properties", &names).await;
    assert!(answer["version"].as_u64().unwrap() > first, "{answer}");
    assert_eq!(answer["rows"].as_array().map(Vec::len), Some(1), "{answer}");
}

#[tokio::test]
async fn that_an_old_version_was_removed_costs_requests_for_the_newest_nothing() {
    let (held, opener) = sample::held().await;
    let server = Running::start_with(Settings { refresh_ms: 3_600_000, ..settings("memory://held") }, opener).await;
    let refreshed =
        async || server.ask("POST", "/v1/graphs/g/refresh", &Value::Null).await["version"].as_u64().unwrap();
    let first = refreshed().await;
    let store = sample::leading_to(&held.beside())("memory://held/g").unwrap();
    change(store.clone(), 1_000).await;
    assert!(refreshed().await > first);
    // Opens the old version, and reads no row of it.
    server.ask("POST", "/v1/graphs/g/look-up", &json!({"version": first, "vertices": ["Person:1"]})).await;
    let everything = CompactionSettings { everything: true, ..CompactionSettings::default() };
    Graph::compact(&store, &everything).await.unwrap();
    refreshed().await;
    let removed = Graph::vacuum(&store, &VacuumSettings { keep_versions: Some(0), ..VacuumSettings::default() }).await;
    assert!(removed.unwrap().objects > 0);
    let names = json!({"version": first, "vertices": ["Person:1"], "select": ["name"]});
    let (status, problem) = server.try_ask("POST", "/v1/graphs/g/properties", &names).await;
    assert_eq!((status, &problem["reason"]), (409, &json!("CONFLICT")), "{problem}");
    let before = held.count();
    for _ in 0..5 {
        server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    }
    assert_eq!(held.count(), before, "{:?}", held.log.lock().unwrap());
}

#[tokio::test]
async fn a_client_can_ask_for_what_was_published_before() {
    let folder = sample::in_memory("one").await;
    let server = Running::start(settings(&folder)).await;
    let store = || Store::open(&format!("{folder}/one")).unwrap();
    let version = async || server.ask("GET", "/v1/graphs/one", &Value::Null).await["version"].as_u64().unwrap();
    let first = version().await;
    let second = change(store(), 1_000).await;
    assert_eq!((version().await, second > first), (first, true));
    let refreshed = server.ask("POST", "/v1/graphs/one/refresh", &Value::Null).await;
    assert_eq!((refreshed, version().await), (json!({"version": second}), second));
    let third = change(store(), 1_001).await;
    let asked = v1::RefreshRequest { graph: "one".into() };
    let answer = server.graphs().await.refresh(asked.clone()).await.unwrap().into_inner();
    assert_eq!((answer.version, version().await), (third, third));
    // Nothing is new, or it was not open, or it does not exist.
    assert_eq!(server.graphs().await.refresh(asked).await.unwrap().into_inner().version, third);
    sample::add(&folder, "two", 8).await;
    assert_eq!(server.try_ask("POST", "/v1/graphs/two/refresh", &Value::Null).await.0, 200);
    assert_eq!(server.try_ask("POST", "/v1/graphs/three/refresh", &Value::Null).await.0, 404);
}

#[tokio::test]
async fn nothing_is_asked_of_the_store_while_nobody_asks() {
    let (held, opener) = sample::held().await;
    let beside = held.beside();
    let server = Running::start_with(Settings { refresh_ms: 20, ..settings("memory://held") }, opener).await;
    let version = async || server.ask("GET", "/v1/graphs/g", &Value::Null).await["version"].as_u64().unwrap();
    let first = version().await;
    let newest = change(sample::leading_to(&beside)("memory://held/g").unwrap(), 1_000).await;
    let before = held.count();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(held.count(), before, "{:?}", held.log.lock().unwrap());
    // The first who comes after that long has what is there now, not what was.
    assert_eq!((version().await, newest > first), (newest, true));
    // A slow look delays no query for good, and only one runs.
    change(sample::leading_to(&beside)("memory://held/g").unwrap(), 1_001).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    held.hold();
    let asked = join_all((0..30).map(|_| version())).await;
    assert_eq!(asked, [newest; 30]);
    assert_eq!(held.waiting.load(Ordering::SeqCst), 1);
    held.release();
}

#[tokio::test]
async fn a_look_that_finds_nothing_new_is_one_request() {
    let (held, opener) = sample::held().await;
    let server = Running::start_with(Settings { refresh_ms: 3_600_000, ..settings("memory://held") }, opener).await;
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    let before = held.count();
    for look in 1..=9 {
        server.ask("POST", "/v1/graphs/g/refresh", &Value::Null).await;
        assert_eq!(held.count() - before, look, "{:?}", held.log.lock().unwrap());
    }
}

#[tokio::test]
async fn nothing_is_asked_of_the_store_before_it_is_time() {
    let (held, opener) = sample::held().await;
    let hour = Settings { refresh_ms: 3_600_000, ..settings("memory://held") };
    let server = Running::start_with(hour, opener).await;
    let version = async || server.ask("GET", "/v1/graphs/g", &Value::Null).await["version"].as_u64().unwrap();
    let first = version().await;
    change(sample::leading_to(&held.beside())("memory://held/g").unwrap(), 1_000).await;
    let before = held.count();
    for _ in 0..20 {
        assert_eq!(version().await, first);
    }
    assert_eq!(held.count(), before, "{:?}", held.log.lock().unwrap());
}

#[tokio::test]
async fn a_graph_that_was_removed_is_closed_and_one_in_its_place_is_found() {
    let folder = sample::in_memory("one").await;
    let server = Running::start(settings(&folder)).await;
    let path = "/v1/graphs/one/refresh";
    server.ask("POST", path, &Value::Null).await;
    let store = Store::open(&format!("{folder}/one")).unwrap();
    let remove = async || {
        for object in store.list("").await.unwrap() {
            store.delete(&[object.name]).await.unwrap();
        }
    };
    remove().await;
    // Each tenth look asks whether the version is still there.
    let mut looks = 1;
    while server.try_ask("POST", path, &Value::Null).await.0 != 404 {
        looks += 1;
    }
    assert!(looks <= 10, "{looks}");
    sample::add(&folder, "one", 8).await;
    server.ask("POST", path, &Value::Null).await;
    remove().await;
    sample::add(&folder, "one", 9).await;
    let before = server.metric("hoplake_graphs_open").await;
    // So does the next look after a query that missed an object, here the first that reads.
    let traversal = json!({"starts": ["Person:1"], "hops": ["out:knows"]});
    assert_eq!(server.try_ask("POST", "/v1/graphs/one/traverse", &traversal).await.0, 409);
    server.ask("POST", path, &Value::Null).await;
    assert_eq!((before, server.metric("hoplake_graphs_open").await), (1.0, 1.0));
    // Its blocks are read from the new objects.
    server.ask("POST", "/v1/graphs/one/traverse", &json!({"starts": ["Person:1"], "hops": ["out:knows"]})).await;
}

async fn until_newer(seen: &mut u64, version: &impl AsyncFn() -> u64) {
    let first = *seen;
    while *seen == first {
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        *seen = version().await;
    }
    until(|| true).await;
}
