//! What `get` prints, `apply` reads back, value for value, in every form that a program may read.

use hoplake::{Value, changes::value_to_json};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Map, Value as Json, json};

use crate::hoplake::Shell;

const ROWS: usize = 60;

/// Microseconds of moments from the year 1 to the end of 9999, but for its last day.
const MOMENTS: std::ops::Range<i64> = -62_135_596_800_000_000..253_402_207_200_000_000;
const DAYS: std::ops::Range<i32> = -719_162..2_932_896;

/// Values of each type of property, by a name that needs care in one form or another.
fn kinds() -> Vec<(&'static str, BoxedStrategy<Value>)> {
    let float = || {
        prop_oneof![
            4 => any::<u64>().prop_map(f64::from_bits),
            1 => prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, 1e300, 3.0]),
        ]
        .prop_map(Value::Float64)
    };
    let text = || {
        prop_oneof![
            3 => any::<String>(),
            2 => "[\"',;\\[\\]a\n :.]{0,6}",
            1 => prop::sample::select(vec!["null", "NaN", "[1]", "true", "2026-01-02", "", " ", "\"\""]).prop_map(String::from),
        ]
        .prop_map(Value::String)
    };
    let day = || DAYS.prop_map(Value::Date);
    let moment = || MOMENTS.prop_map(Value::Timestamp);
    let int = || any::<i64>().prop_map(Value::Int64);
    let bit = || any::<bool>().prop_map(Value::Bool);
    fn list(item: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
        let item = prop_oneof![6 => item, 1 => Just(Value::Null)];
        prop::collection::vec(item, 0..4).prop_map(Value::List).boxed()
    }
    vec![
        ("bool", bit().boxed()),
        ("int", int().boxed()),
        ("float", float().boxed()),
        ("text", text().boxed()),
        ("day", day().boxed()),
        ("moment", moment().boxed()),
        // Names that mean something else, or have what divides a header.
        ("label", list(bit())),
        (".key", list(int())),
        ("a:b", list(float())),
        ("source", list(text())),
        ("x,\"y\"", list(day())),
        ("distance", list(moment())),
    ]
}

fn rows(csv: bool) -> Vec<Map<String, Json>> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut draw = |strategy: &BoxedStrategy<Value>| strategy.new_tree(&mut runner).unwrap().current();
    let kinds = kinds();
    let row = |at: usize| {
        let of_kind = |(number, (name, strategy)): (usize, &(&str, BoxedStrategy<Value>))| {
            // Not every row has every property; the first has all, so that their types are known.
            let value = draw(strategy);
            let there = at == 0 || !(at + number).is_multiple_of(5);
            (there && !(csv && is_lost_in_csv(&value))).then(|| ((*name).to_owned(), value_to_json(&value)))
        };
        kinds.iter().enumerate().filter_map(of_kind).collect()
    };
    (0..ROWS).map(row).collect()
}

/// CSV cannot distinguish empty text from null.
fn is_lost_in_csv(value: &Value) -> bool {
    *value == Value::String(String::new())
}

/// What is there first, with a value of each type.
fn declared() -> Json {
    let all = |value: Value| value_to_json(&value);
    let list = |value: Value| all(Value::List(vec![value]));
    json!({
        "bool": true, "int": 1, "float": 0.5, "text": "a", "day": all(Value::Date(1)), "moment": all(Value::Timestamp(1)),
        "label": [true], ".key": [1], "a:b": [0.5], "source": ["a"], "x,\"y\"": list(Value::Date(1)),
        "distance": list(Value::Timestamp(1)),
    })
}

fn comes_back(format: &str, ending: &str) {
    let shell = Shell::with_graph();
    let line = |row: usize, properties: &Json| json!({"op": "upsert_vertex", "label": "a:b", "key": format!("k:{row},\"{row}"), "properties": properties});
    let mut lines = vec![json!({"op": "upsert_vertex", "label": "a:b", "key": "first", "properties": declared()})];
    lines.extend(rows(format == "csv").into_iter().enumerate().map(|(row, map)| line(row, &map.into())));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    shell.write("rows.jsonl", &text);
    shell.run(&["apply", "graph", "rows.jsonl"]).ok();

    let names: Vec<_> = (0..ROWS).map(|row| format!("\"a:b\":k:{row},\"{row}")).collect();
    let get = |more: &[&str]| {
        let mut args = vec!["get", "graph"];
        args.extend(names.iter().map(String::as_str));
        shell.run(&[&args[..], more].concat()).ok().out
    };
    let before = get(&["--format", "json"]);
    let file = format!("rows{ending}");
    get(&["--format", format, "--output", &file]);
    let gone =
        |row: usize| format!("{}\n", json!({"op": "delete_vertex", "label": "a:b", "key": format!("k:{row},\"{row}")}));
    shell.write("gone.jsonl", &(0..ROWS).map(gone).collect::<String>());
    shell.run(&["apply", "graph", "gone.jsonl"]).ok();
    shell.run(&["apply", "graph", &file, "--strict"]).ok();
    for (before, after) in before.lines().zip(get(&["--format", "json"]).lines()) {
        assert_eq!(after, before);
    }
}

#[test]
fn rows_of_json_come_back() {
    comes_back("json", ".jsonl");
}

#[test]
fn rows_of_csv_come_back() {
    comes_back("csv", ".csv");
}

#[test]
fn rows_of_parquet_come_back() {
    comes_back("parquet", ".parquet");
}

#[test]
fn a_strict_batch_and_a_long_line_are_rejected() {
    let shell = Shell::with_graph();
    let upsert = json!({"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {"nmae": "Ann"}}).to_string();
    shell.write("typo.jsonl", &upsert);
    let strict = shell.run(&["apply", "graph", "typo.jsonl", "--strict"]);
    strict.fails(
        2,
        "typo.jsonl, line 1: upsert of vertex Person:1 is refused: Person has no property nmae",
        "--strict",
    );
    let short = shell.run(&["apply", "graph", "typo.jsonl", "--line-bytes-max", "50B"]);
    short.fails(2, "typo.jsonl, line 1: it is longer than 50 bytes", "correct the file");
    shell.write("twice.jsonl", r#"{"op": "delete_vertex", "label": "Person", "key": 1, "key": 2}"#);
    shell.run(&["apply", "graph", "twice.jsonl"]).fails(2, "line 1: the member \"key\" occurs twice", "correct");
    for (number, why) in [
        ("18446744073709551616", "18446744073709551616 does not fit an int64"),
        ("1e400", "1e400 is too large for a float64"),
        ("{\"float64\": \"huge\"}", "is not a value"),
    ] {
        let line =
            format!(r#"{{"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {{"n": {number}}}}}"#);
        shell.write("number.jsonl", &line);
        shell.run(&["apply", "graph", "number.jsonl"]).fails(2, why, "correct the file");
    }
}
