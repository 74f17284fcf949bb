//! What verification finds of a damaged graph, what a vacuum does with one, and what can be restored of it.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use hoplake::{
    ErrorKind, Graph, LoadOptions, Manifest, OpenSettings, Store, VacuumSettings, Verification, VersionRange,
};
use hoplake_testkit::{Alteration, AlteredStore, WaveStore};
use object_store::{GetOptions, GetResult, GetResultPayload, ObjectStore, ObjectStoreExt, path::Path};

use crate::graphs::{edge_list, graph_at, in_memory, load_apart, load_into, open};

const COMMITS: u64 = 5;

/// A graph of a load and some commits; each adds a vertex.
async fn grown() -> (Arc<dyn ObjectStore>, Store) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "1,2\n2,3\n").unwrap();
    let (inner, store) = in_memory();
    load_into(&store, LoadOptions::from_paths([file])).await.unwrap();
    let mut graph = open(&store).await;
    for key in 0..COMMITS as i64 {
        let mut commit = graph.begin();
        commit.upsert_vertex("vertex", 100 + key, [("name", "new")]).commit().await.unwrap();
        graph.refresh().await.unwrap();
    }
    (inner, store)
}

fn manifest(version: u64) -> String {
    format!("manifest/{version:020}.hlm")
}

async fn put(inner: &Arc<dyn ObjectStore>, name: &str, bytes: impl Into<Bytes>) {
    inner.put(&Path::from(format!("g/{name}")), bytes.into().into()).await.unwrap();
}

async fn get(inner: &Arc<dyn ObjectStore>, name: &str) -> Vec<u8> {
    inner.get(&Path::from(format!("g/{name}"))).await.unwrap().bytes().await.unwrap().to_vec()
}

async fn verify(store: &Store) -> Verification {
    Graph::verify_all(store, |_| ()).await.unwrap()
}

async fn names(inner: &Arc<dyn ObjectStore>) -> Vec<(String, u64)> {
    let listed: Vec<_> = inner.list(None).try_collect().await.unwrap();
    let mut names: Vec<_> = listed.into_iter().map(|object| (object.location.to_string(), object.size)).collect();
    names.sort();
    names
}

/// The object that a version added.
async fn object_of(store: &Store, version: u64) -> String {
    let settings = OpenSettings { version: Some(version), ..OpenSettings::default() };
    let graph = Graph::open_with(store.clone(), &settings).await.unwrap();
    graph.manifest().segments.last().unwrap().name.clone()
}

#[tokio::test]
async fn an_intact_graph_is_read_completely() {
    let (inner, store) = grown().await;
    let found = verify(&store).await;
    assert_eq!(found.damages, []);
    assert_eq!(found.versions, (1..=COMMITS + 1).map(|version| (version, true)).collect::<Vec<_>>());
    let data: Vec<_> = names(&inner).await.into_iter().filter(|(name, _)| name.starts_with("g/data/")).collect();
    assert_eq!(found.verified.objects, data.len() as u64);
    assert_eq!(found.verified.bytes, data.iter().map(|(_, bytes)| bytes).sum::<u64>(), "each byte once");
    let nothing = Graph::verify_all(&graph_at(object_store::memory::InMemory::new()), |_| ()).await.unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::NotFound, "{nothing}");
}

#[tokio::test(start_paused = true)]
async fn verification_reads_each_byte_once_and_reads_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let edges = (0..2_500_000u64).map(|edge| (edge / 10, edge.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 45));
    let file = edge_list(folder.path(), "graph.el", edges);
    let (inner, _) = load_apart(LoadOptions::from_paths([file]));
    let waves = WaveStore::new(inner);
    let graph = Graph::open_with(graph_at(waves.clone()), &OpenSettings::default()).await.unwrap();
    waves.reset();
    let verified = graph.verify(|_| ()).await.unwrap();
    let segments = graph.manifest().segments.len() as u64;
    assert_eq!(verified.bytes, waves.bytes_read());
    // An extent has at most 4 MiB, of which it is short by less than a block.
    let extents = verified.bytes.div_ceil((4 << 20) - (64 << 10));
    assert!(extents >= 4, "{} bytes", verified.bytes);
    let requests = waves.requests().get;
    assert!(requests <= segments * 2 + extents, "{requests} requests, {segments} segments, {extents} extents");
    // Four extents are asked for before the first is checked; the end of a segment comes before its blocks. A listing has their lengths.
    assert!(waves.waves() <= segments * 2 + extents / 4 + 1, "{} waves of {requests} requests", waves.waves());
}

/// A store whose first answer from the beginning of each object of data has a flipped bit.
#[derive(Debug)]
struct DamagedOnTheWay {
    inner: Arc<dyn ObjectStore>,
    damaged: Arc<Mutex<BTreeSet<Path>>>,
}

#[async_trait]
impl Alteration for DamagedOnTheWay {
    fn below(&self) -> &dyn ObjectStore {
        &self.inner
    }

    async fn get(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        let answer = self.inner.get_opts(path, options).await?;
        let is_first = || self.damaged.lock().unwrap().insert(path.clone());
        // That is where blocks are.
        if !path.as_ref().contains("/data/") || answer.range.start > 0 || !is_first() {
            return Ok(answer);
        }
        let meta = answer.meta.clone();
        let range = answer.range.clone();
        let attributes = answer.attributes.clone();
        let mut bytes = answer.bytes().await?.to_vec();
        bytes[9] ^= 1;
        let payload = GetResultPayload::Stream(stream::once(async { Ok(Bytes::from(bytes)) }).boxed());
        Ok(GetResult { payload, meta, range, attributes, extensions: Default::default() })
    }
}

#[tokio::test]
async fn what_came_damaged_once_is_not_damage() {
    let (inner, _) = grown().await;
    let damaged = Arc::default();
    let store = graph_at(AlteredStore(DamagedOnTheWay { inner, damaged: Arc::clone(&damaged) }));
    let found = verify(&store).await;
    assert_eq!(found.damages, []);
    assert!(damaged.lock().unwrap().len() > COMMITS as usize, "each segment came damaged once");
}

/// A store that lists objects and denies reading manifests, as a policy of a bucket may.
#[derive(Debug)]
struct Denied(Arc<dyn ObjectStore>);

#[async_trait]
impl Alteration for Denied {
    fn below(&self) -> &dyn ObjectStore {
        &self.0
    }

    async fn get(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        if path.as_ref().contains("manifest/") {
            let source = "a policy denies it".into();
            return Err(object_store::Error::PermissionDenied { path: path.to_string(), source });
        }
        self.0.get_opts(path, options).await
    }
}

/// A slot that cannot be looked at says nothing of it; taken for one that is taken, it would lead to the next without end.
#[tokio::test]
async fn verification_ends_where_manifests_are_denied() {
    let (inner, _) = grown().await;
    let store = graph_at(AlteredStore(Denied(inner)));
    let ended = tokio::time::timeout(std::time::Duration::from_secs(60), Graph::verify_all(&store, |_| ())).await;
    let error = ended.expect("it ends").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn all_damage_is_listed_with_the_newest_version_that_has_it() {
    let (inner, store) = grown().await;
    let (of_three, of_four, of_six) =
        (object_of(&store, 3).await, object_of(&store, 4).await, object_of(&store, 6).await);
    // An empty manifest, a flipped bit, a missing object, a truncated one, and half a hint.
    put(&inner, &manifest(2), Bytes::new()).await;
    let mut flipped = get(&inner, &of_three).await;
    flipped[9] ^= 1;
    put(&inner, &of_three, flipped).await;
    inner.delete(&Path::from(format!("g/{of_four}"))).await.unwrap();
    let short = get(&inner, &of_six).await;
    put(&inner, &of_six, short[..short.len() / 2].to_vec()).await;
    let hint = get(&inner, "hint").await;
    put(&inner, "hint", hint[..hint.len() / 2].to_vec()).await;
    let found = verify(&store).await;
    let told = |version: Option<u64>, what: &str| {
        found.damages.iter().any(|damage| damage.version == version && damage.what.contains(what))
    };
    assert!(told(Some(2), &manifest(2)), "{found:#?}");
    assert!(told(Some(6), &of_three) && told(Some(6), "block 0"), "{found:#?}");
    assert!(told(Some(6), &of_four) && told(Some(6), &of_six) && told(None, "hint"), "{found:#?}");
    let intact: Vec<u64> = found.versions.iter().filter(|(_, intact)| *intact).map(|(version, _)| *version).collect();
    assert_eq!((found.versions.len(), intact, found.newest_intact()), (6, vec![1], Some(1)));
}

#[tokio::test]
async fn a_vacuum_of_a_damaged_graph_does_nothing_and_says_why() {
    for damage in ["manifest", "missing", "short"] {
        let (inner, store) = grown().await;
        let object = object_of(&store, 4).await;
        match damage {
            "manifest" => put(&inner, &manifest(4), Bytes::new()).await,
            "missing" => inner.delete(&Path::from(format!("g/{object}"))).await.unwrap(),
            _ => put(&inner, &object, "short").await,
        }
        put(&inner, "data/00000000000000000002-01JDXFAKEFAKEFAKEFAKEFAKE0-000000.hls", "a leftover").await;
        let before = names(&inner).await;
        let settings = VacuumSettings { keep_versions: Some(3), ..VacuumSettings::default() };
        let error = Graph::vacuum(&store, &settings).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let named = if damage == "manifest" { manifest(4) } else { object };
        // The newest version that names it.
        let version = if damage == "manifest" { "version 4:" } else { "version 6:" };
        assert!(error.to_string().contains(&named) && error.to_string().contains(version), "{error}");
        assert_eq!(names(&inner).await, before, "{damage}");
    }
}

#[tokio::test]
async fn a_missing_manifest_is_damage_like_another() {
    let (inner, store) = grown().await;
    let object = object_of(&store, 5).await;
    inner.delete(&Path::from(format!("g/{}", manifest(3)))).await.unwrap();
    inner.delete(&Path::from(format!("g/{object}"))).await.unwrap();
    let found = verify(&store).await;
    for expected in [&manifest(3), &object] {
        assert!(found.damages.iter().any(|damage| damage.what.contains(expected)), "{expected}: {found:#?}");
    }
    let settings = VacuumSettings { keep_versions: Some(4), ..VacuumSettings::default() };
    let error = Graph::vacuum(&store, &settings).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    // And if none that is newer can be read, the gap is found.
    for version in 4..=COMMITS + 1 {
        put(&inner, &manifest(version), Bytes::new()).await;
    }
    let found = verify(&store).await;
    assert!(found.damages.iter().any(|damage| damage.what.contains("versions 3 to 3 are not there")), "{found:#?}");
}

#[tokio::test]
async fn a_manifest_that_claims_more_versions_than_memory_holds_is_damaged() {
    const CLAIMED: u64 = 1 << 40;
    let (inner, store) = grown().await;
    let newest = Manifest::decode(&get(&inner, &manifest(COMMITS + 1)).await).unwrap();
    let history = vec![VersionRange { since: 1, until: CLAIMED }];
    let forged = Manifest { version: CLAIMED + 1, history, ..newest }.encode();
    put(&inner, &manifest(CLAIMED + 1), forged.clone()).await;
    put(&inner, "hint", forged).await;
    assert!(open(&store).await.manifest().has_version(2), "it can be opened all the same");
    let expected = format!("it claims that {CLAIMED} past versions can be opened, but {} exist", COMMITS + 1);
    let found = verify(&store).await;
    assert!(found.damages.iter().any(|damage| damage.what.contains(&expected)), "{found:#?}");
    for error in [
        Graph::versions(&store).await.unwrap_err(),
        Graph::vacuum(&store, &VacuumSettings { keep_versions: Some(2), ..VacuumSettings::default() })
            .await
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

#[tokio::test]
async fn writers_and_tags_that_cannot_be_are_rejected() {
    let (_, store) = grown().await;
    let settings = VacuumSettings { abort: vec!["nobody".into()], ..VacuumSettings::default() };
    let error = Graph::vacuum(&store, &settings).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("no writer nobody is at work")), (ErrorKind::NotFound, true));
    for name in ["1", "two\nlines"] {
        let error = Graph::tag(&store, name, Some(2)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}

#[tokio::test]
async fn what_goes_may_be_damaged() {
    let (inner, store) = grown().await;
    put(&inner, &manifest(2), Bytes::new()).await;
    put(&inner, &manifest(3), vec![7; 100]).await;
    let settings = VacuumSettings { keep_versions: Some(2), ..VacuumSettings::default() };
    let vacuumed = Graph::vacuum(&store, &settings).await.unwrap();
    assert!(vacuumed.versions >= 1, "{vacuumed:?}");
    let found = verify(&store).await;
    assert_eq!(found.damages, []);
    assert!(found.versions.len() >= 3, "{found:?}");
}

#[tokio::test]
async fn what_verification_says_can_be_restored_can_be() {
    for with_hint in [true, false] {
        let (inner, store) = grown().await;
        put(&inner, &manifest(6), Bytes::new()).await;
        if !with_hint {
            inner.delete(&Path::from("g/hint")).await.unwrap();
        }
        let found = verify(&store).await;
        assert_eq!((found.newest(), found.newest_intact()), (Some(6), Some(5)), "{found:#?}");
        let restored = Graph::restore(&store, 5, "").await.unwrap();
        assert_eq!(restored, 7);
        let graph = open(&store).await;
        assert_eq!(graph.version(), 7);
        assert!(graph.query().vertex("vertex", 103).await.unwrap().is_some());
        assert!(graph.query().vertex("vertex", 104).await.unwrap().is_none());
        assert_eq!(verify(&store).await.damages, []);
        graph.begin().upsert_vertex("vertex", 200, [("name", "new")]).commit().await.unwrap();
    }
}
