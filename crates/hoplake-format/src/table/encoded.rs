//! A table whose rows are all there, on its way out.

use std::io::{self, Read, Seek, SeekFrom, Write};

use base64::{Engine, prelude::BASE64_STANDARD};
use parquet::{
    arrow::ArrowWriter,
    errors::ParquetError,
    file::{
        metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataWriter},
        writer::TrackedWrite,
    },
};

use super::TableRows;
use crate::{TableRef, constants::PAGE_CHECKSUMS_ENTRY};

/// A table whose rows are all in its scratch.
pub struct EncodedTable<S: Write + Send> {
    pub(super) rows: TableRows,
    pub(super) count: u64,
    pub(super) scratch: ArrowWriter<S>,
    pub(super) metadata: ParquetMetaData,
}

/// A finished table: its manifest entry without its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableEnd {
    rows: TableRows,
    count: u64,
    /// Its bytes.
    pub length: u64,
    tail_position: u64,
    tail_checksum: u32,
    checksum: u32,
}

impl TableEnd {
    /// The manifest entry of the table at a position of this object.
    pub fn at(self, name: impl Into<String>, position: u64) -> TableRef {
        let Self { rows, count, length, tail_position, tail_checksum, checksum } = self;
        TableRef {
            name: name.into(),
            position,
            owner: rows.owner,
            versions: rows.versions,
            first_row: rows.first,
            rows: count,
            length,
            tail_position,
            tail_checksum,
            checksum,
        }
    }
}

impl<S: Read + Write + Seek + Send> EncodedTable<S> {
    /// Copies the pages, and writes the end after them.
    ///
    /// # Errors
    /// Those of the scratch and of `to`, as Parquet's.
    pub fn write_to(mut self, to: impl Write + Send) -> Result<TableEnd, ParquetError> {
        let mut tail = Tail { to, written: 0, tail_position: None, tail_checksum: 0, checksum: 0 };
        let scratch = self.scratch.inner_mut();
        scratch.seek(SeekFrom::Start(0))?;
        let mut object = TrackedWrite::new(&mut tail);
        let checksums = copy_pages(scratch, &self.metadata, &mut object)?;
        object.flush()?;
        object.inner_mut().begin_tail();
        let metadata = with_checksums(self.metadata, checksums);
        ParquetMetaDataWriter::new_with_tracked(object, &metadata).finish()?;
        let Tail { written, tail_position, tail_checksum, checksum, .. } = tail;
        let tail_position = tail_position.unwrap_or(written);
        Ok(TableEnd { rows: self.rows, count: self.count, length: written, tail_position, tail_checksum, checksum })
    }
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
    // Read in the order of the file: the scratch is read from front to back, once.
    order.sort_unstable_by_key(|page| pages[*page].0);
    let mut position = 0;
    let mut buffer = Vec::new();
    let mut copy = |until: u64, to: &mut dyn Write| -> io::Result<u32> {
        buffer.resize((until - position) as usize, 0);
        scratch.read_exact(&mut buffer)?;
        to.write_all(&buffer)?;
        position = until;
        Ok(crc32c::crc32c(&buffer))
    };
    for page in order {
        let (start, length) = pages[page];
        // Only the magic at the start precedes the pages.
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
    /// From where on it is the tail.
    tail_position: Option<u64>,
    tail_checksum: u32,
    checksum: u32,
}

impl<W> Tail<W> {
    fn begin_tail(&mut self) {
        self.tail_position = Some(self.written);
    }
}

impl<W: Write> Write for Tail<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Only what was taken counts: a writer may take fewer bytes than it is given.
        let count = self.to.write(bytes)?;
        self.written += count as u64;
        self.checksum = crc32c::crc32c_append(self.checksum, &bytes[..count]);
        if self.tail_position.is_some() {
            self.tail_checksum = crc32c::crc32c_append(self.tail_checksum, &bytes[..count]);
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
