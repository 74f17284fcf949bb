//! The open graphs, and how graphs are opened, refreshed and closed.
//!
//! The first request for a graph opens it. Concurrent requests wait for the same opening, which runs in a task of its own, so that it
//! continues if the first client disconnects. If it fails, all waiting requests get the error, which is not remembered.
//!
//! A graph takes a slot only once it is open, so that requests for unknown names close no graph. Unknown names are remembered for a few
//! seconds, and the number of concurrent look-ups is bounded, so that such requests cost the store little. A refresh asks the store
//! again.
//!
//! All graphs share one pool: one memory budget, one disk cache, one limit on bytes in flight.
//!
//! The server *follows* the newest version of a graph only while the graph is in use. The first request that arrives an interval after the
//! last look starts a look for a newer version, in parallel. If two intervals have passed, the request waits for the look, for at most
//! half a second, so that it does not serve older data. A look takes one request to the store if there is no new version, and another to
//! check that the graph still exists. A client that asks for a refresh waits for it.
//!
//! A graph is *in use* while a call holds its [`OpenGraph`]. Other graphs are closed after an idle time, or when another graph needs the
//! slot.

mod origin;
mod slots;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use futures::FutureExt;
use hoplake::{Background, ErrorKind, Graph, OpenSettings, ReadPool, Schema};
use tokio::{sync::Semaphore, time::timeout};

use self::slots::{Look, Opening, RefreshState, Slot, SlotKey, SlotState, Slots};
pub(crate) use self::{origin::Origin, slots::OpenGraph};
use crate::{
    Settings,
    compaction::Compactor,
    failure::{Failure, Reason},
    names::check_name,
    telemetry::metrics::Metrics,
};

/// The maximum time that a request waits for a look that it did not ask for.
const LOOK_WAIT: Duration = Duration::from_millis(500);

/// A look asks for the next version, which is one request. Every n-th look, and the first one after a query found damage, also checks that
/// the open version still exists: another process may have deleted the graph, or loaded another one at its URL.
const LOOKS_PER_THOROUGH: u32 = 10;

/// For how long after the last look a batch is written without another one. A version that is written after the graph was deleted is
/// lost, and can hide a graph that is loaded at the same URL.
const SEEN_FOR: Duration = Duration::from_secs(5);

/// The maximum number of concurrent openings. Each reads indexes of some megabytes.
const OPENINGS_MAX: usize = 16;
/// The maximum number of openings that wait; further ones are rejected.
const OPENINGS_WAITING_MAX: usize = 256;
/// The names of cancellable work, for messages.
const OPENING: &str = "opening the graph";
const LOOK: &str = "the look for a newer version";

/// All graphs of a server.
pub(crate) struct Catalog {
    origin: Origin,
    pool: Arc<ReadPool>,
    open_max: usize,
    idle: Duration,
    refresh: Option<Duration>,
    slots: Mutex<Slots>,
    /// Limits concurrent openings.
    turns: Semaphore,
    metrics: Arc<Metrics>,
    /// The compactor of graphs in stores, if the server compacts.
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
            turns: Semaphore::new(OPENINGS_MAX),
            metrics,
            compactor,
        }
    }

    /// The background reads of all its graphs.
    pub(crate) fn background(&self) -> Background {
        self.pool.background()
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().expect("no thread panics with the slots")
    }

    /// The graph of this name, which is opened if necessary; `version` 0 is the newest.
    ///
    /// # Errors
    /// [`Reason::Invalid`] if it is not a valid name, [`Reason::NotFound`] if the graph does not exist,
    /// [`Reason::Busy`] if too many graphs are open; the store's error.
    pub(crate) async fn acquire(self: &Arc<Self>, name: &str, version: u64) -> Result<Arc<OpenGraph>, Failure> {
        let (graph, key, look) = match self.find(name, version)? {
            SlotState::Open(graph) => return Ok(graph),
            SlotState::Opening(opening) => return opening.await,
            SlotState::Old(graph, key, look) => (graph, key, look),
        };
        // After a timeout or a failure, the open version is served. The look continues in its own task, and the next request gets its result.
        let _ = timeout(LOOK_WAIT, look).await;
        // The slot has the newest version, whether the look ended, failed or is still running. If the slot was closed meanwhile, the request
        // continues with the graph that it holds.
        let newest = self.slots().open.get(&key).map(|slot| slot.graph.clone());
        Ok(newest.unwrap_or(graph))
    }

    fn find(self: &Arc<Self>, name: &str, version: u64) -> Result<SlotState, Failure> {
        let mut slots = self.slots();
        // The newest is often open when a request names its number.
        let newest = (name.to_owned(), 0);
        let is_newest = version > 0 && slots.open.get(&newest).is_some_and(|slot| slot.has_version(version));
        let key = if is_newest { newest } else { (name.to_owned(), version) };
        let Some(slot) = slots.open.get_mut(&key) else {
            return Ok(SlotState::Opening(self.opening(&mut slots, key)?));
        };
        // The idle time counts from the beginning of a call; while the call runs, it keeps the graph open by holding it.
        slot.used = Instant::now();
        let look = self.look_if_due(slot, &key);
        let graph = slot.graph.clone();
        Ok(look.map_or(SlotState::Open(graph.clone()), |look| SlotState::Old(graph, key, look)))
    }

    /// The newest version of this graph, which includes everything that was published before this call.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub(crate) async fn refresh(self: &Arc<Self>, name: &str) -> Result<Arc<OpenGraph>, Failure> {
        let key = (name.to_owned(), 0);
        match self.before_refresh(&key)? {
            RefreshState::Nothing => {}
            // Its result does not matter: the look below begins after the refresh was requested and so finds every version
            // that was published before.
            RefreshState::Look(look) => drop(look.await),
            RefreshState::Opening(opening) => drop(opening.await?),
            RefreshState::Begun(opening) => return opening.await,
        }
        // `None` if the graph was closed in between; then `acquire` opens it, which finds the newest version, too.
        let look = self.slots().open.get_mut(&key).map(|slot| self.begin_look(slot, &key));
        if let Some(look) = look {
            look.await?;
        }
        self.acquire(name, 0).await
    }

    /// An open graph to which a batch can be written. Looks for it in the store again if the last look is too long ago.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub(crate) async fn seen(self: &Arc<Self>, open: Arc<OpenGraph>) -> Result<Arc<OpenGraph>, Failure> {
        let seen_for = self.refresh.unwrap_or(SEEN_FOR).min(SEEN_FOR);
        match self.slots().open.get_mut(&(open.name.clone(), 0)) {
            Some(slot) if slot.seen.elapsed() < seen_for => return Ok(open),
            Some(slot) => slot.looks = LOOKS_PER_THOROUGH,
            None => {}
        }
        self.refresh(&open.name).await
    }

    /// Moves the slot of a graph on to a version that was committed through it, before the commit is acknowledged, without a request.
    /// Returns whether readers find the version; otherwise they need a refresh.
    pub(crate) fn advance(&self, committed: &OpenGraph, version: u64) -> bool {
        let mut slots = self.slots();
        let key = (committed.name.clone(), 0);
        let Some(slot) = slots.open.get_mut(&key) else {
            // Closed meanwhile: the next opening finds the version. One that is under way may have begun too early.
            return !slots.openings.contains_key(&key);
        };
        let mut graph = slot.graph.graph.clone();
        if !graph.advance() {
            return graph.version() >= version;
        }
        let reached = graph.version() >= version;
        slot.graph = Arc::new(OpenGraph { name: committed.name.clone(), graph: graph.clone() });
        slot.removed = false;
        drop(slots);
        self.compactor.iter().for_each(|compactor| compactor.consider(&committed.name, &graph));
        reached
    }

    /// Creates an empty graph of this name, which was not found, at its own URL if it has one, or else below the first URL that is not a graph
    /// itself. Returns whether it created one.
    ///
    /// # Errors
    /// [`Reason::Invalid`] if no graph can be made, [`Reason::Conflict`] if one with content appeared; the store's.
    pub(crate) async fn create(&self, name: &str) -> Result<bool, Failure> {
        let Origin::Stores { sources, opener } = &self.origin else {
            return Err(Failure::new(Reason::ReadOnly, "this server has no store to write to"));
        };
        check_name(name)?;
        if let Some(own) = sources.iter().find(|source| source.name() == Some(name)) {
            return Ok(Graph::create(&opener(own.url())?).await?);
        }
        for folder in sources.iter().filter(|source| source.name().is_none()) {
            match Graph::newest(&opener(folder.url())?).await {
                // A graph, and not a folder of graphs.
                Ok(newest) if newest.schema != Schema::default() => {}
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => return Ok(Graph::create(&opener(&folder.below(name))?).await?),
            }
        }
        Err(Failure::invalid(
            "this server serves single graphs and no folder of graphs, in which another could be made",
        ))
    }

    /// A look in progress when a refresh begins may have started too early, so the refresh waits for it. A graph that
    /// is not open is opened.
    fn before_refresh(self: &Arc<Self>, key: &SlotKey) -> Result<RefreshState, Failure> {
        let mut slots = self.slots();
        if let Some(slot) = slots.open.get(key) {
            return Ok(slot.look.clone().map_or(RefreshState::Nothing, RefreshState::Look));
        }
        if let Some(opening) = slots.openings.get(key) {
            return Ok(RefreshState::Opening(opening.clone()));
        }
        // It may have been loaded since it was looked for.
        slots.absent.remove(key);
        Ok(RefreshState::Begun(self.opening(&mut slots, key.clone())?))
    }

    /// The opening of a graph that is not open: the one in progress, or a new one.
    fn opening(self: &Arc<Self>, slots: &mut Slots, key: SlotKey) -> Result<Opening, Failure> {
        if let Some(opening) = slots.openings.get(&key) {
            return Ok(opening.clone());
        }
        // Validated first, since the name becomes part of a URL.
        check_name(&key.0)?;
        if slots.is_absent(&key) {
            return Err(nothing_there(&key));
        }
        // Without a limit, a client with invented names would queue requests to the store without end.
        if slots.openings.len() >= OPENINGS_MAX + OPENINGS_WAITING_MAX {
            let message = format!("{} graphs are being opened; try again later", slots.openings.len());
            return Err(Failure::new(Reason::Busy, message));
        }
        let opening = self.clone().begin_opening(key.clone());
        slots.openings.insert(key, opening.clone());
        Ok(opening)
    }

    /// Opens in a task of its own. Only an existing graph takes a slot.
    fn begin_opening(self: Arc<Self>, key: SlotKey) -> Opening {
        let opening = tokio::spawn(async move {
            // In a task, so that the opening completes for all waiting requests, even if the request that started it is dropped.
            let turn = self.turns.acquire().await;
            // If this panics, the opening ends nevertheless, and the next request starts another.
            let catalog = self.clone();
            let wanted = key.clone();
            let opened = tokio::spawn(async move { catalog.open(&wanted).await }).await;
            let opened = opened.unwrap_or_else(|error| Err(Failure::broken_off(OPENING, &error)));
            drop(turn);
            // Locked to the end, so that no request can begin a second opening between the removal of this one and the
            // slot that replaces it.
            let mut slots = self.slots();
            slots.openings.remove(&key);
            match opened {
                Ok(graph) => self.keep(&mut slots, key, graph),
                Err(failure) => {
                    if failure.reason == Reason::NotFound {
                        slots.note_absent(key);
                    }
                    Err(failure)
                }
            }
        });
        opening.map(|joined| joined.unwrap_or_else(|error| Err(Failure::broken_off(OPENING, &error)))).boxed().shared()
    }

    /// Puts an opened graph into a slot.
    fn keep(&self, slots: &mut Slots, key: SlotKey, graph: Arc<OpenGraph>) -> Result<Arc<OpenGraph>, Failure> {
        // Fails only after the graph was read: the price of reserving no slot for unknown names.
        self.make_room(&mut slots.open)?;
        self.metrics.graph_opened();
        slots.absent.remove(&key);
        slots.open.insert(key, Slot::new(graph.clone()));
        Ok(graph)
    }

    async fn open(&self, (name, version): &SlotKey) -> Result<Arc<OpenGraph>, Failure> {
        let settings = OpenSettings { version: (*version > 0).then_some(*version), ..OpenSettings::default() };
        // In sequence, the most likely first: in parallel, each opening would pay for every location.
        for url in self.origin.urls(name) {
            let begun = Instant::now();
            let reader = self.origin.reader(name, &url, self.pool.clone()).await?;
            match Graph::open_through(reader, &settings).await {
                Ok(graph) => {
                    let (version, waves, time_ms) =
                        (graph.version(), graph.open_cost().waves, begun.elapsed().as_millis() as u64);
                    tracing::info!(graph = name, version, url = url, waves, time_ms, "graph opened");
                    return Ok(Arc::new(OpenGraph { name: name.clone(), graph }));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    tracing::debug!(graph = name, url = url, %error, "no graph there");
                }
                // Not the next URL: a graph may be at this one, and the answer must not depend on which store is reachable.
                Err(error) => return Err(error.into()),
            }
        }
        Err(nothing_there(&(name.clone(), *version)))
    }

    /// Closes the least recently used graph if the maximum number of graphs is open.
    fn make_room(&self, slots: &mut HashMap<SlotKey, Slot>) -> Result<(), Failure> {
        if slots.len() < self.open_max {
            return Ok(());
        }
        let unused = slots.iter().filter(|(_, slot)| !slot.is_in_use()).min_by_key(|(_, slot)| slot.used);
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
        // A request for a version by number must get that version, so only the newest is followed.
        let refresh = self.refresh.filter(|_| key.1 == 0)?;
        let age = slot.looked.elapsed();
        if age < refresh && !slot.removed {
            return None;
        }
        let look = self.begin_look(slot, key);
        (age >= 2 * refresh || slot.removed).then_some(look)
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
        let catalog = self.clone();
        let key = key.clone();
        let open = slot.graph.clone();
        let look = tokio::spawn(async move { catalog.look(&key, open, thorough).await });
        let look =
            look.map(|joined| joined.unwrap_or_else(|error| Err(Failure::broken_off(LOOK, &error)))).boxed().shared();
        slot.look = Some(look.clone());
        look
    }

    /// The outcome of a query, unless it met a missing or damaged object and its version was removed: a vacuum may
    /// remove what was the newest version when the query began. Then the next request looks for a newer one first.
    pub(crate) async fn unless_removed<T>(
        &self,
        name: &str,
        graph: &Graph,
        outcome: Result<T, Failure>,
    ) -> Result<T, Failure> {
        let corrupt = match outcome {
            Err(failure) if failure.reason == Reason::Corrupt => failure,
            outcome => return outcome,
        };
        // One request, and only after damage: undamaged answers pay nothing for this check.
        let is_there = graph.is_there().await;
        if let Some(slot) = self.slots().open.get_mut(&(name.to_owned(), 0)) {
            // Whatever the check found, the next look is thorough.
            slot.looks = LOOKS_PER_THOROUGH;
            // That an older version is gone says nothing about the newest one.
            slot.removed |= matches!(is_there, Ok(false)) && slot.graph.graph.version() == graph.version();
        }
        match is_there {
            Ok(true) => Err(corrupt),
            Ok(false) => {
                let message = format!("version {} of {name} was removed while it was read; ask again", graph.version());
                Err(Failure::new(Reason::Conflict, message))
            }
            // It is unknown which of the two it is.
            Err(error) => Err(error.into()),
        }
    }

    async fn look(self: Arc<Self>, key: &SlotKey, open: Arc<OpenGraph>, thorough: bool) -> Result<(), Failure> {
        // If this panics the look still ends, and the next one may begin.
        let catalog = self.clone();
        let wanted = key.clone();
        let found = tokio::spawn(async move { catalog.newer(&wanted, &open, thorough).await }).await;
        let found = found.unwrap_or_else(|error| Err(Failure::broken_off(LOOK, &error)));
        let mut slots = self.slots();
        if let Some(slot) = slots.open.get_mut(key) {
            slot.look = None;
            // Also after a failure: a store that fails is asked once per interval, and not by every request.
            slot.looked = Instant::now();
            if matches!(found, Ok(Some(_))) || (thorough && found.is_ok()) {
                slot.seen = slot.looked;
            }
        }
        match found {
            Ok(None) => Ok(()),
            Ok(Some(newer)) => {
                // A commit may have moved the slot further while this looked.
                let is_behind = |slot: &Slot| {
                    let open = &slot.graph.graph;
                    open.is_clone_of(&newer.graph) && open.version() >= newer.graph.version()
                };
                if let Some(slot) = slots.open.get_mut(key).filter(|slot| !is_behind(slot)) {
                    slot.graph = newer.clone();
                    slot.removed = false;
                }
                // The compactor has a lock of its own; none is taken while this one is held.
                drop(slots);
                self.compactor.iter().for_each(|compactor| compactor.consider(&key.0, &newer.graph));
                Ok(())
            }
            Err(failure) => {
                match failure.reason {
                    // Deleted: the next request opens it again and gets NOT_FOUND, or the graph that was loaded there since.
                    Reason::NotFound => self.close(&mut slots.open, key, "it is gone"),
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
            // It was removed, and perhaps loaded again: not a later version, but another graph.
            _ => {
                let opened = self.open(key).await?;
                // The slot stays and its graph changes, so the number of open graphs is the same.
                self.metrics.graph_opened();
                self.metrics.graph_closed();
                Ok(Some(opened))
            }
        }
    }

    /// Closes what was not used for too long.
    pub(crate) fn close_idle(&self) {
        let mut slots = self.slots();
        let idle = |slot: &Slot| !slot.is_in_use() && slot.used.elapsed() >= self.idle;
        let keys: Vec<_> = slots.open.iter().filter(|(_, slot)| idle(slot)).map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.close(&mut slots.open, key, "idle for too long"));
    }

    /// The name of the only graph, if one source of one graph is served; a URL alone may also be a folder of graphs.
    pub(crate) fn only_name(&self) -> Option<String> {
        let source = self.origin.only_source()?;
        source.name().or_else(|| source.last_part()).map(str::to_owned)
    }

    /// The names of graphs that are open or were named at the start, in order.
    pub(crate) fn names(&self) -> Vec<(String, bool)> {
        let slots = self.slots();
        let open = slots.open.keys().map(|(name, _)| (name.clone(), true));
        let named = self.origin.names().map(|name| (name.to_owned(), false));
        let mut names: Vec<_> = open.chain(named).collect();
        // Open ones first within a name, so that they stay.
        names.sort_by(|a, b| (&a.0, !a.1).cmp(&(&b.0, !b.1)));
        names.dedup_by(|later, first| later.0 == first.0);
        names
    }
}

/// The error that the graph does not exist. Only the log has the URLs that were searched.
fn nothing_there((name, version): &SlotKey) -> Failure {
    let version = if *version > 0 { format!(" with version {version}") } else { String::new() };
    Failure::new(Reason::NotFound, format!("there is no graph {name:?}{version}"))
}

#[cfg(test)]
mod tests {
    use hoplake::Store;

    use super::*;
    use crate::names::{Source, StoreOpener};

    /// A reader must not get an older version after a commit was acknowledged, so a slot that is being filled counts as behind.
    #[tokio::test]
    async fn an_opening_under_way_may_be_behind_a_commit() {
        let folder = "memory://catalog-advance";
        Graph::create(&Store::open(&format!("{folder}/g")).unwrap()).await.unwrap();
        let sources = vec![folder.parse::<Source>().unwrap()];
        let opener: StoreOpener = Arc::new(|url| Ok(Store::open(url)?));
        let pool = ReadPool::new(Settings::default().read).unwrap();
        let metrics = Arc::new(Metrics::new());
        let origin = Origin::Stores { sources, opener };
        let catalog = Arc::new(Catalog::new(&Settings::default(), origin, pool, None, metrics));
        let open = catalog.acquire("g", 0).await.unwrap();
        let key = ("g".to_owned(), 0);
        catalog.slots().open.clear();
        let opening = std::future::pending().boxed().shared();
        catalog.slots().openings.insert(key.clone(), opening);
        assert!(!catalog.advance(&open, 2));
        catalog.slots().openings.remove(&key);
        assert!(catalog.advance(&open, 2));
    }
}
