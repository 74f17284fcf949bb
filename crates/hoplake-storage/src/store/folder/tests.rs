//! Order of the operations on files, failing disks, and files that killed writers left.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures::{StreamExt, future::join_all};
use object_store::ObjectStoreExt;

use super::*;

/// The system's files; records each operation with the path relative to the root.
#[derive(Debug)]
struct RecordedFiles {
    root: PathBuf,
    operations: Mutex<Vec<String>>,
    /// Whether writes fail because the disk is full.
    is_full: AtomicBool,
    /// Whether flushes of folders fail.
    fails_flushes: AtomicBool,
}

impl RecordedFiles {
    fn record(&self, operation: &str, path: &FilePath) {
        let path = match path.strip_prefix(&self.root) {
            Ok(below) if below.as_os_str().is_empty() => ".".into(),
            Ok(below) => below.display().to_string(),
            Err(_) if self.root.parent() == Some(path) => "..".into(),
            Err(_) => return,
        };
        self.operations.lock().unwrap().push(format!("{operation} {path}"));
    }

    fn take_operations(&self) -> Vec<String> {
        std::mem::take(&mut self.operations.lock().unwrap())
    }
}

#[async_trait]
impl Files for RecordedFiles {
    async fn create_folder(&self, folder: &FilePath) -> io::Result<()> {
        self.record("make", folder);
        SystemFiles.create_folder(folder).await
    }

    async fn create(&self, file: &FilePath) -> io::Result<()> {
        self.record("create", file);
        SystemFiles.create(file).await
    }

    async fn write_at(&self, file: &FilePath, position: u64, bytes: Bytes) -> io::Result<()> {
        self.record("write", file);
        if self.is_full.load(Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        SystemFiles.write_at(file, position, bytes).await
    }

    async fn flush_file(&self, file: &FilePath) -> io::Result<()> {
        self.record("flush", file);
        SystemFiles.flush_file(file).await
    }

    async fn flush_folder(&self, folder: &FilePath) -> io::Result<()> {
        self.record("flush", folder);
        if self.fails_flushes.load(Relaxed) {
            return Err(io::Error::other("the disk does not answer"));
        }
        SystemFiles.flush_folder(folder).await
    }

    async fn link(&self, from: &FilePath, to: &FilePath) -> io::Result<()> {
        self.record("link", to);
        SystemFiles.link(from, to).await
    }

    async fn rename(&self, from: &FilePath, to: &FilePath) -> io::Result<()> {
        self.record("rename", to);
        SystemFiles.rename(from, to).await
    }

    async fn remove(&self, file: &FilePath) -> io::Result<()> {
        self.record("remove", file);
        SystemFiles.remove(file).await
    }

    async fn list(&self, folder: &FilePath) -> io::Result<Vec<FoundFile>> {
        SystemFiles.list(folder).await
    }
}

/// A store in a folder that does not exist yet, within one that does.
fn recorded() -> (tempfile::TempDir, Arc<RecordedFiles>, Folder) {
    let above = tempfile::tempdir().unwrap();
    let root = above.path().join("graph");
    let files = Arc::new(RecordedFiles {
        root: root.clone(),
        operations: Mutex::default(),
        is_full: AtomicBool::new(false),
        fails_flushes: AtomicBool::new(false),
    });
    let folder = Folder::new(files.clone(), Arc::new(LocalFileSystem::new()), root);
    (above, files, folder)
}

fn location(folder: &Folder, name: &str) -> Path {
    Path::from_absolute_path(folder.root.join(name)).unwrap()
}

fn create() -> PutOptions {
    PutMode::Create.into()
}

#[tokio::test]
async fn bytes_are_flushed_before_the_name_and_the_name_before_the_answer() {
    let (_above, files, folder) = recorded();
    folder.put(&location(&folder, "data/a"), "one".into()).await.unwrap();
    // The folders are new, so each is flushed, and the folder above it.
    let folders = ["make data", "flush data", "flush .", "flush .."];
    let object = ["create data/a#1", "write data/a#1", "flush data/a#1", "rename data/a", "flush data"];
    assert_eq!(files.take_operations(), [&folders[..], &object[..]].concat());
    folder.put(&location(&folder, "data/a"), "two".into()).await.unwrap();
    assert_eq!(files.take_operations(), object);
    let mut upload = folder.put_multipart(&location(&folder, "data/b")).await.unwrap();
    let parts = [upload.put_part("1234".into()), upload.put_part("56".into())];
    join_all(parts).await.into_iter().for_each(Result::unwrap);
    assert_eq!(folder.list(Some(&location(&folder, "data"))).count().await, 1);
    upload.complete().await.unwrap();
    let in_parts =
        ["create data/b#1", "write data/b#1", "write data/b#1", "flush data/b#1", "rename data/b", "flush data"];
    assert_eq!(files.take_operations(), in_parts);
    let read = folder.get(&location(&folder, "data/b")).await.unwrap().bytes().await.unwrap();
    assert_eq!(read, "123456");
}

#[tokio::test]
async fn a_create_flushes_the_names_before_it_and_its_own() {
    let (_above, files, folder) = recorded();
    let slot = location(&folder, "manifest/1");
    folder.put_opts(&slot, "one".into(), create()).await.unwrap();
    files.take_operations();
    // The folder `data` is new; the name of the folder above it is flushed already.
    folder.put(&location(&folder, "data/a"), "one".into()).await.unwrap();
    assert_eq!(files.take_operations()[..4], ["make data", "flush data", "flush .", "create data/a#1"]);
    let taken = folder.put_opts(&slot, "two".into(), create()).await.unwrap_err();
    assert!(matches!(taken, Error::AlreadyExists { .. }), "{taken}");
    let mut done = files.take_operations();
    // The two flushes before the link are concurrent.
    done[2..4].sort();
    let staged = "manifest/1#1";
    let before =
        [format!("create {staged}"), format!("write {staged}"), "flush manifest".into(), format!("flush {staged}")];
    assert_eq!(done, [&before[..], &["link manifest/1".into(), format!("remove {staged}")]].concat());
    let next = location(&folder, "manifest/2");
    folder.put_opts(&next, "three".into(), create()).await.unwrap();
    assert_eq!(files.take_operations()[4..], ["link manifest/2", "flush manifest", "remove manifest/2#1"]);
    // `advise` does not wait for a flush.
    folder.advise(&location(&folder, "hint"), "three".into()).await.unwrap();
    assert!(!files.take_operations().iter().any(|done| done.starts_with("flush hint")));
    assert_eq!(folder.get(&slot).await.unwrap().bytes().await.unwrap(), "one");
}

#[tokio::test]
async fn a_failing_disk_leaves_no_file_or_reports_an_unflushed_one() {
    let (_above, files, folder) = recorded();
    let slot = location(&folder, "manifest/1");
    files.is_full.store(true, Relaxed);
    let full = folder.put_opts(&slot, "one".into(), create()).await.unwrap_err();
    assert!(!format!("{full:?}").contains("Unflushed"), "{full:?}");
    assert_eq!(folder.files.list(&folder.root.join("manifest")).await.unwrap(), []);
    files.is_full.store(false, Relaxed);
    files.fails_flushes.store(true, Relaxed);
    // The create fails before the link.
    folder.put_opts(&slot, "one".into(), create()).await.unwrap_err();
    assert!(folder.get(&slot).await.is_err());
    files.fails_flushes.store(false, Relaxed);
    let object = location(&folder, "manifest/object");
    let staged = folder.stage(&folder.file(&object).unwrap()).await.unwrap();
    files.fails_flushes.store(true, Relaxed);
    let unflushed = folder.replace(&staged, &folder.file(&object).unwrap()).await.unwrap_err();
    assert!(matches!(unflushed, WriteError::Unflushed(_)), "{unflushed}");
    assert!(folder.flush_read(&location(&folder, "manifest")).await.is_err());
}

#[tokio::test]
async fn a_folder_that_another_process_made_is_flushed_too() {
    let (_above, files, folder) = recorded();
    std::fs::create_dir_all(folder.root.join("data")).unwrap();
    folder.put(&location(&folder, "data/a"), "one".into()).await.unwrap();
    assert_eq!(files.take_operations()[..4], ["make data", "flush data", "flush .", "flush .."]);
    // A folder that is removed meanwhile is created again.
    std::fs::remove_dir_all(&*folder.root).unwrap();
    folder.put(&location(&folder, "data/a"), "one".into()).await.unwrap();
    assert_eq!(files.take_operations()[..4], ["create data/a#1", "make data", "flush data", "flush ."]);
}

#[tokio::test]
async fn old_staged_files_of_killed_writers_are_removed() {
    let (_above, _, folder) = recorded();
    let data = location(&folder, "data");
    folder.put(&location(&folder, "data/a"), "one".into()).await.unwrap();
    for left in ["a#1", "b#27"] {
        std::fs::write(folder.root.join("data").join(left), "half of ").unwrap();
    }
    assert_eq!(folder.remove_staged(&data, 0).await.unwrap(), []);
    let mut removed = folder.remove_staged(&data, i64::MAX).await.unwrap();
    removed.sort_by(|one, other| one.path.cmp(&other.path));
    let names: Vec<_> =
        removed.iter().map(|file| (file.path.file_name().unwrap().to_str().unwrap(), file.bytes)).collect();
    assert_eq!(names, [("a#1", 8), ("b#27", 8)]);
    assert_eq!(folder.list(Some(&data)).count().await, 1);
    // An upload that is dropped before it completes removes its file.
    let upload = folder.put_multipart(&location(&folder, "data/c")).await.unwrap();
    drop(upload);
    while !folder.files.list(&folder.root.join("data")).await.unwrap().iter().all(|file| !is_staged(&file.path)) {
        tokio::task::yield_now().await;
    }
    // The name of a staged file is not a valid name of an object.
    assert!(folder.put(&location(&folder, "data/c#1"), "one".into()).await.is_err());
    assert_eq!(folder.remove_staged(&location(&folder, "none"), i64::MAX).await.unwrap(), []);
}
