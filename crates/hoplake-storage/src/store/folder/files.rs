//! The operations on files that a folder is written with, one by one.
//!
//! They are a trait so that the order of writing, flushing and naming can be observed and broken: the simulation has a
//! disk below it that forgets unflushed data, and tests record what happens.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use async_trait::async_trait;
use bytes::Bytes;

/// A file in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Its path.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// When it was last written, in milliseconds since 1970.
    pub modified_unix_ms: i64,
}

/// Operations on files. After a loss of power a file may have any of the bytes that were not flushed, and a folder any
/// of the names: [`Self::flush_file`] and [`Self::flush_folder`] make them durable.
#[async_trait]
pub trait Files: fmt::Debug + Send + Sync {
    /// Makes a folder, and those above it that are not there.
    async fn create_folder(&self, folder: &Path) -> io::Result<()>;

    /// Makes an empty file; fails with [`io::ErrorKind::AlreadyExists`] if there is one of that name.
    async fn create(&self, file: &Path) -> io::Result<()>;

    /// Writes bytes into a file, from a position on.
    async fn write_at(&self, file: &Path, position: u64, bytes: Bytes) -> io::Result<()>;

    /// Returns when the bytes of a file survive a loss of power.
    async fn flush_file(&self, file: &Path) -> io::Result<()>;

    /// Returns when the names in a folder survive a loss of power.
    async fn flush_folder(&self, folder: &Path) -> io::Result<()>;

    /// Gives a file a second name; fails with [`io::ErrorKind::AlreadyExists`] if that is taken.
    async fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames a file, and replaces any file of that name.
    async fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Takes a name from a file.
    async fn remove(&self, file: &Path) -> io::Result<()>;

    /// The files in a folder, without those in folders below; none if the folder does not exist.
    async fn list(&self, folder: &Path) -> io::Result<Vec<FoundFile>>;
}

/// The files of the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct SystemFiles;

/// Runs work that waits for a disk on a thread that may block.
async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await.map_err(io::Error::other)?,
        // Without a runtime there is no task that blocking could delay.
        Err(_) => work(),
    }
}

#[async_trait]
impl Files for SystemFiles {
    async fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let folder = folder.to_owned();
        on_thread(move || fs::create_dir_all(folder)).await
    }

    async fn create(&self, file: &Path) -> io::Result<()> {
        let file = file.to_owned();
        on_thread(move || File::create_new(file).map(drop)).await
    }

    async fn write_at(&self, file: &Path, position: u64, bytes: Bytes) -> io::Result<()> {
        let file = file.to_owned();
        on_thread(move || {
            let mut file = OpenOptions::new().write(true).open(file)?;
            file.seek(SeekFrom::Start(position))?;
            file.write_all(&bytes)
        })
        .await
    }

    async fn flush_file(&self, file: &Path) -> io::Result<()> {
        let file = file.to_owned();
        on_thread(move || OpenOptions::new().write(true).open(file)?.sync_all()).await
    }

    async fn flush_folder(&self, folder: &Path) -> io::Result<()> {
        let folder = folder.to_owned();
        on_thread(move || File::open(folder)?.sync_all()).await
    }

    async fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from = from.to_owned();
        let to = to.to_owned();
        on_thread(move || fs::hard_link(from, to)).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from = from.to_owned();
        let to = to.to_owned();
        on_thread(move || fs::rename(from, to)).await
    }

    async fn remove(&self, file: &Path) -> io::Result<()> {
        let file = file.to_owned();
        on_thread(move || fs::remove_file(file)).await
    }

    async fn list(&self, folder: &Path) -> io::Result<Vec<FoundFile>> {
        let folder = folder.to_owned();
        on_thread(move || list_folder(&folder)).await
    }
}

fn list_folder(folder: &Path) -> io::Result<Vec<FoundFile>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        // Writers rename and remove staged files while the folder is listed.
        let metadata = match entry.metadata() {
            // It went meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            metadata => metadata?,
        };
        if metadata.is_file() {
            let since_1970 = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            let modified_unix_ms = since_1970.as_millis() as i64;
            found.push(FoundFile { path: entry.path(), bytes: metadata.len(), modified_unix_ms });
        }
    }
    Ok(found)
}
