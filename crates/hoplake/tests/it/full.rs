//! A vacuum on a disk that is full.

use std::{io, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use hoplake::{Graph, LoadOptions, Store, VacuumSettings};
use hoplake_testkit::{Alteration, AlteredStore};
use object_store::{Error, ObjectStore, ObjectStoreExt, PutOptions, PutPayload, PutResult, Result, path::Path};

use crate::graphs::{graph_at, in_memory, load_into, open};

/// A store with room for a number of bytes.
#[derive(Debug)]
struct FullStore {
    inner: Arc<dyn ObjectStore>,
    bytes_max: u64,
}

async fn used(inner: &Arc<dyn ObjectStore>) -> u64 {
    let listed: Vec<_> = inner.list(None).try_collect().await.unwrap();
    listed.iter().map(|object| object.size).sum()
}

#[async_trait]
impl Alteration for FullStore {
    fn below(&self) -> &dyn ObjectStore {
        &self.inner
    }

    async fn put(&self, path: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        // A new object is written before an old one of that name goes.
        if used(&self.inner).await + payload.content_length() as u64 > self.bytes_max {
            let source = io::Error::from(io::ErrorKind::StorageFull);
            return Err(Error::Generic { store: "full", source: Box::new(source) });
        }
        self.inner.put_opts(path, payload, opts).await
    }
}

/// A graph of some versions on a disk without a byte of room.
async fn full(leftover: Option<usize>) -> (Arc<dyn ObjectStore>, Store) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "1,2\n2,3\n").unwrap();
    let (inner, store) = in_memory();
    load_into(&store, LoadOptions::from_paths([file])).await.unwrap();
    let graph = open(&store).await;
    for key in 100..106 {
        let mut commit = graph.begin();
        commit.upsert_vertex("vertex", key, [("name", "new")]).commit().await.unwrap();
    }
    Graph::compact(&store, &hoplake::CompactionSettings { everything: true, ..Default::default() }).await.unwrap();
    if let Some(bytes) = leftover {
        let name = "g/data/00000000000000000002-01JDXFAKEFAKEFAKEFAKEFAKE0-000000.hls";
        inner.put(&Path::from(name), Bytes::from(vec![7; bytes]).into()).await.unwrap();
    }
    let bytes_max = used(&inner).await;
    (inner.clone(), graph_at(AlteredStore(FullStore { inner, bytes_max })))
}

#[tokio::test]
async fn leftovers_make_room_before_anything_is_written() {
    let (inner, store) = full(Some(100_000)).await;
    let settings = VacuumSettings { keep_versions: Some(0), ..VacuumSettings::default() };
    let vacuumed = Graph::vacuum(&store, &settings).await.unwrap();
    assert!(vacuumed.versions >= 6 && vacuumed.objects >= 7 && vacuumed.bytes > 100_000, "{vacuumed:?}");
    assert_eq!(Graph::verify_all(&graph_at(inner), |_| ()).await.unwrap().damages, []);
}

#[tokio::test]
async fn without_leftovers_the_hint_makes_room_for_the_decision() {
    let (inner, store) = full(None).await;
    let settings = VacuumSettings { keep_versions: Some(0), ..VacuumSettings::default() };
    let before = used(&inner).await;
    let vacuumed = Graph::vacuum(&store, &settings).await.unwrap();
    assert!(vacuumed.versions >= 6 && vacuumed.objects >= 6, "{vacuumed:?}");
    assert!(used(&inner).await < before);
    assert_eq!(Graph::verify_all(&graph_at(inner), |_| ()).await.unwrap().damages, []);
}
