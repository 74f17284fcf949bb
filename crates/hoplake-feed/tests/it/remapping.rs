//! A mapping that changes after the copy: the rows that were copied would be other ones by it, so the feed stops until somebody decides.

use std::{path::Path, sync::Arc};

use hoplake_feed::{
    Feed, FeedError, ReconcileOptions, RunOptions, Selection, Settings, check, discard, reconcile, retry,
};
use hoplake_testkit::MariaDbServer;

use crate::following::{caught_up, content, once, settings_of};

const TABLES: &str = "CREATE TABLE team (id INT PRIMARY KEY, code INT NOT NULL UNIQUE, name VARCHAR(20));
    CREATE TABLE person (id INT PRIMARY KEY, team INT, boss INT, age INT, nick VARCHAR(20), FOREIGN KEY (team) REFERENCES team (id));
    CREATE TABLE member (person INT, team INT, since INT, PRIMARY KEY (person, team, since));
    INSERT INTO team VALUES (1, 11, 'a'), (2, 12, 'b');
    INSERT INTO person VALUES (1, 1, 2, 30, '5'), (2, 2, NULL, 40, '6');
    INSERT INTO member VALUES (1, 1, 2020), (1, 1, 2021), (2, 1, 2022);";

const TEAM: &str = "[[table]]\nname = 'team'\nvertex = { label = 'Team' }\n";
const PERSON: &str = "[[table]]\nname = 'person'\nignore = ['age']\nvertex = { label = 'Person' }\n\
    edges = [{ label = 'in', columns = 'team', to = 'Team' }]\n";
const MEMBER: &str = "[[table]]\nname = 'member'\nedge = { label = 'member', source = { label = 'Person', columns = 'person' }, \
    target = { label = 'Team', columns = 'team' } }\n";

fn settings(server: &MariaDbServer, graph: &Path, mapping: &str) -> Settings {
    settings_of(&server.url("test"), graph, mapping)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_mapping_stops_the_feed_until_all_rows_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", TABLES).unwrap();
    let all = format!("{TEAM}{PERSON}{MEMBER}");
    let with = |from: &str, to: &str| {
        let mapping = all.replacen(from, to, 1);
        assert_ne!(mapping, all, "{from}");
        mapping
    };
    let two = format!("{TEAM}{PERSON}");
    let filtered = with("name = 'team'\n", "name = 'team'\nwhere = 'id < 2'\n");
    let renamed = with("ignore = ['age']\n", "ignore = ['age']\nrename = { nick = 'called' }\n");
    // Before and after, and what the feed says. Without that it goes on.
    let cases = [
        (two.clone(), all.clone(), "table test.member is new in the mapping"),
        (all.clone(), two, "table test.member is no longer in the mapping"),
        (all.clone(), with("ignore = ['age']\n", ""), "column age was `ignored` and is nothing"),
        (all.clone(), with("['age']", "['age', 'nick']"), "column nick was nothing and is `ignored`"),
        (all.clone(), filtered.clone(), "where was nothing and is `id < 2`"),
        (filtered.clone(), all.clone(), "where was `id < 2` and is nothing"),
        (filtered.clone(), filtered.replace("id < 2", "id < 3"), "where was `id < 2` and is `id < 3`"),
        (all.clone(), all.replace("'Team'", "'Group'"), "has changed"),
        (all.clone(), with("label = 'in'", "label = 'works_in'"), "edges in by team"),
        (all.clone(), with("label = 'member',", "label = 'joined',"), "edge was"),
        (all.clone(), with("[{ label = 'in', columns = 'team', to = 'Team' }]", "[]"), "edges in by team"),
        (
            all.clone(),
            with("to = 'Team' }]", "to = 'Team' }, { label = 'boss', columns = 'boss', to = 'Person' }]"),
            "edges boss by boss was nothing",
        ),
        (all.clone(), renamed.clone(), "column nick was nothing and is `the property called`"),
        (renamed, all.clone(), "column nick was `the property called` and is nothing"),
        (
            all.clone(),
            with("ignore = ['age']\n", "ignore = ['age']\nkeep = ['team']\n"),
            "column team was nothing and is `kept`",
        ),
        (
            all.clone(),
            with("vertex = { label = 'Person' }", "types = { nick = 'int64' }\nvertex = { label = 'Person' }"),
            "column nick was nothing and is `of type int64`",
        ),
        (
            all.clone(),
            format!("{all}[[table]]\nname = 'team'\nwhere = 'id > 5'\nvertex = {{ label = 'Other' }}\n"),
            "had 1 entries in the mapping, and has 2",
        ),
        (all.clone(), with("columns = 'team' } }", "columns = 'team' }, key = [] }"), "with key"),
        (all.clone(), format!("{MEMBER}{PERSON}{TEAM}"), ""),
        (all.clone(), with("name = 'team'\n", "name = 'team'\non_error = 'dead-letter'\n"), ""),
    ];
    for (number, (before, after, why)) in cases.into_iter().enumerate() {
        let of = |name: &str, mapping: &str| settings(&server, &folder.path().join(format!("{number}{name}")), mapping);
        once(&of("", &before), RunOptions::default()).await.unwrap();
        let changed = of("", &after);
        let fresh = of("fresh", &after);
        let found = once(&changed, RunOptions::default()).await;
        if why.is_empty() {
            found.unwrap_or_else(|error| panic!("{number}: {error}"));
            continue;
        }
        let said = found.err().unwrap_or_else(|| panic!("{number}: the feed goes on without: {why}"));
        assert!(said.to_string().contains(why), "{number}: {said}");
        assert!(said.what_to_do().contains("--resnapshot"), "{number}: {}", said.what_to_do());
        server.sql("test", &format!("UPDATE team SET code = code + 100 WHERE id = {}", 1 + number % 2)).unwrap();
        let again = once(&changed, RunOptions::default()).await.err().expect("it stops at each start");
        assert_eq!(again.to_string(), said.to_string(), "{number}");
        once(&fresh, RunOptions::default()).await.unwrap();
        // A property keeps its type.
        if !why.contains("of type") {
            let options = RunOptions { resnapshot: true, ..RunOptions::default() };
            once(&changed, options).await.unwrap_or_else(|error| panic!("{number}: {why}: {error}"));
            let mut found = content(&changed).await;
            let expected = content(&fresh).await;
            // Nobody says that the property of a column that is no longer carried is not someone else's.
            for (name, properties) in &mut found.vertices {
                let expected = expected.vertices.get(name);
                properties.retain(|it, _| {
                    expected.is_some_and(|all| all.contains_key(it))
                        || !["nick", "called", "team", "boss"].contains(&it.as_str())
                });
            }
            assert!(found == expected, "{number}: {why}: graph | tables\n{}", found.difference(&expected));
            once(&changed, RunOptions::default()).await.unwrap_or_else(|error| panic!("{number}: {why}: {error}"));
        }
    }
    // Somebody may know that the graph is right.
    let of = |mapping: &str| settings(&server, &folder.path().join("accepted"), mapping);
    let feed = once(&of(&filtered), RunOptions::default()).await.unwrap();
    let position = feed.position().of_source.clone();
    drop(feed);
    let options = RunOptions { accepted: Some(position), ..RunOptions::default() };
    once(&of(&all), options).await.unwrap();
    once(&of(&all), RunOptions::default()).await.unwrap();
    assert!(!content(&of(&all)).await.vertices.contains_key("Team:2"));
}

/// Of a column that is ignored, the database may let go: whoever fed the graph from before need not know that by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_that_was_ignored_may_be_gone() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let sql = |statements: &str| server.sql("test", statements).unwrap();
    sql("CREATE TABLE t (id INT PRIMARY KEY, a INT, c INT); INSERT INTO t VALUES (1, 10, 5)");
    let of = |graph: &str, ignored: &str| {
        let entry = format!("[[table]]\nname = 't'\nignore = [{ignored}]\nvertex = {{ label = 'T' }}\n");
        settings(&server, &folder.path().join(graph), &entry)
    };
    for graph in ["kept", "removed", "renewed"] {
        caught_up(&of(graph, "'c'")).await;
    }
    // The log has values of it, and then the drop.
    sql("INSERT INTO t VALUES (2, 20, 6); ALTER TABLE t DROP COLUMN c; INSERT INTO t VALUES (3, 30)");
    let fresh = of("fresh", "");
    caught_up(&fresh).await;
    let expected = content(&fresh).await;
    let is_equal = async |settings: &Settings| {
        let found = content(settings).await;
        assert!(found == expected, "graph | tables\n{}", found.difference(&expected));
    };
    // A graph that has not followed the column does not know the name, nor does any a misspelt one.
    for unknown in [of("other", "'c'"), of("kept", "'cc'"), of("kept", "'c', 'cc'")] {
        for rejected in [check(&unknown).await.map(drop), once(&unknown, RunOptions::default()).await.map(drop)] {
            let error = rejected.expect_err("the column is not there").to_string();
            assert!(error.contains("there is no column c"), "{error}");
        }
    }
    for ignored in ["'c'", "'c'", "", ""] {
        let kept = of("kept", ignored);
        let removed = of("removed", "");
        check(&kept).await.unwrap();
        for settings in [&kept, &removed] {
            caught_up(settings).await;
            is_equal(settings).await;
            assert!(reconcile(settings, &ReconcileOptions::default()).await.unwrap().is_equal());
        }
    }
    let renewed = of("renewed", "'c'");
    once(&renewed, RunOptions { resnapshot: true, ..RunOptions::default() }).await.unwrap();
    caught_up(&renewed).await;
    is_equal(&renewed).await;
    // One of the same name is a new column, unless it is ignored still.
    sql("ALTER TABLE t ADD COLUMN c INT; INSERT INTO t VALUES (4, 40, 7)");
    let named = of("renewed", "'c'");
    let unnamed = of("kept", "");
    for settings in [&named, &named, &unnamed, &unnamed] {
        caught_up(settings).await;
    }
    assert!(!content(&named).await.vertices["T:4"].contains_key("c"));
    assert_eq!(content(&unnamed).await.vertices["T:4"]["c"], "7");
}

/// When a feed reads what happens to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// It was opened before, and reads it as one log.
    Running,
    /// It begins again after each statement.
    Restarted,
    /// It begins when all has happened.
    Later,
}

/// Whatever becomes of a column that is ignored: its values are not in the graph.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_that_is_ignored_may_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let sql = |statements: &str| server.sql("test", statements).unwrap();
    let sequences: [&[&str]; 5] = [
        &["ALTER TABLE t DROP COLUMN c", "ALTER TABLE t ADD COLUMN c INT", "ALTER TABLE t DROP COLUMN c"],
        &[
            "ALTER TABLE t DROP COLUMN c",
            "INSERT INTO t VALUES (2, 20)",
            "ALTER TABLE t ADD COLUMN c INT",
            "INSERT INTO t VALUES (3, 30, 7)",
            "ALTER TABLE t DROP COLUMN c",
            "INSERT INTO t VALUES (4, 40)",
        ],
        &[
            "ALTER TABLE t DROP COLUMN c",
            "ALTER TABLE t ADD COLUMN c INT DEFAULT 7",
            "INSERT INTO t (id, a) VALUES (2, 20)",
        ],
        &[
            "ALTER TABLE t DROP COLUMN c, ADD COLUMN b INT",
            "ALTER TABLE t ADD COLUMN c INT",
            "INSERT INTO t VALUES (2, 20, 21, 22)",
        ],
        // What is not ignored stops the feed as ever.
        &["ALTER TABLE t DROP COLUMN c", "ALTER TABLE t ADD COLUMN c INT, DROP COLUMN a"],
    ];
    for (number, sequence) in sequences.iter().enumerate() {
        for reads in [Reads::Running, Reads::Restarted, Reads::Later] {
            let what = format!("{number}, {reads:?}");
            sql("CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, a INT, c UUID); INSERT INTO t VALUES (1, 10, UUID())");
            let of = |graph: &str, ignored: &str| {
                let entry = format!("[[table]]\nname = 't'\nignore = [{ignored}]\nvertex = {{ label = 'T' }}\n");
                settings(&server, &folder.path().join(format!("{number}{reads:?}{graph}")), &entry)
            };
            let followed = of("", "'c'");
            caught_up(&followed).await;
            let options = RunOptions { once: true, ..RunOptions::default() };
            let mut feed = Feed::open(followed.clone(), options, Arc::new(())).await.unwrap();
            let mut ended = Ok(());
            for statement in *sequence {
                sql(statement);
                if reads == Reads::Restarted {
                    ended = ended.and(once(&followed, RunOptions::default()).await.map(drop));
                }
            }
            match reads {
                Reads::Running => ended = feed.run(std::future::pending()).await,
                Reads::Later => ended = once(&followed, RunOptions::default()).await.map(drop),
                Reads::Restarted => {}
            }
            if number == 4 {
                // The mapping itself no longer fits for a feed that begins then.
                assert!(ended.is_err(), "{what}: the feed goes on");
                continue;
            }
            ended.unwrap_or_else(|error| panic!("{what}: {error}"));
            let has_c = !sql("SHOW COLUMNS FROM t LIKE 'c'").is_empty();
            let fresh = of("fresh", if has_c { "'c'" } else { "" });
            caught_up(&fresh).await;
            let found = content(&followed).await;
            let expected = content(&fresh).await;
            assert!(found == expected, "{what}: graph | tables\n{}", found.difference(&expected));
            once(&followed, RunOptions::default()).await.unwrap_or_else(|error| panic!("{what}, again: {error}"));
        }
    }
}

/// A feed that begins when all has happened, and whose `ignore` no longer names the column, goes on until one of that name is dropped that it
/// carried: whether a statement or two dropped the old one and added the new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_may_be_replaced_by_another_in_one_statement() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let sql = |statements: &str| server.sql("test", statements).unwrap();
    let replacements = [
        "ALTER TABLE t DROP COLUMN c; ALTER TABLE t ADD COLUMN c INT",
        "ALTER TABLE t DROP COLUMN c, ADD COLUMN c INT",
    ];
    for (number, replacement) in replacements.iter().enumerate() {
        sql("CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, a INT, c UUID); INSERT INTO t VALUES (1, 10, UUID())");
        let of = |ignored: &str| {
            let entry = format!("[[table]]\nname = 't'\nignore = [{ignored}]\nvertex = {{ label = 'T' }}\n");
            settings(&server, &folder.path().join(number.to_string()), &entry)
        };
        let named = of("'c'");
        let shortened = of("");
        caught_up(&named).await;
        sql(replacement);
        sql("INSERT INTO t VALUES (2, 20, 7); ALTER TABLE t DROP COLUMN c");
        let error = once(&shortened, RunOptions::default()).await.err().expect("the feed stops").to_string();
        assert!(error.contains("column c is dropped"), "{replacement}: {error}");
        let found = content(&shortened).await;
        assert!(found.vertices["T:2"].contains_key("c"), "{replacement}: {found:?}");
    }
}

/// One that `ignore` no longer names is a new column if it returns after the drop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_that_was_ignored_may_come_back_as_another() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let sql = |statements: &str| server.sql("test", statements).unwrap();
    for reads in [Reads::Running, Reads::Restarted, Reads::Later] {
        sql("CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, a INT, c UUID); INSERT INTO t VALUES (1, 10, UUID())");
        let of = |graph: &str, ignored: &str| {
            let entry = format!("[[table]]\nname = 't'\nignore = [{ignored}]\nvertex = {{ label = 'T' }}\n");
            settings(&server, &folder.path().join(format!("{reads:?}{graph}")), &entry)
        };
        let named = of("", "'c'");
        let shortened = of("", "");
        caught_up(&named).await;
        sql("INSERT INTO t VALUES (2, 20, UUID()); ALTER TABLE t DROP COLUMN c");
        if reads == Reads::Later {
            caught_up(&named).await;
        }
        // Opened while the drop is in the log, or in the graph.
        let options = RunOptions { once: true, ..RunOptions::default() };
        let mut feed = Feed::open(shortened.clone(), options, Arc::new(())).await.unwrap();
        if reads == Reads::Restarted {
            feed.run(std::future::pending()).await.unwrap();
            feed = Feed::open(shortened.clone(), RunOptions { once: true, ..RunOptions::default() }, Arc::new(()))
                .await
                .unwrap();
        }
        sql("ALTER TABLE t ADD COLUMN c BINARY(16); INSERT INTO t VALUES (3, 30, UNHEX(REPEAT('ab', 16)))");
        feed.run(std::future::pending()).await.unwrap_or_else(|error| panic!("{reads:?}: {error}"));
        sql("INSERT INTO t VALUES (4, 40, UNHEX(REPEAT('cd', 16)))");
        caught_up(&shortened).await;
        let fresh = of("fresh", "");
        caught_up(&fresh).await;
        let found = content(&shortened).await;
        let expected = content(&fresh).await;
        assert!(found == expected, "{reads:?}: graph | tables\n{}", found.difference(&expected));
        // It is carried by now.
        sql("ALTER TABLE t DROP COLUMN c");
        let error = once(&shortened, RunOptions::default()).await.err().expect("the feed stops").to_string();
        assert!(error.contains("column c is dropped"), "{reads:?}: {error}");
    }
}

/// Only the graph knows dropped columns: if its store is away, that is the error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_passes_on_that_the_store_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", "CREATE TABLE t (id INT PRIMARY KEY, a INT)").unwrap();
    let of =
        |graph: &Path| settings(&server, graph, "[[table]]\nname = 't'\nignore = ['c']\nvertex = { label = 'T' }\n");
    let absent = check(&of(&folder.path().join("graph"))).await.err().expect("the column is not there");
    assert!(absent.to_string().contains("there is no column c"), "{absent}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = check(&of(&file.join("graph"))).await.err().expect("the store is not there");
    assert!(!error.to_string().contains("there is no column c"), "{error}");
}

/// What a feed does not go on over, nothing else does that applies rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_and_repairs_wait_for_the_decision_that_a_feed_waits_for() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let sql = |statements: &str| server.sql("test", statements).unwrap();
    sql("CREATE TABLE note (id INT PRIMARY KEY, body TEXT, c INT); INSERT INTO note VALUES (1, '5', 1)");
    let of = |more: &str| {
        let entry =
            format!("[[table]]\nname = 'note'\non_error = 'dead-letter'\nvertex = {{ label = 'Note' }}\n{more}");
        settings(&server, &folder.path().join("graph"), &entry)
    };
    let typed = of("types = { body = 'int64' }");
    let ignoring = of("ignore = ['body']");
    caught_up(&typed).await;
    sql("INSERT INTO note VALUES (2, 'abc', 1), (3, 'def', 1)");
    caught_up(&typed).await;
    let reject = async |settings: &Settings| {
        let said = once(settings, RunOptions::default()).await.err().expect("the feed does not go on");
        let is_same = |what: &str, error: Option<FeedError>| {
            let error = error.unwrap_or_else(|| panic!("{what} goes on over: {said}"));
            assert_eq!((error.to_string(), error.what_to_do()), (said.to_string(), said.what_to_do()), "{what}");
        };
        is_same("retry", retry(settings, &Selection::All).await.err());
        is_same("reconcile", reconcile(settings, &ReconcileOptions::default()).await.err());
        let repair = ReconcileOptions { repair: true, ..ReconcileOptions::default() };
        is_same("repair", reconcile(settings, &repair).await.err());
        assert!(said.what_to_do().contains("--resnapshot"), "{}", said.what_to_do());
        said.to_string()
    };
    let said = reject(&ignoring).await;
    assert!(said.contains("the mapping of table test.note has changed"), "{said}");
    // The mapping that the graph has goes on.
    assert_eq!(retry(&typed, &Selection::All).await.unwrap().left, 2);
    sql("ALTER TABLE note DROP COLUMN body, ADD COLUMN body TEXT");
    let said = once(&typed, RunOptions::default()).await.err().expect("the feed stops").to_string();
    assert!(said.contains("column body is dropped"), "{said}");
    reject(&typed).await;
    reject(&ignoring).await;
    // What is given up needs no decision.
    assert_eq!(discard(&ignoring, &Selection::Names(vec!["Note:3".into()])).await.unwrap().left, 1);
    reject(&typed).await;
    // All rows are read anew, so that nothing is left of what was set aside.
    let options = RunOptions { resnapshot: true, ..RunOptions::default() };
    let feed = once(&ignoring, options).await.unwrap();
    assert!(feed.dead_letters().await.unwrap().is_empty());
    drop(feed);
    assert!(content(&ignoring).await.vertices.keys().eq(["Note:1", "Note:2", "Note:3"]));
    assert!(reconcile(&ignoring, &ReconcileOptions::default()).await.unwrap().is_equal());
}
