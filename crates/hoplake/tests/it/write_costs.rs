//! The cost that writers report is what the store has seen.

use std::{collections::BTreeSet, sync::Arc};

use hoplake::{
    Batch, Committed, Compacted, CompactionSettings, Cost, Graph, LoadOptions, OpenSettings, Operation, Properties,
    Store, VacuumSettings, VertexRef,
};
use hoplake_testkit::{RequestKind, WaveStore};
use object_store::ObjectStore;

use crate::graphs::{graph_at, in_memory, load_into};

async fn loaded() -> (Arc<dyn ObjectStore>, Store, Cost) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "1,2\n2,3\n3,4\n").unwrap();
    let (inner, store) = in_memory();
    let report = load_into(&store, LoadOptions::from_paths([file])).await.unwrap();
    (inner, store, report.cost)
}

/// Waves, requests that read, their bytes, requests that write or list, their bytes; but for the hint's wave, which
/// nobody waits for.
fn seen(store: &WaveStore) -> [u64; 5] {
    let counts = store.requests();
    let log = store.log();
    let awaited = log.iter().filter(|request| request.path != "g/hint");
    let waves: BTreeSet<_> = awaited.map(|request| request.start_tick).collect();
    let written = log.iter().filter(|request| request.kind == RequestKind::Put).map(|request| request.bytes).sum();
    [waves.len() as u64, counts.get, store.bytes_read(), counts.put + counts.list, written]
}

fn told(cost: &Cost) -> [u64; 5] {
    [cost.waves, cost.requests, cost.store_bytes, cost.puts, cost.put_bytes]
}

async fn open(inner: &Arc<dyn ObjectStore>) -> (WaveStore, Graph) {
    let store = WaveStore::new(inner.clone());
    let graph = Graph::open_with(graph_at(store.clone()), &OpenSettings::default()).await.unwrap();
    store.reset();
    (store, graph)
}

async fn an_edge(graph: &Graph, source: i64, target: i64) -> Committed {
    let mut commit = graph.begin();
    commit.upsert_edge("edge", ("vertex", source), ("vertex", target), [("since", 2026)]).commit().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_one_edge_is_two_waves_and_three_puts() {
    let (inner, ..) = loaded().await;
    let (store, graph) = open(&inner).await;
    let cost = an_edge(&graph, 1, 3).await.cost;
    assert_eq!(told(&cost), seen(&store), "{:#?}", store.log());
    // The block with the keys; the object, the manifest, the hint.
    assert_eq!((cost.waves, cost.requests, cost.puts), (3, 1, 3), "{:#?}", store.log());
    // The keys are in memory from then on.
    store.reset();
    let cost = an_edge(&graph, 1, 4).await.cost;
    assert_eq!(told(&cost), seen(&store), "{:#?}", store.log());
    assert_eq!((cost.waves, cost.requests, cost.puts), (2, 0, 3), "{:#?}", store.log());
    let prices = hoplake::StoreProfile::s3_standard().prices.clone();
    assert!((cost.usd(&prices) - 3.0 * 0.005 / 1e3).abs() < 1e-9, "{}", cost.usd(&prices));
}

/// The round trips of one operation of each kind, from an empty process: opening, and the commit up to its hint. The last one is that
/// of the hint, which a process waits for when it ends.
#[tokio::test(start_paused = true)]
async fn from_an_empty_process_an_operation_takes_the_waves_that_are_documented() {
    let (inner, ..) = loaded().await;
    let (_, graph) = open(&inner).await;
    let mut commit = graph.begin();
    for key in 1..=4 {
        commit.upsert_vertex("Person", key, [("name", "Ann"), ("city", "Bonn")]);
    }
    for (property, key) in [("since", 1), ("until", 2)] {
        commit.upsert_edge("knows", ("Person", key), ("Person", 3), [(property, 2026)]);
    }
    commit.commit().await.unwrap();
    graph.settled().await;
    drop(graph);
    let everything = CompactionSettings { everything: true, ..CompactionSettings::default() };
    Graph::compact(&graph_at(inner.clone()), &everything).await.unwrap();
    let person = |key: i64| VertexRef { label: "Person".into(), key: key.into() };
    let named = || [("name", "Bob")].into_iter().collect::<Properties>();
    let since = || [("since", 2027)].into_iter().collect::<Properties>();
    let upsert = |key, replace| Operation::UpsertVertex { vertex: person(key), properties: named(), replace };
    let edge = |source, target, properties| Operation::UpsertEdge {
        label: "knows".into(),
        source: person(source),
        target: person(target),
        key: None,
        properties,
        replace: false,
    };
    let delete_edge = Operation::DeleteEdge { label: "knows".into(), source: person(1), target: person(3), key: None };
    let cases = [
        ("a vertex that is new", upsert(9, false), 5),
        ("a vertex that is replaced", upsert(1, true), 6),
        ("a vertex that is changed in part", upsert(4, false), 7),
        ("a vertex that is changed in part once more", upsert(4, false), 8),
        ("an edge between vertices without one", edge(3, 1, since()), 7),
        ("an edge that is changed in part", edge(2, 3, since()), 8),
        ("an edge that is deleted", delete_edge, 6),
        ("a vertex that is deleted", Operation::DeleteVertex { vertex: person(2) }, 7),
    ];
    let documented = cases.clone().map(|(what, _, waves)| (what, waves));
    let mut taken = Vec::new();
    for (what, operation, _) in cases {
        let store = WaveStore::new(inner.clone());
        let graph = Graph::open_with(graph_at(store.clone()), &OpenSettings::default()).await.unwrap();
        let batch = Batch { operations: vec![operation], ..Batch::default() };
        graph.apply(batch).await.unwrap();
        graph.settled().await;
        taken.push((what, store.waves()));
    }
    assert_eq!(taken, documented);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_another_overtook_pays_twice() {
    let (inner, ..) = loaded().await;
    let (store, graph) = open(&inner).await;
    let (_, faster) = open(&inner).await;
    an_edge(&faster, 2, 4).await;
    store.reset();
    let cost = an_edge(&graph, 1, 3).await.cost;
    assert_eq!(told(&cost), seen(&store), "{:#?}", store.log());
    // The object and the manifest twice, and the hint. It reads keys, writes twice, reads whose the version is, reads
    // the end of that one's object while it removes its own, and writes twice again.
    assert_eq!((cost.puts, cost.waves), (5, 7), "{:#?}", store.log());
}

/// Looks at many labels and edge types do not wait for each other: the account of a commit has the waves that it took.
#[tokio::test(start_paused = true)]
async fn a_commit_looks_at_all_labels_and_edge_types_at_once() {
    let (inner, ..) = loaded().await;
    committed(&inner, 3, 6).await;
    let (store, graph) = open(&inner).await;
    let (_, faster) = open(&inner).await;
    an_edge(&faster, 2, 4).await;
    let mut commit = graph.begin();
    for kind in 0..6 {
        let label = format!("label{kind}");
        // What is changed in part is read, and so is what the other wrote of it since.
        commit.upsert_vertex(&label, 3, [("nick", "three")]);
        commit.upsert_edge(&format!("edge{kind}"), (&label, 5), (&label, 2), [("until", 9)]);
    }
    store.reset();
    let cost = commit.commit().await.unwrap().cost;
    // Requests for later queries, in the background, are on no wave.
    assert_eq!(told(&cost)[0], seen(&store)[0], "{:#?}", store.log());
    // Keys with what is known of tables, rows; it writes twice, meets the other version, reads its object, and writes twice.
    assert_eq!(cost.waves, 9, "{:#?}", store.log());
}

/// The reported cost of a compaction against what the store saw, the hints' waves included: it waits for the last of
/// them.
async fn compacted(inner: &Arc<dyn ObjectStore>, settings: &CompactionSettings) -> (WaveStore, Compacted) {
    let store = WaveStore::new(inner.clone());
    let done = Graph::compact(&graph_at(store.clone()), settings).await.unwrap();
    assert_eq!(told(&done.cost)[1..], seen(&store)[1..], "{:#?}", store.log());
    assert_eq!(done.cost.waves, store.waves(), "{:#?}", store.log());
    (store, done)
}

#[tokio::test(start_paused = true)]
async fn a_compaction_tells_what_it_took() {
    let (inner, ..) = loaded().await;
    let (_, graph) = open(&inner).await;
    an_edge(&graph, 1, 3).await;
    let everything = CompactionSettings { everything: true, ..CompactionSettings::default() };
    let (store, done) = compacted(&inner, &everything).await;
    assert_eq!(done.merges, 1);
    // What it merged, and the manifests and hints of two versions: announced; merged and done.
    assert_eq!(done.cost.puts, 1 + 2 * 2, "{:#?}", store.log());
}

/// Twelve commits to many labels and edge types, as one of a social network does.
async fn committed(inner: &Arc<dyn ObjectStore>, commits: i64, types: i64) {
    let mut graph = Graph::open_with(graph_at(inner.clone()), &OpenSettings::default()).await.unwrap();
    for round in 0..commits {
        let mut commit = graph.begin();
        for kind in 0..types {
            let label = format!("label{kind}");
            let edge = format!("edge{kind}");
            for key in round * 20..round * 20 + 20 {
                commit.upsert_vertex(&label, key, [("name", format!("{label} {key}"))]);
                commit.upsert_edge(&edge, (&label, key), (&label, key / 2), [("since", key)]);
            }
            // What the round before wrote is changed and removed.
            if round > 0 {
                commit.upsert_vertex(&label, round * 20 - 1, [("name", "another")]);
                commit.delete_edge(&edge, (&label, round * 20 - 2), (&label, (round * 20 - 2) / 2));
            }
        }
        commit.commit().await.unwrap();
        graph.refresh().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_compaction_of_many_small_runs_is_a_few_waves_of_a_request_an_object() {
    let (inner, ..) = loaded().await;
    committed(&inner, 12, 10).await;
    let before = Graph::open_with(graph_at(inner.clone()), &OpenSettings::default()).await.unwrap();
    let runs = before.manifest().segments.len() as u64;
    let (store, done) = compacted(&inner, &CompactionSettings::default()).await;
    // Of ten labels and ten edge types, twelve runs each.
    assert_eq!((done.merges, done.runs), (20, 240));
    let counts = store.requests();
    // The hint, the next version, and each object once: those of commits completely. The result is not read: nothing
    // more is due. It writes that, and two versions and their hints.
    assert_eq!((counts.get, counts.put), (2 + runs, 1 + 2 * 2), "{:#?}", store.log());
    assert_eq!(done.cost.waves, 7, "{:#?}", store.log());
    let after = Graph::open_with(graph_at(inner.clone()), &OpenSettings::default()).await.unwrap();
    after.verify(|_| ()).await.unwrap();
    let mut diff = before.diff(&after, &[]).unwrap();
    while let Some(page) = diff.next_page().await.unwrap() {
        assert_eq!(page, []);
    }
}

#[tokio::test]
async fn a_load_tells_what_it_wrote() {
    let (_, store, cost) = loaded().await;
    let objects = store.list("").await.unwrap();
    assert_eq!(cost.put_bytes, objects.iter().map(|object| object.bytes).sum::<u64>());
    assert!(objects.len() >= 3, "{objects:?}");
    // In addition, it lists: the objects that it is about to publish; then, for a vacuum, these again, and versions.
    assert_eq!(cost.puts, objects.len() as u64 + 3);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_is_far_behind_catches_up_at_once() {
    let (inner, ..) = loaded().await;
    let (store, graph) = open(&inner).await;
    let (other_store, other) = open(&inner).await;
    // A wave is a second here.
    other.set_commit_timeout(std::time::Duration::from_secs(1_000));
    graph.set_commit_timeout(std::time::Duration::from_secs(1_000));
    let (_, faster) = open(&inner).await;
    for target in 0..120 {
        let mut commit = faster.begin();
        commit.upsert_vertex("vertex", target, [("name", "x")]).commit().await.unwrap();
    }
    // It builds on the version that it meets, then on the newest.
    let committed = an_edge_of_now(&graph, 1, 4).await;
    assert_eq!((committed.version, committed.cost.puts), (122, 2 * 3 + 1), "{:#?}", store.log());
    // A batch that is rejected on the known version is tried again on the newest one first.
    let committed = an_edge_of_now(&other, 1, 119).await;
    assert_eq!((committed.version, committed.cost.puts), (123, 2 + 1), "{:#?}", other_store.log());
}

/// An edge between vertices as they are now, whatever the caller has read.
async fn an_edge_of_now(graph: &Graph, source: i64, target: i64) -> Committed {
    let mut batch = Batch::default();
    let [source, target] = [source, target].map(|key| VertexRef::new("vertex", key));
    let label = "edge".into();
    let properties = Properties::new();
    batch.operations.push(Operation::UpsertEdge { label, source, target, key: None, properties, replace: true });
    graph.apply(batch).await.unwrap()
}

/// Requests of a vacuum that write, and the version that is the newest afterwards.
async fn vacuumed(inner: &Arc<dyn ObjectStore>, settings: &VacuumSettings) -> (u64, u64) {
    let store = WaveStore::new(inner.clone());
    Graph::vacuum(&graph_at(store.clone()), settings).await.unwrap();
    let reads = [RequestKind::Get, RequestKind::Head, RequestKind::List];
    let writes = store.log().iter().filter(|request| !reads.contains(&request.kind)).count() as u64;
    (writes, Graph::newest(&graph_at(inner.clone())).await.unwrap().version)
}

/// Otherwise one that runs on a schedule fills the log of an idle graph, and is faster than any commit of a slow
/// writer.
#[tokio::test(start_paused = true)]
async fn a_vacuum_with_nothing_to_do_only_reads() {
    let since = |ms: u64| VacuumSettings { keep_since_unix_ms: Some(ms), ..VacuumSettings::default() };
    let count = |versions| VacuumSettings { keep_versions: Some(versions), ..VacuumSettings::default() };
    // By time, what a vacuum published is a past version until the next; by count it takes a slot of the retention.
    let cases = [(count(0), 1), (count(1), 1), (count(3), 1), (since(u64::MAX), 2)];
    for (settings, publish) in cases {
        let (inner, ..) = loaded().await;
        for _ in 0..6 {
            an_edge(&open(&inner).await.1, 1, 3).await;
        }
        let mut newest = 7;
        for _ in 0..publish {
            let (writes, version) = vacuumed(&inner, &settings).await;
            assert!(writes > 0, "{settings:?}");
            assert_eq!(version, newest + 1, "{settings:?}");
            newest = version;
        }
        for _ in 0..3 {
            assert_eq!(vacuumed(&inner, &settings).await, (0, newest), "{settings:?}");
        }
        let kept = settings.keep_versions.unwrap_or(1) as usize;
        assert_eq!(Graph::versions(&graph_at(inner.clone())).await.unwrap().len(), 1 + kept, "{settings:?}");
        // The next change is a version that pushes another out.
        an_edge(&open(&inner).await.1, 2, 4).await;
        assert_eq!(vacuumed(&inner, &settings).await.1, newest + 2, "{settings:?}");
    }
}
