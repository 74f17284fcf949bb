//! Many blocks in one wave, from the nearest tier that has them, each checked.

use std::{any::Any, collections::BTreeMap, ops::Range, sync::Arc};

use crate::{
    AccessPattern, Background, Branch, Cost, Object, ObjectInfo, ObjectSource, QueryContext, ReadPool, StorageError,
    Store, Tier,
    read::{
        batch::{Batch, land_all},
        block::{BlockRequest, stored_form, verified_payload},
        fetch::Fetcher,
        in_flight::InFlightRequests,
        mapped::{Mapped, MappedFolder},
        plan::Planner,
        source::Wanted,
        unpublished::Unpublished,
    },
};
use bytes::Bytes;
use hoplake_format::FormatError;

/// Reads the objects of one graph. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reader {
    pub(crate) fetcher: Arc<Fetcher>,
    pub(crate) in_flight: InFlightRequests,
    /// If it reads mapped files.
    mapped: Option<Arc<MappedFolder>>,
}

impl Reader {
    /// A reader of a store through the caches of `pool`.
    pub fn new(store: Store, pool: Arc<ReadPool>) -> Self {
        // The reader meters its reads and listings itself.
        let source = Arc::new(store.unmetered());
        let mapped = if pool.settings.mapped { MappedFolder::of(&store).map(Arc::new) } else { None };
        Self { mapped, ..Self::from_source(store, source, pool) }
    }

    /// A reader of a store that is reached through something else.
    pub fn from_source(store: Store, source: Arc<dyn ObjectSource>, pool: Arc<ReadPool>) -> Self {
        let planner = Arc::new(Planner::new(store.shared_profile()));
        let fetcher = Arc::new(Fetcher { store, source, pool, planner });
        Self { fetcher, in_flight: InFlightRequests::default(), mapped: None }
    }

    /// The same reader, for a writer: its [`Self::store`] meters writes in this context.
    #[must_use]
    pub fn metered_by(&self, context: &QueryContext) -> Self {
        let Fetcher { store, source, pool, planner } = self.fetcher.as_ref();
        let source = source.clone();
        let pool = pool.clone();
        let planner = planner.clone();
        let fetcher = Fetcher { store: store.metered_by(context), source, pool, planner };
        Self { fetcher: Arc::new(fetcher), in_flight: self.in_flight.clone(), mapped: self.mapped.clone() }
    }

    /// The same reader, for which some objects exist that the store does not have.
    #[must_use]
    pub fn with_objects(&self, objects: BTreeMap<String, Bytes>) -> Self {
        let Fetcher { store, source, pool, planner } = self.fetcher.as_ref();
        let source = Arc::new(Unpublished { source: source.clone(), objects });
        let fetcher = Fetcher { store: store.clone(), source, pool: pool.clone(), planner: planner.clone() };
        Self { fetcher: Arc::new(fetcher), in_flight: self.in_flight.clone(), mapped: self.mapped.clone() }
    }

    /// The store it reads from.
    pub fn store(&self) -> &Store {
        &self.fetcher.store
    }

    /// The caches it reads through.
    pub fn pool(&self) -> &Arc<ReadPool> {
        &self.fetcher.pool
    }

    /// An object of its store.
    pub fn object(&self, name: &str) -> Object {
        self.pool().object(self.store().url(), name)
    }

    /// A complete object, decoded by `decode` and not cached; `None` if it does not exist. An answer that `decode`
    /// rejects is requested again.
    ///
    /// # Errors
    /// The store's, that a limit of the query was reached, or [`StorageError::Corrupt`] if no answer was accepted.
    pub async fn read_object<T>(
        &self,
        name: &str,
        branch: &mut Branch,
        decode: impl Fn(Bytes) -> Result<T, FormatError>,
    ) -> Result<Option<T>, StorageError> {
        let context = branch.context().clone();
        context.admit(1, 0, self.store().prices())?;
        context.in_time(self.fetcher.object(name, branch, decode)).await
    }

    /// All objects whose name begins with `folder/`. One wave.
    ///
    /// # Errors
    /// The store's.
    pub async fn list(&self, folder: &str, branch: &mut Branch) -> Result<Vec<ObjectInfo>, StorageError> {
        branch.reached(branch.wave().next());
        branch.context().meter().reached(branch.wave());
        branch.context().meter().requested(1);
        branch.context().in_time(self.fetcher.source.list(folder)).await
    }

    /// Reads all blocks asked, in one wave at most, and returns their payloads in the same order.
    ///
    /// # Errors
    /// The store's, [`StorageError::Corrupt`] if a block fails its check each time, or
    /// [`StorageError::Limit`].
    pub async fn read(&self, requests: &[BlockRequest<'_>], branch: &mut Branch) -> Result<Vec<Bytes>, StorageError> {
        let mut payloads = vec![Bytes::new(); requests.len()];
        let keep = |index, payload| {
            payloads[index] = payload;
            Ok::<_, StorageError>(())
        };
        self.read_each(requests, branch, keep).await?;
        Ok(payloads)
    }

    /// Reads all blocks asked, in one wave at most, and hands each payload over with its position
    /// among them as soon as it is here: first those in memory, then as they arrive. A repeated request makes the wave
    /// later.
    ///
    /// # Errors
    /// As [`Self::read`], or what `each` returns.
    pub async fn read_each<E: From<StorageError>>(
        &self,
        requests: &[BlockRequest<'_>],
        branch: &mut Branch,
        mut each: impl FnMut(usize, Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        // All tiers count their round trips from this wave: they are asked side by side, so that none of them waits for another.
        let begun = branch.clone();
        let batch = Batch::new(self, requests, &begun);
        let missing = batch.take_from_memory(&mut each).await?;
        if missing.is_empty() {
            return Ok(());
        }
        let (missing, wave) = batch.take_ahead(missing, &mut each)?;
        branch.reached(wave);
        if !missing.is_empty() {
            branch.reached(begun.context().in_time(batch.read_missing(missing, each)).await?);
        }
        Ok(())
    }

    /// Reads blocks that the query may ask for later, and keeps them for it (see
    /// [`QueryContext::keep_ahead`]). What is in a cache or on its way already is left alone.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_ahead(&self, requests: &[BlockRequest<'_>], branch: &Branch) -> Result<(), StorageError> {
        match branch.context().ahead() {
            Some(ahead) => Batch::new(self, requests, branch).read_ahead(ahead).await,
            None => Ok(()),
        }
    }

    /// Begins to read blocks into the caches in the background. Blocks in a cache or in flight are skipped. The read
    /// counts as [`Cost::background`] of the query that caused it: as planned now, and the difference when it ends. A
    /// query with a limit on requests, bytes or dollars should cause none ([`Self::full_read_bytes_max`]). `take` gets
    /// the payloads with their positions, for structures that no cache keeps.
    pub fn read_in_background(
        &self,
        requests: &[BlockRequest<'_>],
        context: &QueryContext,
        take: impl FnOnce(Vec<(u64, Bytes)>) + Send + 'static,
    ) {
        let own = Branch::new(&QueryContext::new());
        // A context of its own: the deadline and the limits of the query must not end a read that later queries use.
        let Ok((in_flight, planned)) = Batch::new(self, requests, &own).launch_absent(None) else { return };
        // The answers of nodes say what their requests cost in the store behind them.
        let planned = if self.fetcher.source.is_store() { planned } else { Background::default() };
        // Counted now, since the query may end, and report its cost, before the read does.
        context.meter().in_background(planned);
        let pool = self.pool().clone();
        let context = context.clone();
        // `ReadPool::settled` waits until all receivers are dropped, also that of a task that is aborted.
        let under_way = self.pool().under_way.subscribe();
        tokio::spawn(async move {
            // A failed block is requested again when a query needs it, which then gets the error.
            let _ = land_all(in_flight).await.map(take);
            let Cost { requests, store_bytes: bytes, .. } = own.context().cost();
            pool.background.in_background(Background { requests, bytes });
            let requests = requests.saturating_sub(planned.requests);
            let bytes = bytes.saturating_sub(planned.bytes);
            context.meter().in_background(Background { requests, bytes });
            drop(under_way);
        });
    }

    /// Whether its objects are mapped files: then every block is in memory, as far as a reader knows.
    pub fn is_mapped(&self) -> bool {
        self.mapped.is_some()
    }

    /// An object, if it is a mapped file.
    pub(crate) fn mapped(&self, object: &Object) -> Option<Arc<Mapped>> {
        self.mapped.as_ref()?.object(&object.name)
    }

    /// Says how an object will be read, if it is a mapped file.
    pub fn expect(&self, object: &Object, access: AccessPattern) {
        self.mapped(object).iter().for_each(|mapped| mapped.expect(access));
    }

    /// Says that a range of an object will be read soon. Of a mapped file it is then read ahead.
    pub fn will_need(&self, object: &Object, range: Range<u64>) {
        self.mapped(object).iter().for_each(|mapped| mapped.will_need(range.clone()));
    }

    /// Says that a range of an object will not be read again soon. A mapped file gives the page cache back what it took.
    pub fn will_not_need(&self, object: &Object, range: Range<u64>) {
        self.mapped(object).iter().for_each(|mapped| mapped.will_not_need(range.clone()));
    }

    /// Whether a block is in memory.
    pub fn is_in_memory(&self, block: &BlockRequest<'_>) -> bool {
        if self.mapped(block.object).is_some() {
            return true;
        }
        self.pool().memory.contains((block.object.number, block.range.start))
    }

    /// A block that is in memory.
    pub fn in_memory(&self, block: &BlockRequest<'_>, context: &QueryContext) -> Option<Bytes> {
        let mapped = self.mapped(block.object).and_then(|mapped| mapped.get(block));
        let payload = mapped.or_else(|| self.pool().memory.get((block.object.number, block.range.start)))?;
        context.meter().served(Tier::Memory, 1, payload.len() as u64);
        Some(payload)
    }

    /// Values that were decoded from a block and kept.
    pub fn decoded<T: Any + Send + Sync>(&self, block: &BlockRequest<'_>, context: &QueryContext) -> Option<Arc<T>> {
        let decoded = self.pool().decoded.get((block.object.number, block.range.start))?.downcast().ok()?;
        context.meter().served(Tier::Memory, 1, block.range.end - block.range.start);
        Some(decoded)
    }

    /// Whether there are such values.
    pub fn is_decoded(&self, block: &BlockRequest<'_>) -> bool {
        self.pool().decoded.contains((block.object.number, block.range.start))
    }

    /// Keeps values that were decoded from a block and take these bytes.
    pub fn keep_decoded<T: Any + Send + Sync>(&self, block: &BlockRequest<'_>, values: Arc<T>, bytes: u64) {
        self.pool().decoded.keep((block.object.number, block.range.start), values, bytes);
    }

    /// The payload of a stored block that was read without this reader, if it is intact.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] if it fails its check.
    pub fn open(&self, block: &BlockRequest<'_>, stored: &Bytes) -> Result<Bytes, StorageError> {
        let BlockRequest { object, range, check } = block;
        verified_payload(object, range.start, *check, stored).map_err(|source| StorageError::Corrupt {
            object: self.store().location(&object.name),
            start: range.start,
            end: range.end,
            source,
        })
    }

    /// Keeps a block in memory that was just written, or read in bulk without this reader.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] if it fails its check.
    pub fn keep(&self, block: &BlockRequest<'_>, stored: &Bytes) -> Result<(), StorageError> {
        // A copy: the slice would keep all of what was written in memory.
        let payload = Bytes::copy_from_slice(&self.open(block, stored)?);
        self.pool().memory.insert((block.object.number, block.range.start), payload);
        Ok(())
    }

    /// The maximum length of a segment or section for a full read after a query read a part of it: it must cost no more
    /// than a few requests, and take little of the cache. 0 if the query has a limit on requests, bytes or dollars:
    /// reads for later must not consume its limits.
    pub fn full_read_bytes_max(&self, context: &QueryContext) -> u64 {
        // Later queries may never need the rest, so that a query with a limit does not pay for it.
        if context.has_spending_limit() || self.is_mapped() {
            return 0;
        }
        let settings = &self.pool().settings;
        let prices = self.store().prices();
        // Bytes that cost as much as one request. On S3 Standard they are free, and the quotient is infinite.
        let a_request_in_bytes = prices.reads_usd(1, 0) / prices.reads_usd(0, 1);
        // Free bytes give infinity; if requests are free, too, 0 / 0 is not a number, and `min` ignores it.
        let by_price = if a_request_in_bytes.is_nan() { u64::MAX } else { (a_request_in_bytes * 8.0) as u64 };
        settings.full_read_bytes_max.min(settings.cache_bytes_max / 16).min(by_price)
    }

    /// Blocks of an object in their stored form, for a remote reader that checks them itself. They come from the caches, or are read
    /// and cached. `object` is one of this reader's.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_stored(
        &self,
        object: &Object,
        wanted: &[Wanted],
        context: &QueryContext,
    ) -> Result<Vec<Bytes>, StorageError> {
        let request = |block: &Wanted| BlockRequest { object, range: block.range.clone(), check: block.check };
        let requests: Vec<_> = wanted.iter().map(request).collect();
        let payloads = self.read(&requests, &mut Branch::new(context)).await?;
        Ok(payloads.into_iter().zip(&requests).map(|(payload, request)| stored_form(request, payload)).collect())
    }
}
