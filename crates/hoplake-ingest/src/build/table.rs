//! Writes tables of properties: Parquet with small pages, no dictionaries and a checksum for each page.
//!
//! The writer fills a temporary file, whose pages are then sent to the store one by one, followed by the footer. A file
//! of more than [`TABLE_ROWS_MAX`] rows is split, so that the footer a reader needs stays small.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use hoplake_format::{
    TableOwner, TableRef,
    table::{TableEnd, TableSettings, begin_table, finish_table},
};
use parquet::arrow::ArrowWriter;

use super::objects::Objects;
use crate::IngestError;

/// The most rows of one file.
pub(crate) const TABLE_ROWS_MAX: u64 = 4 << 20;

/// Writes the rows of one owner, in order.
pub(crate) struct TableWriter<'a> {
    objects: &'a Objects,
    spill_dir: PathBuf,
    owner: TableOwner,
    schema: SchemaRef,
    settings: TableSettings,
    open: Option<(ArrowWriter<File>, u64)>,
    first_row: u64,
    finished: Vec<TableRef>,
}

impl<'a> TableWriter<'a> {
    pub(crate) fn new(
        objects: &'a Objects,
        spill_dir: &Path,
        owner: TableOwner,
        schema: SchemaRef,
        settings: TableSettings,
    ) -> Self {
        let spill_dir = spill_dir.to_owned();
        Self { objects, spill_dir, owner, schema, settings, open: None, first_row: 0, finished: Vec::new() }
    }

    /// Appends rows.
    pub(crate) fn write(&mut self, mut batch: RecordBatch) -> Result<(), IngestError> {
        while batch.num_rows() > 0 {
            let (mut writer, rows) = match self.open.take() {
                Some(open) => open,
                None => (self.begin()?, 0),
            };
            let fitting = (TABLE_ROWS_MAX - rows).min(batch.num_rows() as u64) as usize;
            writer.write(&batch.slice(0, fitting))?;
            batch = batch.slice(fitting, batch.num_rows() - fitting);
            let rows = rows + fitting as u64;
            self.open = Some((writer, rows));
            if rows == TABLE_ROWS_MAX {
                self.end_file()?;
            }
        }
        Ok(())
    }

    /// Ends the last file and returns all.
    pub(crate) fn finish(mut self) -> Result<Vec<TableRef>, IngestError> {
        self.end_file()?;
        Ok(self.finished)
    }

    fn begin(&self) -> Result<ArrowWriter<File>, IngestError> {
        let scratch = tempfile::tempfile_in(&self.spill_dir).map_err(IngestError::Spill)?;
        Ok(begin_table(scratch, self.schema.clone(), self.settings)?)
    }

    fn end_file(&mut self) -> Result<(), IngestError> {
        let Some((mut writer, rows)) = self.open.take() else { return Ok(()) };
        let metadata = writer.finish()?;
        let mut scratch = writer.inner().try_clone().map_err(IngestError::Spill)?;
        let name = self.objects.name("parquet");
        let mut object = self.objects.create(&name);
        let TableEnd { length, tail_position, tail_checksum, checksum } =
            finish_table(&mut scratch, metadata, &mut object)?;
        object.finish()?;
        self.finished.push(TableRef {
            name,
            position: 0,
            owner: self.owner,
            versions: self.objects.versions(),
            first_row: self.first_row,
            rows,
            length,
            tail_position,
            tail_checksum,
            checksum,
        });
        self.first_row += rows;
        Ok(())
    }
}
