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

[[vertices]]
label = "City"

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

/// The second phase reads the columns of vertices again, to see which rows are good. These are not kept, and must not fill chunks.
#[test]
fn columns_that_are_only_checked_fill_no_chunk() {
    let row = |number: usize| format!("{number}|{:0>1000}|30||||Rome{}\n", number, number % 7);
    let people: String = (0..6000).map(row).collect();
    let folder = folder(&[
        ("map.toml", MAP),
        ("people.csv", &format!("id|name|age|joined|nicks|secret|city\n{people}")),
        ("data/knows.csv", "1  2\t2020-02-29\n"),
    ]);
    let dataset = mapped(folder.path()).unwrap();
    let input = dataset.inputs.iter().find(|input| input.path().ends_with("people.csv")).unwrap();
    let chunks =
        |phase| input.scan(phase, Arc::new(BadRows::stop())).unwrap().map(|chunk| chunk.unwrap().batch.num_rows());
    let edges: Vec<usize> = chunks(Phase::Edges).collect();
    assert_eq!(edges, [6000]);
    // 6 MB of names are several chunks of vertices, as they should be.
    assert!((4..20).contains(&chunks(Phase::Vertices).count()));
}

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
        "imply_labels = true\n[[edges]]\nfile = \"e.parquet\"\nlabel = \"e\"\nsource = \"a\"\nsource_label = \"P\"\ntarget = \"b\"\ntarget_label = \"Q\"\n",
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

#[test]
fn columns_without_a_type_are_rejected_all_at_once() {
    let folder = folder(&[("map.toml", "[[vertices]]\nfile = \"p.parquet\"\nlabel = \"P\"\nkey = \"id\"\n")]);
    let path = folder.path().join("p.parquet");
    let numbers = || Int64Array::from(vec![1, 2]);
    let map = arrow_array::builder::MapBuilder::new(
        None,
        arrow_array::builder::StringBuilder::new(),
        arrow_array::builder::Int64Builder::new(),
    );
    let with_rows = |mut map: arrow_array::builder::MapBuilder<_, _>| {
        (0..2).for_each(|_| map.append(true).unwrap());
        map.finish()
    };
    write_parquet(
        &path,
        vec![
            ("id", Arc::new(numbers()) as ArrayRef),
            ("raw", Arc::new(arrow_array::BinaryArray::from(vec![b"a".as_ref(), b"b"]))),
            ("at", Arc::new(arrow_array::Time64MicrosecondArray::from(vec![1, 2]))),
            ("took", Arc::new(arrow_array::DurationMillisecondArray::from(vec![1, 2]))),
            (
                "hash",
                Arc::new(arrow_array::FixedSizeBinaryArray::try_from_iter([[0u8; 4], [1; 4]].into_iter()).unwrap()),
            ),
            ("map", Arc::new(with_rows(map))),
        ],
    );
    let message = mapped(folder.path()).map(|_| ()).unwrap_err().to_string();
    let expected = "has columns \"raw\" (binary), \"at\" (time of day), \"took\" (duration), \"hash\" (binary of 4 bytes), \"map\" (map), \
                    types that no property has; name them under ignore";
    assert!(message.ends_with(expected), "{message}");

    let map = "[[vertices]]\nfile = \"p.parquet\"\nlabel = \"P\"\nkey = \"id\"\nproperties = { name = \"date\", n = \"list<int64>\" }\n";
    fs::write(folder.path().join("map.toml"), map).unwrap();
    let names: ArrayRef = Arc::new(numbers());
    write_parquet(&path, vec![("id", names.clone()), ("name", names.clone()), ("n", names)]);
    let message = mapped(folder.path()).map(|_| ()).unwrap_err().to_string();
    let expected =
        "columns cannot have the types of the mapping: \"name\" (int64) as date, \"n\" (int64) as list<int64>";
    assert!(message.ends_with(expected), "{message}");
}

#[test]
fn every_type_of_arrow_that_has_a_property_loads() {
    use arrow_array::*;
    use arrow_schema::{DataType, Field, TimeUnit};

    let folder = folder(&[("map.toml", "[[vertices]]\nfile = \"p.parquet\"\nlabel = \"P\"\nkey = \"id\"\n")]);
    let moments = |unit| arrow_cast::cast(&Int64Array::from(vec![1_000]), &DataType::Timestamp(unit, None)).unwrap();
    let list = |item: ArrayRef| {
        let field = Arc::new(Field::new("item", item.data_type().clone(), true));
        Arc::new(ListArray::try_new(field, arrow_buffer::OffsetBuffer::from_lengths([item.len()]), item, None).unwrap())
            as ArrayRef
    };
    let last_micros = 253_402_300_799_999_000;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(StringArray::from(vec!["a"]))),
        ("half", arrow_cast::cast(&Float64Array::from(vec![1.5]), &DataType::Float16).unwrap()),
        ("u64", Arc::new(UInt64Array::from(vec![7]))),
        ("big", Arc::new(LargeStringArray::from(vec!["big"]))),
        ("view", Arc::new(StringViewArray::from(vec!["view"]))),
        ("word", Arc::new(["word"].into_iter().collect::<DictionaryArray<types::Int8Type>>())),
        ("day64", Arc::new(Date64Array::from(vec![86_400_000]))),
        ("second", moments(TimeUnit::Second)),
        ("nano", moments(TimeUnit::Nanosecond)),
        ("last", Arc::new(TimestampMicrosecondArray::from(vec![last_micros]).with_timezone("UTC"))),
        ("exact", Arc::new(Decimal128Array::from(vec![12]).with_precision_and_scale(30, 0).unwrap())),
        ("money", Arc::new(Decimal128Array::from(vec![1250]).with_precision_and_scale(10, 2).unwrap())),
        ("seconds", list(moments(TimeUnit::Second))),
        ("words", list(Arc::new(LargeStringArray::from(vec!["a", "b"])))),
    ];
    write_parquet(&folder.path().join("p.parquet"), columns);

    let dataset = mapped(folder.path()).unwrap();
    assert_eq!(
        vertex_types(&dataset),
        [
            "P[string]: half float64, u64 int64, big string, view string, word string, day64 date, second timestamp, nano timestamp, \
          last timestamp, exact int64, money float64, seconds list<timestamp>, words list<string>"
        ]
    );
    let dataset_rows = {
        let mut found = Vec::new();
        for chunk in dataset.inputs[0].scan(Phase::Vertices, Arc::new(BadRows::stop())).unwrap() {
            let batch = chunk.unwrap().batch;
            found.extend((0..batch.num_columns() - 2).map(|column| show(batch.column(column), 0)));
            let moments = batch.column(batch.num_columns() - 2).as_list::<i32>().value(0);
            assert_eq!(moments.as_primitive::<TimestampMicrosecondType>().value(0), 1_000_000_000);
        }
        found
    };
    assert_eq!(
        dataset_rows,
        [
            "a",
            "1.5",
            "7",
            "big",
            "view",
            "word",
            "1970-01-02",
            "1970-01-01T00:16:40Z",
            "1970-01-01T00:00:00.000001Z",
            "9999-12-31T23:59:59.999Z",
            "12",
            "12.5"
        ]
    );
}

#[test]
fn values_out_of_range_are_bad_rows_with_their_values() {
    use arrow_array::{Date32Array, TimestampMicrosecondArray};
    let folder = folder(&[(
        "map.toml",
        "[[vertices]]\nfile = \"p.parquet\"\nlabel = \"P\"\nkey = \"id\"\nproperties = { n = \"int64\" }\n",
    )]);
    write_parquet(
        &folder.path().join("p.parquet"),
        vec![
            ("id", Arc::new(Int64Array::from(vec![1, 2, 3, 4])) as ArrayRef),
            ("day", Arc::new(Date32Array::from(vec![2_932_896, 2_932_897, 0, 0]))),
            (
                "at",
                Arc::new(TimestampMicrosecondArray::from(vec![0, 0, 253_402_300_800_000_000, 0]).with_timezone("UTC")),
            ),
            ("n", Arc::new(arrow_array::StringArray::from(vec!["1", "2", "3", "many"]))),
        ],
    );
    let (rows, rejects) = skipping(&mapped(folder.path()).unwrap());
    assert_eq!(rows["P"], ["1: 1|9999-12-31|1970-01-01T00:00:00Z|1"]);
    assert_eq!(
        rejects,
        [
            "2,day,+10000-01-01,does not fit date",
            "3,at,+10000-01-01T00:00:00,does not fit timestamp",
            "4,n,many,does not fit int64"
        ]
    );
}

#[test]
fn uuids_are_text_as_keys_too() {
    use parquet::{
        data_type::{FixedLenByteArray, FixedLenByteArrayType},
        file::writer::SerializedFileWriter,
        schema::parser::parse_message_type,
    };
    let folder = folder(&[("map.toml", "[[vertices]]\nfile = \"p.parquet\"\nlabel = \"P\"\nkey = \"id\"\n")]);
    let uuid = "fixed_len_byte_array(16)";
    let schema =
        parse_message_type(&format!("message p {{ required {uuid} id (UUID); required {uuid} other (UUID); }}"))
            .unwrap();
    let file = fs::File::create(folder.path().join("p.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    while let Some(mut column) = group.next_column().unwrap() {
        let uuid =
            FixedLenByteArray::from(b"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef".to_vec());
        column.typed::<FixedLenByteArrayType>().write_batch(&[uuid], None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    let dataset = mapped(folder.path()).unwrap();
    assert_eq!(vertex_types(&dataset), ["P[string]: other string"]);
    let uuid = "01234567-89ab-cdef-0123-456789abcdef";
    assert_eq!(rows(&dataset)["P"], [format!("1: {uuid}|{uuid}")]);
}

#[test]
fn a_property_that_cannot_be_read_says_what_is_known() {
    for (property, expected) in [
        ("\"text\"", "unknown type \"text\"; bool, int64"),
        ("\"list<strng>\"", "unknown type \"list<strng>\""),
        ("{ colum = \"a\" }", "unknown field `colum`, expected `column` or `type`"),
        ("7", "a type such as \"int64\", or { column"),
    ] {
        let mapping =
            format!("[[vertices]]\nfile = \"p.csv\"\nlabel = \"P\"\nkey = \"id\"\nproperties = {{ a = {property} }}\n");
        let folder = folder(&[("p.csv", "id,a\n1,2\n"), ("map.toml", &mapping)]);
        let message = mapped(folder.path()).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains("line 5"), "{message}");
    }
}
