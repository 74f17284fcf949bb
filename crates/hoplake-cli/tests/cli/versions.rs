//! Past versions: the log, by time, and differences.

use std::time::Duration;

use serde_json::{Value, json};

use crate::hoplake::Shell;

/// A graph with three versions: loaded, changed, and with a vertex deleted.
fn changed() -> Shell {
    let shell = Shell::with_graph();
    let lines = [
        json!({"op": "upsert_vertex", "label": "Person", "key": 5, "properties": {"name": "Eve", "born": {"date": "2001-02-03"}}}),
        json!({"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {"age": 32}}),
        json!({"op": "upsert_edge", "label": "knows", "source": ["Person", 5], "target": ["Person", 1]}),
    ];
    shell.write("one.jsonl", &lines.map(|line| format!("{line}\n")).concat());
    shell.write("two.jsonl", &json!({"op": "delete_vertex", "label": "Person", "key": 4}).to_string());
    // Times are those of the clock, in milliseconds.
    std::thread::sleep(Duration::from_millis(5));
    shell.run(&["apply", "graph", "one.jsonl", "--message", "spring", "--source-position", "crm=17"]).ok();
    std::thread::sleep(Duration::from_millis(5));
    shell.run(&["apply", "graph", "two.jsonl"]).ok();
    shell
}

#[test]
fn the_log_tells_versions_from_the_newest_back() {
    let shell = changed();
    let log = shell.run(&["log", "graph", "--json"]).ok().json();
    let told: Vec<_> = log.iter().map(|entry| json!([entry["version"], entry["kind"], entry["message"]])).collect();
    assert_eq!(told, [json!([3, "commit", ""]), json!([2, "commit", "spring"]), json!([1, "load", ""])]);
    assert_eq!(log[1]["source_positions"], json!({"crm": "17"}));
    assert_eq!(log[0]["source_positions"], json!({}));
    assert_eq!((&log[0]["counts"]["vertices_removed"], &log[1]["counts"]["vertices_added"]), (&json!(1), &json!(1)));
    let times: Vec<&str> = log.iter().map(|entry| entry["time"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|newer, older| newer > older), "{times:?}");
    let run = shell.run(&["log", "graph", "--limit", "2"]).ok();
    assert_eq!(run.out.lines().count(), 2);
    assert!(run.out.contains("spring; crm=17") && run.err.contains("older versions"), "{} {}", run.out, run.err);
    shell.run(&["log", "nothing"]).fails(3, "no graph", "");
}

#[test]
fn a_version_is_found_by_time() {
    let shell = changed();
    let log = shell.run(&["log", "graph", "--json"]).ok().json();
    for entry in &log {
        let time = entry["time"].as_str().unwrap();
        let info = shell.run(&["info", "graph", "--as-of", time, "--json"]).ok().json().remove(0);
        assert_eq!(info["version"], entry["version"], "{time}");
    }
    let version =
        |time: &str| shell.run(&["info", "graph", "--as-of", time, "--json"]).ok().json().remove(0)["version"].clone();
    assert_eq!(version("2999-01-01"), 3);
    assert_eq!(version("2999-01-01T01:00:00+02:00"), 3);
    let run = shell.run(&["get", "graph", "Person:1", "--as-of", "2020-01-01"]);
    run.fails(3, "no version of that time", "hoplake log graph");
    assert_eq!(shell.run(&["get", "graph", "Person:1", "--as-of", "soon"]).status, 2);
    assert_eq!(shell.run(&["get", "graph", "Person:1", "--as-of", "2020-01-01", "--version", "1"]).status, 2);
}

#[test]
fn the_difference_names_what_was_added_removed_and_changed() {
    let shell = changed();
    let diff = |args: &[&str]| shell.run(&[&["diff", "graph"], args].concat()).ok();
    let run = diff(&["1", "2"]);
    let expected = "\
+ Person:5 born=2001-02-03 name=\"Eve\"
~ Person:1 age=31 → 32
+ Person:5 -knows-> Person:1
";
    assert_eq!(run.out, expected);
    assert!(run.err.starts_with("vertices: 1 added, 0 removed, 1 changed; edges: 1 added, 0 removed, 0 changed"));
    let back = diff(&["2", "1", "--json"]).json();
    let changes: Vec<_> = back.iter().map(|line| &line["change"]).collect();
    assert_eq!(changes, ["removed", "changed", "removed"]);
    assert_eq!(back[0]["before"], json!({"name": "Eve", "born": {"date": "2001-02-03"}}));
    let removed = diff(&["2", "--label", "knows", "--label", "livesIn", "--json"]).json();
    let ends: Vec<Value> = removed.iter().map(|line| json!([line["source"], line["target"]])).collect();
    assert_eq!(ends, [json!([["Person", 3], ["Person", 4]]), json!([["Person", 4], ["Town", 10]])]);
    assert_eq!(diff(&["3", "3"]).out, "");
    shell.run(&["diff", "graph", "1", "9"]).fails(3, "no version 9", "hoplake log graph");
    shell.run(&["diff", "graph", "1", "2", "--label", "Cat"]).fails(3, "\"Cat\"", "");
}
