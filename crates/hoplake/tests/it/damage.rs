//! Every byte of every object damaged in turn: an error or the right answer, never a panic or another answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    panic::AssertUnwindSafe,
    sync::Arc,
};

use arrow_array::{Array, RecordBatch};
use arrow_cast::display::array_value_to_string;
use bytes::Bytes;
use futures::{FutureExt, TryStreamExt};
use hoplake::{
    Direction, EdgeRows, Error, ErrorKind, Frontier, Graph, Hop, Key, LoadOptions, Neighbour, OpenSettings,
    ReadSettings, RetrySettings, Rows, SectionKind, SegmentSettings, Store, Traversal, VertexId,
};
use hoplake_format::segment::decode_root;
use hoplake_testkit::generate::log_normal;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};

use crate::graphs::{edge_list, graph_at, in_memory, load_into, open};

/// Two labels with keys of either type, every type of property, properties of edges, and a hub.
pub(crate) fn write_tiny(folder: &std::path::Path) {
    let people = ":ID(P),name,bool:boolean,int:long,float:double,day:date,time:datetime,list:string[],ints:int[]
1,Ann,true,-1,0.5,2020-02-29,2020-02-29T01:02:03Z,a;b,1;2;3
2,Bob,false,9223372036854775807,-1e300,1969-12-31,1969-12-31T23:59:59.999Z,,
30,,,,,,,c,7
-4,\"Дан, \"\"D\"\"\",true,0,0,0001-01-01,2999-01-01T00:00:00Z,d,
";
    let places = ":ID(C),name\nhere,Here\nthere,\nwhere else,Elsewhere\n";
    let mut knows = ":START_ID(P),:END_ID(P),:TYPE,since:date,weight:long\n1,2,knows,2020-01-01,1\n1,2,knows,,2\n2,2,knows,2021-01-01,3\n".to_owned();
    for number in 0..12 {
        let other = [2, 30, -4][number % 3];
        knows.push_str(&format!("{other},1,knows,,{number}\n1,{other},knows,2022-01-01,\n"));
    }
    let lives = ":START_ID(P),:END_ID(C),:TYPE\n1,here,livesIn\n2,here,livesIn\n30,there,livesIn\n";
    for (name, content) in [("P.csv", people), ("C.csv", places), ("knows.csv", &knows), ("lives.csv", lives)] {
        std::fs::write(folder.join(name), content).unwrap();
    }
}

type Objects = BTreeMap<String, Bytes>;

async fn objects_of(store: &Arc<dyn ObjectStore>) -> Objects {
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    let mut objects = Objects::new();
    for object in listed {
        let bytes = store.get(&object.location).await.unwrap().bytes().await.unwrap();
        objects.insert(object.location.to_string(), bytes);
    }
    objects
}

async fn store_of(objects: &Objects) -> Arc<dyn ObjectStore> {
    let store = InMemory::new();
    for (name, bytes) in objects {
        store.put(&Path::from(name.as_str()), bytes.clone().into()).await.unwrap();
    }
    Arc::new(store)
}

async fn tiny() -> Objects {
    let folder = tempfile::tempdir().unwrap();
    write_tiny(folder.path());
    let (inner, store) = in_memory();
    let options =
        LoadOptions { segments: SegmentSettings::with_list_blocks(512), ..LoadOptions::from_paths([folder.path()]) };
    let report = load_into(&store, options).await.unwrap();
    assert_eq!((report.vertices, report.edges), (7, 30));
    objects_of(&inner).await
}

fn shown(value: impl Debug) -> String {
    format!("{value:?}")
}

/// Names and cells of a batch, whatever its own text looks like.
fn cells(batch: &RecordBatch) -> String {
    let schema = batch.schema();
    let cell = |column: usize, row: usize| {
        let value = array_value_to_string(batch.column(column), row).unwrap();
        let value = if batch.column(column).is_null(row) { "none".into() } else { format!("{value:?}") };
        format!("{}: {value}", schema.field(column).name())
    };
    let row = |row| (0..batch.num_columns()).map(|column| cell(column, row)).collect::<Vec<_>>().join(", ");
    (0..batch.num_rows()).map(row).collect::<Vec<_>>().join(" | ")
}

/// Everything that can be asked of a tiny graph: each answer as text, or why there is none.
pub(crate) async fn answers(graph: &Graph) -> Vec<Result<String, Error>> {
    let mut answers = Vec::new();
    let people = [1, 2, 30, -4, 0, 31].map(|key| ("P", Key::Int64(key)));
    let places = ["here", "there", "where else", "", "nowhere"].map(|key| ("C", Key::String(key.into())));
    let mut query = graph.query();
    answers.push(query.vertices(&people).await.map(shown));
    answers.push(query.vertices(&places).await.map(shown));
    let counts = &graph.manifest().vertex_counts;
    let all: Vec<VertexId> = (0u16..)
        .zip(counts)
        .flat_map(|(label, count)| (0..count.ordinals).filter_map(move |at| VertexId::new(hoplake::LabelId(label), at)))
        .collect();
    for hop in ["in:knows", "both", "both:knows[weight>2]"] {
        let hop: Hop = hop.parse().unwrap();
        let edges = query.neighbors(&all, &hop).await;
        if let Ok(edges) = &edges {
            let rows = query.edge_properties(edges, &["since", "weight"].map(str::to_owned)).await;
            let text = |rows: &EdgeRows| format!("{:?} {}", rows.positions, cells(&rows.batch));
            answers.push(rows.map(|rows| shown(rows.iter().map(text).collect::<Vec<_>>())));
        }
        answers.push(edges.map(|edges| format!("[{}]", edges.iter().map(in_words).collect::<Vec<_>>().join(", "))));
        answers.push(query.degrees(&all, &hop).await.map(shown));
        let traversal = Traversal { starts: all.clone(), hops: vec![hop; 2], ..Default::default() };
        answers.push(query.traverse(traversal).await.map(|reached| shown(reached.into_inner().depths)));
    }
    let frontier: Frontier = all.into_iter().collect();
    answers.push(query.keys(&frontier).await.map(shown));
    for properties in [&["list"][..], &["name", "bool", "int", "float", "day", "time", "list", "ints"]] {
        let properties: Vec<_> = properties.iter().copied().map(str::to_owned).collect();
        let rows = query.properties(&frontier, &properties).await;
        let text = |rows: &Rows| format!("{} {}", rows.label, cells(&rows.batch));
        answers.push(rows.map(|rows| shown(rows.iter().map(text).collect::<Vec<_>>())));
    }
    answers
}

/// An edge in the words of the first golden files, which do not name sorted runs.
fn in_words(edge: Neighbour) -> String {
    let Neighbour { from, to, edge_type, direction, position, .. } = edge;
    format!(
        "Neighbour {{ from: {from:?}, to: {to:?}, edge_type: {edge_type:?}, direction: {direction:?}, position: {position} }}"
    )
}

fn settings() -> OpenSettings {
    // A small cache, because a fresh one is made for every damage, and no pause before each second try.
    let retry = RetrySettings { attempts_max: 2, backoff_ms: 0, ..Default::default() };
    OpenSettings { read: ReadSettings { cache_bytes_max: 1 << 16, retry, ..Default::default() }, ..Default::default() }
}

async fn open_damaged(store: &Store, version: Option<u64>) -> Result<Graph, Error> {
    Graph::open_with(store.clone(), &OpenSettings { version, ..settings() }).await
}

/// What became of one damage.
enum Outcome {
    /// All answers are right, and whether `verify` found it.
    Right(Result<(), Error>),
    /// Something failed as it must.
    Rejected,
}

fn assert_damage(error: &Error, case: &str) {
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{case}: {error}");
}

/// Reads everything; answers must be right, and errors must report damage.
async fn outcome(store: &Store, version: Option<u64>, expected: &[String], case: &str) -> Outcome {
    let ask = async {
        let graph = match open_damaged(store, version).await {
            Ok(graph) => graph,
            Err(error) => {
                assert_damage(&error, case);
                return Outcome::Rejected;
            }
        };
        let mut rejected = false;
        let found = answers(&graph).await;
        let mut rest = expected.iter();
        for answer in found {
            match answer {
                // An answer is left out where the one before it failed.
                Ok(answer) => assert!(rest.any(|expected| *expected == answer), "{case}: {answer} is another answer"),
                Err(error) => {
                    assert_damage(&error, case);
                    rejected = true;
                }
            }
        }
        let verified = graph.verify(|_| ()).await.map(drop);
        if let Err(error) = &verified {
            assert_damage(error, case);
        }
        if rejected {
            assert!(verified.is_err(), "{case}: verify finds what a query finds");
            return Outcome::Rejected;
        }
        Outcome::Right(verified)
    };
    AssertUnwindSafe(ask).catch_unwind().await.unwrap_or_else(|_| panic!("{case}: a panic"))
}

#[derive(Debug, Clone, Copy)]
enum Damage {
    Flip(usize),
    Cut(usize),
}

impl Damage {
    fn on(self, whole: &Bytes) -> Bytes {
        match self {
            Self::Flip(byte) => {
                let mut bytes = whole.to_vec();
                bytes[byte] ^= 1 << (byte % 8);
                bytes.into()
            }
            Self::Cut(length) => whole.slice(..length),
        }
    }
}

/// Applies `damages` to one object, and gives each outcome to `judge`.
async fn each_damage(
    objects: &Objects,
    name: &str,
    version: Option<u64>,
    expected: &[String],
    damages: impl Iterator<Item = Damage>,
    judge: impl Fn(Outcome, &str),
) {
    let inner = store_of(objects).await;
    let store = graph_at(inner.clone());
    for damage in damages {
        let damaged = damage.on(&objects[name]);
        inner.put(&Path::from(name), damaged.into()).await.unwrap();
        let case = format!("{name}, {damage:?}");
        judge(outcome(&store, version, expected, &case).await, &case);
    }
}

async fn expected_of(objects: &Objects) -> Vec<String> {
    let graph = open(&graph_at(store_of(objects).await)).await;
    graph.verify(|_| ()).await.unwrap();
    answers(&graph).await.into_iter().map(Result::unwrap).collect()
}

/// Every byte flipped; cut at every length that is short, and at every 31st else.
fn damages(length: usize) -> Vec<Damage> {
    let cuts = (0..length).filter(|cut| *cut < 32 || cut % 31 == 0 || *cut + 32 > length);
    (0..length).map(Damage::Flip).chain(cuts.map(Damage::Cut)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_damage_of_a_data_object_is_found() {
    let objects = Arc::new(tiny().await);
    let expected = Arc::new(expected_of(&objects).await);
    let mut running = Vec::new();
    for name in objects.keys().filter(|name| name.starts_with("g/data/")) {
        for part in damages(objects[name].len()).chunks(64) {
            let objects = objects.clone();
            let expected = expected.clone();
            let name = name.clone();
            let part = part.to_vec();
            running.push(tokio::spawn(async move {
                let judge = |outcome, case: &str| {
                    // A byte that no answer needs is still found by who looks at everything.
                    if let Outcome::Right(Ok(())) = outcome {
                        panic!("{case}: verify finds the graph intact");
                    }
                };
                each_damage(&objects, &name, None, &expected, part.into_iter(), judge).await;
            }));
        }
    }
    assert!(running.len() > 20, "{} parts", running.len());
    for part in running {
        part.await.unwrap();
    }
}

#[tokio::test]
async fn a_damaged_hint_changes_nothing() {
    let objects = tiny().await;
    let expected = expected_of(&objects).await;
    let whole = |outcome: Outcome, case: &str| assert!(matches!(outcome, Outcome::Right(Ok(()))), "{case}");
    let some = damages(objects["g/hint"].len()).into_iter().step_by(3);
    each_damage(&objects, "g/hint", None, &expected, some, whole).await;
}

#[tokio::test]
async fn a_damaged_manifest_is_rejected_by_whoever_reads_it() {
    let mut objects = tiny().await;
    let expected = expected_of(&objects).await;
    let name = objects.keys().find(|name| name.starts_with("g/manifest/")).unwrap().clone();
    let rejected = |outcome: Outcome, case: &str| assert!(matches!(outcome, Outcome::Rejected), "{case}");
    let damages = damages(objects[&name].len());
    each_damage(&objects, &name, Some(1), &expected, damages.iter().copied(), rejected).await;
    // The hint is a copy: with it, no reader needs the manifest.
    let whole = |outcome: Outcome, case: &str| assert!(matches!(outcome, Outcome::Right(Ok(()))), "{case}");
    each_damage(&objects, &name, None, &expected, damages.iter().copied().step_by(50), whole).await;
    objects.remove("g/hint");
    each_damage(&objects, &name, None, &expected, damages.into_iter(), rejected).await;
}

#[tokio::test]
async fn lost_objects_are_named() {
    let objects = tiny().await;
    let expected = expected_of(&objects).await;
    for name in objects.keys().filter(|name| name.starts_with("g/data/")) {
        let mut fewer = objects.clone();
        fewer.remove(name);
        let store = graph_at(store_of(&fewer).await);
        let outcome = outcome(&store, None, &expected, name).await;
        assert!(!matches!(outcome, Outcome::Right(Ok(()))), "{name} is lost");
        let error = match open_damaged(&store, None).await {
            Ok(graph) => graph.verify(|_| ()).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(error.to_string().contains(name.trim_start_matches("g/")), "{error}");
    }
}

/// An object that is another's in full, with all its checksums right.
#[tokio::test]
async fn an_object_under_anothers_name_is_found() {
    let objects = tiny().await;
    let expected = expected_of(&objects).await;
    let names: Vec<_> = objects.keys().filter(|name| name.starts_with("g/data/")).collect();
    for (name, other) in names.iter().flat_map(|name| names.iter().map(move |other| (name, other))) {
        if objects[*name] == objects[*other] {
            continue;
        }
        let mut swapped = objects.clone();
        swapped.insert((*name).clone(), objects[*other].clone());
        let store = graph_at(store_of(&swapped).await);
        let outcome = outcome(&store, None, &expected, &format!("{other} instead of {name}")).await;
        assert!(!matches!(outcome, Outcome::Right(Ok(()))), "{other} instead of {name}");
    }
}

#[tokio::test]
async fn verify_names_object_section_and_block() {
    let folder = tempfile::tempdir().unwrap();
    let file = edge_list(folder.path(), "graph.el", log_normal(2_000, 1.8, 0.5, 5));
    let (inner, store) = in_memory();
    load_into(
        &store,
        LoadOptions { segments: SegmentSettings::with_list_blocks(512), ..LoadOptions::from_paths([file]) },
    )
    .await
    .unwrap();
    let graph = open(&store).await;
    let mut seen = BTreeSet::new();
    for segment in &graph.manifest().segments {
        let path = Path::from(format!("g/{}", segment.name));
        let whole = inner.get(&path).await.unwrap().bytes().await.unwrap();
        for section in decode_root(&whole, &segment.end).unwrap().sections {
            let index = section.index_blocks(&segment.name, &segment.end, &whole).unwrap();
            let ranges: Vec<_> =
                index.iter().flat_map(|index| (0..index.len()).map(|block| index.range(block))).collect();
            let blocks = ranges.len();
            assert!(blocks > 4 || matches!(section.kind, SectionKind::Keys(_)), "{blocks} blocks");
            for block in [0, blocks / 2, blocks - 1] {
                let range = &ranges[block];
                for byte in [range.start, (range.start + range.end) / 2, range.end - 1] {
                    inner.put(&path, Damage::Flip(byte as usize).on(&whole).into()).await.unwrap();
                    let error = graph.verify(|_| ()).await.unwrap_err();
                    let holds = match section.kind {
                        SectionKind::Adjacency(_, Direction::Out) => "edges vertex -edge-> vertex, out",
                        SectionKind::Adjacency(_, Direction::In) => "edges vertex -edge-> vertex, in",
                        _ => "keys of vertex",
                    };
                    let case = format!("{}, {holds}, block {block}: ", store.location(&segment.name));
                    assert!(error.to_string().starts_with(&case), "{error} begins with {case}");
                    seen.insert(section.kind);
                }
            }
        }
        inner.put(&path, whole.into()).await.unwrap();
    }
    assert_eq!(seen.len(), 3);
    let whole = graph.verify(|_| ()).await.unwrap();
    let manifest = graph.manifest();
    assert_eq!(whole.objects as usize, manifest.segments.len() + manifest.tables.len());
    assert_eq!(whole.bytes, graph.info().await.unwrap().total_bytes);
}
