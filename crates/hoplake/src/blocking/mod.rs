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
//! All of it shares the threads of one runtime, which begins with the first call and ends with the process: what goes on in
//! the background, such as connections that are kept and the hint behind a commit, outlives the graph that began it. Within
//! async code it panics, as it would stop a thread there: use the facade itself.

mod changes;
mod query;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use hoplake_storage::Store;
use tokio::runtime::{Builder, Runtime};

pub use changes::{Commit, Diff, Log};
pub use query::Query;

use crate::{
    Batch, ChangeCounts, Committed, Compacted, CompactionSettings, Cost, Error, ErrorKind, GraphInfo, LoadOptions,
    LoadProgress, LoadReport, Manifest, OpenSettings, PriceList, Reader, Schema, VacuumSettings, Vacuumed,
    Verification, Verified,
};

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

/// Loads a graph into a store at hand; see [`load_with`](crate::load_with).
///
/// # Errors
/// As [`load`](crate::load).
pub fn load_with(store: Store, options: LoadOptions, progress: Arc<dyn LoadProgress>) -> Result<LoadReport, Error> {
    wait(crate::load_with(store, options, progress))
}

/// An open graph; see [`Graph`](crate::Graph). Each method waits for what the method of the same name there promises, and
/// fails as that does.
#[derive(Debug, Clone)]
pub struct Graph(crate::Graph);

impl From<crate::Graph> for Graph {
    fn from(graph: crate::Graph) -> Self {
        Self(graph)
    }
}

impl Graph {
    /// Opens the newest version of a graph.
    ///
    /// # Errors
    /// As [`Graph::open`](crate::Graph::open).
    pub fn open(url: &str) -> Result<Self, Error> {
        wait(crate::Graph::open(url)).map(Self)
    }

    /// Opens a graph at a store at hand, or another version, or with other budgets.
    ///
    /// # Errors
    /// As [`Graph::open_with`](crate::Graph::open_with).
    pub fn open_with(store: Store, settings: &OpenSettings) -> Result<Self, Error> {
        wait(crate::Graph::open_with(store, settings)).map(Self)
    }

    /// Opens a graph through a reader, which may share its caches with other graphs.
    ///
    /// # Errors
    /// As [`Graph::open_through`](crate::Graph::open_through).
    pub fn open_through(reader: Reader, settings: &OpenSettings) -> Result<Self, Error> {
        wait(crate::Graph::open_through(reader, settings)).map(Self)
    }

    /// The graph, for async code.
    pub fn as_async(&self) -> &crate::Graph {
        &self.0
    }

    /// Begins a query.
    pub fn query(&self) -> Query {
        Query(self.0.query())
    }

    /// Moves on to the newest version, and says whether there was a newer one.
    ///
    /// # Errors
    /// As [`Graph::refresh`](crate::Graph::refresh).
    pub fn refresh(&mut self) -> Result<bool, Error> {
        wait(self.0.refresh())
    }

    /// Whether the open version can still be opened.
    ///
    /// # Errors
    /// As [`Graph::is_there`](crate::Graph::is_there).
    pub fn is_there(&self) -> Result<bool, Error> {
        wait(self.0.is_there())
    }

    /// Up to where a source that feeds the graph was read, as the last commit that named it said.
    pub fn source_position(&self, source: &str) -> Option<&str> {
        self.0.source_position(source)
    }

    /// The version that is open.
    pub fn version(&self) -> u64 {
        self.0.version()
    }

    /// Labels, edge types and properties.
    pub fn schema(&self) -> &Schema {
        self.0.schema()
    }

    /// Everything that the version says of itself.
    pub fn manifest(&self) -> &Manifest {
        self.0.manifest()
    }

    /// What opening it took.
    pub fn open_cost(&self) -> Cost {
        self.0.open_cost()
    }

    /// The store that it is read from.
    pub fn store(&self) -> &Store {
        self.0.store()
    }

    /// What requests to its store cost.
    pub fn prices(&self) -> &PriceList {
        self.0.prices()
    }

    /// Counts, sizes and degrees.
    ///
    /// # Errors
    /// As [`Graph::info`](crate::Graph::info).
    pub fn info(&self) -> Result<GraphInfo, Error> {
        wait(self.0.info())
    }

    /// Reads everything and says whether it is whole. `progress` is told the bytes read so far.
    ///
    /// # Errors
    /// As [`Graph::verify`](crate::Graph::verify).
    pub fn verify(&self, progress: impl Fn(u64)) -> Result<Verified, Error> {
        wait(self.0.verify(progress))
    }

    /// Reads everything of the graph at a store, and lists all damage.
    ///
    /// # Errors
    /// As [`Graph::verify_all`](crate::Graph::verify_all).
    pub fn verify_all(store: &Store, progress: impl Fn(u64)) -> Result<Verification, Error> {
        wait(crate::Graph::verify_all(store, progress))
    }

    /// How long a commit may take from now on, through this graph and its clones; see
    /// [`Graph::set_commit_timeout`](crate::Graph::set_commit_timeout).
    pub fn set_commit_timeout(&self, timeout: Duration) {
        self.0.set_commit_timeout(timeout);
    }

    /// Begins a batch of changes that is based on the open version.
    pub fn begin(&self) -> Commit {
        Commit(self.0.begin())
    }

    /// Applies a batch, all of it or nothing. Threads that do so at the same time share a version.
    ///
    /// # Errors
    /// As [`Graph::apply`](crate::Graph::apply).
    pub fn apply(&self, batch: Batch) -> Result<Committed, Error> {
        wait(self.0.apply(batch))
    }

    /// What a batch would come to if it were applied now. Nothing is written.
    ///
    /// # Errors
    /// As [`Graph::check`](crate::Graph::check).
    pub fn check(&self, batch: &Batch) -> Result<ChangeCounts, Error> {
        wait(self.0.check(batch))
    }

    /// What is different in `other`, another version of the same graph, of these labels or of all.
    ///
    /// # Errors
    /// As [`Graph::diff`](crate::Graph::diff).
    pub fn diff(&self, other: &Self, labels: &[String]) -> Result<Diff, Error> {
        self.0.diff(&other.0, labels).map(Diff::new)
    }

    /// The versions at a store that can be opened, oldest first.
    ///
    /// # Errors
    /// As [`Graph::versions`](crate::Graph::versions).
    pub fn versions(store: &Store) -> Result<Vec<u64>, Error> {
        wait(crate::Graph::versions(store))
    }

    /// The versions at a store from the newest back, with what made each.
    ///
    /// # Errors
    /// As [`Graph::log`](crate::Graph::log).
    pub fn log(store: &Store) -> Result<Log, Error> {
        wait(crate::Graph::log(store)).map(Log::new)
    }

    /// The newest version that was made at or before a time, in milliseconds since 1970.
    ///
    /// # Errors
    /// As [`Graph::version_as_of`](crate::Graph::version_as_of).
    pub fn version_as_of(store: &Store, unix_ms: u64) -> Result<u64, Error> {
        wait(crate::Graph::version_as_of(store, unix_ms))
    }

    /// Names a version, which no vacuum removes from then on; without a version the name is removed. Returns the version
    /// that has the change, or `None` if nothing was to change.
    ///
    /// # Errors
    /// As [`Graph::tag`](crate::Graph::tag).
    pub fn tag(store: &Store, name: &str, version: Option<u64>) -> Result<Option<u64>, Error> {
        wait(crate::Graph::tag(store, name, version))
    }

    /// What the newest version says of itself, without opening it.
    ///
    /// # Errors
    /// As [`Graph::newest`](crate::Graph::newest).
    pub fn newest(store: &Store) -> Result<Manifest, Error> {
        wait(crate::Graph::newest(store))
    }

    /// The version that has a name.
    ///
    /// # Errors
    /// As [`Graph::tagged`](crate::Graph::tagged).
    pub fn tagged(store: &Store, name: &str) -> Result<Option<u64>, Error> {
        wait(crate::Graph::tagged(store, name))
    }

    /// Makes what an older version says the newest version, and returns that.
    ///
    /// # Errors
    /// As [`Graph::restore`](crate::Graph::restore).
    pub fn restore(store: &Store, version: u64, message: &str) -> Result<u64, Error> {
        wait(crate::Graph::restore(store, version, message))
    }

    /// Makes a graph in another place of the same bucket that is what a version of this one is. Returns the tag that keeps
    /// it here.
    ///
    /// # Errors
    /// As [`Graph::clone_to`](crate::Graph::clone_to).
    pub fn clone_to(store: &Store, version: Option<u64>, target: &Store) -> Result<String, Error> {
        wait(crate::Graph::clone_to(store, version, target))
    }

    /// Makes one part of several, where they are due; no answer changes.
    ///
    /// # Errors
    /// As [`Graph::compact`](crate::Graph::compact).
    pub fn compact(store: &Store, settings: &CompactionSettings) -> Result<Compacted, Error> {
        wait(crate::Graph::compact(store, settings))
    }

    /// As [`Self::compact`], but breaks off when `stop` is ready, such as the receiver of a `tokio::sync::oneshot` whose
    /// sender another thread has.
    ///
    /// # Errors
    /// As [`Graph::compact_until`](crate::Graph::compact_until).
    pub fn compact_until(
        store: &Store,
        settings: &CompactionSettings,
        stop: impl Future<Output = ()>,
    ) -> Result<Compacted, Error> {
        wait(crate::Graph::compact_until(store, settings, stop))
    }

    /// Whether [`Self::compact`] would merge something of the open version.
    ///
    /// # Errors
    /// As [`Graph::compaction_is_due`](crate::Graph::compaction_is_due).
    pub fn compaction_is_due(&self, settings: &CompactionSettings) -> Result<bool, Error> {
        wait(self.0.compaction_is_due(settings))
    }

    /// Lets versions go that are not to stay, and removes what no version names.
    ///
    /// # Errors
    /// As [`Graph::vacuum`](crate::Graph::vacuum).
    pub fn vacuum(store: &Store, settings: &VacuumSettings) -> Result<Vacuumed, Error> {
        wait(crate::Graph::vacuum(store, settings))
    }
}
