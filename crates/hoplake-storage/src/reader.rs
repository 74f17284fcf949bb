//! Many blocks in one wave, from the nearest tier that has them, each checked.
//!
//! A wave goes through the tiers together: what is in memory is handed over at once; what is on the local
//! disk, what other readers have asked for already, and what must be fetched then come side by side, and
//! each block is handed over when it is here.

use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::{sync::Semaphore, time::timeout_at};

use crate::{
    DiskCache, Object, ObjectInfo, ObjectSource, QueryContext, ReadPool, StorageError, Store, Wave,
    ahead::Ahead,
    block::{BlockRequest, Check, close, open},
    fetch::Fetcher,
    flight::{BlockKey, Flight, Flights, Flown},
    meter::Tier,
    plan::{Fetch, Planner},
    source::Wanted,
};

/// Reads the objects of one graph. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reader {
    fetcher: Arc<Fetcher>,
    flights: Flights,
}

/// Blocks that arrived, by their position among those asked, and in how many rounds; and those that
/// the disk had lost.
#[derive(Default)]
struct Arrived {
    here: Vec<(usize, Bytes)>,
    rounds: u32,
    lost: Vec<usize>,
}

/// Requests that bring what is missing, with the positions of the blocks among those asked.
struct Launched {
    joined: Vec<(Flight, usize)>,
    new: Vec<(Flight, Vec<usize>)>,
}

type Arriving<'a> = BoxFuture<'a, Result<Arrived, StorageError>>;

fn key(request: &BlockRequest<'_>) -> BlockKey {
    (request.object.number, request.range.start)
}

impl Reader {
    /// A reader of a store through the caches of `pool`.
    pub fn new(store: Store, pool: Arc<ReadPool>) -> Self {
        let source = Arc::new(store.clone());
        Self::from_source(store, source, pool)
    }

    /// A reader of a store that is reached through something else.
    pub fn from_source(store: Store, source: Arc<dyn ObjectSource>, pool: Arc<ReadPool>) -> Self {
        let planner = Planner::new(store.shared_profile());
        Self { fetcher: Arc::new(Fetcher { store, source, pool, planner }), flights: Flights::default() }
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

    /// A block's payload, if it is in memory.
    pub fn cached(&self, object: &Object, position: u64) -> Option<Bytes> {
        self.pool().memory.get((object.number, position))
    }

    /// A whole object, not cached; `None` if it is not there. Also the wave in which it came.
    ///
    /// # Errors
    /// The store's, or that a limit of the query was reached.
    pub async fn read_object(
        &self,
        name: &str,
        after: Wave,
        context: &QueryContext,
    ) -> Result<(Option<Bytes>, Wave), StorageError> {
        context.admit(1, 0, self.store().prices())?;
        in_time(context, self.fetcher.object(name, after, context)).await
    }

    /// All objects whose name begins with `folder/`, and the wave in which they came.
    ///
    /// # Errors
    /// The store's.
    pub async fn list(
        &self,
        folder: &str,
        after: Wave,
        context: &QueryContext,
    ) -> Result<(Vec<ObjectInfo>, Wave), StorageError> {
        context.meter().reached(after.next());
        context.meter().requested(1);
        Ok((in_time(context, self.fetcher.source.list(folder)).await?, after.next()))
    }

    /// Blocks of an object as they are stored, for a reader elsewhere that checks them itself: from the
    /// caches, or read and kept there. `object` is one of this reader's.
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
        let (payloads, _) = self.read(Wave(0), &requests, context).await?;
        Ok(payloads.into_iter().zip(&requests).map(|(payload, request)| close(request, payload)).collect())
    }

    /// Reads all blocks asked, in one wave at most, and returns their payloads in the same order and
    /// the wave in which the last came.
    ///
    /// # Errors
    /// The store's, [`StorageError::Corrupt`] if a block fails its check each time, or
    /// [`StorageError::Limit`].
    pub async fn read(
        &self,
        after: Wave,
        requests: &[BlockRequest<'_>],
        context: &QueryContext,
    ) -> Result<(Vec<Bytes>, Wave), StorageError> {
        let mut payloads = vec![Bytes::new(); requests.len()];
        let keep = |index, payload| {
            payloads[index] = payload;
            Ok::<_, StorageError>(())
        };
        let wave = self.read_each(after, requests, context, keep).await?;
        Ok((payloads, wave))
    }

    /// Reads all blocks asked, in one wave at most, and hands each payload over with its position
    /// among them as soon as it is here: first those in memory, then as they arrive. Returns the wave in
    /// which the last came; a repeated request makes it later.
    ///
    /// # Errors
    /// As [`Self::read`], or what `each` returns.
    pub async fn read_each<E: From<StorageError>>(
        &self,
        after: Wave,
        requests: &[BlockRequest<'_>],
        context: &QueryContext,
        mut each: impl FnMut(usize, Bytes) -> Result<(), E>,
    ) -> Result<Wave, E> {
        let mut missing = Vec::new();
        let (mut hits, mut bytes) = (0, 0);
        for (index, request) in requests.iter().enumerate() {
            match self.pool().memory.get(key(request)) {
                Some(payload) => {
                    (hits, bytes) = (hits + 1, bytes + payload.len() as u64);
                    each(index, payload)?;
                }
                None => missing.push(index),
            }
        }
        context.meter().served(Tier::Memory, hits, bytes);
        if missing.is_empty() {
            return Ok(after);
        }
        let mut wave = after;
        if let Some(ahead) = context.ahead() {
            let before = missing.len();
            missing = self.take_ahead(ahead, requests, missing, context, &mut each)?;
            // They came in a round trip of their own, whenever that was.
            wave = if missing.len() < before { after.next() } else { after };
            context.meter().reached(wave);
        }
        Ok(wave.max(in_time(context, self.read_missing(after, requests, missing, context, each)).await?))
    }

    /// Hands over what was read ahead for the query; returns what was not.
    fn take_ahead<E>(
        &self,
        ahead: &Ahead,
        requests: &[BlockRequest<'_>],
        missing: Vec<usize>,
        context: &QueryContext,
        each: &mut impl FnMut(usize, Bytes) -> Result<(), E>,
    ) -> Result<Vec<usize>, E> {
        let mut absent = Vec::new();
        for index in missing {
            let Some(payload) = ahead.take(key(&requests[index])) else {
                absent.push(index);
                continue;
            };
            context.meter().served(Tier::Prefetched, 1, payload.len() as u64);
            self.pool().memory.insert(key(&requests[index]), payload.clone());
            each(index, payload)?;
        }
        Ok(absent)
    }

    /// Reads blocks that the query may ask for later, and keeps them for it (see
    /// [`QueryContext::keep_ahead`]). What is in a cache or on its way already is left alone.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_ahead(
        &self,
        after: Wave,
        requests: &[BlockRequest<'_>],
        context: &QueryContext,
    ) -> Result<(), StorageError> {
        let Some(ahead) = context.ahead() else { return Ok(()) };
        let near = |request: &BlockRequest<'_>| {
            let on_disk = |disk: &DiskCache| disk.find(request.object.identity, &request.range).is_some();
            self.pool().memory.get(key(request)).is_some()
                || ahead.contains(key(request))
                || self.pool().disk.as_ref().is_some_and(on_disk)
        };
        let missing = (0..requests.len()).filter(|index| !near(&requests[*index])).collect();
        let launched = self.launch(after, requests, missing, context, Some(ahead))?;
        let mut flights: FuturesUnordered<_> = launched.new.into_iter().map(|(flight, _)| flight).collect();
        while let Some(landed) = flights.next().await {
            landed?;
        }
        Ok(())
    }

    async fn read_missing<E: From<StorageError>>(
        &self,
        after: Wave,
        requests: &[BlockRequest<'_>],
        missing: Vec<usize>,
        context: &QueryContext,
        mut each: impl FnMut(usize, Bytes) -> Result<(), E>,
    ) -> Result<Wave, E> {
        let mut arriving = FuturesUnordered::new();
        let missing = self.start_from_disk(requests, missing, context, &mut arriving);
        self.start_flights(after, requests, missing, context, &mut arriving)?;
        let mut wave = after;
        while let Some(arrived) = arriving.next().await {
            let Arrived { here, rounds, lost } = arrived?;
            wave = wave.max(after.later(rounds));
            for (index, payload) in here {
                each(index, payload)?;
            }
            if !lost.is_empty() {
                self.start_flights(after, requests, lost, context, &mut arriving)?;
            }
        }
        Ok(wave)
    }

    /// Starts to read what the disk cache has; returns what it does not have.
    fn start_from_disk<'a>(
        &'a self,
        requests: &'a [BlockRequest<'a>],
        missing: Vec<usize>,
        context: &'a QueryContext,
        arriving: &mut FuturesUnordered<Arriving<'a>>,
    ) -> Vec<usize> {
        let Some(disk) = &self.pool().disk else { return missing };
        let (mut found, mut absent) = (Vec::new(), Vec::new());
        for index in missing {
            let BlockRequest { object, range, .. } = &requests[index];
            match disk.find(object.identity, range) {
                Some(place) => found.push((index, place)),
                None => absent.push(index),
            }
        }
        if !found.is_empty() {
            let (indices, places): (Vec<_>, Vec<_>) = found.into_iter().unzip();
            let blocks = disk.read(places);
            arriving.push(async move { Ok(self.check_from_disk(requests, &indices, blocks.await, context)) }.boxed());
        }
        absent
    }

    /// What is damaged or gone on the disk is read from the store.
    fn check_from_disk(
        &self,
        requests: &[BlockRequest<'_>],
        indices: &[usize],
        blocks: Vec<Option<Bytes>>,
        context: &QueryContext,
    ) -> Arrived {
        let (mut arrived, mut bytes) = (Arrived::default(), 0);
        for (index, block) in indices.iter().zip(blocks) {
            let request = &requests[*index];
            let payload = block.and_then(|block| open(request.object, request.range.start, request.check, &block).ok());
            match payload {
                Some(payload) => {
                    bytes += payload.len() as u64;
                    self.pool().memory.insert(key(request), payload.clone());
                    arrived.here.push((*index, payload));
                }
                None => arrived.lost.push(*index),
            }
        }
        context.meter().served(Tier::Disk, arrived.here.len() as u64, bytes);
        arrived
    }

    /// Joins requests in flight, and sends new ones for the rest.
    fn start_flights<'a>(
        &'a self,
        after: Wave,
        requests: &'a [BlockRequest<'a>],
        missing: Vec<usize>,
        context: &'a QueryContext,
        arriving: &mut FuturesUnordered<Arriving<'a>>,
    ) -> Result<(), StorageError> {
        let Launched { joined, new } = self.launch(after, requests, missing, context, None)?;
        arriving.extend(new.into_iter().map(|(flight, blocks)| self.landed(requests, flight, blocks).boxed()));
        arriving.extend(joined.into_iter().map(|(flight, index)| {
            let landed = self.landed(requests, flight, vec![index]);
            async move {
                let arrived = landed.await?;
                context.meter().reached(after.later(arrived.rounds));
                let bytes = arrived.here.iter().map(|(_, payload)| payload.len() as u64).sum();
                context.meter().served(Tier::Shared, arrived.here.len() as u64, bytes);
                for (index, payload) in &arrived.here {
                    // It may have been meant for another query alone.
                    self.pool().memory.insert(key(&requests[*index]), payload.clone());
                }
                Ok(arrived)
            }
            .boxed()
        }));
        Ok(())
    }

    /// Plans requests for what is on its way for nobody, and registers them in the same step. Returns who
    /// brings what: the requests of others, and new ones.
    fn launch(
        &self,
        after: Wave,
        requests: &[BlockRequest<'_>],
        missing: Vec<usize>,
        context: &QueryContext,
        ahead: Option<&Arc<Ahead>>,
    ) -> Result<Launched, StorageError> {
        let (mut joined, mut launched, mut absent) = (Vec::new(), Vec::new(), Vec::new());
        let settings = &self.pool().settings;
        let mut flights = self.flights.lock();
        for index in missing {
            match flights.bringing(key(&requests[index])) {
                Some(flight) => joined.push((flight, index)),
                None => absent.push(index),
            }
        }
        let fetches = self.fetcher.planner.plan(requests, absent, settings);
        let bytes = fetches.iter().map(|fetch| fetch.range.end - fetch.range.start).sum();
        let admitted = context.admit(fetches.len() as u64, bytes, self.store().prices());
        if admitted.is_ok() {
            let lanes = Arc::new(Semaphore::new(settings.parallel_requests_max));
            for fetch in fetches {
                let (keys, request) = self.request(requests, &fetch, after, context, ahead, &lanes);
                launched.push((flights.launch(&keys, request), fetch.blocks));
            }
        }
        // Whoever drops the last handle of a request takes the lock again.
        drop(flights);
        admitted.map(|()| Launched { joined, new: launched })
    }

    /// The request for the blocks of a fetch, and what they are called.
    fn request(
        &self,
        requests: &[BlockRequest<'_>],
        fetch: &Fetch<'_>,
        after: Wave,
        context: &QueryContext,
        ahead: Option<&Arc<Ahead>>,
        lanes: &Arc<Semaphore>,
    ) -> (Vec<BlockKey>, BoxFuture<'static, Flown>) {
        let wanted = fetch.blocks.iter().map(|index| &requests[*index]);
        let mut wanted: Vec<_> =
            wanted.map(|request| Wanted { range: request.range.clone(), check: request.check }).collect();
        wanted.dedup();
        let keys: Vec<_> = wanted.iter().map(|block| (fetch.object.number, block.range.start)).collect();
        let landing = self.flights.landing(keys.clone());
        let (fetcher, object) = (self.fetcher.clone(), fetch.object.clone());
        let (context, ahead, lanes) = (context.clone(), ahead.cloned(), lanes.clone());
        let request = async move {
            let _landing = landing;
            let _lane = lanes.acquire().await.expect("the semaphore is never closed");
            if ahead.is_some() {
                context.meter().read_ahead();
            }
            let landed = fetcher.blocks(&object, &wanted, after, &context).await?;
            let mut payloads = Vec::with_capacity(wanted.len());
            for (block, (stored, payload)) in wanted.iter().zip(landed.blocks) {
                match &ahead {
                    Some(ahead) => ahead.insert((object.number, block.range.start), payload.clone()),
                    None => fetcher.keep(&object, block, stored, &payload),
                }
                payloads.push((block.range.start, payload));
            }
            Ok((payloads.into(), landed.rounds))
        };
        (keys, request.boxed())
    }

    /// Waits for a request and picks some blocks from what it brings.
    async fn landed(
        &self,
        requests: &[BlockRequest<'_>],
        flight: Flight,
        indices: Vec<usize>,
    ) -> Result<Arrived, StorageError> {
        let (blocks, rounds) = flight.await?;
        let pick = |index: usize| {
            let position = requests[index].range.start;
            let at = blocks.binary_search_by_key(&position, |(position, _)| *position);
            (index, blocks[at.expect("a flight brings what it was launched for")].1.clone())
        };
        Ok(Arrived { here: indices.into_iter().map(pick).collect(), rounds, lost: Vec::new() })
    }
}

impl Fetcher {
    /// Puts a block into the caches.
    fn keep(&self, object: &Object, block: &Wanted, stored: Bytes, payload: &Bytes) {
        if block.check == Check::Later {
            return;
        }
        self.pool.memory.insert((object.number, block.range.start), payload.clone());
        if let Some(disk) = &self.pool.disk {
            disk.offer(object.identity, block.range.start, stored);
        }
    }
}

/// Ends a read, and with it every request that waits for an answer, at the query's deadline.
async fn in_time<T, E: From<StorageError>>(
    context: &QueryContext,
    read: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match context.deadline() {
        Some(deadline) => timeout_at(deadline, read).await.unwrap_or_else(|_| Err(context.too_late().into())),
        None => read.await,
    }
}
