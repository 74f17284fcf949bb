//! Folders whose files are mapped: no requests, the same bytes, and damage that is found.

use std::{fs, path::Path};

use hoplake_storage::{QueryContext, ReadPool, ReadSettings, Reader, StorageError, Store};

use crate::scripted::{NAME, Scripted, request};

/// A folder with the object, and a reader that maps it.
fn mapped(folder: &Path) -> Reader {
    fs::create_dir_all(folder.join(NAME).parent().unwrap()).unwrap();
    fs::write(folder.join(NAME), Scripted::new(&[]).object()).unwrap();
    let store = Store::open(folder.to_str().unwrap()).unwrap();
    Reader::new(store, ReadPool::new(ReadSettings { mapped: true, ..ReadSettings::default() }).unwrap())
}

async fn read(reader: &Reader, blocks: &[u64]) -> (Result<Vec<bytes::Bytes>, StorageError>, u64, u64) {
    let object = reader.object(NAME);
    let context = QueryContext::new();
    let requests: Vec<_> = blocks.iter().map(|block| request(&object, *block)).collect();
    let payloads = reader.read(&requests, &mut context.branch()).await;
    (payloads, context.cost().requests, context.cost().memory.blocks)
}

#[tokio::test]
async fn blocks_are_there_without_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let reader = mapped(folder.path());
    for _ in 0..2 {
        let (payloads, requests, mapped) = read(&reader, &[3, 0, 15]).await;
        assert_eq!(payloads.unwrap(), [3, 0, 15].map(|block| vec![block; 100]));
        assert_eq!((requests, mapped), (0, 3));
    }
    let object = reader.object(NAME);
    assert!(reader.is_in_memory(&request(&object, 7)));
    // A vacuum unlinks a file: who has it open reads on.
    fs::remove_file(folder.path().join(NAME)).unwrap();
    assert_eq!(read(&reader, &[9]).await.0.unwrap(), [vec![9; 100]]);
}

#[tokio::test]
async fn damage_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let reader = mapped(folder.path());
    let mut object = fs::read(folder.path().join(NAME)).unwrap();
    object[5 * 104 + 7] ^= 1;
    fs::write(folder.path().join(NAME), &object[..1600]).unwrap();
    let (payloads, requests, _) = read(&reader, &[4]).await;
    assert_eq!((payloads.unwrap(), requests), (vec![vec![4; 100].into()], 0));
    // As of a folder that is not mapped: a request finds the same.
    let (payloads, requests, _) = read(&reader, &[4, 5]).await;
    let error = payloads.unwrap_err();
    assert!(matches!(&error, StorageError::Corrupt { object, start: 520, .. } if object.ends_with(NAME)), "{error}");
    assert!(requests > 0);
    // The file is shorter than the graph says.
    let error = read(&reader, &[15]).await.0.unwrap_err();
    assert!(error.to_string().contains(NAME), "{error}");
}

#[tokio::test]
async fn what_is_no_folder_is_not_mapped() {
    let settings = ReadSettings { mapped: true, ..ReadSettings::default() };
    let reader = Reader::new(Store::open("memory://mapped").unwrap(), ReadPool::new(settings).unwrap());
    assert!(!reader.is_mapped());
    let object = reader.object(NAME);
    assert!(!reader.is_in_memory(&request(&object, 0)));
}
