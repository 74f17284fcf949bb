//! One read of many blocks, on its way through the tiers.
//!
//! Blocks in memory, or read ahead, are delivered at once. Blocks from the local disk, from requests in flight of other
//! readers, and from own requests then arrive concurrently, and each block is delivered on arrival.

use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::sync::Semaphore;

use crate::{
    Background, Branch, Object, QueryContext, ReadPool, Reader, StorageError, Tier, Wave,
    read::{
        ahead::Ahead,
        block::{BlockRequest, Check, verified_payload},
        cache::BlockKey,
        disk::DiskCache,
        fetch::Fetcher,
        in_flight::{Flown, InFlightRequest},
        mapped::Mapped,
        plan::Fetch,
        source::Wanted,
    },
    trace::Access,
};

/// A read of some blocks for a query.
pub(crate) struct Batch<'a> {
    reader: &'a Reader,
    requests: &'a [BlockRequest<'a>],
    /// The line of the query at the time this read began.
    branch: &'a Branch,
    /// Its number among the query's reads, for traces.
    number: u32,
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
    joined: Vec<(InFlightRequest, usize)>,
    new: Vec<(InFlightRequest, Vec<usize>)>,
    /// The planned cost of the new requests.
    planned: Background,
}

/// The mapped files of a sequence of blocks, most of which follow one of the same object.
struct MappedObjects<'a> {
    reader: &'a Reader,
    last: Option<(u32, Option<Arc<Mapped>>)>,
}

impl MappedObjects<'_> {
    fn of(&mut self, object: &Object) -> Option<&Mapped> {
        if self.last.as_ref().is_none_or(|(number, _)| *number != object.number) {
            self.last = Some((object.number, self.reader.mapped(object)));
        }
        self.last.as_ref().and_then(|(_, mapped)| mapped.as_deref())
    }
}

type Arriving<'a> = FuturesUnordered<BoxFuture<'a, Result<Arrived, StorageError>>>;

fn key(request: &BlockRequest<'_>) -> BlockKey {
    BlockKey { object: request.object.number, position: request.range.start }
}

impl<'a> Batch<'a> {
    pub(crate) fn new(reader: &'a Reader, requests: &'a [BlockRequest<'a>], branch: &'a Branch) -> Self {
        // Without a trace, no read contends for the counter.
        let number = if reader.pool().trace.is_on() { branch.context().next_batch() } else { 0 };
        Self { reader, requests, branch, number }
    }

    fn context(&self) -> &'a QueryContext {
        self.branch.context()
    }

    fn pool(&self) -> &'a ReadPool {
        self.reader.pool()
    }

    /// Notes that a tier served some blocks.
    fn served(&self, tier: Tier, blocks: u64, bytes: u64) {
        self.context().meter().served(tier, blocks, bytes);
    }

    /// Records an access, if accesses are recorded.
    fn record(&self, index: usize, payload: &Bytes, served: Tier) {
        let trace = &self.pool().trace;
        let BlockRequest { object, range, check } = &self.requests[index];
        // Requests past the caches say nothing about caches, so the trace omits them.
        if trace.is_on() && *check != Check::Later {
            let query = self.context().number();
            let bytes = payload.len() as u64;
            trace.record(&Access {
                query,
                wave: self.number,
                object: &object.name,
                position: range.start,
                bytes,
                served,
            });
        }
    }

    /// The mapped files of its blocks. What they will need of these is read ahead, all at the same time.
    fn mapped(&self) -> MappedObjects<'a> {
        let mut mapped = MappedObjects { reader: self.reader, last: None };
        // Also of one block, which has several pages.
        if self.reader.is_mapped() {
            for BlockRequest { object, range, .. } in self.requests {
                mapped.of(object).iter().for_each(|mapped| mapped.will_need(range.clone()));
            }
        }
        mapped
    }

    /// Delivers the blocks that are in memory; returns the others.
    pub(crate) async fn take_from_memory<E: From<StorageError>>(
        &self,
        each: &mut impl FnMut(usize, Bytes) -> Result<(), E>,
    ) -> Result<Vec<usize>, E> {
        let mut missing = Vec::new();
        let mut blocks = 0;
        let mut bytes = 0;
        let mut pace = self.context().pace();
        let mut mapped = self.mapped();
        for (index, request) in self.requests.iter().enumerate() {
            let found = mapped.of(request.object).and_then(|mapped| mapped.get(request));
            match found.or_else(|| self.pool().memory.get(key(request))) {
                Some(payload) => {
                    let length = payload.len() as u64;
                    blocks += 1;
                    bytes += length;
                    self.record(index, &payload, Tier::Memory);
                    each(index, payload)?;
                    // A wave that memory answers never waits for I/O. Without this, it would neither yield nor see its deadline.
                    pace.rest(length).await?;
                }
                None => missing.push(index),
            }
        }
        self.served(Tier::Memory, blocks, bytes);
        Ok(missing)
    }

    /// Delivers blocks that were read ahead for the query; returns the others, and the wave. Reading ahead took a
    /// round trip of its own, whenever that was.
    pub(crate) fn take_ahead<E>(
        &self,
        missing: Vec<usize>,
        each: &mut impl FnMut(usize, Bytes) -> Result<(), E>,
    ) -> Result<(Vec<usize>, Wave), E> {
        // Only queries with a prefetcher have this tier.
        let Some(ahead) = self.context().ahead() else { return Ok((missing, self.branch.wave())) };
        let mut absent = Vec::new();
        let mut wave = self.branch.wave();
        for index in missing {
            let key = key(&self.requests[index]);
            let Some(payload) = ahead.take(key) else {
                absent.push(index);
                continue;
            };
            // The block came with one request, which this query would have waited for.
            wave = self.branch.wave().next();
            self.context().meter().reached(wave);
            self.served(Tier::Prefetch, 1, payload.len() as u64);
            self.record(index, &payload, Tier::Prefetch);
            self.pool().memory.insert(key, payload.clone());
            each(index, payload)?;
        }
        Ok((absent, wave))
    }

    /// Delivers the remaining blocks as they arrive; returns the wave of the last one.
    pub(crate) async fn read_missing<E: From<StorageError>>(
        &self,
        missing: Vec<usize>,
        mut each: impl FnMut(usize, Bytes) -> Result<(), E>,
    ) -> Result<Wave, E> {
        let mut arriving = FuturesUnordered::new();
        // The disk answers in tens of microseconds, so its reads are under way before requests are planned.
        let missing = self.start_from_disk(missing, &mut arriving);
        self.start_requests(missing, &mut arriving)?;
        let mut wave = self.branch.wave();
        let mut pace = self.context().pace();
        while let Some(arrived) = arriving.next().await {
            let Arrived { here, rounds, lost } = arrived?;
            wave = wave.max(self.branch.wave().later(rounds));
            for (index, payload) in here {
                let bytes = payload.len() as u64;
                each(index, payload)?;
                pace.rest(bytes).await?;
            }
            // The disk cache is a hint: what it lost or damaged is read from the store, in the same wave.
            if !lost.is_empty() {
                self.start_requests(lost, &mut arriving)?;
            }
        }
        Ok(wave)
    }

    /// Starts to read the blocks that the disk cache has; returns the others.
    fn start_from_disk<'b>(&'b self, missing: Vec<usize>, arriving: &mut Arriving<'b>) -> Vec<usize> {
        let Some(disk) = &self.pool().disk else { return missing };
        let mut found = Vec::new();
        let mut absent = Vec::new();
        for index in missing {
            let BlockRequest { object, range, .. } = &self.requests[index];
            match disk.find(object.identity, range) {
                Some(location) => found.push((index, location)),
                None => absent.push(index),
            }
        }
        if !found.is_empty() {
            let (indices, locations): (Vec<_>, Vec<_>) = found.into_iter().unzip();
            let blocks = disk.read(locations);
            arriving.push(async move { Ok(self.check_from_disk(indices, blocks.await)) }.boxed());
        }
        absent
    }

    /// Blocks that are damaged or missing on disk are read from the store.
    fn check_from_disk(&self, indices: Vec<usize>, blocks: Vec<Option<Bytes>>) -> Arrived {
        let mut arrived = Arrived::default();
        for (index, block) in indices.into_iter().zip(blocks) {
            let request = &self.requests[index];
            let verified = |block| verified_payload(request.object, request.range.start, request.check, &block).ok();
            let Some(payload) = block.and_then(verified) else {
                arrived.lost.push(index);
                continue;
            };
            self.served(Tier::Disk, 1, payload.len() as u64);
            self.record(index, &payload, Tier::Disk);
            self.pool().memory.insert(key(request), payload.clone());
            arrived.here.push((index, payload));
        }
        arrived
    }

    /// Joins requests in flight, and sends new ones for the rest.
    fn start_requests<'b>(&'b self, missing: Vec<usize>, arriving: &mut Arriving<'b>) -> Result<(), StorageError> {
        let Launched { joined, new, planned } = self.launch(missing, None)?;
        // More requests than may be in flight go in rounds. The query waits for each, although none depends on another.
        self.context().meter().went_in_rounds(self.branch.wave().next(), self.rounds(planned));
        arriving.extend(new.into_iter().map(|(request, indices)| self.landed(request, indices, Tier::Store).boxed()));
        arriving
            .extend(joined.into_iter().map(|(request, index)| self.landed(request, vec![index], Tier::Shared).boxed()));
        Ok(())
    }

    /// Waits for a request and picks some blocks from its answer.
    async fn landed(
        &self,
        request: InFlightRequest,
        indices: Vec<usize>,
        served: Tier,
    ) -> Result<Arrived, StorageError> {
        let (blocks, rounds) = request.await?;
        let mut arrived = Arrived { rounds, ..Arrived::default() };
        self.context().meter().reached(self.branch.wave().later(rounds));
        for index in indices {
            let key = key(&self.requests[index]);
            // A request brings blocks of one object in the order of their positions.
            let at = blocks.binary_search_by_key(&key.position, |(position, _)| *position);
            let payload = blocks[at.expect("a request brings what it was sent for")].1.clone();
            self.served(served, 1, payload.len() as u64);
            self.record(index, &payload, served);
            if served == Tier::Shared && !self.pool().memory.contains(key) {
                // It was read ahead, for another query alone.
                self.pool().memory.insert(key, payload.clone());
            }
            arrived.here.push((index, payload));
        }
        Ok(arrived)
    }

    /// The number of rounds for requests that begin together: the number and the bytes of requests in flight are
    /// bounded.
    fn rounds(&self, planned: Background) -> u64 {
        let settings = &self.pool().settings;
        let by_requests = planned.requests.div_ceil(settings.parallel_requests_max as u64);
        // At most a round for each request: one that is longer than the limit on bytes still goes in one.
        by_requests.max(planned.bytes.div_ceil(settings.in_flight_bytes_max.max(1)).min(planned.requests))
    }

    /// Reads blocks that no nearer tier has, and keeps them for the query.
    pub(crate) async fn read_ahead(&self, ahead: &Arc<Ahead>) -> Result<(), StorageError> {
        land_all(self.launch_absent(Some(ahead))?.0).await.map(drop)
    }

    /// Requests for blocks that no nearer tier has, to be kept for the query or in the caches, and their planned cost.
    /// They are sent when they are polled.
    pub(crate) fn launch_absent(
        &self,
        ahead: Option<&Arc<Ahead>>,
    ) -> Result<(Vec<InFlightRequest>, Background), StorageError> {
        // `contains` and not `get`: a guess is not a use, and must not keep a block in memory.
        let near = |request: &BlockRequest<'_>| {
            let on_disk = |disk: &DiskCache| disk.contains(request.object.identity, &request.range);
            self.reader.is_in_memory(request)
                || ahead.is_some_and(|ahead| ahead.contains(key(request)))
                || self.pool().disk.as_ref().is_some_and(on_disk)
        };
        let missing = (0..self.requests.len()).filter(|index| !near(&self.requests[*index])).collect();
        let Launched { new, planned, .. } = self.launch(missing, ahead)?;
        Ok((new.into_iter().map(|(request, _)| request).collect(), planned))
    }

    /// Plans requests for blocks that no request in flight brings, and registers them in the same step. Returns which
    /// request brings which block: those of others, and new ones.
    fn launch(&self, missing: Vec<usize>, ahead: Option<&Arc<Ahead>>) -> Result<Launched, StorageError> {
        let mut joined = Vec::new();
        let mut new = Vec::new();
        let mut absent = Vec::new();
        let settings = &self.pool().settings;
        // One lock from the look to the registration: two readers would otherwise both find nothing and both send a request.
        let mut in_flight = self.reader.in_flight.lock();
        for index in missing {
            match in_flight.bringing(key(&self.requests[index])) {
                Some(request) => joined.push((request, index)),
                None => absent.push(index),
            }
        }
        let fetches = self.reader.fetcher.planner.plan(self.requests, absent, settings);
        let bytes = fetches.iter().map(|fetch| fetch.range.end - fetch.range.start).sum();
        let planned = Background { requests: fetches.len() as u64, bytes };
        // All of the wave or nothing: a part of it would be paid for, and the query would fail all the same.
        let admitted = self.context().admit(planned.requests, bytes, self.reader.store().prices());
        if admitted.is_ok() {
            // Lanes belong to this read: queries do not wait for each other's requests here, but at the pool's bounds.
            let lanes = Arc::new(Semaphore::new(settings.parallel_requests_max));
            for fetch in fetches {
                let (keys, request) = self.request(&fetch, ahead, &lanes);
                new.push((in_flight.launch(&keys, request), fetch.blocks));
            }
        }
        // Dropping the last handle of a request takes the lock again.
        drop(in_flight);
        admitted.map(|()| Launched { joined, new, planned })
    }

    /// The request for the blocks of a fetch, and what they are called.
    fn request(
        &self,
        fetch: &Fetch<'_>,
        ahead: Option<&Arc<Ahead>>,
        lanes: &Arc<Semaphore>,
    ) -> (Vec<BlockKey>, BoxFuture<'static, Flown>) {
        let wanted = fetch.blocks.iter().map(|index| &self.requests[*index]);
        let mut wanted: Vec<_> =
            wanted.map(|request| Wanted { range: request.range.clone(), check: request.check }).collect();
        // A block that was asked for twice is in the fetch twice, next to itself.
        wanted.dedup();
        let number = fetch.object.number;
        let key = move |position| BlockKey { object: number, position };
        let keys: Vec<_> = wanted.iter().map(|block| key(block.range.start)).collect();
        let landing = self.reader.in_flight.landing(keys.clone());
        let fetcher = self.reader.fetcher.clone();
        let object = fetch.object.clone();
        let branch = self.branch.clone();
        let ahead = ahead.cloned();
        let lanes = lanes.clone();
        let request = async move {
            // Dropped when the request ends, however it ends: then later readers look in the caches, or ask again.
            let _landing = landing;
            let _lane = lanes.acquire().await.expect("the semaphore is never closed");
            if ahead.is_some() {
                branch.context().meter().read_ahead();
            }
            let landed = fetcher.blocks(&object, &wanted, &branch).await?;
            // Blocks enter the cache before the landing drops: a reader that comes after the request's end finds them there.
            let mut payloads = Vec::with_capacity(wanted.len());
            for (block, (stored, payload)) in wanted.iter().zip(landed.blocks) {
                match &ahead {
                    // A guess of one query must not evict what other queries have used.
                    Some(ahead) => ahead.insert(key(block.range.start), payload.clone()),
                    None => fetcher.keep(key(block.range.start), object.identity, block.check, stored, &payload),
                }
                payloads.push((block.range.start, payload));
            }
            Ok((payloads.into(), landed.rounds))
        };
        (keys, request.boxed())
    }
}

/// Sends requests and waits until all are answered, or one has failed. Returns the payloads with their positions.
pub(crate) async fn land_all(in_flight: Vec<InFlightRequest>) -> Result<Vec<(u64, Bytes)>, StorageError> {
    let mut in_flight = in_flight.into_iter().collect::<FuturesUnordered<_>>();
    let mut payloads = Vec::new();
    while let Some(landed) = in_flight.next().await {
        payloads.extend(landed?.0.iter().cloned());
    }
    Ok(payloads)
}

impl Fetcher {
    /// Puts a block into the caches.
    fn keep(&self, key: BlockKey, object: u64, check: Check, stored: Bytes, payload: &Bytes) {
        // Such blocks were not checked yet, and a cache must not serve damage.
        if check == Check::Later {
            return;
        }
        self.pool.memory.insert(key, payload.clone());
        if let Some(disk) = &self.pool.disk {
            disk.offer(object, key.position, stored);
        }
    }
}
