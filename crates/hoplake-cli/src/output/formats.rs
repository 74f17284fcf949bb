//! Writers of rows: a table, JSON lines, CSV and Parquet.

use std::{io::Write, sync::Arc};

use arrow_array::{Array, RecordBatch, StringArray, cast::AsArray};
use arrow_json::{Encoder, EncoderFactory, EncoderOptions, writer::NullableEncoder};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use hoplake::{
    Value,
    changes::plain_json,
    tables::{as_text, fit, schema_of_all},
};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use super::{Format, OutputArgs, Sink, tables::table};

/// Writes batches as asked. In JSON each batch keeps its own columns; elsewhere all get the same.
/// `empty` has the columns of a result without rows.
pub fn write(output: &OutputArgs, batches: &[RecordBatch], empty: RecordBatch) -> anyhow::Result<()> {
    // A result without rows still has a header in CSV, and columns in Parquet.
    let schema = if batches.is_empty() { empty.schema() } else { schema_of_all(batches) };
    let mut writer = RowWriter::new(output, schema)?;
    batches.iter().try_for_each(|batch| writer.write(batch))?;
    writer.finish()
}

/// Writes rows as they come. A table is for people, and fits its columns to all of its rows, so it is written at the end.
pub struct RowWriter {
    schema: SchemaRef,
    form: FormatWriter,
}

/// The writer of one output format.
enum FormatWriter {
    Json(Sink),
    Csv(Sink),
    Parquet(Box<ArrowWriter<Sink>>),
    /// And the width that it has to fit.
    Table(Sink, Vec<RecordBatch>, Option<u16>),
}

impl RowWriter {
    /// Opens the destination. `schema` has the columns of all rows, those that some lack as nullable.
    pub fn new(output: &OutputArgs, schema: SchemaRef) -> anyhow::Result<Self> {
        let sink = output.open()?;
        let form = match output.format() {
            Format::Json => FormatWriter::Json(sink),
            Format::Table => FormatWriter::Table(sink, Vec::new(), output.table_width()),
            Format::Csv => {
                let mut sink = sink;
                let header: Vec<_> = schema.fields().iter().map(|field| csv_header(field)).collect();
                writeln!(sink, "{}", header.join(","))?;
                FormatWriter::Csv(sink)
            }
            Format::Parquet => {
                let compression = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder().set_compression(compression).build();
                FormatWriter::Parquet(Box::new(ArrowWriter::try_new(sink, schema.clone(), Some(properties))?))
            }
        };
        Ok(Self { schema, form })
    }

    /// Writes some rows.
    pub fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        match &mut self.form {
            FormatWriter::Json(sink) => write_json(batch, sink),
            FormatWriter::Csv(sink) => write_csv(&fit(batch, &self.schema)?, sink),
            FormatWriter::Parquet(writer) => Ok(writer.write(&fit(batch, &self.schema)?)?),
            FormatWriter::Table(_, batches, _) => {
                batches.push(fit(batch, &self.schema)?);
                Ok(())
            }
        }
    }

    /// Writes what is left.
    pub fn finish(self) -> anyhow::Result<()> {
        match self.form {
            FormatWriter::Json(mut sink) | FormatWriter::Csv(mut sink) => Ok(sink.flush()?),
            FormatWriter::Parquet(writer) => Ok(writer.into_inner()?.flush()?),
            FormatWriter::Table(mut sink, batches, width) => {
                write_table(&self.schema, &batches, width, &mut sink)?;
                Ok(sink.flush()?)
            }
        }
    }
}

fn write_json(batch: &RecordBatch, sink: &mut Sink) -> anyhow::Result<()> {
    // Every line has every field, so that a reader need not ask whether one is there.
    let builder = arrow_json::WriterBuilder::new().with_explicit_nulls(true);
    let builder = builder.with_encoder_factory(Arc::new(PlainValues));
    let mut writer = builder.build::<_, arrow_json::writer::LineDelimited>(&mut *sink);
    writer.write(batch)?;
    Ok(writer.finish()?)
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

fn write_csv(batch: &RecordBatch, sink: &mut Sink) -> anyhow::Result<()> {
    let columns: Vec<_> = batch.columns().iter().map(as_text).collect();
    let columns: Vec<_> = columns.iter().map(|column| column.as_string::<i32>()).collect();
    for row in 0..batch.num_rows() {
        write_record(columns.iter().map(|column| column.is_valid(row).then(|| column.value(row))), sink)?;
    }
    Ok(())
}

/// The header of a column. A header can have a type after a colon, so a name that contains a colon always gets its
/// type. White space at the ends of a name is a part of it only within quotes.
fn csv_header(field: &Field) -> String {
    let name = field.name();
    let header = match name.contains(':') {
        true => format!("{name}:{}", type_name(field.data_type())),
        false => name.clone(),
    };
    if is_plain(&header) && name.trim() == name { header } else { quoted(&header) }
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

/// Whether text needs no quotes.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains(['"', ',', '\n', '\r']) && text.trim() == text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Writes a record; text that is empty stands in quotes, null does not.
fn write_record<'a>(cells: impl Iterator<Item = Option<&'a str>>, sink: &mut Sink) -> anyhow::Result<()> {
    for (column, cell) in cells.enumerate() {
        if column > 0 {
            sink.write_all(b",")?;
        }
        match cell {
            None => {}
            Some(text) if is_plain(text) => sink.write_all(text.as_bytes())?,
            Some(text) => write!(sink, "{}", quoted(text))?,
        }
    }
    Ok(sink.write_all(b"\n")?)
}

fn write_table(schema: &Schema, batches: &[RecordBatch], width: Option<u16>, sink: &mut Sink) -> anyhow::Result<()> {
    let header: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let numbers = schema.fields().iter().enumerate().filter(|(_, field)| field.data_type().is_numeric());
    let mut text = table(&header, &numbers.map(|(column, _)| column).collect::<Vec<_>>());
    for batch in batches {
        let columns: Vec<_> = batch.columns().iter().map(as_text).collect();
        let columns: Vec<_> = columns.iter().map(|column| column.as_string::<i32>()).collect();
        for row in 0..batch.num_rows() {
            let cell = |column: &&StringArray| if column.is_valid(row) { column.value(row) } else { "" }.to_owned();
            text.add_row(columns.iter().map(cell));
        }
    }
    Ok(writeln!(sink, "{}", text.fitted(width))?)
}
