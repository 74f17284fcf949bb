//! Small files of Parquet in every encoding and codec, for seeds.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    builder::{ListBuilder, StringBuilder},
};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, Encoding, ZstdLevel},
    file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion},
    schema::types::ColumnPath,
};

const ROWS: i64 = 12;

fn columns() -> Vec<(&'static str, ArrayRef)> {
    let some = |row: i64| (row % 5 != 3).then_some(row);
    let mut words = ListBuilder::new(StringBuilder::new());
    for row in 0..ROWS {
        (0..row % 3).for_each(|item| words.values().append_value(format!("word {item}")));
        words.append(row % 5 != 3);
    }
    vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..ROWS)) as ArrayRef),
        ("other", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| (row * 7) % ROWS)))),
        ("float", Arc::new((0..ROWS).map(|row| some(row).map(|row| row as f64)).collect::<Float64Array>())),
        ("flag", Arc::new((0..ROWS).map(|row| some(row).map(|row| row % 2 == 0)).collect::<BooleanArray>())),
        ("text", Arc::new((0..ROWS).map(|row| some(row).map(|row| format!("text {row}"))).collect::<StringArray>())),
        ("words", Arc::new(words.finish())),
    ]
}

fn properties() -> Vec<WriterProperties> {
    let base = || WriterProperties::builder().set_data_page_row_count_limit(8).set_write_batch_size(4);
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let plain = |it: WriterPropertiesBuilder| it.set_dictionary_enabled(false);
    let v2 = |it: WriterPropertiesBuilder| it.set_writer_version(WriterVersion::PARQUET_2_0);
    let column = ColumnPath::from;
    vec![
        base().set_compression(Compression::UNCOMPRESSED).build(),
        v2(base()).set_compression(Compression::SNAPPY).build(),
        plain(base()).set_compression(zstd).build(),
        v2(plain(base())).set_compression(zstd).build(),
        v2(plain(base())).set_compression(Compression::UNCOMPRESSED).build(),
        plain(base())
            .set_compression(Compression::UNCOMPRESSED)
            .set_column_encoding(column("text"), Encoding::DELTA_LENGTH_BYTE_ARRAY)
            .set_column_encoding(column("float"), Encoding::BYTE_STREAM_SPLIT)
            .set_column_encoding(column("other"), Encoding::DELTA_BINARY_PACKED)
            .build(),
    ]
}

/// The same rows written in six ways; and each of the columns alone, as smaller files are forged faster.
pub fn parquet() -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for properties in properties() {
        files.push(written(&columns(), properties.clone()));
        files.extend(columns()[2..].iter().map(|column| {
            let with_key = [columns()[0].clone(), column.clone()];
            written(&with_key, properties.clone())
        }));
    }
    files
}

fn written(columns: &[(&'static str, ArrayRef)], properties: WriterProperties) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, column)| {
        let nullable = !matches!(*name, "id" | "other");
        (*name, column.clone(), nullable)
    }));
    let batch = batch.expect("columns have as many rows");
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("types can be written");
    writer.write(&batch).expect("memory takes all");
    writer.close().expect("memory takes all");
    bytes
}
