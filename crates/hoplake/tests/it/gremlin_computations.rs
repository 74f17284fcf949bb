//! Gremlin's steps over the whole graph, next to what their definitions come to on small random graphs.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::{
    ErrorKind, Graph, QueryContext, Reason, Store,
    gremlin::{self, Names, Transaction, Wanted, script::Statement, value::Value},
};

/// Vertices, of two labels in turn.
const VERTICES: usize = 24;

/// Random edges: label, source, target.
fn edges(seed: u64, count: usize) -> Vec<(&'static str, usize, usize)> {
    let mut state = seed;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    (0..count).map(|_| (["e", "f"][next(2)], next(VERTICES), next(VERTICES))).collect()
}

async fn empty(name: &str) -> Graph {
    let url = format!("memory://gremlin-computations-{name}");
    Graph::create(&Store::open(&url).unwrap()).await.unwrap();
    Graph::open(&url).await.unwrap()
}

/// A transaction that has added the vertices and edges, with the number of an edge as its weight.
async fn with(graph: &Graph, edges: &[(&str, usize, usize)]) -> Transaction {
    let mut transaction = graph.gremlin();
    for id in 0..VERTICES {
        let label = ["a", "b"][id % 2];
        transaction.query(&format!("g.addV('{label}').property(T.id, {id}).property('rank', 'stored')")).await.unwrap();
    }
    for (number, (label, source, target)) in edges.iter().enumerate() {
        let weight = number % 5 + 1;
        let query = format!("g.addE('{label}').from(__.V({source})).to(__.V({target})).property('w', {weight})");
        transaction.query(&query).await.unwrap();
    }
    transaction
}

/// A value of each vertex.
async fn by_vertex(transaction: &mut Transaction, query: &str, property: &str) -> BTreeMap<String, Value> {
    let query = format!("{query}.project('id', 'value').by(id).by('{property}')");
    let entry = |value: Value| {
        let Value::Map(entries) = value else { panic!("{value:?}") };
        let [(_, id), (_, value)] = <[_; 2]>::try_from(entries).unwrap();
        (id.to_string(), value)
    };
    transaction.query(&query).await.unwrap().into_iter().map(entry).collect()
}

/// PageRank as its definition has it.
fn ranks(edges: &[(usize, usize)], initial: &[f64], damping: f64, times: usize) -> Vec<f64> {
    let mut ranks = initial.to_vec();
    let degree = |vertex: usize| edges.iter().filter(|(source, _)| *source == vertex).count() as f64;
    for _ in 0..times {
        let total: f64 = ranks.iter().sum();
        let dangling: f64 = (0..ranks.len()).filter(|it| degree(*it) == 0.0).map(|it| ranks[it]).sum();
        let to_all = ((1.0 - damping) * total + damping * dangling) / ranks.len() as f64;
        let mut next = vec![to_all; ranks.len()];
        for (source, target) in edges {
            next[*target] += damping * ranks[*source] / degree(*source);
        }
        ranks = next;
    }
    ranks
}

#[tokio::test]
async fn page_rank_is_its_definition() {
    for seed in 0..4 {
        let edges = edges(seed, 40);
        let graph = empty(&format!("rank-{seed}")).await;
        // Of what was not committed, too.
        let mut transaction = with(&graph, &edges).await;
        let of_e: Vec<_> = edges.iter().filter(|(label, ..)| *label == "e").map(|(_, s, t)| (*s, *t)).collect();
        let against: Vec<_> = edges.iter().map(|(_, s, t)| (*t, *s)).collect();
        let alike = vec![1.0 / VERTICES as f64; VERTICES];
        let with_label = |label| (0..VERTICES).map(|id| if id % 2 == label { 2.0 } else { 0.0 }).collect::<Vec<_>>();
        let options = "with(PageRank.times, 3).with(PageRank.propertyName, 'rank')";
        for (query, expected) in [
            (format!("g.V().pageRank(0.7).{options}.with(PageRank.edges, outE('e'))"), ranks(&of_e, &alike, 0.7, 3)),
            (format!("g.V().pageRank().{options}.with(PageRank.edges, inE())"), ranks(&against, &alike, 0.85, 3)),
            // Traversers are what it begins with: here two on each vertex of a label.
            (
                format!(
                    "g.V().hasLabel('b').union(identity(), identity()).pageRank().{options}.with(PageRank.edges, outE('e')).V()"
                ),
                ranks(&of_e, &with_label(1), 0.85, 3),
            ),
            (format!("g.V().pageRank().{options}.with(PageRank.edges, outE('none'))"), alike.clone()),
        ] {
            let found = by_vertex(&mut transaction, &query, "rank").await;
            assert_eq!(found.len(), VERTICES, "{query}");
            for (id, rank) in found {
                let Value::Number(gremlin::literal::Number::Double(rank)) = rank else { panic!("{query}: {rank:?}") };
                let expected = expected[id.parse::<usize>().unwrap()];
                assert!((rank - expected).abs() < 1e-12, "seed {seed}, {query}, {id}: {rank} and not {expected}");
            }
        }
    }
}

#[tokio::test]
async fn components_are_called_by_the_first_id() {
    let edges = edges(7, 14);
    let graph = empty("components").await;
    let mut transaction = with(&graph, &edges).await;
    // Edges of a vertex go with it.
    transaction.query("g.V(3).drop()").await.unwrap();
    transaction.commit().await.unwrap();
    let mut graph = graph;
    graph.refresh().await.unwrap();
    let mut transaction = graph.gremlin();
    let mut expected: BTreeMap<String, String> =
        (0..VERTICES).filter(|id| *id != 3).map(|id| (id.to_string(), id.to_string())).collect();
    for _ in 0..VERTICES {
        for (_, source, target) in edges.iter().filter(|(_, source, target)| ![source, target].contains(&&3)) {
            let first = expected[&source.to_string()].clone().min(expected[&target.to_string()].clone());
            expected.insert(source.to_string(), first.clone());
            expected.insert(target.to_string(), first);
        }
    }
    let property = "gremlin.connectedComponentVertexProgram.component";
    let found = by_vertex(&mut transaction, "g.V().connectedComponent()", property).await;
    let found: BTreeMap<String, String> =
        found.into_iter().map(|(id, component)| (id, component.to_string())).collect();
    assert_eq!(found, expected);
    let alone = by_vertex(
        &mut transaction,
        "g.V().connectedComponent().with(ConnectedComponent.edges, bothE('none'))",
        property,
    );
    assert!(alone.await.into_iter().all(|(id, component)| component == Value::from(&*id)));
}

#[tokio::test]
async fn clusters_are_those_with_most_votes() {
    let graph = empty("clusters").await;
    let mut transaction = graph.gremlin();
    // A triangle that a fourth vertex points at, and 10 and 9 that point at each other.
    transaction.query("g.addV('a').property(T.id, 1).addV('a').property(T.id, 2).addV('a').property(T.id, 3).addV('a').property(T.id, 4).addV('a').property(T.id, 9).addV('a').property(T.id, 10)").await.unwrap();
    for (source, target) in [(1, 2), (2, 3), (3, 1), (4, 1), (1, 3), (3, 2), (2, 1)] {
        transaction.query(&format!("g.addE('e').from(__.V({source})).to(__.V({target}))")).await.unwrap();
    }
    let query = "g.V().peerPressure().with(PeerPressure.propertyName, 'c').with(PeerPressure.times, 5)";
    let found = by_vertex(&mut transaction, query, "c").await;
    let of = |id: &str| found[id].clone();
    assert_eq!((of("1"), of("2"), of("3")), (of("1"), of("1"), of("1")));
    // An id as it is, and not as text.
    assert_eq!((of("9"), of("10")), (Value::from(9_i64), Value::from(10_i64)));
}

/// The lengths of shortest paths, and how many there are.
fn shortest(edges: &[(usize, usize, f64)], start: usize, most: f64) -> BTreeMap<usize, (f64, usize)> {
    let mut distances = BTreeMap::from([(start, 0.0)]);
    for _ in 0..VERTICES {
        for (source, target, length) in edges {
            let Some(distance) = distances.get(source).map(|it| it + length).filter(|it| *it <= most) else { continue };
            let known = distances.entry(*target).or_insert(distance);
            *known = known.min(distance);
        }
    }
    fn count(edges: &[(usize, usize, f64)], distances: &BTreeMap<usize, f64>, start: usize, end: usize) -> usize {
        if end == start {
            return 1;
        }
        // Parallel edges make one path.
        let mut before = BTreeSet::new();
        for (source, target, length) in edges.iter().filter(|(_, target, _)| *target == end) {
            if distances.get(source).is_some_and(|it| it + length == distances[target]) {
                before.insert(*source);
            }
        }
        before.into_iter().map(|source| count(edges, distances, start, source)).sum()
    }
    let of = |(end, distance): (&usize, &f64)| (*end, (*distance, count(edges, &distances, start, *end)));
    distances.iter().map(of).collect()
}

#[tokio::test]
async fn shortest_paths_are_all_of_them() {
    for seed in 20..24 {
        let edges = edges(seed, 60);
        let graph = empty(&format!("paths-{seed}")).await;
        let mut transaction = with(&graph, &edges).await;
        let weighted: Vec<_> =
            edges.iter().enumerate().map(|(number, (_, s, t))| (*s, *t, (number % 5 + 1) as f64)).collect();
        let both: Vec<_> = edges.iter().flat_map(|(_, s, t)| [(*s, *t, 1.0), (*t, *s, 1.0)]).collect();
        for (options, edges, most) in [
            ("", &both, f64::INFINITY),
            (".with(ShortestPath.maxDistance, 2)", &both, 2.0),
            (".with(ShortestPath.edges, outE()).with(ShortestPath.distance, 'w')", &weighted, f64::INFINITY),
            (
                ".with(ShortestPath.edges, Direction.OUT).with(ShortestPath.distance, __.values('w')).with(ShortestPath.maxDistance, 4)",
                &weighted,
                4.0,
            ),
        ] {
            let query = format!("g.V(0, 5).shortestPath(){options}.map(unfold().id().fold()).groupCount()");
            let Value::Map(found) = transaction.query(&query).await.unwrap().remove(0) else { panic!() };
            let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
            for (path, times) in found {
                let Value::List(path) = path else { panic!("{path:?}") };
                assert_eq!(times, Value::from(1_i64), "{path:?}");
                let ends = (path[0].to_string(), path[path.len() - 1].to_string());
                *counts.entry(ends).or_default() += 1;
            }
            for start in [0, 5] {
                for (end, (_, paths)) in shortest(edges, start, most) {
                    let found = counts.remove(&(start.to_string(), end.to_string()));
                    assert_eq!(found, Some(paths), "seed {seed}, {query}: {start} to {end}");
                }
            }
            assert_eq!(counts, BTreeMap::new(), "seed {seed}, {query}");
        }
    }
}

/// With one start, one target and a property as length, the engine looks for the path from both ends first. A traversal as length has
/// no such search, and the same paths in the same order.
#[tokio::test]
async fn paths_to_one_target_are_those_of_the_whole_search() {
    let mut lengths = BTreeSet::new();
    for seed in 40..46 {
        let edges = edges(seed, 60);
        let graph = empty(&format!("one-target-{seed}")).await;
        let mut transaction = with(&graph, &edges).await;
        for along in ["outE()", "inE('e')", "bothE('e', 'f')", "outE().has('w')"] {
            for (target, more) in [
                (seed as usize % VERTICES, ""),
                (7, ""),
                (11, ".with(ShortestPath.maxDistance, 4)"),
                (0, ""),
                (13, ".with(ShortestPath.includeEdges, true)"),
            ] {
                let mut found = Vec::new();
                for distance in ["'w'", "__.values('w')"] {
                    let query = format!(
                        "g.V(0).shortestPath().with(ShortestPath.target, __.hasId({target})).with(ShortestPath.edges, __.{along})\
                         .with(ShortestPath.distance, {distance}){more}.map(unfold().id().fold())"
                    );
                    found.push(transaction.query(&query).await.unwrap());
                }
                assert_eq!(found[0], found[1], "seed {seed}: {along} to {target}{more}");
                lengths.insert(found[0].len());
            }
        }
    }
    assert!(lengths.len() > 2, "none, one and several: {lengths:?}");
}

/// The engine adds up the digits of a float of 32 bits, and a query its value.
#[tokio::test]
async fn lengths_of_32_bits_lead_to_one_target() {
    let graph = empty("singles").await;
    let mut transaction = with(&graph, &[]).await;
    for (source, target, length) in [(0, 1, "0.1f"), (1, 2, "0.7f"), (0, 2, "0.8f"), (2, 3, "1e-45f")] {
        let add = format!("g.addE('e').from(__.V({source})).to(__.V({target})).property('w', {length})");
        transaction.query(&add).await.unwrap();
    }
    for (target, more) in [(1, ""), (2, ""), (3, ""), (2, ".with(ShortestPath.maxDistance, 0.9)")] {
        let query = |distance: &str| {
            format!(
                "g.V(0).shortestPath().with(ShortestPath.target, __.hasId({target})).with(ShortestPath.edges, outE())\
                 .with(ShortestPath.distance, {distance}){more}.map(unfold().id().fold())"
            )
        };
        let found = transaction.query(&query("'w'")).await.unwrap();
        assert!(!found.is_empty(), "{target}");
        assert_eq!(found, transaction.query(&query("__.values('w')")).await.unwrap(), "{target}");
    }
}

/// A length that is an error is found only where the search comes to.
#[tokio::test]
async fn a_search_for_one_target_does_not_go_farther_away() {
    let graph = empty("near").await;
    let mut transaction = with(&graph, &[]).await;
    for (source, target, weight) in [(0, 1, 1), (1, 2, 1), (0, 3, 50), (3, 4, -1)] {
        let add = format!("g.addE('e').from(__.V({source})).to(__.V({target})).property('w', {weight})");
        transaction.query(&add).await.unwrap();
    }
    let query = |target: usize, distance: &str| {
        format!(
            "g.V(0).shortestPath().with(ShortestPath.target, __.hasId({target})).with(ShortestPath.edges, outE())\
             .with(ShortestPath.distance, {distance}).count()"
        )
    };
    assert_eq!(transaction.query(&query(2, "'w'")).await.unwrap(), [Value::from(1_i64)]);
    for query in [query(2, "__.values('w')"), query(4, "'w'"), query(5, "'w'")] {
        let error = transaction.query(&query).await.unwrap_err();
        assert!(error.to_string().contains("an edge is -1 long"), "{query}: {error}");
    }
}

#[tokio::test]
async fn what_is_computed_is_a_property_of_the_query_alone() {
    let graph = empty("property").await;
    let transaction = with(&graph, &edges(3, 30)).await;
    transaction.commit().await.unwrap();
    let mut graph = graph;
    graph.refresh().await.unwrap();
    let mut transaction = graph.gremlin();
    let mut ask = async |query: &str| transaction.query(query).await.unwrap();
    let computed = "g.V().pageRank().with(PageRank.propertyName, 'rank')";
    // It hides the stored one, wherever it is read.
    assert_eq!(ask(&format!("{computed}.has('rank', 'stored').count()")).await, [Value::from(0_i64)]);
    assert_eq!(ask(&format!("{computed}.has('rank', gt(0)).count()")).await, [Value::from(VERTICES as i64)]);
    assert_eq!(ask(&format!("{computed}.where(__.V().has('rank', 'stored')).count()")).await, [Value::from(0_i64)]);
    assert_eq!(ask(&format!("{computed}.valueMap().limit(1).unfold().count()")).await, [Value::from(1_i64)]);
    let kept =
        "g.V().has('rank', 'stored').pageRank().with(PageRank.propertyName, 'rank').has('rank', 'stored').count()";
    assert_eq!(ask(kept).await, [Value::from(0_i64)]);
    assert_eq!(ask("g.V().has('rank', 'stored').count()").await, [Value::from(VERTICES as i64)]);
    // Two at once, and one in place of another.
    let two = format!("{computed}.peerPressure().with(PeerPressure.propertyName, 'c').values('rank', 'c').count()");
    assert_eq!(ask(&two).await, [Value::from(2 * VERTICES as i64)]);
    let again = format!(
        "{computed}.connectedComponent().with(ConnectedComponent.propertyName, 'rank').has('rank', gt(0)).count()"
    );
    assert_eq!(ask(&again).await, [Value::from(0_i64)]);
    // It is written like any other value.
    let written = "g.V().pageRank().with(PageRank.propertyName, 'r').property('saved', __.values('r')).count()";
    assert_eq!(ask(written).await, [Value::from(VERTICES as i64)]);
    assert_eq!(ask("g.V().has('saved', gt(0)).count()").await, [Value::from(VERTICES as i64)]);
    assert_eq!(ask("g.V().has('r').count()").await, [Value::from(0_i64)]);
}

#[tokio::test]
async fn computations_keep_to_their_limits() {
    let graph = empty("limits").await;
    let mut transaction = with(&graph, &edges(5, 60)).await;
    let fails = async |query: &str, bytes: u64| {
        let script = gremlin::parse(query).unwrap();
        let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
        let plan = gremlin::plan(traversal, Names::default()).unwrap();
        let budget = hoplake::MemoryBudget::unlimited("a test").within("the query", bytes);
        let context = QueryContext::within(&budget);
        match transaction.clone().run(&plan, Wanted::default(), &context) {
            Ok(mut results) => results.next(1).await.unwrap_err(),
            Err(error) => error,
        }
    };
    for query in ["g.V().pageRank().values('x')", "g.V().peerPressure().values('x')", "g.V().shortestPath()"] {
        assert_eq!(fails(query, 600).await.kind(), ErrorKind::Limit, "{query}");
    }
    // 2^40 shortest paths: memory, and not the time they take, is what ends them.
    let chain = graph.gremlin();
    let mut chain = chain;
    chain.query("g.addV('n').property(T.id, 'v0')").await.unwrap();
    for at in 0..40 {
        let next = format!(
            "g.addV('n').property(T.id, 'x{at}').addV('n').property(T.id, 'y{at}').addV('n').property(T.id, 'v{}')\
             .addE('e').from(__.V('x{at}')).addE('e').from(__.V('v{at}')).to(__.V('x{at}'))",
            at + 1
        );
        chain.query(&next).await.unwrap();
        chain.query(&format!("g.addE('e').from(__.V('y{at}')).to(__.V('v{}'))", at + 1)).await.unwrap();
        chain.query(&format!("g.addE('e').from(__.V('v{at}')).to(__.V('y{at}'))")).await.unwrap();
    }
    transaction = chain;
    let query = "g.V('v0').shortestPath().with(ShortestPath.target, __.hasId('v40')).count()";
    let script = gremlin::parse(query).unwrap();
    let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
    let plan = gremlin::plan(traversal, Names::default()).unwrap();
    let budget = hoplake::MemoryBudget::unlimited("a test").within("the query", 4 << 20);
    let mut results = transaction.clone().run(&plan, Wanted::default(), &QueryContext::within(&budget)).unwrap();
    assert_eq!(results.next(1).await.unwrap_err().kind(), ErrorKind::Limit);
    // What is not a vertex, or has no length.
    let mut ask = async |query: &str| transaction.query(query).await.unwrap_err();
    assert_eq!(ask("g.inject(1).pageRank()").await.reason(), Some(Reason::Query));
    assert_eq!(ask("g.V().label().shortestPath()").await.reason(), Some(Reason::Query));
    let error = ask("g.V().shortestPath().with(ShortestPath.distance, 'none')").await;
    assert!(error.to_string().contains("no length"), "{error}");
}
