//! Writes tables of properties: Parquet with small pages, no dictionaries and a checksum for each page.
//!
//! Parquet's writer does not write the page checksums its format allows for, so they are kept in the
//! footer's metadata. They are known only when all pages are: the writer fills a temporary file, whose
//! pages are then sent to the store one by one, checksummed on the way, followed by the footer with the
//! checksums in it. A file of more than [`TABLE_ROWS_MAX`] rows is split, so that the footer a
//! reader needs stays small.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use base64::{Engine, prelude::BASE64_STANDARD};
use hoplake_format::{TableOwner, TableRef, constants::PAGE_CHECKSUMS_ENTRY};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::{
        metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataWriter},
        properties::{EnabledStatistics, WriterProperties, WriterVersion},
        writer::TrackedWrite,
    },
};

use super::objects::Objects;
use crate::IngestError;

/// The most rows of one file.
pub(crate) const TABLE_ROWS_MAX: u64 = 4 << 20;

/// How tables are laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableSettings {
    /// Rows of a page.
    pub(crate) page_rows: usize,
    /// Bytes of a page before compression, about.
    pub(crate) page_bytes: usize,
    /// Bytes of a row group, about; held in memory until it is full.
    pub(crate) group_bytes: usize,
}

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
        let file = tempfile::tempfile_in(&self.spill_dir).map_err(IngestError::Spill)?;
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_created_by(concat!("hoplake ", env!("CARGO_PKG_VERSION")).to_owned())
            // A dictionary would be a second range to read for one cell.
            .set_dictionary_enabled(false)
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_data_page_row_count_limit(self.settings.page_rows)
            .set_data_page_size_limit(self.settings.page_bytes)
            .set_write_batch_size(self.settings.page_rows.min(256))
            .set_max_row_group_bytes(Some(self.settings.group_bytes))
            .build();
        Ok(ArrowWriter::try_new(file, self.schema.clone(), Some(properties))?)
    }

    fn end_file(&mut self) -> Result<(), IngestError> {
        let Some((mut writer, rows)) = self.open.take() else { return Ok(()) };
        let metadata = writer.finish()?;
        let mut file = writer.inner().try_clone().map_err(IngestError::Spill)?;
        file.seek(SeekFrom::Start(0)).map_err(IngestError::Spill)?;
        let name = self.objects.name("parquet");
        let mut tail = Tail::new(self.objects.create(&name));
        let mut object = TrackedWrite::new(&mut tail);
        let checksums = copy_pages(&mut file, &metadata, &mut object)?;
        object.flush().map_err(IngestError::Spill)?;
        object.inner_mut().begin_tail();
        let metadata = with_checksums(metadata, checksums);
        ParquetMetaDataWriter::new_with_tracked(object, &metadata).finish()?;
        let (tail_position, tail_checksum) = (tail.position, tail.checksum);
        let (length, checksum) = tail.object.finish()?;
        let owner = self.owner;
        let first_row = self.first_row;
        let versions = self.objects.versions();
        self.finished.push(TableRef {
            name,
            position: 0,
            owner,
            versions,
            first_row,
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

/// Copies the magic and all pages, in the order of the file, and returns the pages' checksums in the
/// order of row group, column and page.
fn copy_pages(file: &mut File, metadata: &ParquetMetaData, to: &mut impl Write) -> Result<Vec<u32>, IngestError> {
    let lost = || ParquetError::General("the writer kept no offset index".into());
    let index = metadata.page_index().ok_or_else(lost)?;
    let mut pages = Vec::new();
    for (group, chunk) in metadata.row_groups().iter().enumerate() {
        for column in 0..chunk.num_columns() {
            let locations = index.offset_index(group, column).ok_or_else(lost)?.page_locations();
            pages.extend(locations.iter().map(|page| (page.offset as u64, page.compressed_page_size as usize)));
        }
    }
    let mut checksums = vec![0; pages.len()];
    let mut order: Vec<_> = (0..pages.len()).collect();
    order.sort_unstable_by_key(|page| pages[*page].0);
    let (mut position, mut buffer) = (0, Vec::new());
    let mut copy = |until: u64, to: &mut dyn Write| -> std::io::Result<u32> {
        buffer.resize((until - position) as usize, 0);
        file.read_exact(&mut buffer)?;
        to.write_all(&buffer)?;
        position = until;
        Ok(crc32c::crc32c(&buffer))
    };
    for page in order {
        let (start, length) = pages[page];
        // Nothing but the magic at the start lies between pages.
        copy(start, to).map_err(IngestError::Spill)?;
        checksums[page] = copy(start + length as u64, to).map_err(IngestError::Spill)?;
    }
    Ok(checksums)
}

fn with_checksums(metadata: ParquetMetaData, checksums: Vec<u32>) -> ParquetMetaData {
    let bytes: Vec<u8> = checksums.into_iter().flat_map(u32::to_le_bytes).collect();
    let file = metadata.file_metadata();
    let mut entries = file.key_value_metadata().cloned().unwrap_or_default();
    entries.push(KeyValue::new(PAGE_CHECKSUMS_ENTRY.to_owned(), BASE64_STANDARD.encode(bytes)));
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        Some(entries),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    ParquetMetaDataBuilder::new(file)
        .set_row_groups(metadata.row_groups().to_vec())
        .set_page_index(metadata.page_index().cloned())
        .build()
}

/// Passes bytes on, and from some point on checksums them.
struct Tail {
    object: super::objects::ObjectWriter,
    written: u64,
    position: u64,
    checksum: u32,
    begun: bool,
}

impl Tail {
    fn new(object: super::objects::ObjectWriter) -> Self {
        Self { object, written: 0, position: 0, checksum: 0, begun: false }
    }

    fn begin_tail(&mut self) {
        (self.begun, self.position) = (true, self.written);
    }
}

impl Write for Tail {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.object.write(bytes)?;
        self.written += count as u64;
        if self.begun {
            self.checksum = crc32c::crc32c_append(self.checksum, &bytes[..count]);
        }
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.object.flush()
    }
}

/// The columns of a table: keys first for vertices, then the properties.
pub(crate) fn table_schema(key: Option<arrow_schema::Field>, properties: &[hoplake_format::Property]) -> SchemaRef {
    let fields = key.into_iter().chain(properties.iter().map(hoplake_format::Property::arrow));
    Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>()))
}
