//! Round trips, requests and bytes, counted by a store that cannot be fooled, on a small and a large graph.

use std::{collections::BTreeSet, sync::Arc};

use hoplake::{
    Cost, EdgeSlice, Graph, Hop, HopDirection, Key, LoadOptions, OpenSettings, PathQuery, Query, ReadSettings,
    SegmentSettings, StartKey, Strategy, Traversal, TraversalRequest, VertexId, VisitPolicy,
};
use hoplake_testkit::{
    WaveStore,
    generate::{SplitMix64, log_normal},
};
use object_store::{ObjectStore, ObjectStoreExt};

use crate::graphs::{edge_list, graph_at, load_apart};

/// Edges of the large graph.
const LARGE_EDGES: u64 = 10_000_000;
const SMALL_EDGES: u64 = 10_000;
/// Queries start at vertices with this many neighbours.
const DEGREE: usize = 8;
/// The mean out-degree is exp(1.8 + 0.5²/2) less half for rounding down.
const MEAN_DEGREE: f64 = 6.3;

struct Loaded {
    inner: Arc<dyn ObjectStore>,
    edges: u64,
    bytes: u64,
    /// Vertices of [`DEGREE`] out-neighbours.
    starts: Vec<i64>,
}

/// A log-normal graph in blocks of 512 bytes, so that even the small one has many.
fn log_normal_graph(edges: u64) -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    let vertices = (edges as f64 / MEAN_DEGREE) as u64;
    let generated = || log_normal(vertices, 1.8, 0.5, 11);
    let file = edge_list(folder.path(), "graph.el", generated());
    let mut starts = Vec::new();
    let mut last = 0;
    let mut targets = Vec::new();
    for (source, target) in generated() {
        if source != last {
            targets.sort_unstable();
            targets.dedup();
            if targets.len() == DEGREE {
                starts.push(last as i64);
            }
            last = source;
            targets = Vec::new();
        }
        targets.push(target);
    }
    let (inner, report) =
        load_apart(LoadOptions { segments: SegmentSettings::with_list_blocks(512), ..LoadOptions::from_paths([file]) });
    Loaded { inner, edges: report.edges, bytes: report.bytes, starts }
}

/// Adjacent blocks are not coalesced and there are no full reads, so that bytes are those of the
/// blocks needed; and no
/// request waits for another of its wave, as the 129th does by default.
pub(crate) fn unjoined() -> OpenSettings {
    let read = ReadSettings {
        request_bytes_max: 0,
        parallel_requests_max: 100_000,
        full_read_bytes_max: 0,
        ..Default::default()
    };
    OpenSettings { read, ..Default::default() }
}

/// No full reads, so that only reads that a query waits for count.
pub(crate) fn in_parts() -> OpenSettings {
    let read = ReadSettings { full_read_bytes_max: 0, ..Default::default() };
    OpenSettings { read, ..Default::default() }
}

pub(crate) async fn open(inner: &Arc<dyn ObjectStore>, settings: &OpenSettings) -> (WaveStore, Graph) {
    let store = WaveStore::new(inner.clone());
    let graph = Graph::open_with(graph_at(store.clone()), settings).await.unwrap();
    assert_same(&store, graph.open_cost());
    (store, graph)
}

/// The reported cost is what the store has seen, and the query waited only for waves.
pub(crate) fn assert_same(store: &WaveStore, cost: Cost) {
    let seen = (store.waves(), store.waves(), store.requests().total(), store.bytes_read());
    assert_eq!((cost.waves, cost.waits, cost.requests, cost.store_bytes), seen, "{:#?}", store.log());
}

fn out(hops: usize) -> Vec<Hop> {
    vec![Hop::along(HopDirection::Out, "edge"); hops]
}

fn request(start: i64, hops: usize, select: bool) -> TraversalRequest {
    TraversalRequest {
        starts: vec![StartKey::key("vertex", start.to_string())],
        traversal: Traversal { hops: out(hops), ..Default::default() },
        select: select.then(Vec::new),
        limit: None,
    }
}

/// What a query costs on a graph just opened; the second part is the bytes of the pages of its result.
async fn cold_cost(loaded: &Loaded, settings: &OpenSettings, request: &TraversalRequest) -> (Cost, u64) {
    let (store, graph) = open(&loaded.inner, settings).await;
    assert_eq!(graph.open_cost().waves, 2);
    store.reset();
    let mut query = graph.query();
    let answer = query.run(request).await.unwrap();
    assert_same(&store, query.cost());
    assert!(store.log().iter().all(|request| request.range.is_some()), "no object is read in full");
    (query.cost(), answer.rows_cost.cost.store_bytes)
}

/// Besides the indexes of blocks, an opening reads a mebibyte at most, whatever the size of the filters.
async fn opening_is_bounded(loaded: &Loaded) {
    let (_, graph) = open(&loaded.inner, &OpenSettings::default()).await;
    let ends = graph.manifest().segments.iter().map(|segment| segment.end);
    let indexes: u64 = ends.clone().map(|end| end.length - end.index_position).sum();
    let filters: u64 = ends.map(|end| end.index_position - end.filters_position).sum();
    let read = graph.open_cost().store_bytes;
    let besides = read - indexes;
    assert!(besides <= 1 << 20, "{read} bytes, of them {indexes} of indexes, while filters are {filters}");
    let large = loaded.edges > 1_000_000;
    assert_eq!((filters > 1 << 20, besides < filters), (large, large), "{filters} bytes of filters, {besides} read");
}

#[tokio::test(start_paused = true)]
async fn queries_take_their_waves_and_bytes_do_not_grow_with_the_graph() {
    let small = log_normal_graph(SMALL_EDGES);
    let large = log_normal_graph(LARGE_EDGES);
    assert!(small.edges.abs_diff(SMALL_EDGES) < SMALL_EDGES / 10, "{}", small.edges);
    assert!(large.edges.abs_diff(LARGE_EDGES) < LARGE_EDGES / 10, "{}", large.edges);
    for loaded in [&small, &large] {
        opening_is_bounded(loaded).await;
    }
    for hops in 0..=3 {
        for select in [false, true] {
            let mut sums = [(0, 0); 2];
            for (loaded, sum) in [&small, &large].into_iter().zip(&mut sums) {
                for start in loaded.starts.iter().step_by(loaded.starts.len() / 10).take(10) {
                    let (cost, rows_bytes) = cold_cost(loaded, &unjoined(), &request(*start, hops, select)).await;
                    // From an empty process it is two more, those of the open.
                    assert_eq!(cost.waves, 1 + hops as u64 + u64::from(select), "{hops} hops from {start}");
                    // With the properties comes, once, the end of the table, which names all its pages.
                    let bytes = if select { rows_bytes } else { cost.store_bytes };
                    *sum = (sum.0 + cost.requests, sum.1 + bytes);
                }
            }
            let told = format!("{hops} hops, select {select}: requests and bytes {sums:?}");
            // The third hop of the small graph reads most of its blocks, and its result all its few pages.
            let factor = if hops < 3 { 3 } else { 12 };
            let bounded = sums[1].0 <= factor * sums[0].0 && sums[1].1 <= factor * sums[0].1;
            assert!(select || bounded, "{told}");
            // Of hundreds of vertices each, in blocks or pages of their own.
            assert!(sums[1].1 / 10 < large.bytes / [1_000, 500, 50, 10][hops], "{told} of {} bytes", large.bytes);
        }
    }
    let (joined, _) = cold_cost(&large, &in_parts(), &request(large.starts[0], 2, true)).await;
    assert_eq!(joined.waves, 4);
}

/// A small graph with properties on vertices of two labels and on edges.
pub(crate) fn people() -> Arc<dyn ObjectStore> {
    let folder = tempfile::tempdir().unwrap();
    let mut random = SplitMix64::new(3);
    let mut persons = ":ID(P),name,age:int\n".to_owned();
    let mut places = ":ID(C),name\n".to_owned();
    let mut knows = ":START_ID(P),:END_ID(P),:TYPE,since:int,weight:int\n".to_owned();
    let mut lives = ":START_ID(P),:END_ID(C),:TYPE\n".to_owned();
    for person in 0..3_000 {
        persons.push_str(&format!("{person},n{person},{}\n", random.below(90)));
        lives.push_str(&format!("{person},{},livesIn\n", random.below(500)));
        for _ in 0..8 {
            let other = random.below(3_000);
            let since = random.below(100);
            let weight = random.below(100);
            knows.push_str(&format!("{person},{other},knows,{since},{weight}\n"));
        }
    }
    (0..500).for_each(|place| places.push_str(&format!("{place},p{place}\n")));
    for (name, content) in [("P.csv", persons), ("C.csv", places), ("knows.csv", knows), ("lives.csv", lives)] {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    load_apart(LoadOptions {
        segments: SegmentSettings::with_list_blocks(512),
        ..LoadOptions::from_paths([folder.path()])
    })
    .0
}

#[tokio::test(start_paused = true)]
async fn each_step_takes_its_waves() {
    let inner = people();
    let (store, graph) = open(&inner, &in_parts()).await;
    assert_eq!(store.waves(), 2);
    let mut query = graph.query();
    store.reset();
    let mut waves = 0;
    let mut expect = |query: &Query, more: u64, step: &str| {
        waves += more;
        assert_eq!(query.cost().waves, waves, "{step}");
        assert_same(&store, query.cost());
    };
    let keys: [(&str, Key); 3] = [("P", 17.into()), ("C", 3.into()), ("P", 2_900.into())];
    let found = query.vertices(&keys).await.unwrap();
    expect(&query, 1, "look-ups in two labels");
    let starts: Vec<_> = found.into_iter().flatten().collect();
    let edges = query.neighbors(&starts, &"both".parse().unwrap()).await.unwrap();
    expect(&query, 1, "neighbours in both directions along all types");
    let near: Vec<_> = edges.iter().map(|edge| edge.to).collect();
    query.degrees(&near, &"out:knows".parse().unwrap()).await.unwrap();
    expect(&query, 1, "degrees");
    query.edge_properties(&edges, &["since".into()]).await.unwrap();
    expect(&query, 2, "properties of edges, at the first touch");
    query.edge_properties(&edges, &["weight".into()]).await.unwrap();
    expect(&query, 1, "other properties of edges");
    let all = near.iter().copied().collect();
    query.properties(&all, &["name".into()]).await.unwrap();
    expect(&query, 2, "properties of vertices, at the first touch");
    query.keys(&all).await.unwrap();
    expect(&query, 0, "keys, which arrived with the properties");
    query.properties(&all, &["age".into()]).await.unwrap();
    expect(&query, 1, "other properties of vertices");
}

#[tokio::test(start_paused = true)]
async fn a_condition_takes_one_wave_more_and_two_conditions_no_more_than_that() {
    let inner = people();
    for (hop, waves) in [
        ("out:knows", 1),
        ("out:knows[since>50]", 2),
        ("out:knows[since>20][weight>20]", 2),
        ("both:knows[since>20][age>20]", 2),
        ("out:knows[since>20][since<80]", 2),
        ("both[name!=n5]", 2),
    ] {
        let (_, graph) = open(&inner, &in_parts()).await;
        let start = graph.query().vertex("P", 5).await.unwrap().unwrap();
        for strategy in [Strategy::Bfs, Strategy::BfsPipelined, Strategy::Dfs] {
            let (store, graph) = open(&inner, &in_parts()).await;
            store.reset();
            let mut query = graph.query();
            let hops = vec![hop.parse().unwrap()];
            query.traverse(Traversal { starts: vec![start], hops, strategy, ..Default::default() }).await.unwrap();
            assert_eq!(query.cost().waves, waves, "{hop} by {strategy:?}");
            assert_same(&store, query.cost());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn strategies_paths_and_neighbourhoods_take_one_wave_a_hop() {
    let inner = people();
    let hops = vec![Hop::along(HopDirection::Both, "knows"); 2];
    for (strategy, visit, parallelism) in [
        (Strategy::Bfs, VisitPolicy::PerDepth, 1),
        (Strategy::Bfs, VisitPolicy::Global, 3),
        (Strategy::BfsPipelined, VisitPolicy::PerDepth, 2),
        (Strategy::BfsPipelined, VisitPolicy::Global, 2),
    ] {
        let (store, graph) = open(&inner, &unjoined()).await;
        store.reset();
        let mut query = graph.query();
        let start = query.vertex("P", 5).await.unwrap().unwrap();
        let traversal =
            Traversal { starts: vec![start], hops: hops.clone(), strategy, visit, parallelism, ..Default::default() };
        query.traverse(traversal.clone()).await.unwrap();
        assert_eq!(query.cost().waves, 3, "{strategy:?} {visit:?}");
        assert_same(&store, query.cost());
        let mut paths = query.paths(traversal.clone(), None).await.unwrap();
        assert!(!query.next_walks(&mut paths, usize::MAX).await.unwrap().is_empty());
        query.count_walks(traversal).await.unwrap();
        query.neighborhood(&[start], &hops[0], 2).await.unwrap();
        assert_eq!(query.cost().waves, 3, "what was read is in memory");
        assert_same(&store, query.cost());
    }
    let (store, graph) = open(&inner, &unjoined()).await;
    store.reset();
    let mut query = graph.query();
    let ends = query.vertices(&[("P", 5.into()), ("P", 2_000.into())]).await.unwrap();
    let from = ends[0].unwrap();
    let to = ends[1].unwrap();
    let hop = hops[0].clone();
    let asked = PathQuery { from, to, hop, depth_max: 9, edges: false, limits: Default::default() };
    let path = query.shortest_path(asked).await.unwrap().into_path().unwrap();
    assert!(store.waves() <= path.vertices.len() as u64, "a key look-up, and a wave for each edge at most");
    let cost = query.cost();
    assert_eq!((cost.requests, cost.store_bytes), (store.requests().total(), store.bytes_read()));
    assert!(cost.waves >= store.waves());
}

#[tokio::test(start_paused = true)]
async fn indexes_that_did_not_come_with_the_open_take_one_wave_at_first_touch() {
    let inner = people();
    let settings = OpenSettings { index_bytes_max: 0, ..unjoined() };
    let (store, graph) = open(&inner, &settings).await;
    assert_eq!(store.waves(), 2);
    assert!(store.bytes_read() < 4 << 10, "{} bytes", store.bytes_read());
    for (start, first) in [(5, true), (2_000, false)] {
        store.reset();
        let mut query = graph.query();
        let keys: [(&str, Key); 2] = [("P", start.into()), ("C", (start / 10).into())];
        let found = query.vertices(&keys).await.unwrap();
        assert_eq!(query.cost().waves, 1 + u64::from(first), "the keys' segment");
        assert_same(&store, query.cost());
        let starts: Vec<_> = found.into_iter().flatten().collect();
        query.neighbors(&starts, &"both".parse().unwrap()).await.unwrap();
        assert_eq!(query.cost().waves, 2 + 2 * u64::from(first), "both segments of adjacency, together");
        assert_same(&store, query.cost());
    }
}

#[tokio::test(start_paused = true)]
async fn filters_that_did_not_come_are_read_when_they_pay() {
    let inner = people();
    let settings = |full_read_bytes_max| {
        let mut settings = OpenSettings { filter_bytes_max: 0, ..unjoined() };
        settings.read.full_read_bytes_max = full_read_bytes_max;
        settings
    };
    let (with, graph) = open(&inner, &unjoined()).await;
    let filters = |graph: &Graph| {
        let ends = graph.manifest().segments.iter().map(|segment| segment.end);
        ends.map(|end| end.index_position - end.filters_position).sum::<u64>()
    };
    let all = filters(&graph);
    let (store, graph) = open(&inner, &settings(0)).await;
    assert_eq!(with.bytes_read() - store.bytes_read(), all);
    // A key takes one wave, and its block alone, whether it is there or not.
    for (key, found) in [(17, true), (1_000_000, false)] {
        store.reset();
        let mut query = graph.query();
        assert_eq!(query.vertex("P", key).await.unwrap().is_some(), found);
        assert_eq!((query.cost().waves, query.cost().requests), (1, 1));
        assert!(query.cost().store_bytes < all, "{} of {all} bytes", query.cost().store_bytes);
        assert_same(&store, query.cost());
    }
    // Many keys at once: first the filter, then the blocks of those that may be there, which are none.
    store.reset();
    let mut query = graph.query();
    let absent: Vec<(&str, Key)> = (0..3_000).map(|key| ("P", (3_000 + key * 7).into())).collect();
    assert!(query.vertices(&absent).await.unwrap().iter().all(Option::is_none));
    assert!(query.cost().requests <= 2, "{:?}", query.cost());
    assert_same(&store, query.cost());
    // One after the other: after some wasted reads of blocks, the filter is read in the background.
    let (store, graph) = open(&inner, &settings(1)).await;
    let mut asked = 0;
    for key in 0..40 {
        let mut query = graph.query();
        assert_eq!(query.vertex("C", 10_000 + key).await.unwrap(), None);
        asked += query.cost().memory.blocks + query.cost().requests;
        graph.settled().await;
    }
    assert!((1..10).contains(&asked), "{asked} of 40 absent keys asked for a block: {:#?}", store.log());
}

#[tokio::test(start_paused = true)]
async fn what_was_read_is_not_read_again() {
    let inner = people();
    let (store, graph) = open(&inner, &in_parts()).await;
    let request = TraversalRequest {
        starts: vec!["P:5".parse().unwrap()],
        traversal: Traversal { hops: vec!["out".parse().unwrap(); 2], ..Default::default() },
        select: Some(vec!["name".into(), "age".into()]),
        limit: None,
    };
    store.reset();
    let mut query = graph.query();
    let first = query.run(&request).await.unwrap();
    assert_eq!((query.cost().waves, first.rows.len()), (4, 2), "two labels take no more waves than one");
    assert_same(&store, query.cost());
    store.reset();
    let mut query = graph.query();
    let second = query.run(&request).await.unwrap();
    assert_eq!(second.reached.depths, first.reached.depths);
    assert_eq!(second.rows, *first.rows);
    assert_eq!((query.cost().waves, query.cost().requests, store.requests().total()), (0, 0, 0));
    assert!(query.cost().memory.blocks > 3);
}

#[tokio::test(start_paused = true)]
async fn a_lost_or_damaged_hint_takes_two_waves_more_and_a_stale_one_one() {
    let inner = people();
    let hint = "g/hint".into();
    let whole = inner.get(&hint).await.unwrap().bytes().await.unwrap();
    inner.delete(&hint).await.unwrap();
    assert_eq!(open(&inner, &in_parts()).await.0.waves(), 4);
    inner.put(&hint, whole.slice(..whole.len() / 2).into()).await.unwrap();
    assert_eq!(open(&inner, &in_parts()).await.0.waves(), 4);
    inner.put(&hint, whole.into()).await.unwrap();
    let version = OpenSettings { version: Some(1), ..Default::default() };
    assert_eq!(open(&inner, &version).await.0.waves(), 2);
    // Another version, whose hint did not come through.
    let store = graph_at(inner.clone());
    let manifest = store.get("manifest/00000000000000000001.hlm").await.unwrap().unwrap();
    let mut manifest = hoplake::Manifest::decode(&manifest).unwrap();
    manifest.version = 2;
    store.create("manifest/00000000000000000002.hlm", manifest.encode().into()).await.unwrap();
    let (wave_store, graph) = open(&inner, &in_parts()).await;
    assert_eq!((wave_store.waves(), graph.version()), (3, 2));
}

/// Vertices 0 and 1 are hubs, 2 to 50,001 have two neighbours each, and half of all edges have a second of the same ends.
fn hubs() -> Arc<dyn ObjectStore> {
    let folder = tempfile::tempdir().unwrap();
    let mut random = SplitMix64::new(5);
    let mut edges = Vec::new();
    for (source, degree) in [(0, 100_000), (1, 50_000)].into_iter().chain((2..50_002).map(|source| (source, 2))) {
        for _ in 0..degree {
            let edge = (source, random.below(1_000_000));
            edges.extend(vec![edge; 1 + random.below(2) as usize]);
        }
    }
    let file = edge_list(folder.path(), "hubs.el", edges.into_iter());
    load_apart(LoadOptions { segments: SegmentSettings::with_list_blocks(512), ..LoadOptions::from_paths([file]) }).0
}

#[tokio::test(start_paused = true)]
async fn the_first_edges_of_a_hub_do_not_read_the_rest() {
    let inner = hubs();
    let (_, graph) = open(&inner, &in_parts()).await;
    let mut query = graph.query();
    let keys: Vec<_> = (0..40_000).map(|key| ("vertex", Key::Int64(key))).collect();
    let ids: Vec<_> = query.vertices(&keys).await.unwrap().into_iter().flatten().collect();
    let hop = Hop::along(HopDirection::Both, "edge");
    let all = query.neighbors(&ids, &hop).await.unwrap();
    let hub = ids[0];
    let of_hub = all.iter().filter(|edge| edge.from == hub).count();
    assert!(of_hub > 140_000 && all.len() > of_hub + 100_000, "{of_hub} of {}", all.len());
    for limit in [0, 1, 10, of_hub, of_hub + 1, of_hub + 100_000, all.len() - 1, all.len(), all.len() + 1] {
        let cost = first_edges(&inner, &ids, limit, all.slice(0..limit.min(all.len()))).await;
        if limit <= 10 {
            assert!(cost.store_bytes < 40_000 && cost.waves <= 1, "{limit}: {cost:?}");
        }
    }
    let mut waves = BTreeSet::new();
    for offset in 2..12 {
        // Few of the edges in a block are of these, and a block of edges in has those of more vertices than one of edges out: where
        // a wave ends, edges were read that come behind others which were not.
        let apart: Vec<_> = ids[offset..].iter().copied().step_by(97).collect();
        let all = query.neighbors(&apart, &hop).await.unwrap();
        for limit in (0..300).chain([all.len(), all.len() + 1]) {
            waves.insert(first_edges(&inner, &apart, limit, all.slice(0..limit.min(all.len()))).await.waves);
        }
    }
    assert!(waves.last() > Some(&2), "one wave reads what probably suffices, and others more: {waves:?}");
}

/// Reads the first edges of vertices, which are known, and says what it cost.
async fn first_edges(inner: &Arc<dyn ObjectStore>, ids: &[VertexId], limit: usize, expected: EdgeSlice<'_>) -> Cost {
    let (store, graph) = open(inner, &in_parts()).await;
    store.reset();
    let mut query = graph.query();
    let first = query.first_neighbors(ids, &Hop::along(HopDirection::Both, "edge"), limit).await.unwrap();
    assert!(first.iter().eq(expected), "the first {limit}");
    assert_same(&store, query.cost());
    query.cost()
}
