//! Tables of properties: Parquet with small pages, no dictionaries and a checksum for each page.
//!
//! Parquet's writer does not write the page checksums that its format allows for, so they are kept in the footer's
//! metadata. They are known only when all pages are: a table is written to some scratch first, a file or memory, and
//! its pages are then copied one by one, checksummed on the way, followed by the footer with the checksums in it.

use std::{
    io::{Cursor, Read, Seek, SeekFrom, Write},
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema as ArrowSchema, SchemaRef};
use base64::{Engine, prelude::BASE64_STANDARD};
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

use crate::{Property, constants::PAGE_CHECKSUMS_ENTRY};

/// How tables are laid out.
#[derive(Debug, Clone, Copy)]
pub struct TableSettings {
    /// Rows of a page.
    pub page_rows: usize,
    /// Bytes of a page before compression, about.
    pub page_bytes: usize,
    /// Bytes of a row group, about; held in memory until it is full.
    pub group_bytes: usize,
}

impl Default for TableSettings {
    fn default() -> Self {
        Self { page_rows: 512, page_bytes: 16 << 10, group_bytes: 32 << 20 }
    }
}

/// What the manifest must know of a finished table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableEnd {
    /// Its bytes.
    pub length: u64,
    /// Where its page index and footer begin.
    pub tail_position: u64,
    /// CRC-32C of the bytes from there.
    pub tail_checksum: u32,
    /// CRC-32C of all its bytes.
    pub checksum: u32,
}

/// The columns of a table: keys first for vertices, then the properties.
pub fn table_schema(key: Option<Field>, properties: &[Property]) -> SchemaRef {
    let fields = key.into_iter().chain(properties.iter().map(Property::arrow));
    Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()))
}

/// Begins a table in `scratch`.
///
/// # Errors
/// Parquet's, if a type cannot be written.
pub fn begin_table<W: Write + Send>(
    scratch: W,
    schema: SchemaRef,
    settings: TableSettings,
) -> Result<ArrowWriter<W>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by(concat!("hoplake ", env!("CARGO_PKG_VERSION")).to_owned())
        // A dictionary would be a second range to read for one cell.
        .set_dictionary_enabled(false)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_data_page_row_count_limit(settings.page_rows)
        .set_data_page_size_limit(settings.page_bytes)
        .set_write_batch_size(settings.page_rows.min(256))
        .set_max_row_group_bytes(Some(settings.group_bytes))
        .build();
    ArrowWriter::try_new(scratch, schema, Some(properties))
}

/// Copies the pages of a table whose writer was finished with `metadata`, and writes its end behind them.
///
/// # Errors
/// Those of the scratch and of `to`, as Parquet's.
pub fn finish_table(
    scratch: &mut (impl Read + Seek),
    metadata: ParquetMetaData,
    to: impl Write + Send,
) -> Result<TableEnd, ParquetError> {
    let mut tail = Tail { to, written: 0, tail_position: 0, tail_checksum: 0, checksum: 0, begun: false };
    scratch.seek(SeekFrom::Start(0))?;
    let mut object = TrackedWrite::new(&mut tail);
    let checksums = copy_pages(scratch, &metadata, &mut object)?;
    object.flush()?;
    object.inner_mut().begin_tail();
    let metadata = with_checksums(metadata, checksums);
    ParquetMetaDataWriter::new_with_tracked(object, &metadata).finish()?;
    let Tail { written, tail_position, tail_checksum, checksum, .. } = tail;
    Ok(TableEnd { length: written, tail_position, tail_checksum, checksum })
}

/// A whole table in memory.
///
/// # Errors
/// Parquet's, if a type cannot be written.
pub fn encode_table(batch: &RecordBatch, settings: TableSettings) -> Result<(Vec<u8>, TableEnd), ParquetError> {
    let mut writer = begin_table(Vec::new(), batch.schema(), settings)?;
    writer.write(batch)?;
    let metadata = writer.finish()?;
    let mut bytes = Vec::new();
    let end = finish_table(&mut Cursor::new(writer.inner()), metadata, &mut bytes)?;
    Ok((bytes, end))
}

/// Copies the magic and all pages, in the order of the file, and returns the pages' checksums in the
/// order of row group, column and page.
fn copy_pages(
    scratch: &mut impl Read,
    metadata: &ParquetMetaData,
    to: &mut impl Write,
) -> Result<Vec<u32>, ParquetError> {
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
        scratch.read_exact(&mut buffer)?;
        to.write_all(&buffer)?;
        position = until;
        Ok(crc32c::crc32c(&buffer))
    };
    for page in order {
        let (start, length) = pages[page];
        // Nothing but the magic at the start lies between pages.
        copy(start, to)?;
        checksums[page] = copy(start + length as u64, to)?;
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

/// Passes bytes on and checksums them: all of them, and those from some point on.
struct Tail<W> {
    to: W,
    written: u64,
    tail_position: u64,
    tail_checksum: u32,
    checksum: u32,
    begun: bool,
}

impl<W> Tail<W> {
    fn begin_tail(&mut self) {
        (self.begun, self.tail_position) = (true, self.written);
    }
}

impl<W: Write> Write for Tail<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.to.write(bytes)?;
        self.written += count as u64;
        self.checksum = crc32c::crc32c_append(self.checksum, &bytes[..count]);
        if self.begun {
            self.tail_checksum = crc32c::crc32c_append(self.tail_checksum, &bytes[..count]);
        }
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}
