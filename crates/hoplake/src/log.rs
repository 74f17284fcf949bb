//! Versions of a graph: listed from the newest back, and found by time.

use hoplake_engine::log::{self, LogEntry};
use hoplake_format::WriterLease;
use hoplake_ingest::source::values;
use hoplake_storage::{Cost, Store};

use crate::{Error, ErrorKind, Graph, graph::reader};

/// The versions of a graph that can be opened, from the newest back: what made each, who, why, and how far its sources
/// were read.
///
/// ```
/// # async fn example() -> Result<(), hoplake::Error> {
/// # use hoplake::{Graph, LoadOptions, Store};
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("knows.csv");
/// # std::fs::write(&file, "1,2\n2,3\n").unwrap();
/// # hoplake::load("memory://log", LoadOptions::from_paths([&file])).await?;
/// let graph = Graph::open("memory://log").await?;
/// let mut commit = graph.begin();
/// commit.delete_vertex("vertex", 3).message("3 has left").source_position("crm", "17").commit().await?;
///
/// let mut log = Graph::log(&Store::open("memory://log")?).await?;
/// let newest = log.next().await?.expect("a graph has a version");
/// assert_eq!((newest.version, newest.change.message.as_str()), (2, "3 has left"));
/// assert_eq!(newest.source_positions["crm"], "17");
/// assert_eq!(log.next().await?.expect("the load").version, 1);
/// assert_eq!(log.next().await?, None);
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Debug)]
pub struct Log(log::VersionLog);

impl Log {
    /// Writers that take long, such as loads and compactions, and are not done.
    pub fn leases(&self) -> &[WriterLease] {
        self.0.leases()
    }

    /// The next older version; `None` after the oldest. Some are read at a time. After an error about one version, the next call
    /// goes on with the one before it.
    ///
    /// # Errors
    /// The store's; [`Corrupt`](ErrorKind::Corrupt) if a manifest is damaged or missing.
    pub async fn next(&mut self) -> Result<Option<LogEntry>, Error> {
        Ok(self.0.next().await?)
    }

    /// The cost so far.
    pub fn cost(&self) -> Cost {
        self.0.cost()
    }
}

impl Graph {
    /// Begins to list the versions of the graph in a store.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if the graph does not exist, or the store's error.
    pub async fn log(store: &Store) -> Result<Log, Error> {
        Ok(Log(log::VersionLog::open(reader(store)?).await?))
    }

    /// The newest version that was made at or before a time, in milliseconds since 1970. As many requests as the number
    /// of versions has binary digits, at most.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if all versions that can be opened are younger; the store's.
    pub async fn version_as_of(store: &Store, unix_ms: u64) -> Result<u64, Error> {
        Ok(log::version_as_of(&reader(store)?, unix_ms, &mut store.context().branch()).await?)
    }
}

/// A time in ISO 8601, such as `2026-11-01T00:00:00Z`, as milliseconds since 1970. Without an offset it is taken as
/// UTC, and a date as its midnight.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid).
pub fn parse_time(text: &str) -> Result<u64, Error> {
    let wrong = |why: &str| Error::new(ErrorKind::Invalid, format!("{text:?} {why}"));
    let micros = values::timestamp(text).map_err(wrong)?;
    u64::try_from(micros.div_euclid(1000)).map_err(|_| wrong("is before 1970"))
}
