//! What foreign keys say, where MariaDB does not keep its word, and where a database means another text.

use std::{path::Path, sync::Arc};

use hoplake_feed::{Feed, FeedErrorKind, RunOptions, Settings, check};
use hoplake_testkit::{MariaDbServer, PostgresServer};
use mysql_async::{Conn, prelude::Queryable};

use crate::{
    following::{caught_up, settings_of},
    mariadb::connect,
    model::Model,
};

fn settings(server: &MariaDbServer, graph: &Path, database: &str, mapping: &str) -> Settings {
    settings_of(&server.url(database), graph, mapping)
}

/// Parents, children by each rule, and edges of their own.
const TABLES: &str = "
CREATE TABLE parent (id int PRIMARY KEY, name text);
CREATE TABLE child (id int PRIMARY KEY, parent int, FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE other (id int PRIMARY KEY, parent int, FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE SET NULL);
CREATE TABLE strict (id int PRIMARY KEY, parent int, FOREIGN KEY (parent) REFERENCES parent (id));
CREATE TABLE link (parent int, child int, PRIMARY KEY (parent, child),
  FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE, FOREIGN KEY (child) REFERENCES child (id) ON DELETE CASCADE);
INSERT INTO parent VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO child VALUES (1, 1), (2, 2), (3, NULL);
INSERT INTO other VALUES (1, 1), (2, 2);
INSERT INTO strict VALUES (1, 1), (2, 2);
INSERT INTO link VALUES (1, 1), (2, 2), (3, 1);
";

const MAPPING: &str = "
[[table]]
name = 'parent'
vertex = { label = 'parent' }
[[table]]
name = 'child'
vertex = { label = 'child' }
edges = [{ label = 'of', columns = 'parent', to = 'parent' }]
[[table]]
name = 'other'
vertex = { label = 'other' }
edges = [{ label = 'of', columns = 'parent', from = 'parent' }]
[[table]]
name = 'strict'
vertex = { label = 'strict' }
edges = [{ label = 'of', columns = 'parent', to = 'parent' }]
[[table]]
name = 'link'
edge = { label = 'link', source = { label = 'parent', columns = 'parent' }, target = { label = 'child', columns = 'child' } }
";

/// The vertices and edges that the tables say.
async fn said(conn: &mut Conn) -> (Vec<String>, Vec<String>) {
    let mut vertices = Vec::new();
    for label in ["parent", "child", "other", "strict"] {
        let ids: Vec<i64> = conn.query(format!("SELECT id FROM {label}")).await.unwrap();
        vertices.extend(ids.into_iter().map(|id| format!("{label}:{id}")));
    }
    let mut edges: Vec<String> = Vec::new();
    for (label, text) in [
        ("child", "CONCAT('child:', t.id, ' -of-> parent:', p.id)"),
        ("other", "CONCAT('parent:', p.id, ' -of-> other:', t.id)"),
        ("strict", "CONCAT('strict:', t.id, ' -of-> parent:', p.id)"),
        ("link", "CONCAT('parent:', p.id, ' -link-> child:', t.child)"),
    ] {
        let of_child = if label == "link" { "JOIN child c ON c.id = t.child" } else { "" };
        let query = format!("SELECT {text} FROM {label} t JOIN parent p ON p.id = t.parent {of_child}");
        edges.extend(conn.query::<String, _>(query).await.unwrap());
    }
    vertices.sort();
    edges.sort();
    (vertices, edges)
}

/// The flag of each event says whether the database followed its rules.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_without_checks_is_followed_without_rules() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", TABLES).unwrap();
    let settings = settings(&server, &folder.path().join("graph"), "test", MAPPING);
    caught_up(&settings).await;
    let mut conn = connect(&server).await;
    let off = "SET foreign_key_checks = 0";
    for statements in [
        // Deleted and written again, in one transaction, in two, and by the key of another.
        "BEGIN; DELETE FROM parent; INSERT INTO parent VALUES (1, 'x'), (2, 'y'), (3, 'z'); COMMIT",
        "DELETE FROM parent WHERE id = 1",
        "INSERT INTO parent VALUES (1, 'again')",
        "TRUNCATE TABLE parent",
        "INSERT INTO parent VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "REPLACE INTO parent VALUES (1, 'replaced')",
        "UPDATE parent SET id = 20 WHERE id = 2",
        "UPDATE parent SET id = 2 WHERE id = 20",
        // Children first, and a change of one that names nothing.
        "INSERT INTO child VALUES (7, 70); INSERT INTO other VALUES (7, 70); INSERT INTO strict VALUES (7, 70); INSERT INTO link VALUES (70, 7)",
        "UPDATE child SET id = 8 WHERE id = 7",
        "UPDATE child SET id = 7 WHERE id = 8; UPDATE strict SET id = 8 WHERE id = 7",
        "SET foreign_key_checks = 1; INSERT INTO parent VALUES (70, 'late')",
        "DELETE FROM child WHERE id = 1; INSERT INTO child VALUES (1, 3)",
        // And what follows the rules does so as before.
        "SET foreign_key_checks = 1; DELETE FROM link; DELETE FROM strict; UPDATE parent SET id = 71 WHERE id = 3; DELETE FROM parent WHERE id = 1",
    ] {
        server.sql("test", &format!("{off}; {statements}")).unwrap();
        let found = Model::of_graph(caught_up(&settings).await.graph()).await;
        let (vertices, edges) = said(&mut conn).await;
        assert!(found.vertices.keys().eq(&vertices), "{statements}: {:?}", found.vertices.keys());
        assert!(found.edges.keys().eq(&edges), "{statements}: {:?} and not {edges:?}", found.edges.keys());
    }
    // A copy of such a row says which, and can be told to wait.
    server.sql("test", &format!("{off}; INSERT INTO child VALUES (9, 90)")).unwrap();
    let again = |mapping: &str| settings_of(&server.url("test"), &folder.path().join("again"), mapping);
    let rejected = Feed::open(again(MAPPING), RunOptions::default(), Arc::new(())).await.err().unwrap();
    assert_eq!(rejected.kind(), FeedErrorKind::Row);
    let text = "table test.child, row id=9: parent is 90, and no vertex parent has this key";
    assert_eq!(rejected.to_string(), text);
    assert!(rejected.what_to_do().contains("missing = \"wait\""), "{}", rejected.what_to_do());
    let waits = MAPPING.replace("to = 'parent' }", "to = 'parent', missing = 'wait' }");
    caught_up(&again(&waits)).await;
    server.sql("test", "INSERT INTO parent VALUES (90, 'later')").unwrap();
    let found = Model::of_graph(caught_up(&again(&waits)).await.graph()).await;
    assert!(found.edges.contains_key("child:9 -of-> parent:90"), "{:?}", found.edges.keys());
}

/// A condition in the middle of a cascade hides what others depend on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_inside_of_a_cascade_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    // The rule of the table in the middle, its condition, and what the rejection says; nothing if it is followed.
    let cases = [
        ("id int PRIMARY KEY, up int, gone int", "ON DELETE CASCADE", "gone = 0", "are deleted with"),
        ("id int PRIMARY KEY, up int, gone int", "ON DELETE SET NULL", "gone = 0", ""),
        ("id int PRIMARY KEY, up int, gone int", "ON DELETE SET NULL", "up is not null", "lose what their condition"),
        ("id int PRIMARY KEY, up int, gone int", "ON UPDATE CASCADE", "up < 5", "change what their condition"),
        ("id int PRIMARY KEY, up int, gone int", "ON UPDATE CASCADE", "gone = 0", ""),
        ("up int PRIMARY KEY, id int UNIQUE, gone int", "ON UPDATE CASCADE", "gone = 0", "get other keys"),
        ("id int PRIMARY KEY, up int, gone int", "", "gone = 0", ""),
    ];
    for (number, (columns, rule, condition, expected)) in cases.iter().enumerate() {
        let database = format!("case_{number}");
        let key = if columns.starts_with("up") { "up" } else { "id" };
        let tables = format!(
            "CREATE DATABASE {database}; USE {database}; CREATE TABLE top (id int PRIMARY KEY);
             CREATE TABLE middle ({columns}, FOREIGN KEY (up) REFERENCES top (id) {rule});
             CREATE TABLE bottom (id int PRIMARY KEY, middle int, FOREIGN KEY (middle) REFERENCES middle ({key}) ON DELETE CASCADE)"
        );
        server.sql("test", &tables).unwrap();
        let middle = format!(
            "[[table]]\nname = 'middle'\nwhere = '{condition}'\nvertex = {{ label = 'Middle' }}\n\
             edges = [{{ label = 'up', columns = 'up', to = 'Top' }}]\n"
        );
        let top = "[[table]]\nname = 'top'\nvertex = { label = 'Top' }\n";
        let bottom = "[[table]]\nname = 'bottom'\nvertex = { label = 'Bottom' }\nedges = [{ label = 'in', columns = 'middle', to = 'Middle' }]\n";
        let of = |mapping: String| settings(&server, &folder.path().join("graph"), &database, &mapping);
        let checked = check(&of(format!("{top}{middle}{bottom}"))).await;
        match checked.err() {
            Some(error) => {
                assert!(!expected.is_empty() && error.to_string().contains(expected), "{rule}, {condition}: {error}");
                let ignoring = middle.replace("where", "cascades = 'ignore'\nwhere");
                check(&of(format!("{top}{ignoring}{bottom}"))).await.unwrap();
            }
            None => assert_eq!(*expected, "", "{rule}, {condition}"),
        }
        // Rows that are set aside are hidden as well.
        let aside = middle.replace(&format!("where = '{condition}'"), "on_error = 'dead-letter'");
        let checked = check(&of(format!("{top}{aside}{bottom}"))).await;
        match ["are deleted", "get other keys"].iter().any(|it| expected.starts_with(it)) {
            true => {
                let error = checked.err().unwrap().to_string();
                assert!(error.contains(expected) && error.contains("dead-letter"), "{rule}: {error}");
                let ignoring = aside.replace("on_error", "cascades = 'ignore'\non_error");
                check(&of(format!("{top}{ignoring}{bottom}"))).await.unwrap();
            }
            false => drop(checked.unwrap()),
        }
        // Nothing depends on it.
        if expected.starts_with("are deleted") {
            check(&of(format!("{top}{middle}"))).await.unwrap();
        }
    }
}

/// Keys that are equal for PostgreSQL, and are not the same text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_postgres_compares_otherwise_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&["fsync=off"]).unwrap();
    let ignoring_case =
        "CREATE COLLATION ignoring_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)";
    server.sql("test", ignoring_case).unwrap();
    for (number, (key, of_child, target, names, compared_by)) in [
        ("numeric", "numeric", "1.5", "1.50", Some("numeric")),
        ("numeric(5,1)", "numeric(5,2)", "1.5", "1.50", Some("numeric")),
        ("numeric(5,2)", "numeric(5,2)", "1.5", "1.50", None),
        ("text COLLATE ignoring_case", "text COLLATE ignoring_case", "Ann", "ANN", Some("ignoring_case")),
        ("text", "text", "Ann", "Ann", None),
        ("int", "bigint", "5", "5", None),
        ("char(5)", "char(5)", "a", "a ", None),
    ]
    .into_iter()
    .enumerate()
    {
        let tables = format!(
            "CREATE TABLE t{number} (k {key} PRIMARY KEY); CREATE TABLE c{number} (id int PRIMARY KEY, k {of_child} REFERENCES t{number});
             CREATE PUBLICATION hoplake_p{number} FOR TABLE t{number}, c{number};
             INSERT INTO t{number} VALUES ('{target}'); INSERT INTO c{number} VALUES (7, '{names}')"
        );
        server.sql("test", &tables).unwrap();
        let graph = folder.path().join(format!("{number}"));
        let text = format!(
            "graph = {graph:?}\n[source]\nname = 'p{number}'\nurl = '{}'\n[[table]]\nname = 't{number}'\nvertex = {{ label = 'T' }}\n\
             [[table]]\nname = 'c{number}'\nvertex = {{ label = 'C' }}\nedges = [{{ label = 'k', columns = 'k', to = 'T' }}]\n",
            server.url("test")
        );
        let settings = Settings::parse(&text).unwrap();
        match (check(&settings).await.err(), compared_by) {
            (None, None) => {
                let found = Model::of_graph(caught_up(&settings).await.graph()).await;
                assert_eq!(found.edges.len(), 1, "{key}: {found:?}");
            }
            (Some(error), Some(compared_by)) => {
                for part in [&*format!("c{number}, row id=7"), names, target, compared_by] {
                    assert!(error.to_string().contains(part), "{key}: {error} says nothing of {part}");
                }
            }
            (error, _) => panic!("{key} and {of_child}: {error:?}"),
        }
    }
}

/// Keys that are equal for the database, and are not the same text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_are_equal_only_by_a_collation_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let cases = [
        ("utf8mb4_general_ci", "Ann", "ANN", true),
        ("utf8mb4_general_ci", "Zoë", "Zoe", true),
        // Blanks at the end do not count.
        ("utf8mb4_bin", "a", "a ", true),
        ("utf8mb4_uca1400_ai_ci", "ss", "ß", true),
        ("latin1_swedish_ci", "é", "E", true),
        ("utf8mb4_nopad_bin", "Ann", "Ann", false),
        ("utf8mb4_general_ci", "Ann", "Ann", false),
    ];
    for (number, (collation, target, names, is_rejected)) in cases.iter().enumerate() {
        let database = format!("case_{number}");
        let charset = collation.split('_').next().unwrap();
        let key = format!("varchar(20) CHARACTER SET {charset} COLLATE {collation}");
        let tables = format!(
            "SET NAMES utf8mb4; CREATE DATABASE {database}; USE {database}; CREATE TABLE t (k {key} PRIMARY KEY, a int);
             CREATE TABLE c (id int PRIMARY KEY, k {key}, FOREIGN KEY (k) REFERENCES t (k));
             CREATE TABLE l (k {key}, n int, PRIMARY KEY (k, n), FOREIGN KEY (k) REFERENCES t (k), FOREIGN KEY (n) REFERENCES c (id));
             INSERT INTO t VALUES ('{target}', 1); INSERT INTO c VALUES (1, '{target}')"
        );
        server.sql("test", &tables).unwrap();
        let mapping = "[[table]]\nname = 't'\nvertex = { label = 'T' }\n[[table]]\nname = 'c'\nvertex = { label = 'C' }\n\
                       edges = [{ label = 'k', columns = 'k', to = 'T' }]\n[[table]]\nname = 'l'\n\
                       edge = { label = 'l', source = { label = 'T', columns = 'k' }, target = { label = 'C', columns = 'n' } }\n";
        let graph = folder.path().join(&database);
        let of = |graph: &Path, mapping: &str| settings(&server, graph, &database, mapping);
        check(&of(&graph, mapping)).await.unwrap();
        caught_up(&of(&graph, mapping)).await;
        for (insert, row) in [
            (format!("INSERT INTO c VALUES (7, '{names}')"), "c"),
            (format!("INSERT INTO l VALUES ('{names}', 1)"), "l"),
        ] {
            let graph = folder.path().join(format!("{database}_{row}"));
            caught_up(&of(&graph, mapping)).await;
            server.sql(&database, &format!("SET NAMES utf8mb4; {insert}")).unwrap();
            let options = RunOptions { once: true, ..RunOptions::default() };
            let mut feed = Feed::open(of(&graph, mapping), options, Arc::new(())).await.unwrap();
            let ran = feed.run(std::future::pending()).await;
            if !is_rejected {
                ran.unwrap();
                continue;
            }
            // In the log.
            let stopped = ran.unwrap_err();
            assert_eq!(stopped.kind(), FeedErrorKind::Row, "{stopped}");
            for part in [format!("table {database}.{row}").as_str(), names.trim_end(), *collation] {
                assert!(stopped.to_string().contains(part), "{collation}: {stopped} says nothing of {part}");
            }
            // Before a first copy.
            let rejected = check(&of(&graph, mapping)).await.err().unwrap();
            for part in [format!("table {database}.{row}").as_str(), *names, *target, *collation] {
                assert!(rejected.to_string().contains(part), "{rejected} says nothing of {part}");
            }
            let copied = folder.path().join(format!("{database}_{row}_copied"));
            let rejected = Feed::open(of(&copied, mapping), RunOptions::default(), Arc::new(())).await.err().unwrap();
            assert!(
                rejected.to_string().contains(*collation) && !rejected.to_string().contains("parquet"),
                "{rejected}"
            );
            // What an operator may do without touching the database.
            let waits = mapping
                .replace("to = 'T' }", "to = 'T', missing = 'wait' }")
                .replace("edge = {", "edge = { missing = 'wait',");
            caught_up(&of(&graph, &waits)).await;
            caught_up(&of(&copied, &waits)).await;
            server.sql(&database, "DELETE FROM l; DELETE FROM c WHERE id = 7").unwrap();
        }
    }
}
