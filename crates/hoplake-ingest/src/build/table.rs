//! Writes tables of properties through temporary files, and sends them to the store.

use std::{fs::File, io, path::Path};

use arrow_array::RecordBatch;
use hoplake_format::{
    TableOwner, TableRef,
    table::{TableRows, TableSettings, TableWriter},
};
use parquet::errors::ParquetError;

use super::objects::Objects;
use crate::IngestError;

/// Tables of one owner, in order, on their way to the store.
pub(crate) struct TableUpload<'a> {
    objects: &'a Objects,
    writer: TableWriter<File>,
    sent: Vec<TableRef>,
}

impl<'a> TableUpload<'a> {
    pub(crate) fn new(objects: &'a Objects, spill_dir: &Path, owner: TableOwner, settings: TableSettings) -> Self {
        let spill_dir = spill_dir.to_owned();
        let rows = TableRows { owner, versions: objects.versions(), first: 0 };
        let writer = TableWriter::new(rows, settings, move || tempfile::tempfile_in(&spill_dir));
        Self { objects, writer, sent: Vec::new() }
    }

    /// Appends rows.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), IngestError> {
        self.writer.write(batch).map_err(failed)?;
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
        self.writer.finish().map_err(failed)?;
        self.send()?;
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
