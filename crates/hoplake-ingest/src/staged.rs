//! Tables in memory as inputs of a load.
//!
//! A load reads its inputs more than once and in parts, and sorts what does not fit its memory. So tables become Parquet files in a temporary
//! folder, which the load reads by a mapping, as it reads any other. What that costs is one write and one read of a local disk; of a table that is
//! read from elsewhere, a batch is in memory at a time.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;
use parquet::{arrow::ArrowWriter, basic::Compression, errors::ParquetError, file::properties::WriterProperties};
use tempfile::TempDir;
use toml::{Table, Value};

use crate::{IngestError, source::plain::in_property_types};

/// Rows that are converted at a time: a table may be a single batch.
const SLICE_ROWS: usize = 1 << 16;

/// Tables in a temporary folder, which is removed with this.
#[derive(Debug)]
pub struct StagedTables {
    folder: TempDir,
    vertices: Vec<Value>,
    edges: Vec<Value>,
    implies_labels: bool,
}

/// An end of the edges of a table: the label of its vertices, and the column that has their keys.
#[derive(Debug, Clone, Copy)]
pub struct StagedEnd<'a> {
    /// The label.
    pub label: &'a str,
    /// The column.
    pub column: &'a str,
}

impl StagedTables {
    /// No tables yet, in a folder below this one, or the system's.
    ///
    /// # Errors
    /// [`IngestError::Spill`].
    pub fn new(temp_dir: Option<&Path>) -> Result<Self, IngestError> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("hoplake-tables-");
        let folder = temp_dir.map_or_else(|| builder.tempdir(), |below| builder.tempdir_in(below));
        let folder = folder.map_err(IngestError::Spill)?;
        Ok(Self { folder, vertices: Vec::new(), edges: Vec::new(), implies_labels: false })
    }

    /// Has labels that edges name and no table of vertices has be those of vertices that edges reference; otherwise they are an error.
    pub fn imply_labels(&mut self) {
        self.implies_labels = true;
    }

    /// Adds vertices of a label, a row each: the column `key` has their keys, and every other one is a property. `goes_on` is asked after each part
    /// of the table; if it says no, the rest is left out and the load must not begin.
    ///
    /// # Errors
    /// [`IngestError::Invalid`] if there is no such column, or a column of a type or with a value that no property has;
    /// [`IngestError::Spill`].
    pub fn add_vertices(
        &mut self,
        label: &str,
        key: &str,
        rows: Box<dyn RecordBatchReader + Send>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<(), IngestError> {
        let what = format!("the table of vertices {label:?}");
        let file = self.write(&what, &[key], rows, goes_on)?;
        let entry = [("file", file.as_str()), ("label", label), ("key", key)];
        self.vertices.push(table_of(&entry));
        Ok(())
    }

    /// Adds edges of a label, a row each.
    ///
    /// # Errors
    /// As [`Self::add_vertices`].
    pub fn add_edges(
        &mut self,
        label: &str,
        [source, target]: [StagedEnd<'_>; 2],
        rows: Box<dyn RecordBatchReader + Send>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<(), IngestError> {
        let what = format!("the table of edges {label:?}");
        let file = self.write(&what, &[source.column, target.column], rows, goes_on)?;
        self.edges.push(table_of(&[
            ("file", file.as_str()),
            ("label", label),
            ("source", source.column),
            ("source_label", source.label),
            ("target", target.column),
            ("target_label", target.label),
        ]));
        Ok(())
    }

    /// Writes the mapping of the tables so far, and returns where it is.
    ///
    /// # Errors
    /// [`IngestError::Spill`].
    pub fn mapping(&self) -> Result<PathBuf, IngestError> {
        let mut mapping = Table::new();
        mapping.insert("imply_labels".into(), self.implies_labels.into());
        mapping.insert("vertices".into(), self.vertices.clone().into());
        mapping.insert("edges".into(), self.edges.clone().into());
        let path = self.folder.path().join("mapping.toml");
        std::fs::write(&path, mapping.to_string()).map_err(IngestError::Spill)?;
        Ok(path)
    }

    /// Writes a table to a file, and returns its name.
    fn write(
        &self,
        what: &str,
        needed: &[&str],
        rows: Box<dyn RecordBatchReader + Send>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<String, IngestError> {
        let schema = rows.schema();
        if let Some(missing) = needed.iter().find(|name| schema.column_with_name(name).is_none()) {
            let known: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(IngestError::Invalid(format!("{what} has no column {missing:?}; its columns are {known}")));
        }
        let name = format!("{}.parquet", self.vertices.len() + self.edges.len());
        let file = File::create(self.folder.path().join(&name)).map_err(IngestError::Spill)?;
        let mut first = 0;
        let mut writer: Option<ArrowWriter<File>> = None;
        // A table without rows has columns, too.
        let empty = RecordBatch::new_empty(schema);
        for batch in std::iter::once(Ok(empty)).chain(rows) {
            let batch = batch.map_err(|error| unread(what, first, &error))?;
            let mut offset = 0;
            while offset < batch.num_rows().max(1) {
                if !goes_on() {
                    return Ok(name);
                }
                let rows = batch.slice(offset, SLICE_ROWS.min(batch.num_rows() - offset));
                let typed = in_property_types(&rows);
                let invalid = |why| IngestError::Invalid(format!("{what}, in the rows from {first} on: {why}"));
                let typed = typed.map_err(invalid)?;
                let writer = match &mut writer {
                    Some(writer) => writer,
                    None => {
                        let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED).build();
                        let file = file.try_clone().map_err(IngestError::Spill)?;
                        writer.insert(ArrowWriter::try_new(file, typed.schema(), Some(properties)).map_err(unwritten)?)
                    }
                };
                writer.write(&typed).map_err(unwritten)?;
                first += rows.num_rows();
                offset += SLICE_ROWS;
            }
        }
        writer.map(ArrowWriter::close).transpose().map_err(unwritten)?;
        Ok(name)
    }
}

fn table_of(entries: &[(&str, &str)]) -> Value {
    entries.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect::<Table>().into()
}

fn unread(what: &str, row: usize, error: &ArrowError) -> IngestError {
    IngestError::Invalid(format!("{what} cannot be read from row {row} on: {error}"))
}

fn unwritten(error: ParquetError) -> IngestError {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(error) => IngestError::Spill(*error),
            Err(other) => IngestError::Internal(format!("could not write a table: {other}")),
        },
        other => IngestError::Internal(format!("could not write a table: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, RecordBatchIterator, StringArray, StructArray};

    use super::*;

    fn reader(columns: Vec<(&str, arrow_array::ArrayRef)>) -> Box<dyn RecordBatchReader + Send> {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let schema = batch.schema();
        Box::new(RecordBatchIterator::new([Ok(batch)], schema))
    }

    #[test]
    fn what_cannot_be_loaded_is_named() {
        let mut tables = StagedTables::new(None).unwrap();
        let ids = || -> arrow_array::ArrayRef { Arc::new(Int64Array::from(vec![1, 2])) };
        let error = tables.add_vertices("Person", "id", reader(vec![("key", ids())]), &|| true).unwrap_err();
        assert_eq!(error.to_string(), r#"the table of vertices "Person" has no column "id"; its columns are key"#);
        let nested = StructArray::from(RecordBatch::try_from_iter([("x", ids())]).unwrap());
        let columns = vec![("id", ids()), ("place", Arc::new(nested) as _)];
        let error = tables.add_vertices("Person", "id", reader(columns), &|| true).unwrap_err();
        let expected = "in the rows from 0 on: column place is of type struct, which no property has";
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn names_of_any_kind_stand_in_the_mapping() {
        let mut tables = StagedTables::new(None).unwrap();
        let names: arrow_array::ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let label = "a \"label\"\nof 'two' lines";
        tables.add_vertices(label, "k", reader(vec![("k", names)]), &|| true).unwrap();
        let text = std::fs::read_to_string(tables.mapping().unwrap()).unwrap();
        let read: Table = text.parse().unwrap();
        assert_eq!(read["vertices"][0]["label"].as_str(), Some(label));
    }
}
