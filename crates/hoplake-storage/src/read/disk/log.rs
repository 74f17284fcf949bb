//! A log of blocks.
//!
//! ```text
//! record*   magic "HLKb" u32, length u32, key u64, CRC-32C of these u32, the block
//! footer    (key u64, position u32, length u32) of each record, their CRC-32C u32, their number u32, "HLKlog01"
//! ```
//! Little-endian. The footer is written when the log is full or the process ends, and lets a restart read
//! the index at once. A crash leaves a log without one: its records are then scanned, up to the first
//! whose header is damaged. The position is that of the block, after its header.

use std::{io, sync::Arc};

use bytes::Bytes;

use super::{Disk, DiskFile};

const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"HLKb");
const LOG_MAGIC: &[u8; 8] = b"HLKlog01";
const HEADER_BYTES: usize = 20;
const TRAILER_BYTES: usize = 16;
const FOOTER_ENTRY_BYTES: usize = 16;

/// Where a block is in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) position: u32,
    pub(super) length: u32,
}

/// A log file, with the index of its blocks.
#[derive(Debug)]
pub(super) struct IndexLog {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) bytes: u64,
    pub(super) records: Vec<(u64, Record)>,
}

/// Reads a block.
pub(super) fn read(file: &dyn DiskFile, record: Record) -> io::Result<Bytes> {
    let mut block = vec![0; record.length as usize];
    file.read_at(&mut block, record.position.into())?;
    Ok(block.into())
}

impl IndexLog {
    /// A new, empty log.
    pub(super) fn create(disk: &dyn Disk, number: u32) -> io::Result<Self> {
        Ok(Self { file: disk.create(number)?, bytes: 0, records: Vec::new() })
    }

    /// A log of an earlier run.
    pub(super) fn recover(disk: &dyn Disk, number: u32) -> io::Result<Self> {
        let file = disk.open(number)?;
        let bytes = file.bytes()?;
        let records = match footer(&*file, bytes)? {
            Some(records) => records,
            None => scan(&*file, bytes)?,
        };
        Ok(Self { file, bytes, records })
    }

    /// Appends a block.
    pub(super) fn append(&mut self, key: u64, block: &[u8]) -> io::Result<Record> {
        let too_long = |_| io::Error::other("a log grows no longer than 4 GiB");
        let length = u32::try_from(block.len()).map_err(too_long)?;
        let position = u32::try_from(self.bytes + HEADER_BYTES as u64).map_err(too_long)?;
        // One write for header and block: a crash tears the end of the log, not its middle.
        let mut record = Vec::with_capacity(HEADER_BYTES + block.len());
        record.extend_from_slice(&RECORD_MAGIC.to_le_bytes());
        record.extend_from_slice(&length.to_le_bytes());
        record.extend_from_slice(&key.to_le_bytes());
        record.extend_from_slice(&crc32c::crc32c(&record).to_le_bytes());
        record.extend_from_slice(block);
        self.file.write_at(&record, self.bytes)?;
        self.bytes += record.len() as u64;
        let record = Record { position, length };
        self.records.push((key, record));
        Ok(record)
    }

    /// Writes the footer; nothing can be appended then.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let mut footer = Vec::with_capacity(self.records.len() * FOOTER_ENTRY_BYTES + TRAILER_BYTES);
        for (key, record) in &self.records {
            footer.extend_from_slice(&key.to_le_bytes());
            footer.extend_from_slice(&record.position.to_le_bytes());
            footer.extend_from_slice(&record.length.to_le_bytes());
        }
        footer.extend_from_slice(&crc32c::crc32c(&footer).to_le_bytes());
        footer.extend_from_slice(&(self.records.len() as u32).to_le_bytes());
        footer.extend_from_slice(LOG_MAGIC);
        self.file.write_at(&footer, self.bytes)?;
        self.bytes += footer.len() as u64;
        Ok(())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The index that a finished log ends with.
fn footer(file: &dyn DiskFile, bytes: u64) -> io::Result<Option<Vec<(u64, Record)>>> {
    let Some(trailer_at) = bytes.checked_sub(TRAILER_BYTES as u64) else { return Ok(None) };
    let mut trailer = [0; TRAILER_BYTES];
    file.read_at(&mut trailer, trailer_at)?;
    let count = u64::from(u32_at(&trailer, 4));
    let start = trailer_at.checked_sub(count * FOOTER_ENTRY_BYTES as u64);
    // The count is checked against the length of the file before anything of its size is allocated.
    let Some(start) = start.filter(|_| trailer[8..] == *LOG_MAGIC) else { return Ok(None) };
    let mut entries = vec![0; (trailer_at - start) as usize];
    file.read_at(&mut entries, start)?;
    if crc32c::crc32c(&entries) != u32_at(&trailer, 0) {
        return Ok(None);
    }
    let record = |entry: &[u8]| (u64_at(entry, 0), Record { position: u32_at(entry, 8), length: u32_at(entry, 12) });
    let records: Vec<_> = entries.chunks_exact(FOOTER_ENTRY_BYTES).map(record).collect();
    // A checksum proves that the footer is as it was written, not that it was written for these bytes.
    // Positions after the records would be those of the footer itself.
    let inside = |record: &Record| u64::from(record.position) + u64::from(record.length) <= start;
    Ok(records.iter().all(|(_, record)| inside(record)).then_some(records))
}

/// The records of a log that a crash left without a footer.
fn scan(file: &dyn DiskFile, bytes: u64) -> io::Result<Vec<(u64, Record)>> {
    let mut at = 0u64;
    let mut records = Vec::new();
    let mut header = [0; HEADER_BYTES];
    while at + HEADER_BYTES as u64 <= bytes {
        file.read_at(&mut header, at)?;
        let whole = u32_at(&header, 0) == RECORD_MAGIC && u32_at(&header, 16) == crc32c::crc32c(&header[..16]);
        let length = u32_at(&header, 4);
        let position = at + HEADER_BYTES as u64;
        let (true, Ok(start)) = (whole && position + u64::from(length) <= bytes, u32::try_from(position)) else {
            // What a crash left behind the last complete record is lost; blocks have checksums of their own, checked when they are read.
            break;
        };
        records.push((u64_at(&header, 8), Record { position: start, length }));
        at = position + u64::from(length);
    }
    Ok(records)
}
