//! Writes what parts became, of one merge after the other: one object of sections and small tables, and one for each large
//! table.

use std::io::{Read, Seek, SeekFrom};

use arrow_array::RecordBatch;
use hoplake_format::{
    DataNames, SegmentRef, TableOwner, TableRef, VersionRange,
    segment::{SegmentBytes, SegmentSettings, SegmentWriter},
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
    pub(super) segments: Vec<SegmentRef>,
    pub(super) tables: Vec<TableRef>,
    pub(super) bytes: u64,
}

/// An object under way.
struct Open {
    name: String,
    upload: Upload,
    length: u64,
    /// The segment, once all of it was sent: small tables may follow.
    ended: Option<SegmentRef>,
}

/// Writes a part.
pub(super) struct PartWriter {
    store: Store,
    names: DataNames,
    memory: u64,
    /// Into which sections are written.
    pub(super) segments: SegmentWriter,
    open: Option<Open>,
    small: Vec<(TableRef, Vec<u8>)>,
    /// Of the merge under way: the versions that it stands for, the sections written before it, and the bytes of its tables.
    versions: VersionRange,
    sections_before: usize,
    table_bytes: u64,
    part: Part,
}

impl PartWriter {
    /// Writes objects that are named by the version they began from, their writer, and numbers from `number` on.
    pub(super) fn new(
        store: &Store,
        writer: &str,
        base: u64,
        number: u32,
        memory: u64,
        segments: SegmentSettings,
    ) -> Result<Self, EngineError> {
        let names = DataNames::new(base, writer, number);
        let versions = VersionRange::of(base);
        let segments = SegmentWriter::new(&names, versions, segments).map_err(EngineError::format("a new segment"))?;
        Ok(Self {
            store: store.clone(),
            memory,
            segments,
            names,
            open: None,
            small: Vec::new(),
            versions,
            sections_before: 0,
            table_bytes: 0,
            part: Part::default(),
        })
    }

    /// Begins a merge: what is written from now on stands for these versions.
    pub(super) fn begin(&mut self, versions: VersionRange) {
        self.versions = versions;
        self.segments.set_versions(versions);
        self.table_bytes = 0;
    }

    /// Ends the merge, and says how large what it wrote is.
    pub(super) fn end(&mut self) -> Size {
        let mut size = Size { bytes: self.table_bytes, edges: 0 };
        let sections = self.segments.sizes();
        let own = &sections[self.sections_before..];
        own.iter().for_each(|section| size.add_section(section.kind, section.items, section.bytes));
        self.sections_before = sections.len();
        size
    }

    /// Sends what sections have written, if it is worth a request.
    pub(super) async fn send(&mut self, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        if self.segments.buffered_bytes() >= PIECE_BYTES { self.send_all(PIECE_BYTES, merging).await } else { Ok(()) }
    }

    async fn send_all(&mut self, bytes_min: usize, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        while let Some(SegmentBytes { name, bytes, ended }) = self.segments.take(bytes_min) {
            if self.open.as_ref().is_some_and(|open| open.ended.is_some()) {
                self.end_object(merging).await?;
            }
            let open = self.open_object(|_| name);
            write(&mut open.upload, &bytes, merging).await?;
            open.length += bytes.len() as u64;
            open.ended = ended;
        }
        Ok(())
    }

    /// The object under way; if there is none, it begins.
    fn open_object(&mut self, name: impl FnOnce(&DataNames) -> String) -> &mut Open {
        let Self { store, names, open, part, .. } = self;
        open.get_or_insert_with(|| {
            let name = name(names);
            part.objects.push(name.clone());
            Open { upload: store.upload(&name), name, length: 0, ended: None }
        })
    }

    async fn end_object(&mut self, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        finish(open.upload, merging).await?;
        self.part.bytes += open.length;
        self.part.segments.extend(open.ended);
        Ok(())
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
        // A small one stands behind a segment that is not known yet.
        let name = if small { String::new() } else { self.names.next("parquet") };
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
        self.segments.finish().map_err(EngineError::format("a new segment"))?;
        self.send_all(1, merging).await?;
        for (mut reference, bytes) in std::mem::take(&mut self.small) {
            let open = self.open_object(|names| names.next("hls"));
            (reference.name, reference.position) = (open.name.clone(), open.length);
            write(&mut open.upload, &bytes, merging).await?;
            open.length += reference.length;
            self.part.tables.push(reference);
        }
        self.end_object(merging).await?;
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
