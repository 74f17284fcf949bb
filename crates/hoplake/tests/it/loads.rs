//! Loads that go wrong, loads in little memory, and the same graph from different files.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    path::{Path as FilePath, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use async_trait::async_trait;
use futures::stream::BoxStream;
use hoplake::{
    BadRowPolicy, ErrorKind, Frontier, Graph, Hop, Key, LoadOptions, LoadPhase, LoadProgress, OpenSettings, Store,
    VacuumSettings, Vacuumed, VertexId, VertexOrder, load_with,
};
use hoplake_format::constants::{data_name, manifest_name};
use hoplake_testkit::{
    Alteration, AlteredStore,
    generate::{kronecker, log_normal},
    snb,
};
use object_store::{GetOptions, GetResult, ObjectMeta, ObjectStore, PutOptions, PutPayload, PutResult, path::Path};

use crate::graphs::{edge_list, graph_at, in_memory, load_into, open};

const PEOPLE: &str = ":ID(P),name,age:int\n1,a,1\n2,b,2\n3,c,3\n";
const KNOWS: &str = ":START_ID(P),:END_ID(P),:TYPE,w:long\n1,2,knows,5\n2,3,knows,6\n";

fn folder_of(people: &str, knows: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("P.csv"), people).unwrap();
    std::fs::write(folder.path().join("knows.csv"), knows).unwrap();
    folder
}

/// All edges of one label by the keys of their ends, sorted.
async fn edges_by_key(graph: &Graph, hop: &str) -> Vec<(Key, Key)> {
    let all = all_vertices(graph);
    let mut query = graph.query();
    let edges = query.neighbors(&all, &hop.parse().unwrap()).await.unwrap();
    let vertices: Vec<_> = all.iter().copied().collect::<Frontier>().vertices().collect();
    let keys: BTreeMap<VertexId, Key> = vertices.iter().copied().zip(query.keys_of(&vertices).await.unwrap()).collect();
    let mut named: Vec<_> = edges.iter().map(|edge| (keys[&edge.from].clone(), keys[&edge.to].clone())).collect();
    named.sort();
    named
}

fn all_vertices(graph: &Graph) -> Vec<VertexId> {
    let counts = (0u16..).map(hoplake::LabelId).zip(&graph.manifest().vertex_counts);
    counts
        .flat_map(|(label, count)| (0..count.ordinals).filter_map(move |ordinal| VertexId::new(label, ordinal)))
        .collect()
}

#[tokio::test]
async fn the_first_bad_row_stops_a_load_and_leaves_nothing() {
    for (people, knows, expected) in [
        (format!("{PEOPLE}4,d\n"), KNOWS.to_owned(), "P.csv, line 5: has 2 columns where 3 are expected"),
        (format!("{PEOPLE}4,d,old\n"), KNOWS.to_owned(), "P.csv, line 5, column age:int: \"old\" is not an int64"),
        (format!("{PEOPLE}1,d,4\n"), KNOWS.to_owned(), "P.csv, line 5, column key: \"1\" is the key of another P in "),
        (
            PEOPLE.to_owned(),
            format!("{KNOWS}9,1,knows,7\n"),
            "knows.csv, line 4, column source: \"9\" is the key of no ",
        ),
        (
            PEOPLE.to_owned(),
            format!("{KNOWS}1,8,knows,7\n"),
            "knows.csv, line 4, column target: \"8\" is the key of no ",
        ),
        (PEOPLE.to_owned(), format!("{KNOWS}1,2,knows,x\n"), "knows.csv, line 4, column w:long: \"x\" is not an int64"),
    ] {
        let folder = folder_of(&people, &knows);
        let (_, store) = in_memory();
        let error = load_into(&store, LoadOptions::from_paths([folder.path()])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let prefix = folder.path().join("").display().to_string();
        assert!(error.to_string().starts_with(&format!("{prefix}{expected}")), "{error}");
        assert_eq!(store.list("").await.unwrap(), [], "{expected}");
        let missing = Graph::open_with(store, &OpenSettings::default()).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn bad_rows_that_are_skipped_are_counted_once_and_put_aside() {
    let folder = folder_of(
        &format!("{PEOPLE}4,d\n\n5,\"e \n\"\"e\"\"\",old\r\n1,again,4\n6,f,6\n"),
        &format!("{KNOWS}9,1,knows,7\n1,8,knows,7\n1,2,knows,x\n6,1,knows,8\n5,1,knows,9\n"),
    );
    let rejects = tempfile::tempdir().unwrap();
    let file = rejects.path().join("rejects.csv");
    let (_, store) = in_memory();
    let options =
        LoadOptions { bad_rows: BadRowPolicy::Skip(file.clone()), ..LoadOptions::from_paths([folder.path()]) };
    let report = load_into(&store, options).await.unwrap();
    assert_eq!((report.vertices, report.edges, report.bad_rows), (4, 3, 7));
    let text = std::fs::read_to_string(file).unwrap().replace(&folder.path().join("").display().to_string(), "");
    let (header, rows) = text.split_once('\n').unwrap();
    assert_eq!(header, "file,line,column,value,reason,row");
    // In the order of files and lines, each row as it stands in its file.
    let expected = r#"P.csv,5,,,has 2 columns where 3 are expected,"4,d"
P.csv,7,age:int,old,is not an int64,"5,""e 
""""e"""""",old"
P.csv,9,key,1,"is the key of another P in P.csv, line 2","1,again,4"
knows.csv,4,source,9,is the key of no vertex,"9,1,knows,7"
knows.csv,5,target,8,is the key of no vertex,"1,8,knows,7"
knows.csv,6,w:long,x,is not an int64,"1,2,knows,x"
knows.csv,8,source,5,is the key of no vertex,"5,1,knows,9"
"#;
    assert_eq!(rows, expected);
    let graph = open(&store).await;
    graph.verify(|_| ()).await.unwrap();
    let edges = [(1, 2), (2, 3), (6, 1)].map(|(source, target): (i64, i64)| (source.into(), target.into()));
    assert_eq!(edges_by_key(&graph, "out:knows").await, edges);
}

#[tokio::test]
async fn a_row_that_is_left_out_takes_the_edges_of_its_foreign_keys_along() {
    let folder = tempfile::tempdir().unwrap();
    let person = |id: u64, city: &str| format!("{id},{city}\n");
    let mut people = "id,city\n".to_owned() + &person(1, "Rome") + &person(1, "Oslo") + &person(2, "Oslo");
    people.extend((3..40_000).map(|id| person(id, "Bern")));
    people += &person(2, "Rome");
    std::fs::write(folder.path().join("people.csv"), people).unwrap();
    let vertices = "[[vertices]]\nfile = \"people.csv\"\nlabel = \"Person\"\nkey = \"id\"\nkey_type = \"int64\"\n";
    let edges = "[[edges]]\nfile = \"people.csv\"\nlabel = \"livesIn\"\nsource = \"id\"\nsource_label = \"Person\"\ntarget = \"city\"\ntarget_label = \"City\"\n";
    let mapping = folder.path().join("map.toml");
    std::fs::write(&mapping, format!("{vertices}[[vertices]]\nlabel = \"City\"\n{edges}")).unwrap();
    for order in [VertexOrder::Keys, VertexOrder::Locality] {
        let (_, store) = in_memory();
        let bad_rows = BadRowPolicy::Skip(folder.path().join("rejects.csv"));
        let mapping = Some(mapping.clone());
        let options = LoadOptions { bad_rows, mapping, order, ..LoadOptions::from_paths([folder.path()]) };
        let report = load_into(&store, options).await.unwrap();
        assert_eq!((report.vertices, report.edges, report.bad_rows), (40_002, 39_999, 2), "{order:?}");
        let edges = edges_by_key(&open(&store).await, "out:livesIn").await;
        let ends: Vec<_> = edges[..2].iter().map(|(source, target)| (source.to_string(), target.to_string())).collect();
        assert_eq!(ends, [("1".into(), "Rome".into()), ("2".into(), "Oslo".into())], "{order:?}");
    }
}

/// What a store does from a write on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// It rejects writes.
    Writes,
    /// It fails: nothing works.
    All,
    /// It writes, and reports a failure.
    LostAnswer,
    /// It writes, its answer is lost, and the client tries again and meets its own object.
    Retried,
    /// It writes, but lists no manifests yet.
    StaleListing,
}

/// A store that fails from its `after`th write on.
#[derive(Debug)]
struct FailingStore {
    inner: Arc<dyn ObjectStore>,
    failure: Failure,
    after: usize,
    writes: AtomicUsize,
}

fn failed<T>() -> object_store::Result<T> {
    Err(object_store::Error::Generic { store: "failing", source: "as the test wants it".into() })
}

impl FailingStore {
    fn is_gone(&self) -> bool {
        self.failure == Failure::All && self.writes.load(Ordering::SeqCst) > self.after
    }
}

#[async_trait]
impl Alteration for FailingStore {
    fn below(&self) -> &dyn ObjectStore {
        &self.inner
    }

    async fn put(&self, path: &Path, payload: PutPayload, opts: PutOptions) -> object_store::Result<PutResult> {
        if self.writes.fetch_add(1, Ordering::SeqCst) < self.after {
            return self.inner.put_opts(path, payload, opts).await;
        }
        match self.failure {
            Failure::Writes | Failure::All => failed(),
            Failure::StaleListing => self.inner.put_opts(path, payload, opts).await,
            Failure::LostAnswer => self.inner.put_opts(path, payload, opts).await.and_then(|_| failed()),
            Failure::Retried => {
                self.inner.put_opts(path, payload.clone(), opts.clone()).await?;
                self.inner.put_opts(path, payload, opts).await
            }
        }
    }

    async fn get(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        if self.is_gone() { failed() } else { self.inner.get_opts(path, options).await }
    }

    fn delete(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        if self.is_gone() {
            Box::pin(futures::stream::once(async { failed() }))
        } else {
            self.inner.delete_stream(paths)
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        match self.failure {
            _ if self.is_gone() => Box::pin(futures::stream::once(async { failed() })),
            Failure::StaleListing if prefix.is_some_and(|prefix| prefix.as_ref().ends_with("manifest")) => {
                Box::pin(futures::stream::empty())
            }
            _ => self.inner.list(prefix),
        }
    }
}

async fn load_failing(store: &Arc<dyn ObjectStore>, failure: Failure, after: usize) -> Result<u64, hoplake::Error> {
    let folder = folder_of(PEOPLE, KNOWS);
    let failing = AlteredStore(FailingStore { inner: store.clone(), failure, after, writes: AtomicUsize::new(0) });
    Ok(load_into(&graph_at(failing), LoadOptions::from_paths([folder.path()])).await?.version)
}

async fn vacuum(store: &Store, written_before_unix_ms: i64) -> Result<Vacuumed, hoplake::Error> {
    Graph::vacuum(store, &VacuumSettings { written_before_unix_ms, ..VacuumSettings::default() }).await
}

/// The store has exactly the objects that a version names, manifests and the hint.
async fn assert_no_leftovers(store: &Store, versions: u64) {
    let mut named = BTreeSet::new();
    for version in 1..=versions {
        let settings = OpenSettings { version: Some(version), ..Default::default() };
        let graph = Graph::open_with(store.clone(), &settings).await.unwrap();
        graph.verify(|_| ()).await.unwrap();
        let manifest = graph.manifest();
        named.extend(manifest.segments.iter().map(|segment| segment.name.clone()));
        named.extend(manifest.tables.iter().map(|table| table.name.clone()));
    }
    let mut there: Vec<_> = store.list("data").await.unwrap().into_iter().map(|object| object.name).collect();
    there.sort();
    assert_eq!(there, named.into_iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_load_whose_store_fails_is_all_there_or_not_at_all() {
    for failure in [Failure::Writes, Failure::All, Failure::LostAnswer] {
        let mut after = 0;
        loop {
            let (inner, store) = in_memory();
            let outcome = load_failing(&inner, failure, after).await;
            let opened = Graph::open_with(store.clone(), &OpenSettings::default()).await;
            match (&outcome, &opened) {
                (Err(error), Err(missing)) => {
                    // A store that does not even answer whether the manifest is there leaves it open.
                    assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown), "{error}");
                    assert_eq!(missing.kind(), ErrorKind::NotFound);
                }
                // The manifest was written, and the answer lost; or only the hint was not.
                (_, Ok(graph)) => assert_eq!(edges_by_key(graph, "out").await.len(), 2),
                (Ok(_), Err(missing)) => panic!("{failure:?} {after}: {missing}"),
            }
            if outcome.is_ok() {
                assert!(after >= 5, "a load has more than {after} writes");
                break;
            }
            let lost = failure == Failure::LostAnswer && opened.is_ok();
            if failure == Failure::Writes && after == 0 {
                assert_eq!(store.list("").await.unwrap(), [], "what was written is removed at once");
            }
            let folder = folder_of(PEOPLE, KNOWS);
            let options = LoadOptions { replace: lost, ..LoadOptions::from_paths([folder.path()]) };
            let version = load_into(&store, options).await.unwrap().version;
            assert_eq!(version, 1 + u64::from(lost), "{failure:?} {after}");
            assert_no_leftovers(&store, version).await;
            after += 1;
        }
    }
}

#[tokio::test]
async fn a_manifest_that_was_written_by_the_first_of_two_tries_is_ones_own() {
    let mut after = 0;
    loop {
        let (inner, store) = in_memory();
        assert_eq!(load_failing(&inner, Failure::Retried, after).await.unwrap(), 1, "after {after} writes");
        assert_no_leftovers(&store, 1).await;
        after += 1;
        if after > 8 {
            break;
        }
    }
}

#[tokio::test]
async fn leftovers_of_killed_loads_are_removed_and_nothing_else() {
    let (_, store) = in_memory();
    let folder = folder_of(PEOPLE, KNOWS);
    let put = |name: String| {
        let store = store.clone();
        async move { store.put(&name, "leftover".into()).await.unwrap() }
    };
    put(data_name(0, "01KILLED", 0, "hls")).await;
    put(data_name(0, "01KILLED", 1, "parquet")).await;
    let options = LoadOptions { replace: true, ..LoadOptions::from_paths([folder.path()]) };
    load_into(&store, options.clone()).await.unwrap();
    assert_no_leftovers(&store, 1).await;
    // A load that started from version 1 may still be running.
    put(data_name(1, "01RUNNING", 0, "hls")).await;
    put(data_name(0, "01KILLED", 7, "hls")).await;
    assert_eq!(vacuum(&store, i64::MIN).await.unwrap().objects, 1);
    assert_eq!(vacuum(&store, 0).await.unwrap().objects, 0);
    let vacuumed = vacuum(&store, i64::MAX).await.unwrap();
    assert_eq!((vacuumed.objects, vacuumed.bytes), (1, 8));
    assert_no_leftovers(&store, 1).await;
    // A vacuum closed version 2 to it. Once the next is there, what began from it can no longer become part of it.
    put(data_name(2, "01TOOLATE", 0, "hls")).await;
    let replaced = load_into(&store, options).await.unwrap().version;
    assert_eq!(replaced, 4, "announced in version 3");
    assert_no_leftovers(&store, replaced).await;
    assert_eq!(vacuum(&store, i64::MAX).await.unwrap().objects, 0);
    assert_no_leftovers(&store, replaced).await;
}

#[tokio::test]
async fn a_vacuum_that_finds_neither_hint_nor_manifests_removes_nothing_of_a_graph() {
    let (inner, store) = in_memory();
    let folder = folder_of(PEOPLE, KNOWS);
    load_into(&store, LoadOptions::from_paths([folder.path()])).await.unwrap();
    let replaced = LoadOptions { replace: true, ..LoadOptions::from_paths([folder.path()]) };
    let newest = load_into(&store, replaced).await.unwrap().version;
    store.put("hint", "half of a manif".into()).await.unwrap();
    let failure = Failure::StaleListing;
    let lagging = graph_at(AlteredStore(FailingStore { inner, failure, after: 0, writes: AtomicUsize::new(0) }));
    assert_eq!(vacuum(&lagging, i64::MAX).await.unwrap().objects, 0);
    assert_no_leftovers(&store, newest).await;
}

#[tokio::test]
async fn a_first_load_that_sleeps_until_its_leftovers_are_removed_finds_its_slot_taken() {
    let (_, store) = in_memory();
    store.put(&data_name(0, "01SLEEPS", 0, "hls"), "leftover".into()).await.unwrap();
    assert_eq!(vacuum(&store, i64::MIN).await.unwrap().objects, 0);
    let missing = Graph::open_with(store.clone(), &OpenSettings::default()).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound, "it may be at work");
    assert_eq!(vacuum(&store, i64::MAX).await.unwrap().objects, 1);
    assert!(!store.create(&manifest_name(1), "what it would publish".into()).await.unwrap());
    // The next load has nothing to replace.
    let folder = folder_of(PEOPLE, KNOWS);
    let version = load_into(&store, LoadOptions::from_paths([folder.path()])).await.unwrap().version;
    assert_eq!(version, 3, "announced in version 2");
    assert_no_leftovers(&store, version).await;
}

#[tokio::test]
async fn a_vacuum_that_cannot_read_a_manifest_removes_nothing() {
    let (_, store) = in_memory();
    let folder = folder_of(PEOPLE, KNOWS);
    for replace in [false, true] {
        load_into(&store, LoadOptions { replace, ..LoadOptions::from_paths([folder.path()]) }).await.unwrap();
    }
    store.put(&data_name(0, "01KILLED", 0, "hls"), "leftover".into()).await.unwrap();
    let before = store.list("").await.unwrap().len();
    store.put("manifest/00000000000000000001.hlm", "nonsense".into()).await.unwrap();
    let error = vacuum(&store, i64::MAX).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(store.list("").await.unwrap().len(), before);
}

/// Adds up the runs of sorted rows that a load has put aside.
struct Spilled {
    folder: PathBuf,
    bytes_max: AtomicU64,
}

impl Spilled {
    fn look(&self) {
        let in_folder = |folder: &PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files = in_folder(&self.folder).flat_map(|folder| in_folder(&folder.path()));
        let bytes = files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
        self.bytes_max.fetch_max(bytes, Ordering::Relaxed);
    }
}

impl LoadProgress for Spilled {
    fn begin(&self, _: LoadPhase, _: u64) {
        self.look();
    }

    fn advance(&self, _: u64) {
        self.look();
    }
}

fn write_parquet(file: &FilePath, edges: &[(u64, u64)]) {
    let column = |end: fn(&(u64, u64)) -> u64| -> ArrayRef {
        Arc::new(edges.iter().map(|edge| Some(end(edge) as i64)).collect::<Int64Array>())
    };
    let columns = [("source", column(|edge| edge.0)), ("target", column(|edge| edge.1))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(file).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn little_memory_gives_the_same_graph() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.parquet");
    let edges: Vec<_> = kronecker(18, 12, 5).collect();
    assert!(edges.len() > 3_000_000);
    write_parquet(&file, &edges);
    let mut graphs = Vec::new();
    let mut spilled = Vec::new();
    for memory_bytes in [1 << 30, 32 << 20] {
        let temp = tempfile::tempdir().unwrap();
        let progress = Arc::new(Spilled { folder: temp.path().to_owned(), bytes_max: AtomicU64::new(0) });
        let temp_dir = Some(temp.path().to_owned());
        let options = LoadOptions { memory_bytes, temp_dir, threads: 2, ..LoadOptions::from_paths([&file]) };
        let (_, store) = in_memory();
        let report = load_with(store.clone(), options, progress.clone()).await.unwrap();
        assert_eq!(report.edges, edges.len() as u64);
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0, "temporary files are removed");
        spilled.push(progress.bytes_max.load(Ordering::Relaxed));
        graphs.push(open(&store).await);
    }
    assert_eq!(spilled[0], 0, "1 GiB is enough");
    // 3 million edges of eight bytes, each in two orders, do not fit into 32 MiB.
    assert!(spilled[1] > 2 * edges.len() as u64, "{spilled:?} bytes put aside");
    let [large, small] = &graphs[..] else { panic!("there are two") };
    assert_eq!(small.manifest().vertex_counts, large.manifest().vertex_counts);
    assert_eq!(small.manifest().edge_counts, large.manifest().edge_counts);
    assert_eq!(small.manifest().degrees, large.manifest().degrees);
    let some: Vec<_> = all_vertices(large).into_iter().step_by(997).collect();
    for direction in ["out", "in"] {
        let hop: Hop = direction.parse().unwrap();
        let mut found = Vec::new();
        for graph in &graphs {
            found.push(graph.query().neighbors(&some, &hop).await.unwrap());
        }
        assert!(found[0].len() > some.len() && found[0] == *found[1], "{direction}");
    }
}

#[tokio::test]
async fn text_compressed_text_and_parquet_in_either_order_make_one_graph() {
    let folder = tempfile::tempdir().unwrap();
    let edges: Vec<_> = log_normal(2_000, 1.8, 0.8, 3).collect();
    let mut expected: Vec<(Key, Key)> =
        edges.iter().map(|(source, target)| ((*source as i64).into(), (*target as i64).into())).collect();
    expected.sort();
    let plain = edge_list(folder.path(), "plain.txt", edges.iter().copied());
    let text = std::fs::read(&plain).unwrap();
    let file = |name: &str| folder.path().join(name);
    let mut gzip = flate2::write::GzEncoder::new(
        std::fs::File::create(file("edges.txt.gz")).unwrap(),
        flate2::Compression::fast(),
    );
    gzip.write_all(&text).unwrap();
    gzip.finish().unwrap();
    std::fs::write(file("edges.txt.zst"), zstd::encode_all(&text[..], 1).unwrap()).unwrap();
    write_parquet(&file("edges.parquet"), &edges);
    let mut degrees = Vec::new();
    for name in ["plain.txt", "edges.txt.gz", "edges.txt.zst", "edges.parquet"] {
        for order in [VertexOrder::Keys, VertexOrder::Locality] {
            let (_, store) = in_memory();
            load_into(&store, LoadOptions { order, ..LoadOptions::from_paths([file(name)]) }).await.unwrap();
            let graph = open(&store).await;
            graph.verify(|_| ()).await.unwrap();
            assert!(edges_by_key(&graph, "out").await == expected, "{name} in {order:?}");
            let turned = edges_by_key(&graph, "in").await.into_iter().map(|(near, far)| (far, near));
            let mut turned: Vec<_> = turned.collect();
            turned.sort();
            assert!(turned == expected, "{name} in {order:?}, against the edges");
            degrees.push(graph.manifest().degrees.clone());
        }
    }
    degrees.dedup();
    assert_eq!(degrees.len(), 1);
}

/// Edges by label, over all types.
fn counts(graph: &Graph) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let schema = graph.schema();
    let manifest = graph.manifest();
    let labels = schema
        .vertex_labels
        .iter()
        .map(|label| label.name.clone())
        .zip(manifest.vertex_counts.iter().map(|count| count.live()));
    let mut edges = BTreeMap::new();
    for (edge, count) in schema.edge_types.iter().zip(&manifest.edge_counts) {
        let [source, target] = [edge.source, edge.target].map(|label| &schema.label(label).unwrap().name);
        *edges.entry(format!("{source}_{}_{target}", edge.label)).or_default() += count;
    }
    (labels.collect(), edges)
}

#[tokio::test]
async fn air_routes() {
    if !snb::available("air-routes") {
        return;
    }
    let folder = snb::extract("air-routes").join("sample-data");
    let files = ["nodes", "edges"].map(|part| folder.join(format!("air-routes-latest-{part}.csv")));
    let (_, store) = in_memory();
    let report = load_into(&store, LoadOptions::from_paths(files)).await.unwrap();
    assert_eq!((report.vertices, report.edges), (3_749, 57_645));
    let graph = open(&store).await;
    let (labels, edges) = counts(&graph);
    let expected = [("airport", 3_504), ("continent", 7), ("country", 237), ("version", 1)];
    assert_eq!(labels, expected.map(|(label, count)| (label.to_owned(), count)).into());
    assert_eq!(edges["airport_route_airport"], 50_637);
    assert_eq!(edges["country_contains_airport"] + edges["continent_contains_airport"], 7_008);
    graph.verify(|_| ()).await.unwrap();
}

#[tokio::test]
async fn the_social_network_in_the_layout_of_bi() {
    const FOLDER: &str = "snb-sf0.1-bi-spark";
    if !snb::available(FOLDER) {
        return;
    }
    let (_, store) = in_memory();
    load_into(&store, LoadOptions::from_paths([snb::extract(FOLDER)])).await.unwrap();
    let graph = open(&store).await;
    let (labels, edges) = counts(&graph);
    let listed = std::fs::read_to_string(snb::data_dir().unwrap().join(FOLDER).join("counts.txt")).unwrap();
    let mut compared = 0;
    for line in listed.lines().filter_map(|line| line.strip_prefix("initial_snapshot/")) {
        let (name, rest) = line.split_once(' ').unwrap();
        let name = name.split_once('/').unwrap().1;
        let rows: u64 = rest.split_once("rows=").unwrap().1.parse().unwrap();
        let relation = name.replace("University", "Organisation").replace("Company", "Organisation");
        let found = labels.get(name).or_else(|| edges.get(&relation));
        assert_eq!(found, Some(&rows), "{name} among {labels:?} and {edges:?}");
        compared += 1;
    }
    assert_eq!(compared, 18);
}
