//! Compaction, vacuum, tags, restored versions and clones.

use serde_json::{Value, json};

use crate::hoplake::Shell;

/// A graph of five versions: in each after the first, one more person whom Ann knows.
fn grown() -> Shell {
    let shell = Shell::with_graph();
    for key in 5..9 {
        let lines = [
            json!({"op": "upsert_vertex", "label": "Person", "key": key, "properties": {"name": format!("P{key}")}}),
            json!({"op": "upsert_edge", "label": "knows", "source": ["Person", 1], "target": ["Person", key]}),
        ];
        shell.write("more.jsonl", &lines.map(|line| format!("{line}\n")).concat());
        shell.run(&["apply", "graph", "more.jsonl"]).ok();
    }
    shell
}

fn known(shell: &Shell, graph: &str, version: &[&str]) -> Vec<Value> {
    let args = [&["neighbors", graph, "Person:1", "--hop", "out:knows", "--format", "json"], version];
    let mut keys: Vec<_> = shell.run(&args.concat()).ok().json().iter().map(|row| row["key"].clone()).collect();
    keys.sort_by_key(|key| key.as_i64());
    keys
}

fn objects(shell: &Shell, graph: &str) -> usize {
    std::fs::read_dir(shell.path().join(graph).join("data")).unwrap().count()
}

#[test]
fn a_compaction_changes_no_answer_and_a_vacuum_removes_what_it_replaced() {
    let shell = grown();
    let before = known(&shell, "graph", &[]);
    assert_eq!(before.len(), 2 + 4);
    let done = shell.run(&["compact", "graph", "--all", "--json"]).ok().json().remove(0);
    // People and whom they know; of towns there is one run.
    assert_eq!((done["merges"].clone(), done["sorted_runs"].clone()), (json!(2), json!(10)), "{done}");
    // Two versions with their hints, and an object for all merges.
    assert_eq!(done["cost"]["puts"], json!(2 * 2 + 1), "{done}");
    assert_eq!(known(&shell, "graph", &[]), before);
    assert_eq!(shell.run(&["compact", "graph", "--all"]).ok().out, "nothing is due\n");
    shell.run(&["compact", "graph", "--memory", "1MiB"]).fails(2, "at least 67108864 bytes", "");
    let all = objects(&shell, "graph");
    shell.run(&["vacuum", "graph"]).ok();
    assert_eq!(objects(&shell, "graph"), all, "all versions stay");
    let vacuumed = shell.run(&["vacuum", "graph", "--keep-versions", "1", "--json"]).ok().json().remove(0);
    assert!(vacuumed["versions"].as_u64().unwrap() >= 6 && vacuumed["objects"].as_u64().unwrap() >= 4, "{vacuumed}");
    assert_eq!(known(&shell, "graph", &[]), before);
    let gone = shell.run(&["get", "graph", "Person:1", "--version", "2"]);
    gone.fails(3, "version 2 of", "lists the versions there are");
    shell.run(&["verify", "graph"]).ok();
}

#[test]
fn a_wrong_address_is_told_with_what_to_do() {
    let shell = Shell::empty();
    for args in [&["vacuum", "nothing"][..], &["compact", "nothing"], &["clone", "nothing", "other"]] {
        shell.run(args).fails(3, "there is no graph at", "hoplake load nothing --from PATH");
    }
}

#[test]
fn a_tag_keeps_a_version_that_can_be_restored() {
    let shell = grown();
    shell.run(&["tag", "graph", "small", "--version", "2"]).ok();
    assert_eq!(shell.run(&["tag", "graph"]).ok().out, "small  2\n");
    shell.run(&["vacuum", "graph", "--keep-versions", "1"]).ok();
    assert_eq!(known(&shell, "graph", &["--version", "small"]).len(), 3);
    shell.run(&["get", "graph", "Person:1", "--version", "smal"]).fails(3, "has no tag smal", "hoplake tag");
    shell.run(&["tag", "graph", "other", "--version", "3"]).fails(3, "no version 3", "hoplake log graph");
    let restored = shell.run(&["restore", "graph", "--version", "small", "--message", "too many"]).ok();
    assert!(restored.out.ends_with("has the content of version 2\n"), "{}", restored.out);
    assert_eq!(known(&shell, "graph", &[]).len(), 3);
    let log = shell.run(&["log", "graph", "--json", "--limit", "1"]).ok().json().remove(0);
    assert_eq!((&log["kind"], &log["message"]), (&json!("restore"), &json!("version 2: too many")));
    shell.run(&["restore", "graph", "--version", "3"]).fails(3, "version 3", "hoplake log graph");
    shell.run(&["tag", "graph", "small", "--delete"]).ok();
    shell.run(&["tag", "graph", "small", "--delete"]).fails(3, "no tag small", "hoplake tag graph");
}

#[test]
fn a_clone_and_its_origin_go_ways_of_their_own() {
    let shell = grown();
    let clone = shell.run(&["clone", "graph", "what-if", "--version", "3", "--json"]).ok().json().remove(0);
    assert!(!shell.path().join("what-if/data").exists(), "nothing is copied");
    assert_eq!(known(&shell, "what-if", &[]).len(), 4);
    shell.write("less.jsonl", &json!({"op": "delete_vertex", "label": "Person", "key": 2}).to_string());
    shell.run(&["apply", "what-if", "less.jsonl"]).ok();
    shell.run(&["compact", "graph", "--all"]).ok();
    shell.run(&["vacuum", "graph", "--keep-versions", "1", "--min-age", "0s"]).ok();
    assert_eq!((known(&shell, "what-if", &[]).len(), known(&shell, "graph", &[]).len()), (3, 6));
    shell.run(&["compact", "what-if", "--all"]).ok();
    shell.run(&["vacuum", "what-if", "--keep-versions", "1", "--min-age", "0s"]).ok();
    shell.run(&["verify", "what-if"]).ok();
    assert_eq!((known(&shell, "what-if", &[]).len(), known(&shell, "graph", &[]).len()), (3, 6));
    // All that it read of its origin it has written anew but what never changed: the towns.
    shell.run(&["clone", "graph", "what-if"]).fails(4, "there is something at", "choose a target");
    shell.run(&["clone", "graph", "s3://elsewhere/graph"]).fails(2, "shares its objects", "copy the objects");
    let tags = shell.run(&["tag", "graph"]).ok().out;
    assert!(tags.contains(clone["tag"].as_str().unwrap()), "{tags}");
}

#[test]
fn info_sums_up_what_commits_left_and_says_when_compaction_is_due() {
    let shell = Shell::with_graph();
    let info = || shell.run(&["info", "graph"]).ok().out;
    assert!(info().ends_with("\n1 version retained; no compaction is due\n"), "{}", info());
    let commit = |age: u32| {
        let change =
            format!(r#"{{"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {{"age": {age}}}}}"#);
        shell.write("change.jsonl", &change);
        shell.run(&["apply", "graph", "change.jsonl"]).ok();
    };
    (0..2).for_each(commit);
    let text = info();
    let line = text.lines().find(|line| line.starts_with(" label Person") || line.starts_with("label Person"));
    let words: Vec<_> = line.unwrap_or_else(|| panic!("{text}")).split_whitespace().collect();
    assert_eq!((words[2], words.last()), ("3", Some(&"%")), "{text}");
    assert!(text.contains("3 versions retained; no compaction is due"), "{text}");
    // Four runs of one tier.
    commit(2);
    assert!(info().contains("4 versions retained; compaction is due: hoplake compact graph"), "{}", info());
    let json = shell.run(&["info", "graph", "--json"]).ok().json().remove(0);
    assert_eq!(json["compaction_due"], true);
    let runs = json["runs"].as_array().unwrap().clone();
    let people = runs.iter().find(|runs| runs["label"] == "Person").unwrap();
    assert_eq!(
        (&people["runs"], &people["extra_requests"], &people["compaction_due"]),
        (&4.into(), &0.75.into(), &true.into())
    );
    let [delta, all] = ["delta_bytes", "bytes"].map(|name| people[name].as_u64().unwrap());
    assert!(0 < delta && delta < all, "{people}");
    let knows = runs.iter().find(|runs| runs["kind"] == "edge_type" && runs["label"] == "knows").unwrap();
    assert_eq!(
        (&knows["runs"], &knows["delta_bytes"], &knows["compaction_due"]),
        (&1.into(), &0.into(), &false.into())
    );
    shell.run(&["compact", "graph"]).ok();
    assert!(info().contains("no compaction is due"), "{}", info());
}

#[test]
fn verbs_that_read_a_graph_have_a_profile() {
    let shell = Shell::with_graph();
    shell.write("change.jsonl", r#"{"op": "upsert_vertex", "label": "Person", "key": 9}"#);
    shell.run(&["apply", "graph", "change.jsonl"]).ok();
    for (args, step) in [
        (&["info", "graph"][..], "list"),
        (&["diff", "graph", "1", "2", "--json"], "compare"),
        (&["scan", "graph"], "scan"),
        (&["run", "graph", "degrees"], "computation"),
        (&["get", "graph", "Person:1"], "look_up"),
        (&["khop", "graph", "Person:1"], "look_up"),
        (&["neighbors", "graph", "Person:1"], "look_up"),
        (&["path", "graph", "--from", "Person:1", "--to", "Person:4"], "search"),
    ] {
        let run = shell.run(&[args, &["--profile", "json"]].concat()).ok();
        let profile: serde_json::Value = serde_json::from_str(run.err.lines().last().unwrap()).unwrap();
        assert!(profile[step]["requests"].as_u64().is_some_and(|requests| requests > 0), "{args:?}: {profile}");
        assert!(profile["total"]["requests"].as_u64() >= profile[step]["requests"].as_u64(), "{args:?}: {profile}");
    }
}
