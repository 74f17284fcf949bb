//! What a cache needs of a disk.

use std::{fmt::Debug, io, sync::Arc};

/// Where a disk cache keeps its logs: numbered files, each of which is written from its beginning to its end. A log has
/// one user. A failure of it only means that a block is not cached.
pub trait Disk: Debug + Send + Sync {
    /// The numbers of the logs, in any order.
    ///
    /// # Errors
    /// The disk's, as of all others here.
    fn list(&self) -> io::Result<Vec<u32>>;

    /// A new, empty log, to write and to read.
    ///
    /// # Errors
    /// The disk's; there may be one of that number.
    fn create(&self, number: u32) -> io::Result<Arc<dyn DiskFile>>;

    /// A log of an earlier run, to read.
    ///
    /// # Errors
    /// The disk's.
    fn open(&self, number: u32) -> io::Result<Arc<dyn DiskFile>>;

    /// Deletes a log. What has it open may go on reading.
    ///
    /// # Errors
    /// The disk's.
    fn remove(&self, number: u32) -> io::Result<()>;

    /// Whether it may let its callers wait: then a thread writes, and others read. One in memory does not.
    fn waits(&self) -> bool {
        true
    }
}

/// A log on a [`Disk`].
pub trait DiskFile: Debug + Send + Sync {
    /// Its length.
    ///
    /// # Errors
    /// The disk's.
    fn bytes(&self) -> io::Result<u64>;

    /// Fills a buffer from a position on.
    ///
    /// # Errors
    /// The disk's, and if the file ends before.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()>;

    /// Writes bytes from a position on.
    ///
    /// # Errors
    /// The disk's; then some of them may be written.
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()>;
}
