//! Writes blocks to the disk cache.

use std::{
    io,
    sync::{Arc, Mutex, mpsc::Receiver},
};

use bytes::Bytes;

use super::{
    Disk,
    index::{Entry, LogIndex, lock},
    log::{self, IndexLog},
};

/// Logs are this share of the budget, so that deleting one takes little away.
const LOGS: u64 = 32;

/// The longest log: positions in it are 32 bits.
const LOG_BYTES_MAX: u64 = 256 << 20;

/// A block to write: its key and its bytes.
pub(super) type Offer = (u64, Bytes);

/// Writes offered blocks, and deletes the oldest logs beyond the maximum.
#[derive(Debug)]
pub(super) struct Writer {
    disk: Arc<dyn Disk>,
    bytes_max: u64,
    /// The number of the next log.
    next: u32,
    index: Arc<Mutex<LogIndex>>,
    current: Option<(u32, IndexLog)>,
}

impl Writer {
    pub(super) fn new(disk: Arc<dyn Disk>, bytes_max: u64, next: u32, index: Arc<Mutex<LogIndex>>) -> Self {
        Self { disk, bytes_max, next, index, current: None }
    }

    /// Runs until all senders are dropped.
    pub(super) fn run(mut self, offers: &Receiver<Offer>) {
        while let Ok((key, block)) = offers.recv() {
            self.take(key, &block);
        }
        self.finish();
    }

    /// Writes a block, unless the log has it. On a full disk, or in a deleted folder, this block is not cached, and the
    /// next one begins a new log.
    pub(super) fn take(&mut self, key: u64, block: &Bytes) {
        if !lock(&self.index).entries.contains_key(&key) && self.write(key, block).is_err() {
            self.finish();
        }
    }

    fn write(&mut self, key: u64, block: &Bytes) -> io::Result<()> {
        let log_bytes_max = (self.bytes_max / LOGS).min(LOG_BYTES_MAX);
        self.append(key, block)?;
        if self.current.as_ref().is_some_and(|(_, log)| log.bytes >= log_bytes_max) {
            self.finish();
            // Room for the whole next log, so that the budget holds while it is written.
            while lock(&self.index).bytes() > self.bytes_max - log_bytes_max && self.drop_oldest()? {}
        }
        Ok(())
    }

    /// Writes a block, and only then publishes its location.
    fn append(&mut self, key: u64, block: &[u8]) -> io::Result<()> {
        let (number, log) = match &mut self.current {
            Some(current) => current,
            None => {
                let log = IndexLog::create(&*self.disk, self.next)?;
                lock(&self.index).files.insert(self.next, log.file.clone());
                self.next += 1;
                self.current.insert((self.next - 1, log))
            }
        };
        let record = log.append(key, block)?;
        lock(&self.index).entries.insert(key, Entry { log: *number, record, used: false });
        Ok(())
    }

    pub(super) fn finish(&mut self) {
        let Some((number, mut log)) = self.current.take() else { return };
        if log.records.is_empty() {
            // A full disk would have an open file for each block that it could not take.
            lock(&self.index).files.remove(&number);
            let _ = self.disk.remove(number);
            return;
        }
        // Without its footer a log is scanned at the next start.
        let _ = log.finish();
        lock(&self.index).finished.insert(number, log);
    }

    /// Deletes the oldest log; up to half of it is kept, of blocks that were used. `false` if there is none.
    fn drop_oldest(&mut self) -> io::Result<bool> {
        let mut used = Vec::new();
        // The entries go first, then the file: from here on no look-up finds a block in it.
        let mut index = lock(&self.index);
        let Some((number, log)) = index.finished.pop_first() else { return Ok(false) };
        index.files.remove(&number);
        for (key, record) in &log.records {
            // Some may have been written to a later log.
            if index.entries.get(key).is_some_and(|entry| entry.log == number) {
                used.extend(index.entries.remove(key).filter(|entry| entry.used).map(|_| (*key, *record)));
            }
        }
        drop(index);
        self.disk.remove(number)?;
        // Half at most: each deletion frees the other half, even if all blocks of the log were used.
        let mut room = log.bytes / 2;
        for (key, record) in used {
            let Some(rest) = room.checked_sub(record.length.into()) else { break };
            room = rest;
            if let Ok(block) = log::read(&*log.file, record) {
                self.append(key, &block)?;
            }
        }
        Ok(true)
    }
}
