//! Shortest paths by weight: against Dijkstra's algorithm in memory, against networkx, and what they cost.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use hoplake::{
    Direction, ErrorKind, Graph, Hop, HopDirection, Limits, LoadOptions, Query, SegmentSettings, StartKey, VertexId,
    WeightedPath, WeightedPathQuery,
};
use hoplake_testkit::generate::SplitMix64;

use crate::{
    graphs::load_apart,
    waves::{assert_same, open, unjoined},
};

/// Source, target, length, and whether the road is open.
type Road = (u64, u64, f64, bool);

/// Whether a hop takes a road to this vertex.
type Takes = fn(&Road, u64) -> bool;

fn write_towns(folder: &std::path::Path, vertices: u64) {
    let mut towns = String::from("~id,~label,size:Int");
    (0..vertices).for_each(|key| write!(towns, "\n{key},Town,{}", key % 10).unwrap());
    std::fs::write(folder.join("towns.csv"), towns).unwrap();
}

async fn load(name: &str, vertices: u64, header: &str, roads: &[String]) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    write_towns(folder.path(), vertices);
    let mut text = format!("~from,~to,~label,{header}");
    roads.iter().for_each(|road| write!(text, "\n{road}").unwrap());
    std::fs::write(folder.path().join("roads.csv"), text).unwrap();
    let url = format!("memory://weighted-paths/{name}");
    hoplake::load(&url, LoadOptions::from_paths([folder.path()])).await.unwrap();
    Graph::open(&url).await.unwrap()
}

async fn random_graph(name: &str, roads: &[Road], vertices: u64) -> Graph {
    let row = |(from, to, km, open): &Road| format!("{from},{to},road,{km},{}", u8::from(*open));
    load(name, vertices, "km:Double,open:Int", &roads.iter().map(row).collect::<Vec<_>>()).await
}

async fn vertices(query: &mut Query, keys: &[u64]) -> Vec<VertexId> {
    let names: Vec<StartKey> = keys.iter().map(|key| format!("Town:{key}").parse().unwrap()).collect();
    query.named(&names).await.unwrap().to_vec()
}

fn asked(from: VertexId, to: VertexId, hop: &str) -> WeightedPathQuery {
    let hop = hop.parse().unwrap();
    let weight = "km".into();
    WeightedPathQuery { from, to, hop, weight, edges: true, length_max: None, limits: Limits::default() }
}

/// The edges that a hop may take, as it follows them.
fn followed(roads: &[Road], direction: HopDirection, takes: Takes) -> Vec<(u64, u64, f64)> {
    let mut edges = Vec::new();
    for road in roads {
        let (from, to, km, _) = *road;
        if direction != HopDirection::In && takes(road, to) {
            edges.push((from, to, km));
        }
        if direction != HopDirection::Out && takes(road, from) {
            edges.push((to, from, km));
        }
    }
    edges
}

/// Dijkstra's algorithm in its plainest form: the nearest vertex next, from all that are known.
fn lengths(edges: &[(u64, u64, f64)], start: u64) -> BTreeMap<u64, f64> {
    let mut lengths = BTreeMap::from([(start, 0.0)]);
    let mut done = BTreeSet::new();
    let next = |lengths: &BTreeMap<u64, f64>, done: &BTreeSet<u64>| {
        let open = lengths.iter().filter(|(vertex, _)| !done.contains(*vertex));
        open.min_by(|a, b| a.1.total_cmp(b.1)).map(|(vertex, length)| (*vertex, *length))
    };
    while let Some((vertex, length)) = next(&lengths, &done) {
        done.insert(vertex);
        for (_, to, km) in edges.iter().filter(|(from, ..)| *from == vertex) {
            let known = lengths.entry(*to).or_insert(f64::INFINITY);
            *known = known.min(length + km);
        }
    }
    lengths.retain(|_, length| length.is_finite());
    lengths
}

/// Whether the path is one from end to end along such edges, whose lengths add up to its length.
async fn check(query: &mut Query, path: &WeightedPath, ends: [u64; 2], hop: &Hop, edges: &[(u64, u64, f64)]) {
    let keys = query.keys_of(&path.walk.vertices).await.unwrap();
    let keys: Vec<u64> = keys.iter().map(|key| key.to_string().parse().unwrap()).collect();
    assert_eq!((keys[0], keys[keys.len() - 1]), (ends[0], ends[1]));
    assert_eq!(path.walk.edges.len() + 1, keys.len());
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "no vertex twice: {keys:?}");
    let mut length = 0.0;
    for (at, pair) in keys.windows(2).enumerate() {
        let parallel = edges.iter().filter(|(from, to, _)| [*from, *to] == pair).map(|(.., km)| *km);
        length += parallel.min_by(f64::total_cmp).unwrap_or_else(|| panic!("{pair:?} is not an edge of {hop}"));
        let direction = path.walk.direction(at).unwrap();
        let allowed = match hop.direction {
            HopDirection::Out => &[Direction::Out][..],
            HopDirection::In => &[Direction::In],
            HopDirection::Both => &Direction::ALL,
        };
        assert!(allowed.contains(&direction), "{direction} of {hop}");
    }
    assert!((path.length - length).abs() < 1e-9, "{} and not {length}", path.length);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_is_as_short_as_dijkstras() {
    let any: Takes = |_, _| true;
    let hops: [(&str, HopDirection, Takes); 5] = [
        ("out:road", HopDirection::Out, any),
        ("in:road", HopDirection::In, any),
        ("both:road", HopDirection::Both, any),
        ("out:road[open = 1]", HopDirection::Out, |road, _| road.3),
        // On the vertex that a path reaches, from whichever end the edge is found.
        ("both:road[vertex.size < 7]", HopDirection::Both, |_, reached| reached % 10 < 7),
    ];
    for seed in 0..4 {
        let mut random = SplitMix64::new(seed);
        // Sparse, so that paths are long and some are missing; with loops, parallel edges and edges of no length.
        let (count, edges) = [(400, 700), (60, 300), (300, 300), (2, 6)][seed as usize];
        let roads: Vec<Road> = (0..edges)
            .map(|_| {
                let [from, to] = std::array::from_fn(|_| random.below(count));
                // Whole numbers and fractions, of which many paths have the same sum.
                let km = random.below(9) as f64 / if seed == 1 { 10.0 } else { 1.0 };
                (from, to, km, random.below(4) > 0)
            })
            .collect();
        let graph = random_graph(&format!("random-{seed}"), &roads, count).await;
        for (text, direction, takes) in hops {
            let hop: Hop = text.parse().unwrap();
            let edges = followed(&roads, direction, takes);
            for _ in 0..6 {
                let ends: [u64; 2] = std::array::from_fn(|_| random.below(count));
                let expected = lengths(&edges, ends[0]).get(&ends[1]).copied();
                let mut query = graph.query();
                let found = vertices(&mut query, &ends).await;
                let path = query.weighted_path(asked(found[0], found[1], text)).await.unwrap();
                let length = path.as_ref().map(|path| path.length);
                let is_same = match (length, expected) {
                    (Some(length), Some(expected)) => (length - expected).abs() < 1e-9,
                    (length, expected) => length == expected,
                };
                assert!(is_same, "{ends:?} along {text}, seed {seed}: {length:?} and not {expected:?}");
                if let Some(path) = &path {
                    check(&mut query, path, ends, &hop, &edges).await;
                }
                // Of several it is always the same.
                let again = graph.query().weighted_path(asked(found[0], found[1], text)).await.unwrap();
                assert_eq!(again, path);
            }
        }
    }
}

/// A grid whose lengths follow from its coordinates, and what `networkx.dijkstra_path_length` says of it.
#[tokio::test(flavor = "multi_thread")]
async fn lengths_are_those_of_networkx() {
    let golden = include_str!("golden/weighted_paths.csv");
    let mut lines = golden.lines().filter(|line| !line.starts_with('#'));
    let mut roads = Vec::new();
    let side = 12;
    for (x, y) in (0..side).flat_map(|x| (0..side).map(move |y| (x, y))) {
        for (dx, dy) in [(1, 0), (0, 1), (1, 1)] {
            if x + dx < side && y + dy < side {
                let km = 1 + (x * 7 + y * 13 + dx * 5 + dy * 3) % 11;
                roads.push(format!("{},{},road,{km}", x * side + y, (x + dx) * side + y + dy));
            }
        }
    }
    let graph = load("networkx", side * side, "km:Int", &roads).await;
    let mut checked = 0;
    assert_eq!(lines.next(), Some("direction,from,to,length"));
    for line in lines {
        let [direction, from, to, length] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let mut query = graph.query();
        let ends = vertices(&mut query, &[from.parse().unwrap(), to.parse().unwrap()]).await;
        let path = query.weighted_path(asked(ends[0], ends[1], direction)).await.unwrap();
        let expected: Option<f64> = (!length.is_empty()).then(|| length.parse().unwrap());
        assert_eq!(path.map(|path| path.length), expected, "{line}");
        checked += 1;
    }
    assert!(checked > 30, "{checked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_weight_is_an_error_that_names_the_edge() {
    let row = |text: &str| text.to_owned();
    let fails = async |name: &str, header: &str, roads: Vec<String>, hop: &str| {
        let graph = load(name, 4, header, &roads).await;
        let mut query = graph.query();
        let ends = vertices(&mut query, &[0, 3]).await;
        query.weighted_path(asked(ends[0], ends[1], hop)).await.unwrap_err()
    };
    let chain = |km: &str| vec![row("0,1,road,1"), format!("1,2,road,{km}"), row("2,3,road,1")];
    for (name, kind, km, why) in [
        ("negative", "Double", "-2", "the edge road from Town:1 to Town:2 has km = -2, but a weight must be 0 or more"),
        ("integer", "Int", "-2", "the edge road from Town:1 to Town:2 has km = -2"),
        ("nan", "Double", "NaN", "the edge road from Town:1 to Town:2 has km = NaN"),
        ("missing", "Double", "", "the edge road from Town:1 to Town:2 has no value for the weight property \"km\""),
        ("inexact", "Int", "9007199254740993", "a float64 cannot hold it exactly"),
    ] {
        for hop in ["out:road", "both"] {
            let error = fails(&format!("{name}-{hop}"), &format!("km:{kind}"), chain(km), hop).await;
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(why), "{error}");
        }
    }
    let error = fails("text", "km:String", chain("far"), "out").await;
    assert!(error.to_string().contains("\"km\" of edges road is of type string, not a number"), "{error}");
    let error = fails("other", "miles:Int", chain("1"), "out").await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("edge type road has no property \"km\""), "{error}");
    let error = fails("hop", "km:Int", chain("1"), "out:rail").await;
    assert!(error.to_string().contains("no edge label \"rail\""), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn siblings_of_a_path() {
    let roads = ["0,1,road,5", "0,1,road,2", "1,1,road,0", "1,2,road,0", "2,1,road,0", "2,3,road,inf", "3,4,road,1"];
    let graph = load("siblings", 6, "km:Double", &roads.map(String::from)).await;
    let mut query = graph.query();
    let towns = vertices(&mut query, &[0, 1, 2, 3, 4, 5]).await;
    let mut length = async |from: usize, to: usize, hop: &str| {
        let path = query.weighted_path(asked(towns[from], towns[to], hop)).await.unwrap();
        path.map(|path| (path.length, path.walk.edges.len()))
    };
    let (itself, edges) = length(0, 0, "out").await.unwrap();
    assert!(itself == 0.0 && itself.is_sign_positive() && edges == 0, "from a vertex to itself: {itself}, {edges}");
    assert_eq!(length(1, 1, "out").await, Some((0.0, 0)), "not along its loop");
    assert_eq!(length(0, 1, "out").await, Some((2.0, 1)), "the shorter of parallel edges");
    assert_eq!(length(0, 2, "out").await, Some((2.0, 2)), "along edges of no length, and circles of them");
    assert_eq!(length(2, 0, "out").await, None, "against the direction");
    assert_eq!(length(2, 0, "in").await, Some((2.0, 2)));
    assert_eq!(length(0, 3, "out").await, None, "an edge of infinite length is on no path");
    assert_eq!(length(4, 3, "both").await, Some((1.0, 1)));
    assert_eq!(length(0, 5, "both").await, None, "a vertex without edges");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_ends_at_its_limits() {
    let mut random = SplitMix64::new(5);
    let roads: Vec<Road> =
        (0..3000).map(|_| (random.below(900), random.below(900), 1.0 + random.below(90) as f64, true)).collect();
    let graph = random_graph("limits", &roads, 1000).await;
    let found = vertices(&mut graph.query(), &[1, 2, 950]).await;
    let from = found[0];
    let to = found[1];
    let alone = found[2];
    let limited = async |to: VertexId, limits: Limits| {
        let mut query = graph.query();
        let path = WeightedPathQuery { limits, ..asked(from, to, "both:road") };
        let found = query.weighted_path(path).await;
        (found, query.memory().used())
    };
    // An end without edges ends the search at once, however much the other reaches.
    let few = Limits { vertices_max: Some(100), ..Limits::default() };
    assert_eq!(limited(alone, few).await.0.unwrap(), None);
    let (path, used) = limited(to, Limits::default()).await;
    assert!(path.unwrap().is_some());
    assert_eq!(used, 0, "a search that has ended holds nothing");
    for limits in [
        Limits { vertices_max: Some(3), ..Limits::default() },
        Limits { memory_bytes_max: Some(2000), ..Limits::default() },
    ] {
        let (found, used) = limited(to, limits).await;
        assert_eq!(found.unwrap_err().kind(), ErrorKind::Limit, "{limits:?}");
        assert_eq!(used, 0, "{limits:?}");
    }
}

/// Small blocks, four steps from both ends at once: a step reads the lists at both in one wave and their weights in the next.
#[tokio::test(start_paused = true)]
async fn a_step_takes_two_waves_whatever_the_number_of_vertices() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = SplitMix64::new(3);
    let mut text = String::from("~from,~to,~label,km:Int");
    for from in 0..5_000 {
        for _ in 0..3 {
            write!(text, "\n{from},{},road,{}", random.below(5_000), 1 + random.below(100)).unwrap();
        }
    }
    write_towns(folder.path(), 5_000);
    std::fs::write(folder.path().join("roads.csv"), text).unwrap();
    let segments = SegmentSettings::with_list_blocks(512);
    let (inner, _) = load_apart(LoadOptions { segments, ..LoadOptions::from_paths([folder.path()]) });
    let (store, graph) = open(&inner, &unjoined()).await;
    let ends = vertices(&mut graph.query(), &[7, 4_321]).await;
    store.reset();
    let mut query = graph.query();
    let path = query.weighted_path(asked(ends[0], ends[1], "both")).await.unwrap().unwrap();
    assert_same(&store, query.cost());
    let cost = query.cost();
    assert_eq!((path.walk.edges.len(), path.length, cost.waves, cost.requests), (7, 155.0, 8, 175));
    // All of it is in memory now.
    let mut query = graph.query();
    assert_eq!(query.weighted_path(asked(ends[0], ends[1], "both")).await.unwrap(), Some(path));
    assert_eq!((query.cost().waves, query.cost().requests), (0, 0));
}
