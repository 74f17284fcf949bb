//! The graphs that are open, and how others become so.
//!
//! A graph is opened by its first use. All who ask meanwhile wait for that one opening; it is a task of its own, so
//! that it goes on if the first who asked leaves. A failure is everyone's who waited, and is forgotten then.
//!
//! All read through one pool: one budget of memory, one cache on disk, one bound on bytes in flight.
//!
//! The newest version of a graph is *followed* while somebody uses it, and only then: the first request that comes an interval
//! after the last look begins one look for a newer version, beside itself. If that was due for twice as long, the
//! request waits for it, for at most half a second, since what is served is not to be older than that. A look takes one
//! request to the store if there is nothing new, and one more to see that the graph is still there. A client may also ask
//! for a look, and then waits for it.
//!
//! A graph is *in use* while somebody holds its [`OpenGraph`]. Others are closed when they were not used for a
//! while, or when the room is needed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, ready},
};
use hoplake::{Background, ErrorKind, Graph, OpenSettings, ReadPool, Reader, Store};
use tokio::time::timeout;

use crate::{
    Settings,
    access::{AccessNodes, NodesSource},
    compaction::Compactor,
    failure::{Failure, Reason},
    names::{Source, check_name},
    telemetry::metrics::Metrics,
};

/// Opens the store at a URL; tests bring stores of their own.
pub type StoreOpener = Arc<dyn Fn(&str) -> Result<Store, hoplake::Error> + Send + Sync>;

/// A graph that is open for as long as somebody holds this.
#[derive(Debug)]
pub(crate) struct OpenGraph {
    /// The name it was asked for by.
    pub(crate) name: String,
    /// The graph, at one version.
    pub(crate) graph: Graph,
}

/// The longest that a request waits for a look at what it did not ask for.
const LOOK_WAIT: Duration = Duration::from_millis(500);

/// A look asks for the next version, which is one request. Each of so many also asks whether the one that is open is still
/// there: somebody may have removed the graph, or loaded another in its place. The next look after a query that met
/// damage does, too.
const LOOKS_PER_THOROUGH: u32 = 10;

/// A look for a newer version that is under way.
type Look = Shared<BoxFuture<'static, Result<(), Failure>>>;

type Opening = Shared<BoxFuture<'static, Result<Arc<OpenGraph>, Failure>>>;

/// A name and a version; 0 is the newest.
type SlotKey = (String, u64);

struct Slot {
    opening: Opening,
    used: Instant,
    looked: Instant,
    look: Option<Look>,
    /// Looks that began since the last thorough one.
    looks: u32,
}

impl Slot {
    fn new(opening: Opening) -> Self {
        Self { opening, used: Instant::now(), looked: Instant::now(), look: None, looks: 0 }
    }

    fn open(&self) -> Option<&Arc<OpenGraph>> {
        self.opening.peek().and_then(|outcome| outcome.as_ref().ok())
    }

    /// Puts a graph that is open in the place of what was there.
    fn put(&mut self, graph: Arc<OpenGraph>) {
        self.opening = ready(Ok(graph)).boxed().shared();
        // A shared future tells its outcome once it was asked.
        let _ = self.opening.clone().now_or_never();
    }

    /// Whether somebody but the slot holds it, or is about to.
    fn in_use(&self) -> bool {
        self.open().is_none_or(|graph| Arc::strong_count(graph) > 1)
    }
}

/// Where graphs come from.
pub(crate) enum Origin {
    /// Stores, by rules that lead from names to URLs.
    Stores { sources: Vec<Source>, opener: StoreOpener },
    /// Access nodes, which have such rules.
    Nodes(Arc<AccessNodes>),
}

impl Origin {
    /// What may have a graph of this name, the likeliest first, each by its URL.
    fn places(&self, name: &str) -> Vec<String> {
        match self {
            Self::Stores { sources, .. } => sources.iter().flat_map(|source| source.places(name)).collect(),
            Self::Nodes(nodes) => vec![NodesSource::new(nodes.clone(), name).url()],
        }
    }

    /// What reads the graph of this name at one of its places.
    async fn reader(&self, name: &str, place: &str, pool: Arc<ReadPool>) -> Result<Reader, Failure> {
        match self {
            Self::Stores { opener, .. } => Ok(Reader::new(opener(place)?, pool)),
            Self::Nodes(nodes) => {
                let source = NodesSource::new(nodes.clone(), name);
                let store = Store::elsewhere(place, source.profile().await?);
                Ok(Reader::from_source(store, Arc::new(source), pool))
            }
        }
    }

    /// Names that are sure to be asked for.
    fn names(&self) -> impl Iterator<Item = &str> {
        let sources = match self {
            Self::Stores { sources, .. } => &sources[..],
            Self::Nodes(_) => &[],
        };
        sources.iter().filter_map(Source::name)
    }
}

/// All graphs of a server.
pub(crate) struct Catalog {
    origin: Origin,
    pool: Arc<ReadPool>,
    open_max: usize,
    idle: Duration,
    refresh: Option<Duration>,
    slots: Mutex<HashMap<SlotKey, Slot>>,
    metrics: Arc<Metrics>,
    /// Of graphs in stores, if the server compacts.
    compactor: Option<Arc<Compactor>>,
}

impl Catalog {
    /// No graph is open yet.
    pub(crate) fn new(
        settings: &Settings,
        origin: Origin,
        pool: Arc<ReadPool>,
        compactor: Option<Arc<Compactor>>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            origin,
            pool,
            open_max: settings.graphs_open_max,
            idle: settings.graph_idle(),
            refresh: settings.refresh(),
            slots: Mutex::default(),
            metrics,
            compactor,
        }
    }

    /// What was read in the background for all its graphs.
    pub(crate) fn background(&self) -> Background {
        self.pool.background()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<SlotKey, Slot>> {
        self.slots.lock().expect("no thread panics with the slots")
    }

    /// The graph of this name, opened if need be; `version` 0 is the newest.
    ///
    /// # Errors
    /// [`Reason::Invalid`] if it is no name, [`Reason::NotFound`] if there is no such graph, [`Reason::Busy`] if
    /// there is no room for one more; the store's.
    pub(crate) async fn acquire(self: &Arc<Self>, name: &str, version: u64) -> Result<Arc<OpenGraph>, Failure> {
        let (opening, look) = {
            let mut slots = self.slots();
            // The newest is often open when its number is asked for.
            let newest = version > 0 && slots.get(&(name.to_owned(), 0)).is_some_and(|slot| is_version(slot, version));
            let key = (name.to_owned(), if newest { 0 } else { version });
            match slots.get_mut(&key) {
                Some(slot) => {
                    slot.used = Instant::now();
                    let look = slot.open().is_some().then(|| self.look_if_due(slot, &key)).flatten();
                    if let (Some(graph), None) = (slot.open(), &look) {
                        return Ok(graph.clone());
                    }
                    (slot.opening.clone(), look.map(|look| (key, look)))
                }
                None => {
                    check_name(name)?;
                    self.make_room(&mut slots)?;
                    let opening = self.clone().begin_opening(key.clone());
                    slots.insert(key, Slot::new(opening.clone()));
                    (opening, None)
                }
            }
        };
        let Some((key, look)) = look else { return opening.await };
        // If it takes long or fails, what is open is as good as it was.
        let _ = timeout(LOOK_WAIT, look).await;
        let newest = self.slots().get(&key).map(|slot| slot.opening.clone());
        newest.unwrap_or(opening).await
    }

    /// The newest version of this graph, as of now: what was published before is in it.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub(crate) async fn refresh(self: &Arc<Self>, name: &str) -> Result<Arc<OpenGraph>, Failure> {
        let key = (name.to_owned(), 0);
        let look = |catalog: &Arc<Self>| {
            let mut slots = catalog.slots();
            slots
                .get_mut(&key)
                .filter(|slot| slot.open().is_some())
                .map(|slot| (slot.look.clone(), slot.open().cloned()))
        };
        match look(self) {
            // One that is under way may have begun too early.
            Some((Some(under_way), _)) => drop(under_way.await),
            Some((None, _)) => {}
            None => return self.acquire(name, 0).await,
        }
        let look = self.slots().get_mut(&key).map(|slot| self.begin_look(slot, &key));
        if let Some(look) = look {
            look.await?;
        }
        self.acquire(name, 0).await
    }

    /// Opens in a task of its own; a failure gives its slot back.
    fn begin_opening(self: Arc<Self>, key: SlotKey) -> Opening {
        let opening = tokio::spawn(async move {
            let opened = self.open(&key).await;
            if opened.is_err() {
                self.slots().remove(&key);
            }
            opened
        });
        let failed = |error| Failure::new(Reason::Internal, format!("opening a graph broke off: {error}"));
        opening.map(move |joined| joined.unwrap_or_else(|error| Err(failed(error)))).boxed().shared()
    }

    async fn open(&self, (name, version): &SlotKey) -> Result<Arc<OpenGraph>, Failure> {
        let settings = OpenSettings { version: (*version > 0).then_some(*version), ..OpenSettings::default() };
        for place in self.origin.places(name) {
            let begun = Instant::now();
            let reader = self.origin.reader(name, &place, self.pool.clone()).await?;
            match Graph::open_through(reader, &settings).await {
                Ok(graph) => {
                    self.metrics.graph_opened();
                    let (version, waves, time_ms) =
                        (graph.version(), graph.open_cost().waves, begun.elapsed().as_millis() as u64);
                    tracing::info!(graph = name, version, url = place, waves, time_ms, "graph opened");
                    return Ok(Arc::new(OpenGraph { name: name.clone(), graph }));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    tracing::debug!(graph = name, url = place, %error, "no graph there");
                }
                Err(error) => return Err(error.into()),
            }
        }
        let version = if *version > 0 { format!(" with version {version}") } else { String::new() };
        // Where it was looked for is for the log alone.
        Err(Failure::new(Reason::NotFound, format!("there is no graph {name:?}{version}")))
    }

    /// Closes the graph that was not used for longest, if there is no room for one more.
    fn make_room(&self, slots: &mut HashMap<SlotKey, Slot>) -> Result<(), Failure> {
        if slots.len() < self.open_max {
            return Ok(());
        }
        let unused = slots.iter().filter(|(_, slot)| !slot.in_use()).min_by_key(|(_, slot)| slot.used);
        let Some(key) = unused.map(|(key, _)| key.clone()) else {
            let message = format!("{} graphs are open and all in use; try again later", self.open_max);
            return Err(Failure::new(Reason::Busy, message));
        };
        self.close(slots, &key, "room is needed");
        Ok(())
    }

    fn close(&self, slots: &mut HashMap<SlotKey, Slot>, key: &SlotKey, why: &str) {
        if slots.remove(key).is_some() {
            self.metrics.graph_closed();
            tracing::info!(graph = key.0, why, "graph closed");
        }
    }

    /// Begins to look for a newer version if it is time to. Returns the look that the request is to wait for, if it is.
    fn look_if_due(self: &Arc<Self>, slot: &mut Slot, key: &SlotKey) -> Option<Look> {
        let refresh = self.refresh.filter(|_| key.1 == 0)?;
        let age = slot.looked.elapsed();
        if age < refresh {
            return None;
        }
        let look = self.begin_look(slot, key);
        (age >= 2 * refresh).then_some(look)
    }

    /// The look that is under way, or one that begins now, in a task of its own.
    fn begin_look(self: &Arc<Self>, slot: &mut Slot, key: &SlotKey) -> Look {
        if let Some(look) = &slot.look {
            return look.clone();
        }
        slot.looks += 1;
        let thorough = slot.looks >= LOOKS_PER_THOROUGH;
        if thorough {
            slot.looks = 0;
        }
        let (catalog, key, open) = (self.clone(), key.clone(), slot.open().cloned());
        let look = tokio::spawn(async move { catalog.look(&key, open, thorough).await });
        let failed = |error| Failure::new(Reason::Internal, format!("a look for a newer version broke off: {error}"));
        let look = look.map(move |joined| joined.unwrap_or_else(|error| Err(failed(error)))).boxed().shared();
        slot.look = Some(look.clone());
        look
    }

    /// Has the next look at a graph ask whether it is still there: what a query read of it was missing or damaged.
    pub(crate) fn suspect(&self, name: &str) {
        if let Some(slot) = self.slots().get_mut(&(name.to_owned(), 0)) {
            slot.looks = LOOKS_PER_THOROUGH;
        }
    }

    async fn look(self: Arc<Self>, key: &SlotKey, open: Option<Arc<OpenGraph>>, thorough: bool) -> Result<(), Failure> {
        let found = match &open {
            Some(open) => self.newer(key, open, thorough).await,
            None => Ok(None),
        };
        let mut slots = self.slots();
        if let Some(slot) = slots.get_mut(key) {
            slot.look = None;
            slot.looked = Instant::now();
        }
        match found {
            Ok(None) => Ok(()),
            Ok(Some(newer)) => {
                slots.get_mut(key).into_iter().for_each(|slot| slot.put(newer.clone()));
                drop(slots);
                self.compactor.iter().for_each(|compactor| compactor.consider(&key.0, &newer.graph));
                Ok(())
            }
            Err(failure) => {
                match failure.reason {
                    Reason::NotFound => self.close(&mut slots, key, "it is gone"),
                    _ => tracing::warn!(graph = key.0, %failure, "could not look for a newer version"),
                }
                Err(failure)
            }
        }
    }

    /// The newest version of a graph, if it is not the one that is open.
    async fn newer(&self, key: &SlotKey, open: &OpenGraph, thorough: bool) -> Result<Option<Arc<OpenGraph>>, Failure> {
        let mut graph = open.graph.clone();
        let moved = graph.refresh().await;
        if let Ok(true) = moved {
            tracing::info!(graph = key.0, version = graph.version(), "newer version");
            return Ok(Some(Arc::new(OpenGraph { name: open.name.clone(), graph })));
        }
        match moved {
            Ok(_) if !thorough || graph.is_there().await? => Ok(None),
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            // It was removed, and perhaps loaded anew: not a later version, but another graph.
            _ => {
                let opened = self.open(key).await?;
                self.metrics.graph_closed();
                Ok(Some(opened))
            }
        }
    }

    /// Closes what was not used for too long.
    pub(crate) fn close_idle(&self) {
        let mut slots = self.slots();
        let idle = |slot: &Slot| !slot.in_use() && slot.used.elapsed() >= self.idle;
        let keys: Vec<_> = slots.iter().filter(|(_, slot)| idle(slot)).map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.close(&mut slots, key, "nobody used it"));
    }

    /// The names of graphs that are open or were named at the start, in order.
    pub(crate) fn names(&self) -> Vec<(String, bool)> {
        let slots = self.slots();
        let open = slots.iter().filter(|(_, slot)| slot.open().is_some()).map(|((name, _), _)| (name.clone(), true));
        let named = self.origin.names().map(|name| (name.to_owned(), false));
        let mut names: Vec<_> = open.chain(named).collect();
        // Open ones first within a name, so that they stay.
        names.sort_by(|a, b| (&a.0, !a.1).cmp(&(&b.0, !b.1)));
        names.dedup_by(|later, first| later.0 == first.0);
        names
    }
}

fn is_version(slot: &Slot, version: u64) -> bool {
    slot.open().is_some_and(|open| open.graph.version() == version)
}
