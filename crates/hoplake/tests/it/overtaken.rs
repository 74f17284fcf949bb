//! A compaction that is overtaken by a commit each time that it tries to publish.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use async_trait::async_trait;
use hoplake::{CompactionSettings, ErrorKind, Graph, IndexSettings, LoadOptions, OpenSettings};
use hoplake_testkit::{Alteration, AlteredStore};
use object_store::{ObjectStore, PutMode, PutOptions, PutPayload, PutResult, Result, path::Path};

use crate::graphs::{graph_at, in_memory, load_into, open};

/// A store at which a writer commits before each of the next `times` creates.
#[derive(Debug)]
struct OvertakingStore {
    inner: Arc<dyn ObjectStore>,
    writer: Graph,
    times: AtomicI64,
}

/// A vertex of that key and an edge to it, in a version of their own.
async fn commit(writer: &Graph, key: i64) {
    let mut graph = writer.clone();
    graph.refresh().await.unwrap();
    let mut commit = graph.begin();
    commit.upsert_vertex("vertex", key, [("name", "new")]).upsert_edge(
        "edge",
        ("vertex", 1),
        ("vertex", key),
        [("n", key)],
    );
    commit.commit().await.unwrap();
}

#[async_trait]
impl Alteration for OvertakingStore {
    fn below(&self) -> &dyn ObjectStore {
        &self.inner
    }

    async fn put(&self, path: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        if opts.mode == PutMode::Create {
            let left = self.times.fetch_sub(1, Ordering::SeqCst);
            if left > 0 {
                commit(&self.writer, 1_000 + left).await;
            }
        }
        self.inner.put_opts(path, payload, opts).await
    }
}

/// A graph of nine commits, and a store in which others overtake every create.
async fn overtaking(times: i64) -> (Arc<dyn ObjectStore>, AlteredStore<OvertakingStore>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "1,2\n").unwrap();
    let (inner, store) = in_memory();
    load_into(&store, LoadOptions::from_paths([file])).await.unwrap();
    let writer = open(&store).await;
    for key in 10..19 {
        commit(&writer, key).await;
    }
    (inner.clone(), AlteredStore(OvertakingStore { inner, writer, times: AtomicI64::new(times) }))
}

#[tokio::test]
async fn a_compaction_moves_on_to_the_newest_version_as_often_as_it_is_overtaken() {
    let (inner, store) = overtaking(150).await;
    let store = graph_at(store);
    let done = Graph::compact(&store, &CompactionSettings::default()).await.unwrap();
    // What it announced itself on, and what it published on, were there after the 150 commits.
    assert!(done.merges >= 2 && done.runs >= 18, "{done:?}");
    let newest = Graph::open_with(graph_at(inner), &OpenSettings::default()).await.unwrap();
    assert!(newest.version() > 1 + 9 + 150, "{}", newest.version());
    assert!(newest.manifest().leases.is_empty());
    newest.verify(|_| ()).await.unwrap();
    for key in (10..19).chain(1_001..=1_150) {
        assert!(newest.query().vertex("vertex", key).await.unwrap().is_some(), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_compaction_that_never_gets_its_turn_says_so() {
    let (_, store) = overtaking(1 << 40).await;
    let error = Graph::compact(&graph_at(store), &CompactionSettings::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.to_string().contains("1000 other writers were faster"), "{error}");
}

/// What another writer does.
#[derive(Debug, Clone, Copy)]
enum Other {
    /// Makes version 1 the newest.
    Restores,
    /// Creates an index.
    CreatesIndex,
    /// Drops that index.
    DropsIndex,
    /// Commits.
    Commits,
}

/// A store in which another writer publishes before the second manifest is created: after the first writer has announced
/// itself.
#[derive(Debug)]
struct OtherStore {
    inner: Arc<dyn ObjectStore>,
    other: Other,
    manifests: AtomicI64,
}

impl OtherStore {
    fn new(inner: &Arc<dyn ObjectStore>, other: Other) -> AlteredStore<Self> {
        AlteredStore(Self { inner: inner.clone(), other, manifests: AtomicI64::new(0) })
    }
}

#[async_trait]
impl Alteration for OtherStore {
    fn below(&self) -> &dyn ObjectStore {
        &self.inner
    }

    async fn put(&self, path: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let is_manifest = opts.mode == PutMode::Create && path.as_ref().contains("manifest/");
        if is_manifest && self.manifests.fetch_add(1, Ordering::SeqCst) == 1 {
            let store = hoplake::Store::new(self.inner.clone(), "g".into(), "memory://g");
            match self.other {
                Other::Restores => drop(Graph::restore(&store, 1, "as it was").await.unwrap()),
                Other::CreatesIndex => {
                    Graph::create_index(&store, "vertex.name", &IndexSettings::default()).await.unwrap();
                }
                Other::DropsIndex => drop(Graph::drop_index(&store, "vertex.name").await.unwrap()),
                Other::Commits => commit(&open(&store).await, 5_000).await,
            }
        }
        self.inner.put_opts(path, payload, opts).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_compaction_that_a_restore_overtakes_ends_with_what_was_restored() {
    let (inner, _) = overtaking(0).await;
    let restoring = OtherStore::new(&inner, Other::Restores);
    let settings = CompactionSettings { timeout_ms: Some(60_000), ..CompactionSettings::default() };
    let done = Graph::compact(&graph_at(restoring), &settings).await.unwrap();
    assert_eq!((done.merges, done.bytes_written), (0, 0), "{done:?}");
    let newest = Graph::open_with(graph_at(inner), &OpenSettings::default()).await.unwrap();
    assert!(newest.manifest().leases.is_empty());
    assert!(newest.query().vertex("vertex", 15).await.unwrap().is_none());
    newest.verify(|_| ()).await.unwrap();
}

/// An index says what rows say: a load replaces the graph whether one was made meanwhile or not. A commit is a change that would be lost.
#[tokio::test]
async fn a_load_replaces_a_graph_that_another_indexed_and_none_that_another_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "7,8\n8,9\n").unwrap();
    let options = || LoadOptions { replace: true, ..LoadOptions::from_paths([file.clone()]) };
    let (inner, _) = overtaking(0).await;
    let overtaken = load_into(&graph_at(OtherStore::new(&inner, Other::Commits)), options()).await.unwrap_err();
    assert_eq!(overtaken.kind(), ErrorKind::Conflict, "{overtaken}");
    load_into(&graph_at(OtherStore::new(&inner, Other::CreatesIndex)), options()).await.unwrap();
    let newest = open(&graph_at(inner)).await;
    assert_eq!((newest.manifest().indexes.len(), newest.manifest().leases.len()), (0, 0));
    assert_eq!(newest.manifest().vertex_counts[0].ordinals, 3);
    newest.verify(|_| ()).await.unwrap();
}

#[tokio::test]
async fn a_build_whose_index_was_dropped_says_so() {
    let (inner, _) = overtaking(0).await;
    let store = graph_at(OtherStore::new(&inner, Other::DropsIndex));
    let error = Graph::create_index(&store, "vertex.name", &IndexSettings::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.to_string().contains("the index vertex.name was dropped"), "{error}");
    assert_eq!(Graph::newest(&store).await.unwrap().leases, []);
}
