//! Many blocks in one wave, through the memory cache, each checked.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, stream};
use hoplake_format::{
    FormatError,
    checksum::{ObjectSeed, open_block},
    constants::CHECKSUM_BYTES,
};
use quick_cache::{Weighter, sync::Cache};

use crate::{Meter, StorageError, Store, Wave};

/// An immutable object, as a reader knows it.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its name below the prefix.
    pub name: Arc<str>,
    /// Tells its blocks apart from those of other objects in the cache; unique within a reader.
    pub number: u32,
    seed: ObjectSeed,
}

impl Object {
    /// The object called `name`, with a number no other object of the reader has.
    pub fn new(name: &str, number: u32) -> Self {
        Self { name: name.into(), number, seed: ObjectSeed::of(name) }
    }
}

/// How a block proves that it is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// It ends with its own checksum, which is taken off.
    Sealed,
    /// Its CRC-32C is known.
    Known(u32),
}

/// A block to read.
#[derive(Debug, Clone)]
pub struct BlockRequest<'a> {
    /// The object it is in.
    pub object: &'a Object,
    /// Its bytes, with checksum if sealed.
    pub range: Range<u64>,
    /// How it is checked.
    pub check: Check,
}

/// How a reader goes about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSettings {
    /// Budget of the memory cache, in bytes. Default 256 MiB.
    pub cache_bytes_max: u64,
    /// Ranges of one object with a gap up to this many bytes become one request. Default 64 KiB: at
    /// 55 MiB/s a stream, that is 1.1 ms against a first byte after 25 ms.
    pub coalesce_gap_bytes_max: u64,
    /// A joined request grows no longer than this, so that long runs travel in parallel. Default 4 MiB.
    pub request_bytes_max: u64,
    /// Requests in flight at once in one wave. Default 128.
    pub parallel_requests_max: usize,
}

impl Default for ReadSettings {
    fn default() -> Self {
        Self {
            cache_bytes_max: 256 << 20,
            coalesce_gap_bytes_max: 64 << 10,
            request_bytes_max: 4 << 20,
            parallel_requests_max: 128,
        }
    }
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<(u32, u64), Bytes> for ByBytes {
    fn weight(&self, _: &(u32, u64), block: &Bytes) -> u64 {
        // A block of no bytes still takes an entry.
        block.len() as u64 + 64
    }
}

/// Reads blocks of one graph. Shared by all its queries.
#[derive(Debug)]
pub struct Reader {
    store: Store,
    settings: ReadSettings,
    cache: Cache<(u32, u64), Bytes, ByBytes>,
}

/// A request to the store and the blocks it serves, by their position among the blocks asked.
struct Fetch<'a> {
    object: &'a Object,
    range: Range<u64>,
    blocks: Vec<usize>,
}

impl Reader {
    /// A reader with an empty cache.
    pub fn new(store: Store, settings: ReadSettings) -> Self {
        // The capacity in entries is only a hint for the cache's tables: blocks of about 16 KiB.
        let entries = (settings.cache_bytes_max >> 14).max(16) as usize;
        let cache = Cache::with_weighter(entries, settings.cache_bytes_max, ByBytes);
        Self { store, settings, cache }
    }

    /// The store it reads from.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// A block's payload, if it is in memory.
    pub fn cached(&self, object: &Object, position: u64) -> Option<Bytes> {
        self.cache.get(&(object.number, position))
    }

    /// Reads all blocks asked, in one wave at most, and returns their payloads in the same order and
    /// the wave in which the last came.
    ///
    /// # Errors
    /// The store's, or [`StorageError::Corrupt`] if a block fails its check twice.
    pub async fn read(
        &self,
        after: Wave,
        requests: &[BlockRequest<'_>],
        meter: &Meter,
    ) -> Result<(Vec<Bytes>, Wave), StorageError> {
        let mut payloads = vec![Bytes::new(); requests.len()];
        let keep = |index, payload| {
            payloads[index] = payload;
            Ok::<_, StorageError>(())
        };
        let wave = self.read_each(after, requests, meter, keep).await?;
        Ok((payloads, wave))
    }

    /// Reads all blocks asked, in one wave at most, and hands each payload over with its position
    /// among them as soon as it is here: first those in memory, then as they arrive. No more answers
    /// are held than requests are in flight. Returns the wave in which the last came.
    ///
    /// # Errors
    /// The store's, [`StorageError::Corrupt`] if a block fails its check twice, or what `each` returns.
    pub async fn read_each<E: From<StorageError>>(
        &self,
        after: Wave,
        requests: &[BlockRequest<'_>],
        meter: &Meter,
        mut each: impl FnMut(usize, Bytes) -> Result<(), E>,
    ) -> Result<Wave, E> {
        let mut missing = Vec::new();
        let (mut hits, mut bytes) = (0, 0);
        for (index, request) in requests.iter().enumerate() {
            match self.cached(request.object, request.range.start) {
                Some(payload) => {
                    (hits, bytes) = (hits + 1, bytes + payload.len() as u64);
                    each(index, payload)?;
                }
                None => missing.push(index),
            }
        }
        meter.cache_read(hits, bytes);
        if missing.is_empty() {
            return Ok(after);
        }
        let wave = after.next();
        let fetches: Vec<_> =
            self.plan(requests, missing).into_iter().map(|fetch| self.fetch(fetch, requests, wave, meter)).collect();
        let mut answers = stream::iter(fetches).buffer_unordered(self.settings.parallel_requests_max);
        while let Some(answer) = answers.next().await {
            for (index, payload) in answer? {
                each(index, payload)?;
            }
        }
        Ok(wave)
    }

    /// Joins what lies close together, and asks for what is asked twice once.
    fn plan<'a>(&self, requests: &[BlockRequest<'a>], mut missing: Vec<usize>) -> Vec<Fetch<'a>> {
        missing.sort_unstable_by_key(|index| (requests[*index].object.number, requests[*index].range.start));
        let mut fetches: Vec<Fetch<'a>> = Vec::new();
        for index in missing {
            let BlockRequest { object, range, .. } = &requests[index];
            if let Some(last) = fetches.last_mut().filter(|last| last.object.number == object.number) {
                let end = last.range.end.max(range.end);
                let near = range.start <= last.range.end.saturating_add(self.settings.coalesce_gap_bytes_max);
                let inside = range.end <= last.range.end;
                if inside || near && end - last.range.start <= self.settings.request_bytes_max {
                    last.range.end = end;
                    last.blocks.push(index);
                    continue;
                }
            }
            fetches.push(Fetch { object, range: range.clone(), blocks: vec![index] });
        }
        fetches
    }

    async fn fetch(
        &self,
        fetch: Fetch<'_>,
        requests: &[BlockRequest<'_>],
        wave: Wave,
        meter: &Meter,
    ) -> Result<Vec<(usize, Bytes)>, StorageError> {
        match self.fetch_once(&fetch, requests, wave, meter).await {
            // The store or the way to it may have damaged the answer; what is stored may be whole.
            Err(StorageError::Corrupt { .. } | StorageError::Length { .. }) => {
                self.fetch_once(&fetch, requests, wave.next(), meter).await
            }
            result => result,
        }
    }

    async fn fetch_once(
        &self,
        fetch: &Fetch<'_>,
        requests: &[BlockRequest<'_>],
        wave: Wave,
        meter: &Meter,
    ) -> Result<Vec<(usize, Bytes)>, StorageError> {
        let bytes = self.store.get_range(&fetch.object.name, fetch.range.clone()).await;
        meter.store_read(wave, 1, bytes.as_ref().map_or(0, |bytes| bytes.len() as u64));
        let bytes = bytes?;
        let mut payloads = Vec::with_capacity(fetch.blocks.len());
        for index in &fetch.blocks {
            let request = &requests[*index];
            let start = (request.range.start - fetch.range.start) as usize;
            let block = bytes.slice(start..start + (request.range.end - request.range.start) as usize);
            let payload = check(request, block).map_err(|source| StorageError::Corrupt {
                object: self.store.place(&request.object.name),
                start: request.range.start,
                end: request.range.end,
                source,
            })?;
            // A slice would keep the whole joined answer alive behind the cache's back.
            let payload = if fetch.blocks.len() > 1 { Bytes::copy_from_slice(&payload) } else { payload };
            self.cache.insert((request.object.number, request.range.start), payload.clone());
            payloads.push((*index, payload));
        }
        Ok(payloads)
    }
}

fn check(request: &BlockRequest<'_>, block: Bytes) -> Result<Bytes, FormatError> {
    match request.check {
        Check::Sealed => {
            open_block(request.object.seed, request.range.start, &block)?;
            Ok(block.slice(..block.len() - CHECKSUM_BYTES))
        }
        Check::Known(expected) => {
            let found = crc32c::crc32c(&block);
            if found != expected {
                let why = format!("fails its checksum (expected {expected:08x}, found {found:08x})");
                return Err(FormatError::corrupt("page", why));
            }
            Ok(block)
        }
    }
}

#[cfg(test)]
mod tests {
    use hoplake_format::checksum::seal_block;

    use super::*;

    async fn sample(name: &str) -> (Reader, Object, Vec<Range<u64>>) {
        let store = Store::open(&format!("memory://reader/{name}")).unwrap();
        let object = Object::new("data/a", 1);
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        for block in 0..10u8 {
            let start = bytes.len() as u64;
            seal_block(ObjectSeed::of("data/a"), start, &[block; 100], &mut bytes);
            ranges.push(start..bytes.len() as u64);
        }
        store.put("data/a", bytes.into()).await.unwrap();
        (Reader::new(store, ReadSettings { coalesce_gap_bytes_max: 104, ..Default::default() }), object, ranges)
    }

    fn request<'a>(object: &'a Object, range: &Range<u64>) -> BlockRequest<'a> {
        BlockRequest { object, range: range.clone(), check: Check::Sealed }
    }

    #[tokio::test]
    async fn near_blocks_are_joined_and_read_once() {
        let (reader, object, ranges) = sample("joined").await;
        let meter = Meter::new();
        // 1, 1 and 3 have a gap of one block; 9 is far.
        let asked: Vec<_> = [9, 1, 3, 1].map(|block: usize| request(&object, &ranges[block])).into();
        let (payloads, wave) = reader.read(Wave(4), &asked, &meter).await.unwrap();
        assert_eq!(payloads.iter().map(|payload| payload[0]).collect::<Vec<_>>(), [9, 1, 3, 1]);
        assert!(payloads.iter().all(|payload| payload.len() == 100));
        let cost = meter.cost();
        assert_eq!((wave, cost.waves, cost.requests, cost.store_bytes), (Wave(5), 5, 2, 4 * 104));
        let (_, wave) = reader.read(Wave(0), &asked[..3], &meter).await.unwrap();
        assert_eq!((wave, meter.cost().requests, meter.cost().cache_hits), (Wave(0), 2, 3));
    }

    #[tokio::test]
    async fn damage_is_named_after_a_second_try() {
        let (reader, object, ranges) = sample("damage").await;
        let mut bytes = reader.store.get("data/a").await.unwrap().unwrap().to_vec();
        bytes[250] ^= 1;
        reader.store.put("data/a", bytes.into()).await.unwrap();
        let meter = Meter::new();
        let error = reader.read(Wave(0), &[request(&object, &ranges[2])], &meter).await.unwrap_err();
        assert!(error.to_string().contains("data/a, bytes 208 to 312: block is damaged"), "{error}");
        assert_eq!(meter.cost().requests, 2);
    }
}
