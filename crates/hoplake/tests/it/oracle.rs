//! Random graphs, written as files, loaded, and asked everything that the naive oracle can answer too.

mod conditions;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write,
    path::Path,
    sync::Arc,
};

use arrow_array::{Array, Int64Array, RecordBatch, StringArray};
use hoplake::{
    Direction, EdgeId, ErrorKind, Frontier, Graph, Hop, HopDirection, Key, LoadOptions, OpenSettings, PathQuery, Paths,
    Query, SegmentSettings, Store, Strategy as Search, Traversal, VertexId, VertexOrder, VisitPolicy, Walk, load,
};
use hoplake_testkit::{
    generate::{LabelledEdge, LabelledLimits, SplitMix64, labelled_multigraph},
    oracle::{self, Oracle, Properties, Value, Vertex},
};
use proptest::{prelude::*, test_runner::TestCaseError};

use conditions::random_condition;

/// What a case is made from; everything else follows from the seed.
#[derive(Debug, Clone)]
struct Case {
    limits: LabelledLimits,
    seed: u64,
    /// Gremlin CSV, else neo4j-admin's.
    gremlin: bool,
    order: VertexOrder,
    segments: SegmentSettings,
    /// Whether the index comes with the open, else block by block through the caches.
    index_in_memory: bool,
}

/// So that a section of a hundred items goes on over several segments, and has several index blocks in each.
const TINY: SegmentSettings = SegmentSettings {
    list_block_bytes: 64,
    key_block_bytes: 40,
    index_entries: 3,
    filter_items: 16,
    tail_bytes: 300,
    data_bytes: 2 << 10,
    span_items: 300,
};

/// A graph of this many edges or more gets a hub, whose lists span blocks in both directions.
const HUB_FROM_EDGES: usize = 1_000;

fn cases() -> impl Strategy<Value = Case> {
    let small = (1..=3u16, 1..=4u16, 0..=24u64, 0..=150usize);
    let large = (1..=1u16, 1..=2u16, 5_000..=6_000u64, HUB_FROM_EDGES..=1_200usize);
    let limits = prop_oneof![6 => small, 1 => large].prop_map(|(vertex_labels, edge_labels, most, edges)| {
        LabelledLimits { vertex_labels, edge_labels, vertices_per_label_max: most, edges }
    });
    let order = prop_oneof![Just(VertexOrder::Keys), Just(VertexOrder::Locality)];
    let blocks = SegmentSettings::with_list_blocks;
    let segments = prop_oneof![2 => Just(blocks(512)), 1 => Just(blocks(2_048)), 2 => Just(TINY)];
    (limits, any::<u64>(), any::<[bool; 2]>(), order, segments).prop_map(
        |(limits, seed, [gremlin, index_in_memory], order, segments)| Case {
            limits,
            seed,
            gremlin,
            order,
            segments,
            index_in_memory,
        },
    )
}

fn maybe<T>(random: &mut SplitMix64, value: impl FnOnce(&mut SplitMix64) -> T) -> Option<T> {
    (random.below(4) > 0).then(|| value(random))
}

fn draw<'a, T>(random: &mut SplitMix64, from: &'a [T]) -> Option<&'a T> {
    from.get(random.below(from.len() as u64) as usize)
}

/// The graph of a case, with keys and properties.
fn oracle_of(case: &Case) -> Oracle {
    let drawn = labelled_multigraph(case.limits, case.seed);
    let mut random = SplitMix64::new(!case.seed);
    let shared_text = random.below(2) == 0;
    let mut graph = Oracle::new();
    let mut first = Vec::new();
    for (label, count) in drawn.vertices.iter().enumerate() {
        let text = if case.gremlin { shared_text } else { random.below(2) == 0 };
        first.push(graph.vertices.len());
        for ordinal in 0..*count as i64 {
            // In Gremlin CSV all labels share their ids; else the same key may be there once a label.
            let of_label = if case.gremlin { label as i64 } else { 0 };
            let key = match (text, ordinal) {
                (true, 7) => oracle::Key::Text(format!("ключ, \"{of_label}\"")),
                (true, _) => {
                    oracle::Key::Text(format!("{}-{of_label}-{ordinal}", ["a", "Zebra", "~é"][ordinal as usize % 3]))
                }
                (false, 0) if of_label == 0 => oracle::Key::Int(i64::MIN),
                (false, 1) if of_label == 0 => oracle::Key::Int(i64::MAX),
                (false, _) => oracle::Key::Int((ordinal * 37 - 100) * 4 + of_label),
            };
            let vertex = graph.add_vertex(format!("L{label}"), key);
            let properties = &mut graph.vertices[vertex].properties;
            let name = |random: &mut SplitMix64| Value::Text(format!("n{}", random.below(6)));
            let age = |random: &mut SplitMix64| Value::Int(random.below(9) as i64 - 2);
            // The last label has no ages at all.
            let aged = label + 1 < drawn.vertices.len() || label == 0;
            properties.extend(maybe(&mut random, name).map(|name| ("name".to_owned(), name)));
            properties.extend(maybe(&mut random, age).filter(|_| aged).map(|age| ("age".to_owned(), age)));
        }
    }
    let mut hub_edges = Vec::new();
    if drawn.edges.len() >= HUB_FROM_EDGES {
        let hub = drawn.edges[0].source;
        for number in 0..2 * drawn.edges.len() {
            let other = (hub.0, random.below(drawn.vertices[usize::from(hub.0)]));
            let (source, target) = if number % 2 == 0 { (hub, other) } else { (other, hub) };
            hub_edges.push(LabelledEdge { label: 0, source, target });
        }
    }
    for (number, edge) in drawn.edges.iter().chain(&hub_edges).enumerate() {
        let vertex = |(label, ordinal): (u16, u64)| first[usize::from(label)] + ordinal as usize;
        let added = graph.add_edge(vertex(edge.source), format!("e{}", edge.label), vertex(edge.target));
        let properties = &mut graph.edges[added].properties;
        properties.insert("number".to_owned(), Value::Int(number as i64));
        // Edges of the label e1 have no weight.
        let weight = maybe(&mut random, |random| Value::Int(random.below(7) as i64)).filter(|_| edge.label != 1);
        properties.extend(weight.map(|weight| ("w".to_owned(), weight)));
    }
    graph
}

fn field(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn key_text(key: &oracle::Key) -> String {
    match key {
        oracle::Key::Int(key) => key.to_string(),
        oracle::Key::Text(key) => field(key),
    }
}

fn value_text(properties: &Properties, name: &str) -> String {
    match properties.get(name) {
        Some(Value::Int(value)) => value.to_string(),
        Some(Value::Text(value)) => field(value),
        _ => String::new(),
    }
}

/// One file of vertices and one of edges.
fn write_gremlin(graph: &Oracle, folder: &Path) {
    let mut vertices = "~id,age:Int,~label,name:String\n".to_owned();
    for vertex in &graph.vertices {
        let [age, name] = ["age", "name"].map(|name| value_text(&vertex.properties, name));
        writeln!(vertices, "{},{age},{},{name}", key_text(&vertex.key), vertex.label).unwrap();
    }
    let mut edges = "~id,~from,~to,~label,w:Int,number:Int\n".to_owned();
    for (number, edge) in graph.edges.iter().enumerate() {
        let [source, target] = [edge.source, edge.target].map(|end| key_text(&graph.vertices[end].key));
        let [w, own] = ["w", "number"].map(|name| value_text(&edge.properties, name));
        writeln!(edges, "edge{number},{source},{target},{},{w},{own}", edge.label).unwrap();
    }
    std::fs::write(folder.join("vertices.csv"), vertices).unwrap();
    std::fs::write(folder.join("edges.csv"), edges).unwrap();
}

/// A file for each label, and one for each edge label between two labels.
fn write_neo4j(graph: &Oracle, folder: &Path) {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for vertex in &graph.vertices {
        let head = || format!(":ID({}),name,age:int\n", vertex.label);
        let file = files.entry(format!("{}.csv", vertex.label)).or_insert_with(head);
        let [age, name] = ["age", "name"].map(|name| value_text(&vertex.properties, name));
        writeln!(file, "{},{name},{age}", key_text(&vertex.key)).unwrap();
    }
    for edge in &graph.edges {
        let [source, target] = [edge.source, edge.target].map(|end| &graph.vertices[end]);
        let head = || format!(":START_ID({}),w:long,:END_ID({}),:TYPE,number:long\n", source.label, target.label);
        let name = format!("{}_{}_{}.csv", source.label, edge.label, target.label);
        let file = files.entry(name).or_insert_with(head);
        let [w, own] = ["w", "number"].map(|name| value_text(&edge.properties, name));
        writeln!(file, "{},{w},{},{},{own}", key_text(&source.key), key_text(&target.key), edge.label).unwrap();
    }
    for (name, content) in files {
        std::fs::write(folder.join(name), content).unwrap();
    }
}

fn key(key: &oracle::Key) -> Key {
    match key {
        oracle::Key::Int(key) => Key::Int64(*key),
        oracle::Key::Text(key) => Key::String(key.clone()),
    }
}

/// A cell of a batch; a column that is not there holds nothing.
fn cell(batch: &RecordBatch, name: &str, row: usize) -> Option<Value> {
    let column = batch.column_by_name(name).filter(|column| column.is_valid(row))?;
    let integers = column.as_any().downcast_ref::<Int64Array>();
    let texts = column.as_any().downcast_ref::<StringArray>();
    integers
        .map(|column| Value::Int(column.value(row)))
        .or_else(|| texts.map(|column| Value::Text(column.value(row).to_owned())))
}

/// The same graph twice.
struct Pair {
    oracle: Oracle,
    graph: Graph,
    /// The engine's name of each vertex of the oracle, and back.
    ids: Vec<VertexId>,
    vertices: HashMap<VertexId, Vertex>,
}

/// The same hop twice.
struct Step {
    hop: Hop,
    oracle: oracle::Hop,
}

const DIRECTIONS: [(HopDirection, oracle::Direction); 3] = [
    (HopDirection::Out, oracle::Direction::Out),
    (HopDirection::In, oracle::Direction::In),
    (HopDirection::Both, oracle::Direction::Both),
];

fn step(direction: (HopDirection, oracle::Direction), labels: &[String]) -> Step {
    let hop = Hop { labels: labels.to_vec(), direction: direction.0, condition: None };
    let oracle = match labels {
        [] => oracle::Hop::any(direction.1),
        labels => oracle::Hop::new(direction.1, labels),
    };
    Step { hop, oracle }
}

type Checked = Result<(), TestCaseError>;

impl Pair {
    async fn load(case: &Case) -> Result<Option<Self>, TestCaseError> {
        let oracle = oracle_of(case);
        if oracle.vertices.is_empty() {
            return Ok(None);
        }
        let folder = tempfile::tempdir().unwrap();
        if case.gremlin {
            write_gremlin(&oracle, folder.path())
        } else {
            write_neo4j(&oracle, folder.path())
        }
        let url =
            format!("memory://oracle-{}/g", folder.path().file_name().unwrap().to_str().unwrap().trim_matches('.'));
        let options = LoadOptions {
            order: case.order,
            segments: case.segments,
            threads: 2,
            memory_bytes: 64 << 20,
            ..LoadOptions::from_paths([folder.path()])
        };
        let report = load(&url, options).await.unwrap();
        let counts = (report.vertices, report.edges, report.bad_rows);
        prop_assert_eq!(counts, (oracle.vertices.len() as u64, oracle.edges.len() as u64, 0));
        let settings = match case.index_in_memory {
            true => OpenSettings::default(),
            false => OpenSettings {
                index_bytes_max: 0,
                index_with_root_bytes_max: 0,
                filter_bytes_max: 0,
                ..OpenSettings::default()
            },
        };
        let graph = Graph::open_with(Store::open(&url).unwrap(), &settings).await.unwrap();
        prop_assert_eq!(graph.open_cost().waves, 2);
        graph.verify(|_| ()).await.unwrap();
        let mut ids = Vec::new();
        for vertex in &oracle.vertices {
            let found = graph.query().vertex(&vertex.label, key(&vertex.key)).await.unwrap();
            prop_assert!(found.is_some(), "{} {:?} is not there", vertex.label, vertex.key);
            ids.extend(found);
        }
        let vertices: HashMap<_, _> = ids.iter().copied().zip(0..).collect();
        prop_assert_eq!(vertices.len(), ids.len());
        Ok(Some(Self { oracle, graph, ids, vertices }))
    }

    fn query(&self) -> Query {
        self.graph.query()
    }

    fn edge_labels(&self) -> Vec<String> {
        self.oracle.edges.iter().map(|edge| edge.label.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn some_vertices(&self, random: &mut SplitMix64, count: usize) -> Vec<Vertex> {
        (0..count).map(|_| random.below(self.ids.len() as u64) as usize).collect()
    }

    fn ids_of(&self, vertices: &[Vertex]) -> Vec<VertexId> {
        vertices.iter().map(|vertex| self.ids[*vertex]).collect()
    }

    fn set(&self, frontier: &Frontier) -> BTreeSet<Vertex> {
        frontier.vertices().map(|id| self.vertices[&id]).collect()
    }

    async fn check_vertices(&self) -> Checked {
        for (label, wrong) in self.oracle.vertices.iter().map(|vertex| (&vertex.label, &vertex.key)).take(20) {
            let absent = match wrong {
                oracle::Key::Int(key) => [Key::Int64(key ^ 1), Key::Int64(key ^ 2), Key::Int64(5_000_001)],
                oracle::Key::Text(key) => [format!("{key} "), format!("{key}0"), String::new()].map(Key::String),
            };
            for key in absent {
                let known = match &key {
                    Key::Int64(key) => self.oracle.find(label, &oracle::Key::Int(*key)),
                    Key::String(key) => self.oracle.find(label, &oracle::Key::Text(key.clone())),
                };
                let found = self.query().vertex(label, key).await.unwrap();
                prop_assert_eq!(found, known.map(|vertex| self.ids[vertex]));
            }
        }
        let mut query = self.query();
        let named = query.keys_of(&self.ids).await.unwrap();
        prop_assert_eq!(named, self.oracle.vertices.iter().map(|vertex| key(&vertex.key)).collect::<Vec<_>>());
        let all: Frontier = self.ids.iter().copied().collect();
        let has = |name: &&str| self.oracle.vertices.iter().any(|vertex| vertex.properties.contains_key(*name));
        let names: Vec<String> = ["name", "age"].into_iter().filter(has).map(str::to_owned).collect();
        let rows = query.properties(&all, &names).await.unwrap();
        let mut order = all.vertices();
        for rows in rows {
            for row in 0..rows.batch.num_rows() {
                let vertex = &self.oracle.vertices[self.vertices[&order.next().unwrap()]];
                prop_assert_eq!(&rows.label, &vertex.label);
                let found = names.iter().filter_map(|name| Some((name.clone(), cell(&rows.batch, name, row)?)));
                prop_assert_eq!(found.collect::<Properties>(), vertex.properties.clone());
            }
        }
        prop_assert_eq!(order.count(), 0);
        Ok(())
    }

    async fn check_neighbours(&self, random: &mut SplitMix64) -> Checked {
        let mut near = self.some_vertices(random, 24);
        near.sort_unstable();
        near.dedup();
        let ids = self.ids_of(&near);
        let labels = self.edge_labels();
        let mut sets: Vec<Vec<String>> = labels.iter().map(|label| vec![label.clone()]).collect();
        sets.extend([vec![], labels]);
        for (direction, labels) in DIRECTIONS.into_iter().flat_map(|it| sets.iter().map(move |labels| (it, labels))) {
            let Step { hop, oracle } = step(direction, labels);
            let edges = self.query().neighbors(&ids, &hop).await.unwrap();
            prop_assert!(edges.iter().is_sorted_by_key(|edge| (
                edge.from,
                edge.edge_type,
                edge.direction,
                edge.position
            )));
            let limit = random.below(edges.len() as u64 + 2) as usize;
            let first = self.query().first_neighbors(&ids, &hop, limit).await.unwrap();
            prop_assert!(first.iter().eq(edges.iter().take(limit)), "the first {} of {}", limit, hop);
            let degrees = self.query().degrees(&ids, &hop).await.unwrap();
            let degrees: HashMap<_, _> = degrees.iter().map(|degree| (degree.vertex, degree.edges)).collect();
            for vertex in &near {
                let from = self.ids[*vertex];
                let of_vertex = edges.iter().filter(|edge| edge.from == from);
                let mut found: Vec<Vertex> = of_vertex.map(|edge| self.vertices[&edge.to]).collect();
                found.sort_unstable();
                prop_assert_eq!(degrees[&from], found.len() as u64);
                prop_assert_eq!(found, self.oracle.neighbours(*vertex, &oracle), "{} of {}", hop, vertex);
            }
        }
        Ok(())
    }

    /// Every edge comes back once in either direction, with its properties, and is the same edge from either end.
    async fn check_edges(&self) -> Checked {
        let names = ["number", "w", "id"].map(str::to_owned);
        let mut ids: BTreeMap<i64, EdgeId> = BTreeMap::new();
        for direction in [HopDirection::Out, HopDirection::In] {
            let mut query = self.query();
            let hop = Hop { direction, ..Hop::default() };
            let edges = query.neighbors(&self.ids, &hop).await.unwrap();
            let mut seen = BTreeSet::new();
            for rows in query.edge_properties(&edges, &names).await.unwrap() {
                prop_assert_eq!(rows.positions.len(), rows.batch.num_rows());
                for (row, position) in rows.positions.iter().enumerate() {
                    let Some(Value::Int(number)) = cell(&rows.batch, "number", row) else {
                        return Err(TestCaseError::fail("an edge lost its number"));
                    };
                    let found = &edges.get(*position).unwrap();
                    let edge = &self.oracle.edges[number as usize];
                    let ends = match direction {
                        HopDirection::In => (edge.target, edge.source),
                        _ => (edge.source, edge.target),
                    };
                    prop_assert_eq!((self.vertices[&found.from], self.vertices[&found.to]), ends);
                    prop_assert_eq!(&self.graph.schema().edge_type(found.edge_type).unwrap().label, &edge.label);
                    prop_assert_eq!(cell(&rows.batch, "w", row), edge.properties.get("w").cloned());
                    let id = cell(&rows.batch, "id", row);
                    let expected = Value::Text(format!("edge{number}"));
                    prop_assert!(id.is_none_or(|id| id == expected));
                    prop_assert!(seen.insert(number));
                    let id = *ids.entry(number).or_insert(found.id());
                    prop_assert_eq!(found.id(), id, "edge {} from its other end", number);
                    prop_assert_eq!(id.to_string().parse::<EdgeId>().unwrap(), id);
                }
            }
            prop_assert_eq!(seen.len(), self.oracle.edges.len());
        }
        let mut wanted: Vec<EdgeId> = ids.values().copied().collect();
        let distinct: BTreeSet<EdgeId> = wanted.iter().copied().collect();
        prop_assert_eq!(distinct.len(), wanted.len(), "parallel edges share an id");
        let nth = |id: EdgeId, parallel| EdgeId { parallel, ..id };
        let next = |id: &EdgeId| nth(*id, id.parallel + 1);
        let absent: Vec<EdgeId> = wanted.iter().map(next).filter(|id| !wanted.contains(id)).collect();
        let there = wanted.len();
        wanted.extend(absent);
        let found = self.query().edges(&wanted).await.unwrap();
        let expected = wanted.iter().enumerate().map(|(at, id)| (at < there).then_some(*id));
        prop_assert!(found.iter().map(|edge| edge.map(|edge| edge.id())).eq(expected));
        Ok(())
    }

    /// A hop, perhaps with a condition, and whether the graph has all properties of it.
    fn random_step(&self, random: &mut SplitMix64) -> (Step, bool) {
        let labels = self.edge_labels();
        let few: Vec<String> = labels.iter().filter(|_| random.below(2) == 0).cloned().collect();
        let mut step = step(DIRECTIONS[random.below(3) as usize], &few);
        if random.below(3) > 0 {
            return (step, true);
        }
        let mut names = BTreeSet::new();
        let (text, judge) = random_condition(random, 0, &mut names);
        step.hop = step.hop.such_that(text.parse().unwrap());
        step.oracle = step.oracle.keeping(move |graph, edge, reached| judge(graph, edge, reached) == Some(true));
        let known = self.graph.schema().edge_types.iter().filter(|edge| few.is_empty() || few.contains(&edge.label));
        let known: Vec<_> = known.collect();
        let is_known = |name: &&str| {
            known.iter().any(|edge| {
                let far = |label| self.graph.schema().label(label).unwrap().properties.iter();
                let ends = [(HopDirection::In, edge.target), (HopDirection::Out, edge.source)];
                let ends = ends.into_iter().filter(|(not, _)| *not != step.hop.direction).flat_map(|(_, end)| far(end));
                edge.properties.iter().chain(ends).any(|property| property.name == **name)
            })
        };
        let all_known = names.iter().all(is_known);
        (step, all_known)
    }

    async fn check_traversals(&self, random: &mut SplitMix64) -> Checked {
        for _ in 0..8 {
            let starts = self.some_vertices(random, 1 + random.clone().below(4) as usize);
            let hops = 1 + random.below(3);
            let (steps, known): (Vec<_>, Vec<_>) = (0..hops).map(|_| self.random_step(random)).unzip();
            let oracle_hops: Vec<_> = steps.iter().map(|step| step.oracle.clone()).collect();
            let expected = [
                (VisitPolicy::PerDepth, oracle::VisitPolicy::PerDepth),
                (VisitPolicy::Global, oracle::VisitPolicy::Global),
            ];
            let expected = expected.map(|(visit, policy)| (visit, self.oracle.traverse(&starts, &oracle_hops, policy)));
            for (strategy, parallelism) in
                [Search::Bfs, Search::BfsPipelined, Search::Dfs].into_iter().flat_map(|it| [(it, 1), (it, 3)])
            {
                for (visit, expected) in &expected {
                    let visit = *visit;
                    let hops = steps.iter().map(|step| step.hop.clone()).collect();
                    let traversal = Traversal {
                        starts: self.ids_of(&starts),
                        hops,
                        strategy,
                        visit,
                        parallelism,
                        ..Default::default()
                    };
                    let told = format!("{starts:?} {} {strategy:?} {visit:?} {parallelism}", shown(&steps));
                    let found = self.query().traverse(traversal).await;
                    let rejected = match (strategy, visit) {
                        (Search::Dfs, VisitPolicy::Global) => Some(ErrorKind::Invalid),
                        _ => known.contains(&false).then_some(ErrorKind::NotFound),
                    };
                    if rejected.is_some() {
                        prop_assert_eq!(found.map_err(|error| error.kind()).err(), rejected, "{}", told);
                        continue;
                    }
                    let found: Vec<_> = found.unwrap().depths.iter().map(|depth| self.set(depth)).collect();
                    prop_assert_eq!(&found, expected, "{}", told);
                }
            }
        }
        Ok(())
    }

    async fn check_paths(&self, random: &mut SplitMix64) -> Checked {
        for _ in 0..6 {
            let starts = self.some_vertices(random, 2);
            let (steps, known): (Vec<_>, Vec<_>) = (0..random.below(4)).map(|_| self.random_step(random)).unzip();
            if known.contains(&false) {
                continue;
            }
            let hops: Vec<_> = steps.iter().map(|step| step.oracle.clone()).collect();
            if self.oracle.walk_count(&starts, &hops) > 20_000 {
                continue;
            }
            let walks = self.oracle.walks(&starts, &hops);
            let sets = self.oracle.traverse(&starts, &hops, oracle::VisitPolicy::Global);
            for visit in [VisitPolicy::PerDepth, VisitPolicy::Global] {
                let hops = steps.iter().map(|step| step.hop.clone()).collect();
                let traversal = Traversal { starts: self.ids_of(&starts), hops, visit, ..Default::default() };
                let mut query = self.query();
                let counted = query.count_walks(traversal.clone()).await.unwrap().walks;
                // Few wanted, and of unknown number: lists come one by one, or many at a time.
                let wanted = (random.below(2) == 0).then(|| random.below(3) as usize);
                let mut paths = query.paths(traversal.clone(), wanted).await.unwrap();
                let found = query.next_walks(&mut paths, usize::MAX).await.unwrap();
                let with_edges = self.query().paths(traversal, wanted).await.unwrap().with_edges();
                self.check_edges_of_walks(&found, with_edges, &steps).await?;
                let mut found: Vec<Vec<Vertex>> =
                    found.iter().map(|path| path.vertices.iter().map(|id| self.vertices[id]).collect()).collect();
                found.sort_unstable();
                prop_assert_eq!(counted, Some(found.len() as u128));
                let allowed = |walk: &&Vec<Vertex>| {
                    visit == VisitPolicy::PerDepth || walk.iter().zip(&sets).all(|(vertex, set)| set.contains(vertex))
                };
                let expected: Vec<_> = walks.iter().filter(allowed).cloned().collect();
                prop_assert_eq!(found, expected, "{:?} {} {:?}", &starts, shown(&steps), visit);
            }
        }
        Ok(())
    }

    /// The same walks with their edges: each edge is one that the hop follows from a vertex to the next, and no two walks are the same.
    async fn check_edges_of_walks(&self, bare: &[Walk], mut paths: Paths, steps: &[Step]) -> Checked {
        let found = self.query().next_walks(&mut paths, usize::MAX).await.unwrap();
        prop_assert!(found.iter().map(|walk| &walk.vertices).eq(bare.iter().map(|walk| &walk.vertices)));
        prop_assert!(bare.iter().all(|walk| walk.edges.is_empty()));
        let mut distinct = BTreeSet::new();
        for walk in found.iter() {
            prop_assert_eq!(walk.edges.len(), steps.len());
            for (at, (edge, step)) in walk.edges.iter().zip(steps).enumerate() {
                prop_assert_eq!([edge.from, edge.to], [walk.vertices[at], walk.vertices[at + 1]]);
                prop_assert_eq!(walk.direction(at), Some(edge.direction));
                let allowed = match step.hop.direction {
                    HopDirection::Out => edge.direction == Direction::Out,
                    HopDirection::In => edge.direction == Direction::In,
                    HopDirection::Both => true,
                };
                prop_assert!(allowed, "{:?} along {}", edge, step.hop);
            }
            prop_assert!(distinct.insert((&walk.vertices, &walk.edges)), "twice: {:?}", walk);
        }
        let described = self.query().describe_walks(&found, &[]).await.unwrap();
        let edges = found.iter().flat_map(|walk| &walk.edges);
        prop_assert!(edges.clone().all(|edge| described.edge(edge).is_some()));
        Ok(())
    }

    async fn check_shortest_paths(&self, random: &mut SplitMix64) -> Checked {
        for _ in 0..12 {
            let ends = self.some_vertices(random, 2);
            let (Step { hop, oracle }, known) = self.random_step(random);
            if !known {
                continue;
            }
            let depth_max = random.below(7) as usize;
            let length = self.oracle.shortest_path_length(ends[0], ends[1], &oracle).filter(|it| *it <= depth_max);
            let from = self.ids[ends[0]];
            let to = self.ids[ends[1]];
            let asked = PathQuery { from, to, hop: hop.clone(), depth_max, edges: false, limits: Default::default() };
            let path = self.query().shortest_path(asked).await.unwrap().into_path();
            let path: Option<Vec<_>> = path.map(|path| path.vertices.iter().map(|id| self.vertices[id]).collect());
            prop_assert_eq!(path.as_ref().map(|path| path.len() - 1), length, "{:?} {} {}", &ends, hop, depth_max);
            if let Some(path) = path {
                prop_assert_eq!((path.first(), path.last()), (ends.first(), ends.last()));
                let real = path.windows(2).all(|edge| self.oracle.neighbours(edge[0], &oracle).contains(&edge[1]));
                prop_assert!(real, "{:?} is not a path along {}", path, hop);
            }
        }
        Ok(())
    }

    async fn check_neighbourhoods(&self, random: &mut SplitMix64) -> Checked {
        for _ in 0..6 {
            let centre = random.below(self.ids.len() as u64) as usize;
            let (Step { hop, oracle }, known) = self.random_step(random);
            if !known {
                continue;
            }
            let depth = random.below(4) as usize;
            let reached = self.query().neighborhood(&[self.ids[centre]], &hop, depth).await.unwrap();
            prop_assert_eq!(self.set(&reached.depths[0]), BTreeSet::from([centre]));
            let found: usize = reached.depths[1..].iter().map(Frontier::len).sum();
            prop_assert_eq!(found, self.oracle.neighbourhood_count(centre, &oracle, depth));
        }
        Ok(())
    }
}

fn shown(steps: &[Step]) -> String {
    steps.iter().map(|step| step.hop.to_string()).collect::<Vec<_>>().join(" | ")
}

async fn check(case: Case) -> Checked {
    let Some(pair) = Pair::load(&case).await? else { return Ok(()) };
    let mut random = SplitMix64::new(case.seed ^ 0x5eed);
    pair.check_vertices().await?;
    pair.check_neighbours(&mut random).await?;
    pair.check_edges().await?;
    pair.check_traversals(&mut random).await?;
    pair.check_paths(&mut random).await?;
    pair.check_shortest_paths(&mut random).await?;
    pair.check_neighbourhoods(&mut random).await
}

#[test]
fn every_answer_on_random_graphs_is_the_oracles() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = ProptestConfig { cases: 40, failure_persistence: None, max_shrink_iters: 60, ..Default::default() };
    proptest!(config, |(case in cases())| runtime.block_on(check(case))?);
}

#[test]
fn what_contradicts_the_graph_is_rejected() {
    let case = Case {
        limits: LabelledLimits::default(),
        seed: 1,
        gremlin: true,
        order: VertexOrder::Keys,
        segments: SegmentSettings::with_list_blocks(512),
        index_in_memory: true,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let pair = Arc::new(runtime.block_on(Pair::load(&case)).unwrap().unwrap());
    let kind = |hop: &str| {
        let hop: Hop = hop.parse().unwrap();
        let answer = runtime.block_on(pair.query().neighbors(&pair.ids, &hop));
        let traversal = Traversal { starts: pair.ids.clone(), hops: vec![hop], ..Default::default() };
        let traversed = runtime.block_on(pair.query().traverse(traversal)).map_err(|error| error.kind()).err();
        assert_eq!(answer.map_err(|error| error.kind()).err(), traversed);
        traversed
    };
    assert_eq!(kind("out:e0"), None);
    assert_eq!(kind("out:none"), Some(ErrorKind::NotFound));
    assert_eq!(kind("out:e0[age=old]"), Some(ErrorKind::Invalid));
    assert_eq!(kind("out[height>1]"), Some(ErrorKind::NotFound));
    let unknown = runtime.block_on(pair.query().vertex("None", 1)).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound, "{unknown}");
    let other = match &pair.oracle.vertices[0].key {
        oracle::Key::Int(_) => Key::String("1".into()),
        oracle::Key::Text(_) => Key::Int64(1),
    };
    let wrong = runtime.block_on(pair.query().vertex(&pair.oracle.vertices[0].label, other)).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Invalid, "{wrong}");
}
