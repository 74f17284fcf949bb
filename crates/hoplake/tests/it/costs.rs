//! What the cost meter counts beyond the waves of a query: results described in one wave, waits, reads in the
//! background, and hedges of a process that has just begun.

use std::{sync::Arc, time::Duration};

use hoplake::{
    Frontier, Graph, OpenSettings, PathQuery, Query, ReadPool, ReadSettings, Reader, StartKey, Store, StoreProfile,
    Strategy, Traversal, VertexId,
};
use hoplake_storage::{BlockRequest, Check, Latency, QueryContext};
use hoplake_testkit::{SimStore, WaveStore};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
use tokio::time::Instant;

use crate::{
    graphs::graph_at,
    waves::{assert_same, in_parts, open, people, unjoined},
};

fn start() -> Vec<StartKey> {
    vec!["P:5".parse().unwrap()]
}

/// A query of a graph just opened, and its store, which counts from now on.
async fn cold(inner: &Arc<dyn ObjectStore>, settings: &OpenSettings) -> (WaveStore, Query) {
    let (store, graph) = open(inner, settings).await;
    store.reset();
    (store, graph.query())
}

#[tokio::test(start_paused = true)]
async fn what_was_expected_takes_no_wave_of_its_own() {
    let inner = people();
    let names = ["name".to_owned()];
    // A vertex with its properties: with the two waves of the open that makes four.
    let (store, mut query) = cold(&inner, &in_parts()).await;
    let labels = query.label_ids(["P"]);
    query.expect_rows(labels.clone());
    let found = query.named(&start()).await.unwrap();
    query.properties(&found.iter().copied().collect(), &names).await.unwrap();
    assert_eq!(query.cost().waves, 2);
    assert_same(&store, query.cost());
    // The same of a vertex that is known by its number, for which no key is looked up.
    let (store, mut query) = cold(&inner, &in_parts()).await;
    query.expect_rows_at_end(&labels, &["out:knows".parse().unwrap()]);
    let edges = query.neighbors(&found, &"out:knows".parse().unwrap()).await.unwrap();
    query.keys_of(&edges.iter().map(|edge| edge.to).collect::<Vec<_>>()).await.unwrap();
    assert_eq!(query.cost().waves, 2);
    assert_same(&store, query.cost());
    // Its edges, with properties of both edges and ends of two labels: five.
    let (store, mut query) = cold(&inner, &in_parts()).await;
    let hop = "both".parse().unwrap();
    query.expect_rows_at_end(&labels, std::slice::from_ref(&hop));
    query.expect_edge_rows(&labels, &hop);
    let found = query.named(&start()).await.unwrap();
    let edges = query.neighbors(&found, &hop).await.unwrap();
    let described = query.describe(&edges, &["since".to_owned()], &names).await.unwrap();
    assert_eq!(query.cost().waves, 3);
    assert_same(&store, query.cost());
    assert_eq!((described.keys.len(), described.vertices.len()), (edges.len(), 2));
    assert!(described.edges.iter().map(|rows| rows.positions.len()).sum::<usize>() > 8);
}

#[tokio::test(start_paused = true)]
async fn sets_of_several_depths_are_described_in_one_wave() {
    let inner = people();
    let (store, mut query) = cold(&inner, &in_parts()).await;
    let hops = vec!["both:knows".parse().unwrap(); 2];
    let labels = query.label_ids(["P"]);
    query.expect_rows_on_the_way(&labels, &hops);
    let starts = query.named(&start()).await.unwrap();
    let reached = query.traverse(Traversal { starts, hops, ..Traversal::default() }).await.unwrap();
    let rows = query.properties_of_each(&reached.depths, &["age".to_owned()]).await.unwrap();
    // A look-up, two hops, the rows of all depths.
    assert_eq!(query.cost().waves, 4);
    assert_same(&store, query.cost());
    let (_, mut each) = cold(&inner, &in_parts()).await;
    for (set, rows) in reached.depths.iter().zip(rows) {
        assert_eq!(each.properties(set, &["age".to_owned()]).await.unwrap(), rows);
    }
    assert_eq!(query.properties_of_each(&[Frontier::default()], &[]).await.unwrap(), [[]]);
}

#[tokio::test(start_paused = true)]
async fn a_path_and_its_keys_take_a_wave_an_edge_and_two() {
    let inner = people();
    let (store, mut query) = cold(&inner, &in_parts()).await;
    let hop: hoplake::Hop = "both:knows".parse().unwrap();
    let labels = query.label_ids(["P"]);
    query.expect_rows_on_the_way(&labels, &[hop.clone(), hop.clone()]);
    let ends = query.named(&[start()[0].clone(), "P:2000".parse().unwrap()]).await.unwrap();
    let from = ends[0];
    let to = ends[1];
    let asked = PathQuery { from, to, hop, depth_max: 9, edges: false, limits: Default::default() };
    let path = query.shortest_path(asked).await.unwrap().into_path().unwrap();
    query.describe_walks(std::slice::from_ref(&path), &[]).await.unwrap();
    let edges = path.vertices.len() as u64 - 1;
    // A step of the search that finds all it needs in memory takes no wave.
    assert!(query.cost().waves <= 1 + edges + 1 && query.cost().waves > 2, "{} edges, {:?}", edges, query.cost());
    assert_same(&store, query.cost());
}

#[tokio::test(start_paused = true)]
async fn waits_are_what_was_waited_for() {
    let inner = people();
    let hops: Vec<hoplake::Hop> = vec!["out:knows".parse().unwrap(); 3];
    let mut seen = Vec::new();
    for (strategy, parallelism) in
        [(Strategy::Bfs, 2), (Strategy::BfsPipelined, 1), (Strategy::Dfs, 1), (Strategy::Dfs, 4)]
    {
        let (store, mut query) = cold(&inner, &unjoined()).await;
        let starts = query.named(&start()).await.unwrap();
        let traversal = Traversal { starts, hops: hops.clone(), strategy, parallelism, ..Traversal::default() };
        query.traverse(traversal).await.unwrap();
        let cost = query.cost();
        assert_eq!((cost.waves, cost.waits), (4, store.waves()), "{strategy:?} by {parallelism}");
        seen.push(cost.waits);
    }
    assert!(seen[..2] == [4, 4] && seen[2] > 40 && seen[3] < seen[2] / 2 && seen[3] > 10, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_that_cannot_all_go_at_once_are_waited_for() {
    let inner = people();
    for (parallel_requests_max, waits) in [(1_000, 1), (50, 2), (25, 3)] {
        let mut settings = unjoined();
        settings.read.parallel_requests_max = parallel_requests_max;
        let (store, mut query) = cold(&inner, &settings).await;
        let label = query.label_ids(["P"])[0];
        let everyone: Vec<_> = (0..3_000).filter_map(|ordinal| VertexId::new(label, ordinal)).collect();
        query.degrees(&everyone, &"out:knows".parse().unwrap()).await.unwrap();
        let cost = query.cost();
        assert!((60..=75).contains(&cost.requests), "{}", cost.requests);
        assert_eq!((cost.waves, cost.waits, store.waves()), (1, waits, waits), "{} requests", cost.requests);
    }
}

#[tokio::test(start_paused = true)]
async fn reads_in_the_background_are_on_the_meter_of_their_query() {
    let inner = people();
    let run = async |limits| {
        let store = WaveStore::new(inner.clone());
        let pool = ReadPool::new(ReadSettings::default()).unwrap();
        let reader = Reader::new(graph_at(store.clone()), pool.clone());
        let graph = Graph::open_through(reader, &OpenSettings::default()).await.unwrap();
        store.reset();
        let mut query = graph.query();
        let starts = query.named(&start()).await.unwrap();
        let hops = vec!["out:knows".parse().unwrap()];
        query.traverse(Traversal { starts, hops, limits, ..Traversal::default() }).await.unwrap();
        let told = query.cost();
        graph.settled().await;
        assert_eq!(query.cost().background, told.background, "all of it was planned by the answer");
        let seen = (store.requests().total(), store.bytes_read());
        let sum = (told.requests + told.background.requests, told.store_bytes + told.background.bytes);
        assert_eq!(sum, seen, "{told:?}: {:#?}", store.log());
        assert_eq!(pool.background(), told.background);
        (told, graph)
    };
    let (told, graph) = run(Default::default()).await;
    assert!(told.background.requests > 0 && told.background.bytes > told.store_bytes, "{told:?}");
    let prices = &StoreProfile::s3_express().prices;
    let priced = told.foreground().usd(prices) + told.background.usd(prices);
    assert!(told.background.usd(prices) > 0.0 && (told.usd(prices) - priced).abs() < 1e-15);
    // The next query led to nothing and waits for nothing.
    let mut query = graph.query();
    query.vertex("P", 2_000).await.unwrap();
    assert_eq!((query.cost().background, query.cost().requests), (Default::default(), 0));
    // What is read for later does not take what a limit leaves for the query itself.
    let limits = hoplake::Limits { requests_max: Some(100), ..Default::default() };
    let (limited, graph) = run(limits).await;
    let looked_up = limited.background;
    let mut query = graph.query();
    let starts = query.named(&["P:1500".parse().unwrap()]).await.unwrap();
    let hops = vec!["out:knows".parse().unwrap()];
    query.traverse(Traversal { starts, hops, ..Traversal::default() }).await.unwrap();
    assert!(looked_up.bytes < told.background.bytes, "{looked_up:?} of {:?}", told.background);
    assert!(query.cost().background.bytes > 0, "queries without limits still do: {:?}", query.cost());
}

/// A store whose first bytes all take so long, whatever its profile.
fn steady(inner: impl ObjectStore, first_byte_ms: f64) -> Store {
    let mut slow = StoreProfile::clone(&StoreProfile::s3_standard());
    slow.get = Latency { floor_ms: first_byte_ms, scale_ms: 0.0, straggler_share: 0.0, ..slow.get };
    graph_at(SimStore::new(inner, slow, 1)).with_profile(StoreProfile::s3_standard())
}

#[tokio::test(start_paused = true)]
async fn a_new_process_does_not_ask_a_steadily_slow_store_twice() {
    let inner = people();
    for first_byte_ms in [100.0, 300.0] {
        let graph = Graph::open_with(steady(inner.clone(), first_byte_ms), &unjoined()).await.unwrap();
        let mut query = graph.query();
        let starts = query.named(&start()).await.unwrap();
        let hops = vec!["out".parse().unwrap(); 2];
        query.traverse(Traversal { starts, hops, ..Traversal::default() }).await.unwrap();
        let cost = graph.open_cost() + query.cost();
        assert!(cost.requests > 20 && cost.hedges * 20 <= cost.requests, "{first_byte_ms} ms: {cost:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wave_of_64_ranges_is_hedged_within_its_budget() {
    const RANGE_BYTES: u64 = 16 << 10;
    let objects = InMemory::new();
    objects.put(&Path::from("g/ranges"), vec![7; 64 * RANGE_BYTES as usize].into()).await.unwrap();
    let store = graph_at(SimStore::new(objects, StoreProfile::s3_standard(), 5));
    let mut read = ReadSettings { request_bytes_max: 0, ..ReadSettings::default() };
    read.retry.seed = Some(1);
    let reader = Reader::new(store.with_profile(StoreProfile::s3_standard()), ReadPool::new(read).unwrap());
    let object = reader.object("ranges");
    let range = |number| number * RANGE_BYTES..(number + 1) * RANGE_BYTES;
    let requests: Vec<_> =
        (0..64).map(|number| BlockRequest { object: &object, range: range(number), check: Check::Later }).collect();
    let mut took = Vec::new();
    let mut sent = 0;
    for _ in 0..600 {
        let context = QueryContext::new();
        let begun = Instant::now();
        reader.read(&requests, &mut context.branch()).await.unwrap();
        took.push(begun.elapsed());
        sent += context.cost().requests;
    }
    took.sort();
    let p99 = took[took.len() * 99 / 100];
    let extra = sent as f64 / (64 * took.len()) as f64 - 1.0;
    assert!(p99 <= Duration::from_millis(125) && extra <= 0.025, "p99 {p99:?}, {extra} more requests");
}
