//! Changes from files of all kinds, and the errors of invalid ones.

use std::{
    fs::File,
    io::Write,
    process::{Command, Stdio},
    sync::Arc,
};

use arrow_array::{ArrayRef, Date32Array, Int32Array, RecordBatch, StringArray};
use parquet::{
    data_type::{ByteArray, ByteArrayType, Int64Type, Int96, Int96Type},
    file::writer::SerializedFileWriter,
    schema::parser::parse_message_type,
};
use serde_json::{Value, json};

use crate::hoplake::Shell;

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

fn person(shell: &Shell, key: &str) -> Value {
    let run = shell.run(&["get", "graph", &format!("Person:{key}"), "--format", "json"]);
    if run.status == 3 { Value::Null } else { run.ok().json().remove(0) }
}

fn knows(shell: &Shell, key: &str) -> Vec<Value> {
    let start = format!("Person:{key}");
    let args = ["neighbors", "graph", &start, "--hop", "out:knows", "--select", "since", "--format", "json"];
    shell.run(&args).ok().json()
}

#[test]
fn lines_of_json_are_applied_as_one_batch() {
    let shell = Shell::with_graph();
    shell.write(
        "changes.jsonl",
        &lines(&[
            json!({"op": "upsert_vertex", "label": "Person", "key": 5, "properties": {"name": "Eve", "born": {"date": "2001-02-03"}}}),
            json!({"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {"age": 32}}),
            json!({"op": "upsert_vertex", "label": "Person", "key": 2, "replace": true, "properties": {"name": "Bert"}}),
            json!({"op": "upsert_edge", "label": "knows", "source": ["Person", 5], "target": ["Person", "1"], "properties": {"since": 2026}}),
            json!({"op": "delete_edge", "label": "knows", "source": ["Person", 1], "target": ["Person", 2]}),
            json!({"op": "delete_vertex", "label": "Person", "key": 4}),
        ]),
    );
    let dry = shell.run(&["apply", "graph", "changes.jsonl", "--dry-run", "--json"]).ok().json().remove(0);
    assert_eq!((&dry["version"], &dry["counts"]["vertices_added"]), (&json!(1), &json!(1)));
    assert_eq!(person(&shell, "5"), Value::Null);
    let args = ["apply", "graph", "changes.jsonl", "--message", "spring", "--source-position", "crm=17", "--json"];
    let applied = shell.run(&args).ok().json().remove(0);
    let counts = json!({
        "vertices_added": 1, "vertices_changed": 2, "vertices_removed": 1, "edges_written": 1, "pairs_removed": 3
    });
    assert_eq!((&applied["version"], &applied["operations"], &applied["counts"]), (&json!(2), &json!(6), &counts));
    // The object, the manifest and the hint; files cost nothing.
    let cost = &applied["cost"];
    assert_eq!((&cost["puts"], &cost["usd"]), (&json!(3), &json!(0.0)), "{cost}");
    let version = shell.path().join("graph/manifest/00000000000000000002.hlm");
    assert!(cost["put_bytes"].as_u64().unwrap() > 2 * version.metadata().unwrap().len(), "{cost}");
    assert!(cost["requests"].as_u64().unwrap() > 0 && cost["store_bytes"].as_u64().unwrap() > 0, "{cost}");
    let found = person(&shell, "5");
    assert_eq!((&found["name"], &found["born"]), (&json!("Eve"), &json!("2001-02-03")));
    let found = person(&shell, "1");
    assert_eq!((&found["name"], &found["age"]), (&json!("Ann"), &json!(32)));
    let found = person(&shell, "2");
    assert_eq!((&found["name"], &found["age"]), (&json!("Bert"), &Value::Null));
    assert_eq!(person(&shell, "4"), Value::Null);
    assert_eq!(knows(&shell, "5")[0]["since"], 2026);
    assert_eq!(knows(&shell, "1").len(), 1);
    // The version before is as it was.
    let args = ["get", "graph", "Person:4", "--version", "1", "--format", "json"];
    assert_eq!(shell.run(&args).ok().json()[0]["name"], "Dee, D.");
}

#[test]
fn rows_of_csv_and_parquet_are_changes() {
    let shell = Shell::with_graph();
    shell.write(
        "people.csv",
        "op,label,key,name,age,tags,joined:date\n\
         upsert_vertex,Person,1,,32,x;y,2026-03-01\n\
         ,Person,6,\"Fay, F.\",,,\n\
         delete_vertex,Person,3,,,,\n",
    );
    let edges = "label,source_label,source,target_label,target,since,edge_key\n\
                 knows,Person,2,Person,1,2011,since\n\
                 knows,Person,2,Person,1,2012,since\n";
    let zipped = File::create(shell.path().join("edges.csv.gz")).unwrap();
    let mut gzip = Command::new("gzip").stdin(Stdio::piped()).stdout(zipped).spawn().unwrap();
    gzip.stdin.take().unwrap().write_all(edges.as_bytes()).unwrap();
    assert!(gzip.wait().unwrap().success());
    let columns: [(&str, ArrayRef); 4] = [
        ("label", Arc::new(StringArray::from(vec!["Person", "Person"]))),
        ("key", Arc::new(Int32Array::from(vec![2, 7]))),
        ("name", Arc::new(StringArray::from(vec![None, Some("Gil")]))),
        ("joined", Arc::new(Date32Array::from(vec![Some(20_000), None]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(shell.path().join("more.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();

    let args = ["apply", "graph", "people.csv", "edges.csv.gz", "more.parquet", "--json"];
    let applied = shell.run(&args).ok().json().remove(0);
    assert_eq!((&applied["version"], &applied["operations"], &applied["commits"]), (&json!(2), &json!(7), &json!(1)));
    let ann = person(&shell, "1");
    let expected = json!(["Ann", 32, ["x", "y"], "2026-03-01"]);
    assert_eq!(json!([ann["name"], ann["age"], ann["tags"], ann["joined"]]), expected);
    assert_eq!(person(&shell, "6")["name"], "Fay, F.");
    assert_eq!((&person(&shell, "2")["name"], &person(&shell, "2")["joined"]), (&json!("Bob"), &json!("2024-10-04")));
    assert_eq!(person(&shell, "7")["name"], "Gil");
    assert_eq!(person(&shell, "3"), Value::Null);
    // Two edges between the same people, distinguished by their key.
    let since: Vec<_> = knows(&shell, "2").iter().map(|edge| edge["since"].clone()).collect();
    assert_eq!(since, [2011, 2012]);
}

#[test]
fn what_is_not_allowed_is_named_and_nothing_is_applied() {
    let shell = Shell::with_graph();
    shell.write("good.jsonl", &lines(&[json!({"op": "delete_vertex", "label": "Person", "key": 1})]));
    let edge = json!({"op": "upsert_edge", "label": "knows", "source": ["Person", 1], "target": ["Person", 99]});
    let cases = [
        (
            "bad.jsonl",
            format!("\n{edge}\n"),
            "bad.jsonl, line 2: upsert of edge Person:1 -knows-> Person:99",
            "--create",
        ),
        ("bad.jsonl", "{\"op\": \"upsert\"}".into(), "line 1: \"upsert\" is not an op", "--help"),
        ("bad.jsonl", "{\"op\": ".into(), "line 1: it is not valid JSON: it ends too early", "--help"),
        (
            "bad.jsonl",
            json!({"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {"age": "old"}}).to_string(),
            "line 1: the upsert_vertex of Person:1 is refused: property age of Person is int64, which \"old\" is not",
            "--help",
        ),
        (
            "bad.jsonl",
            json!({"op": "upsert_vertex", "label": "Person", "key": 1, "name": "Al"}).to_string(),
            "line 1: the upsert_vertex has \"name\", which means nothing",
            "--help",
        ),
        ("bad.csv", "op,label,key,age\n,Person,1,5\n,Person,2,old\n".into(), "bad.csv, line 3: ", "--help"),
        ("bad.csv", "op,label,key,age:colour\n".into(), "\"colour\" is not a type", "--help"),
        ("bad.csv", "name,age\n".into(), "bad.csv: is missing columns of a change file", "--help"),
        ("bad.csv", "label,key\nPerson,x\n".into(), "line 2: the upsert_vertex of Person has the key \"x\"", "--help"),
        ("bad.xml", "<a/>".into(), "bad.xml: has an unknown extension", "--help"),
    ];
    for (name, content, error, hint) in cases {
        shell.write(name, &content);
        // The good file alone would be applied.
        let good: &[&str] = if name == "bad.jsonl" { &[] } else { &["good.jsonl"] };
        shell.run(&[&["apply", "graph"], good, &[name]].concat()).fails(2, error, hint);
        assert_eq!(person(&shell, "1")["name"], "Ann");
    }
    shell.write("bad.jsonl", &edge.to_string());
    shell.run(&["apply", "graph", "bad.jsonl", "--create-missing"]).ok();
    assert_eq!(person(&shell, "99")["name"], Value::Null);
    assert_eq!(person(&shell, "99")["key"], 99);
    shell.run(&["apply", "nothing", "good.jsonl"]).fails(3, "there is no graph at", "hoplake load");
}

#[test]
fn a_base_that_is_old_conflicts_and_batches_are_versions() {
    let shell = Shell::with_graph();
    let update =
        |key: i64, age: i64| json!({"op": "upsert_vertex", "label": "Person", "key": key, "properties": {"age": age}});
    shell.write("one.jsonl", &update(1, 70).to_string());
    shell.write("two.jsonl", &update(2, 71).to_string());
    shell.run(&["apply", "graph", "one.jsonl", "--base", "1"]).ok();
    // Another vertex: no conflict.
    shell.run(&["apply", "graph", "two.jsonl", "--base", "1"]).ok();
    shell.run(&["apply", "graph", "one.jsonl", "--base", "1"]).fails(4, "Person:1 was changed", "--base");
    let many: Vec<_> = (10..15).map(|key| update(key, 1)).collect();
    shell.write("many.jsonl", &lines(&many));
    let args = ["apply", "graph", "many.jsonl", "--batch", "2", "--source-position", "crm=9", "--json"];
    let run = shell.run(&args).ok().json().remove(0);
    assert_eq!((&run["commits"], &run["version"], &run["operations"]), (&json!(3), &json!(6), &json!(5)));
    // Who goes on from a position must have all before it: the last version has it, and no other.
    let log = shell.run(&["log", "graph", "--json"]).ok().json();
    let positions: Vec<_> = log.iter().take(3).map(|version| version["source_positions"].clone()).collect();
    assert_eq!(positions, [json!({"crm": "9"}), json!({}), json!({})]);
    let mut half = lines(&many);
    half.push_str("nonsense");
    shell.write("half.jsonl", &half);
    let run = shell.run(&["apply", "graph", "half.jsonl", "--batch", "2"]);
    run.fails(2, "line 6: it is not a JSON object", "correct the file");
    assert!(run.err.contains("the first 4 changes are applied, up to version 8"), "{}", run.err);
    // What a later version is rejected for stands where it stands in the file.
    let edge = json!({"op": "upsert_edge", "label": "knows", "source": ["Person", 1], "target": ["Person", 99]});
    shell.write("late.jsonl", &lines(&[update(10, 2), update(11, 2), update(12, 2), edge]));
    let run = shell.run(&["apply", "graph", "late.jsonl", "--batch", "2"]);
    run.fails(2, "late.jsonl, line 4: upsert of edge Person:1 -knows-> Person:99", "--create-missing");
}

#[test]
fn a_count_of_edges_says_whether_it_is_exact() {
    let shell = Shell::with_graph();
    let edge = json!({"op": "upsert_edge", "label": "made", "source": ["Person", 1], "target": ["Person", 2]});
    shell.write("edge.jsonl", &edge.to_string());
    let made = || {
        let info = shell.run(&["info", "graph", "--json"]).ok().json().remove(0);
        let types = info["edge_types"].as_array().unwrap();
        let made = types.iter().find(|it| it["label"] == "made").unwrap();
        (made["count"].clone(), made["count_exact"].clone(), info["edges_exact"].clone())
    };
    shell.run(&["apply", "graph", "edge.jsonl"]).ok();
    assert_eq!(made(), (json!(1), json!(true), json!(true)));
    shell.run(&["apply", "graph", "edge.jsonl"]).ok();
    assert_eq!(made(), (json!(2), json!(false), json!(false)));
    let text = shell.run(&["info", "graph"]).ok().out;
    assert!(text.contains("≤ 2\n") || text.contains("≤ 2 "), "{text}");
    shell.run(&["compact", "graph", "--all"]).ok();
    assert_eq!(made(), (json!(1), json!(true), json!(true)));
}

#[test]
fn changes_take_so_much_memory() {
    let shell = Shell::with_graph();
    let person = |key: i64| json!({"op": "upsert_vertex", "label": "Person", "key": key, "properties": {"name": "x".repeat(40_000)}});
    shell.write("large.jsonl", &lines(&[person(10), person(11), person(12)]));
    let run = shell.run(&["apply", "graph", "large.jsonl", "--memory", "100KiB"]);
    run.fails(6, "large.jsonl, line 3: with it the changes of one version take more than 100.0 KiB", "--batch");
    assert!(run.err.contains("nothing is applied"), "{}", run.err);
    shell.run(&["apply", "graph", "large.jsonl", "--memory", "100KiB", "--batch", "2"]).ok();
    let run = shell.run(&["apply", "graph", "large.jsonl", "--memory", "30KiB", "--batch", "2"]);
    run.fails(6, "large.jsonl, line 1", "or more --memory");
    let run = shell.run(&["apply", "graph", "large.jsonl", "--memory", "50KiB", "--batch", "1"]).ok();
    assert!(run.out.starts_with("version 6"), "{}", run.out);
}

#[test]
fn a_batch_names_as_many_labels_as_a_graph_has() {
    let shell = Shell::with_graph();
    let vertex = |label: usize| json!({"op": "upsert_vertex", "label": format!("L{label}"), "key": 1});
    shell.write("labels.jsonl", &lines(&(0..70_000).map(vertex).collect::<Vec<_>>()));
    let run = shell.run(&["apply", "graph", "labels.jsonl", "--dry-run"]);
    run.fails(2, "labels.jsonl, line 65536: upsert of vertex L65535:1", "");
    assert!(run.err.contains("more labels than the 65535 that a graph can have"), "{}", run.err);
}

#[test]
fn lines_come_from_standard_input() {
    let shell = Shell::with_graph();
    let mut child =
        shell.command(&["apply", "graph", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let line = json!({"op": "upsert_vertex", "label": "Town", "key": 11, "properties": {"name": "Bonn"}});
    child.stdin.take().unwrap().write_all(line.to_string().as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let out = String::from_utf8(out.stdout).unwrap();
    assert!(
        out.starts_with("version 2: 1 vertex added; 1 operation in 1 commit: ") && out.contains(", 3 wrote "),
        "{out}"
    );
}

#[test]
fn csv_that_is_not_what_it_seems_changes_nothing() {
    let shell = Shell::with_graph();
    for (rows, expected) in [
        ("Person,1,\"Ann\nPerson,2,Bert\n", "changes.csv, line 2: a quote opens here and is not closed"),
        ("Person,1,Ann\nPerson,2,\"Bert\"x\n", "changes.csv, line 3: has text after the quote"),
        ("Person,1,Ann\rPerson,2,Bert\r", "changes.csv, line 2: has a carriage return within the line"),
    ] {
        shell.write("changes.csv", &format!("label,key,name\n{rows}"));
        let run = shell.run(&["apply", "graph", "changes.csv"]);
        assert!(run.status == 2 && run.err.contains(expected), "{}", run.err);
    }
    shell.write("changes.jsonl", &format!("{{\"op\": \"upsert_vertex\"{}\n", " ".repeat(17 << 20)));
    let run = shell.run(&["apply", "graph", "changes.jsonl"]);
    assert!(
        run.status == 2 && run.err.contains("changes.jsonl, line 1: it is longer than 16777216 bytes"),
        "{}",
        run.err
    );
    assert_eq!(shell.run(&["info", "graph", "--json"]).ok().json()[0]["version"], 1);
}

#[test]
fn a_feed_that_another_one_overtook_is_in_conflict() {
    let shell = Shell::with_graph();
    shell.write(
        "one.jsonl",
        &lines(&[json!({"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {"age": 40}})]),
    );
    let feed = |from: &str, to: &str| {
        let from = format!("crm={from}");
        let to = format!("crm={to}");
        shell.run(&["apply", "graph", "one.jsonl", "--if-position", &from, "--source-position", &to, "--json"])
    };
    assert_eq!(feed("", "17").ok().json()[0]["version"], 2);
    // The other feed comes with the same, and then with what is next.
    let run = feed("", "17");
    assert_eq!(run.status, 4, "{}", run.err);
    let said = "of source crm the graph has \"17\", and the batch goes on from nothing";
    assert!(run.err.contains(said), "{}", run.err);
    assert_eq!(feed("17", "18").ok().json()[0]["version"], 3);
}

#[test]
fn an_integer_that_a_float64_does_not_have_is_rejected() {
    let shell = Shell::empty();
    shell.write("v.csv", "~id,~label,weight:Double,weights:Double[]\n1,P,9007199254740992,1\n2,P,9007199254740994,2\n");
    shell.run(&["load", "graph", "--from", "v.csv"]).ok();
    let keys = |condition: &str| {
        shell.run(&["scan", "graph", "--label", "P", "--where", condition, "--format", "json"]).ok().json().len()
    };
    assert_eq!((keys("weight = 9007199254740992"), keys("weight > 9007199254740992")), (1, 1));
    // With a point, the nearest is meant.
    assert_eq!(keys("weight = 9007199254740993.0"), 1);
    for condition in [
        "weight = 9007199254740993",
        "weight > 9007199254740993",
        "weight in (1, 9007199254740993)",
        "weight between 1 and 9007199254740993",
        "weights contains 9007199254740993",
    ] {
        let run = shell.run(&["scan", "graph", "--label", "P", "--where", condition]);
        run.fails(2, "\"9007199254740993\" has no exact float64", "");
    }
    for (header, cell) in [
        ("weight", "9007199254740993"),
        ("weight:float", "9007199254740993"),
        ("weights", "1;9007199254740993"),
        ("weights", "\"[1, 9007199254740993]\""),
    ] {
        shell.write("c.csv", &format!("label,key,{header}\nP,1,{cell}\n"));
        shell.run(&["apply", "graph", "c.csv"]).fails(2, "has no exact float64", "");
    }
    shell.write("c.csv", "label,key,weight\nP,1,9007199254740994\nP,2,9007199254740993.0\n");
    shell.run(&["apply", "graph", "c.csv"]).ok();
}

#[test]
fn names_with_white_space_go_through_csv() {
    let shell = Shell::empty();
    shell.write("v.csv", "~id,~label\n1,P\n");
    shell.run(&["load", "graph", "--from", "v.csv"]).ok();
    let names = ["trail ", " lead", " ", "a:b ", "in ner", "trail"];
    let properties: serde_json::Map<_, _> = names.iter().map(|name| ((*name).to_owned(), json!(*name))).collect();
    let change = json!({"op": "upsert_vertex", "label": "P", "key": 1, "properties": properties});
    shell.write("c.jsonl", &format!("{change}\n"));
    shell.run(&["apply", "graph", "c.jsonl"]).ok();
    let printed = |graph: &str, format: &str| shell.run(&["get", graph, "P:1", "--format", format]).ok().out;
    shell.write("p.csv", &printed("graph", "csv"));
    shell.run(&["load", "again", "--from", "v.csv"]).ok();
    shell.run(&["apply", "again", "p.csv"]).ok();
    let sorted = |graph: &str| serde_json::from_str::<Value>(&printed(graph, "json")).unwrap();
    assert_eq!(sorted("graph"), sorted("again"));
    // Without quotes white space is for the eye.
    shell.write("p.csv", "label, key, trail \nP,1,by hand\n");
    shell.run(&["apply", "again", "p.csv"]).ok();
    assert_eq!(sorted("again")["trail"], json!("by hand"));
}

/// Vertices with a moment of days since the beginning of Julian days and nanoseconds, alone and in a list, as writers of Parquet had them
/// before it had a type for them.
fn int96_file(path: &std::path::Path, moments: &[(i32, u64)]) {
    let schema = "message schema {
        required binary label (STRING); required int64 key; optional int96 t;
        optional group ts (LIST) { repeated group list { optional int96 element; } }
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let present = vec![1; moments.len()];
    let value = |(day, nanos): &(i32, u64)| {
        let mut value = Int96::new();
        value.set_data(*nanos as u32, (nanos >> 32) as u32, *day as u32);
        value
    };
    let values: Vec<Int96> = moments.iter().map(value).collect();
    let labels: Vec<ByteArray> = moments.iter().map(|_| "P".into()).collect();
    let keys: Vec<i64> = (1..=moments.len() as i64).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&labels, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&keys, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int96Type>().write_batch(&values, Some(&present), None).unwrap();
    column.close().unwrap();
    let definitions = vec![3; moments.len()];
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int96Type>().write_batch(&values, Some(&definitions), Some(&vec![0; moments.len()])).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn moments_of_days_and_nanoseconds_are_exact_or_rejected() {
    const NANOS_PER_DAY: u64 = 86_400_000_000_000;
    let shell = Shell::with_graph();
    let moments = [
        (5_373_484, 0, "9999-12-31T00:00:00Z"),
        (1_721_426, 0, "0001-01-01T00:00:00Z"),
        (2_299_150, 0, "1582-10-04T00:00:00Z"),
        (2_440_587, NANOS_PER_DAY - 1_000, "1969-12-31T23:59:59.999999Z"),
    ];
    let path = shell.path().join("t.parquet");
    int96_file(&path, &moments.map(|(day, nanos, _)| (day, nanos)));
    shell.run(&["apply", "graph", "t.parquet"]).ok();
    let found = shell.run(&["get", "graph", "P:1", "P:2", "P:3", "P:4", "--format", "json"]).ok().json();
    for (row, (.., text)) in found.iter().zip(moments) {
        assert_eq!((&row["t"], &row["ts"]), (&json!(text), &json!([text])));
    }
    assert_eq!(found.len(), moments.len());
    // After the last moment that there is, and where 64 bits of microseconds begin again.
    for day in [5_373_485, 2_440_588 + 213_503_982, i32::MAX, i32::MIN] {
        int96_file(&path, &[(2_440_588, 0), (day, 0)]);
        let run = shell.run(&["apply", "graph", "t.parquet"]);
        assert!(run.status == 2 && run.err.contains("t.parquet, line 2, column t: "), "{day}: {}", run.err);
    }
}
