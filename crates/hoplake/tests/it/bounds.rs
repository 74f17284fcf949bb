//! What queries may hold in memory, that they give way, and that walks cost what is asked of them.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use hoplake::{
    ErrorKind, Frontier, Graph, Hop, Limits, LoadOptions, MemoryBudget, OpenSettings, PathQuery, Query, Strategy,
    Traversal, TraversalRequest, VertexId, VisitPolicy,
};
use object_store::ObjectStore;

use crate::{
    graphs::{edge_list, graph_at, load_apart},
    waves::{in_parts, open as open_counted},
};

/// Each vertex of the ring has edges to this many that follow it.
const DEGREE: u64 = 100;
const RING: u64 = 1_000;

fn loaded(edges: impl Iterator<Item = (u64, u64)>) -> Arc<dyn ObjectStore> {
    let folder = tempfile::tempdir().unwrap();
    let file = edge_list(folder.path(), "graph.el", edges);
    load_apart(LoadOptions::from_paths([file])).0
}

fn ring() -> Arc<dyn ObjectStore> {
    loaded((0..RING).flat_map(|from| (1..=DEGREE).map(move |step| (from, (from + step) % RING))))
}

async fn open(store: &Arc<dyn ObjectStore>) -> Graph {
    Graph::open_with(graph_at(store.clone()), &OpenSettings::default()).await.unwrap()
}

fn hops(count: usize) -> Vec<Hop> {
    vec!["out:edge".parse().unwrap(); count]
}

async fn from_vertex(query: &mut Query, key: i64, hops: Vec<Hop>) -> Traversal {
    let start = query.vertex("vertex", key).await.unwrap().unwrap();
    Traversal { starts: vec![start], hops, ..Traversal::default() }
}

fn memory(bytes: u64) -> Limits {
    Limits { memory_bytes_max: Some(bytes), ..Limits::default() }
}

#[tokio::test(start_paused = true)]
async fn the_first_walk_costs_one_walk() {
    let graph = open(&ring()).await;
    let mut query = graph.query();
    // 10⁴⁰ walks.
    let traversal = from_vertex(&mut query, 7, hops(20)).await;
    let mut paths = query.paths(traversal.clone(), Some(1)).await.unwrap();
    let walks = query.next_walks(&mut paths, 1).await.unwrap();
    assert_eq!((walks.len(), walks[0].vertices.len()), (1, 21));
    let edges: u64 = paths.profile().iter().map(|hop| hop.edges).sum();
    assert_eq!(edges, 20 * DEGREE, "one list a hop");
    assert!(query.memory().peak() < 128 << 10, "{}", query.memory().peak());
    // Others follow from what was read, and the memory of a few lists.
    drop((paths, walks));
    let mut paths = query.paths(Traversal { limits: memory(256 << 10), ..traversal }, Some(5_000)).await.unwrap();
    let mut count = 0;
    for _ in 0..50 {
        count += query.next_walks(&mut paths, 100).await.unwrap().len();
    }
    assert_eq!(count, 5_000);
    assert!(query.memory().peak() <= 256 << 10);
    drop(paths);
    assert_eq!(query.memory().used(), 0);
}

#[tokio::test(start_paused = true)]
async fn dead_ends_are_tried_once() {
    // From 0 to all of the first layer, from each of a layer to all of the next; only the last of the fifth goes on.
    let layer = |depth: u64, number: u64| 1 + depth * 50 + number;
    let between = move |depth| (0..50).flat_map(move |a| (0..50).map(move |b| (layer(depth, a), layer(depth + 1, b))));
    let edges = (0..50).map(move |to| (0, layer(0, to))).chain((0..4).flat_map(between)).chain([(layer(4, 49), 9_999)]);
    let graph = open(&loaded(edges)).await;
    let mut query = graph.query();
    let traversal = from_vertex(&mut query, 0, hops(6)).await;
    let mut paths = query.paths(traversal.clone(), Some(1)).await.unwrap();
    let walk = query.next_walks(&mut paths, 1).await.unwrap();
    assert_eq!(walk[0].vertices.len(), 7);
    let edges: u64 = paths.profile().iter().map(|hop| hop.edges).sum();
    assert!(edges <= 50 + 4 * 2_500 + 1, "each list at most once, and not 50⁵ times: {edges}");
    assert_eq!(query.count_walks(traversal).await.unwrap().walks, Some(50u128.pow(4)));
}

#[tokio::test(start_paused = true)]
async fn walks_are_counted_without_their_edges() {
    let graph = open(&ring()).await;
    let mut query = graph.query();
    let traversal = from_vertex(&mut query, 7, hops(19)).await;
    let traversal = Traversal { limits: memory(16 << 20), ..traversal };
    assert_eq!(query.count_walks(traversal.clone()).await.unwrap().walks, Some(10u128.pow(38)));
    let more = Traversal { hops: hops(20), ..traversal.clone() };
    assert_eq!(query.count_walks(more).await.unwrap().walks, None, "10⁴⁰ is more than 2¹²⁸");
    let once = Traversal { visit: VisitPolicy::Global, hops: hops(2), ..traversal };
    // Two steps reach the 100 after the first 100, each from all of the first 100 that have an edge to it.
    assert_eq!(query.count_walks(once).await.unwrap().walks, Some((1..=100).sum()));
}

#[tokio::test(start_paused = true)]
async fn every_step_ends_at_the_budget_and_gives_its_memory_back() {
    let graph = open(&ring()).await;
    let mut query = graph.query();
    let traversal = from_vertex(&mut query, 7, hops(3)).await;
    let all: Frontier = query.traverse(Traversal { hops: hops(11), ..traversal.clone() }).await.unwrap().last().clone();
    let everyone: Vec<VertexId> = all.vertices().collect();
    assert_eq!(everyone.len() as u64, RING);
    let limited = |query: &mut Query| query.limit(&memory(8 << 10));
    let rejected = |what: &str, error: hoplake::Error| {
        assert_eq!(error.kind(), ErrorKind::Limit, "{what}: {error}");
        assert!(error.to_string().contains("8192 bytes of memory for the query; until then"), "{what}: {error}");
    };
    limited(&mut query);
    rejected("traverse", query.traverse(traversal.clone()).await.unwrap_err());
    rejected("neighbors", query.neighbors(&everyone, &hops(1)[0]).await.unwrap_err());
    rejected("degrees", query.degrees(&everyone, &hops(1)[0]).await.unwrap_err());
    rejected("keys", query.keys(&all).await.unwrap_err());
    rejected("properties", query.properties(&all, &[]).await.unwrap_err());
    rejected("count", query.count_walks(traversal.clone()).await.unwrap_err());
    rejected("neighborhood", query.neighborhood(&everyone[..1], &hops(1)[0], 5).await.unwrap_err());
    let from = everyone[0];
    let to = everyone[990];
    let hop = hops(1)[0].clone();
    let path = PathQuery { from, to, hop, depth_max: 30, edges: true, limits: Limits::default() };
    rejected("path", query.shortest_path(path).await.unwrap_err());
    assert_eq!(query.memory().used(), 0, "what was refused holds nothing");
    assert!(query.memory().used() <= query.memory().peak());
}

/// One vertex that is named 100,000 times is a set of one, but takes 800 KB until that is known.
#[tokio::test(start_paused = true)]
async fn starts_count_before_they_are_copied() {
    let graph = open(&ring()).await;
    let mut query = graph.query();
    let start = query.vertex("vertex", 7).await.unwrap().unwrap();
    let traversal = Traversal { starts: vec![start; 100_000], ..Traversal::default() };
    query.limit(&memory(512 << 10));
    let rejected = |what: &str, error: Option<hoplake::Error>| {
        let error = error.unwrap_or_else(|| panic!("{what} copied them"));
        assert_eq!(error.kind(), ErrorKind::Limit, "{what}: {error}");
    };
    let along = &hops(1)[0];
    rejected("neighbors", query.neighbors(&traversal.starts, along).await.err());
    rejected("the first neighbors", query.first_neighbors(&traversal.starts, along, 1).await.err());
    rejected("degrees", query.degrees(&traversal.starts, along).await.err());
    rejected("neighborhood", query.neighborhood(&traversal.starts, along, 0).await.err());
    rejected("paths", query.paths(traversal.clone(), Some(1)).await.err());
    rejected("count", query.count_walks(traversal.clone()).await.err());
    for strategy in [Strategy::Bfs, Strategy::BfsPipelined, Strategy::Dfs] {
        let traversal = Traversal { strategy, ..traversal.clone() };
        rejected(&format!("{strategy:?}"), query.traverse(traversal).await.err());
    }
    let request = TraversalRequest { traversal: traversal.clone(), ..TraversalRequest::default() };
    rejected("run", query.run(&request).await.err());
    assert_eq!(query.memory().used(), 0);
    // What is walked is counted as long as it is walked.
    query.limit(&memory(4 << 20));
    let paths = query.paths(traversal, Some(1)).await.unwrap();
    assert!((8..1_000).contains(&query.memory().used()), "{}", query.memory().used());
    drop(paths);
    // 50 conditions find all of the ring each: 400 KB of starts, which are there twice, and sorted once more.
    for (bytes, is_enough) in [(1_000_000, false), (2_000_000, true)] {
        query.limit(&memory(bytes));
        let mut steps = query.from("vertex[~key >= 0]").unwrap();
        for _ in 1..50 {
            steps = steps.and_from("vertex[~key >= 0]").unwrap();
        }
        let walks = steps.walks(0).await;
        assert_eq!(
            walks.as_ref().map_or_else(|error| error.kind() != ErrorKind::Limit, |_| true),
            is_enough,
            "{walks:?}"
        );
    }
    assert_eq!(query.memory().used(), 0);
}

/// The look-up takes one of the seconds, and the block that has the lists of both hops another.
#[tokio::test(start_paused = true)]
async fn the_time_of_walks_is_that_of_their_look_up_too() {
    let (_, graph) = open_counted(&ring(), &in_parts()).await;
    for (timeout_ms, is_enough) in [(1_500, false), (2_500, true)] {
        let mut query = graph.query();
        let limits = Limits { timeout: Some(Duration::from_millis(timeout_ms)), ..Limits::default() };
        let walks = query.from("vertex:7").unwrap().out("edge").out("edge").within(limits).walks(1).await;
        assert_eq!(
            walks.as_ref().map_or_else(|error| error.kind() != ErrorKind::Limit, |_| true),
            is_enough,
            "{walks:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn queries_share_a_budget() {
    let graph = open(&ring()).await;
    let budget = MemoryBudget::new("all queries", 64 << 10);
    let mut first = graph.query_within(&budget);
    let traversal = from_vertex(&mut first, 7, hops(1)).await;
    let held = first.neighbors(&traversal.starts, &hops(1)[0]).await.unwrap();
    // 8 bytes an edge, and a list.
    let used = budget.used();
    assert!((DEGREE * 8..DEGREE * 8 + 64).contains(&used), "{used}");
    let mut second = graph.query_within(&budget);
    let error = second.traverse(Traversal { hops: hops(10), ..traversal }).await.unwrap_err();
    assert!(error.to_string().contains("65536 bytes of memory for all queries"), "{error}");
    drop(first);
    assert_eq!(budget.used(), used, "an answer counts longer than its query");
    drop(held);
    assert_eq!(budget.used(), 0);
}

/// Polls work to its end and counts how often it gave way.
fn polls<T>(work: impl Future<Output = T>) -> (T, usize) {
    let mut work = pin!(work);
    let mut count = 0;
    loop {
        count += 1;
        if let Poll::Ready(result) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return (result, count);
        }
    }
}

#[test]
fn work_on_what_is_in_memory_gives_way() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (graph, starts) = runtime.block_on(async {
        let graph = open(&ring()).await;
        let mut query = graph.query();
        let traversal = from_vertex(&mut query, 7, hops(12)).await;
        (graph, query.traverse(traversal).await.unwrap().last().vertices().collect::<Vec<_>>())
    });
    let hop = &hops(1)[0];
    // 100,000 edges are decoded, sorted, looked at and counted: at least three pieces of 32,768.
    let (edges, times) = polls(async { graph.query().neighbors(&starts, hop).await.unwrap().len() });
    assert_eq!(edges as u64, RING * DEGREE);
    assert!(times > 5, "{times}");
    let traversal = Traversal { starts, hops: hops(8), ..Traversal::default() };
    let (_, times) = polls(async { graph.query().traverse(traversal.clone()).await.unwrap() });
    assert!(times > 8, "{times}");
    let (_, times) = polls(async { graph.query().count_walks(traversal.clone()).await.unwrap() });
    assert!(times > 100, "{times}");
    let (_, times) = polls(async {
        let mut query = graph.query();
        let mut paths = query.paths(traversal, None).await.unwrap();
        query.next_walks(&mut paths, 100_000).await.unwrap()
    });
    assert!(times > 20, "{times}");
}
