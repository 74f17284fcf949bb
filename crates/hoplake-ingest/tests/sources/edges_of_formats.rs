//! What files may be that is seldom: each kind of it in every place where it can be, read exactly or rejected by name.

use std::io::Write;

use arrow_array::Int64Array;
use parquet::{
    arrow::ArrowWriter,
    basic::Compression,
    data_type::{ByteArray, ByteArrayType, Int64Type, Int96, Int96Type},
    file::{
        properties::{WriterProperties, WriterVersion},
        writer::SerializedFileWriter,
    },
    schema::parser::parse_message_type,
};

use super::*;

const NANOS_PER_DAY: i64 = 86_400_000_000_000;

fn int96(day: i32, nanos: i64) -> Int96 {
    let mut value = Int96::new();
    value.set_data(nanos as u32, (nanos >> 32) as u32, day as u32);
    value
}

/// Days since the beginning of Julian days, nanoseconds, and what they are; nothing, if no timestamp is.
fn moments() -> Vec<(i32, i64, Option<&'static str>)> {
    vec![
        (2_440_588, 0, Some("1970-01-01T00:00:00Z")),
        (5_373_484, 0, Some("9999-12-31T00:00:00Z")),
        (5_373_484, NANOS_PER_DAY - 1_000, Some("9999-12-31T23:59:59.999999Z")),
        (1_721_426, 0, Some("0001-01-01T00:00:00Z")),
        (2_299_150, 1_000, Some("1582-10-04T00:00:00.000001Z")),
        (-1_930_999, 0, Some("-9999-01-01T00:00:00Z")),
        // The day before, and nanoseconds of it that are not whole microseconds.
        (2_440_587, NANOS_PER_DAY - 1, Some("1969-12-31T23:59:59.999999Z")),
        // As Arrow's older writers count: backwards from the next midnight.
        (2_440_588, -1_500, Some("1969-12-31T23:59:59.999998Z")),
        // Behind the last nanosecond that 64 bits count, and before the first.
        (2_547_340, 0, Some("2262-04-12T00:00:00Z")),
        (2_330_000, 0, Some("1667-03-22T00:00:00Z")),
        (5_373_485, 0, None),
        (-1_931_000, 0, None),
        (i32::MAX, 0, None),
        (i32::MIN, 0, None),
        // 64 bits of microseconds wrap around to a day of ours.
        (2_440_588 + 213_503_982, 0, None),
    ]
}

/// A file of columns `id`, `other`, `t` and `ts`, a list; all moments in both.
fn int96_file(path: &Path, values: &[Int96], properties: WriterProperties) {
    let schema = "message schema {
        required int64 id; required int64 other; optional int96 t;
        optional group ts (LIST) { repeated group list { optional int96 element; } }
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(fs::File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let ids: Vec<i64> = (0..values.len() as i64).collect();
    let present = vec![1; values.len()];
    for _ in 0..2 {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&ids, None, None).unwrap();
        column.close().unwrap();
    }
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int96Type>().write_batch(values, Some(&present), None).unwrap();
    column.close().unwrap();
    // Lists of two: the moment twice.
    let twice: Vec<Int96> = values.iter().flat_map(|value| [*value, *value]).collect();
    let definitions = vec![3; twice.len()];
    let repetitions: Vec<i16> = (0..twice.len()).map(|at| (at % 2) as i16).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int96Type>().write_batch(&twice, Some(&definitions), Some(&repetitions)).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

const INT96_MAP: &str = r#"
    [[vertices]]
    file = "t.parquet"
    label = "V"
    key = "id"
    ignore = ["other"]
    [[edges]]
    file = "t.parquet"
    label = "E"
    source = "id"
    source_label = "V"
    target = "other"
    target_label = "V"
    properties = { t = "timestamp", ts = "list<timestamp>" }
"#;

/// Every encoding of pages that Parquet has for them, compressed and not.
fn writers() -> Vec<WriterProperties> {
    let base = || WriterProperties::builder().set_compression(Compression::UNCOMPRESSED);
    vec![
        base().build(),
        base().set_dictionary_enabled(false).build(),
        base().set_writer_version(WriterVersion::PARQUET_2_0).build(),
        base().set_dictionary_enabled(false).set_writer_version(WriterVersion::PARQUET_2_0).build(),
        base().set_dictionary_enabled(false).set_compression(Compression::SNAPPY).build(),
    ]
}

#[test]
fn moments_of_96_bits_are_exact_in_all_years_or_bad_rows() {
    for properties in writers() {
        let folder = folder(&[("map.toml", INT96_MAP)]);
        let values: Vec<Int96> = moments().iter().map(|(day, nanos, _)| int96(*day, *nanos)).collect();
        int96_file(&folder.path().join("t.parquet"), &values, properties);
        let (rows, rejects) = skipping(&mapped(folder.path()).unwrap());
        let good: Vec<(usize, &str)> =
            moments().into_iter().enumerate().filter_map(|(row, (_, _, text))| Some((row, text?))).collect();
        let of_vertices: Vec<String> =
            good.iter().map(|(row, text)| format!("{}: {row}|{text}|[{text}, {text}]", row + 1)).collect();
        assert_eq!(rows["V"], of_vertices);
        let of_edges: Vec<String> =
            good.iter().map(|(row, text)| format!("{}: {row}|{row}|{text}|[{text}, {text}]", row + 1)).collect();
        assert_eq!(rows["V-E->V"], of_edges);
        assert_eq!(rejects.len(), moments().len() - good.len(), "{rejects:?}");
    }
}

#[test]
fn integers_become_floats_only_if_they_are_exact() {
    let folder = folder(&[(
        "map.toml",
        "[[vertices]]\nfile = \"n.parquet\"\nlabel = \"V\"\nkey = \"id\"\nproperties = { n = \"float64\" }",
    )]);
    let numbers = [0, -7, 1 << 53, (1 << 53) + 1, -(1 << 53) - 1, (1 << 53) + 2, i64::MAX, i64::MIN];
    let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let batch = arrow_array::RecordBatch::try_from_iter([
        ("id", column((0..numbers.len() as i64).collect())),
        ("n", column(numbers.to_vec())),
    ]);
    let batch = batch.unwrap();
    let file = fs::File::create(folder.path().join("n.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let (rows, rejects) = skipping(&mapped(folder.path()).unwrap());
    assert_eq!(rows["V"].len(), 5, "{rows:?}");
    assert_eq!(rejects.len(), 3, "{rejects:?}");
    assert!(rejects.iter().all(|reject| reject.contains("does not fit float64")), "{rejects:?}");
}

/// For each layout a file that has the named column twice, or two columns that mean the same.
#[test]
fn a_reserved_column_that_occurs_twice_is_rejected_in_every_layout() {
    let nodes = "~id,~label\na,P\n";
    for (files, name) in [
        (vec![("n.csv", "~id,~id,~label\na,b,P\n")], "~id"),
        (vec![("n.csv", "~id,~label,~label\na,P,Q\n")], "~label"),
        (vec![("n.csv", nodes), ("e.csv", "~id,~from,~from,~to,~label\n1,a,a,a,k\n")], "~from"),
        (vec![("n.csv", nodes), ("e.csv", "~id,~from,~to,~To,~label\n1,a,a,a,k\n")], "~To"),
        (vec![("n.csv", nodes), ("e.csv", "~id,~ID,~from,~to,~label\n1,2,a,a,k\n")], "~ID"),
        (vec![("n.csv", "~id,name:String,name:Int\na,b,1\n")], "name"),
        (vec![("n.csv", ":ID,:ID\n1,2\n")], ":ID"),
        (vec![("n.csv", ":ID,:LABEL,:LABEL\n1,P,Q\n")], ":LABEL"),
        (vec![("n.csv", "a:ID,b:ID\n1,2\n")], "b:ID"),
        (vec![("e.csv", ":START_ID,:START_ID,:END_ID,:TYPE\n1,2,3,k\n")], ":START_ID"),
        (vec![("e.csv", ":START_ID,:END_ID(A),:END_ID(B),:TYPE\n1,2,3,k\n")], ":END_ID(B)"),
        (vec![("e.csv", ":START_ID,:END_ID,:TYPE,:TYPE\n1,2,k,l\n")], ":TYPE"),
        (vec![("e.csv", "source,target,weight,weight\n1,2,3,4\n2,3,4,5\n")], "weight"),
        (vec![("e.csv", "source,target,Source\n1,2,3\n2,3,4\n")], "source"),
        (vec![("e.csv", "from,to,to\n1,2,3\n2,3,4\n")], "to"),
        (vec![("person_0_0.csv", "id|id|firstName\n1|2|A\n")], "id"),
        (vec![("initial_snapshot/dynamic/Person/part-0.csv", "creationDate|id|id\n1|2|3\n")], "id"),
        (
            vec![(
                "initial_snapshot/dynamic/Comment/part-0.csv",
                "creationDate|id|CreatorPersonId|CreatorPersonId|LocationCountryId|ParentPostId|ParentCommentId\n1|2|3|4|5||\n",
            )],
            "CreatorPersonId",
        ),
    ] {
        let folder = folder(&files);
        let why = rejected(&[folder.path().to_owned()]);
        let is_told = why.contains("occurs twice") || why.contains("mean the same");
        assert!(is_told && why.contains(&format!("{name:?}")), "{files:?}: {why}");
    }
    // A mapping names a column that the file has twice; one that it leaves out may occur as often as it likes.
    let map = "[[vertices]]\nfile = \"n.csv\"\nlabel = \"V\"\nkey = \"id\"\n";
    for (header, entry, is_rejected) in [
        ("id,id,x", "", true),
        ("id,x,x", "ignore = [\"x\"]", false),
        ("id,x,x", "", true),
        ("id,x,x", "ignore_others = true\n[vertices.properties]\nx = \"string\"", true),
    ] {
        let folder = folder(&[("n.csv", &format!("{header}\n1,2,3\n")), ("map.toml", &format!("{map}{entry}"))]);
        let opened = mapped(folder.path()).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(opened.is_err(), is_rejected, "{header} {entry}: {opened:?}");
        assert!(opened.err().is_none_or(|why| why.contains("occurs twice")));
    }
}

fn bytes_of(name: &str, bytes: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), bytes).unwrap();
    folder
}

#[test]
fn text_in_another_encoding_is_named_in_every_layout() {
    let map = "[[vertices]]\nfile = \"f.csv\"\nlabel = \"V\"\nkey = \"id\"\n";
    for (name, text) in [
        ("f.csv", "~id,~label\na,P\n"),
        ("f.csv", "id:ID,:LABEL\n1,P\n"),
        ("f.csv", "source,target\n1,2\n"),
        ("f.txt", "1 2\n2 3\n"),
        ("person_0_0.csv", "id|firstName\n1|A\n"),
        ("f.csv", "id,name\n1,A\n"),
    ] {
        for mark in ["\u{feff}", ""] {
            let units: Vec<u16> = format!("{mark}{text}").encode_utf16().collect();
            for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
                let bytes: Vec<u8> = units.iter().flat_map(|unit| to_bytes(*unit)).collect();
                let folder = bytes_of(name, &bytes);
                fs::write(folder.path().join("map.toml"), map).unwrap();
                let why = match text {
                    "id,name\n1,A\n" => mapped(folder.path()).map(|_| ()).unwrap_err().to_string(),
                    _ => rejected(&[folder.path().join(name)]),
                };
                assert!(why.contains("is UTF-16") && why.contains("iconv"), "{text:?} {mark:?}: {why}");
            }
        }
    }
}

#[test]
fn zeros_after_gzip_are_no_text() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(b"~id,~label\na,P\nb,P\n").unwrap();
    let mut bytes = encoder.finish().unwrap();
    bytes.resize(bytes.len() + 512, 0);
    let folder = bytes_of("v.csv.gz", &bytes);
    assert_eq!(rows(&opened(folder.path()))["P"], ["2: a", "3: b"]);
    bytes.extend(b"more");
    let folder = bytes_of("v.csv.gz", &bytes);
    assert!(rejected(&[folder.path().to_owned()]).contains("after the zeros"));
}

#[test]
fn other_formats_of_graphs_are_rejected_by_name() {
    // A ring: each line of METIS has two neighbours, like an edge.
    let ring = "4 4\n2 4\n1 3\n2 4\n1 3\n";
    for (name, text, format) in [
        ("e.edges", "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 0.5\n2 3 0.7\n", "Matrix Market"),
        ("e.txt", "%%MatrixMarket matrix coordinate pattern symmetric\n% made\n3 3 2\n1 2\n2 3\n", "Matrix Market"),
        ("e.el", "%%matrixmarket matrix array integer general\n2 2\n1\n2\n", "Matrix Market"),
        ("e.txt", ring, "METIS"),
        ("e.txt", "c ring\np edge 3 2\ne 1 2\ne 2 3\n", "DIMACS"),
        ("e.txt", "p sp 3 2\na 1 2 7\na 2 3 8\n", "DIMACS"),
        ("e.txt", "*Vertices 3\n*Arcs\n1 2\n2 3\n", "Pajek"),
        ("e.txt", "dl n=3 format=edgelist1\ndata:\n1 2\n2 3\n", "UCINET"),
    ] {
        let folder = folder(&[(name, text)]);
        let why = rejected(&[folder.path().to_owned()]);
        assert!(why.contains(format), "{text:?}: {why}");
    }
    let map = "[csv]\ndelimiter = \" \"\nheader = false\ncolumns = [\"s\", \"t\"]\ncomments = true\n[[vertices]]\nlabel = \"V\"\n\
               [[edges]]\nfile = \"m.mtx\"\nlabel = \"E\"\nsource = \"s\"\nsource_label = \"V\"\ntarget = \"t\"\ntarget_label = \"V\"\n";
    let text = "%%MatrixMarket matrix coordinate pattern general\n3 2\n1 2\n";
    let folder = folder(&[("m.mtx", text), ("map.toml", map)]);
    assert!(mapped(folder.path()).map(|_| ()).unwrap_err().to_string().contains("Matrix Market"));
}

#[test]
fn comments_with_sizes_are_comments() {
    for text in ["# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n1\t2\n2\t3\n", "% sym unweighted\n% 2 3 3\n1 2\n2 3\n"] {
        let folder = folder(&[("e.txt", text)]);
        assert_eq!(rows(&opened(folder.path()))["vertex-edge->vertex"].len(), 2, "{text}");
    }
}

#[test]
fn options_of_neo4j_headers_are_applied_or_rejected() {
    let header = ":ID,at:datetime{timezone:+02:00},z:datetime{timezone:Europe/Stockholm},many:datetime[]{timezone:+02:00},:LABEL\n";
    let row = "1,2020-01-02T03:04:05,2020-07-02T03:04:05,2020-01-02T03:04:05;2020-01-02T03:04:05Z,P\n";
    let applied = folder(&[("p.csv", &format!("{header}{row}"))]);
    assert_eq!(
        rows(&opened(applied.path()))["P"],
        ["2: 1|2020-01-02T01:04:05Z|2020-07-02T01:04:05Z|[2020-01-02T01:04:05Z, 2020-01-02T03:04:05Z]"]
    );
    for column in
        ["odd:datetime{foo:bar}", "t:time{timezone:+02:00}", "p:point{crs:WGS-84}", "x:int{a:b}", "n:string(space)"]
    {
        let folder = folder(&[("p.csv", &format!(":ID,{column},:LABEL\n1,2,P\n"))]);
        let why = rejected(&[folder.path().to_owned()]);
        assert!(why.contains(&format!("{column:?}")), "{column}: {why}");
    }
}

#[test]
fn seconds_and_offsets_that_no_clock_has_are_bad_rows() {
    let text = "~id,~label,t:DateTime\na,P,2020-01-01T23:59:60Z\nb,P,2016-12-31T23:59:60Z\nc,P,2020-01-01T00:00:00+24:00\nd,P,2020-01-01\n";
    let folder = folder(&[("v.csv", text)]);
    let (rows, rejects) = skipping(&opened(folder.path()));
    assert_eq!(rows["P"], ["5: d|2020-01-01T00:00:00Z"]);
    assert_eq!(rejects.len(), 3, "{rejects:?}");
}

#[test]
fn names_in_quotes_keep_their_white_space() {
    let map = "[[vertices]]\nfile = \"v.csv\"\nlabel = \"V\"\nkey = \"id\"\n";
    let folder = folder(&[("v.csv", "id,\"trail \", plain \n1,a,b\n"), ("map.toml", map)]);
    assert_eq!(vertex_types(&mapped(folder.path()).unwrap()), ["V[string]: trail  string, plain string"]);
}

fn with_memory(folder: &Path, mapping: bool, mib: u64) -> Result<(), String> {
    let limits = hoplake_ingest::source::ReadLimits { memory_bytes: Some(mib << 20), ..Default::default() };
    let mapping = mapping.then(|| folder.join("map.toml"));
    let options = SourceOptions { limits, mapping, ..Default::default() };
    open(&[folder.to_owned()], &options).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn what_is_too_wide_for_the_memory_is_rejected_before_it_is_made() {
    // Many labels with many columns each.
    let columns: String = (0..200).map(|column| format!(",p{column}:Int")).collect();
    let mut text = format!("~id,~label{columns}\n");
    for label in 0..3_000 {
        text.push_str(&format!("{label},L{label}{}\n", ",1".repeat(200)));
    }
    let labels = folder(&[("v.csv", &text)]);
    let why = with_memory(labels.path(), false, 64).unwrap_err();
    assert!(why.contains("3000 tables with 609000 columns") && why.contains("memory budget"), "{why}");
    // A mapping with many entries.
    let mut map = String::new();
    for entry in 0..60_000 {
        map.push_str(&format!("[[vertices]]\nfile = \"v.csv\"\nlabel = \"L{entry}\"\nkey = \"id\"\n"));
    }
    let entries = folder(&[("v.csv", "id\n1\n"), ("map.toml", &map)]);
    let why = with_memory(entries.path(), true, 64).unwrap_err();
    assert!(why.contains("a mapping of") && why.contains("memory budget"), "{why}");
    // A column of labels that is none.
    let mut text = String::from("~id,~label\n");
    (0..70_000).for_each(|label| text.push_str(&format!("{label},L{label}\n")));
    let labels = folder(&[("v.csv", &text)]);
    let why = with_memory(labels.path(), false, 1024).unwrap_err();
    assert!(why.contains("more than 65535 labels"), "{why}");
}

#[test]
fn long_keys_are_bad_rows() {
    let long = "k".repeat(300_000);
    let folder = folder(&[("v.csv", &format!("~id,~label\n{long},P\nb,P\n"))]);
    let limits = hoplake_ingest::source::ReadLimits { memory_bytes: Some(64 << 20), ..Default::default() };
    let dataset = open(&[folder.path().to_owned()], &SourceOptions { limits, ..Default::default() }).unwrap();
    let (rows, rejects) = skipping(&dataset);
    assert_eq!(rows["P"], ["3: b"]);
    assert!(rejects.len() == 1 && rejects[0].contains("has a key of more than 262144 bytes; raise the memory budget"));
    // In Parquet, too.
    let folder = folder_of_keys(&["b".to_owned(), long]);
    let options = SourceOptions { limits, mapping: Some(folder.path().join("map.toml")), ..Default::default() };
    let (rows, rejects) = skipping(&open(&[folder.path().to_owned()], &options).unwrap());
    assert_eq!(rows["P"], ["1: b"]);
    assert!(rejects.len() == 1 && rejects[0].contains("has a key of more than"), "{rejects:?}");
}

fn folder_of_keys(keys: &[String]) -> tempfile::TempDir {
    let folder = folder(&[("map.toml", "[[vertices]]\nfile = \"k.parquet\"\nlabel = \"P\"\nkey = \"id\"\n")]);
    let schema = Arc::new(parse_message_type("message schema { required binary id (STRING); }").unwrap());
    let file = fs::File::create(folder.path().join("k.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let keys: Vec<ByteArray> = keys.iter().map(|key| key.as_str().into()).collect();
    column.typed::<ByteArrayType>().write_batch(&keys, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    folder
}
