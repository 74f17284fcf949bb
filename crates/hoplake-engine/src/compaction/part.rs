//! Writes what parts became, of one merge after the other: one object of sections and small tables, and one for each large
//! table.

use std::io::{Read, Seek, SeekFrom};

use arrow_array::RecordBatch;
use hoplake_format::{
    SectionRef, SegmentRef, TableOwner, TableRef, VersionRange,
    constants::data_name,
    segment::{SectionIndex, SegmentBuilder},
    table::{TableEnd, TableSettings, begin_table, finish_table},
};
use hoplake_storage::{Store, Upload};
use parquet::arrow::ArrowWriter;
use tempfile::SpooledTempFile;

use super::{Merging, plan::Size};
use crate::{EngineError, change::SMALL_TABLE_BYTES};

/// Bytes that are sent at a time.
const PIECE_BYTES: usize = 4 << 20;

/// The most rows of one table, so that the end of it that a reader needs stays small.
const TABLE_ROWS_MAX: u64 = 4 << 20;

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) objects: Vec<String>,
    pub(super) segment: Option<SegmentRef>,
    pub(super) tables: Vec<TableRef>,
    pub(super) bytes: u64,
}

/// Writes a part.
pub(super) struct PartWriter {
    store: Store,
    writer: String,
    base: u64,
    number: u32,
    memory: u64,
    /// Into which sections are written.
    pub(super) segment: SegmentBuilder,
    upload: Upload,
    checksum: u32,
    /// Of the sections of merges that are done.
    section_versions: Vec<VersionRange>,
    small: Vec<(TableRef, Vec<u8>)>,
    /// Of the merge under way: the versions that it stands for, and the bytes of its tables.
    versions: VersionRange,
    table_bytes: u64,
    part: Part,
}

impl PartWriter {
    /// Writes objects that are named by the version they began from, their writer, and numbers from `number` on.
    pub(super) fn new(store: &Store, writer: &str, base: u64, number: u32, memory: u64) -> Self {
        let name = data_name(base, writer, number, "hls");
        Self {
            store: store.clone(),
            writer: writer.to_owned(),
            base,
            number,
            memory,
            segment: SegmentBuilder::new(&name),
            upload: store.upload(&name),
            checksum: 0,
            section_versions: Vec::new(),
            small: Vec::new(),
            versions: VersionRange::of(base),
            table_bytes: 0,
            part: Part { objects: vec![name], ..Part::default() },
        }
    }

    /// Begins a merge: what is written from now on stands for these versions.
    pub(super) fn begin(&mut self, versions: VersionRange) {
        self.versions = versions;
        self.table_bytes = 0;
    }

    /// Ends the merge, and says how large what it wrote is.
    pub(super) fn end(&mut self) -> Size {
        let mut size = Size { bytes: self.table_bytes, edges: 0 };
        let sections = self.segment.sections();
        sections[self.section_versions.len()..].iter().for_each(|section| size.add_section(section));
        self.section_versions.resize(sections.len(), self.versions);
        size
    }

    /// Sends what sections have written, if it is worth a request.
    pub(super) async fn send(&mut self, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        if self.segment.buffered_bytes() >= PIECE_BYTES { self.send_all(merging).await } else { Ok(()) }
    }

    async fn send_all(&mut self, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        let bytes = self.segment.drain();
        self.checksum = crc32c::crc32c_append(self.checksum, &bytes);
        write(&mut self.upload, &bytes, merging).await
    }

    /// Begins a table whose rows follow each other from `first_row` on.
    pub(super) fn table(&self, owner: TableOwner, first_row: u64) -> TableWriter {
        let group_bytes = (self.memory / 16).clamp(1 << 20, 32 << 20) as usize;
        let settings = TableSettings { group_bytes, ..TableSettings::default() };
        TableWriter { owner, first_row, rows: 0, settings, memory: (self.memory / 8) as usize, open: None }
    }

    /// Adds rows to a table.
    pub(super) async fn write(
        &mut self,
        table: &mut TableWriter,
        mut batch: RecordBatch,
        merging: &mut Merging<'_>,
    ) -> Result<(), EngineError> {
        while batch.num_rows() > 0 {
            let fitting = (TABLE_ROWS_MAX - table.rows).min(batch.num_rows() as u64) as usize;
            table.write(&batch.slice(0, fitting))?;
            batch = batch.slice(fitting, batch.num_rows() - fitting);
            if table.rows == TABLE_ROWS_MAX {
                self.end_table(table, merging).await?;
            }
        }
        Ok(())
    }

    /// Ends a table: what follows begins another one.
    pub(super) async fn end_table(
        &mut self,
        table: &mut TableWriter,
        merging: &mut Merging<'_>,
    ) -> Result<(), EngineError> {
        let Some((mut scratch, end)) = table.finish()? else { return Ok(()) };
        let TableEnd { length, tail_position, tail_checksum, checksum } = end;
        self.table_bytes += length;
        let small = length <= SMALL_TABLE_BYTES as u64;
        let number = self.number + self.part.objects.len() as u32;
        let name =
            if small { self.part.objects[0].clone() } else { data_name(self.base, &self.writer, number, "parquet") };
        let (first_row, rows) = (table.first_row, table.rows);
        let reference = TableRef {
            name: name.clone(),
            position: 0,
            owner: table.owner,
            versions: self.versions,
            first_row,
            rows,
            length,
            tail_position,
            tail_checksum,
            checksum,
        };
        (table.first_row, table.rows) = (first_row + rows, 0);
        if small {
            let mut bytes = Vec::with_capacity(length as usize);
            scratch.read_to_end(&mut bytes).map_err(spill)?;
            self.small.push((reference, bytes));
            return Ok(());
        }
        let (mut upload, mut piece) = (self.store.upload(&name), vec![0; PIECE_BYTES]);
        loop {
            let count = scratch.read(&mut piece).map_err(spill)?;
            if count == 0 {
                break;
            }
            write(&mut upload, &piece[..count], merging).await?;
        }
        finish(upload, merging).await?;
        self.part.objects.push(name);
        self.part.bytes += length;
        self.part.tables.push(reference);
        Ok(())
    }

    /// Ends the part.
    pub(super) async fn finish(mut self, merging: &mut Merging<'_>) -> Result<Part, EngineError> {
        let name = self.part.objects[0].clone();
        let mut position = 0;
        if !self.segment.sections().is_empty() {
            let end = self.segment.finish().map_err(EngineError::format("a new segment"))?;
            self.send_all(merging).await?;
            let of = |(section, versions): (&SectionIndex, &VersionRange)| SectionRef {
                kind: section.kind,
                versions: Some(*versions),
            };
            let sections = self.segment.sections().iter().zip(&self.section_versions).map(of).collect();
            self.part.segment = Some(SegmentRef { name: name.clone(), end, sections, checksum: self.checksum });
            position = end.length;
        }
        for (mut reference, bytes) in self.small {
            reference.position = position;
            position += reference.length;
            write(&mut self.upload, &bytes, merging).await?;
            self.part.tables.push(reference);
        }
        if position > 0 {
            finish(self.upload, merging).await?;
        } else {
            self.part.objects.remove(0);
        }
        self.part.bytes += position;
        Ok(self.part)
    }
}

/// Appends to an object, and notes the round trips that this waited for.
async fn write(upload: &mut Upload, bytes: &[u8], merging: &mut Merging<'_>) -> Result<(), EngineError> {
    let before = upload.rounds();
    upload.write(bytes).await?;
    merging.waited(upload.rounds() - before);
    Ok(())
}

async fn finish(upload: Upload, merging: &mut Merging<'_>) -> Result<(), EngineError> {
    let rounds = upload.rounds_left();
    upload.finish().await?;
    merging.waited(rounds);
    Ok(())
}

/// Writes the rows of a table, in order.
pub(super) struct TableWriter {
    owner: TableOwner,
    first_row: u64,
    rows: u64,
    settings: TableSettings,
    /// Bytes that stay in memory; more than that goes to a temporary file.
    memory: usize,
    open: Option<ArrowWriter<SpooledTempFile>>,
}

impl TableWriter {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), EngineError> {
        let failed = EngineError::table("a new table");
        let writer = match &mut self.open {
            Some(writer) => writer,
            None => {
                let scratch = SpooledTempFile::new(self.memory);
                let begun = begin_table(scratch, batch.schema(), self.settings);
                self.open.insert(begun.map_err(EngineError::table("a new table"))?)
            }
        };
        writer.write(batch).map_err(failed)?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// The bytes of the table, to be read from the beginning.
    fn finish(&mut self) -> Result<Option<(SpooledTempFile, TableEnd)>, EngineError> {
        let Some(mut writer) = self.open.take() else { return Ok(None) };
        let metadata = writer.finish().map_err(EngineError::table("a new table"))?;
        let mut table = SpooledTempFile::new(self.memory);
        let end = finish_table(writer.inner_mut(), metadata, &mut table).map_err(EngineError::table("a new table"))?;
        table.seek(SeekFrom::Start(0)).map_err(spill)?;
        Ok(Some((table, end)))
    }
}

fn spill(error: std::io::Error) -> EngineError {
    EngineError::Invalid(format!("the temporary folder cannot be used: {error}"))
}
