//! Exports: what comes back is what went out, in each format, and it takes no more memory and requests than it may.

use std::{collections::BTreeSet, fmt::Write, fs, path::Path, sync::Arc};

use hoplake::{
    Batch, CompactionSettings, Difference, EdgeKey, Error, ErrorKind, ExportFormat, ExportOptions, Exported, Graph,
    Limits, LoadOptions, Operation, Properties, Store, Value, VertexRef, load, load_with,
};
use hoplake_testkit::{WaveStore, generate::SplitMix64, snb};
use object_store::memory::InMemory;

use crate::graphs::{graph_at, load_apart};

const MIB: u64 = 1 << 20;

/// The formats that load back.
const FORMATS: [ExportFormat; 4] =
    [ExportFormat::Parquet, ExportFormat::Csv, ExportFormat::Neo4j, ExportFormat::Gremlin];

/// Text that a format may take for something else.
const TEXTS: [&str; 26] = [
    "",
    " ",
    "a",
    " a ",
    "\t",
    "7",
    "07",
    "-0",
    "NaN",
    "null",
    "NULL",
    "\\N",
    "\\",
    "a,b",
    "a;b",
    ";",
    "\"",
    "\"\"",
    "[\"a\"]",
    "[]",
    "a\nb",
    "a\r\nb",
    "ends\r",
    "\u{feff}x",
    "Zoë 東京 🛫",
    "a:b'c{d}(e)",
];

async fn export(graph: &Graph, to: &Path, options: &ExportOptions) -> Result<Exported, Error> {
    let mut query = graph.query();
    query.limit(&Limits { memory_bytes_max: Some(64 * MIB), ..Limits::default() });
    let exported = query.export(&Store::open(to.to_str().unwrap()).unwrap(), options, &|_| ()).await;
    assert!(query.memory().peak() <= 64 * MIB);
    assert_eq!(query.memory().used(), 0);
    exported
}

/// Loads what was exported into a store of its own.
async fn load_back(from: &Path) -> Graph {
    let store = graph_at(InMemory::new());
    let mapping = Some(from.join("mapping.toml"));
    let options = LoadOptions { mapping, memory_bytes: 64 * MIB, ..LoadOptions::from_paths::<&Path>([]) };
    load_with(store.clone(), options, Arc::new(())).await.unwrap_or_else(|error| panic!("{error}"));
    Graph::open_with(store, &Default::default()).await.unwrap()
}

async fn first_difference(one: &Graph, other: &Graph) -> Option<Difference> {
    let mut diff = one.diff(other, &[]).unwrap();
    while let Some(page) = diff.next_page().await.unwrap() {
        if let Some(found) = page.into_iter().next() {
            return Some(found);
        }
    }
    None
}

/// Asserts that two graphs have the same vertices, edges and properties, by their keys.
async fn assert_equal(one: &Graph, other: &Graph, what: &str) {
    assert_eq!(one.schema(), other.schema(), "{what}");
    let found = first_difference(one, other).await;
    assert!(found.is_none(), "{what}: {found:?}");
    let counts = |graph: &Graph| {
        let manifest = graph.manifest().clone();
        (manifest.vertex_counts.iter().map(|count| count.live()).collect::<Vec<_>>(), manifest.edge_counts)
    };
    if one.schema().edge_types().all(|(id, _)| one.is_edge_count_exact(id)) {
        assert_eq!(counts(one), counts(other), "{what}");
    }
}

async fn assert_round_trips(graph: &Graph, formats: &[ExportFormat], file_bytes_max: u64) {
    for format in formats.iter().copied() {
        let folder = tempfile::tempdir().unwrap();
        let options = ExportOptions { file_bytes_max, ..ExportOptions::new(format) };
        let exported = export(graph, folder.path(), &options).await.unwrap_or_else(|error| panic!("{error}"));
        assert!(exported.has_mapping);
        let again = load_back(folder.path()).await;
        assert_equal(graph, &again, &format!("{format:?}")).await;
    }
}

/// Which lists a graph has: any, or those that formats with items as text can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lists {
    Any,
    OfText,
}

fn list_of(mut items: Vec<Value>, lists: Lists) -> Value {
    if lists == Lists::OfText {
        // What formats with items as text reject.
        items.retain(|item| !matches!(item, Value::String(text) if text.ends_with('\\')));
        if items == [Value::String(String::new())] {
            items.clear();
        }
    }
    Value::List(items)
}

/// Values of one type, those at its limits among them.
fn values(kind: usize, lists: Lists, random: &mut SplitMix64) -> Value {
    let mut any = |count: usize| random.below(count as u64) as usize;
    let floats =
        [0.0, -0.0, 0.1, -1.5e300, 5e-324, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 3.0, 1e15, 1e16];
    match kind {
        0 => Value::Bool(any(2) == 0),
        1 => Value::Int64([0, -1, 7, i64::MIN, i64::MAX, 1 << 53][any(6)]),
        2 => Value::Float64(floats[any(floats.len())]),
        3 => Value::String(TEXTS[any(TEXTS.len())].into()),
        4 => Value::Date([0, -1, -4_371_587, 2_932_896, 20_000][any(5)]),
        5 => {
            let all = [0, -1, 1, -4_371_587 * 86_400_000_000, 2_932_897 * 86_400_000_000 - 1, 1_266_161_530_447_000];
            Value::Timestamp(all[any(6)])
        }
        list => {
            let count = any(4);
            let item = |random: &mut SplitMix64| match random.below(5) {
                0 if lists == Lists::Any => Value::Null,
                _ => values(list - 6, lists, random),
            };
            list_of((0..count).map(|_| item(random)).collect(), lists)
        }
    }
}

const NAMES: [&str; 12] =
    ["bool", "key", "source", " led", "a:b", "q\"uo,te", "{x}", "ü\n2", "l 1", "tail ", "target:int", "back\\"];

fn properties(lists: Lists, random: &mut SplitMix64) -> Properties {
    let mut properties = Properties::new();
    for (kind, name) in NAMES.iter().enumerate() {
        if random.below(3) > 0 {
            properties.insert(*name, values(kind, lists, random));
        }
    }
    properties
}

const LABELS: [&str; 3] = ["vertex", "Vertex", "o/dd:l;abel (x) é"];

/// Vertices with keys of integers, and of text.
fn vertex(label: &str, number: u64) -> VertexRef {
    match label == LABELS[2] {
        true => VertexRef::new(label, TEXTS[1 + number as usize]),
        false => VertexRef::new(label, number as i64 - 2),
    }
}

fn any_vertex(random: &mut SplitMix64) -> VertexRef {
    vertex(LABELS[random.below(3) as usize], random.below(TEXTS.len() as u64 - 1))
}

fn edge_types() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let ends = [(0, 0), (0, 2), (2, 1)];
    ends.into_iter().flat_map(|(a, b)| ["e,d\"ge:", "edge"].map(|label| (LABELS[a], label, LABELS[b])))
}

/// One of parallel edges.
fn edge(label: &str, source: VertexRef, target: VertexRef, number: i64, properties: Properties) -> Operation {
    let key = Some(EdgeKey { property: "number".into(), value: Value::Int64(number) });
    Operation::UpsertEdge { label: label.into(), source, target, key, properties, replace: false }
}

/// A graph of all types and odd names, after some commits that added, changed and deleted.
async fn odd_graph(name: &str, lists: Lists, seed: u64) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    fs::write(&file, "1,2\n2,2\n").unwrap();
    load(name, LoadOptions::from_paths([file])).await.unwrap();
    let mut graph = Graph::open(name).await.unwrap();
    let mut random = SplitMix64::new(seed);
    // Types are those of the first values: all properties have one each.
    let mut all = Properties::new();
    for (kind, name) in NAMES.iter().enumerate() {
        let scalar = values(kind % 6, lists, &mut random);
        all.insert(*name, if kind < 6 { scalar } else { list_of(vec![scalar], lists) });
    }
    let mut operations = Vec::new();
    for label in LABELS {
        let properties = all.clone();
        operations.push(Operation::UpsertVertex { vertex: vertex(label, 1), properties, replace: true });
    }
    for (source, label, target) in edge_types() {
        operations.push(edge(label, vertex(source, 1), vertex(target, 1), 0, all.clone()));
    }
    for round in 0..4 {
        for _ in 0..40 {
            let vertex = any_vertex(&mut random);
            let properties = properties(lists, &mut random);
            operations.push(Operation::UpsertVertex { vertex, properties, replace: random.below(2) == 0 });
        }
        for _ in 0..80 {
            let (source, label, target) = edge_types().nth(random.below(6) as usize).unwrap();
            let [source, target] = [source, target].map(|label| vertex(label, random.below(8)));
            let properties = properties(lists, &mut random);
            operations.push(edge(label, source, target, random.below(3) as i64, properties));
        }
        graph.apply(Batch { operations, create_missing: true, ..Default::default() }).await.unwrap();
        // Not of the same batch: edges to deleted vertices would be rejected.
        let delete = |number: u64| Operation::DeleteVertex { vertex: vertex(LABELS[number as usize % 3], number) };
        operations = vec![delete(round), delete(round + 5)];
        graph.apply(Batch { operations, ..Default::default() }).await.unwrap();
        operations = Vec::new();
        graph.refresh().await.unwrap();
    }
    graph
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_of_all_types_and_odd_names_come_back_as_they_were() {
    let of_lists = [(Lists::Any, &FORMATS[..2]), (Lists::OfText, &FORMATS[..])];
    for (seed, (lists, formats)) in (0..3).flat_map(|seed| of_lists.map(|of| (seed, of))) {
        let name = format!("memory://exports/odd/{lists:?}/{seed}");
        let mut graph = odd_graph(&name, lists, seed).await;
        assert_round_trips(&graph, formats, 8 << 30).await;
        let store = Store::open(&name).unwrap();
        Graph::compact(&store, &CompactionSettings { everything: true, ..Default::default() }).await.unwrap();
        graph.refresh().await.unwrap();
        // In many files each.
        assert_round_trips(&graph, formats, 1).await;
    }
}

/// A file of people and a file of their `knows` edges, of the given sizes. Keys are long and nearly alike: a table stores
/// them as differences, and a scan that went by what is stored would take too many at a time.
fn network(people: u64, edges: u64, about_bytes: usize) -> LoadOptions {
    let folder = tempfile::tempdir().unwrap().keep();
    let key = |number: u64| format!("{number:048}");
    let mut text = String::from("id,about\n");
    for number in 0..people {
        writeln!(text, "{},{}", key(number), format!("{number:06x}").repeat(about_bytes / 6)).unwrap();
    }
    fs::write(folder.join("people.csv"), text).unwrap();
    let mut text = String::from("from,to,since\n");
    let mut random = SplitMix64::new(5);
    for _ in 0..edges {
        let [from, to] = [0, 1].map(|_| key(random.below(people)));
        writeln!(text, "{from},{to},{}", random.below(1 << 40)).unwrap();
    }
    fs::write(folder.join("knows.csv"), text).unwrap();
    let mapping = "[[vertices]]\nfile = \"people.csv\"\nlabel = \"Person\"\nkey = \"id\"\n\n[[edges]]\nfile = \"knows.csv\"\n\
                   label = \"knows\"\nsource = \"from\"\nsource_label = \"Person\"\ntarget = \"to\"\ntarget_label = \"Person\"\n\
                   properties = { since = \"int64\" }\n";
    fs::write(folder.join("mapping.toml"), mapping).unwrap();
    LoadOptions { mapping: Some(folder.join("mapping.toml")), ..LoadOptions::from_paths::<&Path>([]) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_of_several_times_the_memory_is_exported_within_it() {
    const MEMORY: u64 = 32 * MIB;
    let options = network(200_000, 300_000, 400);
    let files = options.mapping.clone().unwrap();
    let (inner, _) = load_apart(options);
    fs::remove_dir_all(files.parent().unwrap()).unwrap();
    let graph = Graph::open_with(graph_at(inner), &Default::default()).await.unwrap();
    for format in [ExportFormat::Parquet, ExportFormat::Csv] {
        let folder = tempfile::tempdir().unwrap();
        let mut query = graph.query();
        query.limit(&Limits { memory_bytes_max: Some(MEMORY), ..Limits::default() });
        let target = Store::open(folder.path().to_str().unwrap()).unwrap();
        let exported = query.export(&target, &ExportOptions::new(format), &|_| ()).await.unwrap();
        assert_eq!((exported.vertices, exported.edges), (200_000, 300_000));
        let peak = query.memory().peak();
        assert!(peak > MEMORY / 4 && peak <= MEMORY, "{peak}");
        assert_eq!(query.memory().used(), 0);
        if format == ExportFormat::Csv {
            assert!(exported.bytes > 3 * MEMORY, "{}", exported.bytes);
            // Keys of targets took several passes.
            assert_equal(&graph, &load_back(folder.path()).await, "csv").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_export_reads_long_stretches() {
    let options = network(20_000, 200_000, 300);
    let files = options.mapping.clone().unwrap();
    let (inner, report) = load_apart(options);
    fs::remove_dir_all(files.parent().unwrap()).unwrap();
    let waves = WaveStore::new(inner);
    let graph = Graph::open_with(graph_at(waves.clone()), &Default::default()).await.unwrap();
    waves.reset();
    let target = graph_at(InMemory::new());
    let mut query = graph.query();
    query.export(&target, &ExportOptions::new(ExportFormat::Csv), &|_| ()).await.unwrap();
    let requests = waves.requests();
    let bytes = waves.bytes_read();
    // Keys are read three times: of vertices, of targets and of sources. Lists of incoming edges and look-ups by key are not.
    assert!(requests.total() <= 30 && requests.get == requests.total(), "{requests:?}");
    assert!(bytes <= report.bytes, "{bytes} of {}", report.bytes);
    assert!(query.cost().waves <= 16, "{:?}", query.cost());
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_edges_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let edges: String = (0..3000).map(|number| format!("1,2,{}\n", (number * 7919) % 3000)).collect();
    fs::write(folder.path().join("edges.csv"), format!("source,target,weight\n{edges}")).unwrap();
    load("memory://exports/parallel", LoadOptions::from_paths([folder.path()])).await.unwrap();
    let graph = Graph::open("memory://exports/parallel").await.unwrap();
    let weights = async |graph: &Graph| {
        let mut query = graph.query();
        let start = query.vertex("vertex", 1).await.unwrap().unwrap();
        let edges = query.neighbors(&[start], &"out:edge".parse().unwrap()).await.unwrap();
        let rows = query.edge_properties(&edges, &["weight".to_owned()]).await.unwrap();
        rows.iter().map(|rows| rows.batch.column(0).clone()).collect::<Vec<_>>()
    };
    for format in FORMATS {
        let to = folder.path().join(format!("{format:?}"));
        let options = ExportOptions { file_bytes_max: 1, ..ExportOptions::new(format) };
        export(&graph, &to, &options).await.unwrap();
        assert_eq!(weights(&graph).await, weights(&load_back(&to).await).await, "{format:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_with_something_in_it_is_left_alone() {
    let graph = odd_graph("memory://exports/destination", Lists::OfText, 7).await;
    let folder = tempfile::tempdir().unwrap();
    let csv = ExportOptions::new(ExportFormat::Csv);
    export(&graph, folder.path(), &csv).await.unwrap();
    let rejected = export(&graph, folder.path(), &csv).await.unwrap_err();
    assert_eq!(rejected.kind(), ErrorKind::Conflict);
    assert!(rejected.to_string().contains("is not empty"), "{rejected}");
    // What an earlier export wrote goes, what is somebody else's stays.
    fs::write(folder.path().join("vertices/notes.txt"), "mine").unwrap();
    let files = || -> BTreeSet<String> {
        let entries = ["vertices", "edges"].map(|it| fs::read_dir(folder.path().join(it)).into_iter().flatten());
        entries.into_iter().flatten().map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
    };
    let labels = vec!["Vertex".to_owned()];
    export(&graph, folder.path(), &ExportOptions { overwrite: true, labels, ..csv.clone() }).await.unwrap();
    assert_eq!(files(), ["Vertex.csv", "notes.txt"].map(str::to_owned).into());
    assert_eq!(load_back(folder.path()).await.schema().vertex_labels.len(), 1);
    // One that fails takes the mapping with it.
    let mut query = graph.query();
    query.limit(&Limits { memory_bytes_max: Some(1 << 20), ..Limits::default() });
    let target = Store::open(folder.path().to_str().unwrap()).unwrap();
    let failed = query.export(&target, &ExportOptions { overwrite: true, ..csv.clone() }, &|_| ()).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Limit);
    assert!(!folder.path().join("mapping.toml").exists());
    let own = Store::open("memory://exports/destination").unwrap();
    let rejected = graph.query().export(&own, &ExportOptions { overwrite: true, ..csv.clone() }, &|_| ()).await;
    assert!(rejected.unwrap_err().to_string().contains("has a graph"));
    let unknown = ExportOptions { labels: vec!["Nobody".into()], ..csv };
    let rejected = export(&graph, &folder.path().join("new"), &unknown).await.unwrap_err();
    assert_eq!(rejected.kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn graphml_is_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let edges = folder.path().join("edges.csv");
    fs::write(&edges, "1,2\n").unwrap();
    load("memory://exports/graphml", LoadOptions::from_paths([edges])).await.unwrap();
    let mut graph = Graph::open("memory://exports/graphml").await.unwrap();
    let mut commit = graph.begin();
    let list = Value::List(vec![Value::String("a<b".into()), Value::Null]);
    commit.upsert_vertex("vertex", 1, [("x", Value::Float64(f64::NEG_INFINITY)), ("y", list)]);
    commit.upsert_vertex("B&B", "a \"b\"\n", [("x", Value::String("1\u{1}\r".into()))]);
    commit.commit().await.unwrap();
    graph.refresh().await.unwrap();
    let to = folder.path().join("xml");
    let exported = export(&graph, &to, &ExportOptions::new(ExportFormat::GraphMl)).await.unwrap();
    assert_eq!((exported.vertices, exported.edges, exported.files, exported.has_mapping), (3, 1, 1, false));
    let text = fs::read_to_string(to.join("graph.graphml")).unwrap();
    assert_eq!(exported.bytes, text.len() as u64);
    let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="~label" attr.type="string"/>
<key id="d1" for="node" attr.name="~key" attr.type="string"/>
<key id="d2" for="node" attr.name="x" attr.type="double"/>
<key id="d3" for="node" attr.name="y" attr.type="string"/>
<key id="d4" for="node" attr.name="x (string)" attr.type="string"/>
<key id="d5" for="edge" attr.name="~label" attr.type="string"/>
<graph id="G" edgedefault="directed">
<node id="vertex:1"><data key="d0">vertex</data><data key="d1">1</data><data key="d2">-INF</data><data key="d3">[&quot;a&lt;b&quot;,null]</data></node>
<node id="vertex:2"><data key="d0">vertex</data><data key="d1">2</data></node>
<node id="B&amp;B:a &quot;b&quot;&#10;"><data key="d0">B&amp;B</data><data key="d1">a &quot;b&quot;
</data><data key="d4">1�&#13;</data></node>
<edge source="vertex:1" target="vertex:2"><data key="d5">edge</data></edge>
</graph>
</graphml>
"#;
    assert_eq!(text, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_and_names_of_graphml_are_unique() {
    let folder = tempfile::tempdir().unwrap();
    let edges = folder.path().join("edges.csv");
    fs::write(&edges, "1,2\n").unwrap();
    load("memory://exports/unique", LoadOptions::from_paths([edges])).await.unwrap();
    let mut graph = Graph::open("memory://exports/unique").await.unwrap();
    let mut commit = graph.begin();
    // Keys and names that differ in what XML does not have, and labels that a colon would run into keys.
    let one = || Value::Int64(1);
    for key in ["a\u{1}", "a\u{2}", "a\u{fffe}", "a\u{ffff}", "a\u{fffd}", "a\\u0001", "b:c"] {
        commit.upsert_vertex("T", key, [("n\u{1}", one()), ("n\u{2}", one()), ("n (double)", one())]);
    }
    commit.upsert_vertex("T:b", "c", [("n", one())]);
    commit.upsert_vertex("U", 1, [("n", Value::Float64(0.5)), ("n (string)", one())]);
    commit.upsert_vertex("V", 1, [("n", Value::Bool(true)), ("n (double)", one())]);
    commit.commit().await.unwrap();
    graph.refresh().await.unwrap();
    let to = folder.path().join("xml");
    export(&graph, &to, &ExportOptions::new(ExportFormat::GraphMl)).await.unwrap();
    let text = fs::read_to_string(to.join("graph.graphml")).unwrap();
    for begins in ["<node id=\"", "<key id=\"", "for=\"node\" attr.name=\""] {
        let values = || text.split(begins).skip(1).map(|rest| rest.split('"').next().unwrap());
        assert_eq!(values().collect::<BTreeSet<_>>().len(), values().count(), "{begins}: {text}");
    }
    assert!(text.chars().all(|it| it >= ' ' && !"\u{fffe}\u{ffff}".contains(it) || it == '\n'), "{text:?}");
    // Gremlin's ids have the same prefixes.
    let to = folder.path().join("gremlin");
    export(&graph, &to, &ExportOptions::new(ExportFormat::Gremlin)).await.unwrap();
    assert_equal(&graph, &load_back(&to).await, "Gremlin").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_what_other_loaders_read_or_the_export_fails() {
    let folder = tempfile::tempdir().unwrap();
    let edges = folder.path().join("edges.csv");
    fs::write(&edges, "1,2\n").unwrap();
    let text = |text: &str| Value::String(text.into());
    let cases = [
        (vec![], Some("\"\""), Some("\"\"")),
        (
            vec![text("a;b"), text(""), text("[]"), text("\n\"")],
            Some("\"a;b\u{1f}\u{1f}[]\u{1f}\n\"\"\""),
            Some("\"a\\;b;;[];\n\"\"\""),
        ),
        (vec![Value::Int64(1), Value::Int64(-2)], Some("\"1\u{1f}-2\""), Some("\"1;-2\"")),
        (vec![Value::Bool(true), Value::Bool(false)], Some("\"true\u{1f}false\""), Some("\"true;false\"")),
        (vec![text("a"), Value::Null], None, None),
        (vec![text("")], None, None),
        (vec![text("a\u{1f}b")], None, Some("\"a\u{1f}b\"")),
        (vec![text("a\\"), text("b")], Some("\"a\\\u{1f}b\""), None),
    ];
    for (number, (items, neo4j, gremlin)) in cases.into_iter().enumerate() {
        let name = format!("memory://exports/lists/{number}");
        load(&name, LoadOptions::from_paths([&edges])).await.unwrap();
        let mut graph = Graph::open(&name).await.unwrap();
        let mut commit = graph.begin();
        commit.upsert_vertex("other", 1, [("kind", Value::List(vec![text("x")]))]);
        commit.upsert_vertex(
            "vertex",
            1,
            [("list", Value::List(if items.is_empty() { vec![text("x")] } else { items.clone() }))],
        );
        commit.upsert_vertex("vertex", 2, [("list", Value::List(items.clone()))]);
        commit.commit().await.unwrap();
        graph.refresh().await.unwrap();
        for (format, expected) in [(ExportFormat::Neo4j, neo4j), (ExportFormat::Gremlin, gremlin)] {
            let to = folder.path().join(format!("{number}-{format:?}"));
            let exported = export(&graph, &to, &ExportOptions::new(format)).await;
            let Some(expected) = expected else {
                let why = exported.unwrap_err().to_string();
                assert!(why.contains("row 1, column \"list:") && why.contains("parquet"), "{number} {format:?}: {why}");
                continue;
            };
            exported.unwrap();
            let file = fs::read_to_string(to.join("vertices/vertex.csv")).unwrap();
            assert!(file.ends_with(&format!(",{expected}\n")), "{number} {format:?}: {file:?}");
            assert_equal(&graph, &load_back(&to).await, &format!("{number} {format:?}")).await;
        }
    }
}

async fn real_graph_round_trips(folder: &str) {
    if !snb::available(folder) {
        return;
    }
    let name = format!("memory://exports/{folder}");
    load(&name, LoadOptions::from_paths([snb::extract(folder)])).await.unwrap();
    assert_round_trips(&Graph::open(&name).await.unwrap(), &FORMATS, 8 << 30).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_genuine_sample_comes_back() {
    real_graph_round_trips("snb-sample-903p-genuine").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sf01_comes_back() {
    real_graph_round_trips("snb-sf0.1-datagen").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn air_routes_come_back() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/air-routes");
    load("memory://exports/routes", LoadOptions::from_paths([samples])).await.unwrap();
    assert_round_trips(&Graph::open("memory://exports/routes").await.unwrap(), &FORMATS, 8 << 30).await;
}

/// The comparison of the tests above sees one value that is lost on the way.
#[tokio::test(flavor = "multi_thread")]
async fn empty_text_that_becomes_none_is_a_difference() {
    let graph = odd_graph("memory://exports/tampered", Lists::OfText, 3).await;
    let folder = tempfile::tempdir().unwrap();
    export(&graph, folder.path(), &ExportOptions::new(ExportFormat::Csv)).await.unwrap();
    assert_eq!(first_difference(&graph, &load_back(folder.path()).await).await, None);
    let mapping = folder.path().join("mapping.toml");
    let text = fs::read_to_string(&mapping).unwrap();
    assert!(text.contains("empty_text = true"));
    fs::write(&mapping, text.replace("empty_text = true", "empty_text = false")).unwrap();
    assert!(first_difference(&graph, &load_back(folder.path()).await).await.is_some());
}
