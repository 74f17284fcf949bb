//! Files as they are: lines, records and typed columns, for readers that bring a meaning of their own, such as changes
//! to a graph. This module handles compression, byte order marks, quotes and the types of Parquet, as for a load.

use std::{
    io::{BufReader, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema};
use hoplake_format::{PropertyType, ScalarType};

use super::{
    column::Parse,
    files::{LineBound, SourceFile, Tabs, TextReader},
    limits::ReadLimits,
    parquet::{ParquetFile, ParquetRows, cast, property_type, rejected, shown, type_name},
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
        SourceFile::at(path.to_owned(), ReadLimits::default()).map(Self)
    }

    /// Text that is not in a file; messages name it so.
    pub fn named(name: &str) -> Self {
        Self(SourceFile { path: name.into(), copy: None, bytes: 0, limits: ReadLimits::default() })
    }

    /// Where it is.
    pub fn path(&self) -> &PathBuf {
        &self.0.path
    }

    /// The end of its name after the last dot, without that of a compression.
    pub fn extension(&self) -> &str {
        self.0.extension()
    }

    /// Its text, decompressed; it ends with a newline. Reading fails at a line that is longer than the limits allow.
    ///
    /// # Errors
    /// [`IngestError::Read`].
    pub fn text(&self) -> Result<BufReader<Box<dyn Read + Send>>, IngestError> {
        let text = LineBound::new(self.0.open_text(Arc::default(), Tabs::Keep)?, self.0.limits.row());
        let text: Box<dyn Read + Send> = Box::new(text);
        Ok(BufReader::new(text))
    }

    /// Its records, as comma-separated values.
    ///
    /// # Errors
    /// [`IngestError::Read`].
    pub fn records(&self) -> Result<CsvRecords, IngestError> {
        Records::open(&self.0, TextFormat::quoted(b','), Arc::default()).map(CsvRecords)
    }

    /// The records of a text that was read from it, as comma-separated values.
    ///
    /// # Errors
    /// [`IngestError::Read`].
    pub fn records_of(&self, text: impl Read + Send + 'static) -> Result<CsvRecords, IngestError> {
        let text = TextReader::plain(Box::new(text));
        Records::of(&self.0, TextFormat::quoted(b','), text).map(CsvRecords)
    }

    /// Its rows, as Parquet.
    ///
    /// # Errors
    /// [`IngestError::Damaged`] if it is not a Parquet file, [`IngestError::Layout`] if columns have types that no
    /// property has.
    pub fn batches(&self) -> Result<ParquetBatches, IngestError> {
        let parquet = ParquetFile::open(&self.0)?;
        let found = parquet.columns();
        if let Some(why) = rejected(found.iter()) {
            return Err(self.0.layout(format!("{why}; leave them out")));
        }
        let columns = found.iter().map(|column| column.name.clone()).collect();
        let types = found.iter().filter_map(|column| column.property).map(Parse::new).collect();
        let reader = parquet.rows(parquet.groups(), &(0..found.len()).collect::<Vec<_>>(), BATCH_ROWS)?;
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
    /// [`IngestError::Read`]; [`IngestError::BadRow`] if the record is not well-formed or longer than the limits;
    /// [`IngestError::Broken`] if a quote is not closed.
    pub fn advance(&mut self) -> Result<bool, IngestError> {
        let more = self.0.advance()?;
        self.0.reject_fault()?;
        Ok(more)
    }

    /// The line this record begins on, from 1.
    pub fn line(&self) -> u64 {
        self.0.first_line()
    }

    /// How many fields it has.
    pub fn fields(&self) -> usize {
        self.0.len()
    }

    /// A field; `None` if it is not UTF-8.
    pub fn field(&self, index: usize) -> Option<&str> {
        self.0.field(index).and_then(|field| std::str::from_utf8(field).ok())
    }

    /// All fields, for headers, and whether they are in quotes: within these, white space at the ends of a name is a part of it.
    pub fn headers(&self) -> Vec<(String, bool)> {
        self.0.texts().into_iter().enumerate().map(|(at, text)| (text, self.0.is_quoted(at))).collect()
    }
}

/// Rows of a Parquet file, their columns of the types that properties have.
pub struct ParquetBatches {
    file: SourceFile,
    columns: Vec<String>,
    types: Vec<Parse>,
    reader: ParquetRows,
    next_row: u64,
}

impl Iterator for ParquetBatches {
    /// The number of the first row, from 1, and the rows.
    type Item = Result<(u64, RecordBatch), IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.reader.next()?.and_then(|batch| self.typed(&batch)))
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
        let mut fields = Vec::new();
        let mut columns = Vec::new();
        for ((field, column), parse) in batch.schema().fields().iter().zip(batch.columns()).zip(&self.types) {
            let values = cast(column, *parse)?;
            // A cast makes null of what does not fit; a null that was there before is a value.
            if let Some(row) = (0..batch.num_rows()).find(|row| values.is_null(*row) && !column.is_null(*row)) {
                return Err(IngestError::BadRow(BadRow {
                    file: self.file.path.clone(),
                    line: first + row as u64,
                    column: Some(field.name().clone()),
                    value: Some(shown(column, row)),
                    why: format!("does not fit {}", parse.kind),
                }));
            }
            fields.push(Field::new(field.name(), values.data_type().clone(), true));
            columns.push(values);
        }
        Ok((first, RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?))
    }
}

/// A record batch whose columns are of the types that properties have, as a load of such columns makes them; one of
/// nothing but nulls that has no type is left out. The error is a sentence about the rows, which are counted from 0.
///
/// # Errors
/// The column of a type that no property has, or the value that does not fit the type of property.
pub fn in_property_types(batch: &RecordBatch) -> Result<RecordBatch, String> {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let name = field.name();
        // A column of this type says nothing about the type of its property, nor does it set a value.
        if *column.data_type() == DataType::Null {
            continue;
        }
        let kind = property_type(column.data_type()).ok_or_else(|| {
            format!("column {name} is of type {}, which no property has", type_name(column.data_type()))
        })?;
        let (PropertyType::Scalar(scalar) | PropertyType::List(scalar)) = kind;
        // Days and moments of Arrow may be beyond the calendar.
        let has_range = matches!(scalar, ScalarType::Date | ScalarType::Timestamp);
        let values = match !has_range && kind.arrow() == *column.data_type() {
            true => column.clone(),
            false => cast(column, Parse::new(kind)).map_err(|error| format!("column {name}: {error}"))?,
        };
        // Of a dictionary, nulls are also those of its values.
        let nulls = column.logical_nulls();
        let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let lost = |row: &usize| values.is_null(*row) && !is_null(*row);
        if values.null_count() > column.logical_null_count()
            && let Some(row) = (0..column.len()).find(lost)
        {
            return Err(format!("row {row}, column {name}: {} does not fit {kind}", shown(column, row)));
        }
        fields.push(Field::new(name, values.data_type().clone(), true));
        columns.push(values);
    }
    // The rows must be counted even if no column is left.
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|error| error.to_string())
}
