//! MariaDB: at every version the graph is what the tables were at that position.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use hoplake::Graph;
use hoplake_feed::{
    Feed, FeedErrorKind, ReconcileOptions, RunOptions, Selection, Settings, discard, letters::Letter, retry,
};
use hoplake_testkit::MariaDbServer;
use mysql_async::{Conn, Opts, Row, prelude::Queryable};

use crate::{
    following::{
        caught_up, check_versions, followed_with_kills, followed_with_kills_and_damage, from_environment, has_versions,
        settings_of,
    },
    model::Model,
    reconciling::{caught_up_with_damage, damage, differences, repaired, reported, without_keys},
    workload::{self, Dice},
};

fn settings(server: &MariaDbServer, graph: &Path, mapping: &str) -> Settings {
    settings_of(&server.url("test"), graph, mapping)
}

pub(crate) async fn connect(server: &MariaDbServer) -> Conn {
    let mut conn = Conn::new(Opts::from_url(&server.url("test")).unwrap()).await.unwrap();
    conn.query_drop("SET time_zone = '+00:00', sql_mode = 'NO_BACKSLASH_ESCAPES'").await.unwrap();
    conn
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_is_what_the_tables_were() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", workload::TABLES).unwrap();
    let settings = settings(&server, &folder.path().join("graph"), workload::MAPPING);
    let (seed, transactions) = from_environment(400);
    let mut dice = Dice(fastrand::Rng::with_seed(seed));
    let mut conn = connect(&server).await;
    // Something for the first copy.
    for _ in 0..60 {
        workload::transaction(&mut conn, &mut dice).await.unwrap();
    }
    let position: String = conn.query_first("SELECT @@gtid_binlog_pos").await.unwrap().unwrap();
    let mut history = BTreeMap::from([(position, workload::expected(&mut conn).await.unwrap())]);
    let running = tokio::spawn(followed_with_kills(settings.clone(), seed, 200..1_500));
    let mut done = 0;
    while done < transactions || !has_versions(&settings).await && done < 10 * transactions {
        if let Some(position) = workload::transaction(&mut conn, &mut dice).await.unwrap() {
            history.insert(position, workload::expected(&mut conn).await.unwrap());
        }
        done += 1;
    }
    running.abort();
    let _ = running.await;
    let feed = caught_up(&settings).await;
    let last: String = conn.query_first("SELECT @@gtid_binlog_pos").await.unwrap().unwrap();
    assert_eq!(feed.position().of_source, last);
    let checked = check_versions(feed.graph().store(), |position| history.get(position).into_iter().collect()).await;
    assert!(checked > 20, "only {checked} versions to compare");
    println!("{} transactions, {checked} versions compared", history.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_may_die() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = MariaDbServer::start(&[]).unwrap();
    server
        .sql(
            "test",
            "CREATE TABLE note (id INT PRIMARY KEY, about INT, body TEXT); INSERT INTO note VALUES (1, 2, 'x')",
        )
        .unwrap();
    let mapping = "[[table]]\nname = 'note'\nvertex = { label = 'Note' }\n";
    let settings = settings(&server, &folder.path().join("graph"), mapping);
    let mut feed = Feed::open(settings, RunOptions::default(), Arc::new(())).await.unwrap();
    let stop = Arc::new(tokio::sync::Notify::new());
    let stopped = stop.clone();
    let running = tokio::spawn(async move {
        feed.run(stopped.notified()).await.unwrap();
        feed
    });
    for id in 2..6 {
        server.kill();
        server.restart().unwrap();
        server.sql("test", &format!("INSERT INTO note VALUES ({id}, 1, 'y')")).unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let graph = folder.path().join("graph");
    for _ in 0..100 {
        let found = Model::of_graph(&Graph::open(graph.to_str().unwrap()).await.unwrap()).await;
        if found.vertices.len() == 5 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    stop.notify_one();
    let feed = running.await.unwrap();
    let keys: Vec<_> = Model::of_graph(feed.graph()).await.vertices.into_keys().collect();
    assert_eq!(keys, ["Note:1", "Note:2", "Note:3", "Note:4", "Note:5"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_feeds_one_loses() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", "CREATE TABLE note (id INT PRIMARY KEY)").unwrap();
    let mapping = "[[table]]\nname = 'note'\nvertex = { label = 'Note' }\n";
    let settings = settings(&server, &folder.path().join("graph"), mapping);
    let mut running = Vec::new();
    for _ in 0..2 {
        let mut feed = Feed::open(settings.clone(), RunOptions::default(), Arc::new(())).await.unwrap();
        running.push(tokio::spawn(async move { feed.run(std::future::pending()).await }));
    }
    let mut rows = 0;
    while running.iter().all(|feed| !feed.is_finished()) {
        assert!(rows < 500, "both feeds go on");
        server.sql("test", &format!("INSERT INTO note VALUES ({rows})")).unwrap();
        rows += 1;
    }
    let (over, alive): (Vec<_>, Vec<_>) = running.into_iter().partition(|feed| feed.is_finished());
    assert_eq!((over.len(), alive.len()), (1, 1));
    for feed in over {
        let lost = feed.await.unwrap().unwrap_err();
        assert_eq!(lost.kind(), FeedErrorKind::Conflict, "{lost}");
        assert!(lost.to_string().contains("another feed of company has gone on"), "{lost}");
    }
    alive.into_iter().for_each(|feed| feed.abort());
    let feed = caught_up(&settings).await;
    assert_eq!(Model::of_graph(feed.graph()).await.vertices.len(), rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_followed_stops_the_feed() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", "CREATE TABLE note (id INT PRIMARY KEY, body TEXT); INSERT INTO note VALUES (1, 'x')").unwrap();
    let mapping = "[[table]]\nname = 'note'\nvertex = { label = 'Note' }\n";
    let settings = settings(&server, &folder.path().join("graph"), mapping);
    caught_up(&settings).await;
    // A column that may be null is followed.
    server.sql("test", "ALTER TABLE note ADD COLUMN more INT; INSERT INTO note VALUES (2, 'y', 7)").unwrap();
    let feed = caught_up(&settings).await;
    let found = Model::of_graph(feed.graph()).await;
    assert_eq!(found.vertices["Note:2"]["more"], "7");
    // A column with a value in each row is not.
    server.sql("test", "INSERT INTO note VALUES (3, 'z', 8)").unwrap();
    server
        .sql("test", "ALTER TABLE note ADD COLUMN n INT NOT NULL DEFAULT 5; INSERT INTO note VALUES (4, 'z', 8, 9)")
        .unwrap();
    let options = RunOptions { once: true, ..RunOptions::default() };
    let mut feed = Feed::open(settings.clone(), options.clone(), Arc::new(())).await.unwrap();
    let stopped = feed.run(std::future::pending()).await.unwrap_err();
    assert!(stopped.to_string().contains("column n is added"), "{stopped}");
    // What came before it is there.
    assert_eq!(Model::of_graph(feed.graph()).await.vertices.len(), 3);
    let hint = stopped.what_to_do();
    let position = hint.rsplit(' ').next().unwrap().to_owned();
    let options = RunOptions { accepted: Some(position), ..options };
    let mut feed = Feed::open(settings, options, Arc::new(())).await.unwrap();
    feed.run(std::future::pending()).await.unwrap();
    assert_eq!(Model::of_graph(feed.graph()).await.vertices["Note:4"]["n"], "9");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_logs_too_little_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&["--binlog-row-metadata=MINIMAL"]).unwrap();
    server.sql("test", "CREATE TABLE note (id INT PRIMARY KEY)").unwrap();
    let mapping = "[[table]]\nname = 'note'\nvertex = { label = 'Note' }\n";
    let settings = settings(&server, &folder.path().join("graph"), mapping);
    let rejected = Feed::open(settings, RunOptions::default(), Arc::new(())).await.err().unwrap();
    assert!(rejected.to_string().contains("binlog_row_metadata is MINIMAL"), "{rejected}");
}

/// A note, and an item that names one.
const NOTES: &str = "
[[table]]
name = 'note'
types = { body = 'int64' }
on_error = 'dead-letter'
vertex = { label = 'Note' }
[[table]]
name = 'item'
vertex = { label = 'Item' }
edges = [{ label = 'of', columns = 'note', to = 'Note' }]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_cannot_be_applied_are_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let tables = "CREATE TABLE note (id INT PRIMARY KEY, body TEXT);
        CREATE TABLE item (id INT PRIMARY KEY, note INT, FOREIGN KEY (note) REFERENCES note (id));
        INSERT INTO note VALUES (1, '5'), (9, 'nine')";
    server.sql("test", tables).unwrap();
    let settings = settings(&server, &folder.path().join("graph"), NOTES);
    let texts = |letters: &[Letter]| {
        letters
            .iter()
            .map(|it| format!("{} {}", it.names.join(" "), it.why.as_deref().unwrap_or("held")))
            .collect::<Vec<_>>()
    };
    // Also in the first copy.
    let feed = caught_up(&settings).await;
    let bad = "column body: it is not int64";
    assert_eq!(texts(&feed.dead_letters().await.unwrap()), [format!("Note:9 {bad}")]);
    assert!(Model::of_graph(feed.graph()).await.vertices.keys().eq(["Note:1"]));
    server
        .sql(
            "test",
            "BEGIN; INSERT INTO note VALUES (2, 'abc'), (3, '7'); INSERT INTO item VALUES (10, 2), (11, 3); COMMIT",
        )
        .unwrap();
    // The reason is gone, and the order stays.
    server.sql("test", "UPDATE note SET body = '8' WHERE id = 2; UPDATE note SET id = 20 WHERE id = 9; UPDATE note SET body = '4' WHERE id = 1").unwrap();
    let feed = caught_up(&settings).await;
    let expected =
        [format!("Note:9 {bad}"), format!("Note:2 {bad}"), "Note:2 held".into(), "Note:9 Note:20 held".into()];
    assert_eq!(texts(&feed.dead_letters().await.unwrap()), expected);
    let found = Model::of_graph(feed.graph()).await;
    let vertices: Vec<_> = found.vertices.keys().map(String::as_str).collect();
    assert_eq!(vertices, ["Item:10", "Item:11", "Note:1", "Note:3"]);
    assert_eq!((found.vertices["Note:1"]["body"].as_str(), found.edges.len()), ("4", 1));
    // While a feed runs, the letters of one name are applied as they are now; what waited for it is there, too.
    let mut feed = Feed::open(settings.clone(), RunOptions::default(), Arc::new(())).await.unwrap();
    let stop = Arc::new(tokio::sync::Notify::new());
    let stopped = stop.clone();
    let running = tokio::spawn(async move {
        feed.run(stopped.notified()).await.unwrap();
        feed
    });
    let retried = retry(&settings, &Selection::Names(vec!["Note:2".into()])).await.unwrap();
    assert_eq!((retried.done, retried.left), (2, 2));
    server.sql("test", "INSERT INTO note VALUES (5, '5'); UPDATE note SET body = '18' WHERE id = 2").unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop.notify_one();
    let feed = running.await.unwrap();
    let found = Model::of_graph(feed.graph()).await;
    assert_eq!(found.vertices["Note:2"]["body"], "18");
    assert!(found.vertices.contains_key("Note:5") && found.edges.contains_key("Item:10 -of-> Note:2"), "{found:?}");
    drop(feed);
    // What still fails stays, and what is discarded is followed again from its next change on.
    let retried = retry(&settings, &Selection::All).await.unwrap();
    assert_eq!((retried.done, retried.left), (0, 2));
    let discarded = discard(&settings, &Selection::Names(vec!["Note:20".into()])).await.unwrap();
    assert_eq!((discarded.done, discarded.left), (2, 0));
    assert!(discard(&settings, &Selection::Names(vec!["Note:20".into()])).await.is_err());
    server.sql("test", "UPDATE note SET body = '20' WHERE id = 20").unwrap();
    let feed = caught_up(&settings).await;
    assert_eq!(Model::of_graph(feed.graph()).await.vertices["Note:20"]["body"], "20");
    // Of a table without rows nothing is left to apply.
    server
        .sql("test", "INSERT INTO note VALUES (30, 'x'); DELETE FROM item; SET foreign_key_checks = 0; TRUNCATE note")
        .unwrap();
    let feed = caught_up(&settings).await;
    assert!(feed.dead_letters().await.unwrap().is_empty());
    assert!(Model::of_graph(feed.graph()).await.vertices.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_keep_their_signs_whatever_is_before_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let mut tables = String::new();
    let mut mapping = String::new();
    let before = [
        "year",
        "int unsigned",
        "decimal(5,2)",
        "float",
        "double",
        "bit(3)",
        "date",
        "enum('a')",
        "timestamp null",
        "tinyint",
    ];
    for (number, kind) in before.iter().enumerate() {
        let others: String = (0..9).map(|at| format!("c{at} {kind}, ")).collect();
        tables += &format!(
            "CREATE TABLE t{number} (id INT PRIMARY KEY, {others} n BIGINT, u BIGINT UNSIGNED, i INT, m MEDIUMINT);"
        );
        let types = "types = { u = 'string' }";
        mapping += &format!("[[table]]\nname = 't{number}'\n{types}\nvertex = {{ label = 'T{number}' }}\n");
    }
    server.sql("test", &tables).unwrap();
    let settings = settings(&server, &folder.path().join("graph"), &mapping);
    caught_up(&settings).await;
    for number in 0..before.len() {
        let insert = format!("INSERT INTO t{number} (id, n, u, i, m) VALUES (1, -1, 18446744073709551615, -2, -3)");
        server.sql("test", &insert).unwrap();
    }
    let feed = caught_up(&settings).await;
    let found = Model::of_graph(feed.graph()).await;
    for (number, kind) in before.iter().enumerate() {
        let row = &found.vertices[&format!("T{number}:1")];
        let read: Vec<_> = ["n", "u", "i", "m"].iter().map(|name| row[*name].as_str()).collect();
        assert_eq!(read, ["-1", "18446744073709551615", "-2", "-3"], "behind {kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_differs_from_the_tables_is_found_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", workload::TABLES).unwrap();
    let path = folder.path().join("graph");
    let settings = settings(&server, &path, workload::MAPPING);
    let (seed, transactions) = from_environment(200);
    let mut dice = Dice(fastrand::Rng::with_seed(seed));
    let mut conn = connect(&server).await;
    for _ in 0..transactions {
        workload::transaction(&mut conn, &mut dice).await.unwrap();
    }
    let feed = caught_up(&settings).await;
    // Some that the graph does not have yet: they are between its version and the snapshot.
    for _ in 0..20 {
        workload::transaction(&mut conn, &mut dice).await.unwrap();
    }
    let (reconciled, found) = reported(&settings, ReconcileOptions::default()).await;
    assert!(reconciled.is_equal(), "{found:?}");
    assert_eq!(reconciled.scans, 1);
    assert!(reconciled.elements > 30, "{reconciled:?}");
    drop(feed);
    caught_up(&settings).await;
    let expected = workload::expected(&mut conn).await.unwrap();
    for round in 0..10 {
        damage(&path, 1 + 5 * round, &mut dice.0).await;
        let damaged = Model::of_graph(&Graph::open(path.to_str().unwrap()).await.unwrap()).await;
        let (reconciled, found) = reported(&settings, ReconcileOptions::default()).await;
        assert_eq!(without_keys(&found), differences(&expected, &damaged));
        assert!(reconciled.scans <= 2);
        let options = ReconcileOptions { repair: true, ..ReconcileOptions::default() };
        let dry = ReconcileOptions { dry_run: true, ..options.clone() };
        assert_eq!(reported(&settings, dry).await.0.repaired, found.len() as u64);
        let after = Model::of_graph(&Graph::open(path.to_str().unwrap()).await.unwrap()).await;
        assert_eq!(after, damaged, "a dry run writes nothing");
        assert_eq!(reported(&settings, options).await.0.repaired, found.len() as u64);
        let after = Model::of_graph(&Graph::open(path.to_str().unwrap()).await.unwrap()).await;
        assert!(after == expected, "{}", after.difference(&expected));
        assert!(reported(&settings, ReconcileOptions::default()).await.0.is_equal());
    }
    // What was repaired is followed as before.
    for _ in 0..40 {
        workload::transaction(&mut conn, &mut dice).await.unwrap();
    }
    let feed = caught_up(&settings).await;
    let found = Model::of_graph(feed.graph()).await;
    let expected = workload::expected(&mut conn).await.unwrap();
    assert!(found == expected, "{}", found.difference(&expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_go_on_while_they_are_compared_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", workload::TABLES).unwrap();
    let path = folder.path().join("graph");
    let settings = settings(&server, &path, workload::MAPPING);
    let mut dice = Dice(fastrand::Rng::with_seed(from_environment(0).0));
    let mut conn = connect(&server).await;
    for _ in 0..100 {
        workload::transaction(&mut conn, &mut dice).await.unwrap();
    }
    caught_up(&settings).await;
    let running = tokio::spawn(followed_with_kills_and_damage(settings.clone(), 1, 200..1_500));
    let writing = tokio::spawn(async move {
        loop {
            workload::transaction(&mut conn, &mut dice).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    for _ in 0..5 {
        let (reconciled, found) = reported(&settings, ReconcileOptions::default()).await;
        assert!(reconciled.is_equal(), "{found:?}");
    }
    let mut other = fastrand::Rng::with_seed(7);
    for _ in 0..3 {
        damage(&path, 10, &mut other).await;
        repaired(&settings).await;
    }
    writing.abort();
    let _ = writing.await;
    running.abort();
    let _ = running.await;
    caught_up_with_damage(&settings).await;
    repaired(&settings).await;
    let mut conn = connect(&server).await;
    let found = Model::of_graph(&Graph::open(path.to_str().unwrap()).await.unwrap()).await;
    let expected = workload::expected(&mut conn).await.unwrap();
    assert!(found == expected, "{}", found.difference(&expected));
}

/// Removes all logs but a new one. A log that is read stays, until its reader is known to be gone.
async fn purge(conn: &mut Conn) {
    for _ in 0..100 {
        conn.query_drop("FLUSH BINARY LOGS").await.unwrap();
        let newest: Row = conn.query_first("SHOW MASTER STATUS").await.unwrap().unwrap();
        conn.query_drop(format!("PURGE BINARY LOGS TO '{}'", newest.get::<String, _>(0).unwrap())).await.unwrap();
        if conn.query::<Row, _>("SHOW BINARY LOGS").await.unwrap().len() == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the logs are not purged");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purged_position_is_got_past() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", workload::TABLES).unwrap();
    let settings = settings(&server, &folder.path().join("graph"), workload::MAPPING);
    let mut dice = Dice(fastrand::Rng::with_seed(from_environment(0).0));
    let mut conn = connect(&server).await;
    for _ in 0..100 {
        workload::transaction(&mut conn, &mut dice).await.unwrap();
    }
    let first = caught_up(&settings).await.graph().version();
    for _ in 0..100 {
        workload::transaction(&mut conn, &mut dice).await.unwrap();
    }
    purge(&mut conn).await;
    let options = RunOptions { once: true, ..RunOptions::default() };
    let mut feed = Feed::open(settings.clone(), options.clone(), Arc::new(())).await.unwrap();
    let error = feed.run(std::future::pending()).await.unwrap_err();
    assert_eq!(error.kind(), FeedErrorKind::Purged);
    assert!(error.what_to_do().contains("--resnapshot"), "{error:?}");
    drop(feed);
    let mut feed =
        Feed::open(settings.clone(), RunOptions { resnapshot: true, ..options }, Arc::new(())).await.unwrap();
    assert_eq!(feed.graph().version(), first + 1, "one commit");
    let expected = workload::expected(&mut conn).await.unwrap();
    let found = Model::of_graph(feed.graph()).await;
    assert!(found == expected, "{}", found.difference(&expected));
    for _ in 0..40 {
        workload::transaction(&mut conn, &mut dice).await.unwrap();
    }
    feed.run(std::future::pending()).await.unwrap();
    let expected = workload::expected(&mut conn).await.unwrap();
    let found = Model::of_graph(feed.graph()).await;
    assert!(found == expected, "{}", found.difference(&expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edges_to_a_row_that_cannot_be_read_wait_when_all_rows_are_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let sql = |statements: &str| server.sql("test", statements).unwrap();
    sql(
        "CREATE TABLE person (id INT PRIMARY KEY, score VARCHAR(9)); CREATE TABLE note (id INT PRIMARY KEY, about INT)",
    );
    let mapping = "
[[table]]
name = 'person'
types = { score = 'int64' }
on_error = 'dead-letter'
vertex = { label = 'Person' }
[[table]]
name = 'note'
vertex = { label = 'Note' }
[[table.edges]]
label = 'about'
columns = 'about'
to = 'Person'";
    let settings = settings(&server, &folder.path().join("graph"), mapping);
    let once = RunOptions { once: true, ..RunOptions::default() };
    Feed::open(settings.clone(), once.clone(), Arc::new(())).await.unwrap();
    sql("INSERT INTO person VALUES (7, 'much'); INSERT INTO note VALUES (1, 7)");
    let resnapshot = RunOptions { resnapshot: true, ..once.clone() };
    let feed = Feed::open(settings.clone(), resnapshot, Arc::new(())).await.unwrap();
    let found = Model::of_graph(feed.graph()).await;
    assert!(found.vertices.keys().eq(["Note:1"]) && found.edges.is_empty(), "{found:?}");
    drop(feed);
    sql("UPDATE person SET score = '5' WHERE id = 7");
    let mut feed = Feed::open(settings.clone(), once.clone(), Arc::new(())).await.unwrap();
    feed.run(std::future::pending()).await.unwrap();
    drop(feed);
    assert_eq!(retry(&settings, &Selection::All).await.unwrap().left, 0);
    let feed = Feed::open(settings, once, Arc::new(())).await.unwrap();
    let found = Model::of_graph(feed.graph()).await;
    assert!(found.edges.keys().eq(["Note:1 -about-> Person:7"]), "{found:?}");
}
