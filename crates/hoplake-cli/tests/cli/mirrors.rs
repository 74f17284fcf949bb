//! A mirror that changes cannot be updated any more: every verb that changes one warns of it, and no other does.
//!
//! The verbs are those that `--help` lists, and whether one has changed the mirror is what its manifests say. So a new verb that writes is
//! not forgotten.

use std::{collections::BTreeSet, fs, process::Command};

use hoplake_testkit::MariaDbServer;

use crate::hoplake::{EDGES, PEOPLE, Shell, listed, measured};

/// Lines of words on `mirror`, with all that a verb may do, and whether each is to warn.
const LINES: [(&str, bool); 38] = [
    ("quickstart", false),
    ("load|mirror|--from|data|--replace", true),
    ("apply|mirror|changes.jsonl", true),
    ("info|mirror", false),
    ("log|mirror", false),
    ("diff|mirror|4", false),
    ("traverse|mirror|--start|Person:1|--hop|out", false),
    ("neighbors|mirror|Person:1", false),
    ("path|mirror|--from|Person:1|--to|Person:2", false),
    ("khop|mirror|Person:1", false),
    ("get|mirror|Person:1", false),
    ("scan|mirror", false),
    ("query|mirror|g.V().count()", false),
    ("query|mirror|--commit|g.addV('Person').property(T.id, 9)", true),
    ("queries|save|mirror|more|g.V()", true),
    ("queries|list|mirror", false),
    ("queries|show|mirror|all", false),
    ("queries|delete|mirror|all", true),
    ("queries|call|mirror|all", false),
    ("queries|call|mirror|add|--commit", true),
    ("console|mirror", false),
    ("console|mirror|--commit", true),
    ("export|mirror|--to|other|--format|csv", false),
    ("index|create|mirror|Person.age", true),
    ("index|list|mirror", false),
    ("index|drop|mirror|Person.name", true),
    ("run|mirror|degrees", false),
    ("run|mirror|degrees|--write|degree", true),
    ("tag|mirror|now", true),
    ("restore|mirror|--version|4", true),
    // A tag protects the objects that the clone reads.
    ("clone|mirror|other", true),
    ("mirror|mirror|other", false),
    ("mirror|graph|mirror", false),
    ("compact|mirror", true),
    ("verify|mirror", false),
    ("vacuum|mirror", true),
    ("cost|--size|1TB|--accesses-per-second|10", false),
    ("cache-sim|trace.csv", false),
];

/// Those of a feed whose graph is the mirror. A mirror has not what a feed keeps beside its graph, so most of them fail, and one that reads
/// all rows again goes on.
const FEED_LINES: [(&str, bool); 10] = [
    ("feed|infer|URL|--graph|mirror", false),
    ("feed|catalog|URL", false),
    ("feed|check|feed.toml", false),
    ("feed|status|mirror", false),
    ("feed|dead-letters|list|feed.toml", false),
    ("feed|dead-letters|show|feed.toml|Note:2", false),
    ("feed|dead-letters|retry|feed.toml|Note:2", true),
    ("feed|dead-letters|discard|feed.toml|Note:2", true),
    ("feed|reconcile|feed.toml|--repair", true),
    ("feed|run|feed.toml|--once|--resnapshot", true),
];

/// Those that find nothing to do, or fail: they warn all the same.
const IDLE: [&str; 4] = ["compact|", "vacuum|", "feed|dead-letters|", "feed|reconcile|"];

/// Options with which a verb writes that reads otherwise.
const WRITING: [&str; 4] = ["--commit", "--write", "--repair", "--resnapshot"];

/// A server runs until it is stopped, and changes what it is asked to change.
const NOT_RUN: [&str; 1] = ["serve"];

/// All verbs, as in `dead-letters|list`, with their helps.
fn verbs(shell: &Shell, above: &[&str]) -> Vec<(String, String)> {
    let help = shell.run(&[above, &["--help"]].concat()).ok().out;
    let below = listed(&help);
    if below.is_empty() {
        return vec![(above.join("|"), help)];
    }
    below.iter().flat_map(|name| verbs(shell, &[above, &[name]].concat())).collect()
}

fn words(line: &str) -> Vec<&str> {
    line.split('|').collect()
}

#[test]
fn every_verb_is_tried_on_a_mirror() {
    let shell = Shell::empty();
    let lines: Vec<_> = LINES.iter().chain(&FEED_LINES).map(|(line, _)| *line).collect();
    let is_of = |line: &str, verb: &str| line == verb || line.starts_with(&format!("{verb}|"));
    let mut untried = BTreeSet::new();
    for (verb, help) in verbs(&shell, &[]) {
        let tried: Vec<_> = lines.iter().filter(|line| is_of(line, &verb)).collect();
        if tried.is_empty() {
            untried.insert(verb.clone());
        }
        let has = |line: &str, option: &str| words(line).contains(&option);
        for option in WRITING.iter().filter(|option| help.contains(&format!("      {option}"))) {
            let is_tried = tried.iter().any(|line| has(line, option));
            assert!(is_tried, "{verb} {option} is tried on a mirror");
        }
    }
    assert_eq!(untried, BTreeSet::from(NOT_RUN.map(str::to_owned)), "every other verb is tried on a mirror");
}

/// Runs lines, each on a new copy of the mirror.
fn check(shell: &Shell, lines: &[(&str, bool)]) {
    let manifests = || fs::read_dir(shell.path().join("mirror/manifest")).unwrap().count();
    fs::rename(shell.path().join("mirror"), shell.path().join("copied")).unwrap();
    for (line, warns) in lines {
        for folder in ["mirror", "other"] {
            let _ = fs::remove_dir_all(shell.path().join(folder));
        }
        let copy = Command::new("cp").args(["-r", "copied", "mirror"]).current_dir(shell.path()).status().unwrap();
        assert!(copy.success());
        let before = manifests();
        // For the console: others do not read it.
        let input = match line.contains("--commit") {
            true => "g.addV('Person').property(T.id, 9)\n:commit\n",
            false => "g.V().count()\n",
        };
        let run = measured(shell.command(&words(line)), input).0;
        assert!(run.status == 0 || line.starts_with("feed|"), "{line}: {}", run.err);
        let has_changed = manifests() != before;
        let warning = run.err.lines().find(|line| line.starts_with("warning: mirror is a mirror of "));
        assert!(warning.is_none_or(|line| line.contains("graph, which cannot be")), "{line}: {warning:?}");
        assert_eq!(warning.is_some(), *warns, "{line}: {}{}", run.out, run.err);
        assert!(*warns || !has_changed, "{line} changes the mirror, and should warn");
        let is_idle = IDLE.iter().any(|begin| line.starts_with(begin));
        assert_eq!(has_changed, *warns && !is_idle, "{line}: {}{}", run.out, run.err);
    }
}

#[test]
fn a_mirror_that_is_about_to_change_is_warned_of() {
    let shell = Shell::empty();
    shell.write("data/people.csv", PEOPLE);
    shell.write("data/edges.csv", EDGES);
    shell.write("changes.jsonl", r#"{"op": "delete_vertex", "label": "Person", "key": 4}"#);
    shell.run(&["load", "graph", "--from", "data", "--index", "Person.name"]).ok();
    shell.run(&["queries", "save", "graph", "all", "g.V().count()"]).ok();
    shell.run(&["queries", "save", "graph", "add", "g.addV('Person').property(T.id, 20)"]).ok();
    shell.run(&["tag", "graph", "old", "--version", "2"]).ok();
    shell.run(&["get", "graph", "Person:1", "--trace", "trace.csv"]).ok();
    shell.run(&["mirror", "graph", "mirror"]).ok();
    check(&shell, &LINES);
    // No other graph is warned of, and a mirror is none without its mark.
    assert_eq!(shell.run(&["apply", "graph", "changes.jsonl"]).ok().err, "");
    fs::remove_file(shell.path().join("mirror/mirror")).unwrap();
    assert_eq!(shell.run(&["tag", "mirror", "later"]).ok().err, "");
}

#[test]
fn a_mirror_that_a_feed_is_about_to_change_is_warned_of() {
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", "CREATE TABLE note (id INT PRIMARY KEY, body TEXT); INSERT INTO note VALUES (1, '5')").unwrap();
    let shell = Shell::empty();
    let table =
        "[[table]]\nname = 'note'\non_error = 'dead-letter'\ntypes = { body = 'int64' }\nvertex = { label = 'Note' }\n";
    for graph in ["graph", "mirror"] {
        let settings = format!("graph = '{graph}'\n[source]\nname = 'hr'\nurl = '{}'\n{table}", server.url("test"));
        shell.write(if graph == "graph" { "source.toml" } else { "feed.toml" }, &settings);
    }
    shell.run(&["feed", "run", "source.toml", "--once"]).ok();
    shell.run(&["mirror", "graph", "mirror"]).ok();
    shell.run(&["clone", "graph", "clone"]).ok();
    let status = shell.run(&["feed", "status", "graph"]).ok().out;
    for graph in ["mirror", "clone"] {
        shell.run(&["verify", graph]).ok();
        assert!(shell.run(&["feed", "status", graph]).ok().out.starts_with(&status[..10]), "{status}");
    }
    server.sql("test", "INSERT INTO note VALUES (3, '7')").unwrap();
    let url = server.url("test");
    let lines: Vec<_> = FEED_LINES.iter().map(|(line, warns)| (line.replace("URL", &url), *warns)).collect();
    let lines: Vec<_> = lines.iter().map(|(line, warns)| (line.as_str(), *warns)).collect();
    check(&shell, &lines);
}
