//! What a batch is rejected for, which operation the rejection names, and numbers that must not change on the way.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use hoplake::{
    Batch, Commit, Difference, EdgeKey, Error, ErrorKind, Graph, Key, LoadOptions, LoadPhase, LoadProgress, Operation,
    Properties, Reason, Store, Value, VertexRef, load_with,
};

use super::commits::loaded;

fn vertex(label: &str, key: impl Into<Key>, properties: Properties) -> Operation {
    Operation::UpsertVertex { vertex: VertexRef::new(label, key), properties, replace: false }
}

fn edge(label: &str, target: VertexRef, key: Option<Value>) -> Operation {
    let key = key.map(|value| EdgeKey { property: "id".into(), value });
    let source = VertexRef::new("vertex", 1);
    let properties = Properties::new();
    Operation::UpsertEdge { label: label.into(), source, target, key, properties, replace: false }
}

async fn apply(graph: &mut Graph, operations: impl IntoIterator<Item = Operation>) -> Result<Commit, Error> {
    let mut commit = graph.begin();
    for operation in operations {
        commit.push(operation);
    }
    commit.commit().await?;
    graph.refresh().await?;
    Ok(graph.begin())
}

async fn rejected(graph: &mut Graph, operations: Vec<Operation>) -> (Option<usize>, Option<Reason>, String) {
    let error = apply(graph, operations).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    (error.operation(), error.reason(), error.to_string())
}

async fn property(graph: &Graph, key: i64, name: &str) -> Value {
    let mut query = graph.query();
    let found = query.vertices(&[("vertex", Key::Int64(key))]).await.unwrap();
    let rows = query.properties(&found.into_iter().flatten().collect(), &[name.to_owned()]).await.unwrap();
    Value::at(rows[0].batch.column_by_name(name).unwrap(), 0)
}

#[tokio::test]
async fn a_rejection_names_the_operation_even_if_another_is_equal() {
    let mut graph = loaded("memory://batches/numbers").await;
    let missing = || edge("edge", VertexRef::new("vertex", 99), None);
    let (number, reason, message) =
        rejected(&mut graph, vec![edge("edge", VertexRef::new("vertex", 2), None), missing()]).await;
    assert_eq!((number, reason), (Some(1), Some(Reason::MissingEnd)));
    assert_eq!(message, "upsert of edge vertex:1 -edge-> vertex:99 is refused: there is no vertex vertex:99");
    // A key and a value of a wrong type are of an operation, too.
    let (number, ..) =
        rejected(&mut graph, vec![vertex("vertex", 3, Properties::new()), vertex("vertex", "x", Properties::new())])
            .await;
    assert_eq!(number, Some(1));
    let wrong = vec![vertex("vertex", 3, [("p", 1)].into()), vertex("vertex", 4, [("p", "x")].into())];
    let (number, _, message) = rejected(&mut graph, wrong).await;
    assert_eq!(number, Some(1), "{message}");
}

#[tokio::test]
async fn ends_are_made_of_labels_that_the_batch_introduces() {
    let mut graph = loaded("memory://batches/introduced").await;
    let make = |operations| Batch { operations, create_missing: true, ..Batch::default() };
    let town = || edge("livesIn", VertexRef::new("Town", 5), None);
    let error = graph.apply(make(vec![town()])).await.unwrap_err();
    assert!(error.to_string().ends_with("the graph has no vertex label Town"), "{error}");
    // The order within a batch means nothing.
    graph.apply(make(vec![town(), vertex("Town", 6, Properties::new())])).await.unwrap();
    graph.refresh().await.unwrap();
    let found = graph.query().vertices(&[("Town", Key::Int64(5)), ("Town", Key::Int64(6))]).await.unwrap();
    assert!(found.iter().all(Option::is_some));
}

#[tokio::test]
async fn a_strict_batch_adds_no_names() {
    let mut graph = loaded("memory://batches/strict").await;
    apply(&mut graph, [vertex("vertex", 1, [("age", 31)].into())]).await.unwrap();
    let strict = |operation| Batch {
        operations: vec![vertex("vertex", 2, Properties::new()), operation],
        strict: true,
        ..Batch::default()
    };
    for (operation, why) in [
        (vertex("Vertex", 1, Properties::new()), "the graph has no vertex label Vertex"),
        (vertex("vertex", 1, [("aeg", 32)].into()), "vertex has no property aeg"),
        (edge("egde", VertexRef::new("vertex", 2), None), "the graph has no edges egde from vertex to vertex"),
        (edge("edge", VertexRef::new("vertex", 2), Some(Value::Int64(1))), "edge has no property id"),
    ] {
        let error = graph.apply(strict(operation)).await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!((error.operation(), error.reason()), (Some(1), Some(Reason::Undeclared)));
    }
    graph.apply(strict(vertex("vertex", 1, [("age", 32)].into()))).await.unwrap();
}

const INEXACT: i64 = (1 << 53) + 1;

#[tokio::test]
async fn int64_becomes_float64_only_if_every_value_stays_exact() {
    let mut graph = loaded("memory://batches/widening").await;
    let half = |key| vertex("vertex", key, [("score", 0.5)].into());
    // Beyond what float64 holds, in a version before.
    apply(&mut graph, [vertex("vertex", 1, [("score", INEXACT), ("other", 1 << 53)].into())]).await.unwrap();
    let (number, reason, message) = rejected(&mut graph, vec![vertex("vertex", 3, Properties::new()), half(2)]).await;
    assert_eq!((number, reason), (Some(1), Some(Reason::Inexact)));
    assert!(message.contains("property score of vertex is int64 with values such as 9007199254740993"), "{message}");
    assert_eq!(property(&graph, 1, "score").await, Value::Int64(INEXACT));
    // In the same batch, before and after.
    for (first, second) in [(Value::Int64(INEXACT), Value::Float64(0.5)), (Value::Float64(0.5), Value::Int64(INEXACT))]
    {
        let operations =
            vec![vertex("vertex", 2, [("new", first)].into()), vertex("vertex", 3, [("new", second)].into())];
        let (number, reason, message) = rejected(&mut graph, operations).await;
        assert_eq!(reason, Some(Reason::Inexact), "{message}");
        assert!(message.ends_with("which cannot hold 9007199254740993 exactly"), "{message}");
        assert!(number.is_some());
    }
    // Up to 2^53 all is exact, and stays what it was. It takes a look at the ends of tables: one wave.
    let batch = |value: Value| {
        let vertex = VertexRef::new("vertex", 2);
        let properties = [("other", value)].into();
        Batch { operations: vec![Operation::UpsertVertex { vertex, properties, replace: true }], ..Batch::default() }
    };
    graph.apply(batch(Value::Int64(1))).await.unwrap();
    let usual = graph.apply(batch(Value::Int64(2))).await.unwrap().cost.waves;
    let widening = graph.apply(batch(Value::Float64(0.5))).await.unwrap().cost.waves;
    // None if all of these ends are in memory already.
    assert!((usual..=usual + 1).contains(&widening), "{usual} waves, and {widening} to widen");
    graph.refresh().await.unwrap();
    assert_eq!(property(&graph, 1, "other").await, Value::Float64((1_i64 << 53) as f64));
    let (_, reason, _) = rejected(&mut graph, vec![vertex("vertex", 1, [("other", INEXACT)].into())]).await;
    assert_eq!(reason, Some(Reason::Inexact));
}

#[tokio::test]
async fn batches_that_share_a_version_do_not_round_each_others_integers() {
    let graph = loaded("memory://batches/together").await;
    let batch = |key, value: Value| Batch {
        operations: vec![vertex("vertex", key, [("p", value)].into())],
        ..Batch::default()
    };
    graph.apply(batch(1, Value::Int64(1))).await.unwrap();
    // Whichever comes first, a float64 that would round the other's integer is rejected, or the integer is.
    let (a, b) = tokio::join!(graph.apply(batch(1, Value::Int64(INEXACT))), graph.apply(batch(2, Value::Float64(0.5))));
    assert!(a.is_ok() != b.is_ok(), "{a:?}, {b:?}");
    let mut graph = graph.clone();
    graph.refresh().await.unwrap();
    let expected = if a.is_ok() { Value::Int64(INEXACT) } else { Value::Float64(1.0) };
    assert_eq!(property(&graph, 1, "p").await, expected);
}

#[tokio::test]
async fn keys_of_edges_order_floats_as_documented() {
    let mut graph = loaded("memory://batches/floats").await;
    let keyed = |value: f64| edge("paid", VertexRef::new("vertex", 2), Some(Value::Float64(value)));
    for (a, b) in [(0.0, -0.0), (f64::NAN, -f64::NAN)] {
        apply(&mut graph, [keyed(a), keyed(b)]).await.unwrap();
    }
    // Each was one edge, twice in a batch.
    apply(&mut graph, [keyed(0.0), keyed(f64::NAN), keyed(1.0)]).await.unwrap();
    // A later batch means the same edges.
    apply(&mut graph, [keyed(-0.0), keyed(f64::NAN)]).await.unwrap();
    let hop = "out:paid".parse().unwrap();
    let mut query = graph.query();
    let start = query.vertices(&[("vertex", Key::Int64(1))]).await.unwrap()[0].unwrap();
    assert_eq!(query.neighbors(&[start], &hop).await.unwrap().len(), 3);
    for (condition, edges) in [("id=0", 1), ("id=NaN", 1), ("id>1", 1), ("id<=0", 1), ("id!=0", 2)] {
        let hop = format!("out:paid[{condition}]").parse().unwrap();
        assert_eq!(query.neighbors(&[start], &hop).await.unwrap().len(), edges, "{condition}");
    }
}

#[tokio::test]
async fn a_difference_is_one_of_bits() {
    let mut graph = loaded("memory://batches/diff").await;
    let row = |zero: f64| vertex("vertex", 1, [("zero", zero), ("nan", f64::NAN)].into());
    apply(&mut graph, [row(0.0)]).await.unwrap();
    let before = graph.clone();
    apply(&mut graph, [row(0.0)]).await.unwrap();
    assert!(before.diff(&graph, &[]).unwrap().next_page().await.unwrap().is_none_or(|page| page.is_empty()));
    apply(&mut graph, [row(-0.0)]).await.unwrap();
    let page = before.diff(&graph, &[]).unwrap().next_page().await.unwrap().unwrap();
    let [Difference::Vertex { before: Some(before), after: Some(after), .. }] = &page[..] else { panic!("{page:?}") };
    assert!(!before["zero"].is_same(&after["zero"]) && before["nan"].is_same(&after["nan"]));
    assert_eq!(property(&graph, 1, "zero").await.to_string(), "-0.0");
}

#[tokio::test]
async fn labels_with_colons_and_commas_are_addressed() {
    let mut graph = loaded("memory://batches/colons").await;
    apply(&mut graph, [vertex("a:b", 7, [("name", "x,y]z")].into()), edge("r:1,2", VertexRef::new("a:b", 7), None)])
        .await
        .unwrap();
    let start = ["vertex:1".parse().unwrap()];
    let mut query = graph.query();
    let vertices = query.named(&start).await.unwrap();
    for (hop, edges) in [
        ("out:\"r:1,2\"", 1),
        ("out:\"r:1,2\"[name=\"x,y]z\"]", 1),
        ("out:\"r:1,2\",edge", 2),
        ("out:\"r:1,2\"[name='x']", 0),
    ] {
        assert_eq!(query.neighbors(&vertices, &hop.parse().unwrap()).await.unwrap().len(), edges, "{hop}");
    }
    let named: hoplake::StartKey = "\"a:b\":7".parse().unwrap();
    assert_eq!((&named, named.to_string()), (&hoplake::StartKey::key("a:b", "7"), "\"a:b\":7".to_owned()));
    assert_eq!(query.named(&[named]).await.unwrap().len(), 1);
}

/// Runs a load of the same files to its end as soon as the other has begun.
struct Meanwhile {
    store: Store,
    file: PathBuf,
    done: AtomicBool,
}

impl LoadProgress for Meanwhile {
    fn begin(&self, step: LoadPhase, _: u64) {
        if step == LoadPhase::Edges && !self.done.swap(true, Ordering::SeqCst) {
            let load = load_with(self.store.clone(), LoadOptions::from_paths([&self.file]), Arc::new(()));
            tokio::runtime::Handle::current().block_on(load).unwrap();
        }
    }

    fn advance(&self, _: u64) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_first_loads_the_slower_one_hears_of_the_faster() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "1,2\n").unwrap();
    let store = Store::open("memory://batches/two-loads").unwrap();
    let progress = Arc::new(Meanwhile { store: store.clone(), file: file.clone(), done: AtomicBool::new(false) });
    let error = load_with(store, LoadOptions::from_paths([file]), progress).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Conflict, Some(Reason::Overtaken)), "{error}");
    let said = "another writer changed memory://batches/two-loads first, in version 1; nothing of this is visible";
    assert_eq!(error.to_string(), said);
}
