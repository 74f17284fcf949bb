//! Batches by columns, and batches that change an item several times: both are what single operations one after the
//! other are.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};

use hoplake::changes::ChangeReader;
use hoplake::{Batch, Columns, EdgeKey, ErrorKind, Graph, Key, Operation, Properties, Reason, Value, VertexRef};
use hoplake_simulation::{
    batches::Vocabulary,
    columns::{by_columns, shape},
    model::Model,
};
use hoplake_testkit::generate::SplitMix64;

use super::commits::{loaded, read};

/// Upserts of one shape follow each other, so that there is something to make columns of.
fn sorted(mut batch: Batch) -> Batch {
    batch.operations.sort_by_key(|operation| {
        let shape = shape(operation);
        (shape.is_none(), shape)
    });
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_what_their_rows_are() {
    let mut rows = 0;
    for seed in 0..8 {
        let mut vocabulary = Vocabulary { repeats: true, ..Vocabulary::of_keys(40) };
        vocabulary.vertices_max = 40;
        vocabulary.edges_max = 80;
        let mut singles = loaded(&format!("memory://columns/{seed}/singles")).await;
        let mut columns = loaded(&format!("memory://columns/{seed}/columns")).await;
        let mut random = SplitMix64::new(seed);
        let mut model = Model::default();
        for _ in 0..8 {
            // The model takes vertices before edges as well; a run of one shape keeps its order.
            let (batch, mut after) = vocabulary.batch(&mut random, &model);
            let batch = match seed % 2 {
                0 => batch,
                _ => sorted(batch),
            };
            if seed % 2 == 1 {
                if model.rejection(&batch).is_some() {
                    continue;
                }
                after = model.clone();
                after.apply(&batch);
            }
            let as_columns = by_columns(&batch);
            rows += batch.operations.len() - as_columns.operations.len();
            let of_singles = singles.apply(batch.clone()).await.unwrap_or_else(|error| panic!("{error}: {batch:?}"));
            let of_columns = columns.apply(as_columns).await.unwrap_or_else(|error| panic!("{error}: {batch:?}"));
            assert_eq!((of_singles.version, of_singles.counts), (of_columns.version, of_columns.counts));
            singles.refresh().await.unwrap();
            columns.refresh().await.unwrap();
            let found = read(&singles).await;
            let by_columns = read(&columns).await;
            assert_eq!((&found.vertices, &found.edges), (&after.vertices, &after.edges), "seed {seed}, {batch:?}");
            assert_eq!(found, by_columns, "seed {seed}, {batch:?}");
            // Values that a later change of the batch overwrites add no names to the schema; in the model they do.
            model = found;
            assert_eq!(singles.manifest().vertex_counts, columns.manifest().vertex_counts);
            assert_eq!(singles.manifest().edge_counts, columns.manifest().edge_counts);
        }
    }
    assert!(rows > 500, "only {rows} operations were rows of columns");
}

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn batch<const COLUMNS: usize>(columns: [(&str, ArrayRef); COLUMNS]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, values)| (name, values, true))).unwrap()
}

async fn edges(graph: &Graph, label: &str, from: i64) -> Vec<BTreeMap<String, String>> {
    let mut query = graph.query();
    let start = query.vertex("vertex", from).await.unwrap().unwrap();
    let edges = query.neighbors(&[start], &format!("out:{label}").parse().unwrap()).await.unwrap();
    let types = graph.schema().edge_types.iter().filter(|it| it.label == label);
    let names: Vec<_> = types.flat_map(|it| &it.properties).map(|it| it.name.clone()).collect();
    if names.is_empty() {
        return edges.iter().map(|_| BTreeMap::new()).collect();
    }
    let mut found = Vec::new();
    for rows in query.edge_properties(&edges, &names).await.unwrap() {
        for row in 0..rows.batch.num_rows() {
            let cell = |name: &String| {
                let column = rows.batch.column_by_name(name)?;
                column.is_valid(row).then(|| (name.clone(), Value::at(column, row).to_string()))
            };
            found.push(names.iter().filter_map(cell).collect());
        }
    }
    found
}

fn edge(source: i64, target: i64, key: Option<i64>, properties: Properties, replace: bool) -> Operation {
    let key = key.map(|id| EdgeKey { property: "id".into(), value: Value::Int64(id) });
    let source = VertexRef::new("vertex", source);
    let target = VertexRef::new("vertex", target);
    Operation::UpsertEdge { label: "paid".into(), source, target, key, properties, replace }
}

fn deletion(source: i64, target: i64, key: Option<i64>) -> Operation {
    let key = key.map(|id| EdgeKey { property: "id".into(), value: Value::Int64(id) });
    let source = VertexRef::new("vertex", source);
    let target = VertexRef::new("vertex", target);
    Operation::DeleteEdge { label: "paid".into(), source, target, key }
}

#[tokio::test]
async fn the_last_change_of_an_edge_wins() {
    let mut graph = loaded("memory://columns/last-edge").await;
    let eur = |eur: i64| Properties::from([("eur", eur)]);
    let row = |eur: i64| {
        let rows = batch([("source", ints(&[1])), ("target", ints(&[2])), ("eur", ints(&[eur]))]);
        Operation::UpsertColumns(Arc::new(Columns::edges("paid", "vertex", "vertex", &rows).unwrap().replacing()))
    };
    let found = |rows: &[&[(&str, i64)]]| -> Vec<BTreeMap<String, String>> {
        let row =
            |row: &&[(&str, i64)]| row.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        rows.iter().map(row).collect()
    };
    for (operations, expected) in [
        // Added and removed, of a label that is new; removed and added.
        (vec![edge(1, 2, None, eur(1), true), deletion(1, 2, None)], found(&[])),
        (vec![deletion(1, 2, None), edge(1, 2, None, eur(2), false)], found(&[&[("eur", 2)]])),
        (vec![edge(1, 2, None, eur(3), true), row(4)], found(&[&[("eur", 4)]])),
        (vec![row(5), edge(1, 2, None, [("note", 6)].into(), false)], found(&[&[("eur", 5), ("note", 6)]])),
        (vec![row(7), deletion(1, 2, None)], found(&[])),
        // Parallel edges: each key is an item of its own, and a change without a key is one of all.
        (
            vec![
                edge(1, 2, Some(1), eur(1), true),
                edge(1, 2, Some(2), eur(2), true),
                edge(1, 2, Some(1), eur(3), true),
            ],
            found(&[&[("eur", 2), ("id", 2)], &[("eur", 3), ("id", 1)]]),
        ),
        (
            vec![edge(1, 2, Some(3), eur(3), true), deletion(1, 2, Some(1))],
            found(&[&[("eur", 2), ("id", 2)], &[("eur", 3), ("id", 3)]]),
        ),
        (vec![row(9), edge(1, 2, Some(4), eur(4), true)], found(&[&[("eur", 4), ("id", 4)], &[("eur", 9)]])),
        (vec![edge(1, 2, Some(5), eur(5), true), row(8)], found(&[&[("eur", 8)]])),
    ] {
        let shown = format!("{operations:?}");
        graph.apply(Batch { operations, ..Batch::default() }).await.unwrap_or_else(|error| panic!("{error}: {shown}"));
        graph.refresh().await.unwrap();
        let mut there = edges(&graph, "paid", 1).await;
        there.sort();
        assert_eq!(there, expected, "{shown}");
    }
}

#[tokio::test]
async fn the_last_change_of_a_vertex_wins() {
    let graph = loaded("memory://columns/last-vertex").await;
    let upsert = |key: i64, properties: Properties, replace| Operation::UpsertVertex {
        vertex: VertexRef::new("vertex", key),
        properties,
        replace,
    };
    let delete = |key: i64| Operation::DeleteVertex { vertex: VertexRef::new("vertex", key) };
    let apply = |operations| Batch { operations, ..Batch::default() };
    let operations = vec![upsert(1, [("a", 1), ("b", 1)].into(), true), upsert(1, [("a", 2)].into(), false)];
    graph.apply(apply(operations)).await.unwrap();
    let mut graph = graph.clone();
    graph.refresh().await.unwrap();
    let row = async |graph: &Graph, key: i64| {
        let mut query = graph.query();
        let vertex = query.vertex("vertex", key).await.unwrap()?;
        let rows = query.properties(&[vertex].into_iter().collect(), &["a".into(), "b".into()]).await.unwrap();
        Some(["a", "b"].map(|name| Value::at(rows[0].batch.column_by_name(name).unwrap(), 0).to_string()))
    };
    assert_eq!(row(&graph, 1).await.unwrap(), ["2", "1"]);
    // Deleted and upserted again: its edge to 2 is deleted, and so are its properties.
    assert_eq!(edges(&graph, "edge", 1).await.len(), 1);
    let operations = vec![delete(1), upsert(1, [("b", 3)].into(), false), edge(1, 2, None, Properties::new(), false)];
    graph.apply(apply(operations)).await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!(row(&graph, 1).await.unwrap(), ["null", "3"]);
    assert_eq!((edges(&graph, "edge", 1).await.len(), edges(&graph, "paid", 1).await.len()), (0, 1));
    // Upserted and deleted: as if it had never been named, but as an end.
    let committed = graph.apply(apply(vec![upsert(9, Properties::new(), true), delete(9)])).await.unwrap();
    assert_eq!(committed.counts, Default::default());
    for create_missing in [false, true] {
        let operations = vec![upsert(9, Properties::new(), true), delete(9), edge(9, 2, None, Properties::new(), true)];
        let error = graph.apply(Batch { operations, create_missing, ..Batch::default() }).await.unwrap_err();
        assert!(error.to_string().ends_with("the same batch deletes vertex:9"), "{error}");
    }
    graph.apply(apply(vec![upsert(1, Properties::new(), false), delete(1)])).await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!(row(&graph, 1).await, None);
}

#[tokio::test]
async fn batches_of_one_pair_share_a_version_and_the_last_wins() {
    let mut graph = loaded("memory://columns/group").await;
    // One leads the first group commit, and the others wait for it: they are committed together, in their order.
    let of = |source, target, weight: i64, replace| Batch {
        operations: vec![edge(source, target, None, [("eur", weight)].into(), replace)],
        ..Batch::default()
    };
    let note = Batch { operations: vec![edge(1, 2, None, [("note", 1)].into(), false)], ..Batch::default() };
    graph.apply(of(2, 1, 0, true)).await.unwrap();
    let (first, second, third, fourth, fifth) = tokio::join!(
        graph.apply(of(1, 2, 1, true)),
        graph.apply(of(1, 2, 2, true)),
        graph.apply(note),
        // Builds on nothing, but comes after one that waits.
        graph.apply(of(1, 2, 4, true)),
        graph.apply(of(2, 1, 5, true)),
    );
    let versions = [first, second, third, fourth, fifth].map(|committed| committed.unwrap().version);
    let from = versions[0];
    assert_eq!(versions, [from, from, from + 1, from + 1, from], "{versions:?}");
    graph.refresh().await.unwrap();
    let one = |eur: &str| vec![BTreeMap::from([("eur".to_owned(), eur.to_owned())])];
    assert_eq!((edges(&graph, "paid", 1).await, edges(&graph, "paid", 2).await), (one("4"), one("5")));
    // In the version before, the last of the two.
    let settings = hoplake::OpenSettings { version: Some(from), ..Default::default() };
    let store = hoplake::Store::open("memory://columns/group").unwrap();
    let old = Graph::open_with(store, &settings).await.unwrap();
    assert_eq!(edges(&old, "paid", 1).await, one("2"));
    let type_of_paid = old.schema().edge_types.iter().position(|it| it.label == "paid").unwrap();
    assert_eq!(old.manifest().edge_counts[type_of_paid], 3);
}

#[tokio::test]
async fn a_rejection_names_the_row() {
    let graph = loaded("memory://columns/refused").await;
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.5), None, Some(2.5)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![None, Some("x"), None]));
    let rows =
        |third, name, values| batch([("source", ints(&[1, 2, third])), ("target", ints(&[2, 1, 2])), (name, values)]);
    let mut commit = graph.begin();
    commit.upsert_vertex("vertex", 3, [("a", 1)]);
    commit.upsert_edges("e", ("vertex", "vertex"), &rows(3, "weight", ints(&[1, 2, (1 << 53) + 1]))).unwrap();
    commit.commit().await.unwrap();
    let graph = Graph::open("memory://columns/refused").await.unwrap();
    for (rows, strict, row, reason, why) in [
        (rows(99, "weight", ints(&[1, 2, 3])), false, 2, Some(Reason::MissingEnd), "there is no vertex vertex:99"),
        (rows(1, "weight", texts), false, 1, None, "property weight of e is int64, which \"x\" is not"),
        (rows(1, "new", floats.clone()), true, 0, Some(Reason::Undeclared), "e has no property new"),
        (rows(1, "weight", floats), false, 0, Some(Reason::Inexact), "might not hold exactly"),
    ] {
        let mut commit = graph.begin();
        commit.upsert_vertex("vertex", 1, [("a", 1)]);
        if strict {
            commit.strict();
            commit = graph.begin();
            commit.strict().delete_vertex("vertex", 77);
        }
        let error = commit.upsert_edges("e", ("vertex", "vertex"), &rows).unwrap().commit().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!((error.operation(), error.row(), error.reason()), (Some(1), Some(row), reason), "{error}");
        assert!(error.to_string().starts_with(&format!("row {row}, upsert of edge vertex:")), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    let mut commit = graph.begin();
    let wrong = commit.upsert_edges("e", ("Nobody", "vertex"), &rows(1, "weight", ints(&[1, 2, 3]))).unwrap();
    assert!(wrong.commit().await.unwrap_err().to_string().contains("there is no vertex Nobody:1"));
    let lacking = graph.begin().upsert_vertices("vertex", &batch([("id", ints(&[1]))])).unwrap_err();
    assert_eq!(lacking.to_string(), "columns of vertices vertex lack the column key");
    // The keys of a label are of one type.
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let error = graph.begin().upsert_vertices("vertex", &batch([("key", text)])).unwrap().commit().await.unwrap_err();
    assert!(error.to_string().ends_with("keys of vertex are int64, and a is string"), "{error}");
}

#[tokio::test]
async fn columns_take_the_types_of_a_load_and_widen_as_rows_do() {
    let mut graph = loaded("memory://columns/types").await;
    let keys: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5]));
    graph
        .begin()
        .upsert_vertices("vertex", &batch([("key", keys.clone()), ("a", ints(&[1, 2]))]))
        .unwrap()
        .commit()
        .await
        .unwrap();
    graph.refresh().await.unwrap();
    let mut commit = graph.begin();
    commit.upsert_vertices("vertex", &batch([("key", keys), ("a", floats)])).unwrap();
    commit.upsert_vertices("vertex", &batch([("key", ints(&[2])), ("a", ints(&[7]))])).unwrap();
    // Not changed below, so that the property keeps its type.
    commit.upsert_vertex("vertex", 3, [("a", 0.5)]);
    commit.commit().await.unwrap();
    graph.refresh().await.unwrap();
    let mut query = graph.query();
    let found = query.vertices(&[("vertex", Key::Int64(1)), ("vertex", Key::Int64(2))]).await.unwrap();
    let rows = query.properties(&found.into_iter().flatten().collect(), &["a".to_owned()]).await.unwrap();
    let values: Vec<_> = (0..2).map(|row| Value::at(rows[0].batch.column_by_name("a").unwrap(), row)).collect();
    assert_eq!(values, [0.5, 7.0].map(Value::Float64));
    // An integer that a float64 lacks is rejected, wherever it is.
    let error = graph
        .begin()
        .upsert_vertices("vertex", &batch([("key", ints(&[1, 2])), ("a", ints(&[1, (1 << 53) + 1]))]))
        .unwrap()
        .commit()
        .await
        .unwrap_err();
    assert_eq!((error.row(), error.reason()), (Some(1), Some(Reason::Inexact)));
}

/// Two feeds that read the same stream: the slower one with a batch gets a conflict, and continues from the graph's
/// position.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_feeds_of_one_stream_each_batch_lands_once() {
    const BATCHES: usize = 30;
    let name = "memory://columns/feeds";
    let graph = loaded(name).await;
    // Two callers of one process, whose batches may share a level, and one of another process.
    let feeds = [graph.clone(), graph.clone(), Graph::open(name).await.unwrap()].map(|mut graph| {
        tokio::spawn(async move {
            let mut applied = 0;
            let mut overtaken = 0;
            loop {
                let from = graph.source_position("stream").map(str::to_owned);
                let next = from.as_ref().map_or(0, |from| from.parse::<i64>().unwrap() + 1);
                if next as usize == BATCHES {
                    return (applied, overtaken);
                }
                // An edge with a key of its own for each time that it is applied.
                let mut batch = Batch {
                    operations: vec![edge(1, 2, Some(next), [("eur", next)].into(), true)],
                    ..Batch::default()
                };
                batch.if_positions.insert("stream".into(), from);
                batch.source_positions.insert("stream".into(), next.to_string());
                match graph.apply(batch).await {
                    Ok(_) => applied += 1,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                        assert!(error.to_string().starts_with("of source stream the graph has"), "{error}");
                        overtaken += 1;
                    }
                }
                graph.refresh().await.unwrap();
            }
        })
    });
    let mut applied = 0;
    let mut overtaken = 0;
    for feed in feeds {
        let (of_feed, in_vain) = feed.await.unwrap();
        applied += of_feed;
        overtaken += in_vain;
    }
    assert_eq!(applied, BATCHES);
    assert!(overtaken > 0, "the feeds never met");
    let mut graph = Graph::open(name).await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!(edges(&graph, "paid", 1).await.len(), BATCHES);
}

#[tokio::test]
async fn a_condition_is_about_the_batches_before_in_the_same_version() {
    let mut graph = loaded("memory://columns/positions").await;
    let of = |from: Option<&str>, to: &str, key: i64| {
        let mut batch = Batch { operations: vec![edge(1, 2, Some(key), Properties::new(), true)], ..Batch::default() };
        batch.if_positions.insert("stream".into(), from.map(str::to_owned));
        batch.source_positions.insert("stream".into(), to.into());
        batch
    };
    // All of them wait for the first level: one pair, so that each needs a version of its own.
    let (first, again, second, third) = tokio::join!(
        graph.apply(of(None, "a", 1)),
        graph.apply(of(None, "a", 1)),
        graph.apply(of(Some("a"), "b", 2)),
        graph.apply(of(Some("b"), "c", 3)),
    );
    let versions = [first, second, third].map(|committed| committed.unwrap().version);
    assert_eq!(versions, [2, 3, 4]);
    let again = again.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict, "{again}");
    let rejected = graph.check(of(Some("b"), "c", 4)).await.unwrap_err();
    assert!(rejected.to_string().contains("the graph has \"c\", and the batch goes on from \"b\""), "{rejected}");
    graph.refresh().await.unwrap();
    assert_eq!(graph.source_position("stream"), Some("c"));
}

/// Rows of Parquet of one label stay columns, and others do not; both mean the same.
#[tokio::test]
async fn parquet_of_one_label_is_read_as_columns() {
    let folder = tempfile::tempdir().unwrap();
    let graph = loaded("memory://columns/parquet").await;
    let texts = |values: [&str; 2]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let flags: ArrayRef = Arc::new(arrow_array::BooleanArray::from(vec![true, true]));
    let ends = || [("source", ints(&[1, 2])), ("target", ints(&[2, 1])), ("since", ints(&[2025, 2026]))];
    let labels = || [("source_label", texts(["vertex"; 2])), ("target_label", texts(["vertex"; 2]))];
    let written = |name: &str, columns: Vec<(&str, ArrayRef)>| {
        let path = folder.path().join(name);
        let rows = columns.into_iter().map(|(name, values)| (name, values, true));
        let rows = RecordBatch::try_from_iter_with_nullable(rows).unwrap();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        path
    };
    let read = |columns: Vec<(&str, ArrayRef)>| {
        let path = written("changes.parquet", columns);
        let mut reader = ChangeReader::new(graph.schema());
        let read: Vec<_> = reader.read(&path).unwrap().map(|change| change.unwrap()).collect();
        assert_eq!((read[0].location.number(), read[0].location.further(1).number()), (1, 2));
        let operations: Vec<_> = read.into_iter().map(|change| change.operation).collect();
        operations
    };
    let of = |more: Vec<(&'static str, ArrayRef)>| ends().into_iter().chain(labels()).chain(more).collect::<Vec<_>>();
    let edges = read(of(vec![("label", texts(["knows"; 2])), ("replace", flags)]));
    let [Operation::UpsertColumns(columns)] = &edges[..] else { panic!("{edges:?}") };
    assert_eq!(columns.operation(1).to_string(), "upsert of edge vertex:2 -knows-> vertex:1");
    let mixed = read(of(vec![("label", texts(["knows", "likes"]))]));
    assert_eq!(mixed.len(), 2);
    // Text may stand for integers, as of a key.
    let vertices = |keys| vec![("label", texts(["vertex"; 2])), ("key", keys), ("name", texts(["a", "b"]))];
    assert!(matches!(read(vertices(ints(&[1, 2])))[..], [Operation::UpsertColumns(_)]));
    let [Operation::UpsertVertex { vertex, .. }, _] = &read(vertices(texts(["1", "2"])))[..] else { panic!() };
    assert_eq!(*vertex, VertexRef::new("vertex", 1));
    graph.apply(Batch { operations: edges, ..Batch::default() }).await.unwrap();
    let mut graph = graph.clone();
    graph.refresh().await.unwrap();
    assert_eq!(self::edges(&graph, "knows", 2).await, [BTreeMap::from([("since".to_owned(), "2026".to_owned())])]);
}
