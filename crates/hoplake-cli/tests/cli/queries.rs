//! Questions and the formats of their answers.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    process::Stdio,
};

use arrow_array::{Array, Int64Array, StringArray};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::hoplake::Shell;

const FRIENDS: [&str; 6] = ["traverse", "graph", "--start", "Person:1", "--hop", "out:knows"];

fn with<'a>(base: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [base, more].concat()
}

#[test]
fn rows_come_in_every_format() {
    let shell = Shell::with_graph();
    let run = shell.run(&with(&FRIENDS, &["--select", "name,age", "--format", "json"])).ok();
    let expected = [
        json!({"label": "Person", "key": 2, "name": "Bob", "age": 42}),
        json!({"label": "Person", "key": 3, "name": "Cid", "age": 53}),
    ];
    assert_eq!((run.json().as_slice(), run.err.as_str()), (&expected[..], ""));
    let csv = shell.run(&with(&FRIENDS, &["--hop", "out", "--select", "name,tags", "--format", "csv"])).ok();
    assert_eq!(csv.out, "label,key,name,tags\nPerson,3,Cid,\"[\"\"c\"\"]\"\nPerson,4,\"Dee, D.\",\n");
    let table = shell.run(&with(&FRIENDS, &["--select", "name"])).ok();
    let rows: Vec<Vec<_>> = table.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((&rows[0], &rows[3]), (&vec!["label", "key", "name"], &vec!["Person", "3", "Cid"]));
    shell.run(&with(&FRIENDS, &["--select", "name,tags", "--output", "found.parquet"])).ok();
    let file = File::open(shell.path().join("found.parquet")).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batch = batches.map(Result::unwrap).next().unwrap();
    assert_eq!(batch.column_by_name("key").unwrap().as_ref(), &Int64Array::from(vec![2, 3]) as &dyn Array);
    assert_eq!(batch.column_by_name("name").unwrap().as_ref(), &StringArray::from(vec!["Bob", "Cid"]) as &dyn Array);
}

#[test]
fn labels_that_differ_and_results_without_rows_have_one_header() {
    let shell = Shell::with_graph();
    let all =
        shell.run(&["traverse", "graph", "--start", "Person:1", "--hop", "out", "--select", "age", "--format", "csv"]);
    let mut lines: Vec<_> = all.out.lines().collect();
    lines[1..].sort_unstable();
    assert_eq!(lines, ["label,key,age", "Person,2,42", "Person,3,53", "Town,10,"]);
    let none = ["traverse", "graph", "--start", "Town:10", "--hop", "out", "--select", "age"];
    assert_eq!(shell.run(&with(&none, &["--format", "csv"])).ok().out, "label,key,age\n");
    assert_eq!(shell.run(&with(&none, &["--format", "json"])).ok().out, "");
}

#[test]
fn an_edge_has_one_id_from_either_end() {
    let shell = Shell::with_graph();
    let neighbors = |vertex: &str, hop: &str| {
        let args = ["neighbors", "graph", vertex, "--hop", hop, "--ids", "--format", "json"];
        shell.run(&args).ok().json()
    };
    let out = neighbors("Person:1", "out:knows");
    let to_two = out.iter().find(|edge| edge["key"] == json!(2)).unwrap();
    let id = to_two["edge_id"].as_str().unwrap();
    assert!(neighbors("Person:2", "in:knows").iter().any(|edge| edge["edge_id"] == json!(id)), "{id}");
    let found = shell.run(&["get", "graph", "--edge", id, "--format", "json"]).ok().json().remove(0);
    let expected = json!({
        "edge_id": id, "label": "knows", "source_label": "Person", "source": 1, "target_label": "Person",
        "target": 2, "id": 100, "since": 2001
    });
    assert_eq!(found, expected);
    // Changes are read from what is printed.
    for file in ["edge.json", "edge.csv", "edge.parquet"] {
        shell.run(&["get", "graph", "--edge", id, "--output", file]).ok();
        let applied = shell.run(&["apply", "graph", file, "--strict"]).ok();
        assert!(applied.out.contains("1 edge written"), "{file}: {}", applied.out);
    }
    assert_eq!(shell.run(&["get", "graph", "--edge", id, "--format", "json"]).ok().json(), [expected]);
    // A property of the target is not one of the edge, though another edge has one of that name.
    let made = json!({
        "op": "upsert_edge", "label": "made", "source": ["Person", 1], "target": ["Person", 2], "properties": {"name": "x"}
    });
    shell.write("made.jsonl", &made.to_string());
    shell.run(&["apply", "graph", "made.jsonl"]).ok();
    let made = neighbors("Person:1", "out:made")[0]["edge_id"].as_str().unwrap().to_owned();
    let both = shell.run(&["get", "graph", "--edge", id, "--edge", &made, "--format", "json"]).ok().json();
    assert_eq!((&both[0]["name"], &both[1]["name"]), (&Value::Null, &json!("x")));
    shell.run(&["get", "graph", "--edge", "0/0:0/0:0/7"]).fails(3, "there is no edge 0/0:0/0:0/7", "--ids");
    shell.run(&["get", "graph", "--edge", "9/0:0/0:99/0"]).fails(3, "there is no edge", "--ids");
    let wrong = shell.run(&["get", "graph", "--edge", "knows"]);
    assert_eq!((wrong.status, wrong.out.as_str()), (2, ""));
    assert!(wrong.err.contains("is not a valid id of an edge"), "{}", wrong.err);
    shell.run(&["get", "graph", "--edge", id, "--select", "size"]).fails(
        3,
        "no property \"size\"; they have id, since",
        "hoplake info",
    );
}

#[test]
fn conditions_counts_limits_and_strategies() {
    let shell = Shell::with_graph();
    let keys = |args: &[&str]| -> Vec<i64> {
        let run = shell.run(&with(args, &["--format", "json"])).ok();
        run.json().iter().map(|row| row["key"].as_i64().unwrap()).collect()
    };
    let hop = |hop: &'static str| ["traverse", "graph", "--start", "Person:1", "--hop", hop];
    assert_eq!(keys(&hop("out:knows[since>=2002]")), [3]);
    assert_eq!(keys(&hop("out:knows[name=Bob]")), [2]);
    let three = with(&FRIENDS, &["--hop", "both:knows", "--hop", "out:livesIn"]);
    for strategy in ["bfs", "bfs-pipelined", "dfs"] {
        assert_eq!(keys(&with(&three, &["--strategy", strategy])), [10]);
    }
    // Back to the start: once at each depth, or only at the first.
    let back = with(&FRIENDS, &["--hop", "in:knows"]);
    assert_eq!(keys(&back), [1, 2]);
    assert_eq!(keys(&with(&back, &["--visit", "global"])), [0i64; 0]);
    assert_eq!(shell.run(&with(&FRIENDS, &["--count"])).ok().out, "2\n");
    assert_eq!(shell.run(&with(&FRIENDS, &["--count", "--format", "json"])).ok().out, "{\"count\":2}\n");
    let run = shell.run(&with(&FRIENDS, &["--limit", "1", "--format", "json"])).ok();
    assert_eq!((run.out.lines().count(), run.err.contains("1 of 2 vertices")), (1, true));
}

#[test]
fn neighbors_within_a_limit_say_that_there_are_more() {
    let shell = Shell::with_graph();
    let edges = |limit: &[&str]| {
        let args = [&["neighbors", "graph", "Person:1", "--hop", "out:knows", "--format", "csv"], limit].concat();
        let run = shell.run(&args).ok();
        (run.out, run.err)
    };
    let (all, none) = edges(&[]);
    assert_eq!((all.lines().count(), none.as_str()), (3, ""));
    let (first, more) = edges(&["--limit", "1"]);
    assert!(all.starts_with(&first) && first.lines().count() == 2, "{first}");
    assert!(more.starts_with("there are more edges"), "{more}");
    assert_eq!(edges(&["--limit", "2"]), (all, String::new()), "two are all");
}

#[test]
fn walks_are_printed_one_a_line() {
    let shell = Shell::with_graph();
    let walks = with(&FRIENDS, &["--hop", "out:knows", "--paths"]);
    let lines = ["Person:1 -> Person:2 -> Person:3", "Person:1 -> Person:3 -> Person:4"];
    let run = shell.run(&walks).ok();
    assert_eq!((run.out.lines().collect::<Vec<_>>().as_slice(), run.err.as_str()), (&lines[..], ""));
    let json = shell.run(&with(&walks, &["--format", "json"])).ok().json();
    assert_eq!(
        json[1],
        json!([{"label": "Person", "key": 1}, {"label": "Person", "key": 3}, {"label": "Person", "key": 4}])
    );
    let cut = shell.run(&with(&walks, &["--limit", "1", "--format", "csv"])).ok();
    assert_eq!(
        (cut.out.as_str(), cut.err.as_str()),
        ("path\n\"Person:1 -> Person:2 -> Person:3\"\n", "the first 1 walk\n")
    );
}

#[test]
fn walks_have_edges_and_properties() {
    let shell = Shell::with_graph();
    let walks = with(&FRIENDS, &["--hop", "both", "--paths"]);
    let run = shell.run(&with(&walks, &["--select", "name,since", "--limit", "2"])).ok();
    let lines: Vec<_> = run.out.lines().collect();
    assert_eq!(
        lines,
        [
            "Person:1 (name=Ann) -knows (since=2001)-> Person:2 (name=Bob) -knows (since=2002)-> Person:3 (name=Cid)",
            "Person:1 (name=Ann) -knows (since=2001)-> Person:2 (name=Bob) <-knows (since=2001)- Person:1 (name=Ann)",
        ]
    );
    let edges = shell.run(&with(&walks, &["--edges", "--format", "csv", "--limit", "1"])).ok();
    assert_eq!(edges.out, "path\n\"Person:1 -knows-> Person:2 -knows-> Person:3\"\n");
    // A property that a type does not have is left out, and one without a value is null.
    let lives = ["traverse", "graph", "--start", "Person:4", "--hop", "out:livesIn", "--paths", "--format", "json"];
    let json = shell.run(&with(&lives, &["--select", "tags,name,since"])).ok().json();
    let expected = json!([
        {"label": "Person", "key": 4, "tags": null, "name": "Dee, D."},
        {"edge": "livesIn", "direction": "out"},
        {"label": "Town", "key": 10, "name": "Ulm"},
    ]);
    assert_eq!(json, [expected]);
    let path = ["path", "graph", "--from", "Person[name = Ann]", "--to", "Person:4"];
    let run = shell.run(&with(&path, &["--hop", "out:knows", "--select", "since"])).ok();
    assert_eq!(run.out, "Person:1 -knows (since=2003)-> Person:3 -knows (since=2004)-> Person:4\n");
    assert_eq!(shell.run(&with(&path, &["--hop", "out:knows", "--count"])).ok().out, "2\n");
    let weighted = with(&path, &["--hop", "out:knows", "--weight", "since"]);
    let run = shell.run(&weighted).ok();
    assert_eq!(run.out, "Person:1 -> Person:3 -> Person:4\n");
    assert!(run.err.contains("total since: 4007"), "{}", run.err);
    shell.run(&with(&path, &["--hop", "in:knows", "--weight", "since"])).fails(3, "there is no path", "--hop");
    shell.run(&with(&path, &["--weight", "since"])).fails(3, "edge type livesIn has no property \"since\"", "");
    let depth = shell.run(&with(&path, &["--weight", "since", "--max-depth", "3"]));
    assert!(depth.status == 2 && depth.err.contains("--max-depth"), "{}", depth.err);
    shell.run(&with(&walks, &["--select", "size"])).fails(3, "has a property \"size\"", "hoplake info");
    shell.run(&with(&path, &["--select", "size"])).fails(3, "has a property \"size\"", "hoplake info");
    shell.run(&with(&FRIENDS, &["--edges"])).fails(2, "--edges has no effect without --paths", "--paths");
}

#[test]
fn starts_are_found_by_a_condition() {
    let shell = Shell::with_graph();
    let csv = |args: &[&str]| shell.run(&with(args, &["--format", "csv"])).ok().out;
    let old = "Person[age > 50]";
    assert_eq!(csv(&["traverse", "graph", "--start", old, "--hop", "out:livesIn"]), "label,key\nTown,10\n");
    assert_eq!(csv(&["get", "graph", old, "--select", "name"]), "label,key,name\nPerson,3,Cid\nPerson,4,\"Dee, D.\"\n");
    let ann = "Person[name = Ann]";
    assert_eq!(shell.run(&["neighbors", "graph", ann, "--count"]).ok().out, "3\n");
    assert_eq!(shell.run(&["khop", "graph", ann, "--hop", "out:knows", "--count"]).ok().out, "3\n");
    let levels = ["run", "graph", "levels", "--from", ann, "--edges", "out:knows", "--all", "--format", "csv"];
    assert!(shell.run(&levels).ok().out.contains("Person,4,2"), "two hops from Ann");
    let ranks = ["run", "graph", "pagerank", "--from", old, "--edges", "out:knows", "--all", "--format", "csv"];
    shell.run(&ranks).ok();
    for verb in
        [&["neighbors", "graph", old][..], &["khop", "graph", old], &["path", "graph", "--from", old, "--to", ann]]
    {
        shell.run(verb).fails(2, "Person[age > 50] finds 2 vertices where one is needed", "--help");
    }
    shell.run(&["get", "graph", "Person[name = Zoe]"]).fails(
        3,
        "there is no vertex Person[name = Zoe]",
        "hoplake info",
    );
    shell.run(&["get", "graph", "Person[size = 1]"]).fails(3, "size", "hoplake info");
}

#[test]
fn a_profile_counts_waves_on_standard_error() {
    let shell = Shell::with_graph();
    let run = shell
        .run(&with(&FRIENDS, &["--hop", "out:knows", "--select", "name", "--format", "json", "--profile", "json"]));
    assert_eq!(run.json().len(), 2);
    let profile: Value = serde_json::from_str(&run.err).unwrap();
    let waves = |step: &Value| step["waves"].as_u64().unwrap();
    assert_eq!([&profile["open"], &profile["look_up"], &profile["properties"]].map(waves), [2, 1, 1]);
    assert_eq!((waves(&profile["total"]), &profile["hops"][0]["edges"]), (6 - 1, &json!(2)), "{profile}");
    assert_eq!((&profile["hops"][1]["depth"], &profile["hops"][1]["vertices"]), (&json!(2), &json!(2)));
    let text = shell.run(&with(&FRIENDS, &["--count", "--profile"])).ok();
    assert_eq!(text.out, "2\n");
    assert!(text.err.contains("1 out:knows") && text.err.contains("total"), "{}", text.err);
}

#[test]
fn vertices_neighbours_paths_and_distances() {
    let shell = Shell::with_graph();
    let got = shell.run(&["get", "graph", "Person:4", "Town:10", "--format", "json"]).ok().json();
    let expected = json!({"label": "Person", "key": 4, "name": "Dee, D.", "age": 64, "tags": null});
    assert_eq!(got.iter().find(|row| row["label"] == "Person"), Some(&expected));
    let args = ["neighbors", "graph", "Person:3", "--hop", "both:knows", "--select", "since,name", "--format", "json"];
    let mut edges = shell.run(&args).ok().json();
    edges.sort_by_key(|edge| edge["since"].as_i64());
    let first = json!({"edge": "knows", "direction": "in", "label": "Person", "key": 2, "since": 2002, "name": "Bob"});
    assert_eq!((edges.len(), &edges[0], &edges[2]["direction"]), (3, &first, &json!("out")));
    assert_eq!(shell.run(&["neighbors", "graph", "Person:3", "--hop", "both", "--count"]).ok().out, "3\n");
    let path = ["path", "graph", "--from", "Person:2", "--to", "Person:4"];
    assert_eq!(shell.run(&with(&path, &["--hop", "out:knows"])).ok().out, "Person:2 -> Person:3 -> Person:4\n");
    let none = shell.run(&with(&path, &["--hop", "in:knows"]));
    none.fails(3, "no path from Person:2 to Person:4", "--hop");
    let khop = ["khop", "graph", "Person:1", "--depth", "2", "--hop", "out:knows"];
    let count = shell.run(&with(&khop, &["--count", "--format", "json"])).ok();
    assert_eq!(count.json()[0], json!({"count": 3, "by_depth": [2, 1]}));
    let rows = shell.run(&with(&khop, &["--format", "csv"])).ok();
    assert_eq!(rows.out, "distance,label,key\n1,Person,2\n1,Person,3\n2,Person,4\n");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let shell = Shell::empty();
    let edges: String = (0..40_000).map(|vertex| format!("1 {}\n", vertex + 2)).collect();
    shell.write("star.txt", &edges);
    shell.run(&["load", "star", "--from", "star.txt"]).ok();
    let mut command = shell.command(&["traverse", "star", "--start", "vertex:1", "--hop", "out", "--format", "csv"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((line.as_str(), output.status.code(), output.stderr.as_slice()), ("label,key\n", Some(0), &b""[..]));
}

#[test]
fn a_second_run_finds_its_blocks_on_the_disk_and_a_trace_says_so() {
    let shell = Shell::with_graph();
    let reading = ["--disk-cache", "blocks", "--trace", "trace.csv", "--select", "name", "--profile=json"];
    let profile = |run: &crate::hoplake::Run| -> Value { serde_json::from_str(&run.err).unwrap() };
    let first = shell.run(&with(&FRIENDS, &reading)).ok();
    assert_eq!(profile(&first)["total"]["disk"]["blocks"], 0);
    let second = shell.run(&with(&FRIENDS, &reading)).ok();
    assert_eq!(first.out, second.out);
    let steps = profile(&second);
    assert_eq!((&steps["hops"][0]["requests"], &steps["look_up"]["requests"]), (&json!(0), &json!(0)));
    assert!(steps["total"]["disk"]["blocks"].as_u64().unwrap() >= 3);
    let trace = shell.read("trace.csv");
    assert!(trace.lines().skip(1).all(|line| line.ends_with(",disk")), "{trace}");
    let wrong = shell.run(&with(&FRIENDS, &["--disk-cache", "graph/hint/x"]));
    wrong.fails(2, "the disk cache cannot use the folder graph/hint/x", "");
}

#[test]
fn a_file_whose_name_implies_no_format_is_rejected_and_a_table_in_a_file_is_whole() {
    let shell = Shell::empty();
    let rows: String = (0..1_500).map(|key| format!("{key},P,n{key}\n")).collect();
    shell.write("data/people.csv", &format!("~id,~label,name:String\n{rows}"));
    shell.run(&["load", "graph", "--from", "data"]).ok();
    let scan = |file: &str| shell.run(&["scan", "graph", "--select", "name", "--output", file]);
    scan("found.xlsx").fails(2, "the name of found.xlsx implies no format", "choose a --format");
    assert!(!shell.path().join("found.xlsx").exists());
    scan("found.txt").ok();
    assert_eq!(shell.read("found.txt").lines().filter(|line| line.starts_with(" P ")).count(), 1_500);
    assert!(shell.run(&["scan", "graph", "--select", "name"]).ok().out.lines().count() < 1_100);
}
