//! A vacuum removes the newest version, and another is newer, while a reader opens the graph or moves on to that
//! version.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use hoplake::{Graph, LoadOptions, OpenSettings, Store, VacuumSettings};
use hoplake_testkit::{Alteration, AlteredStore};
use object_store::{GetOptions, GetResult, ObjectStore, Result, path::Path};

use crate::graphs::{graph_at, in_memory, load_into, open};

/// A store at which, before the next read of a data object, the graph is replaced and its old versions are removed.
#[derive(Debug, Clone)]
struct ReplacedBelow {
    inner: Arc<dyn ObjectStore>,
    armed: Arc<AtomicBool>,
}

#[async_trait]
impl Alteration for ReplacedBelow {
    fn below(&self) -> &dyn ObjectStore {
        &self.inner
    }

    async fn get(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        if path.as_ref().starts_with("g/data/") && self.armed.swap(false, Ordering::SeqCst) {
            let store = graph_at(self.inner.clone());
            star(&store, 3).await;
            let settings = VacuumSettings { keep_versions: Some(0), ..VacuumSettings::default() };
            assert!(Graph::vacuum(&store, &settings).await.unwrap().objects > 0);
        }
        self.inner.get_opts(path, options).await
    }
}

/// Loads a graph of `edges` from one vertex, as a replacement.
async fn star(store: &Store, edges: u64) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    let lines = (0..edges).map(|edge| format!("0,{}\n", edge + 1));
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    load_into(store, LoadOptions { replace: true, ..LoadOptions::from_paths([file]) }).await.unwrap();
}

async fn edges(graph: &Graph) -> usize {
    let mut query = graph.query();
    let start = query.vertex("vertex", 0).await.unwrap().unwrap();
    query.neighbors(&[start], &"out:edge".parse().unwrap()).await.unwrap().len()
}

#[tokio::test]
async fn opening_goes_on_with_the_version_that_is_the_newest_then() {
    let (inner, store) = in_memory();
    star(&store, 2).await;
    let armed = Arc::new(AtomicBool::new(true));
    let replaced = AlteredStore(ReplacedBelow { inner, armed: armed.clone() });
    let graph = Graph::open_with(graph_at(replaced), &OpenSettings::default()).await.unwrap();
    assert!(!armed.load(Ordering::SeqCst), "an open reads indexes");
    assert_eq!((edges(&graph).await, graph.version()), (3, open(&store).await.version()));
}

#[tokio::test]
async fn a_refresh_goes_on_with_the_version_that_is_the_newest_then() {
    let (inner, store) = in_memory();
    star(&store, 1).await;
    let armed = Arc::new(AtomicBool::new(false));
    let replaced = AlteredStore(ReplacedBelow { inner, armed: armed.clone() });
    let mut graph = Graph::open_with(graph_at(replaced), &OpenSettings::default()).await.unwrap();
    star(&store, 2).await;
    armed.store(true, Ordering::SeqCst);
    assert!(graph.refresh().await.unwrap());
    assert!(!armed.load(Ordering::SeqCst), "it reads the indexes of the new version");
    assert_eq!((edges(&graph).await, graph.version()), (3, open(&store).await.version()));
}
