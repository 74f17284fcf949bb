//! Differences in files: JSON Lines for people and scripts, Parquet for what reads many.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use serde::Serialize;
use serde_json::Value as Json;

use super::difference::{Difference, DifferenceKind};
use crate::{FeedError, apply::element::properties_to_json};

/// Rows of Parquet that are written at a time.
const ROWS: usize = 8_192;

const COLUMNS: [&str; 6] = ["difference", "element", "label", "name", "tables", "graph"];

/// A line of JSON, in this order.
#[derive(Serialize)]
struct Line<'a> {
    difference: &'a str,
    element: &'a str,
    label: &'a str,
    name: &'a str,
    tables: &'a Option<Json>,
    graph: &'a Option<Json>,
}

/// The files of a report.
pub(super) struct Report {
    folder: PathBuf,
    lines: BufWriter<File>,
    parquet: ArrowWriter<File>,
    schema: Arc<Schema>,
    rows: Vec<[Option<String>; 6]>,
}

impl Report {
    pub(super) fn begin(folder: &Path) -> Result<Self, FeedError> {
        let failed = |error: std::io::Error| not_written(folder, &hoplake::system_text(&error));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let lines = BufWriter::new(File::create(folder.join("differences.jsonl")).map_err(failed)?);
        let file = File::create(folder.join("differences.parquet")).map_err(failed)?;
        let schema = Arc::new(Schema::new(COLUMNS.map(|name| Field::new(name, DataType::Utf8, true)).to_vec()));
        let parquet = ArrowWriter::try_new(file, schema.clone(), None)
            .map_err(|error| not_written(folder, &error.to_string()))?;
        Ok(Self { folder: folder.to_owned(), lines, parquet, schema, rows: Vec::new() })
    }

    pub(super) fn add(&mut self, difference: &Difference) -> Result<(), FeedError> {
        let Difference { kind, element, in_tables, in_graph } = difference;
        let kind = match kind {
            DifferenceKind::Missing => "missing",
            DifferenceKind::LeftOver => "left over",
            DifferenceKind::Different => "different",
        };
        let tables = in_tables.as_ref().map(properties_to_json);
        let graph = in_graph.as_ref().map(properties_to_json);
        let label = element.label().to_string();
        let name = element.to_string();
        let line = Line {
            difference: kind,
            element: element.kind(),
            label: &label,
            name: &name,
            tables: &tables,
            graph: &graph,
        };
        let line = serde_json::to_string(&line).map_err(|error| not_written(&self.folder, &error.to_string()))?;
        writeln!(self.lines, "{line}").map_err(|error| not_written(&self.folder, &hoplake::system_text(&error)))?;
        let text = |json: Option<Json>| json.map(|json| json.to_string());
        self.rows.push([
            Some(kind.to_owned()),
            Some(element.kind().to_owned()),
            Some(label),
            Some(name),
            text(tables),
            text(graph),
        ]);
        if self.rows.len() == ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), FeedError> {
        let rows = std::mem::take(&mut self.rows);
        let column = |number: usize| {
            Arc::new(rows.iter().map(|row| row[number].as_deref()).collect::<StringArray>()) as ArrayRef
        };
        let columns = (0..COLUMNS.len()).map(column).collect();
        let written = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(Into::into)
            .and_then(|batch| self.parquet.write(&batch));
        written.map_err(|error: parquet::errors::ParquetError| not_written(&self.folder, &error.to_string()))
    }

    pub(super) fn finish(mut self) -> Result<(), FeedError> {
        self.write()?;
        self.lines.flush().map_err(|error| not_written(&self.folder, &hoplake::system_text(&error)))?;
        self.parquet.close().map_err(|error| not_written(&self.folder, &error.to_string()))?;
        Ok(())
    }
}

fn not_written(folder: &Path, why: &str) -> FeedError {
    FeedError::unavailable(format!("could not write the report in {}: {why}", folder.display()))
}
