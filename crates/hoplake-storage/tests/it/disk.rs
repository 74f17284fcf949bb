//! The cache on the local disk: a restart, damage, a budget, several processes.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use hoplake_storage::{Disk, DiskFile, DiskSettings, QueryContext, ReadPool, ReadSettings, Reader, Store};

use crate::scripted::{NAME, Scripted, request};

fn settings(folder: &Path) -> ReadSettings {
    let disk = DiskSettings { folder: folder.to_owned(), bytes_max: 1 << 20 };
    ReadSettings { disk: Some(disk), cache_bytes_max: 0, ..Default::default() }
}

/// Reads all blocks as a process of its own would, and returns how many came from the disk and the number of requests.
async fn read_all(folder: &Path) -> (u64, u64) {
    let source = Scripted::new(&[]);
    let reader = source.reader(settings(folder));
    let object = reader.object(NAME);
    let context = QueryContext::new();
    let requests: Vec<_> = (0..16).map(|block| request(&object, block)).collect();
    let payloads = reader.read(&requests, &mut context.branch()).await.unwrap();
    assert!(payloads.iter().zip(0..).all(|(payload, block)| **payload == [block; 100]));
    assert_eq!(context.cost().requests, source.requests() as u64);
    (context.cost().disk.blocks, context.cost().requests)
}

fn logs(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder.join("slot-0")).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<_> = all.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect();
    logs.sort();
    logs
}

#[tokio::test]
async fn a_restart_reads_nothing_from_the_store() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read_all(folder.path()).await, (0, 1));
    assert_eq!(read_all(folder.path()).await, (16, 0));
    assert_eq!(read_all(folder.path()).await, (16, 0));
    // A crash leaves no footer: the log is scanned.
    let log = &logs(folder.path())[0];
    let length = fs::metadata(log).unwrap().len();
    File::options().write(true).open(log).unwrap().set_len(length - 1).unwrap();
    assert_eq!(read_all(folder.path()).await, (16, 0));
}

#[tokio::test]
async fn damage_costs_time_and_never_an_answer() {
    type Damage = fn(&Path);
    let cut: Damage = |log| OpenOptions::new().write(true).open(log).unwrap().set_len(1000).unwrap();
    let empty: Damage = |log| OpenOptions::new().write(true).open(log).unwrap().set_len(0).unwrap();
    let flip: Damage = |log| OpenOptions::new().write(true).open(log).unwrap().write_all_at(&[9; 3], 300).unwrap();
    let nonsense: Damage = |log| fs::write(log, vec![0xa5; 5000]).unwrap();
    let vanish: Damage = |log| fs::remove_file(log).unwrap();
    let folder_instead: Damage = |log| {
        fs::remove_file(log).unwrap();
        fs::create_dir(log).unwrap();
    };
    // How many blocks are left: a record is 124 bytes long, and the flip hits one of 16.
    for (damage, left) in [(cut, 8), (empty, 0), (flip, 15), (nonsense, 0), (vanish, 0), (folder_instead, 0)] {
        let folder = tempfile::tempdir().unwrap();
        read_all(folder.path()).await;
        damage(&logs(folder.path())[0]);
        let (disk, requests) = read_all(folder.path()).await;
        assert_eq!((disk, requests), (left, 1));
    }
}

#[tokio::test]
async fn a_folder_that_vanishes_under_a_running_process_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let source = Scripted::new(&[]);
    let reader = source.reader(settings(folder.path()));
    let object = reader.object(NAME);
    let context = QueryContext::new();
    for block in 0..16 {
        if block == 8 {
            fs::remove_dir_all(folder.path()).unwrap();
        }
        let payloads = reader.read(&[request(&object, block)], &mut context.branch()).await.unwrap();
        assert_eq!(*payloads[0], [block as u8; 100]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_budget_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    // Each generation of objects is 16 blocks; together they are four times the budget.
    for generation in 0..4 {
        let source = Scripted::new(&[]);
        let reader = source.reader(settings(folder.path()));
        for object in 0..300 {
            // Numbers differ, and so do the names as the disk knows them, by the store's address.
            let store = hoplake_storage::Store::open(&format!("memory://{generation}-{object}")).unwrap();
            let reader = hoplake_storage::Reader::from_source(store, source.clone(), reader.pool().clone());
            let object = reader.object(NAME);
            let requests: Vec<_> = (0..16).map(|block| request(&object, block)).collect();
            reader.read(&requests, &mut QueryContext::new().branch()).await.unwrap();
        }
        drop(reader);
        let bytes: u64 = logs(folder.path()).iter().map(|log| fs::metadata(log).unwrap().len()).sum();
        assert!(bytes <= (1 << 20) + 1024, "{bytes} bytes");
    }
    assert!(logs(folder.path()).len() > 20);
}

#[tokio::test]
async fn processes_that_share_a_folder_keep_apart() {
    let folder = tempfile::tempdir().unwrap();
    let source = Scripted::new(&[]);
    let running = source.reader(settings(folder.path()));
    assert_eq!(read_all(folder.path()).await, (0, 1));
    drop(running);
    // The next one takes the first free folder, which is empty.
    assert_eq!(read_all(folder.path()).await, (0, 1));
    assert!(folder.path().join("slot-1").exists());
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = hoplake_storage::ReadPool::new(settings(&file)).unwrap_err().to_string();
    assert!(error.contains("disk cache") && error.contains("file"), "{error}");
}

/// A disk in memory on which `free` more bytes fit.
#[derive(Debug, Default)]
struct Small {
    free: Arc<Mutex<usize>>,
    files: Mutex<BTreeMap<u32, Arc<SmallFile>>>,
}

#[derive(Debug, Default)]
struct SmallFile {
    free: Arc<Mutex<usize>>,
    bytes: Mutex<Vec<u8>>,
}

impl Disk for Small {
    fn list(&self) -> io::Result<Vec<u32>> {
        Ok(self.files.lock().unwrap().keys().copied().collect())
    }

    fn create(&self, number: u32) -> io::Result<Arc<dyn DiskFile>> {
        let file = Arc::new(SmallFile { free: self.free.clone(), ..SmallFile::default() });
        self.files.lock().unwrap().insert(number, file.clone());
        Ok(file)
    }

    fn open(&self, number: u32) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.files.lock().unwrap().get(&number).cloned().ok_or(io::ErrorKind::NotFound)?)
    }

    fn remove(&self, number: u32) -> io::Result<()> {
        self.files.lock().unwrap().remove(&number).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn waits(&self) -> bool {
        false
    }
}

impl DiskFile for SmallFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()> {
        let bytes = self.bytes.lock().unwrap();
        let position = position as usize;
        buffer.copy_from_slice(bytes.get(position..position + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let mut free = self.free.lock().unwrap();
        let mut file = self.bytes.lock().unwrap();
        assert_eq!(position, file.len() as u64, "a log is written from its beginning to its end");
        *free = free.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        file.extend_from_slice(bytes);
        Ok(())
    }
}

#[tokio::test]
async fn a_full_disk_has_no_file_for_what_it_cannot_take() {
    let disk = Arc::new(Small { free: Arc::new(Mutex::new(4 * 124)), ..Small::default() });
    for (from_disk, requests) in [(0, 16), (4, 12)] {
        let settings = ReadSettings { cache_bytes_max: 0, ..Default::default() };
        let pool = ReadPool::on_disk(settings, disk.clone(), 1 << 20).unwrap();
        let source = Scripted::new(&[]);
        let reader = Reader::from_source(Store::open("memory://full").unwrap(), source.clone(), pool);
        let object = reader.object(NAME);
        let context = QueryContext::new();
        for block in 0..16 {
            let payloads = reader.read(&[request(&object, block)], &mut context.branch()).await.unwrap();
            assert_eq!(*payloads[0], [block as u8; 100]);
        }
        assert_eq!((context.cost().disk.blocks, context.cost().requests), (from_disk, requests));
        drop(reader);
        assert_eq!(disk.list().unwrap().len(), 1);
    }
}
