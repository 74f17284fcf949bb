//! Writes tables of properties through temporary files, and sends them to the store.

use std::{fs::File, io, path::Path};

use arrow_array::RecordBatch;
use arrow_select::coalesce::BatchCoalescer;
use hoplake_format::{
    TableOwner, TableRef,
    table::{TableRows, TableSettings, TableWriter},
};
use parquet::errors::ParquetError;

use super::objects::Objects;
use crate::IngestError;

/// Rows that go into a table at a time. Pages end with such batches, so that their bytes do not depend on how many rows a sorter had ready.
const BATCH_ROWS: usize = 1 << 10;

/// Tables of one owner, in order, on their way to the store.
pub(crate) struct TableUpload<'a> {
    objects: &'a Objects,
    writer: TableWriter<File>,
    batches: Option<BatchCoalescer>,
    sent: Vec<TableRef>,
}

impl<'a> TableUpload<'a> {
    /// Tables of rows from one on.
    pub(crate) fn new(
        objects: &'a Objects,
        spill_dir: &Path,
        owner: TableOwner,
        first: u64,
        settings: TableSettings,
    ) -> Self {
        let spill_dir = spill_dir.to_owned();
        let rows = TableRows { owner, versions: objects.versions(), first };
        let writer = TableWriter::new(rows, settings, move || tempfile::tempfile_in(&spill_dir));
        Self { objects, writer, batches: None, sent: Vec::new() }
    }

    /// Appends rows.
    pub(crate) fn write(&mut self, batch: RecordBatch) -> Result<(), IngestError> {
        let batches = self.batches.get_or_insert_with(|| BatchCoalescer::new(batch.schema(), BATCH_ROWS));
        batches.push_batch(batch)?;
        self.send_batches()
    }

    fn send_batches(&mut self) -> Result<(), IngestError> {
        while let Some(batch) = self.batches.as_mut().and_then(BatchCoalescer::next_completed_batch) {
            self.writer.write(&batch).map_err(failed)?;
            self.send()?;
        }
        Ok(())
    }

    /// Ends the table under way: the next rows go into another one.
    pub(crate) fn end_table(&mut self) -> Result<(), IngestError> {
        if let Some(batches) = &mut self.batches {
            batches.finish_buffered_batch()?;
        }
        self.send_batches()?;
        self.writer.finish().map_err(failed)?;
        self.send()
    }

    /// Sends what has ended.
    fn send(&mut self) -> Result<(), IngestError> {
        while let Some(table) = self.writer.take() {
            let name = self.objects.name("parquet");
            let mut object = self.objects.create(&name);
            let end = table.write_to(&mut object).map_err(failed)?;
            object.finish()?;
            self.sent.push(end.at(name, 0));
        }
        Ok(())
    }

    /// Ends the last table and returns all.
    pub(crate) fn finish(mut self) -> Result<Vec<TableRef>, IngestError> {
        self.end_table()?;
        Ok(self.sent)
    }
}

/// Parquet's writer wraps the errors of its scratch and its object: the temporary folder's error, or the store's.
fn failed(error: ParquetError) -> IngestError {
    let source = match error {
        ParquetError::External(source) => source,
        other => return IngestError::Parquet(other),
    };
    match source.downcast::<io::Error>().map(|error| error.downcast::<IngestError>()) {
        Ok(Ok(store)) => store,
        Ok(Err(scratch)) => IngestError::Spill(scratch),
        Err(other) => IngestError::Parquet(ParquetError::External(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_keep_their_kind() {
        let store = IngestError::Invalid("the store's".into());
        let passed_on = |error: io::Error| failed(ParquetError::from(error)).to_string();
        assert_eq!(passed_on(io::Error::other(store)), "the store's");
        assert!(matches!(failed(ParquetError::from(io::Error::other("full"))), IngestError::Spill(_)));
        assert!(matches!(failed(ParquetError::General("a type".into())), IngestError::Parquet(_)));
    }
}
