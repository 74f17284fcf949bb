//! Property indexes: they never change an answer, commits and compactions keep them, and a look-up is one wave.

use std::sync::Arc;

use futures::join;
use hoplake::{
    Batch, CompactionSettings, Condition, ErrorKind, Graph, IndexSettings, Limits, LoadOptions, Manifest, OpenSettings,
    Operation, Properties, ScanRequest, SectionKind, SegmentSettings, Store, Value, VertexOrder, VertexRef,
};
use hoplake_testkit::generate::SplitMix64;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};

use crate::{
    graphs::{graph_at, in_memory, load_apart, load_into, open},
    waves::{assert_same, in_parts, open as open_counted},
};

const PROPERTIES: [&str; 6] = ["name", "flag", "int", "float", "day", "time"];

/// Vertices that are loaded; commits name some more.
const VERTICES: u64 = 400;

/// Blocks of a few items, so that values span blocks, index blocks and segments.
fn small_blocks() -> SegmentSettings {
    SegmentSettings { key_block_bytes: 200, index_entries: 4, tail_bytes: 4_000, ..SegmentSettings::default() }
}

fn text(random: &mut SplitMix64) -> String {
    let long = "long and longer ".repeat(8);
    match random.below(8) {
        0 => String::new(),
        1 => long,
        2 => format!("{long}{}", random.below(3)),
        3 => format!("Ä{}", random.below(4)),
        _ => format!("n{}", random.below(40)),
    }
}

/// A value of a property, as conditions and files have it.
fn literal(random: &mut SplitMix64, property: &str) -> String {
    match property {
        "name" => text(random),
        "flag" => (random.below(2) == 0).to_string(),
        "int" => match random.below(6) {
            0 => (i64::MAX - random.below(3) as i64).to_string(),
            _ => (random.below(60) as i64 - 30).to_string(),
        },
        "float" => match random.below(8) {
            0 => "NaN".into(),
            1 => "-0.0".into(),
            2 => "Infinity".into(),
            _ => (random.below(40) as f64 / 4.0 - 5.0).to_string(),
        },
        "day" => format!("20{:02}-0{}-1{}", random.below(30), 1 + random.below(9), random.below(9)),
        _ => format!("19{:02}-01-01T00:00:0{}Z", 50 + random.below(49), random.below(10)),
    }
}

fn value(random: &mut SplitMix64, property: &str) -> Value {
    if random.below(8) == 0 {
        return Value::Null;
    }
    match property {
        "name" if random.below(10) == 0 => Value::String("n\0".into()),
        "name" => Value::String(text(random)),
        "flag" => Value::Bool(random.below(2) == 0),
        "int" => Value::Int64(literal(random, property).parse().unwrap()),
        "float" => Value::Float64(literal(random, property).parse().unwrap()),
        "day" => Value::Date(random.below(20_000) as i32),
        _ => Value::Timestamp(random.below(1 << 40) as i64 - (1 << 39)),
    }
}

fn vertices(folder: &std::path::Path) {
    let mut random = SplitMix64::new(5);
    let mut rows = ":ID(P),name,flag:boolean,int:long,float:double,day:date,time:datetime,list:string[]\n".to_owned();
    for key in 0..VERTICES {
        rows.push_str(&key.to_string());
        for property in PROPERTIES {
            let cell = if random.below(6) == 0 { String::new() } else { literal(&mut random, property) };
            rows.push_str(&format!(",{cell}"));
        }
        rows.push_str(",a;b\n");
    }
    std::fs::write(folder.join("P.csv"), rows).unwrap();
    std::fs::write(folder.join("C.csv"), ":ID(C),name\n1,n1\n2,n2\n").unwrap();
    std::fs::write(folder.join("likes.csv"), ":START_ID(P),:END_ID(C),:TYPE\n1,1,likes\n2,2,likes\n").unwrap();
}

fn all_indexes() -> Vec<String> {
    PROPERTIES.iter().map(|property| format!("P.{property}")).chain(["C.name".to_owned()]).collect()
}

fn options(folder: &std::path::Path, indexes: Vec<String>, order: VertexOrder) -> LoadOptions {
    LoadOptions { indexes, order, segments: small_blocks(), ..LoadOptions::from_paths([folder]) }
}

fn test(random: &mut SplitMix64) -> String {
    let property = PROPERTIES[random.below(6) as usize];
    let mut quoted = || format!("\"{}\"", literal(random, property));
    let a = quoted();
    let b = quoted();
    let c = quoted();
    match random.below(12) {
        0..4 => format!("{property} = {a}"),
        4..7 => format!("{property} {} {a}", ["<", "<=", ">", ">=", "!="][random.below(5) as usize]),
        7 => format!("{property} between {a} and {b}"),
        8 => format!("{property} in ({a}, {b}, {c})"),
        9 => format!("name starts with \"{}\"", ["", "n", "n1", "long and longer long", "Ä"][random.below(5) as usize]),
        10 => format!("{property} is not null"),
        _ => format!("not {property} = {a}"),
    }
}

fn condition(random: &mut SplitMix64) -> String {
    match random.below(5) {
        0 => format!("{} and {}", test(random), test(random)),
        1 => format!("{} and ({} or {})", test(random), test(random), test(random)),
        2 => format!("{} or {}", test(random), test(random)),
        _ => test(random),
    }
}

/// What a scan returns, row by row, and how many vertices are found without their rows.
async fn answer(graph: &Graph, condition: &str) -> (Vec<String>, u64) {
    let condition: Condition = condition.parse().unwrap();
    let select = PROPERTIES.map(str::to_owned).to_vec();
    let request = ScanRequest {
        labels: vec!["P".into()],
        condition: Some(condition),
        select: select.clone(),
        ..ScanRequest::default()
    };
    let mut query = graph.query();
    let mut scan = query.scan(&request).unwrap();
    let mut rows = Vec::new();
    while let Some(found) = query.next_rows(&mut scan).await.unwrap() {
        for row in 0..found.batch.num_rows() {
            let cells = found.batch.columns().iter().map(|column| format!("{:?}", Value::at(column, row)));
            rows.push(cells.collect::<Vec<_>>().join(" "));
        }
    }
    let found = query.find(&request).await.unwrap();
    assert_eq!(query.count_found(&request).await.unwrap(), found.len() as u64);
    (rows, found.len() as u64)
}

/// The graph with indexes answers as the one without.
async fn assert_alike(plain: &Graph, indexed: &Graph, random: &mut SplitMix64, stage: &str) -> u64 {
    let mut found = 0;
    for _ in 0..40 {
        let condition = condition(random);
        let expected = answer(plain, &condition).await;
        assert_eq!(answer(indexed, &condition).await, expected, "{stage}: {condition}");
        assert_eq!(expected.0.len() as u64, expected.1);
        found += expected.1;
    }
    indexed.verify(|_| ()).await.unwrap();
    found
}

/// Vertices are added, changed in part and completely, deleted, and brought back.
fn batch(random: &mut SplitMix64) -> Batch {
    let mut operations = Vec::new();
    for _ in 0..40 {
        let vertex = VertexRef::new("P", random.below(VERTICES + 40) as i64);
        if random.below(4) == 0 {
            operations.push(Operation::DeleteVertex { vertex: vertex.clone() });
            if random.below(2) == 0 {
                continue;
            }
        }
        let named: Vec<_> = PROPERTIES.iter().filter(|_| random.below(3) == 0).collect();
        let properties: Properties = named.into_iter().map(|name| (*name, value(random, name))).collect();
        operations.push(Operation::UpsertVertex { vertex, properties, replace: random.below(3) == 0 });
    }
    Batch { operations, ..Batch::default() }
}

async fn commit(graphs: [&mut Graph; 2], random: &mut SplitMix64) {
    let batch = batch(random);
    for graph in graphs {
        graph.apply(batch.clone()).await.unwrap();
        graph.refresh().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_changes_no_answer_whatever_commits_and_compactions_do() {
    for (seed, order) in [(1, VertexOrder::Keys), (2, VertexOrder::Locality), (3, VertexOrder::Keys)] {
        let folder = tempfile::tempdir().unwrap();
        vertices(folder.path());
        let (_, plain_store) = in_memory();
        let (_, store) = in_memory();
        load_into(&plain_store, options(folder.path(), vec![], order)).await.unwrap();
        let at_load = if seed == 3 { vec![] } else { all_indexes() };
        load_into(&store, options(folder.path(), at_load, order)).await.unwrap();
        let mut plain = open(&plain_store).await;
        let mut indexed = open(&store).await;
        let mut random = SplitMix64::new(seed);
        let mut found = assert_alike(&plain, &indexed, &mut random, "loaded").await;
        for round in 0..3 {
            commit([&mut plain, &mut indexed], &mut random).await;
            if seed == 3 && round == 1 {
                for name in all_indexes() {
                    let settings = IndexSettings { segments: small_blocks(), ..IndexSettings::default() };
                    Graph::create_index(&store, &name, &settings).await.unwrap();
                }
                indexed.refresh().await.unwrap();
            }
            found += assert_alike(&plain, &indexed, &mut random, &format!("commit {round}")).await;
        }
        for everything in [false, true] {
            for _ in 0..2 {
                commit([&mut plain, &mut indexed], &mut random).await;
            }
            let settings = CompactionSettings { everything, segments: small_blocks(), ..CompactionSettings::default() };
            let compacted = Graph::compact(&store, &settings).await.unwrap();
            assert!(compacted.merges > 0);
            indexed.refresh().await.unwrap();
            found += assert_alike(&plain, &indexed, &mut random, "compacted").await;
        }
        assert_eq!(indexed.indexes().await.unwrap().len(), 7);
        assert!(indexed.indexes().await.unwrap().iter().all(|size| size.runs == 1 && size.index.is_ready()));
        commit([&mut plain, &mut indexed], &mut random).await;
        found += assert_alike(&plain, &indexed, &mut random, "after").await;
        assert!(found > 3_000, "only {found} vertices");
    }
}

/// Statistics of another column, such as the keys, would skip row groups that have what is sought.
#[tokio::test]
async fn a_scan_skips_by_the_statistics_of_the_column_that_it_tests() {
    let (_, store) = loaded(&[]).await;
    let graph = open(&store).await;
    for (property, value) in [("time", "1979-01-01T00:00:00Z"), ("int", "1000"), ("int", "-1"), ("day", "2015-01-01")] {
        let all = found(&graph, &format!("{property} is not null")).await;
        let less = found(&graph, &format!("{property} < {value}")).await;
        let rest = found(&graph, &format!("{property} >= {value}")).await;
        assert!(less > 0 && rest > 0 && less + rest == all, "{property} {value}: {less}, {rest} of {all}");
    }
}

#[tokio::test]
async fn an_index_outlives_the_widening_of_its_property() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("P.csv"), ":ID(P),n:long\n1,7\n2,-7\n3,\n").unwrap();
    let (_, store) = in_memory();
    load_into(&store, LoadOptions { indexes: vec!["P.n".into()], ..LoadOptions::from_paths([folder.path()]) })
        .await
        .unwrap();
    let mut graph = open(&store).await;
    let mut commit = graph.begin();
    commit.upsert_vertex("P", 3, [("n", 7.5)]).upsert_vertex("P", 2, [("n", 7.0)]);
    commit.commit().await.unwrap();
    graph.refresh().await.unwrap();
    graph.verify(|_| ()).await.unwrap();
    for (condition, keys) in [("n = 7", "1 2"), ("n > 7", "3"), ("n < 0", ""), ("n in (7.5, 7)", "1 2 3")] {
        let request = ScanRequest { condition: Some(condition.parse().unwrap()), ..ScanRequest::default() };
        let mut query = graph.query();
        let mut scan = query.scan(&request).unwrap();
        let mut found = Vec::new();
        while let Some(rows) = query.next_rows(&mut scan).await.unwrap() {
            found.extend((0..rows.batch.num_rows()).map(|row| Value::at(rows.batch.column(0), row).to_string()));
        }
        assert_eq!(found.join(" "), keys, "{condition}");
    }
}

/// A graph of people whose names are all different and whose ages are few.
fn people(indexes: &[&str]) -> Arc<dyn ObjectStore> {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = ":ID(P),name,age:long,city\n".to_owned();
    for key in 0..20_000 {
        rows.push_str(&format!("{key},n{:05},{},c{}\n", key * 7_919 % 20_000, key % 100, key % 50));
    }
    std::fs::write(folder.path().join("P.csv"), rows).unwrap();
    let indexes = indexes.iter().map(|name| (*name).to_owned()).collect();
    load_apart(LoadOptions { indexes, ..LoadOptions::from_paths([folder.path()]) }).0
}

async fn cost_of(inner: &Arc<dyn ObjectStore>, condition: &str, select: &[&str]) -> (u64, u64, u64, usize) {
    let select = select.iter().map(|name| (*name).to_owned()).collect();
    let request = ScanRequest { condition: Some(condition.parse().unwrap()), select, ..ScanRequest::default() };
    cost_within(inner, &request, Limits::default()).await
}

async fn cost_within(inner: &Arc<dyn ObjectStore>, request: &ScanRequest, limits: Limits) -> (u64, u64, u64, usize) {
    let (store, graph) = open_counted(inner, &in_parts()).await;
    store.reset();
    let mut query = graph.query();
    query.limit(&limits);
    let mut found = 0;
    if request.select.is_empty() {
        found = query.find(request).await.unwrap().len();
    } else {
        let mut scan = query.scan(request).unwrap();
        while let Some(rows) = query.next_rows(&mut scan).await.unwrap() {
            found += rows.batch.num_rows();
        }
    }
    assert_same(&store, query.cost());
    let cost = query.cost();
    (cost.waves, cost.requests, cost.store_bytes, found)
}

#[tokio::test(start_paused = true)]
async fn a_look_up_is_one_wave_and_its_rows_one_more() {
    let inner = people(&["P.name", "P.age"]);
    // What decides is in the index: one block, or those of a range.
    for (condition, found, bytes_max) in [
        ("name = n00700", 1, 4 << 10),
        ("name = nobody", 0, 4 << 10),
        ("name in (n00700, n19999, n10000)", 3, 12 << 10),
        ("name starts with n007", 100, 8 << 10),
        ("name between n00000 and n00199", 200, 12 << 10),
        ("name < n00050 and name >= n00040", 10, 8 << 10),
        ("age = 7", 200, 8 << 10),
        ("age > 97", 400, 12 << 10),
    ] {
        let (waves, requests, bytes, count) = cost_of(&inner, condition, &[]).await;
        assert_eq!((waves, count), (1, found), "{condition}");
        assert!(requests <= 3 && bytes <= bytes_max, "{condition}: {requests} requests, {bytes} bytes");
    }
    // The rows: pages, whose places come with the index.
    for (condition, found) in [("name = n00700", 1), ("name = n00700 and city = c3", 0), ("age = 7 and city = c7", 200)]
    {
        let (waves, _, bytes, count) = cost_of(&inner, condition, &["city"]).await;
        assert_eq!((waves, count), (2 + u64::from(condition.contains("and") && count > 0), found), "{condition}");
        assert!(bytes < 400 << 10, "{condition}: {bytes} bytes");
    }
    // Most vertices: the column is read from one end to the other, and the index is left alone.
    let (_, _, scanned, count) = cost_of(&inner, "age < 60", &[]).await;
    let (_, _, unindexed, _) = cost_of(&inner, "city != c60", &[]).await;
    assert!(count == 12_000 && scanned < 2 * unindexed, "{scanned} bytes of a scan, {unindexed} of another");
}

/// The first wave of a scan reads the ends of tables, and a look-up that finds all has one.
#[tokio::test(start_paused = true)]
async fn an_index_is_left_alone_where_a_scan_is_better() {
    let inner = people(&["P.name", "P.age"]);
    let find =
        |condition: String| ScanRequest { condition: Some(condition.parse().unwrap()), ..ScanRequest::default() };
    // More values than vertices that it may lead to; and not as many, which are held in memory.
    let names = |count: usize| {
        let names: Vec<_> = (0..count).map(|name| format!("n{name:05}")).collect();
        find(format!("name in ({})", names.join(", ")))
    };
    let (waves, _, _, found) = cost_within(&inner, &names(2_501), Limits::default()).await;
    assert_eq!((waves, found), (2, 2_501));
    let (waves, _, _, found) = cost_within(&inner, &names(2_000), Limits::default()).await;
    assert_eq!((waves, found), (1, 2_000));
    let (_, graph) = open_counted(&inner, &in_parts()).await;
    let mut query = graph.query();
    query.find(&names(2_000)).await.unwrap();
    assert!(query.memory().peak() > 190_000, "{}", query.memory().peak());
}

/// Every tenth vertex is in the group: the first hundreds of rows have some of it.
#[tokio::test(start_paused = true)]
async fn a_few_of_many_are_found_by_a_scan() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..60_000).map(|key| format!("{key},{}\n", key % 10)).collect();
    std::fs::write(folder.path().join("P.csv"), format!(":ID(P),group:long\n{rows}")).unwrap();
    let indexes = vec!["P.group".to_owned()];
    // Blocks of a few items, so that it is known how many there are.
    let segments = SegmentSettings { key_block_bytes: 200, ..SegmentSettings::default() };
    let inner = load_apart(LoadOptions { indexes, segments, ..LoadOptions::from_paths([folder.path()]) }).0;
    let little = Some(512 << 10);
    // The last: a quarter of the memory does not hold what the index leads to, and a scan needs no more for more.
    for (limit, memory_bytes_max, found, by_index) in [
        (None, None, 6_000, true),
        (Some(10), None, 10, false),
        (Some(500), None, 500, true),
        (None, little, 6_000, false),
    ] {
        let condition = Some("group = 3".parse().unwrap());
        let request = ScanRequest { condition, limit, ..ScanRequest::default() };
        let limits = Limits { memory_bytes_max, ..Limits::default() };
        let (waves, _, _, count) = cost_within(&inner, &request, limits).await;
        assert_eq!((waves == 1, count), (by_index, found), "{limit:?}, {memory_bytes_max:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn commits_add_no_wave_to_a_look_up() {
    let inner = people(&["P.name", "P.age"]);
    let mut graph = Graph::open_with(graph_at(inner.clone()), &OpenSettings::default()).await.unwrap();
    for number in 0..5 {
        let mut commit = graph.begin();
        commit.upsert_vertex("P", number, [("name", "n00700")]).upsert_vertex("P", 30_000 + number, [("name", "new")]);
        commit.commit().await.unwrap();
        graph.refresh().await.unwrap();
    }
    let (waves, requests, _, found) = cost_of(&inner, "name = n00700", &[]).await;
    assert_eq!((waves, found), (1, 6));
    assert!(requests <= 11, "{requests} requests for six runs");
    let (waves, requests, _, found) = cost_of(&inner, "name = n10000", &[]).await;
    assert_eq!((waves, found), (1, 1));
    assert!(requests <= 11, "{requests} requests");
}

/// The waves of a commit of one operation, on a graph that was just opened.
async fn commit_waves(inner: &Arc<dyn ObjectStore>, operation: Operation) -> u64 {
    let (_, mut graph) = open_counted(inner, &in_parts()).await;
    // The first commit of a process tries the store.
    graph.begin().upsert_vertex("P", 29_999, [("age", 1)]).commit().await.unwrap();
    graph.refresh().await.unwrap();
    graph.apply(Batch { operations: vec![operation], ..Batch::default() }).await.unwrap().cost.waves
}

#[tokio::test(start_paused = true)]
async fn a_commit_reads_old_values_next_to_what_else_it_reads() {
    let of = |key: i64, replace| Operation::UpsertVertex {
        vertex: VertexRef::new("P", key),
        properties: Properties::from([("name", "new"), ("city", "new")]),
        replace,
    };
    let gone = Operation::DeleteVertex { vertex: VertexRef::new("P", 3) };
    let mut waves = Vec::new();
    for indexes in [&[][..], &["P.name"]] {
        let mut of_graph = Vec::new();
        for operation in [of(28_000, true), of(1, false), of(2, true), gone.clone()] {
            of_graph.push(commit_waves(&people(indexes), operation).await);
        }
        waves.push(of_graph);
    }
    // A new vertex; one that is changed in part, whose row is read anyway; one that is replaced, and one that is deleted: the
    // page of the old value. The end of the table is read with the keys.
    assert_eq!(waves, [[2, 4, 3, 3], [2, 4, 4, 4]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_of_newer_runs_keeps_what_they_removed() {
    let inner = people(&["P.name", "P.age"]);
    let store = graph_at(inner.clone());
    let mut graph = open(&store).await;
    for number in 0..6 {
        graph.begin().upsert_vertex("P", number, [("name", "moved")]).commit().await.unwrap();
        graph.refresh().await.unwrap();
    }
    let settings = CompactionSettings { lowest_tier_bytes: 64, ..CompactionSettings::default() };
    Graph::compact(&store, &settings).await.unwrap();
    graph.refresh().await.unwrap();
    let size = graph.indexes().await.unwrap().swap_remove(0);
    assert!(size.runs > 1 && size.runs < 7 && size.entries == 20_000 + 2 * 6, "{size:?}");
    graph.verify(|_| ()).await.unwrap();
    let request =
        |condition: &str| ScanRequest { condition: Some(condition.parse().unwrap()), ..ScanRequest::default() };
    let mut query = graph.query();
    assert_eq!(query.count_found(&request("name = moved")).await.unwrap(), 6);
    assert_eq!(query.count_found(&request("name in (n00000, n07919, n15838)")).await.unwrap(), 0);
    let everything = CompactionSettings { everything: true, ..CompactionSettings::default() };
    Graph::compact(&store, &everything).await.unwrap();
    graph.refresh().await.unwrap();
    let size = graph.indexes().await.unwrap().swap_remove(0);
    assert_eq!((size.runs, size.entries), (1, 20_000));
}

fn list() -> Vec<(&'static str, &'static str)> {
    vec![
        ("P.list", "lists have no index"),
        ("P.nothing", "have no property \"nothing\""),
        ("Q.name", "begins with no label"),
        ("name", "written as label.property"),
    ]
}

async fn loaded(indexes: &[&str]) -> (Arc<dyn ObjectStore>, Store) {
    let folder = tempfile::tempdir().unwrap();
    vertices(folder.path());
    let (inner, store) = in_memory();
    let indexes = indexes.iter().map(|name| (*name).to_owned()).collect();
    load_into(&store, options(folder.path(), indexes, VertexOrder::Keys)).await.unwrap();
    (inner, store)
}

#[tokio::test]
async fn what_cannot_have_an_index_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    vertices(folder.path());
    for (name, why) in list() {
        let (_, store) = in_memory();
        let at_load = options(folder.path(), vec![name.to_owned()], VertexOrder::Keys);
        let error = load_into(&store, at_load).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains(why), "{error}");
        let (_, store) = loaded(&[]).await;
        let error = Graph::create_index(&store, name, &IndexSettings::default()).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains(why), "{error}");
        assert_eq!(Graph::newest(&store).await.unwrap().leases, []);
    }
    let (_, store) = loaded(&["P.name"]).await;
    let error = Graph::create_index(&store, "P.name", &IndexSettings::default()).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.to_string().contains("already"), "{error}");
    let error = Graph::drop_index(&store, "P.int").await.unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.to_string().contains("the graph has P.name"), "{error}");
    let little = IndexSettings { memory_bytes: 1 << 20, ..IndexSettings::default() };
    assert_eq!(Graph::create_index(&store, "P.int", &little).await.unwrap_err().kind(), ErrorKind::Invalid);
}

async fn found(graph: &Graph, condition: &str) -> usize {
    answer(graph, condition).await.0.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_commit_while_an_index_is_built_is_in_it() {
    let (_, store) = loaded(&[]).await;
    let graph = open(&store).await;
    let commits = async {
        for number in 0..30i64 {
            let mut commit = graph.begin();
            commit.upsert_vertex("P", number, [("name", "meanwhile")]).delete_vertex("P", 100 + number);
            commit.commit().await.unwrap();
        }
    };
    let settings = IndexSettings::default();
    let (built, ()) = join!(Graph::create_index(&store, "P.name", &settings), commits);
    let built = built.unwrap();
    let graph = open(&store).await;
    assert!(graph.version() >= built.version);
    graph.verify(|_| ()).await.unwrap();
    assert_eq!(found(&graph, "name = meanwhile").await, 30);
    assert_eq!(graph.manifest().leases, []);
}

#[tokio::test]
async fn a_build_that_stops_leaves_nothing() {
    let (inner, store) = loaded(&[]).await;
    let objects = async || {
        use futures::TryStreamExt;
        let listed: Vec<_> = inner.list(Some(&Path::from("g/data"))).try_collect().await.unwrap();
        listed.len()
    };
    let before = objects().await;
    for polls in [1, 3, 6, 10, 20, 40] {
        let mut left = polls;
        let stop = std::future::poll_fn(|context| {
            left -= 1;
            context.waker().wake_by_ref();
            if left == 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        });
        let built = Graph::create_index_until(&store, "P.name", &IndexSettings::default(), stop).await.unwrap();
        let newest = Graph::newest(&store).await.unwrap();
        assert_eq!((newest.leases.len(), newest.indexes.len()), (0, usize::from(built.is_some())), "{polls} polls");
        if built.is_some() {
            Graph::drop_index(&store, "P.name").await.unwrap();
        } else {
            assert!(objects().await <= before + 1, "{polls} polls");
        }
    }
}

#[tokio::test]
async fn indexes_of_versions_and_clones_are_their_own() {
    let (inner, store) = loaded(&["P.int"]).await;
    let loaded = open(&store).await.version();
    Graph::create_index(&store, "P.name", &IndexSettings::default()).await.unwrap();
    let mut graph = open(&store).await;
    graph.begin().upsert_vertex("P", 1, [("name", "later")]).commit().await.unwrap();
    graph.refresh().await.unwrap();
    let both = graph.version();
    let names = |graph: &Graph| graph.manifest().indexes.iter().map(|it| it.property.clone()).collect::<Vec<_>>();
    // A clone has what it began as, and goes on by itself.
    let clone = Store::new(inner.clone(), "clone".into(), "memory://test/clone");
    Graph::clone_to(&store, None, &clone).await.unwrap();
    Graph::drop_index(&store, "P.int").await.unwrap();
    Graph::restore(&store, loaded, "").await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!(names(&graph), ["int"]);
    assert_eq!(found(&graph, "name = later").await, 0);
    graph.begin().upsert_vertex("P", 2, [("int", 12_345)]).commit().await.unwrap();
    graph.refresh().await.unwrap();
    graph.verify(|_| ()).await.unwrap();
    assert_eq!(found(&graph, "int = 12345").await, 1);
    // A number is not given again.
    Graph::create_index(&store, "P.float", &IndexSettings::default()).await.unwrap();
    Graph::restore(&store, both, "").await.unwrap();
    Graph::create_index(&store, "P.day", &IndexSettings::default()).await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!(names(&graph), ["int", "name", "day"]);
    assert_eq!(graph.manifest().indexes.iter().map(|it| it.id.0).collect::<Vec<_>>(), [0, 1, 3]);
    assert_eq!(found(&graph, "name = later").await, 1);
    graph.verify(|_| ()).await.unwrap();
    let mut graph = open(&clone).await;
    assert_eq!(names(&graph), ["int", "name"]);
    graph.begin().upsert_vertex("P", 3, [("name", "later")]).commit().await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!(found(&graph, "name = later").await, 2);
    graph.verify(|_| ()).await.unwrap();
}

/// Announces an index of a property of P, as a writer does that then dies. Returns the writer.
async fn announce(store: &Store, property: &str) -> String {
    let newest = Graph::newest(store).await.unwrap();
    let mut announced = newest.next(newest.change.clone(), newest.created_unix_ms);
    let writer = "01JDXAAAAAAAAAAAAAAAAAAAAA".to_owned();
    let id = hoplake::IndexId(newest.next_index);
    let label = announced.schema.label_id("P").unwrap();
    let index = hoplake::PropertyIndex { id, label, property: property.into(), writer: Some(writer.clone()) };
    announced.indexes.push(index);
    announced.next_index += 1;
    let since = announced.version;
    announced.leases.push(hoplake::WriterLease { writer: writer.clone(), kind: hoplake::ChangeKind::Index, since });
    let slot = format!("manifest/{:020}.hlm", announced.version);
    assert!(store.create(&slot, announced.encode().into()).await.unwrap());
    writer
}

#[tokio::test]
async fn a_mirror_has_no_index_that_is_being_built() {
    let (_, store) = loaded(&["P.float"]).await;
    let writer = announce(&store, "int").await;
    let mut graph = open(&store).await;
    let both = [("int", Value::Int64(77)), ("float", Value::Float64(7.5))];
    graph.begin().upsert_vertex("P", 1, both).commit().await.unwrap();
    graph.refresh().await.unwrap();
    let properties = |graph: &Graph| graph.manifest().indexes.iter().map(|it| it.property.clone()).collect::<Vec<_>>();
    assert_eq!(properties(&graph), ["float", "int"]);
    let folder = tempfile::tempdir().unwrap();
    let target = Store::open(folder.path().to_str().unwrap()).unwrap();
    Graph::mirror(&store, &target, |_, _| ()).await.unwrap();
    let mut mirror = open(&target).await;
    assert_eq!((properties(&mirror), mirror.manifest().leases.len()), (vec!["float".to_owned()], 0));
    assert_eq!((found(&mirror, "int = 77").await, found(&mirror, "float = 7.5").await), (1, 1));
    mirror.verify(|_| ()).await.unwrap();
    // It comes when it is complete.
    let settings = hoplake::VacuumSettings { abort: vec![writer], ..Default::default() };
    Graph::vacuum(&store, &settings).await.unwrap();
    Graph::create_index(&store, "P.int", &IndexSettings::default()).await.unwrap();
    Graph::mirror(&store, &target, |_, _| ()).await.unwrap();
    mirror.refresh().await.unwrap();
    assert_eq!((properties(&mirror), found(&mirror, "int = 77").await), (vec!["float".to_owned(), "int".into()], 1));
    mirror.verify(|_| ()).await.unwrap();
}

#[tokio::test]
async fn a_vacuum_that_aborts_a_writer_takes_its_index_out() {
    let (_, store) = loaded(&[]).await;
    let writer = announce(&store, "int").await;
    let mut graph = open(&store).await;
    graph.begin().upsert_vertex("P", 1, [("int", 77)]).commit().await.unwrap();
    graph.refresh().await.unwrap();
    // Its only run has what was committed: no query may use it, and no compaction may forget what it removes.
    assert_eq!(found(&graph, "int = 77").await, 1);
    assert!(graph.indexes().await.unwrap().iter().all(|size| size.entries == 2 && !size.index.is_ready()));
    let everything = CompactionSettings { everything: true, ..CompactionSettings::default() };
    Graph::compact(&store, &everything).await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!(graph.indexes().await.unwrap()[0].entries, 2);
    let settings = hoplake::VacuumSettings { abort: vec![writer], ..Default::default() };
    Graph::vacuum(&store, &settings).await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!(graph.manifest().indexes, []);
    graph.verify(|_| ()).await.unwrap();
}

#[tokio::test]
async fn verification_holds_an_index_against_the_rows() {
    let (inner, store) = loaded(&["P.int"]).await;
    let mut graph = open(&store).await;
    graph.begin().upsert_vertex("P", 1, [("int", 7_777)]).commit().await.unwrap();
    graph.refresh().await.unwrap();
    for (lost, why) in [
        (SectionKind::Values(hoplake::IndexId(0)), "and the rows have"),
        (SectionKind::RemovedValues(hoplake::IndexId(0)), "and the rows have"),
    ] {
        let mut forged: Manifest = graph.manifest().clone();
        let newest = forged.version;
        let sections = forged.segments.iter_mut().flat_map(|segment| &mut segment.sections);
        for section in sections.filter(|section| section.kind == lost) {
            section.versions = section.versions.filter(|versions| versions.until != newest);
        }
        let bytes = forged.encode();
        inner.put(&Path::from(format!("g/manifest/{newest:020}.hlm")), bytes.clone().into()).await.unwrap();
        inner.put(&Path::from("g/hint"), bytes.into()).await.unwrap();
        let error = open(&store).await.verify(|_| ()).await.unwrap_err();
        assert!(error.to_string().contains("index P.int") && error.to_string().contains(why), "{error}");
        let found = Graph::verify_all(&store, |_| ()).await.unwrap();
        assert_eq!(found.newest_intact(), Some(newest - 1), "{found:?}");
    }
}
