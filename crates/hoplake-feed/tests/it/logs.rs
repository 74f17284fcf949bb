//! Real producers write the changes of a random workload, and are killed at random, as the feed is: at every version the graph is what the
//! tables were.

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{self, Write},
    ops::Bound,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use hoplake::{Graph, PropertyType, ScalarType, Store};
use hoplake_feed::{
    BeforeImages, Catalog, Column, Feed, FeedErrorKind, RunOptions, Settings, Table, TableName,
    source::{self, CatalogFile, Following},
};
use hoplake_testkit::{ChangeOutput, Debezium, KafkaServer, MariaDbServer, Maxwell, PostgresServer};
use mysql_async::{Conn, Row, prelude::Queryable};

use crate::{
    following::{caught_up, check_versions, followed_with_kills, from_environment},
    mariadb::connect,
    model::Model,
    postgres, workload,
};

fn settings(url: &str, catalog: &str, more: &str, graph: &Path, mapping: &str) -> Settings {
    let text = format!(
        "graph = {graph:?}\n[source]\nname = 'company'\nurl = '{url}'\ncatalog = '{catalog}'\ntimeout_ms = 10000\n{more}\n\
         [stream]\nlinger_ms = 5\n{mapping}"
    );
    Settings::parse(&text).unwrap()
}

/// The file of a database's catalog, in a folder.
async fn catalog_file(url: &str, folder: &Path) -> String {
    let settings = Settings::parse(&format!("graph = 'g'\n[source]\nname = 'company'\nurl = '{url}'")).unwrap();
    let source = source::open(&settings).unwrap();
    let schema = source.default_schema().to_owned();
    let catalog = source.catalog(&[schema.clone()].into()).await.unwrap();
    let path = folder.join("catalog.json");
    std::fs::write(&path, CatalogFile::new(url, &schema, catalog).unwrap().to_json()).unwrap();
    path.display().to_string()
}

/// Ends a producer and starts it again, some times.
async fn kill_at_random<P: Send + 'static>(
    mut producer: P,
    times: u32,
    seed: u64,
    kill: impl Fn(&mut P) + Send + Clone + 'static,
    restart: impl Fn(&mut P) -> io::Result<()> + Send + Clone + 'static,
) -> P {
    let mut dice = fastrand::Rng::with_seed(seed);
    for _ in 0..times {
        tokio::time::sleep(Duration::from_millis(dice.u64(300..2_500))).await;
        let kill = kill.clone();
        let restart = restart.clone();
        let restarted = tokio::task::spawn_blocking(move || {
            kill(&mut producer);
            restart(&mut producer).unwrap();
            producer
        });
        producer = restarted.await.unwrap();
    }
    producer
}

/// Makes the first copy of all that a producer has of its snapshot: one that is killed within it begins it again, which no log gets past.
async fn copied(settings: &Settings) {
    let mut settings = settings.clone();
    // Only the last row ends it.
    settings.source.quiet_ms = 120_000;
    loop {
        match Feed::open(settings.clone(), RunOptions::default(), Arc::new(())).await {
            Err(error) if error.is_transient() => tokio::time::sleep(Duration::from_millis(100)).await,
            opened => return drop(opened.unwrap()),
        }
    }
}

/// Ends the workload when it is dropped, also if the test fails: the runtime waits for its thread.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until there is something to compare.
async fn until_there_are_versions(settings: &Settings) {
    let store = Store::open(&settings.graph).unwrap();
    for _ in 0..1_500 {
        if Graph::versions(&store).await.unwrap().len() >= 20 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("the graph has fewer than 20 versions after five minutes");
}

/// Waits until the graph has all of the tables. A producer may be slow on a busy machine, so this fails only if the graph's position does
/// not change for a minute.
async fn caught_up_with(settings: &Settings, tables: &Model) -> Feed {
    let mut last = (String::new(), Instant::now());
    loop {
        let feed = caught_up(settings).await;
        let found = Model::of_graph(feed.graph()).await;
        if found == *tables {
            return feed;
        }
        let position = feed.position().to_string();
        if last.0 != position {
            last = (position, Instant::now());
        }
        assert!(
            last.1.elapsed() < Duration::from_secs(60),
            "at {}: graph | tables\n{}",
            last.0,
            found.difference(tables)
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The tables without types that producers do not know.
fn without_uuids() -> String {
    workload::TABLES.replace("ident UUID, address INET6", "ident VARCHAR(40), address VARCHAR(40)")
}

/// The place in the database that a position of a log has.
fn place(position: &str) -> &str {
    position.split_once(';').unwrap().1
}

/// Whether a version may be anywhere between the copy and the first change.
const START: &str = "start";

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_file_of_debezium_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    // Its parser of statements has no addresses, its snapshot no year 0, and its log other UUIDs where they end with zeros.
    let tables = without_uuids().replace("since YEAR", "since SMALLINT");
    server.sql("test", &tables).unwrap();
    let (seed, _) = from_environment(0);
    let mut dice = workload::Dice(fastrand::Rng::with_seed(seed));
    let mut conn = connect(&server).await;
    for _ in 0..60 {
        workload::transaction(&mut conn, &mut dice).await.unwrap();
    }
    let log = folder.path().join("changes.jsonl");
    let mut producer = Debezium::follow_mariadb(&server, "test", &ChangeOutput::File(log.clone()), &[]).unwrap();
    let has_snapshot = || Ok(std::fs::read_to_string(&log)?.contains("\"snapshot\":\"last\""));
    producer.wait_until(has_snapshot).unwrap();
    let catalog = catalog_file(&server.url("test"), folder.path()).await;
    let more = "log_format = 'debezium'\ndecimal_handling_mode = 'string'";
    let url = format!("file:{}", log.display());
    let settings = settings(&url, &catalog, more, &folder.path().join("graph"), workload::MAPPING);
    let mut history = BTreeMap::from([(START.to_owned(), workload::expected(&mut conn).await.unwrap())]);
    let running = tokio::spawn(followed_with_kills(settings.clone(), seed, 500..4_000));
    let is_over = Arc::new(AtomicBool::new(false));
    let watched = is_over.clone();
    let working = tokio::spawn(async move {
        while !watched.load(Ordering::Relaxed) {
            if let Some(position) = workload::transaction(&mut conn, &mut dice).await.unwrap() {
                history.insert(format!("gtid:{position}"), workload::expected(&mut conn).await.unwrap());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        (conn, history)
    });
    let _producer = kill_at_random(producer, 4, seed, Debezium::kill, Debezium::restart).await;
    until_there_are_versions(&settings).await;
    is_over.store(true, Ordering::Relaxed);
    let (mut conn, history) = working.await.unwrap();
    running.abort();
    let _ = running.await;
    let feed = caught_up_with(&settings, &workload::expected(&mut conn).await.unwrap()).await;
    let checked =
        check_versions(feed.graph().store(), |position| history.get(place(position)).into_iter().collect()).await;
    assert!(checked > 10, "only {checked} versions to compare");
    println!("{} transactions, {checked} versions compared", history.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn topics_of_debezium_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&["fsync=off"]).unwrap();
    server.sql("test", postgres::TABLES).unwrap();
    let (seed, _) = from_environment(0);
    let mut dice = postgres::Dice(fastrand::Rng::with_seed(seed));
    for _ in 0..60 {
        server.sql("test", &dice.transaction()).unwrap();
    }
    let mut kafka = KafkaServer::start().unwrap();
    let tables = ["team", "person", "contract", "member", "note"];
    let topics: Vec<_> =
        tables.iter().map(|table| format!("hoplake.public.{table}")).chain(["hoplake.transaction".into()]).collect();
    for topic in &topics {
        // Rows of one table come by several partitions, too.
        let partitions = if topic.ends_with("person") { 3 } else { 1 };
        kafka.create_topic(topic, partitions).await.unwrap();
    }
    let producer = Debezium::follow_postgres(&server, "test", &ChangeOutput::topics(&kafka), &[]).unwrap();
    let more = "log_format = 'debezium'\ndecimal_handling_mode = 'string'";
    let url = format!("kafka://{}/{}", kafka.broker(), topics.join(","));
    let settings = settings(&url, &server.url("test"), more, &folder.path().join("graph"), postgres::MAPPING);
    let mut history = BTreeMap::from([postgres::after(&server, "")]);
    copied(&settings).await;
    // Long enough to open all partitions, and to wait for what a killed producer has left out, on a busy machine.
    let running = tokio::spawn(followed_with_kills(settings.clone(), seed, 1_000..8_000));
    let watched = Arc::new(AtomicBool::new(false));
    let is_over = Over(watched.clone());
    let working = tokio::task::spawn_blocking(move || {
        while !watched.load(Ordering::Relaxed) {
            history.extend([postgres::after(&server, &dice.transaction())]);
        }
        (server, history)
    });
    let producer = kill_at_random(producer, 3, seed, Debezium::kill, Debezium::restart).await;
    // The broker dies, too: producer and feed wait for it.
    kafka.kill();
    tokio::time::sleep(Duration::from_secs(1)).await;
    kafka.restart().unwrap();
    let _producer = kill_at_random(producer, 1, seed, Debezium::kill, Debezium::restart).await;
    until_there_are_versions(&settings).await;
    drop(is_over);
    let (server, history) = working.await.unwrap();
    running.abort();
    let _ = running.await;
    let feed = caught_up_with(&settings, &postgres::expected(&server)).await;
    let at = |position: &str| {
        let lsn: u64 = place(position).strip_prefix("lsn:").unwrap().parse().unwrap();
        history.range(lsn..).next().map(|(_, model)| model).into_iter().collect()
    };
    let checked = check_versions(feed.graph().store(), at).await;
    assert!(checked > 10, "only {checked} versions to compare");
    println!("{} transactions, {checked} versions compared", history.len());
}

/// The end of the binlog.
async fn end_of_binlog(conn: &mut Conn) -> (String, u64) {
    let status: Row = conn.query_first("SHOW MASTER STATUS").await.unwrap().unwrap();
    (status.get(0).unwrap(), status.get(1).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_topic_of_maxwell_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&Maxwell::SERVER_OPTIONS).unwrap();
    // It has no UUIDs and addresses, and no times of more than a day.
    let tables = without_uuids().replace("took TIME(3)", "took VARCHAR(20)").replace("since YEAR", "since SMALLINT");
    server.sql("test", &tables).unwrap();
    let mapping = workload::MAPPING.replace("\"deleted_at\"]", "\"deleted_at\", \"took\"]");
    let (seed, _) = from_environment(0);
    let mut dice = workload::Dice(fastrand::Rng::with_seed(seed));
    let mut conn = connect(&server).await;
    for _ in 0..60 {
        workload::transaction_of_rows(&mut conn, &mut dice).await.unwrap();
    }
    let kafka = KafkaServer::start().unwrap();
    let mut producer = Maxwell::follow(&server, "test", &ChangeOutput::topic(&kafka, "changes"), &[]).unwrap();
    producer.bootstrap(&server, "test", &["team", "person", "contract", "member", "note"]).unwrap();
    let url = format!("kafka://{}/changes", kafka.broker());
    let graph = folder.path().join("graph");
    let settings = settings(&url, &server.url("test"), "log_format = 'maxwell'", &graph, &mapping);
    let model = async |conn: &mut Conn| {
        let mut model = workload::expected(conn).await.unwrap();
        model.vertices.values_mut().for_each(|properties| drop(properties.remove("took")));
        model
    };
    let mut history = BTreeMap::from([((String::new(), 0), model(&mut conn).await)]);
    let running = tokio::spawn(followed_with_kills(settings.clone(), seed, 500..4_000));
    let is_over = Arc::new(AtomicBool::new(false));
    let watched = is_over.clone();
    let working = tokio::spawn(async move {
        while !watched.load(Ordering::Relaxed) {
            workload::transaction_of_rows(&mut conn, &mut dice).await.unwrap();
            let end = end_of_binlog(&mut conn).await;
            let model = model(&mut conn).await;
            history.insert(end, model);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let last = model(&mut conn).await;
        (last, history)
    });
    let _producer = kill_at_random(producer, 4, seed, Maxwell::kill, Maxwell::restart).await;
    until_there_are_versions(&settings).await;
    is_over.store(true, Ordering::Relaxed);
    let (last, history) = working.await.unwrap();
    running.abort();
    let _ = running.await;
    let feed = caught_up_with(&settings, &last).await;
    let at = |position: &str| {
        let mut words = place(position).split(':').skip(2);
        let Some(file) = words.next() else {
            return history.get(&(String::new(), 0)).into_iter().collect();
        };
        let offset = words.next().unwrap().parse().unwrap();
        let place = (file.to_owned(), offset);
        history.range((Bound::Included(place), Bound::Unbounded)).next().map(|(_, model)| model).into_iter().collect()
    };
    let checked = check_versions(feed.graph().store(), at).await;
    assert!(checked > 10, "only {checked} versions to compare");
    println!("{} transactions, {checked} versions compared", history.len());
    // What Kafka does not have.
    let log = source::open(&settings).unwrap();
    log.catalog(&["test".to_owned()].into()).await.unwrap();
    let gone = log.stream("changes/0:100000000;start", Following::default()).await.err().unwrap();
    assert_eq!(gone.kind(), FeedErrorKind::Purged, "{gone}");
}

/// A log that grows whenever something of it was read: `--once` ends where it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn once_ends_where_a_log_was_though_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let kafka = KafkaServer::start().unwrap();
    kafka.create_topic("grows", 1).await.unwrap();
    let path = folder.path().join("log.jsonl");
    let name = TableName::new("test", "note");
    let kind = Some(PropertyType::Scalar(ScalarType::Int64));
    let id = Column {
        name: "id".into(),
        declared: "int(11)".into(),
        kind,
        suggested: None,
        is_nullable: false,
        compared_by: None,
    };
    let before_images = BeforeImages::Complete;
    let primary_key = vec!["id".into()];
    let table = Table { name: name.clone(), columns: vec![id], primary_key, foreign_keys: Vec::new(), before_images };
    let catalog = CatalogFile::new("mysql://x/test", "test", Catalog { tables: vec![table], logs_cascades: false });
    let of_tables = folder.path().join("catalog.json");
    std::fs::write(&of_tables, catalog.unwrap().to_json()).unwrap();
    let line = |number: u64| {
        format!(
            "{{\"database\":\"test\",\"table\":\"note\",\"type\":\"insert\",\"ts\":1795654727,\"xid\":{},\"commit\":true,\
             \"position\":\"binlog.000001:{}\",\"data\":{{\"id\":{number}}}}}",
            100 + number,
            1_000 + number
        )
    };
    let written = Cell::new(0);
    let write = async || {
        let line = line(written.replace(written.get() + 1));
        kafka.write("grows", &[&line]).await.unwrap();
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        writeln!(file, "{line}").unwrap();
    };
    for url in [format!("file:{}", path.display()), format!("kafka://{}/grows", kafka.broker())] {
        let mapping = "[[table]]\nname = 'note'\nvertex = { label = 'Note' }";
        let settings = settings(
            &url,
            &of_tables.display().to_string(),
            "log_format = 'maxwell'",
            &folder.path().join("g"),
            mapping,
        );
        for once in [true, false] {
            write().await;
            write().await;
            let log = source::open(&settings).unwrap();
            let tables = BTreeMap::from([(name.clone(), ["id".into()].into())]);
            let following = Following { tables, transaction_bytes_max: 1 << 20, once, ..Following::default() };
            let mut stream = log.stream(";start", following).await.unwrap();
            write().await;
            let there = written.get() - 1;
            let mut seen = 0;
            while seen < there + 20 {
                match stream.next().await.unwrap() {
                    Some(_) => seen += 1,
                    None if once => break,
                    None => {}
                }
                write().await;
            }
            assert_eq!(seen, if once { there } else { there + 20 }, "{url}, once: {once}");
        }
    }
}
