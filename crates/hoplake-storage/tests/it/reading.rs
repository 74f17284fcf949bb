//! Waves, single flight, hedges, repetitions, deadlines and limits.

use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use hoplake_storage::{
    BlockRequest, Check, HedgeSettings, ObjectSource, QueryContext, ReadLimits, ReadPool, ReadSettings, Reader,
    RetrySettings, StorageError, Store, Tier, Wanted, Wave,
    trace::{Recording, Trace},
};
use hoplake_testkit::{Alteration, AlteredStore};
use object_store::{
    GetOptions, GetResult, GetResultPayload, ObjectStore, ObjectStoreExt, memory::InMemory, path::Path,
};
use tokio::time::{Instant, timeout};

use crate::scripted::{Act, NAME, Scripted, range, request};

fn calm() -> ReadSettings {
    ReadSettings { hedge: HedgeSettings { share_max: 0.0, ..Default::default() }, ..Default::default() }
}

async fn read(reader: &Reader, blocks: &[u64], context: &QueryContext) -> Result<Vec<u8>, StorageError> {
    let object = reader.object(NAME);
    read_of(reader, &object, blocks, context).await
}

async fn read_of(
    reader: &Reader,
    object: &hoplake_storage::Object,
    blocks: &[u64],
    context: &QueryContext,
) -> Result<Vec<u8>, StorageError> {
    let requests: Vec<_> = blocks.iter().map(|block| request(object, *block)).collect();
    let payloads = reader.read(&requests, &mut context.branch()).await?;
    assert!(payloads.iter().all(|payload| payload.len() == 100));
    Ok(payloads.iter().map(|payload| payload[0]).collect())
}

#[tokio::test(start_paused = true)]
async fn near_blocks_are_joined_and_read_once() {
    let source = Scripted::new(&[]);
    let reader = source.reader(calm());
    let object = reader.object(NAME);
    let context = QueryContext::new();
    let requests: Vec<_> = [9, 1, 3, 1].map(|block| request(&object, block)).into();
    let mut branch = context.branch();
    branch.reached(Wave(4));
    let payloads = reader.read(&requests, &mut branch).await.unwrap();
    assert_eq!(payloads.iter().map(|payload| payload[0]).collect::<Vec<_>>(), [9, 1, 3, 1]);
    let cost = context.cost();
    assert_eq!((branch.wave(), cost.waves, cost.requests, cost.store_bytes), (Wave(5), 5, 1, 3 * 104));
    assert_eq!(source.asked.lock().unwrap()[0], (vec![range(1), range(3), range(9)], 0));
    let mut branch = context.branch();
    reader.read(&requests[..3], &mut branch).await.unwrap();
    assert_eq!((branch.wave(), context.cost().requests, context.cost().memory.blocks), (Wave(0), 1, 3));
}

#[tokio::test(start_paused = true)]
async fn what_is_in_flight_is_not_asked_again() {
    let source = Scripted::new(&[]);
    let reader = source.reader(calm());
    let object = reader.object(NAME);
    let contexts: Vec<_> = (0..10).map(|_| QueryContext::new()).collect();
    // Each asks for block 5 and for one of its own.
    let reads = contexts.iter().enumerate().map(|(index, context)| {
        let own = if index < 5 { index as u64 } else { index as u64 + 1 };
        let reader = &reader;
        let object = &object;
        async move { assert_eq!(read_of(reader, object, &[5, own], context).await.unwrap(), [5, own as u8]) }
    });
    futures::future::join_all(reads).await;
    let asked: Vec<_> = source.asked.lock().unwrap().iter().flat_map(|(ranges, _)| ranges.clone()).collect();
    assert_eq!(asked.iter().filter(|asked| **asked == range(5)).count(), 1);
    assert_eq!(asked.len(), 11);
    let shared: u64 = contexts.iter().map(|context| context.cost().shared.blocks).sum();
    assert_eq!(shared, 9);
    assert!(contexts.iter().all(|context| context.cost().waves == 1));
}

#[tokio::test(start_paused = true)]
async fn who_joined_a_request_keeps_it_alive_and_the_last_to_leave_drops_it() {
    let source = Scripted::new(&[Act::Takes(100), Act::Hangs]);
    let reader = source.reader(calm());
    let object = reader.object(NAME);
    let first = QueryContext::new();
    let second = QueryContext::new();
    let impatient = timeout(Duration::from_millis(50), read_of(&reader, &object, &[1], &first));
    let (gone, stays) = tokio::join!(impatient, read_of(&reader, &object, &[1], &second));
    assert!(gone.is_err());
    assert_eq!((stays.unwrap(), source.requests()), (vec![1], 1));
    let both = async {
        let one = timeout(Duration::from_millis(50), read_of(&reader, &object, &[2], &first));
        let two = timeout(Duration::from_millis(60), read_of(&reader, &object, &[2], &second));
        tokio::join!(one, two)
    };
    let (one, two) = both.await;
    assert!(one.is_err() && two.is_err());
    assert_eq!((source.requests(), source.in_flight.load(SeqCst)), (2, 0));
    // Nothing of it is left in the way of the next.
    assert_eq!(read_of(&reader, &object, &[2], &first).await.unwrap(), [2]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_request_is_sent_a_second_time() {
    let source = Scripted::new(&[Act::Takes(15), Act::Takes(900), Act::Takes(30)]);
    let reader = source.reader(ReadSettings::default());
    // The first answer already shows what is slow.
    read(&reader, &[1], &QueryContext::new()).await.unwrap();
    let context = QueryContext::new();
    let begun = Instant::now();
    assert_eq!(read(&reader, &[3], &context).await.unwrap(), [3]);
    let took = begun.elapsed().as_millis();
    let cost = context.cost();
    assert!((85..110).contains(&took), "{took} ms");
    assert_eq!((cost.requests, cost.hedges, cost.retries, cost.waves), (2, 1, 0, 1));
    assert_eq!(source.in_flight.load(SeqCst), 0);
    // Another node is asked, if there are several.
    assert_eq!(source.asked.lock().unwrap()[1..].iter().map(|(_, attempt)| *attempt).collect::<Vec<_>>(), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn hedges_end_when_their_budget_does() {
    let hedge = HedgeSettings { burst_max: 2.0, ..Default::default() };
    let script: Vec<_> = [Act::Takes(20); 100].into_iter().chain([Act::Takes(900); 100]).collect();
    let source = Scripted::new(&script);
    let reader = source.reader(ReadSettings { hedge, cache_bytes_max: 0, ..Default::default() });
    for request in 0..100 {
        read(&reader, &[request % 16], &QueryContext::new()).await.unwrap();
    }
    let context = QueryContext::new();
    for block in 0..10 {
        read(&reader, &[block], &context).await.unwrap();
    }
    assert_eq!((context.cost().hedges, context.cost().requests), (2, 12));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_steadily_slow_is_not_asked_twice_by_a_new_process() {
    for takes in [100, 400] {
        let source = Scripted::new(&[Act::Takes(takes); 500]);
        let reader = source.reader(ReadSettings { request_bytes_max: 0, cache_bytes_max: 0, ..Default::default() });
        let context = QueryContext::new();
        // An opening of one, then of five requests; then ten queries of some hops.
        read(&reader, &[1], &context).await.unwrap();
        for wave in 0..40 {
            let blocks: Vec<_> = (0..5).map(|block| (wave + 3 * block) % 16).collect();
            read(&reader, &blocks, &context).await.unwrap();
            assert_eq!(context.cost().hedges, 0, "{takes} ms, wave {wave}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_repeated_with_pauses() {
    let source = Scripted::new(&[Act::Busy, Act::Damaged, Act::Busy]);
    let reader = source.reader(calm());
    let context = QueryContext::new();
    let begun = Instant::now();
    assert_eq!(read(&reader, &[3], &context).await.unwrap(), [3]);
    let cost = context.cost();
    assert_eq!((cost.requests, cost.retries, cost.waves), (4, 3, 4));
    assert!(begun.elapsed() > Duration::from_millis(20), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn repetition_ends() {
    let retry = RetrySettings { query_retries_max: 6, ..Default::default() };
    let cases =
        [(Act::Busy, 5, "as scripted"), (Act::Forbidden, 1, "denies access"), (Act::Damaged, 5, "bytes 312 to 416")];
    for (act, requests, says) in cases {
        let source = Scripted::new(&[act; 100]);
        let reader = source.reader(ReadSettings { retry, ..calm() });
        let context = QueryContext::new();
        let error = read(&reader, &[3], &context).await.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert_eq!((context.cost().requests, context.cost().retries), (requests, requests - 1), "{act:?}");
    }
    // The query's own budget: 4 for the first read, 2 are left for the second.
    let source = Scripted::new(&[Act::Busy; 100]);
    let reader = source.reader(ReadSettings { retry, ..calm() });
    let context = QueryContext::new();
    for requests in [5, 8] {
        read(&reader, &[3], &context).await.unwrap_err();
        assert_eq!(context.cost().requests, requests);
    }
    assert_eq!(context.cost().retries, 6, "what was refused is no retry");
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_ends() {
    let source = Scripted::new(&[Act::Hangs, Act::Hangs]);
    let reader = source.reader(calm());
    let context = QueryContext::new();
    let begun = Instant::now();
    assert_eq!(read(&reader, &[3], &context).await.unwrap(), [3]);
    assert!(begun.elapsed() > Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(context.cost().requests, 3);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_reaches_every_request() {
    let source = Scripted::new(&[Act::Hangs; 100]);
    let reader = source.reader(ReadSettings { request_bytes_max: 0, ..calm() });
    let context = QueryContext::new();
    let begun = Instant::now();
    let deadline = Some((begun + Duration::from_millis(700), 700));
    context.limit(ReadLimits { deadline, ..Default::default() });
    let error = read(&reader, &[1, 2, 3, 4], &context).await.unwrap_err();
    assert!(matches!(&error, StorageError::Limit { cost, .. } if cost.requests == 4), "{error:?}");
    assert!(error.to_string().contains("700 ms"), "{error}");
    assert_eq!((begun.elapsed().as_millis(), source.in_flight.load(SeqCst)), (700, 0));
}

#[tokio::test(start_paused = true)]
async fn a_limit_stops_requests_before_they_are_sent() {
    let cases = [
        (ReadLimits { requests_max: Some(3), ..Default::default() }, "3 requests"),
        (ReadLimits { bytes_max: Some(3 * 104), ..Default::default() }, "312 bytes"),
        (ReadLimits { usd_max: Some(0.000_001_3), ..Default::default() }, "0.0000013 US dollars"),
    ];
    for (limits, says) in cases {
        let source = Scripted::new(&[]);
        let reader = source.reader(ReadSettings { request_bytes_max: 0, ..calm() });
        let context = QueryContext::new();
        context.limit(limits);
        assert_eq!(read(&reader, &[1, 2], &context).await.unwrap(), [1, 2]);
        let error = read(&reader, &[5, 6], &context).await.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert_eq!(source.requests(), 2);
        assert_eq!(read(&reader, &[7], &context).await.unwrap(), [7]);
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_and_requests_in_flight_are_bounded() {
    for (settings, at_once) in [
        (ReadSettings { parallel_requests_max: 3, ..calm() }, 3),
        (ReadSettings { in_flight_bytes_max: 2 << 10, ..calm() }, 2),
    ] {
        let source = Scripted::new(&[]);
        let reader = source.reader(ReadSettings { request_bytes_max: 0, ..settings });
        let context = QueryContext::new();
        let begun = Instant::now();
        let blocks: Vec<u64> = (0..12).collect();
        read(&reader, &blocks, &context).await.unwrap();
        assert_eq!(begun.elapsed().as_millis(), 20 * 12 / at_once);
    }
}

#[tokio::test(start_paused = true)]
async fn blocks_are_served_as_they_are_stored() {
    let source = Scripted::new(&[]);
    let node = source.reader(calm());
    let elsewhere = QueryContext::new();
    let object = node.object(NAME);
    let wanted: Vec<_> = [2, 7].map(|block| Wanted { range: range(block), check: Check::Sealed }).into();
    let first = node.read_stored(&object, &wanted, &elsewhere).await.unwrap();
    let direct = source.fetch(NAME, &wanted, 0).await.unwrap();
    assert_eq!(first, direct.blocks);
    // The second time from memory, and the same.
    assert_eq!(node.read_stored(&object, &wanted, &elsewhere).await.unwrap(), first);
    assert_eq!(source.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_trace_says_where_each_block_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    let source = Scripted::new(&[]);
    let pool = ReadPool::traced(calm(), Trace::create(&path).unwrap()).unwrap();
    let reader = Reader::from_source(source.reader(calm()).store().clone(), source.clone(), pool);
    let object = reader.object(NAME);
    let first = QueryContext::new();
    let second = QueryContext::new();
    let both = tokio::join!(read_of(&reader, &object, &[1, 2], &first), read_of(&reader, &object, &[2], &second));
    both.0.unwrap();
    both.1.unwrap();
    read_of(&reader, &object, &[1], &first).await.unwrap();
    first.keep_ahead(1 << 20);
    reader.read_ahead(&[request(&object, 9)], &first.branch()).await.unwrap();
    read_of(&reader, &object, &[9], &first).await.unwrap();
    drop(reader);
    let recording = Recording::read(&path).unwrap();
    let number = |context: &QueryContext| context.number();
    let found: Vec<_> = recording
        .accesses
        .iter()
        .map(|access| (access.query, access.wave, access.position / 104, access.served))
        .collect();
    let one = number(&first);
    let two = number(&second);
    assert_eq!(
        found,
        [
            (one, 0, 1, Tier::Store),
            (one, 0, 2, Tier::Store),
            (two, 0, 2, Tier::Shared),
            (one, 1, 1, Tier::Memory),
            (one, 3, 9, Tier::Prefetch)
        ]
    );
    assert!(recording.accesses.iter().all(|access| access.bytes == 100));
}

/// The buffer of a connection: the bytes of an answer are a part of it.
struct Buffer {
    bytes: Vec<u8>,
    alive: Arc<()>,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        // A buffer that lives as long as this counter.
        let _ = &self.alive;
        &self.bytes
    }
}

/// A store whose answers are slices of long buffers.
#[derive(Debug)]
struct Buffered {
    inner: InMemory,
    alive: Arc<()>,
}

#[async_trait]
impl Alteration for Buffered {
    fn below(&self) -> &dyn ObjectStore {
        &self.inner
    }

    async fn get(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        let found = self.inner.get_opts(path, options).await?;
        let meta = found.meta.clone();
        let range = found.range.clone();
        let attributes = found.attributes.clone();
        let mut bytes = found.bytes().await?.to_vec();
        let length = bytes.len();
        bytes.resize(64 << 10, 0);
        let answer = Bytes::from_owner(Buffer { bytes, alive: self.alive.clone() }).slice(..length);
        let payload = GetResultPayload::Stream(stream::once(async { Ok(answer) }).boxed());
        Ok(GetResult { payload, meta, range, attributes, extensions: Default::default() })
    }
}

#[tokio::test]
async fn a_block_that_is_kept_keeps_no_buffer_of_a_connection() {
    let alive = Arc::new(());
    let inner = InMemory::new();
    inner.put(&Path::from(format!("g/{NAME}")), vec![7; 1_000].into()).await.unwrap();
    let store = AlteredStore(Buffered { inner, alive: alive.clone() });
    let pool = ReadPool::new(calm()).unwrap();
    let reader = Reader::new(Store::new(Arc::new(store), "g".into(), "s3://bucket/g"), pool.clone());
    let object = reader.object(NAME);
    let check = Check::Known(crc32c::crc32c(&[7; 100]));
    let block = BlockRequest { object: &object, range: 100..200, check };
    let payloads = reader.read(&[block], &mut QueryContext::new().branch()).await.unwrap();
    assert_eq!(payloads[0].len(), 100);
    drop(payloads);
    // The test's own, and the store's.
    assert_eq!(Arc::strong_count(&alive), 2, "the buffer is there as long as the block is in the cache");
}
