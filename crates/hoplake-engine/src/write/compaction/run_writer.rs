//! Writes what runs became, of one merge after the other: one object of sections and small tables, and one for each large
//! table.

use std::io::{Read, Seek, SeekFrom};

use arrow_array::RecordBatch;
use hoplake_format::{
    DataNames, SegmentRef, TableOwner, TableRef, VersionRange,
    segment::{SegmentBytes, SegmentSettings, SegmentWriter},
    table::{SMALL_TABLE_BYTES, TableEnd, TableRows, TableSettings, TableWriter},
};
use hoplake_storage::{Store, Upload};
use tempfile::SpooledTempFile;

use super::{Merging, plan::Size};
use crate::EngineError;

/// Bytes that are sent at a time.
const PIECE_BYTES: usize = 4 << 20;

/// Writes tables of a run.
pub(crate) type RunTable = TableWriter<SpooledTempFile>;

/// What was written.
#[derive(Debug, Default)]
pub(crate) struct WrittenRun {
    pub(crate) objects: Vec<String>,
    pub(crate) segments: Vec<SegmentRef>,
    pub(crate) tables: Vec<TableRef>,
    pub(crate) bytes: u64,
}

/// An object under way.
struct Open {
    name: String,
    upload: Upload,
    length: u64,
    /// The segment, once all of it was sent: small tables may follow.
    ended: Option<SegmentRef>,
}

/// Writes a run.
pub(crate) struct RunWriter {
    store: Store,
    names: DataNames,
    memory: u64,
    /// Into which sections are written.
    pub(crate) segments: SegmentWriter,
    open: Option<Open>,
    /// Tables that are to lie behind the last segment.
    small: Vec<(TableEnd, Vec<u8>)>,
    /// Of the merge under way: the versions that it stands for, the sections written before it, and the bytes of its tables.
    versions: VersionRange,
    sections_before: usize,
    table_bytes: u64,
    run: WrittenRun,
}

impl RunWriter {
    /// Writes objects that are named by the version they began from, their writer, and numbers from `number` on.
    pub(crate) fn new(
        store: &Store,
        writer: &str,
        base: u64,
        number: u32,
        memory: u64,
        segments: SegmentSettings,
    ) -> Result<Self, EngineError> {
        let names = DataNames::new(base, writer, number.into());
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
            run: WrittenRun::default(),
        })
    }

    /// Begins a merge: what is written from now on stands for these versions.
    pub(crate) fn begin(&mut self, versions: VersionRange) {
        self.versions = versions;
        self.segments.set_versions(versions);
        self.table_bytes = 0;
    }

    /// Ends the merge, and says how large what it wrote is.
    pub(crate) fn end(&mut self) -> Size {
        let mut size = Size { bytes: self.table_bytes, edges: 0 };
        let sections = self.segments.sizes();
        let own = &sections[self.sections_before..];
        own.iter().for_each(|section| size.add_section(section.kind, section.items, section.bytes));
        self.sections_before = sections.len();
        size
    }

    /// Sends what sections have written, if it is worth a request.
    pub(crate) async fn send(&mut self, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        if self.segments.buffered_bytes() >= PIECE_BYTES { self.send_all(PIECE_BYTES, merging).await } else { Ok(()) }
    }

    async fn send_all(&mut self, bytes_min: usize, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        while let Some(SegmentBytes { name, bytes, ended }) = self.segments.take(bytes_min) {
            // Another segment begins, so no small table follows the one before.
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
        let Self { store, names, open, run, .. } = self;
        open.get_or_insert_with(|| {
            let name = name(names);
            run.objects.push(name.clone());
            Open { upload: store.upload(&name), name, length: 0, ended: None }
        })
    }

    async fn end_object(&mut self, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        finish(open.upload, merging).await?;
        self.run.bytes += open.length;
        self.run.segments.extend(open.ended);
        Ok(())
    }

    /// Begins tables whose rows follow each other from `first` on.
    pub(crate) fn table(&self, owner: TableOwner, first: u64) -> RunTable {
        // A row group is encoded in memory, next to the batch that it is made of and the extents that are read.
        let group_bytes = (self.memory / 16).clamp(1 << 20, 32 << 20) as usize;
        let settings = TableSettings { group_bytes, ..TableSettings::default() };
        let memory = self.spool_bytes();
        TableWriter::new(TableRows { owner, versions: self.versions, first }, settings, move || Ok(spool(memory)))
    }

    /// Bytes of a table that stay in memory; more than that goes to a temporary file.
    fn spool_bytes(&self) -> usize {
        (self.memory / 8) as usize
    }

    /// Adds rows to a table.
    pub(crate) async fn write(
        &mut self,
        table: &mut RunTable,
        batch: RecordBatch,
        merging: &mut Merging<'_>,
    ) -> Result<(), EngineError> {
        table.write(&batch).map_err(EngineError::table("a new table"))?;
        self.send_tables(table, merging).await
    }

    /// Ends a table.
    pub(crate) async fn end_table(
        &mut self,
        mut table: RunTable,
        merging: &mut Merging<'_>,
    ) -> Result<(), EngineError> {
        table.finish().map_err(EngineError::table("a new table"))?;
        self.send_tables(&mut table, merging).await
    }

    /// Sends tables that have ended, and keeps the small ones.
    async fn send_tables(&mut self, table: &mut RunTable, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        while let Some(ended) = table.take() {
            // Its length decides where it goes, and is known at its end only.
            let mut encoded = spool(self.spool_bytes());
            let end = ended.write_to(&mut encoded).map_err(EngineError::table("a new table"))?;
            encoded.seek(SeekFrom::Start(0)).map_err(spill)?;
            self.table_bytes += end.length;
            // Small tables wait for the end of the run, where they follow the last segment in its object.
            if end.length <= SMALL_TABLE_BYTES {
                let mut bytes = Vec::with_capacity(end.length as usize);
                encoded.read_to_end(&mut bytes).map_err(spill)?;
                self.small.push((end, bytes));
            } else {
                self.send_table(encoded, end, merging).await?;
            }
        }
        Ok(())
    }

    async fn send_table(
        &mut self,
        mut encoded: SpooledTempFile,
        end: TableEnd,
        merging: &mut Merging<'_>,
    ) -> Result<(), EngineError> {
        let name = self.names.next("parquet");
        let mut upload = self.store.upload(&name);
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let count = encoded.read(&mut piece).map_err(spill)?;
            if count == 0 {
                break;
            }
            write(&mut upload, &piece[..count], merging).await?;
        }
        finish(upload, merging).await?;
        self.run.bytes += end.length;
        self.run.tables.push(end.at(&name, 0));
        self.run.objects.push(name);
        Ok(())
    }

    /// Ends the run.
    pub(crate) async fn finish(mut self, merging: &mut Merging<'_>) -> Result<WrittenRun, EngineError> {
        self.segments.finish().map_err(EngineError::format("a new segment"))?;
        self.send_all(1, merging).await?;
        // Behind the last segment, which was sent and not ended: small tables take no request of their own.
        for (end, bytes) in std::mem::take(&mut self.small) {
            let open = self.open_object(|names| names.next("hls"));
            let reference = end.at(&open.name, open.length);
            write(&mut open.upload, &bytes, merging).await?;
            open.length += reference.length;
            self.run.tables.push(reference);
        }
        self.end_object(merging).await?;
        Ok(self.run)
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

fn spool(memory_bytes: usize) -> SpooledTempFile {
    SpooledTempFile::new(memory_bytes)
}

fn spill(error: std::io::Error) -> EngineError {
    EngineError::Invalid(format!("the temporary folder cannot be used: {error}"))
}
