use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::{ObjectStoreExt, PutMode};

use super::*;

async fn store_of(objects: usize) -> WaveStore {
    let inner = Arc::new(InMemory::new());
    for object in 0..objects {
        inner.put(&Path::from(format!("dir/{object:05}")), vec![7; 100].into()).await.unwrap();
    }
    WaveStore::new(inner)
}

fn path(object: usize) -> Path {
    Path::from(format!("dir/{object:05}"))
}

fn spin(duration: Duration) {
    let begin = std::time::Instant::now();
    while begin.elapsed() < duration {
        std::hint::spin_loop();
    }
}

#[tokio::test(start_paused = true)]
async fn parallel_requests_share_a_wave_and_dependent_ones_add_up() {
    let store = store_of(40).await;
    let clock = Instant::now();
    futures::future::try_join_all((0..40).map(|object| {
        let store = store.clone();
        async move { store.get_range(&path(object), 10..20).await }
    }))
    .await
    .unwrap();
    assert_eq!((store.waves(), store.requests().get, store.bytes_read()), (1, 40, 400));
    for object in 0..3 {
        store.get(&path(object)).await.unwrap().bytes().await.unwrap();
    }
    assert_eq!((store.waves(), store.requests().total(), store.bytes_read()), (4, 43, 700));
    assert_eq!(clock.elapsed(), Duration::from_secs(4), "virtual time is the number of waves");
}

#[tokio::test(start_paused = true)]
async fn the_log_names_each_request() {
    let store = store_of(1).await;
    store.get_range(&path(0), 90..200).await.unwrap();
    store.head(&path(0)).await.unwrap();
    store.get(&path(9)).await.unwrap_err();
    store.put(&path(2), vec![1, 2, 3].into()).await.unwrap();
    let request = |kind, object: usize, range, bytes, tick| Request {
        kind,
        path: path(object).to_string(),
        range,
        bytes,
        start_tick: tick,
        end_tick: Some(tick + 1),
    };
    let expected = [
        request(RequestKind::Get, 0, Some(90..100), 10, 0),
        request(RequestKind::Head, 0, None, 0, 1),
        request(RequestKind::Get, 9, None, 0, 2),
        request(RequestKind::Put, 2, None, 3, 3),
    ];
    assert_eq!(store.log(), expected);
    assert_eq!((store.bytes_read(), store.bytes_written()), (10, 3));
    assert_eq!(store.requests(), RequestCounts { get: 2, head: 1, put: 1, ..Default::default() });
    store.reset();
    assert_eq!((store.waves(), store.requests().total(), store.log().len()), (0, 0, 0));
    store.head(&path(0)).await.unwrap();
    assert_eq!(store.log()[0].start_tick, 0);
}

#[tokio::test(start_paused = true)]
async fn processor_work_between_requests_is_no_wave() {
    let store = store_of(2).await;
    for object in 0..2 {
        store.get(&path(object)).await.unwrap();
        spin(Duration::from_millis(30));
        let work = tokio::task::spawn_blocking(|| spin(Duration::from_millis(30)));
        work.await.unwrap();
    }
    assert_eq!(store.waves(), 2);
    assert_eq!(store.log()[1].start_tick, 1);
}

#[tokio::test(start_paused = true)]
async fn timers_neither_add_waves_nor_split_them() {
    let store = store_of(2).await;
    let asked_after = async |delay_ms, object| {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        store.head(&path(object)).await
    };
    let (first, second) = futures::join!(asked_after(0, 0), asked_after(50, 1));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(store.waves(), 1, "a hedge runs beside what it hedges");
    let dependent = async |delay_ms| {
        for _ in 0..30 {
            asked_after(delay_ms, 0).await.unwrap();
        }
    };
    futures::join!(dependent(0), dependent(70));
    assert_eq!(store.waves(), 31, "a backoff is no wave");
    tokio::time::sleep(Duration::from_secs(100)).await;
    store.head(&path(0)).await.unwrap();
    assert_eq!(store.waves(), 32, "idle seconds are no waves");
}

#[tokio::test]
async fn a_clock_paused_late_and_off_the_millisecond_counts_the_same() {
    spin(Duration::from_micros(1_300));
    tokio::time::pause();
    let store = store_of(1).await;
    for _ in 0..20 {
        store.head(&path(0)).await.unwrap();
    }
    assert_eq!(store.waves(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_was_still_sent() {
    let store = store_of(1).await;
    let late = tokio::time::timeout(Duration::from_millis(500), store.get(&path(0)).boxed()).await;
    assert!(late.is_err());
    assert_eq!((store.waves(), store.requests().get, store.bytes_read()), (1, 1, 0));
    assert_eq!(store.log()[0].end_tick, None);
}

#[tokio::test(start_paused = true)]
async fn a_listing_costs_one_wave_a_page() {
    let store = store_of(2_001).await;
    let listed: Vec<_> = store.list(Some(&Path::from("dir"))).try_collect().await.unwrap();
    assert_eq!((listed.len(), store.requests().list, store.waves()), (2_001, 3, 3));
    store.reset();
    let listed: Vec<_> = store.list_with_offset(None, &path(1_000)).try_collect().await.unwrap();
    assert_eq!((listed.len(), store.requests().list, store.waves()), (1_000, 1, 1));
    store.reset();
    let listed: Vec<_> = store.list(Some(&Path::from("none"))).try_collect().await.unwrap();
    assert_eq!((listed.len(), store.requests().list, store.waves()), (0, 1, 1));
    store.reset();
    let listed = store.list_with_delimiter(Some(&Path::from("dir"))).await.unwrap();
    assert_eq!((listed.objects.len(), store.requests().list, store.waves()), (2_001, 3, 3));
}

#[tokio::test(start_paused = true)]
async fn deletions_share_a_wave() {
    let store = store_of(30).await;
    let doomed = futures::stream::iter((0..30).map(|object| Ok(path(object)))).boxed();
    let deleted: Vec<_> = store.delete_stream(doomed).try_collect().await.unwrap();
    assert_eq!((deleted.len(), store.requests().delete, store.waves()), (30, 30, 1));
    assert!(store.head(&path(3)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn ranges_of_one_object_are_requests_of_their_own() {
    let inner = Arc::new(InMemory::new());
    inner.put(&path(0), vec![0; 20 << 20].into()).await.unwrap();
    let store = WaveStore::new(inner);
    let ranges = [0..10, 5 << 20..(5 << 20) + 10, 9 << 20..(9 << 20) + 10];
    store.get_ranges(&path(0), &ranges).await.unwrap();
    assert_eq!((store.requests().get, store.waves(), store.bytes_read()), (3, 1, 30));
}

#[tokio::test(start_paused = true)]
async fn uploads_copies_and_conditional_puts_are_puts() {
    let store = store_of(1).await;
    let mut upload = store.put_multipart(&path(1)).await.unwrap();
    let parts = [upload.put_part(vec![1; 10].into()), upload.put_part(vec![2; 20].into())];
    futures::future::try_join_all(parts).await.unwrap();
    upload.complete().await.unwrap();
    assert_eq!((store.requests().put, store.waves(), store.bytes_written()), (4, 3, 30));
    let whole = store.get(&path(1)).await.unwrap().bytes().await.unwrap();
    assert_eq!((whole.len(), whole[9], whole[10]), (30, 1, 2));
    store.reset();
    let contested = path(5);
    let create = |payload: &'static str| store.put_opts(&contested, payload.into(), PutMode::Create.into());
    let (first, second) = futures::join!(create("a"), create("b"));
    assert!(first.is_ok() != second.is_ok(), "one creates, one finds it there");
    assert_eq!((store.requests().put, store.waves()), (2, 1));
    store.reset();
    store.rename(&path(0), &path(8)).await.unwrap();
    assert_eq!((store.requests().put, store.requests().delete, store.waves()), (1, 1, 2));
}
