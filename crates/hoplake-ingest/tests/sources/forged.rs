//! Parquet files whose bytes were changed and whose headers were forged, by the thousands. Whatever they say, reading
//! them ends with rows or with an error that names the file, and never takes memory by what they claim: they are read
//! in a child process whose address space is bounded, where an allocation of a claimed size is the end of it.

use std::{fmt::Write, process::Command};

use arrow_array::{
    BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float64Array, Int8Array, Int64Array, RecordBatch,
    StringArray, TimestampMillisecondArray, UInt32Array,
    builder::{Int64Builder, ListBuilder, StringBuilder},
};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, Encoding, ZstdLevel},
    file::{
        metadata::{ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter},
        properties::{WriterProperties, WriterVersion},
    },
    schema::types::ColumnPath,
};

use super::*;

const ROWS: i64 = 200;
/// What the test itself takes, its threads' stacks and arenas included, is a tenth of it.
const ADDRESS_SPACE_KIB: u64 = 1 << 20;

fn columns() -> Vec<(&'static str, ArrayRef)> {
    let some = |row: i64| (row % 7 != 3).then_some(row);
    let rows = || (0..ROWS).map(some);
    let mut numbers = ListBuilder::new(Int64Builder::new());
    let mut words = ListBuilder::new(StringBuilder::new());
    for row in 0..ROWS {
        (0..row % 5).for_each(|item| numbers.values().append_option(some(row * item)));
        (0..row % 3).for_each(|item| words.values().append_value(format!("word {item}")));
        numbers.append(row % 7 != 3);
        words.append(row % 5 != 3);
    }
    let uuids = (0..ROWS).map(|row| Some([row as u8; 16]));
    vec![
        ("bool", Arc::new(rows().map(|row| row.map(|row| row % 2 == 0)).collect::<BooleanArray>()) as ArrayRef),
        ("int8", Arc::new(rows().map(|row| row.map(|row| row as i8)).collect::<Int8Array>())),
        ("uint32", Arc::new(rows().map(|row| row.map(|row| row as u32 * 77_777)).collect::<UInt32Array>())),
        ("int64", Arc::new(rows().map(|row| row.map(|row| row << 30)).collect::<Int64Array>())),
        ("float64", Arc::new(rows().map(|row| row.map(|row| row as f64 / 3.0)).collect::<Float64Array>())),
        (
            "text",
            Arc::new(rows().map(|row| row.map(|row| format!("common beginning {}", row / 3))).collect::<StringArray>()),
        ),
        ("date", Arc::new(rows().map(|row| row.map(|row| row as i32 * 1000)).collect::<Date32Array>())),
        ("moment", Arc::new(rows().map(|row| row.map(|row| row << 35)).collect::<TimestampMillisecondArray>())),
        (
            "decimal",
            Arc::new((0..ROWS).map(i128::from).collect::<Decimal128Array>().with_precision_and_scale(20, 3).unwrap()),
        ),
        ("bytes", Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuids, 16).unwrap())),
        ("numbers", Arc::new(numbers.finish())),
        ("words", Arc::new(words.finish())),
    ]
}

/// How files are written: every encoding, codec and version of pages.
fn properties() -> Vec<WriterProperties> {
    let text = || ColumnPath::from("text");
    let base = || WriterProperties::builder().set_data_page_row_count_limit(60).set_write_batch_size(20);
    vec![
        base().set_compression(Compression::UNCOMPRESSED).build(),
        base().set_compression(Compression::SNAPPY).set_writer_version(WriterVersion::PARQUET_2_0).build(),
        base().set_compression(Compression::ZSTD(ZstdLevel::default())).set_dictionary_enabled(false).build(),
        base()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_dictionary_enabled(false)
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .build(),
        base()
            .set_compression(Compression::UNCOMPRESSED)
            .set_dictionary_enabled(false)
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .build(),
        base()
            .set_compression(Compression::UNCOMPRESSED)
            .set_dictionary_enabled(false)
            .set_column_encoding(text(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
            .set_column_encoding(ColumnPath::from("int64"), Encoding::BYTE_STREAM_SPLIT)
            .build(),
    ]
}

fn written(columns: &[(&str, ArrayRef)], properties: WriterProperties) -> Vec<u8> {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let columns = std::iter::once(("id", keys)).chain(columns.iter().map(|(name, column)| (*name, column.clone())));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// Reads a file as vertices. The error's message, or nothing if all rows could be read.
fn read(folder: &Path, bytes: &[u8]) -> Option<String> {
    fs::write(folder.join("p.parquet"), bytes).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let bad_rows = Arc::new(BadRows::skip(file.path()).unwrap());
    mapped(folder).and_then(|dataset| scan(&dataset, &bad_rows)).err().map(|error| error.to_string())
}

/// A column of a type that no property has.
const IGNORED: &str = "ignore = [\"bytes\"]\n";

fn folder_with_mapping(more: &str) -> tempfile::TempDir {
    folder(&[("map.toml", &format!("[[vertices]]\nfile = \"p.parquet\"\nlabel = \"P\"\nkey = \"id\"\n{more}"))])
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn varint(mut value: u64, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// A structure of Thrift with its `nth` integer replaced, and how many bytes of `from` it took.
fn forge(from: &[u8], nth: &mut i64, value: u64, to: &mut Vec<u8>) -> usize {
    let mut at = 0;
    loop {
        let head = from[at];
        at += 1;
        to.push(head);
        match (head, head & 0x0f) {
            (0, _) => return at,
            (_, 1 | 2) => {}
            (_, 5 | 6) => {
                let length = from[at..].iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
                if *nth == 0 {
                    varint(value, to)
                } else {
                    to.extend_from_slice(&from[at..at + length])
                }
                *nth -= 1;
                at += length;
            }
            (_, 8) => {
                let length = usize::from(from[at]) + 1;
                assert!(length < 0x80);
                to.extend_from_slice(&from[at..at + length]);
                at += length;
            }
            (_, 12) => at += forge(&from[at..], nth, value, to),
            other => panic!("{other:?}"),
        }
    }
}

/// The file with one header of a page forged, and its footer made to fit.
fn with_forged_header(bytes: &[u8], metadata: &ParquetMetaData, column: usize, nth: i64, value: u64) -> Vec<u8> {
    let chunk = metadata.row_group(0).column(column);
    let (start, length) = chunk.byte_range();
    let end = (start + length) as usize;
    let start = start as usize;
    let mut forged = bytes[..start].to_vec();
    let taken = forge(&bytes[start..end], &mut { nth }, value, &mut forged);
    let grown = forged.len() as i64 - (start + taken) as i64;
    forged.extend_from_slice(&bytes[start + taken..end]);
    let chunk = chunk.clone().into_builder();
    let of_chunk = metadata.row_group(0).column(column);
    let chunk = chunk.set_total_compressed_size(of_chunk.compressed_size() + grown).set_data_page_offset(
        of_chunk.data_page_offset() + if of_chunk.dictionary_page_offset().is_some() { grown } else { 0 },
    );
    let mut group = metadata.row_group(0).clone().into_builder();
    let mut columns = group.take_columns();
    columns[column] = chunk.build().unwrap();
    // Those behind would lie elsewhere: the forged column is the last.
    columns.truncate(column + 1);
    let group = group.set_column_metadata(columns).build().unwrap();
    let metadata = metadata.clone().into_builder().set_row_groups(vec![group]).set_page_index(None).build();
    ParquetMetaDataWriter::new(&mut forged, &metadata).finish().unwrap();
    forged
}

/// Runs a test of this file in a process of its own, whose address space is bounded.
fn in_bounded_child(test: &str) {
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KIB}; exec \"$@\""), "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .env("MALLOC_ARENA_MAX", "2")
        .output()
        .unwrap();
    let mut told = String::from_utf8_lossy(&output.stderr).into_owned();
    write!(told, "{}", String::from_utf8_lossy(&output.stdout)).unwrap();
    let tail: String = told.chars().skip(told.chars().count().saturating_sub(3000)).collect();
    assert!(output.status.success() && told.contains("1 passed"), "{:?}: {tail}", output.status);
}

#[test]
fn forged_headers_of_pages_are_rejected() {
    in_bounded_child("forged::forged_headers");
}

#[test]
#[ignore = "runs in a child process"]
fn forged_headers() {
    let folder = folder_with_mapping("");
    let values = [i32::MAX, i32::MAX - 7, 1 << 30, 1 << 24, -1, i32::MIN, 201, 100_000].map(|value| {
        let value = i64::from(value);
        ((value << 1) ^ (value >> 63)) as u64
    });
    let mut rejected = 0;
    for properties in properties() {
        for column in columns().into_iter().filter(|(name, _)| *name != "bytes") {
            let bytes = written(std::slice::from_ref(&column), properties.clone());
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(bytes.clone())).unwrap();
            assert_eq!(read(folder.path(), &bytes), None, "{}", column.0);
            for (nth, value) in
                (0..10).flat_map(|nth| values.into_iter().chain([u64::MAX]).map(move |value| (nth, value)))
            {
                let forged = with_forged_header(&bytes, &metadata, 1, nth, value);
                if let Some(message) = read(folder.path(), &forged) {
                    assert!(message.contains("p.parquet: is not a Parquet file that can be read: "), "{message}");
                    rejected += 1;
                }
            }
        }
    }
    assert!(rejected > 2_000, "{rejected}");
}

#[test]
fn files_with_changed_bytes_are_read_or_rejected() {
    in_bounded_child("forged::changed_bytes");
}

#[test]
#[ignore = "runs in a child process"]
fn changed_bytes() {
    let folder = folder_with_mapping(IGNORED);
    let mut rejected = 0;
    for (number, properties) in properties().into_iter().enumerate() {
        let bytes = written(&columns(), properties);
        assert_eq!(read(folder.path(), &bytes), None);
        let mut dice = Dice(number as u64 + 1);
        let footer =
            bytes.len() - 8 - u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
        for round in 0..400 {
            let mut changed = bytes.clone();
            // Half of them in the footer, where most numbers are.
            let range = if round % 2 == 0 { footer..bytes.len() } else { 4..footer };
            for _ in 0..=dice.below(3) {
                let at = range.start + dice.below(range.len());
                match dice.below(3) {
                    0 => changed[at] ^= 1 << dice.below(8),
                    1 => changed[at] = dice.below(256) as u8,
                    // A number of many bytes where a small one was.
                    _ => (0..4).zip(&mut changed[at..]).for_each(|(_, byte)| *byte |= 0x80),
                }
            }
            if let Some(message) = read(folder.path(), &changed) {
                let named = message.contains("p.parquet") || message.contains("map.toml");
                assert!(named && !message.contains("panicked"), "{message}");
                rejected += 1;
            }
        }
    }
    assert!(rejected > 500, "{rejected}");
}

#[test]
fn footers_that_lie_are_rejected() {
    let folder = folder_with_mapping(IGNORED);
    let bytes = written(&columns(), WriterProperties::builder().build());
    let end = bytes.len() - 8;
    let with_length = |length: u32| [&bytes[..end], &length.to_le_bytes(), b"PAR1"].concat();
    for (bytes, expected) in [
        (bytes[..6].to_vec(), "shorter than a footer"),
        (bytes[..end].to_vec(), "does not end as Parquet files do"),
        (with_length(u32::MAX), "would be longer than the file"),
        (with_length(3), "is not a Parquet file that can be read: "),
    ] {
        let message = read(folder.path(), &bytes).unwrap();
        assert!(message.contains(expected), "{message}");
    }
}

/// Pages that end early do not end the rows. Sums of what row groups claim may pass the numbers that count them.
#[test]
fn rows_that_no_page_holds_are_rejected() {
    let folder = folder_with_mapping("");
    let bytes = written(&columns()[..1], WriterProperties::builder().build());
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(bytes.clone())).unwrap();
    let group = metadata.row_group(0);
    let of_rows = |rows: i64| {
        let columns = group.columns().iter().map(|column| column.clone().into_builder().set_num_values(rows));
        let columns = columns.map(|column| column.build().unwrap()).collect();
        let group = group.clone().into_builder().set_num_rows(rows).set_total_byte_size(i64::MAX);
        group.set_column_metadata(columns).build().unwrap()
    };
    let number = |rows: i64| {
        let mut bytes = Vec::new();
        varint((rows as u64) << 1, &mut bytes);
        bytes
    };
    // The writer adds rows up itself: it gets numbers that it can add, and others as long take their places.
    let addable = (1 << 61) + 1;
    let forged = (1 << 62) - 1;
    for groups in [vec![of_rows(ROWS + 1)], vec![of_rows(1 << 60)], vec![of_rows(addable); 3]] {
        let claims = metadata.clone().into_builder().set_row_groups(groups).set_page_index(None).build();
        let mut file = bytes.clone();
        ParquetMetaDataWriter::new(&mut file, &claims).finish().unwrap();
        let from = number(addable);
        let to = number(forged);
        while let Some(at) = file.windows(from.len()).position(|bytes| bytes == from) {
            file[at..at + to.len()].copy_from_slice(&to);
        }
        // A sum that passes its number would panic here.
        let message = read(folder.path(), &file).unwrap();
        assert!(message.contains("is not a Parquet file that can be read: "), "{message}");
        assert!(message.contains("rows that its footer promises are not in its pages"), "{message}");
    }
}
