//! Which log has which block, in memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
};

use super::{
    device::DiskFile,
    log::{IndexLog, Record},
};

/// The logs, and where each block is.
#[derive(Debug, Default)]
pub(super) struct LogIndex {
    pub(super) entries: HashMap<u64, Entry>,
    /// The files of all logs, also of the one that is being written.
    pub(super) files: HashMap<u32, Arc<dyn DiskFile>>,
    /// All logs but the one that is being written.
    pub(super) finished: BTreeMap<u32, IndexLog>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) log: u32,
    pub(super) record: Record,
    pub(super) used: bool,
}

impl LogIndex {
    /// Takes in a log of an earlier run with its blocks.
    pub(super) fn add(&mut self, number: u32, log: IndexLog) {
        for (key, record) in &log.records {
            self.entries.insert(*key, Entry { log: number, record: *record, used: false });
        }
        self.files.insert(number, log.file.clone());
        self.finished.insert(number, log);
    }

    /// The bytes of the finished logs.
    pub(super) fn bytes(&self) -> u64 {
        self.finished.values().map(|log| log.bytes).sum()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with the index")
}
