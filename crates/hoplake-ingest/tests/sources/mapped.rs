//! CSV and Parquet through a mapping.

use arrow_array::{ArrayRef, Date32Array, Decimal128Array, Int64Array, LargeStringArray, TimestampNanosecondArray};

use super::{edge_lists::write_parquet, *};

const MAP: &str = r#"
[csv]
delimiter = "|"
lists = ","

[[vertices]]
file = "people.csv"
label = "Person"
key = "id"
key_type = "int64"
ignore = ["secret"]
[vertices.properties]
age = "int64"
joined = "timestamp_s"
aka = { column = "nicks", type = "list<string>" }

[[edges]]
file = "people.csv"
label = "livesIn"
source = "id"
source_label = "Person"
target = "city"
target_label = "City"
optional = true
properties = { joined = "timestamp_s" }

[[edges]]
file = "data/knows.csv"
label = "knows"
source = "a"
source_label = "Person"
target = "b"
target_label = "Person"
csv = { header = false, columns = ["a", "b", "since"], delimiter = " " }
properties = { since = "date" }
"#;

#[test]
fn csv_with_types_lists_and_foreign_keys() {
    let folder = folder(&[
        ("map.toml", MAP),
        ("people.csv", "id|name|age|joined|nicks|secret|city\n1|Ann|30|1|a,b|x|Rome\n2|Bob||||y|\n"),
        ("data/knows.csv", "1  2\t2020-02-29\n"),
    ]);
    let dataset = mapped(folder.path()).unwrap();
    assert_eq!(
        vertex_types(&dataset),
        ["Person[int64]: name string, age int64, joined timestamp, aka list<string>, city string", "City[string]: "]
    );
    assert!(dataset.vertex_tables[1].implied);
    let rows = rows(&dataset);
    assert_eq!(rows["Person"], ["2: 1|Ann|30|1970-01-01T00:00:01Z|[a, b]|Rome", "3: 2|Bob||||"]);
    assert_eq!(rows["City"], ["2: Rome"]);
    assert_eq!(rows["Person-livesIn->City"], ["2: 1|Rome|1970-01-01T00:00:01Z"]);
    assert_eq!(rows["Person-knows->Person"], ["1: 1|2|2020-02-29"]);
}

#[test]
fn parquet_types_are_cast() {
    let folder = folder(&[(
        "map.toml",
        "[[vertices]]\nfile = \"p.parquet\"\nlabel = \"P\"\nkey = \"k\"\n[vertices.properties]\nms = \"timestamp_ms\"\n",
    )]);
    let decimals = Decimal128Array::from(vec![Some(150), None]).with_precision_and_scale(10, 2).unwrap();
    write_parquet(
        &folder.path().join("p.parquet"),
        vec![
            ("k", Arc::new(LargeStringArray::from(vec!["x", "y"])) as ArrayRef),
            ("price", Arc::new(decimals)),
            ("at", Arc::new(TimestampNanosecondArray::from(vec![1_500_000, 0]))),
            ("ms", Arc::new(Int64Array::from(vec![1500, 0]))),
            ("day", Arc::new(Date32Array::from(vec![1, 2]))),
        ],
    );
    let dataset = mapped(folder.path()).unwrap();
    assert_eq!(vertex_types(&dataset), ["P[string]: price float64, at timestamp, ms timestamp, day date"]);
    assert_eq!(
        rows(&dataset)["P"],
        [
            "1: x|1.5|1970-01-01T00:00:00.001500Z|1970-01-01T00:00:01.500Z|1970-01-02",
            "2: y||1970-01-01T00:00:00Z|1970-01-01T00:00:00Z|1970-01-03",
        ]
    );
}

#[test]
fn nulls_and_overflows_of_parquet_are_bad_rows() {
    let folder = folder(&[(
        "map.toml",
        "[[edges]]\nfile = \"e.parquet\"\nlabel = \"e\"\nsource = \"a\"\nsource_label = \"P\"\ntarget = \"b\"\ntarget_label = \"Q\"\n",
    )]);
    write_parquet(
        &folder.path().join("e.parquet"),
        vec![
            ("a", Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4)])) as ArrayRef),
            ("b", Arc::new(arrow_array::UInt64Array::from(vec![5, 6, 7, 8]))),
            ("c", Arc::new(arrow_array::UInt64Array::from(vec![1, 1, u64::MAX, 1]))),
        ],
    );
    let (rows, rejects) = skipping(&mapped(folder.path()).unwrap());
    assert_eq!(rows["P-e->Q"], ["1: 1|5|1", "4: 4|8|1"]);
    assert_eq!(rows["P"], ["1: 1", "3: 3", "4: 4"]);
    assert_eq!(rejects, ["2,a,,is empty where a key is needed", "3,c,18446744073709551615,does not fit int64"]);
}

#[test]
fn mistakes_in_a_mapping_are_named() {
    let edit = |from: &str, to: &str| {
        let map = MAP.replace(from, to);
        assert_ne!(map, MAP);
        let folder = folder(&[
            ("map.toml", &map),
            ("people.csv", "id|name|age|joined|nicks|secret|city\n"),
            ("data/knows.csv", ""),
        ]);
        mapped(folder.path()).map(|_| ()).unwrap_err().to_string()
    };
    assert!(edit("key = \"id\"", "key = \"nr\"").contains("no column \"nr\""));
    assert!(edit("age = \"int64\"", "age = \"int\"").contains("age"), "{}", edit("age = \"int64\"", "age = \"int\""));
    assert!(edit("optional", "optinal").contains("optinal"));
    assert!(edit("data/knows.csv", "knows.csv").contains("knows.csv"));
}
