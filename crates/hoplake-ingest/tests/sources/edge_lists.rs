//! Edge lists as text and Parquet.

use arrow_array::{ArrayRef, Float32Array, Int32Array, RecordBatch, StringArray, UInt64Array};

use super::*;

pub(crate) fn write_parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)));
    let batch = batch.unwrap();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn snap_text_with_comments_and_gzip() {
    let folder = tempfile::tempdir().unwrap();
    let file = fs::File::create(folder.path().join("web.txt.gz")).unwrap();
    let mut writer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    std::io::Write::write_all(&mut writer, b"# FromNodeId\tToNodeId\r\n30\t1412\r\n30\t3352").unwrap();
    writer.finish().unwrap();
    let dataset = opened(folder.path());
    assert_eq!((vertex_types(&dataset), edge_types(&dataset)), (vec!["vertex[int64]: ".into()], vec!["edge: ".into()]));
    assert!(dataset.vertex_tables[0].implied);
    let rows = rows(&dataset);
    assert_eq!(rows["vertex-edge->vertex"], ["2: 30|1412", "3: 30|3352"]);
    assert_eq!(rows["vertex"], ["2: 30", "3: 30", "2: 1412", "3: 3352"]);
}

#[test]
fn weights_headers_and_text_ids() {
    for (name, content, types, expected) in [
        ("a.csv", "src,dst,weight\n1,2,0.5\n2,1,\n", "vertex[int64]: ", vec!["2: 1|2|0.5", "3: 2|1|"]),
        ("a.e", "1 2 8\n1  3\t9\n", "vertex[int64]: ", vec!["1: 1|2|8.0", "2: 1|3|9.0"]),
        ("a.tsv", "alice\tbob\nbob\tcarol\n", "vertex[string]: ", vec!["1: alice|bob", "2: bob|carol"]),
        ("a.csv", "id_1,id_2\n0,23977\n", "vertex[int64]: ", vec!["2: 0|23977"]),
        ("a.edges", "% sym\n1 2 1 1082040961\n", "vertex[int64]: ", vec!["2: 1|2|1.0"]),
    ] {
        let folder = folder(&[(name, content)]);
        let dataset = opened(folder.path());
        assert_eq!(vertex_types(&dataset), [types], "{content}");
        assert_eq!(rows(&dataset)["vertex-edge->vertex"], expected);
    }
}

#[test]
fn a_vertex_file_lists_the_vertices() {
    let folder = folder(&[("g.v", "1 7\n2\n3\n"), ("g.e", "1 2\n")]);
    let dataset = opened(folder.path());
    assert!(!dataset.vertex_tables[0].implied);
    assert_eq!(rows(&dataset)["vertex"], ["1: 1", "2: 2", "3: 3"]);
}

#[test]
fn parquet_without_a_mapping() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edges.parquet");
    write_parquet(
        &path,
        vec![
            ("weight", Arc::new(Float32Array::from(vec![0.5, 1.5])) as ArrayRef),
            ("dst", Arc::new(Int32Array::from(vec![2, 3]))),
            ("src", Arc::new(UInt64Array::from(vec![1, 2]))),
        ],
    );
    let found = rows(&opened(folder.path()));
    assert_eq!(found["vertex-edge->vertex"], ["1: 1|2|0.5", "2: 2|3|1.5"]);
    assert_eq!(found["vertex"], ["1: 1", "2: 2", "1: 2", "2: 3"]);

    write_parquet(&path, vec![("a", Arc::new(StringArray::from(vec!["x"])) as ArrayRef)]);
    assert!(rejected(&[folder.path().to_owned()]).contains("[[vertices]]"));
}

#[test]
fn what_is_no_graph_is_rejected_with_advice() {
    let table = folder(&[("people.csv", "name,city\nBob,Paris\n")]);
    let prose = folder(&[("README.txt", "Read me.\nThis is not a graph at all, is it?\n")]);
    let empty = folder(&[("people.csv", "")]);
    for folder in [&table, &prose, &empty] {
        let message = rejected(&[folder.path().to_owned()]);
        assert!(message.contains("not recognised") && message.contains("[[edges]]"), "{message}");
    }
    let nothing = tempfile::tempdir().unwrap();
    assert!(rejected(&[nothing.path().to_owned()]).contains("there are no files"));
    assert!(rejected(&[nothing.path().join("absent")]).contains("could not read"));
}
