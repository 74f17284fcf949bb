//! Logs in a folder of the machine.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Disk, DiskFile};

/// Processes that can share a folder.
const SLOTS: usize = 64;

/// A subfolder that this process alone has.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Locked for as long as the cache is open.
    _lock: File,
}

impl Folder {
    /// The first subfolder that no other process has.
    pub(super) fn take(folder: &Path) -> io::Result<Self> {
        for slot in 0..SLOTS {
            let path = folder.join(format!("slot-{slot}"));
            fs::create_dir_all(&path)?;
            let lock = File::create(path.join("lock"))?;
            // The system releases the lock with the process, also if that is killed, so that no stale lock has to be detected.
            match lock.try_lock() {
                // The lowest free one: a process that is restarted alone finds the blocks of the one before.
                Ok(()) => return Ok(Self { path, _lock: lock }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::other(format!("{SLOTS} processes use it already")))
    }

    fn path_of(&self, number: u32) -> PathBuf {
        self.path.join(format!("{number:010}.log"))
    }
}

impl Disk for Folder {
    fn list(&self) -> io::Result<Vec<u32>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            numbers.extend(name.to_str().and_then(|name| name.strip_suffix(".log")?.parse::<u32>().ok()));
        }
        Ok(numbers)
    }

    fn create(&self, number: u32) -> io::Result<Arc<dyn DiskFile>> {
        let file = File::options().read(true).write(true).create_new(true).open(self.path_of(number))?;
        Ok(Arc::new(file))
    }

    fn open(&self, number: u32) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(File::open(self.path_of(number))?))
    }

    fn remove(&self, number: u32) -> io::Result<()> {
        fs::remove_file(self.path_of(number))
    }
}

impl DiskFile for File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()> {
        self.read_exact_at(buffer, position)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.write_all_at(bytes, position)
    }
}
