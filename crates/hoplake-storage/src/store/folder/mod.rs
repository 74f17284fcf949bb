//! Objects as files of a folder, which survive a loss of power once they are acknowledged.
//!
//! **How an object is written.** Into a file with a name of its own (`<name>#1`: staged), which no listing shows. Then
//! its bytes are flushed, it gets its name in one step, and the folder is flushed. The first write to a folder makes it
//! and flushes every folder above it, too: another process may have made one of them and died before it was flushed.
//!
//! **How an object is created.** By a second name for the staged file, which fails if the name is taken. The folder is
//! flushed before that as well: the creator of a version has read the one before it, whose writer may not have flushed
//! it yet.
//!
//! **What is not flushed.** Deletions, which are done again; and advice ([`Folder::advise`]).
//!
//! Reading, listing and deleting are `object_store`'s. It can flush, too, but not files of other processes; its errors
//! do not say whether the object exists or is flushed; and its order of operations cannot be tested.

mod files;
mod upload;

use std::{
    collections::HashSet,
    fmt, io,
    path::{Path as FilePath, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use files::SystemFiles;
use futures::{
    future::{try_join, try_join_all},
    stream::BoxStream,
};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, local::LocalFileSystem, path::Path,
};
use thiserror::Error;
use upload::FolderUpload;

pub use files::{Files, FoundFile};

/// The files of a machine as a store of objects, of which one folder is written to. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    files: Arc<dyn Files>,
    /// For all but writes.
    reads: Arc<dyn ObjectStore>,
    root: Arc<PathBuf>,
    /// Whether its files are read as the system has them.
    is_of_machine: bool,
    /// Folders that exist and are flushed.
    known: Arc<Mutex<HashSet<PathBuf>>>,
}

/// Why a file was not written.
#[derive(Debug, Error)]
pub(crate) enum WriteError {
    /// The object does not exist, and will not appear.
    #[error("{0}")]
    Failed(#[source] io::Error),
    /// It exists, but a loss of power may remove it.
    #[error("it is there, but could not be flushed to the disk: {0}")]
    Unflushed(#[source] io::Error),
    /// Parts of it were written after it was completed or given up.
    #[error("it was given up")]
    GivenUp,
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        Self::Generic { store: "folder", source: Box::new(error) }
    }
}

fn put_result() -> PutResult {
    PutResult { e_tag: None, version: None, extensions: Default::default() }
}

/// Whether a file is staged: the name of the object that it is to become, and a number.
fn is_staged(file: &FilePath) -> bool {
    let number = file.file_name().and_then(|name| name.to_str()?.split_once('#')).map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Folder {
    /// A folder of the machine.
    pub(crate) fn of_machine(root: PathBuf) -> Self {
        let folder = Self::new(Arc::new(SystemFiles), Arc::new(LocalFileSystem::new()), root);
        Self { is_of_machine: true, ..folder }
    }

    /// A folder of the files that are written through `files` and read through `reads`.
    pub(crate) fn new(files: Arc<dyn Files>, reads: Arc<dyn ObjectStore>, root: PathBuf) -> Self {
        Self { files, reads, root: Arc::new(root), is_of_machine: false, known: Arc::default() }
    }

    /// The file of an object, if the machine has it.
    pub(crate) fn file_of_machine(&self, location: &Path) -> Option<PathBuf> {
        self.is_of_machine.then(|| self.file(location).ok()).flatten()
    }

    /// The file of an object.
    fn file(&self, location: &Path) -> Result<PathBuf, WriteError> {
        let file = location.parts().fold(PathBuf::from("/"), |file, part| file.join(part.as_ref()));
        // Such an object would be hidden from listings, and a vacuum would remove it as a leftover.
        match is_staged(&file) {
            true => Err(WriteError::Failed(io::Error::other("no object can have the name of a staged file"))),
            false => Ok(file),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all folders, and returns whether this was one of them.
    fn forget(&self, folder: &FilePath) -> bool {
        let mut known = self.known();
        let there = known.contains(folder);
        // All of them: the process that removed this one may have removed those above it, too.
        known.clear();
        there
    }

    /// Makes a folder that survives a loss of power.
    async fn make(&self, folder: &FilePath) -> io::Result<()> {
        if self.known().contains(folder) {
            return Ok(());
        }
        self.files.create_folder(folder).await?;
        let mut above: Vec<_> = folder.ancestors().collect();
        // The name of one that is known was flushed then; now so is that of what is new in it.
        if let Some(at) = above.iter().position(|above| self.known().contains(*above)) {
            above.truncate(at + 1);
        }
        // At the same time: a crash between two of them loses a folder in which nothing has been acknowledged yet.
        try_join_all(above.iter().map(|above| self.flush_above(above))).await?;
        self.known().extend(above.into_iter().map(FilePath::to_owned));
        Ok(())
    }

    /// Flushes a folder that a new one is in, or above that.
    async fn flush_above(&self, folder: &FilePath) -> io::Result<()> {
        // Folders above the graph's own parent may belong to others, and existed before.
        let foreign = self.root.parent().is_some_and(|parent| parent != folder && parent.starts_with(folder));
        match self.flush(folder).await {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && foreign => Ok(()),
            flushed => flushed,
        }
    }

    async fn flush(&self, folder: &FilePath) -> io::Result<()> {
        self.files.flush_folder(folder).await
    }

    /// Flushes the folder of objects that were read, and that something is now to rely on.
    pub(crate) async fn flush_read(&self, folder: &Path) -> Result<()> {
        let folder = self.file(folder)?;
        // Only names are flushed: a file gets its name after its bytes were flushed, so that a name that was read implies them.
        Ok(self.make(&folder).await.and(self.flush(&folder).await).map_err(WriteError::Unflushed)?)
    }

    /// An empty staged file.
    async fn stage(&self, object: &FilePath) -> Result<PathBuf, WriteError> {
        let folder = object.parent().unwrap_or(object);
        self.make(folder).await.map_err(WriteError::Failed)?;
        let name = object.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut number = 1u64;
        loop {
            let staged = folder.join(format!("{name}#{number}"));
            match self.files.create(&staged).await {
                Ok(()) => return Ok(staged),
                // Another writer of the same object, or what one that was killed has left: each writes to a file of its own.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                // Another process has removed it since, and perhaps its parents.
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.forget(folder) => {
                    self.make(folder).await.map_err(WriteError::Failed)?;
                }
                Err(error) => return Err(WriteError::Failed(error)),
            }
        }
    }

    async fn flush_staged(&self, staged: &FilePath) -> Result<(), WriteError> {
        self.files.flush_file(staged).await.map_err(WriteError::Failed)
    }

    /// Gives a staged file its name, over any file that has it.
    async fn replace(&self, staged: &FilePath, object: &FilePath) -> Result<(), WriteError> {
        let renamed = async {
            self.flush_staged(staged).await?;
            self.files.rename(staged, object).await.map_err(WriteError::Failed)
        };
        // Bytes before the name: a loss of power must not leave an object that has its name and lacks bytes.
        self.or_remove(staged, renamed.await).await?;
        self.flush(object.parent().unwrap_or(object)).await.map_err(WriteError::Unflushed)
    }

    /// Gives a staged file its name, if no file has it.
    async fn create(&self, staged: &FilePath, object: &FilePath) -> Result<()> {
        let folder = object.parent().unwrap_or(object);
        let before = async { self.flush(folder).await.map_err(WriteError::Failed) };
        // Neither depends on the other, so both wait for the disk at the same time.
        let flushed = try_join(self.flush_staged(staged), before).await;
        self.or_remove(staged, flushed).await?;
        // `link` fails if the name is taken, in one step for all processes; `rename` would replace the version of another writer.
        if let Err(error) = self.files.link(staged, object).await {
            let _ = self.files.remove(staged).await;
            return Err(match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    Error::AlreadyExists { path: object.to_string_lossy().into_owned(), source: error.into() }
                }
                _ => WriteError::Failed(error).into(),
            });
        }
        // Readers can see the object by now, so that a failure leaves it unknown whether it stays.
        let flushed = self.flush(folder).await.map_err(WriteError::Unflushed);
        let _ = self.files.remove(staged).await;
        Ok(flushed?)
    }

    async fn or_remove<T>(&self, staged: &FilePath, done: Result<T, WriteError>) -> Result<T, WriteError> {
        if done.is_err() {
            let _ = self.files.remove(staged).await;
        }
        done
    }

    /// Writes an object that nothing depends on: a loss of power may spoil it, or bring back the one before.
    pub(crate) async fn advise(&self, location: &Path, bytes: Bytes) -> Result<()> {
        let object = self.file(location)?;
        let staged = self.stage(&object).await?;
        let written = async {
            self.files.write_at(&staged, 0, bytes).await?;
            self.files.rename(&staged, &object).await
        };
        Ok(self.or_remove(&staged, written.await.map_err(WriteError::Failed)).await?)
    }

    /// Removes staged files of a folder that were last written before a time, and returns them.
    pub(crate) async fn remove_staged(&self, folder: &Path, before_unix_ms: i64) -> Result<Vec<FoundFile>> {
        let folder = folder.parts().fold(PathBuf::from("/"), |file, part| file.join(part.as_ref()));
        let mut found = self.files.list(&folder).await.map_err(WriteError::Failed)?;
        found.retain(|file| is_staged(&file.path) && file.modified_unix_ms < before_unix_ms);
        for file in &found {
            match self.files.remove(&file.path).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(WriteError::Failed(error))?,
                _ => {}
            }
        }
        Ok(found)
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "folder {}", self.root.display())
    }
}

#[async_trait]
impl ObjectStore for Folder {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let object = self.file(location)?;
        let staged = self.stage(&object).await?;
        let written = self.files.write_at(&staged, 0, payload.into()).await.map_err(WriteError::Failed);
        self.or_remove(&staged, written).await?;
        match options.mode {
            PutMode::Create => self.create(&staged, &object).await?,
            _ => self.replace(&staged, &object).await?,
        }
        Ok(put_result())
    }

    async fn put_multipart_opts(&self, location: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let object = self.file(location)?;
        let staged = self.stage(&object).await?;
        Ok(Box::new(FolderUpload::new(self.clone(), staged, object)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.reads.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.reads.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.reads.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.reads.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(Error::NotImplemented { operation: "copying".into(), implementer: self.to_string() })
    }
}

#[cfg(test)]
mod tests;
