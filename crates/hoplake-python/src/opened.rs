//! An open graph, in whichever process it is used.
//!
//! What was opened belongs to the process that opened it, as its threads do ([`crate::process`]). In a child it is opened again, at the same
//! version, with the first call. The lock is held only with the interpreter lock, as a `fork` is: no other thread can hold it then.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
};

use hoplake::{DISK_CACHE_BYTES, DiskSettings, Error, Graph, OpenSettings, ReadSettings, Store};
use tokio::sync::OnceCell;

use crate::process::{self, OfProcess};

/// How a graph is opened.
#[derive(Clone)]
pub struct Location {
    pub url: String,
    pub version: Option<u64>,
    pub cache_bytes: Option<u64>,
    pub disk_folder: Option<PathBuf>,
    pub disk_bytes: Option<u64>,
    pub mapped: bool,
}

impl Location {
    /// Opens the graph.
    pub async fn open(&self) -> Result<Graph, Error> {
        let defaults = ReadSettings::default();
        let bytes_max = self.disk_bytes.unwrap_or(DISK_CACHE_BYTES);
        let read = ReadSettings {
            cache_bytes_max: self.cache_bytes.unwrap_or(defaults.cache_bytes_max),
            mapped: self.mapped,
            disk: self.disk_folder.clone().map(|folder| DiskSettings { folder, bytes_max }),
            ..defaults
        };
        let settings = OpenSettings { version: self.version, read, ..OpenSettings::default() };
        Graph::open_with(Store::open(&self.url)?, &settings).await
    }
}

type Cell = Arc<OnceCell<Graph>>;

/// A graph that is open, or will be with the first call.
pub struct Opened(Mutex<Open>);

struct Open {
    location: Location,
    cell: OfProcess<Cell>,
}

impl Opened {
    /// A graph that the first call opens.
    pub fn later(location: Location) -> Self {
        let cell = OfProcess::new(Arc::new(OnceCell::new()));
        Self(Mutex::new(Open { location, cell }))
    }

    /// A graph that is open.
    pub fn now(location: Location, graph: Graph) -> Self {
        let opened = Self::later(location);
        opened.set(graph);
        opened
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        process::lock(&self.0)
    }

    /// Where it is, and its version.
    pub fn location(&self) -> Location {
        self.lock().location.clone()
    }

    /// Has the calls from now on see another version.
    pub fn set(&self, graph: Graph) {
        let mut open = self.lock();
        open.location.version = Some(graph.version());
        open.cell = OfProcess::new(Arc::new(OnceCell::new_with(Some(graph))));
    }

    /// Has the next call open the graph again, at the same version.
    pub fn close(&self) {
        self.lock().cell = OfProcess::new(Arc::new(OnceCell::new()));
    }

    /// The graph, if it is open in this process.
    pub fn known(&self) -> Option<Graph> {
        self.lock().cell.get().and_then(|cell| cell.get().cloned())
    }

    /// The graph, which is opened if it is not open in this process.
    pub fn graph(&self) -> impl Future<Output = Result<Graph, Error>> + Send + 'static + use<> {
        let mut open = self.lock();
        if open.cell.get().is_none() {
            open.cell = OfProcess::new(Arc::new(OnceCell::new()));
        }
        let cell = open.cell.get().cloned().unwrap_or_default();
        let location = open.location.clone();
        async move { cell.get_or_try_init(|| location.open()).await.cloned() }
    }
}
