//! The graphs whose blocks an access node serves.
//!
//! A graph is a reader of its store through the server's pool. Nothing is opened: which versions there are, and what
//! blocks mean, only the algorithm node knows. Between requests it only keeps the numbers under which the memory cache
//! knows objects, for the most recently requested ones.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use hoplake::{
    ReadPool, Reader, Store,
    access::{Object, QueryContext, StorageError},
};

use crate::{
    failure::{Failure, Reason},
    names::{Source, StoreOpener, check_name},
};

/// Graphs that are known at once. One takes some kilobytes.
const GRAPHS_MAX: usize = 1_024;

/// Objects of a graph that are known at once are this many to twice as many. One takes some 100 bytes.
const OBJECTS_MAX: usize = 2_048;

/// A graph whose blocks are served.
#[derive(Debug)]
pub(crate) struct ServedGraph {
    pub(crate) reader: Reader,
    objects: Mutex<Objects>,
}

/// Objects in two generations: when the young are many, they become the old, and the old are forgotten.
#[derive(Debug, Default)]
struct Objects {
    young: HashMap<String, Object>,
    old: HashMap<String, Object>,
}

impl Objects {
    fn get(&mut self, name: &str, make: impl FnOnce() -> Object) -> Object {
        if let Some(object) = self.young.get(name) {
            return object.clone();
        }
        if self.young.len() >= OBJECTS_MAX {
            self.old = mem::take(&mut self.young);
        }
        let object = self.old.remove(name).unwrap_or_else(make);
        self.young.insert(name.to_owned(), object.clone());
        object
    }
}

impl ServedGraph {
    fn new(store: Store, pool: Arc<ReadPool>) -> Self {
        Self { reader: Reader::new(store, pool), objects: Mutex::default() }
    }

    /// An object; the same for the same name, so that its blocks are found in memory.
    pub(crate) fn object(&self, name: &str) -> Object {
        let mut objects = self.objects.lock().expect("no thread panics with the objects");
        objects.get(name, || self.reader.object(name))
    }

    /// Whether there is a graph: a hint, or a manifest.
    async fn exists(&self) -> Result<bool, StorageError> {
        let mut branch = QueryContext::new().branch();
        // The hint first: a read costs less than a list. It is advisory and may be lost, so a manifest decides (RFC 0001).
        if self.reader.read_object("hint", &mut branch, Ok).await?.is_some() {
            return Ok(true);
        }
        Ok(!self.reader.list("manifest", &mut branch).await?.is_empty())
    }
}

/// All graphs of an access node, by name.
pub(crate) struct ServedGraphs {
    sources: Vec<Source>,
    opener: StoreOpener,
    pool: Arc<ReadPool>,
    idle: Duration,
    graphs: Mutex<HashMap<String, (Arc<ServedGraph>, Instant)>>,
}

impl ServedGraphs {
    /// Graphs at these URLs, read through `pool`; graphs that are idle for `idle` are closed.
    pub(crate) fn new(sources: Vec<Source>, opener: StoreOpener, pool: Arc<ReadPool>, idle: Duration) -> Self {
        Self { sources, opener, pool, idle, graphs: Mutex::default() }
    }

    /// The graph of this name. If it has only one URL, the caller finds out whether it exists.
    ///
    /// # Errors
    /// [`Reason::Invalid`] if it is not a valid name, [`Reason::NotFound`] if the graph does not exist; the store's
    /// error.
    pub(crate) async fn get(&self, name: &str) -> Result<Arc<ServedGraph>, Failure> {
        if let Some((graph, used)) = self.graphs().get_mut(name) {
            *used = Instant::now();
            return Ok(graph.clone());
        }
        check_name(name)?;
        // Without the lock: a store that is slow for one name must not delay requests for the others.
        let graph = Arc::new(self.find(name).await?);
        let mut graphs = self.graphs();
        if graphs.len() >= GRAPHS_MAX {
            // Requests that still read the graph hold it themselves, so forgetting it here breaks none of them.
            let unused = graphs.iter().min_by_key(|(_, (_, used))| *used).map(|(name, _)| name.clone());
            unused.and_then(|name| graphs.remove(&name));
        }
        // Another call was faster: use its graph, with its caches.
        Ok(graphs.entry(name.to_owned()).or_insert((graph, Instant::now())).0.clone())
    }

    fn graphs(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Arc<ServedGraph>, Instant)>> {
        self.graphs.lock().expect("no thread panics with the graphs")
    }

    async fn find(&self, name: &str) -> Result<ServedGraph, Failure> {
        let urls: Vec<_> = self.sources.iter().flat_map(|source| source.urls(name)).collect();
        let open = |url: &String| Ok::<_, Failure>(ServedGraph::new((self.opener)(url)?, self.pool.clone()));
        // With one URL there is nothing to choose, so the common case costs no request: the first read shows if it exists.
        if let [url] = &urls[..] {
            return open(url);
        }
        for url in &urls {
            let graph = open(url)?;
            if graph.exists().await.map_err(hoplake::Error::from)? {
                return Ok(graph);
            }
        }
        Err(Failure::new(Reason::NotFound, format!("there is no graph {name:?}")))
    }

    /// Forgets what was not used for too long.
    pub(crate) fn forget_idle(&self) {
        self.graphs().retain(|_, (_, used)| used.elapsed() < self.idle);
    }
}

#[cfg(test)]
mod tests {
    use hoplake::ReadSettings;

    use super::*;

    #[test]
    fn objects_that_are_asked_for_stay_the_same() {
        let pool = ReadPool::new(ReadSettings::default()).unwrap();
        let graph = ServedGraph::new(Store::open("memory://served-objects").unwrap(), pool);
        let often = format!("{:?}", graph.object("data/often"));
        let seldom = format!("{:?}", graph.object("data/seldom"));
        for number in 0..3 * OBJECTS_MAX {
            graph.object(&format!("data/{number}"));
            if number % 100 == 0 {
                assert_eq!(format!("{:?}", graph.object("data/often")), often);
            }
        }
        assert_ne!(format!("{:?}", graph.object("data/seldom")), seldom);
        let objects = graph.objects.lock().unwrap();
        assert!(objects.young.len() + objects.old.len() <= 2 * OBJECTS_MAX);
    }
}
