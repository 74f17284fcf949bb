//! Files that are not what they say: quotes that do not close, lines that do not end, archives that never do.

use hoplake_format::KeyType;
use hoplake_ingest::source::ReadLimits;

use super::*;

const NODES: &str = "~id,~label,name\n1,a,\"one\"\n2,a,\"two\n3,a,three\n4,a,four\n";

fn rejected_with(folder: &Path, limits: ReadLimits) -> String {
    let options = SourceOptions { limits, ..SourceOptions::default() };
    let scanned = open(&[folder.to_owned()], &options).and_then(|dataset| scan(&dataset, &Arc::new(BadRows::stop())));
    scanned.unwrap_err().to_string()
}

#[test]
fn a_quote_that_is_not_closed_is_an_error_with_the_line_where_it_opened() {
    let folder = folder(&[("nodes.csv", NODES)]);
    let message = rejected(&[folder.path().to_owned()]);
    assert!(message.contains("nodes.csv, line 3: a quote opens here and is not closed"), "{message}");

    // Not even a load that skips bad rows goes on.
    let folder = super::folder(&[("g.csv", "source,target\n1,2\n\"3,4\n5,6\n"), ("map.toml", "")]);
    let message = rejected(&[folder.path().join("g.csv")]);
    assert!(message.contains("g.csv, line 3: a quote opens here"), "{message}");

    let folder = super::folder(&[
        ("people.csv", "id,name\n1,a\n2,\"b\n\n3,c\n"),
        ("map.toml", "[[vertices]]\nfile = \"people.csv\"\nlabel = \"P\"\nkey = \"id\"\n"),
    ]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let bad_rows = Arc::new(BadRows::skip(file.path()).unwrap());
    let message = scan(&mapped(folder.path()).unwrap(), &bad_rows).unwrap_err().to_string();
    assert!(message.contains("people.csv, line 3: a quote opens here"), "{message}");
}

#[test]
fn text_behind_a_closing_quote_is_a_bad_row() {
    let folder = folder(&[(
        "nodes.csv",
        "~id,~label,name\n1,a,\"ab\"c\n2,a,\"a \"\"b\"\"\"\n3,a,5\" pipe\n4,a,\"x\ny\"\n5,\"a\"a,\"\"\n6,a,\"b\"\r\n7,a,\"\nc\" \n",
    )]);
    let (rows, rejects) = skipping(&opened(folder.path()));
    let lines: Vec<_> = rejects.iter().map(|reject| reject.split(',').next().unwrap()).collect();
    assert_eq!(lines, ["2", "7", "9"]);
    assert!(rejects[2].contains("has text after the quote that closes a field on line 10"), "{}", rejects[2]);
    assert_eq!(rows["a"], ["3: 2|a \"b\"", "4: 3|5\" pipe", "5: 4|x\ny", "8: 6|b"]);
}

#[test]
fn lines_that_end_with_a_carriage_return_alone_are_rejected() {
    for (name, content) in [("nodes.csv", "~id,~label\r1,a\r2,a\r"), ("g.e", "1 2\r3 4\r"), ("g.tsv", "1\t2\r3\t4")] {
        let folder = folder(&[(name, content)]);
        let message = rejected(&[folder.path().to_owned()]);
        assert!(message.contains("line 1: has a carriage return within the line"), "{message}");
    }
    let folder = folder(&[("g.e", "1 2\r\n3 4\r5 6\n7 8\r\n9 10\r")]);
    let (rows, rejects) = skipping(&opened(folder.path()));
    assert_eq!(rejects, ["2,,,has a carriage return within the line; lines end with \\n or \\r\\n"]);
    assert_eq!(rows["vertex-edge->vertex"], ["1: 1|2", "3: 7|8", "4: 9|10"]);
}

#[test]
fn a_row_of_an_edge_list_fares_the_same_wherever_it_stands() {
    for bad in ["5", "5 6 0.5 7", "5 6 heavy", "5 6\r7 8 0.5"] {
        for before in [0, 1, 31, 32, 100] {
            let content = format!("{}{bad}\n{}", "1 2 0.5\n".repeat(before), "3 4 1.5\n".repeat(101 - before));
            let folder = folder(&[("g.e", &content)]);
            let dataset = opened(folder.path());
            assert_eq!(edge_types(&dataset), ["edge: weight float64"], "{bad} behind {before}");
            let (rows, rejects) = skipping(&dataset);
            assert_eq!((rejects.len(), rows["vertex-edge->vertex"].len()), (1, 101), "{bad} behind {before}");
            assert!(rejects[0].starts_with(&format!("{},", before + 1)), "{}", rejects[0]);
        }
    }
}

#[test]
fn a_third_column_is_a_weight_or_rejected() {
    for (content, expected) in [
        ("1 2 likes\n3 4 hates\n", "a third column that is a number in 0 of 2 rows"),
        // The header is shorter than the rows.
        ("from,to\n1,2,x\n3,4,y\n", "a third column that is a number in 0 of 2 rows"),
        ("source,target,since\n1,2,2010\n", "has columns since, but none is named weight"),
        ("a,b,c,d\n1,2,3,4\n", "has columns c, d, but none is named weight"),
        ("source,target,Weight\n1,2,monday\n", "column \"Weight\" that is a number in 0 of 1 rows"),
        ("id,source,target\n7,1,2\n", "has columns id, but none is named weight"),
    ] {
        let folder = folder(&[("g.csv", content), ("README.md", "")]);
        let options = SourceOptions { layout: Some(hoplake_ingest::source::Layout::EdgeList), ..Default::default() };
        let message = open(&[folder.path().join("g.csv")], &options).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains("mapping"), "{message}");
    }
    // A line of numbers may follow names that nobody knows, and weights may be missing.
    let folder = folder(&[("g.csv", "from,weight,to\n1,0.5,2\n2,,3\n")]);
    assert_eq!(rows(&opened(folder.path()))["vertex-edge->vertex"], ["2: 1|2|0.5", "3: 2|3|"]);
}

#[test]
fn labels_that_nothing_declares_are_rejected() {
    let edges = "[[edges]]\nfile = \"e.csv\"\nlabel = \"knows\"\nsource = \"a\"\nsource_label = \"Person\"\ntarget = \"b\"\ntarget_label = \"Persn\"\n";
    let person = "[[vertices]]\nlabel = \"Person\"\n";
    let folder = folder(&[("e.csv", "a,b\n1,2\n"), ("map.toml", &format!("{person}{edges}"))]);
    let message = mapped(folder.path()).map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("vertices \"Persn\", which no [[vertices]] entry declares"), "{message}");
    fs::write(folder.path().join("map.toml"), format!("imply_labels = true\n{person}{edges}")).unwrap();
    assert_eq!(rows(&mapped(folder.path()).unwrap())["Persn"], ["2: 2"]);
}

#[test]
fn fields_rows_and_their_number_are_bounded() {
    let field = format!("~id,~label,name\n1,a,{}\n2,a,b\n", "x".repeat(5000));
    let row = format!(
        "~id,~label,{}\n1,a,{}\n2,a{}\n",
        "p,".repeat(99) + "p",
        vec!["y".repeat(90); 100].join(","),
        ",".repeat(100)
    );
    let quoted = format!("~id,~label,name\n1,a,\"{}\n2,a,b\n", "x\n".repeat(9000));
    let fields = format!("1,2\n3,4{}\n", ",".repeat(70_000));
    let limits = ReadLimits { field_bytes_max: 4000, row_bytes_max: 8000, ..ReadLimits::default() };
    for (name, content, expected) in [
        ("nodes.csv", &field, "line 2: has a field of more than 4000 bytes; raise field_bytes_max"),
        ("nodes.csv", &row, "line 2: has a row of more than 8000 bytes; raise row_bytes_max"),
        ("nodes.csv", &quoted, "line 2: a quote opens here and is not closed"),
        ("g.edges", &fields, "line 2: has more than 65536 fields"),
    ] {
        let folder = folder(&[(name, content)]);
        let limits = if name == "g.edges" { ReadLimits::default() } else { limits };
        let message = rejected_with(folder.path(), limits);
        assert!(message.contains(expected), "{message}");
    }
    let long = format!("1 2\n3 4{}\n5 6\n", " ".repeat(9000));
    let folder = folder(&[("g.e", &long)]);
    let message = rejected_with(folder.path(), limits);
    assert!(message.contains("line 2: has a row of more than 8000 bytes; raise row_bytes_max"), "{message}");
    // The budget of memory bounds rows, too, and skipping goes on behind them.
    let limits = ReadLimits { memory_bytes: Some(64_000), ..ReadLimits::default() };
    let options = SourceOptions { limits, key_type: Some(KeyType::Int64), ..SourceOptions::default() };
    let (rows, rejects) = skipping(&open(&[folder.path().to_owned()], &options).unwrap());
    assert_eq!(rejects, ["2,,,has a row of more than 4000 bytes; raise the memory budget"]);
    assert_eq!(rows["vertex-edge->vertex"], ["1: 1|2", "3: 5|6"]);
}

#[test]
fn an_archive_that_becomes_far_larger_is_rejected() {
    let line = "1 2\n".repeat(1 << 20);
    let compress = |path: &Path| {
        let file = fs::File::create(path).unwrap();
        if path.extension().unwrap() == "zst" {
            let mut writer = zstd::Encoder::new(file, 3).unwrap();
            (0..32).for_each(|_| std::io::Write::write_all(&mut writer, line.as_bytes()).unwrap());
            writer.finish().unwrap();
        } else {
            let mut writer = flate2::write::GzEncoder::new(file, flate2::Compression::best());
            (0..32).for_each(|_| std::io::Write::write_all(&mut writer, line.as_bytes()).unwrap());
            writer.finish().unwrap();
        }
    };
    for name in ["g.e.gz", "g.e.zst"] {
        let folder = tempfile::tempdir().unwrap();
        compress(&folder.path().join(name));
        let limits = ReadLimits { decompression_ratio_max: 100, ..ReadLimits::default() };
        let message = rejected_with(folder.path(), limits);
        assert!(message.contains(name) && message.contains("raise decompression_ratio_max"), "{message}");
    }
}
