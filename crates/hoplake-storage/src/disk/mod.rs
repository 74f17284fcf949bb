//! A cache of blocks on the local disk that survives a restart.
//!
//! **How.** Blocks of immutable objects never change, so a cache needs no invalidation. Each block fetched
//! is appended to a *log*, a file of bounded size; an index in memory says which log has which block and
//! where. When the logs outgrow the budget the oldest is deleted, and those of its blocks that were used
//! since they were written are appended anew: first in, first out, with a second chance. Writing is
//! sequential, deleting frees whole files, and the index takes some 40 bytes a block.
//!
//! **Trust.** Nothing on the disk is believed. Blocks are kept as they are stored in the bucket, with their
//! checksums, and are checked like an answer of the store; one that is torn, damaged, gone, or of another
//! object whose name has the same hash, is fetched from the store. The logs have checksums only where a
//! wrong byte would make a restart read nonsense for long (`log.rs`).
//!
//! **Never in the way.** One thread writes. When it cannot keep up, blocks are not cached; when the disk is
//! full or the folder is gone, it gives up the log and tries anew with the next block.
//!
//! **Several processes** may name one folder: each takes a subfolder that no other has locked, so that a
//! process that is restarted finds its own, and keeps to the budget in it.

mod log;
mod writer;

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, TryLockError},
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard,
        mpsc::{SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{DiskSettings, StorageError};
use log::{Log, Record};
use writer::Writer;

/// Blocks that may wait to be written.
const QUEUE_BLOCKS: usize = 1024;

/// Processes that can share a folder.
const SLOTS: usize = 64;

/// A cache on the local disk.
#[derive(Debug)]
pub(crate) struct DiskCache {
    state: Arc<Mutex<State>>,
    queue: Option<SyncSender<Offer>>,
    writer: Option<JoinHandle<()>>,
    /// Locked for as long as the cache is open.
    _lock: File,
}

/// A block to write: its key and its bytes.
type Offer = (u64, Bytes);

/// The logs, and where each block is.
#[derive(Debug, Default)]
struct State {
    places: HashMap<u64, Entry>,
    /// Of all logs.
    files: HashMap<u32, Arc<File>>,
    /// All logs but the one that is being written.
    finished: BTreeMap<u32, Log>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    log: u32,
    record: Record,
    used: bool,
}

/// Where a block is on the disk.
#[derive(Debug)]
pub(crate) struct DiskPlace {
    file: Arc<File>,
    record: Record,
}

fn block_key(object: u64, position: u64) -> u64 {
    xxh3_64_with_seed(&position.to_le_bytes(), object)
}

impl DiskCache {
    /// Opens the cache in a folder, with whatever it has from before.
    pub(crate) fn open(settings: &DiskSettings) -> Result<Self, StorageError> {
        let failed = |error: std::io::Error| {
            let folder = settings.folder.display();
            StorageError::Settings(format!("the disk cache cannot use the folder {folder}: {error}"))
        };
        let (folder, lock) = take_slot(&settings.folder).map_err(failed)?;
        let mut state = State::default();
        let mut next = 0;
        for (number, path) in log::list(&folder).map_err(failed)? {
            next = number.saturating_add(1);
            // A log that cannot be read is only lost.
            if let Ok(log) = Log::recover(&path) {
                state.add(number, log);
            }
        }
        let state = Arc::new(Mutex::new(state));
        let (queue, offers) = sync_channel(QUEUE_BLOCKS);
        let writer = Writer::new(folder, settings.bytes_max, next, state.clone());
        let thread = std::thread::Builder::new().name("hoplake-disk-cache".into());
        let writer = thread.spawn(move || writer.run(&offers)).map_err(failed)?;
        Ok(Self { state, queue: Some(queue), writer: Some(writer), _lock: lock })
    }

    /// Where a block may be; `None` is certain.
    pub(crate) fn find(&self, object: u64, range: &Range<u64>) -> Option<DiskPlace> {
        let mut state = lock(&self.state);
        let entry = state.places.get_mut(&block_key(object, range.start))?;
        if u64::from(entry.record.length) != range.end - range.start {
            return None;
        }
        entry.used = true;
        let (number, record) = (entry.log, entry.record);
        Some(DiskPlace { file: state.files.get(&number)?.clone(), record })
    }

    /// Reads blocks, beside the threads of the runtime; `None` for one that is not there any more.
    pub(crate) async fn read(&self, places: Vec<DiskPlace>) -> Vec<Option<Bytes>> {
        let count = places.len();
        let read = move || places.iter().map(|place| log::read(&place.file, place.record).ok()).collect();
        tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| vec![None; count])
    }

    /// Writes a block some time soon, or not at all.
    pub(crate) fn offer(&self, object: u64, position: u64, block: Bytes) {
        if let Some(queue) = &self.queue {
            // Full: the disk is slower than the store, and the block is not worth waiting for.
            let _ = queue.try_send((block_key(object, position), block));
        }
    }
}

impl Drop for DiskCache {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            // It ends when it has written what was offered.
            let _ = writer.join();
        }
    }
}

impl State {
    /// Takes in a log of an earlier run with its blocks.
    fn add(&mut self, number: u32, log: Log) {
        for (key, record) in &log.records {
            self.places.insert(*key, Entry { log: number, record: *record, used: false });
        }
        self.files.insert(number, log.file.clone());
        self.finished.insert(number, log);
    }

    fn bytes(&self) -> u64 {
        self.finished.values().map(|log| log.bytes).sum()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no thread panics with the state")
}

/// The first subfolder that no other process has.
fn take_slot(folder: &Path) -> std::io::Result<(PathBuf, File)> {
    for slot in 0..SLOTS {
        let slot = folder.join(format!("slot-{slot}"));
        fs::create_dir_all(&slot)?;
        let file = File::create(slot.join("lock"))?;
        match file.try_lock() {
            Ok(()) => return Ok((slot, file)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(std::io::Error::other(format!("{SLOTS} processes use it already")))
}
