//! `hoplake feed`: the walk of the documentation, from tables to a graph that follows them, and what is rejected.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use hoplake_testkit::{MariaDbServer, S3Server, TcpFault, TcpProxy};
use tokio::task::block_in_place;

use crate::hoplake::Shell;

#[test]
fn what_cannot_be_fed_is_rejected() {
    let server = MariaDbServer::start(&[]).unwrap();
    server
        .sql(
            "test",
            "CREATE TABLE team (id INT PRIMARY KEY, shape POINT);
             CREATE TABLE person (id INT PRIMARY KEY, team INT, FOREIGN KEY (team) REFERENCES team (id) ON DELETE CASCADE);
             CREATE TABLE log (line TEXT)",
        )
        .unwrap();
    let shell = Shell::empty();
    let source = format!("graph = 'graph'\n[source]\nname = 'hr'\nurl = '{}'\n", server.url("test"));
    for (tables, error, hint) in [
        ("", "the mapping has no tables", "hoplake feed infer"),
        (
            "[[table]]\nname = 'people'\nvertex = { label = 'P' }",
            "the database has no table test.people",
            "check its name",
        ),
        (
            "[[table]]\nname = 'team'\nvertex = { label = 'T' }",
            "column shape of type point is not supported",
            "add it to ignore",
        ),
        ("[[table]]\nname = 'log'\nvertex = { label = 'L' }", "it has no primary key", "key = \"id\""),
        (
            "[[table]]\nname = 'person'\nvertex = { label = 'P', key = 'no' }",
            "there is no column no; it has id, team",
            "feed check",
        ),
        ("[[table]]\nname = 'person'\nwhere = 'id >'\nvertex = { label = 'P' }", "where = \"id >\"", "feed check"),
        (
            "[[table]]\nname = 'person'\nvertex = { label = 'P' }",
            "the database does not log that rows are deleted with those that they name",
            "cascades = \"ignore\"",
        ),
        (
            "[[table]]\nname = 'person'\nvertex = { label = 'P' }\nedge = 7",
            "line 8: invalid type: integer `7`, expected a table with a label",
            "feed check",
        ),
    ] {
        shell.write("feed.toml", &format!("{source}{tables}\n"));
        let run = shell.run(&["feed", "check", "feed.toml"]);
        let (said, advice) = run.err.split_once("hint: ").unwrap_or((&run.err, ""));
        assert!(run.status == 2 && said.contains(error) && advice.contains(hint), "{tables}: {}", run.err);
    }
    let away = source.replace(&format!(":{}/", server.port()), ":1/");
    shell.write("feed.toml", &format!("{away}[[table]]\nname = 'team'\nvertex = {{ label = 'T' }}\n"));
    let unreachable = "could not connect to mysql://127.0.0.1:1/test";
    shell.run(&["feed", "run", "feed.toml", "--no-wait"]).fails(5, unreachable, "the address");
}

#[test]
fn a_graph_of_others_is_not_overwritten() {
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", "CREATE TABLE team (id INT PRIMARY KEY)").unwrap();
    let shell = Shell::with_graph();
    let settings = format!("graph = 'graph'\n[source]\nname = 'hr'\nurl = '{}'\n", server.url("test"));
    shell.write("feed.toml", &format!("{settings}[[table]]\nname = 'team'\nvertex = {{ label = 'T' }}\n"));
    let error = "the graph at graph has content in version 1, and no position of source hr";
    shell.run(&["feed", "run", "feed.toml", "--once"]).fails(4, error, "feed into a place that has no graph");
}

#[test]
fn dead_letters_are_listed_applied_and_discarded() {
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", "CREATE TABLE note (id INT PRIMARY KEY, body TEXT); INSERT INTO note VALUES (1, '5')").unwrap();
    let shell = Shell::empty();
    let settings = format!("graph = 'graph'\n[source]\nname = 'hr'\nurl = '{}'\n", server.url("test"));
    let entry = "name = 'note'\ntypes = { body = 'int64' }\nvertex = { label = 'Note' }\n";
    shell.write("stop.toml", &format!("{settings}[[table]]\n{entry}"));
    shell.write("feed.toml", &format!("{settings}[[table]]\non_error = 'dead-letter'\n{entry}"));
    shell.run(&["feed", "run", "feed.toml", "--once"]).ok();
    assert_eq!(shell.run(&["feed", "dead-letters", "list", "feed.toml"]).ok().out, "");
    let rows = "INSERT INTO note VALUES (2, 'abc'), (3, 'x'), (4, '7'); UPDATE note SET body = '8' WHERE id = 2";
    server.sql("test", rows).unwrap();
    let stopped = shell.run(&["feed", "run", "stop.toml", "--once"]);
    assert!(stopped.status == 2 && stopped.err.contains("row id=2, transaction"), "{}", stopped.err);
    // Values are for those who ask for them.
    assert!(!stopped.err.contains("abc"), "{}", stopped.err);
    let shows = settings.replace("[source]\n", "[source]\nshow_rows = true\n");
    shell.write("shows.toml", &format!("{shows}[[table]]\n{entry}"));
    let shown = shell.run(&["feed", "run", "shows.toml", "--once"]);
    assert!(shown.status == 2 && shown.err.contains("row id=2 body=\"abc\", transaction"), "{}", shown.err);
    shell.run(&["feed", "run", "feed.toml", "--once"]).ok();
    let listed = shell.run(&["feed", "dead-letters", "list", "feed.toml", "--json"]).ok().json();
    let names: Vec<_> = listed.iter().map(|it| (it["names"][0].as_str().unwrap(), it["reason"].is_null())).collect();
    assert_eq!(names, [("Note:2", false), ("Note:3", false), ("Note:2", true)]);
    assert!(shell.run(&["feed", "status", "graph"]).ok().out.contains("3 dead letters, 2 held keys"));
    let status = shell.run(&["feed", "status", "graph", "--json"]).ok().json().remove(0);
    let count = |name: &str| status[name].as_u64().unwrap();
    assert_eq!((count("dead_letters"), count("held_keys"), count("edges_waiting")), (3, 2, 0), "{status}");
    // Of the last transaction, and not of the version: MariaDB has whole seconds.
    let time = status["position_time"].as_str().unwrap();
    assert!(count("age_ms") < 600_000 && time.ends_with('Z') && !time.contains('.'), "{status}");
    let shown = shell.run(&["feed", "dead-letters", "show", "feed.toml", "Note:2"]).ok().json();
    assert_eq!((shown.len(), &shown[0]["after"]["body"]), (2, &serde_json::json!("abc")));
    let retried = shell.run(&["feed", "dead-letters", "retry", "feed.toml", "--all"]);
    assert!(retried.out.contains("2 dead letters applied, 1 left"), "{}", retried.out);
    assert!(retried.status == 2 && retried.err.contains("1 dead letter could not be applied"), "{}", retried.err);
    let note = shell.run(&["get", "graph", "Note:2", "--format", "json"]).ok().json().remove(0);
    assert_eq!(note["body"], 8);
    let discarded = shell.run(&["feed", "dead-letters", "discard", "feed.toml", "Note:3"]).ok().out;
    assert!(discarded.contains("1 dead letter discarded, 0 left"), "{discarded}");
    let gone = shell.run(&["feed", "dead-letters", "retry", "feed.toml", "Note:3"]);
    gone.fails(2, "no dead letter for Note:3", "dead-letters list");
}

/// The objects of feeds in a folder.
fn feed_objects(shell: &Shell, graph: &str) -> Vec<String> {
    let folders = ["feeds", "dead-letters"].map(|kind| shell.path().join(graph).join(kind).join("hr"));
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_vacuum_and_a_clone_take_the_objects_of_a_feed_along() {
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", "CREATE TABLE note (id INT PRIMARY KEY, body TEXT); INSERT INTO note VALUES (1, '5')").unwrap();
    let shell = Shell::empty();
    let settings = format!("graph = 'graph'\n[source]\nname = 'hr'\nurl = '{}'\n", server.url("test"));
    let entry = "name = 'note'\ntypes = { body = 'int64' }\nvertex = { label = 'Note' }\n";
    shell.write("feed.toml", &format!("{settings}[[table]]\non_error = 'dead-letter'\n{entry}"));
    shell.run(&["feed", "run", "feed.toml", "--once"]).ok();
    server.sql("test", "INSERT INTO note VALUES (2, 'abc')").unwrap();
    shell.run(&["feed", "run", "feed.toml", "--once"]).ok();
    let objects = feed_objects(&shell, "graph");
    assert_eq!(objects.len(), 2, "{objects:?}");
    let version = || shell.run(&["feed", "status", "graph", "--json"]).ok().json()[0]["version"].clone();
    let before = version();
    shell.run(&["vacuum", "graph", "--min-age", "0s"]).ok();
    assert_eq!(version(), before);
    shell.write("graph/feeds/hr/left.state.jsonl.zst", "left");
    shell.write("graph/dead-letters/hr/left.parquet", "left");
    let vacuumed = shell.run(&["vacuum", "graph", "--min-age", "0s", "--json"]).ok().json().remove(0);
    assert!(vacuumed["objects"].as_u64().unwrap() >= 2, "{vacuumed}");
    assert_eq!(feed_objects(&shell, "graph"), objects);
    let log = shell.run(&["log", "graph", "--limit", "1", "--json"]).ok().json().remove(0);
    assert_eq!(log["message"], "vacuum of a feed", "{log}");

    // A file is where a folder of the clone has to be.
    shell.write("clone/dead-letters", "in the way");
    let failed = shell.run(&["clone", "graph", "clone"]);
    assert_eq!(failed.status, 5, "{}", failed.err);
    shell.run(&["info", "clone"]).fails(3, "there is no graph at", "");
    std::fs::remove_file(shell.path().join("clone").join("dead-letters")).unwrap();
    shell.run(&["clone", "graph", "clone"]).ok();
    assert_eq!(feed_objects(&shell, "clone"), objects);
    shell.run(&["verify", "clone"]).ok();
    shell.run(&["verify", "graph"]).ok();
    // The feed goes on.
    server.sql("test", "UPDATE note SET body = '7' WHERE id = 2").unwrap();
    shell.run(&["feed", "run", "feed.toml", "--once"]).ok();
    let retried = shell.run(&["feed", "dead-letters", "retry", "feed.toml", "--all"]).ok().out;
    assert!(retried.contains("2 dead letters applied, 0 left"), "{retried}");
}

#[test]
fn what_differs_from_the_tables_is_shown_and_repaired() {
    let server = MariaDbServer::start(&[]).unwrap();
    server
        .sql(
            "test",
            "CREATE TABLE note (id INT PRIMARY KEY, body TEXT); INSERT INTO note VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        )
        .unwrap();
    let shell = Shell::empty();
    let settings = format!("graph = 'graph'\n[source]\nname = 'hr'\nurl = '{}'\n", server.url("test"));
    let table = "[[table]]\nname = 'note'\nvertex = { label = 'Note' }\n";
    shell.write("feed.toml", &format!("{settings}{table}"));
    shell.run(&["feed", "run", "feed.toml", "--once"]).ok();
    let same = shell.run(&["feed", "reconcile", "feed.toml"]).ok().out;
    assert!(
        same.contains("3 rows, 3 vertices and edges") && same.contains("0 missing, 0 left over, 0 different"),
        "{same}"
    );
    shell.write(
        "damage.jsonl",
        r#"{"op": "delete_vertex", "label": "Note", "key": 1}
{"op": "upsert_vertex", "label": "Note", "key": 2, "properties": {"body": "z", "rank": 7}}
{"op": "upsert_vertex", "label": "Note", "key": 9}"#,
    );
    shell.run(&["apply", "graph", "damage.jsonl", "--create-missing"]).ok();
    let args = ["feed", "reconcile", "feed.toml", "--table", "note", "--report", "differences", "--json"];
    let found = shell.run(&args);
    assert_eq!(found.status, 4, "{}", found.err);
    assert!(found.err.contains("the graph differs from its tables in 3 places"), "{}", found.err);
    let summary = &found.json()[0];
    assert_eq!(["missing", "left_over", "different"].map(|it| summary[it].as_u64().unwrap()), [1, 1, 1]);
    let report = shell.read("differences/differences.jsonl");
    let line = r#"{"difference":"different","element":"vertex","label":"Note","name":"Note:2","tables":{"body":"b"},"graph":{"body":"z"}}"#;
    assert!(report.lines().any(|it| it == line), "{report}");
    let dry = shell.run(&["feed", "reconcile", "feed.toml", "--repair", "--dry-run"]);
    assert!(dry.status == 4 && dry.out.contains("3 would be repaired"), "{}{}", dry.out, dry.err);
    let repaired = shell.run(&["feed", "reconcile", "feed.toml", "--repair"]).ok().out;
    assert!(repaired.contains("3 repaired, the last in version 3"), "{repaired}");
    let note = shell.run(&["get", "graph", "Note:2", "--format", "json"]).ok().json().remove(0);
    assert_eq!((&note["body"], &note["rank"]), (&"b".into(), &7.into()), "what others added stays");
    shell.run(&["feed", "reconcile", "feed.toml", "--table", "notes"]).fails(
        2,
        "the mapping has no table test.notes",
        "feed check",
    );
    // On a schedule the running feed does it.
    shell.run(&["apply", "graph", "damage.jsonl"]).ok();
    shell.write("timed.toml", &format!("{settings}[reconcile]\nevery = '1s'\nrepair = true\n{table}"));
    let mut feed =
        shell.command(&["feed", "run", "timed.toml"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(feed.stderr.take().unwrap()).lines().map(Result::unwrap);
    let repaired = lines.into_iter().find(|line| line.contains("repaired"));
    feed.kill().unwrap();
    feed.wait().unwrap();
    assert!(repaired.is_some_and(|line| line.starts_with("3 repaired")));
    shell.write("never.toml", &format!("{settings}[reconcile]\nevery = 'often'\n{table}"));
    shell.run(&["feed", "check", "never.toml"]).fails(2, "reconcile.every is \"often\"", "feed check");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_stops_within_its_grace_while_its_store_is_away() {
    let database = MariaDbServer::start(&[]).unwrap();
    database.sql("test", "CREATE TABLE note (id INT PRIMARY KEY)").unwrap();
    let server = S3Server::start().unwrap();
    let proxy = TcpProxy::start(&server.endpoint(), 7).await.unwrap();
    let shell = Shell::empty();
    let settings = format!(
        "graph = '{}'\n[source]\nname = 'hr'\nurl = '{}'\n[stream]\nlinger_ms = 1\ngrace_ms = 300\n",
        server.url("feed"),
        database.url("test")
    );
    shell.write("feed.toml", &format!("{settings}[[table]]\nname = 'note'\nvertex = {{ label = 'Note' }}\n"));
    let mut command = shell.command(&["feed", "run", "feed.toml"]);
    command.envs(server.env_at(&proxy.endpoint())).env_remove("HOPLAKE_DISK_CACHE");
    let mut feed = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(feed.stderr.take().unwrap()).lines().map(Result::unwrap);
    block_in_place(|| assert!(lines.any(|line| line.starts_with("following from"))));
    proxy.set_faults([(TcpFault::Hang, 1.0)]);
    database.sql("test", "INSERT INTO note VALUES (1)").unwrap();
    let hangs = || proxy.counts().iter().any(|(fault, count)| *fault == TcpFault::Hang && *count > 0);
    while !hangs() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    block_in_place(|| {
        assert!(Command::new("kill").arg(feed.id().to_string()).status().unwrap().success());
        let said: Vec<_> = lines.collect();
        assert_eq!(feed.wait().unwrap().code(), Some(5), "{said:?}");
        assert!(
            said.iter().any(|it| it.contains("did not take the last commit within the 300 ms after the stop")),
            "{said:?}"
        );
    });
}
