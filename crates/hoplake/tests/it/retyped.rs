//! A property without a remaining value takes another type: between any two types, however its values were deleted, and never while a
//! value remains.

use std::sync::Arc;

use futures::future::join_all;
use hoplake::{
    Batch, CompactionSettings, Condition, Difference, Error, ErrorKind, ExportFormat, ExportOptions, Graph,
    IndexSettings, Key, LoadOptions, Name, OpenSettings, Operation, Properties, ScalarType, ScanRequest, Store, Value,
    VertexRef,
};
use object_store::memory::InMemory;

use super::{commits::loaded, graphs::graph_at};

const SCALARS: [ScalarType; 6] = [
    ScalarType::Bool,
    ScalarType::Int64,
    ScalarType::Float64,
    ScalarType::String,
    ScalarType::Date,
    ScalarType::Timestamp,
];

/// A value of each type, and how a condition writes it if it can.
fn samples() -> Vec<(Value, Option<&'static str>)> {
    let scalar = |kind| match kind {
        ScalarType::Bool => (Value::Bool(true), Some("true")),
        // No float64: a property that becomes one could not keep it.
        ScalarType::Int64 => (Value::Int64(i64::MAX - 1), Some("9223372036854775806")),
        ScalarType::Float64 => (Value::Float64(0.5), Some("0.5")),
        ScalarType::String => (Value::String("2024-02-29".into()), Some("\"2024-02-29\"")),
        ScalarType::Date => (Value::Date(3), Some("1970-01-04")),
        ScalarType::Timestamp => (Value::Timestamp(7_000_000), Some("1970-01-01T00:00:07Z")),
    };
    let lists = SCALARS.map(|kind| (Value::List(vec![scalar(kind).0; 2]), None));
    SCALARS.map(scalar).into_iter().chain(lists).collect()
}

/// A property for each pair of types, with its value before and after.
fn pairs() -> Vec<(String, Value, Value, Option<&'static str>)> {
    let samples = samples();
    let mut pairs = Vec::new();
    for (from, (before, _)) in samples.iter().enumerate() {
        for (to, (after, literal)) in samples.iter().enumerate() {
            pairs.push((format!("p_{from}_{to}"), before.clone(), after.clone(), *literal));
        }
    }
    pairs
}

fn vertex(key: i64) -> VertexRef {
    VertexRef::new("vertex", key)
}

fn upsert(key: i64, properties: Properties) -> Operation {
    Operation::UpsertVertex { vertex: vertex(key), properties, replace: true }
}

fn edge(source: i64, target: i64, properties: Properties) -> Operation {
    let [source, target] = [source, target].map(vertex);
    Operation::UpsertEdge { label: "e".into(), source, target, key: None, properties, replace: true }
}

fn batch(operations: Vec<Operation>) -> Batch {
    Batch { operations, ..Batch::default() }
}

async fn apply(graph: &Graph, operations: Vec<Operation>) -> Result<u64, Error> {
    graph.apply(batch(operations)).await.map(|committed| committed.version)
}

async fn open(store: &Store, version: Option<u64>) -> Graph {
    Graph::open_with(store.clone(), &OpenSettings { version, ..OpenSettings::default() }).await.unwrap()
}

async fn differences(before: &Graph, after: &Graph) -> Vec<Difference> {
    let mut diff = before.diff(after, &[]).unwrap();
    let mut all = Vec::new();
    while let Some(page) = diff.next_page().await.unwrap() {
        all.extend(page);
    }
    all
}

/// The properties of a vertex and of the edges that leave it, without nulls.
async fn properties(graph: &Graph, key: i64) -> (Option<Properties>, Vec<Properties>) {
    // From the version of the load, where no element has a property.
    let mut of_vertex = None;
    let mut of_edges = Vec::new();
    for found in differences(&open(graph.store(), Some(1)).await, graph).await {
        match found {
            Difference::Vertex { vertex: it, after, .. } if it == vertex(key) => of_vertex = after,
            Difference::Edge { source, after: Some(after), .. } if source == vertex(key) => of_edges.push(after),
            _ => {}
        }
    }
    let present = |mut all: Properties| {
        all.retain(|_, value| *value != Value::Null);
        all
    };
    (of_vertex.map(present), of_edges.into_iter().map(present).collect())
}

async fn count(graph: &Graph, condition: &str) -> u64 {
    let request = ScanRequest {
        labels: vec!["vertex".into()],
        condition: Some(condition.parse::<Condition>().unwrap()),
        ..ScanRequest::default()
    };
    graph.query().count_found(&request).await.unwrap_or_else(|error| panic!("{condition}: {error}"))
}

async fn compact(store: &Store) {
    let settings = CompactionSettings { everything: true, ..CompactionSettings::default() };
    Graph::compact(store, &settings).await.unwrap();
}

/// How the values of before were deleted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Deleted {
    /// With their vertex, and the vertex at an end of their edge, in a commit before.
    Before,
    BeforeFromCompacted,
    BeforeAndCompacted,
    /// One by one, in a commit before.
    SetNullBefore,
    /// In the batch that writes the others.
    Now,
    NowFromCompacted,
    SetNullNow,
    /// The same elements have the other values.
    Replaced,
}

const WAYS: [Deleted; 8] = [
    Deleted::Before,
    Deleted::BeforeFromCompacted,
    Deleted::BeforeAndCompacted,
    Deleted::SetNullBefore,
    Deleted::Now,
    Deleted::NowFromCompacted,
    Deleted::SetNullNow,
    Deleted::Replaced,
];

/// Vertex 3 and its edge have the values of before, vertex 5 and its edge those of after.
#[tokio::test(flavor = "multi_thread")]
async fn a_property_without_values_takes_another_type() {
    use Deleted::{
        Before, BeforeAndCompacted, BeforeFromCompacted, Now, NowFromCompacted, Replaced, SetNullBefore, SetNullNow,
    };
    let pairs = pairs();
    let before: Properties = pairs.iter().map(|(name, before, ..)| (Name::from(name), before.clone())).collect();
    let after: Properties = pairs.iter().map(|(name, _, after, _)| (Name::from(name), after.clone())).collect();
    for way in WAYS {
        let name = format!("memory://retyped/{way:?}");
        let graph = loaded(&name).await;
        let store = Store::open(&name).unwrap();
        let old = apply(&graph, vec![upsert(3, before.clone()), edge(3, 2, before.clone())]).await.unwrap();
        if matches!(way, BeforeFromCompacted | NowFromCompacted) {
            compact(&store).await;
        }
        let deletes = match way {
            Before | BeforeAndCompacted | BeforeFromCompacted | Now | NowFromCompacted => {
                vec![Operation::DeleteVertex { vertex: vertex(3) }]
            }
            SetNullBefore | SetNullNow => vec![upsert(3, Properties::new()), edge(3, 2, Properties::new())],
            Replaced => Vec::new(),
        };
        let key = if way == Replaced { 3 } else { 5 };
        let mut writes = vec![upsert(key, after.clone()), edge(key, 2, after.clone())];
        match way {
            Before | BeforeAndCompacted | BeforeFromCompacted | SetNullBefore => {
                apply(&graph, deletes).await.unwrap();
            }
            _ => drop(writes.splice(0..0, deletes)),
        }
        if way == BeforeAndCompacted {
            compact(&store).await;
        }
        let mut reader = graph.clone();
        let new = apply(&graph, writes).await.unwrap_or_else(|error| panic!("{way:?}: {error}"));
        reader.refresh().await.unwrap();
        let expected = (Some(after.clone()), vec![after.clone()]);
        for compacted in [false, true] {
            for graph in [&reader, &open(&store, None).await] {
                assert_eq!(properties(graph, key).await, expected, "{way:?}, compacted: {compacted}");
                for (name, _, _, literal) in &pairs {
                    assert_eq!(count(graph, &format!("{name} is not null")).await, 1, "{way:?} {name}");
                    let others = count(graph, "~key >= 0").await - 1;
                    assert_eq!(count(graph, &format!("{name} is null")).await, others, "{way:?} {name}");
                    if let Some(literal) = literal {
                        assert_eq!(count(graph, &format!("{name} = {literal}")).await, 1, "{way:?} {name}");
                    }
                }
            }
            // What it was before is still there.
            let older = open(&store, Some(old)).await;
            assert_eq!(properties(&older, 3).await, (Some(before.clone()), vec![before.clone()]), "{way:?}");
            let damages = Graph::verify_all(&store, |_| ()).await.unwrap().damages;
            assert!(damages.is_empty(), "{way:?}: {damages:?}");
            exports_what_it_has(&open(&store, None).await).await;
            Graph::create_index(&store, "vertex.p_0_1", &IndexSettings::default()).await.unwrap();
            assert_eq!(count(&open(&store, None).await, "p_0_1 > 7").await, 1, "{way:?}");
            Graph::drop_index(&store, "vertex.p_0_1").await.unwrap();
            assert!(open(&store, None).await.version() > new);
            compact(&store).await;
            reader.refresh().await.unwrap();
        }
    }
}

async fn exports_what_it_has(graph: &Graph) {
    let folder = tempfile::tempdir().unwrap();
    let target = Store::open(folder.path().to_str().unwrap()).unwrap();
    graph.query().export(&target, &ExportOptions::new(ExportFormat::Parquet), &|_| ()).await.unwrap();
    let mapping = Some(folder.path().join("mapping.toml"));
    let store = graph_at(InMemory::new());
    let options = LoadOptions { mapping, ..LoadOptions::from_paths::<&str>([]) };
    hoplake::load_with(store.clone(), options, Arc::new(())).await.unwrap();
    let found = differences(graph, &open(&store, None).await).await;
    assert!(found.is_empty(), "{found:?}");
}

/// Rejects a batch, and leaves the graph as it is.
async fn rejected(graph: &Graph, batch: Batch, why: &str) -> ErrorKind {
    let before = Graph::newest(graph.store()).await.unwrap().version;
    let error = graph.apply(batch).await.unwrap_err();
    assert!(error.to_string().contains(why), "{error}");
    assert_eq!(Graph::newest(graph.store()).await.unwrap().version, before);
    error.kind()
}

#[tokio::test]
async fn a_property_with_a_value_keeps_its_type() {
    let graph = loaded("memory://retyped/kept").await;
    let text = || Properties::from([("p", "text")]);
    let number = || Properties::from([("p", 1)]);
    let both = vec![upsert(3, text()), upsert(4, text()), edge(3, 4, text()), edge(4, 3, text())];
    apply(&graph, both).await.unwrap();
    let delete = |key| Operation::DeleteVertex { vertex: vertex(key) };
    let unlink = |source, target| {
        let [source, target] = [source, target].map(vertex);
        Operation::DeleteEdge { label: "e".into(), source, target, key: None }
    };
    // A vertex that is changed otherwise keeps its value.
    let touched =
        |key| Operation::UpsertVertex { vertex: vertex(key), properties: [("q", true)].into(), replace: false };
    let touched_edge = |source, target| {
        let [source, target] = [source, target].map(vertex);
        let properties = [("q", true)].into();
        Operation::UpsertEdge { label: "e".into(), source, target, key: None, properties, replace: false }
    };
    for operations in [
        vec![upsert(5, number())],
        vec![delete(3), upsert(5, number())],
        vec![delete(3), touched(4), upsert(5, number())],
        vec![upsert(3, number())],
        vec![edge(1, 2, number())],
        vec![unlink(3, 4), edge(1, 2, number())],
        vec![unlink(3, 4), touched_edge(4, 3), edge(1, 2, number())],
        // Values of two types in one batch.
        vec![delete(3), delete(4), upsert(5, text()), upsert(6, number())],
        vec![delete(3), delete(4), upsert(5, number()), upsert(6, text())],
        vec![delete(3), delete(4), upsert(5, number()), upsert(6, [("p", true)].into())],
        vec![delete(3), delete(4), edge(1, 2, number()), edge(2, 1, text())],
    ] {
        let kind = rejected(&graph, batch(operations.clone()), "property p of").await;
        assert_eq!(kind, ErrorKind::Invalid, "{operations:?}");
    }
    apply(&graph, vec![unlink(3, 4), unlink(4, 3), edge(1, 2, number())]).await.unwrap();
    apply(&graph, vec![delete(3), delete(4), upsert(5, number())]).await.unwrap();
    assert!(Graph::verify_all(graph.store(), |_| ()).await.unwrap().damages.is_empty());
}

/// An empty list shows no type, and waits for a value that does, wherever that comes.
#[tokio::test]
async fn an_empty_list_takes_the_type_of_another_value() {
    let graph = loaded("memory://retyped/empty").await;
    let list = |items: &[&str]| Properties::from([("p", Value::List(items.iter().map(|it| (*it).into()).collect()))]);
    for keys in [[5, 6], [6, 5]] {
        apply(&graph, vec![upsert(3, [("p", 1)].into())]).await.unwrap();
        let delete = || Operation::DeleteVertex { vertex: vertex(3) };
        let kind = rejected(&graph, batch(vec![delete(), upsert(5, list(&[]))]), "property p of").await;
        assert_eq!(kind, ErrorKind::Invalid);
        let [empty, full] = keys.map(|key| upsert(key, list(if key == keys[0] { &[] } else { &["a"] })));
        apply(&graph, vec![delete(), empty, full]).await.unwrap();
        let newest = open(&graph.store().clone(), None).await;
        for key in keys {
            let expected = list(if key == keys[0] { &[] } else { &["a"] });
            assert_eq!(properties(&newest, key).await.0.unwrap().get("p"), expected.get("p"), "{keys:?}, {key}");
        }
        apply(&graph, keys.map(|key| Operation::DeleteVertex { vertex: vertex(key) }).to_vec()).await.unwrap();
    }
}

/// Deleted values, of int64 or of a type before it, do not prevent that a property becomes float64.
#[tokio::test]
async fn integers_become_float64_beside_deleted_values() {
    let float = || upsert(5, [("p", 0.5)].into());
    let delete = |key| Operation::DeleteVertex { vertex: vertex(key) };
    // Beyond 2^53.
    let large = 9_007_199_254_740_993;
    for (name, before, is_indexed) in [
        ("timestamp", Value::Timestamp(large), false),
        ("int64", Value::Int64(large), false),
        ("int64, indexed", Value::Int64(large), true),
    ] {
        let graph = loaded(&format!("memory://retyped/inexact/{name}")).await;
        apply(&graph, vec![upsert(3, [("p", before.clone())].into())]).await.unwrap();
        if is_indexed {
            Graph::create_index(graph.store(), "vertex.p", &IndexSettings::default()).await.unwrap();
        }
        apply(&graph, vec![delete(3)]).await.unwrap();
        if name == "timestamp" {
            // A value that remains, next to which those of the old type say nothing.
            apply(&graph, vec![upsert(4, [("p", 1)].into())]).await.unwrap();
        }
        apply(&graph, vec![float()]).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let newest = open(&graph.store().clone(), None).await;
        assert_eq!(count(&newest, "p = 0.5").await, 1, "{name}");
        assert!(Graph::verify_all(graph.store(), |_| ()).await.unwrap().damages.is_empty(), "{name}");
    }
    let graph = loaded("memory://retyped/inexact/kept").await;
    apply(&graph, vec![upsert(3, [("p", large)].into())]).await.unwrap();
    rejected(&graph, batch(vec![float()]), "which float64 might not hold exactly").await;
}

#[tokio::test]
async fn a_property_with_an_index_keeps_its_type() {
    let graph = loaded("memory://retyped/indexed").await;
    let store = graph.store().clone();
    apply(&graph, vec![upsert(3, [("p", "text")].into())]).await.unwrap();
    Graph::create_index(&store, "vertex.p", &IndexSettings::default()).await.unwrap();
    let writes = || batch(vec![Operation::DeleteVertex { vertex: vertex(3) }, upsert(4, [("p", 1)].into())]);
    let kind = rejected(&graph, writes(), "drop the index vertex.p").await;
    assert_eq!(kind, ErrorKind::Invalid);
    Graph::drop_index(&store, "vertex.p").await.unwrap();
    graph.apply(writes()).await.unwrap();
    Graph::create_index(&store, "vertex.p", &IndexSettings::default()).await.unwrap();
    assert_eq!(count(&open(&store, None).await, "p = 1").await, 1);
    assert!(Graph::verify_all(&store, |_| ()).await.unwrap().damages.is_empty());
}

/// Another process sets a value of the old type after the batch's base, or at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_another_writer_is_never_lost() {
    let text = |key| upsert(key, [("p", "text")].into());
    let number = |key| upsert(key, [("p", 1)].into());
    for round in 0..8 {
        let name = format!("memory://retyped/writers/{round}");
        let graph = loaded(&name).await;
        let base = apply(&graph, vec![upsert(1, [("p", "text")].into())]).await.unwrap() + 1;
        apply(&graph, vec![upsert(1, Properties::new())]).await.unwrap();
        let other = Graph::open(&name).await.unwrap();
        match round {
            0 => {
                apply(&other, vec![text(8)]).await.unwrap();
                let based = Batch { base: Some(base), ..batch(vec![number(9)]) };
                assert_eq!(rejected(&graph, based, "property p of vertex is string").await, ErrorKind::Invalid);
            }
            1 => {
                apply(&other, vec![number(8)]).await.unwrap();
                let based = Batch { base: Some(base), ..batch(vec![text(9)]) };
                assert_eq!(rejected(&graph, based, "property p of vertex is int64").await, ErrorKind::Invalid);
            }
            _ => {
                // Some of them share a delta, and both processes build on one version.
                let writes = (0..12).map(|at| {
                    let to = if at % 2 == 0 { &graph } else { &other };
                    let operation = if at % 3 == 0 { text(10 + at) } else { number(10 + at) };
                    async move { (at, apply(to, vec![operation]).await) }
                });
                let outcomes = join_all(writes).await;
                let graph = Graph::open(&name).await.unwrap();
                let mut applied = Vec::new();
                for (at, outcome) in outcomes {
                    let (found, _) = properties(&graph, 10 + at).await;
                    match outcome {
                        Ok(_) => {
                            let value = found.unwrap().get("p").cloned();
                            let is_text = matches!(value, Some(Value::String(_)));
                            assert!(value.is_some() && is_text == (at % 3 == 0), "{round}: {at} is {value:?}");
                            applied.push(is_text);
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
                            assert_eq!(found, None);
                        }
                    }
                }
                applied.dedup();
                assert_eq!(applied.len(), 1, "values of two types");
            }
        }
        assert!(Graph::verify_all(graph.store(), |_| ()).await.unwrap().damages.is_empty());
        assert_eq!(graph.query().vertices(&[("vertex", Key::Int64(1))]).await.unwrap().len(), 1);
    }
}
