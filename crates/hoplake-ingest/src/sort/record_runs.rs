//! Sorted runs of records: in memory, or in a file as differences.
//!
//! A file is a sequence of blocks of up to 256 records:
//!
//! ```text
//! count - 1 : u8 | width : u8 | first record | count - 1 differences of `width` bytes each
//! ```
//!
//! Differences of sorted edges take 2–4 bytes instead of 8, for about 1 ns each way, and a disk takes
//! 3 ns for a byte. One width for a block keeps both loops free of branches.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Read, Write},
    ops::Range,
    path::Path,
    sync::Arc,
};

use super::{radix::Record, rounds::Run, spill::SpillFile};
use crate::IngestError;

const BLOCK_LEN: usize = 256;
const HEADER_BYTES: usize = 2;
/// Room for the widest block, and for reading or writing a full record at the last difference.
const BLOCK_BYTES_MAX: usize = HEADER_BYTES + (BLOCK_LEN + 1) * 16;
/// The buffer of a run that is read or written.
pub(crate) const FILE_BUFFER_BYTES: usize = 64 << 10;

/// A sorted run in a file.
#[derive(Debug)]
pub(crate) struct RecordFile {
    file: SpillFile,
    records: u64,
}

/// Writes a run.
pub(crate) struct RecordWriter<T> {
    file: SpillFile,
    writer: BufWriter<File>,
    pending: Vec<T>,
    records: u64,
    block: Box<[u8; BLOCK_BYTES_MAX]>,
}

impl<T: Record> RecordWriter<T> {
    pub(crate) fn create(folder: &Path, buffer_bytes: usize) -> Result<Self, IngestError> {
        let (file, writer) = SpillFile::create(folder)?;
        Ok(Self {
            file,
            writer: BufWriter::with_capacity(buffer_bytes, writer),
            pending: Vec::with_capacity(BLOCK_LEN),
            records: 0,
            block: Box::new([0; BLOCK_BYTES_MAX]),
        })
    }

    /// Appends records, which are not less than what was written.
    pub(crate) fn write(&mut self, mut records: &[T]) -> Result<(), IngestError> {
        self.records += records.len() as u64;
        if !self.pending.is_empty() {
            let (head, rest) = records.split_at(records.len().min(BLOCK_LEN - self.pending.len()));
            self.pending.extend_from_slice(head);
            records = rest;
            if self.pending.len() < BLOCK_LEN {
                return Ok(());
            }
            self.flush_pending()?;
        }
        // Full blocks are encoded from the caller's slice; only the remainder is copied.
        let blocks = records.chunks_exact(BLOCK_LEN);
        self.pending.extend_from_slice(blocks.remainder());
        for block in blocks {
            self.write_block(block)?;
        }
        Ok(())
    }

    fn flush_pending(&mut self) -> Result<(), IngestError> {
        let pending = std::mem::take(&mut self.pending);
        self.write_block(&pending)?;
        self.pending = pending;
        self.pending.clear();
        Ok(())
    }

    fn write_block(&mut self, records: &[T]) -> Result<(), IngestError> {
        let Some(&first) = records.first() else { return Ok(()) };
        // One pass for the width, with no branch: the bits of all differences together are as wide as the widest.
        let all =
            records.windows(2).fold(T::default(), |all, pair| pair[1].minus(pair[0]).differing(T::default(), all));
        let width = all.width();
        // 256 records are one more than a byte can say.
        self.block[0] = (records.len() - 1) as u8;
        self.block[1] = width as u8;
        first.put(&mut self.block[HEADER_BYTES..]);
        let differences = &mut self.block[HEADER_BYTES + T::BYTES..];
        for (position, pair) in records.windows(2).enumerate() {
            pair[1].minus(pair[0]).put(&mut differences[position * width..]);
        }
        let length = HEADER_BYTES + T::BYTES + (records.len() - 1) * width;
        self.writer.write_all(&self.block[..length]).map_err(IngestError::Spill)
    }

    pub(crate) fn finish(mut self) -> Result<RecordFile, IngestError> {
        self.flush_pending()?;
        self.writer.flush().map_err(IngestError::Spill)?;
        Ok(RecordFile { file: self.file, records: self.records })
    }
}

/// A sorted run and how far it is read.
pub(crate) enum RecordRun<T> {
    /// A range of a buffer that several runs share; the window is always all of its first records.
    Memory { buffer: Arc<Vec<T>>, range: Range<usize>, window: usize },
    /// A file; `records[start..]` is decoded.
    File { reader: BlockReader, records: Vec<T>, start: usize },
}

impl<T: Record> RecordRun<T> {
    pub(crate) fn memory(buffer: &Arc<Vec<T>>, range: Range<usize>) -> Self {
        Self::Memory { buffer: Arc::clone(buffer), range, window: 0 }
    }

    pub(crate) fn file(run: RecordFile, buffer_bytes: usize) -> Result<Self, IngestError> {
        let reader = run.file.open(buffer_bytes)?;
        let reader =
            BlockReader { reader, _file: run.file, records_left: run.records, block: vec![0; BLOCK_BYTES_MAX] };
        Ok(Self::File { reader, records: Vec::new(), start: 0 })
    }
}

impl<T: Record> Run<T> for RecordRun<T> {
    fn fill(&mut self, len: usize) -> Result<(), IngestError> {
        match self {
            Self::Memory { range, window, .. } => *window = len.min(range.len()),
            Self::File { reader, records, start } => {
                if records.len() - *start >= len {
                    return Ok(());
                }
                // What is left is less than a window, so the move is short.
                records.drain(..*start);
                *start = 0;
                while records.len() < len && reader.records_left > 0 {
                    reader.read_block(records)?;
                }
            }
        }
        Ok(())
    }

    fn window(&self) -> &[T] {
        match self {
            Self::Memory { buffer, range, window } => &buffer[range.start..range.start + window],
            Self::File { records, start, .. } => &records[*start..],
        }
    }

    fn advance(&mut self, len: usize) {
        match self {
            Self::Memory { range, window, .. } => {
                range.start += len;
                *window -= len;
            }
            Self::File { start, .. } => *start += len,
        }
    }

    fn ends_with_window(&self) -> bool {
        match self {
            Self::Memory { range, window, .. } => *window == range.len(),
            Self::File { reader, .. } => reader.records_left == 0,
        }
    }
}

/// Reads a run block by block.
pub(crate) struct BlockReader {
    reader: BufReader<File>,
    _file: SpillFile,
    records_left: u64,
    block: Vec<u8>,
}

impl BlockReader {
    fn read_block<T: Record>(&mut self, records: &mut Vec<T>) -> Result<(), IngestError> {
        let header = &mut self.block[..HEADER_BYTES + T::BYTES];
        self.reader.read_exact(header).map_err(IngestError::Spill)?;
        let differences = usize::from(header[0]);
        let width = usize::from(header[1]);
        let mut record = T::get(&header[HEADER_BYTES..], T::BYTES);
        // Other bytes than were written must end in an error: not in a slice out of bounds, nor in a run that is too long.
        if width > T::BYTES || differences as u64 >= self.records_left {
            let why = "a run holds a block that was not written";
            return Err(IngestError::Spill(std::io::Error::new(std::io::ErrorKind::InvalidData, why)));
        }
        // The bytes after these are of an earlier block; `get` reads up to `BYTES` of them and masks them.
        self.reader.read_exact(&mut self.block[..differences * width]).map_err(IngestError::Spill)?;
        self.records_left -= differences as u64 + 1;
        records.push(record);
        records.extend((0..differences).map(|position| {
            record = record.plus(T::get(&self.block[position * width..], width));
            record
        }));
        Ok(())
    }
}
