use std::ops::Range;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt, TryStreamExt};
use hoplake_storage::{Latency, StoreProfile};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Error, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode};
use tokio::time::{Instant, timeout};

use super::*;
use crate::RequestKind;

const MIB: usize = 1 << 20;

/// S3 Standard in which every first byte takes 10 ms.
fn constant() -> StoreProfile {
    let latency = Latency::fitted(10.0, 10.0, 0.75);
    let mut profile = (*StoreProfile::s3_standard()).clone();
    profile.get = latency.clone();
    profile.put = latency.clone();
    profile.list = latency;
    profile
}

/// A store with objects of these lengths, named by their numbers, each below its own prefix.
async fn store_of(lengths: &[usize], profile: impl Into<std::sync::Arc<StoreProfile>>, seed: u64) -> SimStore {
    let inner = InMemory::new();
    for (number, length) in lengths.iter().enumerate() {
        inner.put(&path(number), vec![7; *length].into()).await.unwrap();
    }
    SimStore::new(inner, profile, seed)
}

fn path(number: usize) -> Path {
    Path::from(format!("{number}/object"))
}

/// The time that a get takes, in milliseconds.
async fn get_ms(store: &SimStore, number: usize, range: Range<u64>) -> u128 {
    let begun = Instant::now();
    store.get_range(&path(number), range).await.unwrap();
    begun.elapsed().as_millis()
}

#[tokio::test(start_paused = true)]
async fn first_bytes_have_the_published_quantiles() {
    let store = store_of(&[1_000; 50], StoreProfile::s3_standard(), 1).await;
    let mut drawn = Vec::new();
    for _ in 0..20 {
        // 100 at once of each of 50 objects.
        drawn.extend(join_all((0..5_000).map(|get| get_ms(&store, get % 50, 0..1))).await);
    }
    assert_eq!((drawn.len(), store.sim().counts().rejected.total()), (100_000, 0));
    drawn.sort_unstable();
    for (permille, expected) in [(500, 25.0), (900, 41.0), (990, 75.0)] {
        let found = drawn[drawn.len() * permille / 1000] as f64;
        assert!((found - expected).abs() <= 2.0, "p{permille}: {found} is not {expected}");
    }
    // 15 of 10,000 are uniform in 80 to 1,200 ms: of 100,000, about 120 take more than 300 ms.
    let late = drawn.iter().filter(|ms| **ms > 300).count();
    assert!((80..170).contains(&late), "{late}");
}

#[tokio::test(start_paused = true)]
async fn equal_seeds_give_equal_times_in_any_order() {
    let times = |seed, backwards: bool| async move {
        let store = store_of(&[100; 20], StoreProfile::s3_standard(), seed).await;
        let mut order: Vec<_> = (0..20).collect();
        if backwards {
            order.reverse();
        }
        let mut times = join_all(order.into_iter().map(|number| {
            let store = store.clone();
            async move { (number, get_ms(&store, number, 0..10).await, get_ms(&store, number, 0..10).await) }
        }))
        .await;
        times.sort_unstable();
        times
    };
    let first = times(1, false).await;
    assert_eq!(first, times(1, false).await);
    assert_eq!(first, times(1, true).await);
    assert_ne!(first, times(2, false).await);
    // The same range asked again draws anew, so that a hedge can be faster than what it hedges.
    assert!(first.iter().filter(|(_, one, again)| one != again).count() > 15, "{first:?}");
}

#[tokio::test(start_paused = true)]
async fn what_exceeds_the_limits_is_rejected_until_time_passes() {
    let store = store_of(&[100, 100], constant(), 1).await;
    let gets = |number, count| {
        join_all((0..count).map(move |_| path(number)).map(|path| {
            let store = store.clone();
            async move { store.get_range(&path, 0..10).await }
        }))
    };
    let rejected = |answers: &[Result<bytes::Bytes, Error>]| answers.iter().filter(|answer| answer.is_err()).count();
    let answers = gets(0, 6_000).await;
    assert_eq!(rejected(&answers), 500);
    // What object_store's S3 client makes of a 503.
    let error = answers.into_iter().find_map(Result::err).unwrap();
    assert!(matches!(error, Error::Generic { store: "S3", .. }), "{error:?}");
    assert!(error.to_string().contains("503 Service Unavailable") && error.to_string().contains("SlowDown"), "{error}");
    assert_eq!(rejected(&gets(1, 5_000).await), 0, "another prefix has limits of its own");
    // 20 ms have passed since the first: 110 may pass, and the 111th may not.
    assert_eq!(rejected(&gets(0, 200).await), 90);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(rejected(&gets(0, 5_500).await), 0);
    let counts = store.sim().counts();
    assert_eq!((counts.requests.get, counts.rejected.get), (16_700, 590));
    let usd = (16_700.0 - 590.0) * 0.0004 / 1e3;
    assert!((store.sim().usd() - usd).abs() < 1e-12, "what is refused is not billed");
}

#[tokio::test(start_paused = true)]
async fn streams_share_the_network() {
    let store = store_of(&[MIB; 100], constant(), 1).await;
    // One stream: 10 ms and 1 MiB at 55 MiB/s. 40 of them: 40 MiB at 1.25 GB/s.
    assert_eq!(get_ms(&store, 0, 0..MIB as u64).await, 28);
    let times = join_all((0..40).map(|number| get_ms(&store, number, 0..MIB as u64))).await;
    assert!(times.iter().all(|ms| *ms == 44), "{times:?}");
    // 20 streams bring 1.15 GB/s: they don't hinder each other.
    let times = join_all((0..20).map(|number| get_ms(&store, number, 0..MIB as u64))).await;
    assert!(times.iter().all(|ms| *ms == 28), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_begins_slows_those_under_way() {
    let profile =
        StoreProfile { network_bytes_per_second: 1_000_000, stream_bytes_per_second: 1_000_000, ..constant() };
    let store = store_of(&[1_000_000, 1_000_000], profile, 1).await;
    let second = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        get_ms(&store, 1, 0..250_000).await
    };
    let (first, second) = futures::join!(get_ms(&store, 0, 0..1_000_000), second);
    // Alone for half a second, then half of the card each until 250,000 bytes are through in another half.
    assert_eq!((first, second), (10 + 500 + 500 + 250, 10 + 500));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_counts_without_the_bytes_that_did_not_come() {
    let store = store_of(&[11 * MIB], constant(), 1).await;
    // 11 MiB take 200 ms after the first byte.
    for (ms, least, most) in [(5, 0, 0), (110, 5 * MIB, 6 * MIB)] {
        let whole = async { store.get(&path(0)).await.unwrap().bytes().await };
        assert!(timeout(Duration::from_millis(ms), whole).await.is_err());
        let counts = store.sim().counts();
        assert_eq!((counts.requests.get, counts.cancelled, counts.in_flight_peak), (1, 1, 1));
        assert!((least as u64..=most as u64).contains(&counts.bytes_read), "{counts:?}");
        store.sim().reset_counts();
    }
    let one = path(1);
    let put = store.put(&one, vec![1; 11 * MIB].into());
    assert!(timeout(Duration::from_millis(100), put).await.is_err());
    let written = store.sim().counts().bytes_written as usize;
    assert!((5 * MIB..6 * MIB).contains(&written), "{written}");
    assert!(matches!(store.head(&path(1)).await, Err(Error::NotFound { .. })));
    store.get(&path(0)).await.unwrap().bytes().await.unwrap();
    let counts = store.sim().counts();
    assert_eq!((counts.cancelled, counts.bytes_read, counts.requests.head), (1, 11 * MIB as u64, 1));
    assert_eq!(store.sim().gets_by_object().into_iter().collect::<Vec<_>>(), [(path(0).to_string(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn the_store_can_turn_slower() {
    let store = store_of(&[MIB], constant(), 1).await;
    assert_eq!(get_ms(&store, 0, 0..MIB as u64).await, 28);
    store.sim().slow_by(100.0);
    assert_eq!(get_ms(&store, 0, 0..MIB as u64).await, 2_818);
    store.sim().slow_by(1.0);
    assert_eq!(get_ms(&store, 0, 0..MIB as u64).await, 28);
    store.sim().set_straggler_share(1.0);
    assert_ne!(get_ms(&store, 0, 0..1).await, 10);
}

#[tokio::test(start_paused = true)]
async fn faults_come_as_they_are_ordered() {
    let store = store_of(&[1_000, 1_000], constant(), 1).await;
    let get = |number| {
        let store = store.clone();
        async move { store.get(&path(number)).await?.bytes().await }
    };
    let only = |kind| store.sim().set_faults([Fault::new(kind).on(RequestKind::Get).below("1/")]);
    let good = get(1).await.unwrap();

    only(FaultKind::Reject);
    assert!(get(1).await.unwrap_err().to_string().contains("SlowDown"));
    only(FaultKind::Hang);
    assert!(timeout(Duration::from_secs(3_600), get(1)).await.is_err());
    only(FaultKind::Truncate { bytes: 10 });
    assert_eq!(get(1).await.unwrap(), good[..10]);
    only(FaultKind::Flip);
    let wrong = get(1).await.unwrap();
    let bits: u32 = wrong.iter().zip(&good).map(|(one, other)| (one ^ other).count_ones()).sum();
    assert_eq!((bits, wrong.len()), (1, good.len()));
    only(FaultKind::Reset { after_bytes: 10 });
    let mut body = store.get(&path(1)).await.unwrap().into_stream();
    assert_eq!(body.next().await.unwrap().unwrap().len(), 10);
    assert!(matches!(body.next().await, Some(Err(Error::Generic { store: "S3", .. }))));
    assert_eq!(get(0).await.unwrap(), good, "another object is as it was");

    store.sim().set_faults([Fault::new(FaultKind::Reject).first_attempts(1)]);
    assert!(store.get_range(&path(1), 5..6).await.is_err());
    assert!(store.get_range(&path(1), 5..6).await.is_ok());
    store.sim().set_faults([Fault::new(FaultKind::Reject).share(0.25)]);
    let answers = join_all((0..1_000).map(|_| get(0))).await;
    let rejected = answers.iter().filter(|answer| answer.is_err()).count();
    assert!((200..300).contains(&rejected), "{rejected}");
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_put_can_be_lost() {
    let store = store_of(&[], constant(), 1).await;
    let lost = Fault::new(FaultKind::Reset { after_bytes: 0 }).on(RequestKind::Put).first_attempts(1);
    store.sim().set_faults([lost]);
    let manifest = Path::from("manifest");
    let create = |text: &'static str| store.put_opts(&manifest, text.into(), PutMode::Create.into());
    assert!(matches!(create("one").await, Err(Error::Generic { store: "S3", .. })));
    assert!(matches!(create("two").await, Err(Error::AlreadyExists { .. })));
    assert_eq!(store.get(&Path::from("manifest")).await.unwrap().bytes().await.unwrap(), "one");
}

#[tokio::test(start_paused = true)]
async fn parts_that_arrived_make_the_object() {
    let store = store_of(&[], constant(), 1).await;
    let upload = async |name: &'static str| {
        let mut upload = store.put_multipart(&Path::from(name)).await?;
        // The second is faster than the first.
        let parts = [upload.put_part(vec![1; 4 * MIB].into()), upload.put_part(vec![2; 10].into())];
        futures::future::try_join_all(parts).await?;
        upload.complete().await
    };
    upload("whole").await.unwrap();
    let whole = store.get(&Path::from("whole")).await.unwrap().bytes().await.unwrap();
    assert_eq!((whole.len(), whole[0], whole[4 * MIB]), (4 * MIB + 10, 1, 2));
    assert_eq!(store.sim().counts().requests.put, 4);
    store.sim().set_faults([Fault::new(FaultKind::Reject).below("torn").share(0.999)]);
    assert!(upload("torn").await.is_err());
    let mut torn = store.put_multipart(&Path::from("other")).await.unwrap();
    store.sim().set_faults([Fault::new(FaultKind::Reject).first_attempts(1)]);
    torn.put_part("lost".into()).await.unwrap_err();
    store.sim().set_faults([]);
    torn.put_part("kept".into()).await.unwrap();
    assert!(torn.complete().await.unwrap_err().to_string().contains("Missing part"));
    torn.abort().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn listings_and_deletions_take_their_time() {
    let store = store_of(&[10; 2_500], constant(), 1).await;
    let begun = Instant::now();
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    assert_eq!((listed.len(), begun.elapsed()), (2_500, Duration::from_millis(30)));
    let paths = listed.into_iter().map(|meta| Ok(meta.location));
    let deleted: Vec<_> = store.delete_stream(futures::stream::iter(paths).boxed()).try_collect().await.unwrap();
    assert_eq!((deleted.len(), begun.elapsed()), (2_500, Duration::from_millis(60)));
    let counts = store.sim().counts();
    assert_eq!((counts.requests.list, counts.requests.delete, counts.in_flight_peak), (3, 2_500, 1_000));
    store.copy(&path(0), &path(1)).await.unwrap_err();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(store.sim().counts().requests.total(), 2_504, "nobody asks, and nothing is asked");
}
