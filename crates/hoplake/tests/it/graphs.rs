//! What several tests need: edge lists as files, and loads into stores of their own.

use std::{
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use hoplake::{Error, Graph, LoadOptions, LoadReport, OpenSettings, Store, load_with};
use object_store::{ObjectStore, memory::InMemory};

/// Writes edges as text and returns the file.
pub(crate) fn edge_list(folder: &Path, name: &str, edges: impl Iterator<Item = (u64, u64)>) -> PathBuf {
    let file = folder.join(name);
    let mut out = BufWriter::new(std::fs::File::create(&file).unwrap());
    for (source, target) in edges {
        writeln!(out, "{source} {target}").unwrap();
    }
    out.flush().unwrap();
    file
}

/// The prefix `g` of a store.
pub(crate) fn graph_at(inner: impl ObjectStore) -> Store {
    Store::new(Arc::new(inner), "g".into(), "memory://test/g")
}

/// A fresh store in memory.
pub(crate) fn in_memory() -> (Arc<dyn ObjectStore>, Store) {
    let inner: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    (inner.clone(), graph_at(inner))
}

pub(crate) async fn load_into(store: &Store, options: LoadOptions) -> Result<LoadReport, Error> {
    load_with(store.clone(), options, Arc::new(())).await
}

pub(crate) async fn open(store: &Store) -> Graph {
    Graph::open_with(store.clone(), &OpenSettings::default()).await.unwrap()
}

/// Loads on threads of its own, for tests whose clock stands still: a load waits for threads, which
/// a paused clock would take for idleness.
pub(crate) fn load_apart(options: LoadOptions) -> (Arc<dyn ObjectStore>, LoadReport) {
    let load = || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (inner, store) = in_memory();
        let report = runtime.block_on(load_into(&store, options)).unwrap();
        (inner, report)
    };
    std::thread::spawn(load).join().unwrap()
}
