//! A graph in the simulated store: time that repeats, what idling asks for, and what a bad store changes.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use hoplake::{
    Direction, Graph, LabelId, LoadOptions, OpenSettings, Prefetch, ReadSettings, SectionKind, SegmentSettings,
    StoreProfile, Strategy, Traversal, VertexId, VisitPolicy,
};
use hoplake_testkit::{Fault, FaultKind, RequestKind, SimStore, generate::log_normal};
use object_store::ObjectStore;
use tokio::time::Instant;

use crate::graphs::{edge_list, graph_at, load_apart, open};

fn loaded() -> Arc<dyn ObjectStore> {
    let folder = tempfile::tempdir().unwrap();
    let file = edge_list(folder.path(), "graph.el", log_normal(2_000, 1.8, 0.5, 5));
    load_apart(LoadOptions { segments: SegmentSettings::with_list_blocks(512), ..LoadOptions::from_paths([file]) }).0
}

async fn three_hops(graph: &Graph) -> (usize, u64) {
    let mut query = graph.query();
    let start = query.vertex("vertex", 1).await.unwrap().unwrap();
    let hops = vec!["out:edge".parse().unwrap(); 3];
    let visit = VisitPolicy::Global;
    let reached = query.traverse(Traversal { starts: vec![start], hops, visit, ..Default::default() }).await.unwrap();
    (reached.depths.iter().map(|depth| depth.len()).sum(), query.cost().waves)
}

#[tokio::test(start_paused = true)]
async fn a_seed_repeats_a_cold_query_to_the_millisecond() {
    let inner = loaded();
    let run = async |seed| {
        let store = SimStore::new(inner.clone(), StoreProfile::s3_standard(), seed);
        let begun = Instant::now();
        let (reached, waves) = three_hops(&open(&graph_at(store.clone())).await).await;
        // The open has two waves more, and none of them takes less than the store's fastest answer.
        assert!(begun.elapsed() >= (waves as u32 + 2) * Duration::from_millis(15), "{:?}", begun.elapsed());
        (reached, begun.elapsed(), store.sim().counts())
    };
    let first = run(1).await;
    assert_eq!(first, run(1).await);
    // Two seeds may take as many milliseconds as each other; four do not.
    let mut times = BTreeSet::from([first.1]);
    for seed in 2..=4 {
        let other = run(seed).await;
        assert_eq!((first.0, first.2.requests), (other.0, other.2.requests));
        times.insert(other.1);
    }
    assert!(times.len() > 1, "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_graph_asks_for_nothing() {
    let store = SimStore::new(loaded(), StoreProfile::s3_standard(), 1);
    let graph = open(&graph_at(store.clone())).await;
    three_hops(&graph).await;
    // Background work of the query ends.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = store.sim().counts();
    assert!(before.requests.get > 5, "{before:?}");
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(store.sim().counts(), before);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_wrong_once_cost_a_request_and_no_answer() {
    let inner = loaded();
    let expected = three_hops(&open(&graph_at(inner.clone())).await).await;
    for kind in [FaultKind::Flip, FaultKind::Truncate { bytes: 3 }] {
        let store = SimStore::new(inner.clone(), StoreProfile::s3_standard(), 1);
        let graph = open(&graph_at(store.clone())).await;
        store.sim().reset_counts();
        store.sim().set_faults([Fault::new(kind).on(RequestKind::Get).below("/data/").first_attempts(1)]);
        assert_eq!(three_hops(&graph).await.0, expected.0, "{kind:?}");
        let gets = store.sim().gets_by_object();
        assert!(!gets.is_empty() && gets.values().all(|gets| *gets > 1), "{gets:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn reading_ahead_shortens_the_wait_and_changes_no_answer() {
    let inner = loaded();
    let run = async |strategy, prefetch, seed| {
        let store = SimStore::new(inner.clone(), StoreProfile::s3_standard(), seed);
        // A request for each block, so that some of a hop are slower than others.
        let read = ReadSettings { request_bytes_max: 0, full_read_bytes_max: 0, ..Default::default() };
        let settings = OpenSettings { read, ..Default::default() };
        let graph = Graph::open_with(graph_at(store.clone()), &settings).await.unwrap();
        let mut query = graph.query();
        let start = query.vertex("vertex", 1).await.unwrap().unwrap();
        let hops = vec!["out:edge".parse().unwrap(); 3];
        let begun = Instant::now();
        let traversal = Traversal { starts: vec![start], hops, strategy, prefetch, ..Default::default() };
        let reached = query.traverse(traversal).await.unwrap();
        (reached.into_inner().depths, begun.elapsed(), query.cost())
    };
    let few = Prefetch { workers: 4, queue_max: 64, cache_bytes_max: 1 << 20 };
    for strategy in [Strategy::Dfs, Strategy::Bfs] {
        let mut all_took = Duration::ZERO;
        let mut all_ahead_took = Duration::ZERO;
        let mut brought = 0;
        for seed in 0..30 {
            let (sets, took, cost) = run(strategy, None, seed).await;
            let (ahead_sets, ahead_took, ahead_cost) = run(strategy, Some(few), seed).await;
            assert_eq!(sets, ahead_sets);
            assert_eq!((cost.prefetched.blocks, cost.prefetches), (0, 0));
            // Breadth-first all blocks of a hop may come at once, so that there is nothing to read ahead in one run.
            assert!(ahead_cost.prefetches <= ahead_cost.requests, "{ahead_cost:?}");
            brought += ahead_cost.prefetched.blocks + ahead_cost.shared.blocks;
            all_took += took;
            all_ahead_took += ahead_took;
        }
        // Objects have other names in each run, so that other requests are slow: a few seeds prove little. Two thirds are usual.
        assert!(brought > 100, "{brought} blocks in thirty runs");
        if strategy == Strategy::Dfs {
            assert!(all_ahead_took < all_took * 3 / 4, "{all_ahead_took:?} is not three quarters of {all_took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_graph_is_in_memory_after_its_first_query() {
    let inner = loaded();
    let run = async |full_read_bytes_max| {
        let store = SimStore::new(inner.clone(), StoreProfile::s3_standard(), 1);
        let read = ReadSettings { full_read_bytes_max, ..Default::default() };
        let settings = OpenSettings { read, ..Default::default() };
        let graph = Graph::open_with(graph_at(store.clone()), &settings).await.unwrap();
        let hop = async |key| {
            let mut query = graph.query();
            let start = query.vertex("vertex", key).await.unwrap();
            let hops = vec!["out:edge".parse().unwrap()];
            let starts = start.into_iter().collect();
            query.traverse(Traversal { starts, hops, ..Default::default() }).await.unwrap();
            query.cost().waves
        };
        hop(1).await;
        // Background work ends, whatever its random duration.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let first = store.sim().counts().requests.get;
        let mut waves = 0;
        for key in (2..2_000).step_by(5) {
            waves += hop(key).await;
        }
        (waves, first, store.sim().counts().requests.get - first)
    };
    let (waves, first, requests) = run(4 << 20).await;
    assert_eq!((waves, requests), (0, 0), "after {first} requests");
    let (waves, first_without, requests) = run(0).await;
    assert!(waves > 20 && first + 20 < first_without + requests, "{waves}, {first}, {first_without} and {requests}");
}

/// People with two types of edges, whose lists in one direction share a segment.
fn of_two_types() -> Arc<dyn ObjectStore> {
    let folder = tempfile::tempdir().unwrap();
    let people: String = (0..1_000).map(|key| format!("{key}\n")).collect();
    std::fs::write(folder.path().join("P.csv"), format!(":ID(P)\n{people}")).unwrap();
    for (name, factor) in [("knows", 7), ("likes", 11)] {
        let edge = |edge: u64| format!("{},{},{name}\n", edge % 1_000, (edge * factor + edge / 1_000) % 1_000);
        let edges: String = (0..5_000).map(edge).collect();
        let file = folder.path().join(format!("{name}.csv"));
        std::fs::write(file, format!(":START_ID(P),:END_ID(P),:TYPE\n{edges}")).unwrap();
    }
    load_apart(LoadOptions {
        segments: SegmentSettings::with_list_blocks(512),
        ..LoadOptions::from_paths([folder.path()])
    })
    .0
}

#[tokio::test(start_paused = true)]
async fn a_small_segment_is_read_in_full_and_else_its_section() {
    let inner = of_two_types();
    let out = |section: &&hoplake::SectionSize| {
        matches!(section.kind, SectionKind::Adjacency(_, Direction::Out)) && section.blocks > 4
    };
    let info = open(&graph_at(inner.clone())).await.info().await.unwrap();
    let sizes: Vec<u64> = info.sections.iter().filter(out).map(|section| section.bytes).collect();
    assert_eq!(sizes.len(), 2);
    // Waves of a hop along each type, from people far apart, after one along the first type.
    let run = async |full_read_bytes_max| {
        let store = SimStore::new(inner.clone(), StoreProfile::s3_standard(), 1);
        let read = ReadSettings { full_read_bytes_max, request_bytes_max: 0, ..Default::default() };
        let settings = OpenSettings { read, ..Default::default() };
        let graph = Graph::open_with(graph_at(store), &settings).await.unwrap();
        let ids = [1, 900].map(|ordinal| VertexId::new(LabelId(0), ordinal).unwrap());
        graph.query().neighbors(&ids[..1], &"out:knows".parse().unwrap()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let mut waves = Vec::new();
        for hop in ["out:knows", "out:likes"] {
            let mut query = graph.query();
            assert_eq!(query.neighbors(&ids[1..], &hop.parse().unwrap()).await.unwrap().len(), 5);
            waves.push(query.cost().waves);
        }
        waves
    };
    assert_eq!(run(sizes.iter().sum()).await, [0, 0]);
    assert_eq!(run(*sizes.iter().max().unwrap()).await, [0, 1]);
    assert_eq!(run(sizes.iter().min().unwrap() - 1).await, [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn callers_who_commit_one_batch_after_the_other_stay_in_one_delta() {
    const CALLERS: u64 = 16;
    const BATCHES: u64 = 8;
    let store = SimStore::new(loaded(), StoreProfile::s3_standard(), 1);
    let graph = open(&graph_at(store)).await;
    let callers = (0..CALLERS).map(|caller| {
        let graph = graph.clone();
        tokio::spawn(async move {
            let mut versions = Vec::new();
            for number in 0..BATCHES {
                let mut commit = graph.begin();
                commit.upsert_vertex("vertex", (10_000 + caller * BATCHES + number) as i64, [("name", "one")]);
                versions.push(commit.commit().await.unwrap().version);
                // Some think for longer than others.
                tokio::time::sleep(Duration::from_millis(1 + caller % 4)).await;
            }
            versions
        })
    });
    let mut versions = BTreeSet::new();
    for caller in callers.collect::<Vec<_>>() {
        versions.extend(caller.await.unwrap());
    }
    // If the first of them did not wait for the others, two groups would take turns: two versions for a batch of each.
    assert_eq!(versions.len() as u64, BATCHES, "{versions:?}");
}
