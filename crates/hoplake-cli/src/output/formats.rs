//! Writers of rows: a table, JSON lines, CSV and Parquet.

use std::{io::Write, sync::Arc};

use arrow_array::{Array, RecordBatch, StringArray, cast::AsArray};
use arrow_json::{Encoder, EncoderFactory, EncoderOptions, writer::NullableEncoder};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use hoplake::{Value, changes::plain_json};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use super::{Format, OutputArgs, Sink, rows, tables::table};

/// Writes batches as asked. In JSON each batch keeps its own columns; elsewhere all get the same.
/// `empty` has the columns of a result without rows.
pub fn write(output: &OutputArgs, batches: &[RecordBatch], empty: RecordBatch) -> anyhow::Result<()> {
    let empty = [empty];
    // A result without rows still has a header in CSV, and columns in Parquet.
    let batches = if batches.is_empty() { &empty } else { batches };
    let mut sink = output.open()?;
    match output.format() {
        Format::Json => write_json(batches, &mut sink)?,
        Format::Table => write_table(&rows::align(batches)?, &mut sink)?,
        Format::Csv => write_csv(&rows::align(batches)?, &mut sink)?,
        Format::Parquet => write_parquet(&rows::align(batches)?, &mut sink)?,
    }
    Ok(sink.flush()?)
}

fn write_json(batches: &[RecordBatch], sink: &mut Sink) -> anyhow::Result<()> {
    for batch in batches {
        // Every line has every field, so that a reader need not ask whether one is there.
        let builder = arrow_json::WriterBuilder::new().with_explicit_nulls(true);
        let builder = builder.with_encoder_factory(Arc::new(PlainValues));
        let mut writer = builder.build::<_, arrow_json::writer::LineDelimited>(&mut *sink);
        writer.write(batch)?;
        writer.finish()?;
    }
    Ok(())
}

/// Writes values that JSON cannot represent in the form that `hoplake apply` reads: Arrow's writer has null for NaN,
/// and years of its own.
#[derive(Debug)]
struct PlainValues;

impl EncoderFactory for PlainValues {
    fn make_default_encoder<'a>(
        &self,
        _field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let ours = matches!(array.data_type(), DataType::Float64 | DataType::Date32 | DataType::Timestamp(..));
        Ok(ours.then(|| NullableEncoder::new(Box::new(PlainColumn(array)), array.nulls().cloned())))
    }
}

struct PlainColumn<'a>(&'a dyn Array);

impl Encoder for PlainColumn<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(plain_json(&Value::at(self.0, row)).to_string().as_bytes());
    }
}

fn write_csv(batches: &[RecordBatch], sink: &mut Sink) -> anyhow::Result<()> {
    let schema = batches[0].schema();
    let header: Vec<_> = schema.fields().iter().map(|field| csv_header(field)).collect();
    write_record(header.iter().map(|name| Some(name.as_str())), sink)?;
    for batch in batches {
        let columns: Vec<_> = batch.columns().iter().map(rows::as_text).collect();
        let columns: Vec<_> = columns.iter().map(|column| column.as_string::<i32>()).collect();
        for row in 0..batch.num_rows() {
            write_record(columns.iter().map(|column| column.is_valid(row).then(|| column.value(row))), sink)?;
        }
    }
    Ok(())
}

/// The header of a column. A header can have a type after a colon, so a name that contains a colon always gets its
/// type.
fn csv_header(field: &Field) -> String {
    let name = field.name();
    match name.contains(':') {
        true => format!("{name}:{}", type_name(field.data_type())),
        false => name.clone(),
    }
}

fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Boolean => "bool".into(),
        DataType::Int64 => "int64".into(),
        DataType::Float64 => "float64".into(),
        DataType::Date32 => "date".into(),
        DataType::Timestamp(..) => "timestamp".into(),
        DataType::List(item) => format!("{}[]", type_name(item.data_type())),
        _ => "string".into(),
    }
}

/// Writes a record; text that is empty stands in quotes, null does not.
fn write_record<'a>(cells: impl Iterator<Item = Option<&'a str>>, sink: &mut Sink) -> anyhow::Result<()> {
    for (column, cell) in cells.enumerate() {
        if column > 0 {
            sink.write_all(b",")?;
        }
        match cell {
            None => {}
            Some(text) if text.is_empty() || text.contains(['"', ',', '\n', '\r']) || text.trim() != text => {
                write!(sink, "\"{}\"", text.replace('"', "\"\""))?;
            }
            Some(text) => sink.write_all(text.as_bytes())?,
        }
    }
    Ok(sink.write_all(b"\n")?)
}

fn write_parquet(batches: &[RecordBatch], sink: &mut Sink) -> anyhow::Result<()> {
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = ArrowWriter::try_new(sink, batches[0].schema(), Some(properties))?;
    for batch in batches {
        writer.write(batch)?;
    }
    writer.close()?;
    Ok(())
}

fn write_table(batches: &[RecordBatch], sink: &mut Sink) -> anyhow::Result<()> {
    let schema = batches[0].schema();
    let header: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let numbers = schema.fields().iter().enumerate().filter(|(_, field)| field.data_type().is_numeric());
    let mut text = table(&header, &numbers.map(|(column, _)| column).collect::<Vec<_>>());
    for batch in batches {
        let columns: Vec<_> = batch.columns().iter().map(rows::as_text).collect();
        let columns: Vec<_> = columns.iter().map(|column| column.as_string::<i32>()).collect();
        for row in 0..batch.num_rows() {
            let cell = |column: &&StringArray| if column.is_valid(row) { column.value(row) } else { "" }.to_owned();
            text.add_row(columns.iter().map(cell));
        }
    }
    Ok(writeln!(sink, "{text}")?)
}
