//! Batches in temporary files, as Arrow IPC streams.
//!
//! Not compressed: LZ4 makes files half as large and sorting 5–30 % slower while the page cache takes them.

use std::{
    fs::File,
    io::{BufReader, BufWriter},
    path::Path,
};

use arrow_array::RecordBatch;
use arrow_ipc::{reader::StreamReader, writer::StreamWriter};
use arrow_schema::Schema;

use super::spill::{SpillFile, spill_error};
use crate::IngestError;

const FILE_BUFFER_BYTES: usize = 16 << 10;

/// Batches in a file.
#[derive(Debug)]
pub(crate) struct BatchFile {
    file: SpillFile,
    batches: usize,
}

/// Writes batches to a file.
pub(crate) struct BatchWriter {
    file: SpillFile,
    writer: StreamWriter<BufWriter<File>>,
    batches: usize,
}

impl BatchWriter {
    pub(crate) fn create(schema: &Schema, folder: &Path) -> Result<Self, IngestError> {
        let (file, writer) = SpillFile::create(folder)?;
        let writer = BufWriter::with_capacity(FILE_BUFFER_BYTES, writer);
        let writer = StreamWriter::try_new(writer, schema).map_err(spill_error)?;
        Ok(Self { file, writer, batches: 0 })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), IngestError> {
        self.batches += 1;
        self.writer.write(batch).map_err(spill_error)
    }

    pub(crate) fn finish(mut self) -> Result<BatchFile, IngestError> {
        self.writer.finish().map_err(spill_error)?;
        // Flushes; an error here would be lost if the buffer were only dropped.
        let writer = self.writer.into_inner().map_err(spill_error)?;
        writer.into_inner().map_err(|error| IngestError::Spill(error.into_error()))?;
        Ok(BatchFile { file: self.file, batches: self.batches })
    }
}

impl BatchFile {
    /// Reads it; the file goes with the reader.
    pub(crate) fn read(self) -> Result<BatchReader, IngestError> {
        let mut reader = self.read_again()?;
        reader.file = Some(self.file);
        Ok(reader)
    }

    /// Reads it and keeps it.
    pub(crate) fn read_again(&self) -> Result<BatchReader, IngestError> {
        let reader = StreamReader::try_new(self.file.open(FILE_BUFFER_BYTES)?, None).map_err(spill_error)?;
        Ok(BatchReader { reader, batches_left: self.batches, file: None })
    }
}

/// The batches of a file, in the order they were written.
pub(crate) struct BatchReader {
    reader: StreamReader<BufReader<File>>,
    batches_left: usize,
    /// Held only to be removed at the end.
    file: Option<SpillFile>,
}

impl BatchReader {
    /// The number of remaining batches.
    pub(crate) fn batches_left(&self) -> usize {
        self.batches_left
    }
}

impl Iterator for BatchReader {
    type Item = Result<RecordBatch, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches_left = self.batches_left.checked_sub(1)?;
        let cut = || IngestError::Spill(std::io::ErrorKind::UnexpectedEof.into());
        Some(self.reader.next().map_or_else(|| Err(cut()), |batch| batch.map_err(spill_error)))
    }
}
