//! Writers of rows: a table, JSON lines, CSV and Parquet.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
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
        let mut writer = builder.build::<_, arrow_json::writer::LineDelimited>(&mut *sink);
        writer.write(batch)?;
        writer.finish()?;
    }
    Ok(())
}

fn write_csv(batches: &[RecordBatch], sink: &mut Sink) -> anyhow::Result<()> {
    let mut writer = arrow_csv::WriterBuilder::new().with_header(true).build(sink);
    for batch in batches {
        writer.write(&lists_as_text(batch)?)?;
    }
    Ok(())
}

/// CSV has no lists: they are written as the table shows them.
fn lists_as_text(batch: &RecordBatch) -> anyhow::Result<RecordBatch> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
        let text = matches!(field.data_type(), DataType::List(_));
        let column = if text { rows::as_text(column)? } else { column.clone() };
        Ok((field.name(), column, true))
    });
    Ok(RecordBatch::try_from_iter_with_nullable(columns.collect::<anyhow::Result<Vec<_>>>()?)?)
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
    let options = FormatOptions::default();
    for batch in batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            text.add_row(columns.iter().map(|column| column.value(row).to_string()));
        }
    }
    Ok(writeln!(sink, "{text}")?)
}
