//! The result of a write matches its effect: rejected, done, or unknown; on stores that fail at the one point that
//! decides, and on stores that only pretend to decide.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};
use hoplake::{Committed, Error, ErrorKind, Graph, LoadOptions, OpenSettings, Store, VacuumSettings, Vacuumed};
use hoplake_storage::{Clock, SystemClock};
use hoplake_testkit::{Alteration, AlteredStore, WaveStore};
use object_store::{
    GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, PutResult, Result, memory::InMemory,
    path::Path,
};

use crate::graphs::{edge_list, in_memory, load_into};

/// What becomes of a create.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Done,
    /// 403.
    Denied,
    /// It is not done, and not answered.
    Lost,
    /// It is done, but not answered.
    Unheard,
    /// The store looks whether it is there, and then writes.
    Late,
    /// The store does not even look.
    Overwritten,
    /// The store acknowledges it, and does nothing.
    Pretended,
}

/// A store with which creates go wrong, by their names.
#[derive(Debug)]
struct Spoilt {
    inner: Arc<dyn ObjectStore>,
    fate: fn(&str) -> Fate,
}

fn timeout() -> object_store::Error {
    object_store::Error::Generic { store: "S3", source: "no answer".into() }
}

#[async_trait]
impl Alteration for Spoilt {
    fn below(&self) -> &dyn ObjectStore {
        &self.inner
    }

    async fn put(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        if options.mode != PutMode::Create {
            return self.inner.put_opts(location, payload, options).await;
        }
        let path = location.to_string();
        match (self.fate)(&path) {
            Fate::Done => self.inner.put_opts(location, payload, options).await,
            Fate::Denied => Err(object_store::Error::PermissionDenied { path, source: "403".into() }),
            Fate::Lost => Err(timeout()),
            Fate::Unheard => self.inner.put_opts(location, payload, options).await.and(Err(timeout())),
            Fate::Late => {
                if self.inner.get_opts(location, GetOptions::default()).await.is_ok() {
                    return Err(object_store::Error::AlreadyExists { path, source: "412".into() });
                }
                tokio::task::yield_now().await;
                self.inner.put_opts(location, payload, PutOptions::default()).await
            }
            Fate::Pretended => Ok(PutResult { e_tag: None, version: None, extensions: Default::default() }),
            Fate::Overwritten => self.inner.put_opts(location, payload, PutOptions::default()).await,
        }
    }
}

fn edges() -> (tempfile::TempDir, LoadOptions) {
    let folder = tempfile::tempdir().unwrap();
    let file = edge_list(folder.path(), "edges.el", [(1, 2), (2, 3)].into_iter());
    (folder, LoadOptions::from_paths([file]))
}

/// A store in memory with a graph.
async fn loaded() -> Arc<dyn ObjectStore> {
    let (inner, store) = in_memory();
    load_into(&store, edges().1).await.unwrap();
    inner
}

/// The graph of a store that is taken for one in S3.
fn on_s3(inner: Arc<dyn ObjectStore>) -> Store {
    Store::new(inner, "g".into(), "s3://bucket/g")
}

fn spoilt(inner: &Arc<dyn ObjectStore>, fate: fn(&str) -> Fate) -> Store {
    on_s3(Arc::new(AlteredStore(Spoilt { inner: inner.clone(), fate })))
}

async fn commit(store: Store) -> Result<Committed, Error> {
    let graph = Graph::open_with(store, &OpenSettings::default()).await.unwrap();
    let mut commit = graph.begin();
    commit.upsert_vertex("vertex", 7, [("name", "seven")]).commit().await
}

async fn versions(inner: &Arc<dyn ObjectStore>) -> u64 {
    Graph::open_with(on_s3(inner.clone()), &OpenSettings::default()).await.unwrap().version()
}

fn of_manifests(path: &str, fate: Fate) -> Fate {
    if path.contains("manifest/") { fate } else { Fate::Done }
}

#[tokio::test(start_paused = true)]
async fn unknown_is_said_only_of_what_is_not_known() {
    let inner = loaded().await;
    let known_good = |fate| spoilt(&inner, fate).with_proof();
    // Rejected, and so it is not there.
    let denied = commit(known_good(|path| of_manifests(path, Fate::Denied))).await.unwrap_err();
    assert_eq!((denied.kind(), versions(&inner).await), (ErrorKind::Unavailable, 1), "{denied}");
    // Its outcome is unknown.
    let lost = commit(known_good(|path| of_manifests(path, Fate::Lost))).await.unwrap_err();
    assert_eq!((lost.kind(), versions(&inner).await), (ErrorKind::Unknown, 1), "{lost}");
    assert!(lost.to_string().contains("hoplake log shows change"), "{lost}");
    // The version names its writer.
    let unheard = commit(known_good(|path| of_manifests(path, Fate::Unheard))).await.unwrap();
    assert_eq!((unheard.version, versions(&inner).await), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_decide_is_rejected() {
    for fate in [|_: &str| Fate::Late, |_: &str| Fate::Overwritten] {
        let inner = loaded().await;
        let rejected = commit(spoilt(&inner, fate)).await.unwrap_err();
        assert_eq!((rejected.kind(), versions(&inner).await), (ErrorKind::Invalid, 1), "{rejected}");
        assert!(rejected.to_string().contains("conditional create (If-None-Match: *)"), "{rejected}");
    }
}

/// A clock by which each create of the first trial takes its time.
#[derive(Debug, Default)]
struct SlowClock(AtomicU64);

impl Clock for SlowClock {
    fn unix_ms(&self) -> u64 {
        SystemClock.unix_ms()
    }

    fn running(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn ulid(&self) -> String {
        SystemClock.ulid()
    }
}

/// A store from which another process removes the object of the first trial, so that both creates succeed.
#[derive(Debug)]
struct Removed {
    inner: Arc<dyn ObjectStore>,
    clock: Arc<SlowClock>,
    create_ms: u64,
}

#[async_trait]
impl Alteration for Removed {
    fn below(&self) -> &dyn ObjectStore {
        &self.inner
    }

    async fn put(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.clock.0.fetch_add(self.create_ms, Ordering::SeqCst);
        let options = if path.as_ref().ends_with(".probe") { PutOptions::default() } else { options };
        self.inner.put_opts(path, payload, options).await
    }
}

#[tokio::test]
async fn what_two_slow_creates_say_may_be_a_vacuums_doing() {
    for (create_ms, rejected) in [(0, true), (5_000, false)] {
        let inner = loaded().await;
        let clock = Arc::new(SlowClock::default());
        let removed = AlteredStore(Removed { inner, clock: clock.clone(), create_ms });
        let committed = commit(on_s3(Arc::new(removed)).with_clock(clock)).await;
        assert_eq!(committed.is_err(), rejected, "{create_ms}: {committed:?}");
    }
}

/// A clock that is ahead.
#[derive(Debug)]
struct Ahead(u64);

impl Clock for Ahead {
    fn unix_ms(&self) -> u64 {
        SystemClock.unix_ms() + self.0
    }

    fn running(&self) -> Duration {
        SystemClock.running()
    }

    fn ulid(&self) -> String {
        SystemClock.ulid()
    }
}

#[tokio::test]
async fn a_vacuum_spares_for_a_while_what_a_store_is_tried_with() {
    let inner = loaded().await;
    let probe = "data/00000000000000000000-01JDXAAAAAAAAAAAAAAAAAAAAA-000000.probe-again";
    on_s3(inner.clone()).put(probe, vec![0; 100].into()).await.unwrap();
    for (ahead_ms, removed) in [(0, 0), (9_000, 0), (11_000, 1)] {
        let store = on_s3(inner.clone()).with_clock(Arc::new(Ahead(ahead_ms)));
        assert_eq!(Graph::vacuum(&store, &vacuum_of(i64::MAX)).await.unwrap().objects, removed, "{ahead_ms}");
    }
}

/// A store that never answers a deletion.
#[derive(Debug)]
struct NeverDeletes(Arc<dyn ObjectStore>);

#[async_trait]
impl Alteration for NeverDeletes {
    fn below(&self) -> &dyn ObjectStore {
        &self.0
    }

    fn delete(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        stream::pending().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn no_commit_waits_for_the_removal_of_what_a_trial_made() {
    let store = on_s3(Arc::new(AlteredStore(NeverDeletes(loaded().await))));
    let committed =
        tokio::time::timeout(Duration::from_secs(1), commit(store)).await.expect("nothing is waited for").unwrap();
    assert_eq!(committed.version, 2);
}

#[tokio::test]
async fn a_load_into_a_store_that_does_not_decide_is_rejected_before_it_begins() {
    let inner: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let store = spoilt(&inner, |_| Fate::Late);
    let rejected = load_into(&store, edges().1).await.unwrap_err();
    assert!(rejected.to_string().contains("conditional create (If-None-Match: *)"), "{rejected}");
    assert_eq!(store.list("").await.unwrap(), []);
}

/// A store that fails one create of the first trial, and removes what was to be removed in the middle of the second.
#[derive(Debug)]
struct RemovesLate {
    inner: Arc<dyn ObjectStore>,
    probes: AtomicU64,
    removed: Mutex<Vec<Path>>,
}

#[async_trait]
impl Alteration for RemovesLate {
    fn below(&self) -> &dyn ObjectStore {
        &self.inner
    }

    async fn put(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        if path.as_ref().ends_with(".probe") {
            match self.probes.fetch_add(1, Ordering::SeqCst) {
                1 => return Err(timeout()),
                3 => {
                    let removed = self.removed.lock().unwrap().clone();
                    for path in removed {
                        self.inner.delete(&path).await?;
                    }
                }
                _ => {}
            }
        }
        self.inner.put_opts(path, payload, options).await
    }

    fn delete(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let paths: Vec<_> = paths.collect().now_or_never().expect("names are left");
        self.removed.lock().unwrap().extend(paths.into_iter().flatten());
        stream::pending().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn the_removal_of_one_trial_does_not_spoil_the_next() {
    let inner = loaded().await;
    let late = RemovesLate { inner, probes: AtomicU64::new(0), removed: Mutex::default() };
    let store = on_s3(Arc::new(AlteredStore(late)));
    assert_eq!(commit(store.clone()).await.unwrap().version, 2);
    assert!(store.is_proven());
}

#[tokio::test(start_paused = true)]
async fn while_a_store_could_not_be_tried_what_it_creates_is_read_back() {
    let inner = loaded().await;
    let pretends = |path: &str| if path.ends_with(".probe") { Fate::Lost } else { of_manifests(path, Fate::Pretended) };
    let store = spoilt(&inner, pretends);
    let graph = Graph::open_with(store.clone(), &OpenSettings::default()).await.unwrap();
    assert_eq!(commit(on_s3(inner.clone())).await.unwrap().version, 2);
    // The store acknowledges this one's version 2, too.
    let mut commit = graph.begin();
    let lost = commit.upsert_vertex("vertex", 8, [("name", "eight")]).commit().await.unwrap_err();
    assert!(lost.to_string().contains("conditional create (If-None-Match: *)"), "{lost}");
    assert!(lost.to_string().contains("two manifests of version 2"), "{lost}");
    assert!(!store.is_proven());
}

#[tokio::test(start_paused = true)]
async fn the_first_commit_of_a_process_tries_the_store_in_a_wave_that_it_makes_anyway() {
    let store = WaveStore::new(loaded().await);
    let graph = Graph::open_with(on_s3(Arc::new(store.clone())), &OpenSettings::default()).await.unwrap();
    let mut costs = Vec::new();
    for key in [7, 8, 9] {
        store.reset();
        let mut commit = graph.begin();
        let cost = commit.upsert_vertex("vertex", key, [("name", "x")]).commit().await.unwrap().cost;
        let deleted = store.requests().delete;
        costs.push((cost.waves, cost.puts, deleted));
    }
    // Two more creates, of which one object remains to be deleted; then never again.
    let [first, second, third] = costs[..] else { unreachable!() };
    assert_eq!((first.1 - second.1, first.2, second, second), (2, 1, (2, 3, 0), third), "{costs:?}");
}

fn vacuum_of(before: i64) -> VacuumSettings {
    VacuumSettings { written_before_unix_ms: before, ..VacuumSettings::default() }
}

#[tokio::test]
async fn a_vacuum_removes_the_files_of_killed_writers() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("graph").to_str().unwrap()).unwrap();
    load_into(&store, edges().1).await.unwrap();
    let left =
        ["data/00000000000000000000-01JDXAAAAAAAAAAAAAAAAAAAAA-000000.hls#1", "manifest/00000000000000000002.hlm#1"];
    left.iter().for_each(|name| std::fs::write(folder.path().join("graph").join(name), "half").unwrap());
    let there = || left.iter().filter(|name| folder.path().join("graph").join(name).exists()).count();
    // They may belong to writers at work, as long as they are young.
    assert_eq!(Graph::vacuum(&store, &vacuum_of(0)).await.unwrap(), Vacuumed::default());
    assert_eq!(there(), 2);
    let vacuumed = Graph::vacuum(&store, &vacuum_of(i64::MAX)).await.unwrap();
    assert_eq!((vacuumed.objects, vacuumed.bytes, there()), (2, 8, 0));
    assert_eq!(commit(store).await.unwrap().version, 2);
}

/// A store whose requests to change an object fail, by the object's name and whether it would be deleted.
#[derive(Debug)]
struct Stuck {
    inner: Arc<dyn ObjectStore>,
    fails: fn(&str, bool) -> bool,
}

#[async_trait]
impl Alteration for Stuck {
    fn below(&self) -> &dyn ObjectStore {
        &self.inner
    }

    async fn put(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        if options.mode != PutMode::Create && (self.fails)(path.as_ref(), false) {
            return Err(object_store::Error::PermissionDenied { path: path.to_string(), source: "403".into() });
        }
        self.inner.put_opts(path, payload, options).await
    }

    fn delete(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let fails = self.fails;
        let rejected = move |path: Path| match fails(path.as_ref(), true) {
            true => Err(object_store::Error::PermissionDenied { path: path.to_string(), source: "403".into() }),
            false => Ok(path),
        };
        self.inner.delete_stream(paths.map(move |path| path.and_then(rejected)).boxed())
    }
}

/// A vacuum that ended between its decision and its tombstones leaves versions that look readable: the next one writes
/// the tombstones before it removes what they name.
#[tokio::test]
async fn version_tombstones_precede_the_deletion_of_objects() {
    let inner = loaded().await;
    for _ in 0..3 {
        commit(on_s3(inner.clone()).with_proof()).await.unwrap();
    }
    let everything = hoplake::CompactionSettings { everything: true, ..Default::default() };
    Graph::compact(&on_s3(inner.clone()).with_proof(), &everything).await.unwrap();
    let settings = VacuumSettings { keep_versions: Some(0), ..VacuumSettings::default() };
    let stuck = |fails| on_s3(Arc::new(AlteredStore(Stuck { inner: inner.clone(), fails }))).with_proof();
    Graph::vacuum(&stuck(|path, _| path.contains("manifest/")), &settings).await.unwrap_err();
    Graph::vacuum(&stuck(|path, deleted| deleted && path.contains("data/")), &settings).await.unwrap_err();
    for version in 1..=4 {
        let settings = OpenSettings { version: Some(version), ..OpenSettings::default() };
        let opened = Graph::open_with(on_s3(inner.clone()), &settings).await.unwrap_err().to_string();
        assert!(opened.contains("was removed by a vacuum"), "{version}: {opened}");
    }
    Graph::vacuum(&on_s3(inner.clone()), &settings).await.unwrap();
}
