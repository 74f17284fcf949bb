//! Files as they are: lines, records and typed columns, for readers that bring a meaning of their own, such as changes to
//! a graph. Compression, marks of byte order, quotes and the types of Parquet are dealt with here, as for a load.

use std::{
    fs::File,
    io::{BufReader, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{Array, RecordBatch};
use arrow_schema::{Field, Schema};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::{
    column::Parse,
    files::{SourceFile, Tabs},
    parquet::{cast, property_type},
    records::{Records, TextFormat},
};
use crate::{BadRow, IngestError};

/// Rows of Parquet that are decoded at a time.
const BATCH_ROWS: usize = 4096;

/// A file.
#[derive(Debug, Clone)]
pub struct PlainFile(SourceFile);

impl PlainFile {
    /// The file at a path.
    ///
    /// # Errors
    /// [`IngestError::Read`] if there is none.
    pub fn at(path: &Path) -> Result<Self, IngestError> {
        SourceFile::at(path.to_owned()).map(Self)
    }

    /// Where it is.
    pub fn path(&self) -> &PathBuf {
        &self.0.path
    }

    /// The end of its name behind the last dot, without that of a compression.
    pub fn extension(&self) -> &str {
        self.0.extension()
    }

    /// Its text, decompressed; it ends with a newline.
    ///
    /// # Errors
    /// [`IngestError::Read`].
    pub fn text(&self) -> Result<BufReader<Box<dyn Read + Send>>, IngestError> {
        let text: Box<dyn Read + Send> = Box::new(self.0.open_text(Arc::default(), Tabs::Keep)?);
        Ok(BufReader::new(text))
    }

    /// Its records, as comma-separated values.
    ///
    /// # Errors
    /// [`IngestError::Read`].
    pub fn records(&self) -> Result<CsvRecords, IngestError> {
        Records::open(&self.0, TextFormat::quoted(b','), Arc::default()).map(CsvRecords)
    }

    /// Its rows, as Parquet.
    ///
    /// # Errors
    /// [`IngestError::Layout`] if it is no Parquet file, or has a column of a type that no property has.
    pub fn batches(&self) -> Result<ParquetBatches, IngestError> {
        let handle = File::open(&self.0.path).map_err(|source| self.0.failed(source))?;
        let unreadable = |error| self.0.layout(format!("is not a Parquet file that can be read: {error}"));
        let builder = ParquetRecordBatchReaderBuilder::try_new(handle).map_err(unreadable)?;
        let kind = |field: &Arc<Field>| {
            let kind = property_type(field.data_type());
            let (name, found) = (field.name(), field.data_type());
            kind.ok_or_else(|| self.0.layout(format!("column {name:?} is {found}, a type that no property has")))
        };
        let kinds = builder.schema().fields().iter().map(kind).collect::<Result<Vec<_>, _>>()?;
        let columns = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
        let types = kinds.into_iter().map(Parse::new).collect();
        let reader = builder.with_batch_size(BATCH_ROWS).build()?;
        Ok(ParquetBatches { file: self.0.clone(), columns, types, reader, next_row: 1 })
    }

    /// The error that this file is not what it was taken for.
    pub fn not_as_expected(&self, why: impl Into<String>) -> IngestError {
        self.0.layout(why)
    }

    /// The error that reading this file failed with.
    pub fn failed(&self, source: std::io::Error) -> IngestError {
        self.0.failed(source)
    }
}

/// Comma-separated records, one after another.
pub struct CsvRecords(Records);

impl CsvRecords {
    /// Goes to the next record that is not blank; false at the end.
    ///
    /// # Errors
    /// [`IngestError::Read`].
    pub fn advance(&mut self) -> Result<bool, IngestError> {
        self.0.advance()
    }

    /// The line this record begins on, from 1.
    pub fn line(&self) -> u64 {
        self.0.line()
    }

    /// How many fields it has.
    pub fn fields(&self) -> usize {
        self.0.len()
    }

    /// A field; nothing if it is no UTF-8 text.
    pub fn field(&self, index: usize) -> Option<&str> {
        self.0.field(index).and_then(|field| std::str::from_utf8(field).ok())
    }

    /// All fields, for headers.
    pub fn texts(&self) -> Vec<String> {
        self.0.texts()
    }
}

/// Rows of a Parquet file, their columns of the types that properties have.
pub struct ParquetBatches {
    file: SourceFile,
    columns: Vec<String>,
    types: Vec<Parse>,
    reader: ParquetRecordBatchReader,
    next_row: u64,
}

impl Iterator for ParquetBatches {
    /// The number of the first row, from 1, and the rows.
    type Item = Result<(u64, RecordBatch), IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.reader.next()?.map_err(IngestError::from).and_then(|batch| self.typed(&batch)))
    }
}

impl ParquetBatches {
    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    fn typed(&mut self, batch: &RecordBatch) -> Result<(u64, RecordBatch), IngestError> {
        let first = self.next_row;
        self.next_row += batch.num_rows() as u64;
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for ((field, column), parse) in batch.schema().fields().iter().zip(batch.columns()).zip(&self.types) {
            let values = cast(column, *parse)?;
            if let Some(row) = (0..batch.num_rows()).find(|row| values.is_null(*row) && !column.is_null(*row)) {
                return Err(IngestError::BadRow(BadRow {
                    file: self.file.path.clone(),
                    line: first + row as u64,
                    column: Some(field.name().clone()),
                    value: arrow_cast::display::array_value_to_string(column, row).ok(),
                    why: format!("does not fit {}", parse.kind),
                }));
            }
            fields.push(Field::new(field.name(), values.data_type().clone(), true));
            columns.push(values);
        }
        Ok((first, RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?))
    }
}
