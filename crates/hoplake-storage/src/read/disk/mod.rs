//! A cache of blocks on the local disk that survives a restart.
//!
//! **How.** Blocks of immutable objects never change, so a cache needs no invalidation. Each block fetched
//! is appended to a *log*, a file of bounded size; an index in memory says which log has which block and
//! where. When the logs outgrow the budget the oldest is deleted, and those of its blocks that were used
//! since they were written are appended again: first in, first out, with a second chance. Writing is
//! sequential, deleting frees whole files, and the index takes some 40 bytes a block.
//!
//! **Trust.** Nothing on the disk is believed. Blocks are kept as they are stored in the bucket, with their
//! checksums, and are checked like an answer of the store; one that is torn, damaged, missing, or of another
//! object whose name has the same hash, is fetched from the store. The logs have checksums only where a
//! wrong byte would make a restart read nonsense for long (`log.rs`).
//!
//! **Never in the way.** One thread writes. When it cannot keep up, blocks are not cached; when the disk is
//! full or the folder is deleted, it abandons the log and tries again with the next block.
//!
//! **Several processes** may name one folder: each takes a subfolder that no other has locked, so that a
//! process that is restarted finds its own, and keeps to the budget in it.
//!
//! **Another disk.** What the cache needs of a disk is a [`Disk`]: a folder (`folder.rs`), or one in memory, such as
//! that of a simulation, which is written and read synchronously and not by a thread.

mod device;
mod folder;
mod index;
mod log;
mod writer;

use std::{
    io,
    ops::Range,
    sync::{
        Arc, Mutex,
        mpsc::{SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{DiskSettings, StorageError};
pub use device::{Disk, DiskFile};
use folder::Folder;
use index::{LogIndex, lock};
use log::{IndexLog, Record};
use writer::{Offer, Writer};

/// Blocks that may wait to be written.
const QUEUE_BLOCKS: usize = 1024;

/// A cache on the local disk.
#[derive(Debug)]
pub(crate) struct DiskCache {
    index: Arc<Mutex<LogIndex>>,
    writing: Writing,
}

/// Who writes.
#[derive(Debug)]
enum Writing {
    /// A thread, as fast as the disk; both live until the cache is dropped.
    Beside(Option<(SyncSender<Offer>, JoinHandle<()>)>),
    /// The task that offers a block, since the disk does not wait.
    InPlace(Mutex<Writer>),
}

/// Where a block is on the disk.
#[derive(Debug)]
pub(crate) struct DiskLocation {
    file: Arc<dyn DiskFile>,
    record: Record,
}

fn block_key(object: u64, position: u64) -> u64 {
    xxh3_64_with_seed(&position.to_le_bytes(), object)
}

impl DiskCache {
    /// Opens the cache in a folder, with whatever it has from before.
    pub(crate) fn in_folder(settings: &DiskSettings) -> Result<Self, StorageError> {
        let folder = Folder::take(&settings.folder);
        folder.and_then(|folder| Self::open(Arc::new(folder), settings.bytes_max)).map_err(|error| {
            let folder = settings.folder.display();
            StorageError::Settings(format!("the disk cache cannot use the folder {folder}: {error}"))
        })
    }

    /// Opens the cache on a disk, with whatever it has from before.
    pub(crate) fn open(disk: Arc<dyn Disk>, bytes_max: u64) -> io::Result<Self> {
        let mut index = LogIndex::default();
        let mut numbers = disk.list()?;
        // Oldest first: a block that is in two logs is then found in the later one.
        numbers.sort_unstable();
        for number in &numbers {
            match IndexLog::recover(&*disk, *number) {
                Ok(log) if !log.records.is_empty() => index.add(*number, log),
                // A log that cannot be read is only lost, and must not take room.
                _ => drop(disk.remove(*number)),
            }
        }
        let index = Arc::new(Mutex::new(index));
        let waits = disk.waits();
        // Past all numbers that were ever seen, also of logs just removed: `create` fails if the file exists.
        let next = numbers.last().map_or(0, |number| number.saturating_add(1));
        let writer = Writer::new(disk, bytes_max, next, index.clone());
        if !waits {
            return Ok(Self { index, writing: Writing::InPlace(Mutex::new(writer)) });
        }
        let (queue, offers) = sync_channel(QUEUE_BLOCKS);
        let thread = std::thread::Builder::new().name("hoplake-disk-cache".into());
        let thread = thread.spawn(move || writer.run(&offers))?;
        Ok(Self { index, writing: Writing::Beside(Some((queue, thread))) })
    }

    /// Whether a block may be here; not a use, which would protect it.
    pub(crate) fn contains(&self, object: u64, range: &Range<u64>) -> bool {
        let index = lock(&self.index);
        let entry = index.entries.get(&block_key(object, range.start));
        entry.is_some_and(|entry| u64::from(entry.record.length) == range.end - range.start)
    }

    /// Where a block may be, which counts as a use; `None` is certain.
    pub(crate) fn find(&self, object: u64, range: &Range<u64>) -> Option<DiskLocation> {
        let mut index = lock(&self.index);
        let entry = index.entries.get_mut(&block_key(object, range.start))?;
        // The object was written with other blocks, or another one has the same hash.
        if u64::from(entry.record.length) != range.end - range.start {
            return None;
        }
        entry.used = true;
        let number = entry.log;
        let record = entry.record;
        // An open file: the block can be read even if its log is deleted before the read.
        Some(DiskLocation { file: index.files.get(&number)?.clone(), record })
    }

    /// Reads blocks, off the runtime's threads if the disk may wait; `None` for a block that was deleted.
    pub(crate) async fn read(&self, locations: Vec<DiskLocation>) -> Vec<Option<Bytes>> {
        let count = locations.len();
        let read = move || locations.iter().map(|location| log::read(&*location.file, location.record).ok()).collect();
        match self.writing {
            Writing::Beside(_) => tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| vec![None; count]),
            Writing::InPlace(_) => read(),
        }
    }

    /// Writes a block some time soon, or not at all.
    pub(crate) fn offer(&self, object: u64, position: u64, block: Bytes) {
        let key = block_key(object, position);
        match &self.writing {
            // The queue is full: the disk is slower than the store, so waiting for it would not pay.
            Writing::Beside(thread) => drop(thread.as_ref().map(|(queue, _)| queue.try_send((key, block)))),
            Writing::InPlace(writer) => lock(writer).take(key, &block),
        }
    }
}

impl Drop for DiskCache {
    fn drop(&mut self) {
        match &mut self.writing {
            Writing::Beside(thread) => {
                if let Some((queue, thread)) = thread.take() {
                    drop(queue);
                    // It ends when it has written what was offered.
                    let _ = thread.join();
                }
            }
            Writing::InPlace(writer) => lock(writer).finish(),
        }
    }
}
