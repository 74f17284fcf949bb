//! The facade without async: the same steps, each waiting for its answer.
//!
//! ```
//! use hoplake::{LoadOptions, blocking::{Graph, load}};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let csv = folder.path().join("knows.csv");
//! # std::fs::write(&csv, "# who knows whom\n1,2\n2,3\n").unwrap();
//! load("memory://docs/blocking", LoadOptions::from_paths([csv]))?;
//! let mut graph = Graph::open("memory://docs/blocking")?;
//! let mut query = graph.query();
//! let start = query.vertex("vertex", 1)?;
//! assert!(start.is_some());
//!
//! let old = graph.clone();
//! let committed = graph.begin().delete_edge("edge", ("vertex", 1), ("vertex", 2)).message("they parted").commit()?;
//! graph.refresh()?; // a reader keeps its version until it asks
//! assert_eq!(graph.version(), committed.version);
//! for difference in old.diff(&graph, &[])? {
//!     println!("{:?}", difference?);
//! }
//! for version in Graph::log(graph.store())? {
//!     let version = version?;
//!     println!("{} {}", version.version, version.change.message);
//! }
//! # Ok::<(), hoplake::Error>(())
//! ```
//!
//! All of it shares the threads of one runtime, which begins with the first call and ends with the process: what goes
//! on in the background, such as pooled connections and the hint after a commit, outlives its graph. Within async code
//! it panics, as it would stop a thread there: use the facade itself.

mod mirror;
mod pages;

use std::sync::{Arc, OnceLock};

use hoplake_storage::Store;
use tokio::runtime::{Builder, Runtime};

pub use mirror::{Commit, Graph, Query};
pub use pages::{Diff, Log};

use crate::{Error, ErrorKind, LoadOptions, LoadProgress, LoadReport};

/// Waits for an answer.
fn wait<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = match RUNTIME.get() {
        Some(runtime) => runtime,
        None => {
            let failed =
                |error| Error::new(ErrorKind::Internal, format!("could not start the threads of a runtime: {error}"));
            let begun = Builder::new_multi_thread().enable_all().build().map_err(failed)?;
            // If two threads begin at once, one of their runtimes stays.
            RUNTIME.get_or_init(|| begun)
        }
    };
    runtime.block_on(answer)
}

/// Loads a graph; see [`load`](crate::load).
///
/// # Errors
/// As [`load`](crate::load).
pub fn load(url: &str, options: LoadOptions) -> Result<LoadReport, Error> {
    wait(crate::load(url, options))
}

/// Loads a graph into a given store; see [`load_with`](crate::load_with).
///
/// # Errors
/// As [`load`](crate::load).
pub fn load_with(store: Store, options: LoadOptions, progress: Arc<dyn LoadProgress>) -> Result<LoadReport, Error> {
    wait(crate::load_with(store, options, progress))
}
