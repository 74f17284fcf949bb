//! Drives encoders, and uploads what they wrote.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use hoplake_storage::{MemoryHold, QueryContext, Store, Upload};
use tokio::task::spawn_blocking;

use crate::{
    encoder::Encoder,
    graphml::GraphMlEncoder,
    options::{ExportError, ExportFormat, ExportOptions, FileNames, GRAPHML_NAME},
    parquet::ParquetEncoder,
    tables::{TableEncoding, Tables},
    text::TextEncoder,
};

/// Rows that are encoded before their bytes are taken away.
const SLICE_ROWS: usize = 4096;

/// A part of an upload: S3's minimum is 5 MiB.
const PART_BYTES: usize = 8 << 20;

/// What encoded text may be a multiple of: an integer of 8 bytes has up to 20 digits, and every byte of a text may be escaped.
const TEXT_GROWTH: u64 = 6;

/// What encoded columns may be a multiple of, with those that are being encoded.
const COLUMNS_GROWTH: u64 = 3;

/// The totals of an export so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ExportTotals {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// The files of an export, one after the other.
pub(crate) struct Files<'a> {
    target: Store,
    tables: &'a Tables,
    options: &'a ExportOptions,
    context: &'a QueryContext,
    table: usize,
    stem: String,
    /// Rows of the table so far.
    rows: u64,
    open: Option<OpenFile>,
    names: FileNames,
    written: ExportTotals,
    group_bytes: u64,
}

struct OpenFile {
    name: String,
    /// Away while a thread uses it.
    encoder: Option<Box<dyn Encoder>>,
    upload: Upload,
    bytes: u64,
    memory: MemoryHold,
}

impl<'a> Files<'a> {
    pub(crate) fn new(
        target: &Store,
        tables: &'a Tables,
        options: &'a ExportOptions,
        context: &'a QueryContext,
    ) -> Self {
        Self {
            target: target.clone().with_part_bytes(PART_BYTES),
            tables,
            options,
            context,
            table: 0,
            stem: String::new(),
            rows: 0,
            open: None,
            names: Vec::new(),
            written: ExportTotals::default(),
            group_bytes: (context.memory().left() / 16).clamp(1 << 20, 64 << 20),
        }
    }

    /// What is written from here on belongs to this table.
    pub(crate) async fn begin_table(&mut self, table: usize, stem: &str) -> Result<(), ExportError> {
        (self.table, self.stem, self.rows) = (table, stem.to_owned(), 0);
        // A table without rows has a file, too: its header says what it is of.
        match self.open {
            None => self.begin_file(),
            Some(_) => Ok(()),
        }
    }

    fn begin_file(&mut self) -> Result<(), ExportError> {
        let memory = self.context.hold(PART_BYTES as u64)?;
        let form = self.tables.form(self.table);
        let (name, encoder): (String, Box<dyn Encoder>) = match self.options.format {
            ExportFormat::GraphMl => (GRAPHML_NAME.to_owned(), Box::new(GraphMlEncoder::new(self.tables))),
            format => {
                let extension = if format == ExportFormat::Parquet { "parquet" } else { "csv" };
                // Sorted by name they are in their order, which a load keeps.
                let name = match self.names.len() {
                    0 => format!("{}.{extension}", self.stem),
                    before => format!("{}.part{:05}.{extension}", self.stem, before + 1),
                };
                let failed = |why| ExportError::Encode { file: name.clone(), why };
                let encoder: Box<dyn Encoder> = match form {
                    TableEncoding::Parquet(schema) => {
                        Box::new(ParquetEncoder::new(schema.clone(), self.group_bytes).map_err(failed)?)
                    }
                    TableEncoding::Text(columns, style) => {
                        Box::new(TextEncoder::new(columns.clone(), *style, self.rows))
                    }
                };
                (name, encoder)
            }
        };
        let upload = self.target.upload(&name);
        self.open = Some(OpenFile { name, encoder: Some(encoder), upload, bytes: 0, memory });
        Ok(())
    }

    /// Writes rows of the table.
    pub(crate) async fn write(&mut self, batch: &RecordBatch) -> Result<(), ExportError> {
        let row_bytes = batch.get_array_memory_size() as u64 / (batch.num_rows() as u64).max(1);
        for from in (0..batch.num_rows()).step_by(SLICE_ROWS) {
            if self.open.is_none() {
                self.begin_file()?;
            }
            let Some(open) = &mut self.open else { continue };
            let slice = batch.slice(from, SLICE_ROWS.min(batch.num_rows() - from));
            self.rows += slice.num_rows() as u64;
            let kept = open.encoder.as_ref().map_or(0, |encoder| encoder.kept_bytes());
            let growth = if self.options.format == ExportFormat::Parquet { COLUMNS_GROWTH } else { TEXT_GROWTH };
            let encoded = growth * row_bytes * slice.num_rows() as u64;
            self.context.resize(&mut open.memory, PART_BYTES as u64 + kept + encoded)?;
            let table = self.table;
            open.run(move |encoder| encoder.write(table, &slice)).await?;
            let is_full = open.bytes >= self.options.file_bytes_max && self.options.format != ExportFormat::GraphMl;
            if is_full {
                self.end_file().await?;
            }
        }
        Ok(())
    }

    /// Ends the table, and returns its files.
    pub(crate) async fn end_table(&mut self) -> Result<Vec<PathBuf>, ExportError> {
        if self.options.format != ExportFormat::GraphMl {
            self.end_file().await?;
        }
        Ok(std::mem::take(&mut self.names))
    }

    async fn end_file(&mut self) -> Result<(), ExportError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.run(|encoder| encoder.end()).await?;
        let Some(open) = self.open.take() else { return Ok(()) };
        open.upload.finish().await?;
        self.written.files += 1;
        self.written.bytes += open.bytes;
        self.names.push(open.name.into());
        Ok(())
    }

    /// Ends the last file.
    pub(crate) async fn finish(&mut self) -> Result<ExportTotals, ExportError> {
        if self.options.format == ExportFormat::GraphMl && self.open.is_none() {
            self.begin_file()?;
        }
        self.end_file().await?;
        Ok(self.written)
    }

    /// Takes back the parts of the file under way, which no listing of objects would show.
    pub(crate) async fn give_up(&mut self) {
        if let Some(open) = self.open.take() {
            // If this fails, the store's own expiry removes the parts.
            let _ = open.upload.abort().await;
        }
    }
}

impl OpenFile {
    /// Lets the encoder work on a thread of its own, and sends what it wrote.
    async fn run(
        &mut self,
        work: impl FnOnce(&mut dyn Encoder) -> Result<(), String> + Send + 'static,
    ) -> Result<(), ExportError> {
        let file = self.name.clone();
        let failed = |why: String| ExportError::Encode { file: file.clone(), why };
        let mut encoder = self.encoder.take().ok_or_else(|| failed("its encoder stopped".into()))?;
        let done = spawn_blocking(move || {
            let bytes = work(encoder.as_mut()).and_then(|()| encoder.take());
            (encoder, bytes)
        });
        let (encoder, bytes) = done.await.map_err(|error| failed(error.to_string()))?;
        self.encoder = Some(encoder);
        let bytes = bytes.map_err(failed)?;
        self.bytes += bytes.len() as u64;
        Ok(self.upload.write(&bytes).await?)
    }
}
