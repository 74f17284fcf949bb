use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures::{StreamExt, future::join_all};
use object_store::ObjectStoreExt;

use super::*;

/// The files of the machine, with what was done to them, by name below the root.
#[derive(Debug)]
struct Recorded {
    root: PathBuf,
    done: Mutex<Vec<String>>,
    full: AtomicBool,
    deaf: AtomicBool,
}

impl Recorded {
    fn note(&self, operation: &str, path: &FilePath) {
        let path = match path.strip_prefix(&self.root) {
            Ok(below) if below.as_os_str().is_empty() => ".".into(),
            Ok(below) => below.display().to_string(),
            Err(_) if self.root.parent() == Some(path) => "..".into(),
            Err(_) => return,
        };
        self.done.lock().unwrap().push(format!("{operation} {path}"));
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.done.lock().unwrap())
    }
}

#[async_trait]
impl Files for Recorded {
    async fn create_folder(&self, folder: &FilePath) -> io::Result<()> {
        self.note("make", folder);
        SystemFiles.create_folder(folder).await
    }

    async fn create(&self, file: &FilePath) -> io::Result<()> {
        self.note("create", file);
        SystemFiles.create(file).await
    }

    async fn write_at(&self, file: &FilePath, position: u64, bytes: Bytes) -> io::Result<()> {
        self.note("write", file);
        if self.full.load(Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        SystemFiles.write_at(file, position, bytes).await
    }

    async fn flush_file(&self, file: &FilePath) -> io::Result<()> {
        self.note("flush", file);
        SystemFiles.flush_file(file).await
    }

    async fn flush_folder(&self, folder: &FilePath) -> io::Result<()> {
        self.note("flush", folder);
        if self.deaf.load(Relaxed) {
            return Err(io::Error::other("the disk does not answer"));
        }
        SystemFiles.flush_folder(folder).await
    }

    async fn link(&self, from: &FilePath, to: &FilePath) -> io::Result<()> {
        self.note("link", to);
        SystemFiles.link(from, to).await
    }

    async fn rename(&self, from: &FilePath, to: &FilePath) -> io::Result<()> {
        self.note("rename", to);
        SystemFiles.rename(from, to).await
    }

    async fn remove(&self, file: &FilePath) -> io::Result<()> {
        self.note("remove", file);
        SystemFiles.remove(file).await
    }

    async fn list(&self, folder: &FilePath) -> io::Result<Vec<FoundFile>> {
        SystemFiles.list(folder).await
    }
}

/// A folder that is not there yet, in one that is.
fn recorded() -> (tempfile::TempDir, Arc<Recorded>, Folder) {
    let above = tempfile::tempdir().unwrap();
    let root = above.path().join("graph");
    let full = AtomicBool::new(false);
    let deaf = AtomicBool::new(false);
    let files = Arc::new(Recorded { root: root.clone(), done: Mutex::default(), full, deaf });
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
    // The folders are new, and so are their names in those above them.
    let folders = ["make data", "flush data", "flush .", "flush .."];
    let object = ["create data/a#1", "write data/a#1", "flush data/a#1", "rename data/a", "flush data"];
    assert_eq!(files.taken(), [&folders[..], &object[..]].concat());
    folder.put(&location(&folder, "data/a"), "two".into()).await.unwrap();
    assert_eq!(files.taken(), object);
    let mut upload = folder.put_multipart(&location(&folder, "data/b")).await.unwrap();
    let parts = [upload.put_part("1234".into()), upload.put_part("56".into())];
    join_all(parts).await.into_iter().for_each(Result::unwrap);
    assert_eq!(folder.list(Some(&location(&folder, "data"))).count().await, 1);
    upload.complete().await.unwrap();
    let in_parts =
        ["create data/b#1", "write data/b#1", "write data/b#1", "flush data/b#1", "rename data/b", "flush data"];
    assert_eq!(files.taken(), in_parts);
    let read = folder.get(&location(&folder, "data/b")).await.unwrap().bytes().await.unwrap();
    assert_eq!(read, "123456");
}

#[tokio::test]
async fn a_create_flushes_what_was_there_before_it_and_itself() {
    let (_above, files, folder) = recorded();
    let slot = location(&folder, "manifest/1");
    folder.put_opts(&slot, "one".into(), create()).await.unwrap();
    files.taken();
    // Its folder is new in one whose own name is flushed.
    folder.put(&location(&folder, "data/a"), "one".into()).await.unwrap();
    assert_eq!(files.taken()[..4], ["make data", "flush data", "flush .", "create data/a#1"]);
    let taken = folder.put_opts(&slot, "two".into(), create()).await.unwrap_err();
    assert!(matches!(taken, Error::AlreadyExists { .. }), "{taken}");
    let mut done = files.taken();
    // The two flushes before the name go at the same time.
    done[2..4].sort();
    let staged = "manifest/1#1";
    let before =
        [format!("create {staged}"), format!("write {staged}"), "flush manifest".into(), format!("flush {staged}")];
    assert_eq!(done, [&before[..], &["link manifest/1".into(), format!("remove {staged}")]].concat());
    let next = location(&folder, "manifest/2");
    folder.put_opts(&next, "three".into(), create()).await.unwrap();
    assert_eq!(files.taken()[4..], ["link manifest/2", "flush manifest", "remove manifest/2#1"]);
    // Advice does not wait for a flush.
    folder.advise(&location(&folder, "hint"), "three".into()).await.unwrap();
    assert!(!files.taken().iter().any(|done| done.starts_with("flush hint")));
    assert_eq!(folder.get(&slot).await.unwrap().bytes().await.unwrap(), "one");
}

#[tokio::test]
async fn a_disk_that_fails_leaves_nothing_or_says_what_it_left() {
    let (_above, files, folder) = recorded();
    let slot = location(&folder, "manifest/1");
    files.full.store(true, Relaxed);
    let full = folder.put_opts(&slot, "one".into(), create()).await.unwrap_err();
    assert!(!format!("{full:?}").contains("Unflushed"), "{full:?}");
    assert_eq!(folder.files.list(&folder.root.join("manifest")).await.unwrap(), []);
    files.full.store(false, Relaxed);
    files.deaf.store(true, Relaxed);
    // It fails before it has a name.
    folder.put_opts(&slot, "one".into(), create()).await.unwrap_err();
    assert!(folder.get(&slot).await.is_err());
    files.deaf.store(false, Relaxed);
    let object = location(&folder, "manifest/object");
    let staged = folder.stage(&folder.file(&object).unwrap()).await.unwrap();
    files.deaf.store(true, Relaxed);
    let unflushed = folder.replace(&staged, &folder.file(&object).unwrap()).await.unwrap_err();
    assert!(matches!(unflushed, WriteError::Unflushed(_)), "{unflushed}");
    assert!(folder.flush_read(&location(&folder, "manifest")).await.is_err());
}

#[tokio::test]
async fn a_folder_that_another_process_made_is_flushed_too() {
    let (_above, files, folder) = recorded();
    std::fs::create_dir_all(folder.root.join("data")).unwrap();
    folder.put(&location(&folder, "data/a"), "one".into()).await.unwrap();
    assert_eq!(files.taken()[..4], ["make data", "flush data", "flush .", "flush .."]);
    // One that is removed meanwhile is made again.
    std::fs::remove_dir_all(&*folder.root).unwrap();
    folder.put(&location(&folder, "data/a"), "one".into()).await.unwrap();
    assert_eq!(files.taken()[..4], ["create data/a#1", "make data", "flush data", "flush ."]);
}

#[tokio::test]
async fn what_killed_writers_left_goes_when_it_is_old() {
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
    // An upload that is not completed removes its file; a name that is not an object's is not listed.
    let upload = folder.put_multipart(&location(&folder, "data/c")).await.unwrap();
    drop(upload);
    while !folder.files.list(&folder.root.join("data")).await.unwrap().iter().all(|file| !is_staged(&file.path)) {
        tokio::task::yield_now().await;
    }
    assert!(folder.put(&location(&folder, "data/c#1"), "one".into()).await.is_err());
    assert_eq!(folder.remove_staged(&location(&folder, "none"), i64::MAX).await.unwrap(), []);
}
