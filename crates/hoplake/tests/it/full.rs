//! A vacuum on a disk that is full.

use std::{fmt, io, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{TryStreamExt, stream::BoxStream};
use hoplake::{Graph, LoadOptions, Store, VacuumSettings};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};

use crate::graphs::{graph_at, in_memory, load_into, open};

/// A store with room for so many bytes.
#[derive(Debug)]
struct FullStore {
    inner: Arc<dyn ObjectStore>,
    bytes_max: u64,
}

impl fmt::Display for FullStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {}", self.bytes_max, self.inner)
    }
}

async fn used(inner: &Arc<dyn ObjectStore>) -> u64 {
    let listed: Vec<_> = inner.list(None).try_collect().await.unwrap();
    listed.iter().map(|object| object.size).sum()
}

#[async_trait]
impl ObjectStore for FullStore {
    async fn put_opts(&self, path: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        // A new object is written before an old one of that name goes.
        if used(&self.inner).await + payload.content_length() as u64 > self.bytes_max {
            let source = io::Error::from(io::ErrorKind::StorageFull);
            return Err(Error::Generic { store: "full", source: Box::new(source) });
        }
        self.inner.put_opts(path, payload, opts).await
    }

    async fn put_multipart_opts(&self, path: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, opts).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
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
    (inner.clone(), graph_at(FullStore { inner, bytes_max }))
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
