//! What look-ups, conditions and scans cost, and that a scan stays within its memory.

use std::{fmt::Write, sync::Arc};

use hoplake::{
    Comparison, Condition, Cost, ErrorKind, Graph, Hop, IndexSettings, Limits, LoadOptions, PathQuery, Query,
    Requirement, ScanRequest, SortBy, Store, Traversal, TraversalRequest, Value,
};
use hoplake_testkit::generate::SplitMix64;
use object_store::ObjectStore;

use crate::{
    graphs::load_apart,
    waves::{assert_same, in_parts, open, people},
};

/// Vertices of the label that is scanned.
const THINGS: u64 = 60_000;

/// A label with a property that ascends with the key, one that does not, a short list of values, and long text; its rows are in several
/// row groups, since the load had little memory. Another label has one vertex.
fn things() -> Arc<dyn ObjectStore> {
    things_with(&[])
}

fn things_with(indexes: &[&str]) -> Arc<dyn ObjectStore> {
    let folder = tempfile::tempdir().unwrap();
    let mut random = SplitMix64::new(17);
    let mut file = "~id,~label,made:Long,weight:Long,colour:String,text:String\n".to_owned();
    for thing in 0..THINGS {
        let weight = random.below(1_000_000);
        let colour = ["red", "green", "blue", ""][random.below(4) as usize];
        let text: String = (0..25).map(|_| format!("{:08x}", random.next_u64() as u32)).collect();
        writeln!(file, "{thing},Thing,{},{weight},{colour},{text}", 2 * thing).unwrap();
    }
    writeln!(file, "{THINGS},Shelf,,,red,").unwrap();
    std::fs::write(folder.path().join("things.csv"), file).unwrap();
    let indexes = indexes.iter().map(|name| (*name).to_owned()).collect();
    load_apart(LoadOptions { memory_bytes: 32 << 20, indexes, ..LoadOptions::from_paths([folder.path()]) }).0
}

fn scan(condition: &str) -> ScanRequest {
    let condition = Some(condition).filter(|text| !text.is_empty()).map(|text| text.parse().unwrap());
    ScanRequest { labels: vec!["Thing".into()], condition, ..Default::default() }
}

async fn rows(query: &mut Query, request: &ScanRequest) -> usize {
    let mut scan = query.scan(request).unwrap();
    let mut rows = 0;
    while let Some(found) = query.next_rows(&mut scan).await.unwrap() {
        rows += found.batch.num_rows();
    }
    rows
}

/// Something to ask of a graph that was just opened.
enum Question {
    /// Vertices by key.
    LookUp(&'static [(&'static str, i64)]),
    /// From a start along hops, to these properties if any.
    Hops(&'static [&'static str], Option<&'static [&'static str]>),
    /// Between two vertices.
    Path(&'static str),
    /// Rows of a scan.
    Scan(ScanRequest),
    /// The number of rows.
    Count(ScanRequest),
    /// The rows as a set of vertices.
    Find(ScanRequest),
}

impl Question {
    /// How many vertices it finds.
    async fn ask(&self, query: &mut Query) -> usize {
        match self {
            Self::LookUp(keys) => {
                let keys: Vec<_> = keys.iter().map(|(label, key)| (*label, (*key).into())).collect();
                query.vertices(&keys).await.unwrap().into_iter().flatten().count()
            }
            Self::Hops(hops, select) => {
                let hops = hops.iter().map(|hop| hop.parse().unwrap()).collect();
                let request = TraversalRequest {
                    starts: vec!["P:5".parse().unwrap()],
                    traversal: Traversal { hops, ..Default::default() },
                    select: select.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
                    limit: None,
                };
                query.run(&request).await.unwrap().reached.last().len()
            }
            Self::Path(hop) => {
                let ends = query.vertices(&[("P", 5.into()), ("P", 2_000.into())]).await.unwrap();
                let from = ends[0].unwrap();
                let to = ends[1].unwrap();
                let hop: Hop = hop.parse().unwrap();
                let query = query.shortest_path(PathQuery {
                    from,
                    to,
                    hop,
                    depth_max: 9,
                    edges: false,
                    limits: Default::default(),
                });
                query.await.unwrap().into_path().map_or(0, |path| path.vertices.len())
            }
            Self::Scan(request) => rows(query, request).await,
            Self::Count(request) => query.count_found(request).await.unwrap() as usize,
            Self::Find(request) => query.find(request).await.unwrap().len(),
        }
    }
}

/// Asks each question of a graph that was just opened, with nothing in memory, and compares what it found, its waves, requests and bytes.
async fn each_costs(inner: &Arc<dyn ObjectStore>, questions: Vec<(&str, Question, [u64; 4])>) {
    let mut wrong = String::new();
    for (name, question, expected) in questions {
        let (store, graph) = open(inner, &in_parts()).await;
        store.reset();
        let mut query = graph.query();
        let found = question.ask(&mut query).await as u64;
        assert_same(&store, query.cost());
        let Cost { waves, requests, store_bytes, .. } = query.cost();
        let cost = [found, waves, requests, store_bytes];
        if cost != expected {
            writeln!(wrong, "{name}: {cost:?}, not {expected:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "vertices found, waves, requests, bytes:\n{wrong}");
}

#[tokio::test(start_paused = true)]
async fn look_ups_and_conditions_of_hops_cost_what_they_should() {
    use Question::{Hops, LookUp, Path};
    let questions = vec![
        ("a key", LookUp(&[("P", 5)]), [1, 1, 1, 1373]),
        ("keys of two labels", LookUp(&[("P", 5), ("C", 7), ("P", 2_900)]), [3, 1, 1, 3532]),
        ("an absent key", LookUp(&[("P", 1 << 40)]), [0, 0, 0, 0]),
        ("properties of a vertex", Hops(&[], Some(&["name", "age"])), [1, 2, 3, 5015]),
        ("a hop", Hops(&["out:knows"], None), [8, 2, 2, 1888]),
        ("a property of the edge", Hops(&["out:knows[since > 50]"], None), [2, 3, 4, 4646]),
        ("one of the vertex", Hops(&["out:knows[age > 50]"], None), [4, 3, 4, 5659]),
        ("either", Hops(&["out:knows[since > 50 or age between 20 and 30]"], None), [2, 3, 6, 8417]),
        ("its key", Hops(&["out[~key < 2000]"], None), [4, 3, 7, 4294]),
        (
            "two hops",
            Hops(&["out:knows[weight > 80]", "out:knows[not (name starts with n1)]"], None),
            [13, 5, 7, 22807],
        ),
        ("two hops to properties", Hops(&["out:knows[since < 9]", "out:livesIn"], Some(&["name"])), [4, 5, 7, 8946]),
        ("a path", Path("both:knows[weight > 20]"), [5, 9, 19, 212286]),
    ];
    each_costs(&people(), questions).await;
}

#[tokio::test(start_paused = true)]
async fn scans_cost_what_they_should() {
    use Question::{Count, Find, Scan};
    let select = |names: &[&str], request: ScanRequest| {
        Scan(ScanRequest { select: names.iter().map(|name| (*name).to_owned()).collect(), ..request })
    };
    let first = |limit, request| Scan(ScanRequest { limit: Some(limit), ..request });
    let heaviest = vec![SortBy { property: "weight".into(), descending: true }];
    let questions = vec![
        ("all", Count(scan("")), [60000, 0, 0, 0]),
        ("a value outside of all bounds", Scan(scan("made < 0")), [0, 1, 1, 22127]),
        ("a value within the bounds of one row group", Scan(scan("made = 60000")), [1, 3, 3, 23034]),
        ("a value within those of all", Scan(scan("weight = 5")), [0, 2, 2, 48918]),
        ("a range", Scan(scan("made between 60000 and 60200")), [101, 3, 3, 23034]),
        ("a range, and long text", select(&["text"], scan("made between 60000 and 60200")), [101, 3, 4, 56333]),
        ("few scattered ones, and long text", select(&["text"], scan("weight < 100")), [8, 3, 14, 274739]),
        ("two columns", Count(scan("weight < 1000 and colour in (red, blue)")), [33, 2, 8, 259044]),
        ("absent values", Find(scan("colour is null")), [15112, 2, 8, 95253]),
        ("the first", first(10, scan("")), [10, 2, 2, 22167]),
        ("the first red ones", first(10, scan("colour = red")), [10, 3, 3, 27410]),
        (
            "the heaviest red ones",
            first(3, ScanRequest { order_by: heaviest, ..scan("colour = red") }),
            [3, 3, 15, 269293],
        ),
        ("all labels", Count(ScanRequest { labels: vec![], ..scan("colour = red") }), [14887, 4, 10, 95891]),
    ];
    each_costs(&things(), questions).await;
}

/// The rows of a label, decoded, are some twenty megabytes.
#[tokio::test(start_paused = true)]
async fn a_scan_stays_within_its_memory() {
    let inner = things();
    let select: Vec<String> = ["made", "weight", "colour", "text"].map(str::to_owned).to_vec();
    let sorted = vec!["text".parse().unwrap()];
    let all = ScanRequest { select: select.clone(), ..scan("") };
    let some = ScanRequest { select: select.clone(), ..scan("weight > 500000 and text contains a0") };
    let first = ScanRequest { select, order_by: sorted, limit: Some(50), ..scan("") };
    for (request, found) in [(all, THINGS as usize), (some, 16_205), (first, 50)] {
        let (_, graph) = open(&inner, &in_parts()).await;
        let mut query = graph.query();
        query.limit(&Limits { memory_bytes_max: Some(2 << 20), ..Default::default() });
        assert_eq!(rows(&mut query, &request).await, found);
        assert!(query.memory().peak() <= 2 << 20, "{}", query.memory().peak());
        assert_eq!(query.memory().used(), 0);
    }
    // What does not fit is rejected, and gives back what it had.
    let (_, graph) = open(&inner, &in_parts()).await;
    let mut query = graph.query();
    query.limit(&Limits { memory_bytes_max: Some(2 << 20), ..Default::default() });
    let all_sorted = ScanRequest { select: vec!["text".into()], order_by: vec!["text".parse().unwrap()], ..scan("") };
    let mut sorted = query.scan(&all_sorted).unwrap();
    let rejected = query.next_rows(&mut sorted).await.unwrap_err();
    assert_eq!(rejected.kind(), ErrorKind::Limit, "{rejected}");
    drop(sorted);
    assert_eq!(query.memory().used(), 0);
}

/// As a list, the vertices would take half a megabyte.
#[tokio::test(start_paused = true)]
async fn vertices_that_are_found_take_a_bit_each_when_they_are_many() {
    let (_, graph) = open(&things(), &in_parts()).await;
    let mut query = graph.query();
    query.limit(&Limits { memory_bytes_max: Some(2 << 20), ..Default::default() });
    let found = query.find(&scan("")).await.unwrap();
    assert_eq!((found.len() as u64, found.bytes()), (THINGS, THINGS.div_ceil(64) * 8));
    assert_eq!(query.memory().used(), found.bytes());
    let both = ScanRequest { labels: vec!["Shelf".into(), "Thing".into()], limit: Some(100), ..scan("") };
    let some = query.find(&both).await.unwrap();
    let of_label = |name| some.ordinals(graph.schema().label_id(name).unwrap()).iter().collect::<Vec<_>>();
    assert_eq!((of_label("Shelf"), of_label("Thing")), (vec![0], (0..99).collect()));
    drop((found, some));
    assert_eq!(query.memory().used(), 0);
}

/// Each of the vertices that an index leads to is on a page of its own, of some hundred rows.
#[tokio::test(start_paused = true)]
async fn scattered_vertices_stay_within_the_memory_of_the_query() {
    let inner = things_with(&["Thing.weight"]);
    let request = ScanRequest { select: vec!["text".into()], ..scan("weight < 12000") };
    let (_, graph) = open(&inner, &in_parts()).await;
    let mut query = graph.query();
    let found = rows(&mut query, &request).await;
    assert!((600..800).contains(&found) && query.memory().peak() > 3 << 20, "{found}, {}", query.memory().peak());
    query.limit(&Limits { memory_bytes_max: Some(2 << 20), ..Default::default() });
    assert_eq!(rows(&mut query, &request).await, found);
    assert_eq!(query.memory().used(), 0);
}

/// A label of vertices with a number, and another with a list of the same name and a text.
async fn two_labels(url: &str, vertices: u64) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    let mut file = "~id,~label,n:Long\n".to_owned();
    (0..vertices).for_each(|key| writeln!(file, "{key},Thing,1").unwrap());
    std::fs::write(folder.path().join("things.csv"), file).unwrap();
    let shelves = format!("~id,~label,n:Long[],only:String\n{vertices},Shelf,1;2,x\n{},Shelf,3,\n", vertices + 1);
    std::fs::write(folder.path().join("shelves.csv"), shelves).unwrap();
    hoplake::load(url, LoadOptions::from_paths([folder.path()])).await.unwrap();
    Graph::open(url).await.unwrap()
}

#[tokio::test]
async fn a_condition_on_what_a_label_lacks_holds_for_its_changed_vertices_too() {
    let url = "memory://scans/lacking";
    two_labels(url, 10).await.begin().upsert_vertex("Thing", 3, [("n", 2)]).commit().await.unwrap();
    let graph = Graph::open(url).await.unwrap();
    for (condition, expected) in [("only = x", 1), ("only is null", 11), ("not (only = x)", 0)] {
        let request = ScanRequest { labels: vec![], ..scan(condition) };
        assert_eq!(graph.query().count_found(&request).await.unwrap(), expected, "{condition}");
    }
}

#[tokio::test]
async fn labels_and_vertices_are_tested_like_properties() {
    let url = "memory://scans/labels";
    let mut commit = two_labels(url, 10).await.begin();
    for (label, target, key) in [("by", "Thing", 1), ("by", "Thing", 2), ("on", "Shelf", 10), ("on", "Thing", 3)] {
        commit.upsert_edge(label, ("Thing", 0), (target, key), [("n", 1)]);
    }
    commit.commit().await.unwrap();
    let graph = Graph::open(url).await.unwrap();
    let mut query = graph.query();
    let one = query.vertex("Thing", 1).await.unwrap().unwrap();
    let shelf = query.vertex("Shelf", 11).await.unwrap().unwrap();
    let label = |name: &str| Requirement::Compare(Comparison::Equal, name.into());
    let is_shelf = || Condition::vertex_label(label("Shelf"));
    let is_by = || Condition::edge_label(label("by"));
    let zero = query.vertex("Thing", 0).await.unwrap().unwrap();
    for (condition, of_scan, of_hop) in [
        (is_shelf(), 2, 1),
        (is_shelf().negated(), 10, 3),
        (Condition::vertex_in([one, shelf]), 2, 1),
        (Condition::vertex_in([one, shelf]).negated(), 10, 3),
        (Condition::vertex_in([]), 0, 0),
        // No edge was followed to a vertex of a scan, so nothing is known of it.
        (is_by(), 0, 2),
        (is_by().negated(), 0, 2),
        (is_by().and(Condition::vertex_in([one]).negated()), 0, 1),
        (is_shelf().or(Condition::vertex_in([one])), 3, 2),
    ] {
        let request = ScanRequest { labels: vec![], condition: Some(condition.clone()), ..ScanRequest::default() };
        let hop = Hop::default().such_that(condition.clone());
        let found = query.count_found(&request).await.unwrap();
        let edges = query.neighbors(&[zero], &hop).await.unwrap().len();
        assert_eq!((found, edges), (of_scan, of_hop), "{condition}");
    }
    let wrong = ScanRequest {
        condition: Some(Condition::vertex_label(Requirement::Compare(Comparison::Equal, Value::from(3).into()))),
        ..ScanRequest::default()
    };
    let rejected = query.count_found(&wrong).await.unwrap_err();
    assert!(rejected.to_string().contains("3 is not a value of string"), "{rejected}");
}

#[tokio::test]
async fn a_list_forbids_sorting_only_where_it_is_scanned() {
    let graph = two_labels("memory://scans/lists", 10).await;
    let by_n = |label: &str| {
        let order_by = vec![SortBy { property: "n".into(), descending: true }];
        ScanRequest { labels: vec![label.into()], order_by, ..ScanRequest::default() }
    };
    assert_eq!(rows(&mut graph.query(), &by_n("Thing")).await, 10);
    let Err(rejected) = graph.query().scan(&by_n("Shelf")) else { panic!("lists were sorted") };
    assert!(rejected.to_string().contains("n is a list"), "{rejected}");
}

/// The loaded rows have a number each; the changed ones, a text of some KiB.
#[tokio::test]
async fn changed_rows_that_grew_stay_within_the_memory_of_the_query() {
    const VERTICES: u64 = 6_000;
    let url = "memory://scans/grown";
    let graph = two_labels(url, VERTICES).await;
    let mut random = SplitMix64::new(5);
    let mut commit = graph.begin();
    for key in 0..VERTICES as i64 {
        let text: String = (0..400).map(|_| format!("{:016x}", random.next_u64())).collect();
        commit.upsert_vertex("Thing", key, [("text", Value::from(text)), ("n", Value::from(2))]);
    }
    commit.commit().await.unwrap();
    let graph = Graph::open(url).await.unwrap();
    // All of the row group; and its changed vertices alone, since none of the loaded ones matches the condition.
    for condition in ["n > 0", "n = 2"] {
        let mut query = graph.query();
        query.limit(&Limits { memory_bytes_max: Some(16 << 20), ..Default::default() });
        let request = ScanRequest { select: vec!["text".into()], ..scan(condition) };
        assert_eq!(rows(&mut query, &request).await, VERTICES as usize, "{condition}");
    }
}

/// As above, of those that an index leads to.
#[tokio::test]
async fn changed_rows_that_an_index_leads_to_stay_within_the_memory_of_the_query() {
    const CHANGED: i64 = 700;
    let url = "memory://scans/grown-and-indexed";
    let graph = two_labels(url, 6_000).await;
    let mut random = SplitMix64::new(5);
    let mut commit = graph.begin();
    for key in 0..CHANGED {
        let text: String = (0..400).map(|_| format!("{:016x}", random.next_u64())).collect();
        commit.upsert_vertex("Thing", key, [("text", Value::from(text)), ("n", Value::from(2))]);
    }
    commit.commit().await.unwrap();
    Graph::create_index(&Store::open(url).unwrap(), "Thing.n", &IndexSettings::default()).await.unwrap();
    let graph = Graph::open(url).await.unwrap();
    let mut query = graph.query();
    query.limit(&Limits { memory_bytes_max: Some(4 << 20), ..Default::default() });
    let request = ScanRequest { select: vec!["text".into()], ..scan("n = 2") };
    assert_eq!(rows(&mut query, &request).await, CHANGED as usize);
}
