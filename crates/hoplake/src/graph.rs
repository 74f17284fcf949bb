//! An open graph.

use std::sync::Arc;

use hoplake_engine::{
    OpenSettings, Snapshot,
    change::Committer,
    compaction, create, history,
    mirror::{self, Mirrored},
    property_index::{self, IndexBuilt, IndexSettings, IndexSize},
    vacuum,
    verify::{Verification, Verified, verify_graph, verify_version},
    versions,
};
use hoplake_format::{EdgeTypeId, Manifest, Schema};
use hoplake_storage::{Cost, MemoryBudget, PriceList, QueryContext, ReadPool, ReadSettings, Reader, Store};

use crate::{Compacted, CompactionSettings, Error, GraphInfo, Query, VacuumSettings, Vacuumed};

/// Space on a local disk for a cache of blocks, unless the user says otherwise.
pub const DISK_CACHE_BYTES: u64 = 8 << 30;

/// One version of a graph, open for reading. Cheap to clone; queries share its caches.
#[derive(Debug, Clone)]
pub struct Graph {
    snapshot: Arc<Snapshot>,
    committer: Arc<Committer>,
    /// Meters what it reads outside of queries.
    context: Option<QueryContext>,
}

impl Graph {
    /// Opens the newest version of the graph at a URL (`s3://bucket/prefix`, `gs://`, `az://`,
    /// `file://`, `memory://`) or in a local folder. Two round trips.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if the graph does not exist,
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if the store cannot be reached,
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if its index is damaged.
    pub async fn open(url: &str) -> Result<Self, Error> {
        Self::open_with(Store::open(url)?, &OpenSettings::default()).await
    }

    /// Opens a graph in a given store, or another version, or with other budgets. It has caches of its own.
    ///
    /// # Errors
    /// As [`Self::open`]; [`Invalid`](crate::ErrorKind::Invalid) if the settings cannot work.
    pub async fn open_with(store: Store, settings: &OpenSettings) -> Result<Self, Error> {
        let pool = ReadPool::new(settings.read.clone())?;
        Self::open_through(Reader::new(store, pool), settings).await
    }

    /// Makes a graph without labels at a store, for commits to fill, and returns whether it did: an empty graph that is there stays as it is.
    ///
    /// ```
    /// # async fn example() -> Result<(), hoplake::Error> {
    /// let store = hoplake::Store::open("memory://create")?;
    /// assert!(hoplake::Graph::create(&store).await?);
    /// let graph = hoplake::Graph::open("memory://create").await?;
    /// let mut commit = graph.begin();
    /// commit.upsert_vertex("Person", 7, [("name", "Ann")]);
    /// assert_eq!(commit.commit().await?.version, 2);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Conflict`](crate::ErrorKind::Conflict) if there is a graph with labels; [`Unknown`](crate::ErrorKind::Unknown) if it is unknown
    /// whether the version was published; the store's.
    pub async fn create(store: &Store) -> Result<bool, Error> {
        Ok(create::create(&reader(store)?, &mut store.context().branch()).await?)
    }

    /// Opens a graph through a reader, which may share its caches and bounds with other graphs; how the
    /// reader reads is set already.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_through(reader: Reader, settings: &OpenSettings) -> Result<Self, Error> {
        let snapshot = Arc::new(Snapshot::open(reader, settings).await?);
        let committer = Arc::new(Committer::new(snapshot.clone()));
        Ok(Self { snapshot, committer, context: None })
    }

    /// Moves on to the newest version, and returns whether a newer one existed. One round trip if there is none, and
    /// one or two for each newer version that this process did not commit itself. Queries that have begun stay where
    /// they are.
    ///
    /// # Errors
    /// As [`Self::open`]; then the graph stays at its version.
    pub async fn refresh(&mut self) -> Result<bool, Error> {
        let context = self.context();
        // The committer may know a later version from a commit of this process, of which nothing has to be read.
        let mut newest = self.committer.newest();
        if newest.manifest().version < self.version() {
            newest = self.snapshot.clone();
        }
        newest = newest.newest(&mut context.branch()).await?;
        let moved = newest.manifest().version > self.version();
        self.committer.move_on(&newest);
        self.snapshot = newest;
        Ok(moved)
    }

    /// Moves on to the newest version that this graph and its clones know, such as one that was committed through them, and returns
    /// whether it is a newer one. No request. A version is known before its commit is acknowledged.
    pub fn advance(&mut self) -> bool {
        let newest = self.committer.newest();
        let moves = newest.manifest().version > self.version();
        if moves {
            self.snapshot = newest;
        }
        moves
    }

    /// The same graph, which meters in `context` what it reads outside of queries, as [`Self::refresh`], [`Self::info`], [`Self::indexes`]
    /// and [`Self::check`] do.
    #[must_use]
    pub fn metered_by(&self, context: &QueryContext) -> Self {
        Self { context: Some(context.clone()), ..self.clone() }
    }

    /// The context of its meter, or a new one.
    pub(crate) fn context(&self) -> QueryContext {
        self.context.clone().unwrap_or_default()
    }

    /// Whether the other is a clone of this one: their commits share versions, and each knows what the other committed.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.committer, &other.committer)
    }

    /// Whether the open version can still be opened: a vacuum may have removed it, or another process the graph. One
    /// request.
    ///
    /// # Errors
    /// The store's.
    pub async fn is_there(&self) -> Result<bool, Error> {
        Ok(self.snapshot.is_there(&mut self.context().branch()).await?)
    }

    /// Waits for all background work of the graph: reads in the background through its caches, and
    /// the hints that commits of this process write for the next open. For a process that is about to end.
    pub async fn settled(&self) {
        self.committer.settled().await;
        self.snapshot.reader().pool().settled().await;
    }

    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    pub(crate) fn committer(&self) -> &Arc<Committer> {
        &self.committer
    }

    /// The position up to which a source was read, from the last commit that named the source.
    pub fn source_position(&self, source: &str) -> Option<&str> {
        self.manifest().source_positions.get(source).map(String::as_str)
    }

    /// The versions at a store that can be opened, oldest first.
    ///
    /// # Errors
    /// The store's; [`Corrupt`](crate::ErrorKind::Corrupt) if the newest one claims thousands that are not there.
    pub async fn versions(store: &Store) -> Result<Vec<u64>, Error> {
        let reader = reader(store)?;
        let Some(newest) = versions::newest(&reader, &mut store.context().branch()).await? else {
            return Ok(Vec::new());
        };
        let mut versions = versions::past(&reader, &newest).await?;
        versions.push(newest.version);
        Ok(versions)
    }

    /// The version that is open.
    pub fn version(&self) -> u64 {
        self.snapshot.manifest().version
    }

    /// Labels, edge types and properties.
    pub fn schema(&self) -> &Schema {
        self.snapshot.schema()
    }

    /// The description of the version.
    pub fn manifest(&self) -> &Manifest {
        self.snapshot.manifest()
    }

    /// The cost of opening it.
    pub fn open_cost(&self) -> Cost {
        self.snapshot.open_cost()
    }

    /// The store that it is read from. If it is read through something else, that has a name and nothing more.
    pub fn store(&self) -> &Store {
        self.snapshot.reader().store()
    }

    /// The prices of requests to its store.
    pub fn prices(&self) -> &PriceList {
        self.snapshot.reader().store().prices()
    }

    /// Begins a query.
    pub fn query(&self) -> Query {
        Query::new(self.snapshot.clone(), QueryContext::new())
    }

    /// Begins a query whose memory counts against a budget that it shares with others, such as all queries of a server.
    pub fn query_within(&self, budget: &MemoryBudget) -> Query {
        Query::new(self.snapshot.clone(), QueryContext::within(budget))
    }

    /// Counts, sizes and degrees.
    ///
    /// # Errors
    /// The store's, if the open did not read all indexes.
    pub async fn info(&self) -> Result<GraphInfo, Error> {
        GraphInfo::of(&self.snapshot, &mut self.context().branch()).await
    }

    /// Reads everything and checks it. `progress` gets the number of bytes read so far.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt), naming the first damaged object, section and block.
    pub async fn verify(&self, progress: impl Fn(u64)) -> Result<Verified, Error> {
        Ok(verify_version(&self.snapshot, progress).await?)
    }

    /// Whether the number of edges of a type is exact, in the manifest and in [`Self::info`]. After commits it is an upper bound, which
    /// also counts edges that later commits replaced or deleted, until a compaction merges all of them.
    pub fn is_edge_count_exact(&self, edge_type: EdgeTypeId) -> bool {
        self.snapshot.is_edge_count_exact(edge_type)
    }

    /// Reads everything of the graph at a store: the hint, the manifest of every version that can be opened, and each
    /// object once. Damage is listed, not an error. `progress` gets the number of bytes read so far.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if the graph does not exist, or the store's error.
    pub async fn verify_all(store: &Store, progress: impl Fn(u64)) -> Result<Verification, Error> {
        Ok(verify_graph(&reader(store)?, progress, &mut store.context().branch()).await?)
    }

    /// Names a version, which no vacuum removes from then on; without a version the name is removed. Returns the
    /// version that has the change, or `None` if nothing was to change.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if the version or name does not exist; the store's error.
    pub async fn tag(store: &Store, name: &str, version: Option<u64>) -> Result<Option<u64>, Error> {
        Ok(history::tag(&reader(store)?, name, version, &mut store.context().branch()).await?)
    }

    /// The description of the newest version, without opening it.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if the graph does not exist, or the store's error.
    pub async fn newest(store: &Store) -> Result<Manifest, Error> {
        let newest = versions::newest(&reader(store)?, &mut store.context().branch()).await?;
        newest.ok_or_else(|| Error::no_graph(store.url()))
    }

    /// The version that has a name.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if the graph does not exist, or none of its versions has this name; the store's error.
    pub async fn tagged(store: &Store, name: &str) -> Result<u64, Error> {
        let version = Self::newest(store).await?.tags.get(name).copied();
        let missing = || Error::new(crate::ErrorKind::NotFound, format!("{} has no tag {name}", store.url()));
        version.ok_or_else(|| missing().with_reason(crate::Reason::NoVersion))
    }

    /// Publishes the content of an older version as the newest version, and returns its number.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if the version does not exist; the store's error.
    pub async fn restore(store: &Store, version: u64, message: &str) -> Result<u64, Error> {
        Ok(history::restore(&reader(store)?, version, message, &mut store.context().branch()).await?)
    }

    /// Creates a graph at another location of the same bucket with the content of a version of this one (the newest
    /// without a number). Nothing is copied: it reads these objects, which a tag here keeps, and writes its own. Its
    /// first version has the number of the one it began as. Returns the tag.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if the version does not exist, [`Conflict`](crate::ErrorKind::Conflict)
    /// if there is something at `target`, [`Invalid`](crate::ErrorKind::Invalid) if that is in another bucket; the
    /// store's.
    pub async fn clone_to(store: &Store, version: Option<u64>, target: &Store) -> Result<String, Error> {
        let source = reader(store)?;
        let mut branch = store.context().branch();
        let newest = versions::newest(&source, &mut branch).await?;
        let missing = || Error::no_graph(store.url());
        let version = version.unwrap_or(newest.ok_or_else(missing)?.version);
        Ok(history::clone(&source, version, &reader(target)?, &mut branch).await?)
    }

    /// Builds an index of a property of vertices, given as `label.property`; the newest version has it then. Others may commit
    /// meanwhile.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if the property cannot have one; [`Conflict`](crate::ErrorKind::Conflict) if it has one,
    /// or the graph was replaced meanwhile; the store's.
    pub async fn create_index(store: &Store, name: &str, settings: &IndexSettings) -> Result<IndexBuilt, Error> {
        let built = Self::create_index_until(store, name, settings, std::future::pending()).await?;
        built.ok_or_else(|| Error::new(crate::ErrorKind::Internal, "the index stopped by itself"))
    }

    /// As [`Self::create_index`], but breaks off when `stop` is ready: then `None` is returned, and the graph is as if it had not
    /// begun.
    ///
    /// # Errors
    /// As [`Self::create_index`].
    pub async fn create_index_until(
        store: &Store,
        name: &str,
        settings: &IndexSettings,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<IndexBuilt>, Error> {
        Ok(property_index::create_index(store, name, settings, stop, &store.context()).await?)
    }

    /// Takes an index out of a graph, and returns the version without it; older versions keep it.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is none; the store's.
    pub async fn drop_index(store: &Store, name: &str) -> Result<u64, Error> {
        Ok(property_index::drop_index(store, name, &store.context()).await?)
    }

    /// The property indexes of the open version, with their sizes. No request, if its indexes are in memory.
    ///
    /// # Errors
    /// The store's.
    pub async fn indexes(&self) -> Result<Vec<IndexSize>, Error> {
        Ok(self.snapshot.property_indexes().sizes(&mut self.context().branch()).await?)
    }

    /// Merges the sorted runs that are due; no answer changes. The next compaction continues an interrupted one.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if the budget is too small, [`Conflict`](crate::ErrorKind::Conflict) if a
    /// vacuum took it for dead; the store's error. Versions published until then stay.
    pub async fn compact(store: &Store, settings: &CompactionSettings) -> Result<Compacted, Error> {
        Ok(compaction::compact(store, settings, &store.context()).await?)
    }

    /// As [`Self::compact`], but stops when `stop` is ready: what was published until then stays, and nothing of
    /// it is left announced.
    ///
    /// # Errors
    /// As [`Self::compact`].
    pub async fn compact_until(
        store: &Store,
        settings: &CompactionSettings,
        stop: impl Future<Output = ()>,
    ) -> Result<Compacted, Error> {
        Ok(compaction::compact_until(store, settings, stop, &store.context()).await?)
    }

    /// Whether [`Self::compact`] would merge something of the open version. No request, if its indexes are in memory.
    ///
    /// # Errors
    /// The store's.
    pub async fn compaction_is_due(&self, settings: &CompactionSettings) -> Result<bool, Error> {
        Ok(compaction::is_due(&self.snapshot, settings, &mut self.context().branch()).await?)
    }

    /// The sorted runs of each label and edge type of the open version, and whether [`Self::compact`] would merge some of them. No
    /// request, if its indexes are in memory.
    ///
    /// # Errors
    /// The store's.
    pub async fn runs(&self, settings: &CompactionSettings) -> Result<Vec<compaction::RunsOf>, Error> {
        Ok(compaction::runs(&self.snapshot, settings, &mut self.context().branch()).await?)
    }

    /// Makes another store, usually a folder of this machine, have the newest version of a graph: what is missing there is copied and
    /// checked, and then the version appears as a whole. A mirror that was interrupted goes on; a mirror is not to be written to.
    /// `progress` is called with the bytes copied so far and those to copy.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is no graph; [`Invalid`](crate::ErrorKind::Invalid) if the target has another graph or changes
    /// of its own; [`Corrupt`](crate::ErrorKind::Corrupt) if an object of the source is damaged; the stores'. The mirror then has the version
    /// that it had.
    pub async fn mirror(
        source: &Store,
        target: &Store,
        progress: impl Fn(u64, u64) + Send + Sync,
    ) -> Result<Mirrored, Error> {
        let context = source.context();
        let source = reader(&source.metered_by(&context))?;
        let target = reader(&target.metered_by(&context))?;
        Ok(mirror::mirror(&source, &target, &progress, &mut context.branch()).await?)
    }

    /// Lets versions go that are not to stay, and removes what no version names.
    ///
    /// # Errors
    /// The store's.
    pub async fn vacuum(store: &Store, settings: &VacuumSettings) -> Result<Vacuumed, Error> {
        let context = store.context();
        context.give_time(settings.timeout_ms);
        Ok(vacuum::vacuum(&reader(&store.metered_by(&context))?, settings, &mut context.branch()).await?)
    }
}

/// A reader with a minimal cache.
pub(crate) fn reader(store: &Store) -> Result<Reader, Error> {
    Ok(Reader::new(store.clone(), ReadPool::new(ReadSettings::default())?))
}
