//! Computations that are given up.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use hoplake::{
    Graph, LoadOptions,
    compute::{Algorithm, ComputeOptions, Placement, Workers},
};

/// Work that takes this long hangs.
const HUNG: Duration = Duration::from_secs(60);

/// PageRank that never ends by itself.
fn endless() -> Algorithm {
    Algorithm::named("pagerank").unwrap().with("iterations", u64::MAX).unwrap().with("tolerance", 0.0).unwrap()
}

#[tokio::test]
async fn a_computation_ends_with_its_caller() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "1,2\n2,3\n3,1\n3,4\n").unwrap();
    let url = folder.path().join("graph");
    hoplake::load(url.to_str().unwrap(), LoadOptions::from_paths([file])).await.unwrap();
    let graph = Graph::open(url.to_str().unwrap()).await.unwrap();
    let mut query = graph.query();
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let workers = Workers::new(pool.clone());
    let options = ComputeOptions { placement: Placement::Memory, workers, ..ComputeOptions::default() };
    let algorithm = endless();
    let mut computing = query.compute(&algorithm, &options, |_| ()).boxed();
    // Until the kernel has its lists, and with them the only thread: before that, threads come back between two batches.
    tokio::time::timeout(Duration::from_millis(300), &mut computing).await.unwrap_err();
    drop(computing);
    let (free, is_free) = tokio::sync::oneshot::channel();
    pool.spawn(move || free.send(()).unwrap());
    tokio::time::timeout(HUNG, is_free).await.expect("the kernel ends").unwrap();
    // The thread has given back what the kernel held.
    assert_eq!(query.memory().used(), 0);
    // The query goes on.
    let ranks = query.compute(&Algorithm::named("degrees").unwrap(), &ComputeOptions::default(), |_| ()).await.unwrap();
    assert_eq!(ranks.vertices().count(), ranks.len());
    assert!(!ranks.is_empty());
}
