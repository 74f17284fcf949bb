//! Walks and paths with their edges and properties, and starts by a condition: answers, waves and memory.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::{
    Direction, ErrorKind, Hop, Key, Limits, LoadOptions, PathQuery, Query, StartKey, Traversal, TraversalRequest,
    Value, Walk,
};

use crate::{
    graphs::load_apart,
    waves::{assert_same, in_parts, open, people},
};

fn hops(texts: &[&str]) -> Vec<Hop> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn start(text: &str) -> StartKey {
    text.parse().unwrap()
}

/// Two people, two payments from 1 to 2, a friendship, and a payment of 2 to itself.
fn payments() -> std::sync::Arc<dyn object_store::ObjectStore> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("P.csv"), ":ID(P),name\n1,Ann\n2,Bob\n").unwrap();
    let edges = ":START_ID(P),:END_ID(P),:TYPE,amount:int\n1,2,pays,10\n1,2,pays,20\n2,2,pays,30\n2,1,knows,\n";
    std::fs::write(folder.path().join("edges.csv"), edges).unwrap();
    load_apart(LoadOptions::from_paths([folder.path()])).0
}

async fn all_walks(query: &mut Query, from: &str, texts: &[&str]) -> Vec<Walk> {
    let starts = query.start_vertices(&[start(from)]).await.unwrap().to_vec();
    let traversal = Traversal { starts, hops: hops(texts), ..Traversal::default() };
    let mut paths = query.paths(traversal, None).await.unwrap().with_edges();
    query.next_walks(&mut paths, usize::MAX).await.unwrap().into_inner()
}

#[tokio::test(start_paused = true)]
async fn each_parallel_edge_makes_a_walk_of_its_own() {
    let (_, graph) = open(&payments(), &in_parts()).await;
    let mut query = graph.query();
    let walks = all_walks(&mut query, "P:1", &["both"]).await;
    let described = query.describe_walks(&walks, &names(&["name", "amount"])).await.unwrap();
    let shown: BTreeSet<_> = walks
        .iter()
        .map(|walk| {
            let edge = described.edge(&walk.edges[0]).unwrap();
            let end = described.vertex(walk.vertices[1]).unwrap();
            let properties: Vec<_> = edge.properties.values().map(|(name, value)| format!("{name}={value}")).collect();
            (edge.label, walk.direction(0).unwrap().to_string(), properties.join(","), end.key.to_string())
        })
        .collect();
    let expected = [("knows", "in", "", "2"), ("pays", "out", "amount=10", "2"), ("pays", "out", "amount=20", "2")];
    let expected = expected.map(|(label, direction, amount, to)| (label, direction.into(), amount.into(), to.into()));
    assert_eq!(shown, BTreeSet::from(expected));
    let ann = described.vertex(walks[0].vertices[0]).unwrap();
    assert_eq!((ann.label, &ann.key), ("P", &Key::Int64(1)));
    assert_eq!(ann.properties.values().collect::<Vec<_>>(), [("name", Value::String("Ann".into()))]);
    assert_eq!(ann.properties.to_batch().num_rows(), 1);
    // Both ways along a self-loop.
    let loops = all_walks(&mut query, "P:2", &["both:pays[amount = 30]"]).await;
    let directions: BTreeSet<_> = loops.iter().map(|walk| walk.direction(0).unwrap().to_string()).collect();
    assert_eq!((loops.len(), directions.len()), (2, 2));
    let unknown = query.describe_walks(&walks, &names(&["size"])).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    assert!(unknown.to_string().contains("\"size\"; they have amount, name"), "{unknown}");
}

#[tokio::test(start_paused = true)]
async fn a_path_has_the_edges_of_both_sides_of_its_search() {
    let inner = people();
    let (_, graph) = open(&inner, &in_parts()).await;
    let mut query = graph.query();
    let mut lengths = BTreeSet::new();
    for to in [1_000, 2_000, 2_500, 2_999] {
        for hop in ["out:knows", "in:knows", "both:knows"] {
            let [from, to] = query.named(&[start("P:5"), start(&format!("P:{to}"))]).await.unwrap()[..] else {
                panic!()
            };
            let hop: Hop = hop.parse().unwrap();
            let path = PathQuery { from, to, hop: hop.clone(), depth_max: 9, edges: true, limits: Limits::default() };
            let bare =
                query.shortest_path(PathQuery { edges: false, ..path.clone() }).await.unwrap().into_path().unwrap();
            let path = query.shortest_path(path).await.unwrap().into_path().unwrap();
            assert_eq!((&path.vertices, bare.edges.len()), (&bare.vertices, 0));
            let described = query.describe_walks(std::slice::from_ref(&path), &names(&["since"])).await.unwrap();
            for (at, ends) in path.vertices.windows(2).enumerate() {
                // As a hop from the one vertex to the other finds it, from whichever end the search came.
                let found = query.neighbors(&ends[..1], &hop).await.unwrap();
                let position = found.iter().position(|edge| {
                    edge.id() == path.edges[at].id() && Some(edge.direction) == path.direction(at) && edge.to == ends[1]
                });
                let position = position.unwrap_or_else(|| panic!("{:?} between {ends:?}", path.edges[at]));
                let rows = query.edge_properties(&found, &names(&["since"])).await.unwrap();
                let of_edge = rows.iter().find_map(|rows| {
                    let row = rows.positions.iter().position(|of| *of == position)?;
                    Some(Value::at(rows.batch.column(0), row))
                });
                let edge = described.edge(&path.edges[at]).unwrap();
                assert_eq!(edge.properties.values().next(), Some(("since", of_edge.unwrap())));
            }
            lengths.insert(path.edges.len());
        }
    }
    assert!(lengths.len() > 1 && lengths.last() > Some(&2), "{lengths:?}");
}

#[tokio::test(start_paused = true)]
async fn properties_of_walks_and_their_edges_are_one_wave() {
    let inner = people();
    let (store, graph) = open(&inner, &in_parts()).await;
    for select in [names(&["name", "age", "since", "weight"]), names(&["since"]), names(&[])] {
        let (store, graph) = open(&inner, &in_parts()).await;
        store.reset();
        let mut query = graph.query();
        let hops = hops(&["both:knows", "out"]);
        query.expect_walks(&query.label_ids(["P"]), &hops, &select);
        let starts = query.named(&[start("P:5")]).await.unwrap();
        let traversal = Traversal { starts, hops, ..Traversal::default() };
        let mut paths = query.paths(traversal, None).await.unwrap().with_edges();
        let walks = query.next_walks(&mut paths, usize::MAX).await.unwrap();
        assert!(walks.len() > 100);
        query.describe_walks(&walks, &select).await.unwrap();
        assert_eq!(query.cost().waves, 4, "a look-up, two hops, and everything that is printed: {select:?}");
        assert_same(&store, query.cost());
        drop((walks, paths));
        assert_eq!(query.memory().used(), 0);
    }
    // A path: the look-up, its edges, and everything that is printed.
    store.reset();
    let mut query = graph.query();
    let hop = hops(&["out:knows"]).remove(0);
    let select = names(&["name", "since"]);
    let labels = query.label_ids(["P"]);
    query.expect_walks(&labels, &vec![hop.clone(); 9], &select);
    query.expect_walks(&labels, &vec![hop.reversed(); 9], &select);
    let [from, to] = query.named(&[start("P:5"), start("P:2000")]).await.unwrap()[..] else { panic!() };
    let path = PathQuery { from, to, hop, depth_max: 9, edges: true, limits: Limits::default() };
    let path = query.shortest_path(path).await.unwrap().into_path().unwrap();
    let before = query.cost().waves;
    query.describe_walks(std::slice::from_ref(&path), &select).await.unwrap();
    assert_eq!(query.cost().waves, before + 1);
    assert!(before <= 1 + path.edges.len() as u64, "{before} waves for {} edges", path.edges.len());
    assert_same(&store, query.cost());
}

#[tokio::test(start_paused = true)]
async fn edges_of_walks_count_against_the_memory() {
    let (_, graph) = open(&people(), &in_parts()).await;
    let mut peaks = BTreeMap::new();
    for with_edges in [false, true] {
        let mut query = graph.query();
        let starts = query.named(&[start("P:5")]).await.unwrap();
        let traversal = Traversal { starts, hops: hops(&["both:knows", "both:knows"]), ..Traversal::default() };
        let mut paths = query.paths(traversal.clone(), None).await.unwrap();
        // Also half way, where enumeration starts over.
        query.next_walks(&mut paths, 7).await.unwrap();
        if with_edges {
            paths = paths.with_edges();
        }
        let count = query.next_walks(&mut paths, usize::MAX).await.unwrap().len() as u128;
        let begun = if with_edges { 0 } else { 7 };
        assert_eq!(Some(count + begun), query.count_walks(traversal).await.unwrap().walks);
        drop(paths);
        assert_eq!(query.memory().used(), 0);
        peaks.insert(with_edges, query.memory().peak());
    }
    assert!(peaks[&true] > 2 * peaks[&false], "{peaks:?}");
    // Lists make room, but the walks themselves have to fit.
    let mut query = graph.query();
    let starts = query.named(&[start("P:5")]).await.unwrap();
    let limits = Limits { memory_bytes_max: Some(32 << 10), ..Limits::default() };
    let traversal = Traversal { starts, hops: hops(&["both:knows", "both:knows"]), limits, ..Traversal::default() };
    let mut paths = query.paths(traversal, None).await.unwrap().with_edges();
    assert_eq!(query.next_walks(&mut paths, usize::MAX).await.unwrap_err().kind(), ErrorKind::Limit);
}

#[tokio::test(start_paused = true)]
async fn a_condition_names_starts() {
    let (store, graph) = open(&people(), &in_parts()).await;
    let mut query = graph.query();
    let [by_key, by_name] = query.named(&[start("P:5"), start("P[name = n5]")]).await.unwrap()[..] else { panic!() };
    assert_eq!(by_key, by_name);
    // All of them, in the order of the starts.
    let some = [start("C:7"), start("P[name = n8 or name = n9]"), start("C[name in (p3)]")];
    let found = query.start_vertices(&some).await.unwrap();
    let keys = query.keys_of(&found).await.unwrap();
    assert_eq!(keys, [7, 8, 9, 3].map(Key::Int64));
    let error = async |query: &mut Query, text: &str| query.named(&[start(text)]).await.unwrap_err();
    let many = error(&mut query, "P[age < 90]").await;
    assert_eq!(many.kind(), ErrorKind::Invalid);
    assert!(many.to_string().contains("P[age < 90] finds 3000 vertices where one is needed"), "{many}");
    let none = error(&mut query, "P[name = nobody]").await;
    assert_eq!((none.kind(), none.to_string().as_str()), (ErrorKind::NotFound, "there is no vertex P[name = nobody]"));
    let none = query.start_vertices(&[start("P:1"), start("P[name = nobody]")]).await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound);
    assert_eq!(error(&mut query, "Q[name = n1]").await.kind(), ErrorKind::NotFound);
    assert_eq!(error(&mut query, "P[size = 1]").await.kind(), ErrorKind::NotFound);
    assert_eq!(error(&mut query, "P[age = old]").await.kind(), ErrorKind::Invalid);
    // A complete traversal from both kinds; what they find counts against the memory.
    let request = TraversalRequest {
        starts: vec![start("P:5"), start("P[name = n8 or name = n9]")],
        traversal: Traversal { hops: hops(&["out:livesIn"]), ..Traversal::default() },
        select: Some(Vec::new()),
        limit: None,
    };
    let answer = query.run(&request).await.unwrap();
    assert_eq!(answer.reached.depths[0].len(), 3);
    drop(answer);
    query.limit(&Limits { memory_bytes_max: Some(64), ..Limits::default() });
    assert_eq!(error(&mut query, "P[age < 90]").await.kind(), ErrorKind::Limit);
    // Searches and look-ups are under way at the same time.
    let waves = async |starts: &[StartKey]| {
        let (_, graph) = open(&people(), &in_parts()).await;
        let mut query = graph.query();
        query.start_vertices(starts).await.unwrap();
        query.cost().waves
    };
    let search = waves(&[start("P[name = n8]")]).await;
    assert_eq!(waves(&[start("P:5"), start("P[name = n8]"), start("P[name = n9]"), start("C:1")]).await, search);
    // Equal conditions are one search.
    let requests = async |starts: Vec<StartKey>| {
        let (_, graph) = open(&people(), &in_parts()).await;
        let mut query = graph.query();
        let found = query.start_vertices(&starts).await.map(|found| found.len());
        (found, query.cost().requests)
    };
    let (found, once) = requests(vec![start("P[name = n8]")]).await;
    assert_eq!(found.unwrap(), 1);
    let (found, often) = requests(vec![start("P[name = n8]"); 2_000]).await;
    assert_eq!((found.unwrap(), often), (2_000, once));
    let (found, _) = requests((0..257).map(|name| start(&format!("P[name = n{name}]"))).collect()).await;
    let many = found.unwrap_err();
    assert_eq!(many.kind(), ErrorKind::Invalid);
    assert!(many.to_string().contains("257 different conditions are starts"), "{many}");
    let _ = store;
}

#[tokio::test(start_paused = true)]
async fn a_walk_without_hops_is_a_vertex() {
    let (_, graph) = open(&payments(), &in_parts()).await;
    let mut query = graph.query();
    let walks = all_walks(&mut query, "P:1", &[]).await;
    assert_eq!((walks.len(), walks[0].vertices.len(), walks[0].edges.len()), (1, 1, 0));
    assert_eq!((walks[0].direction(0), Walk::default().direction(0)), (None::<Direction>, None));
    assert!(query.describe_walks(&[], &[]).await.unwrap().vertex(walks[0].vertices[0]).is_none());
}
