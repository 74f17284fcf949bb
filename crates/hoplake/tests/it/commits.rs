//! Random histories of commits: after each, every read of every version equals a naive model of it.

use std::collections::BTreeSet;

use hoplake::{Batch, Commit, ErrorKind, Graph, LoadOptions, OpenSettings, Store};
pub(crate) use hoplake_simulation::model::Model;
use hoplake_simulation::{
    batches::Vocabulary,
    reading::{self, ReadFailure},
};
use hoplake_testkit::generate::SplitMix64;

/// Keys of each label.
const KEYS: i64 = 40;

/// A batch that is valid on a model, and the model after it.
pub(super) fn batch(random: &mut SplitMix64, model: &Model) -> (Batch, Model) {
    Vocabulary::of_keys(KEYS).batch(random, model)
}

/// The content of a graph, by every kind of read.
pub(crate) async fn read(graph: &Graph) -> Model {
    match reading::read(graph, &Vocabulary::of_keys(KEYS), usize::MAX).await {
        Ok(model) => model,
        Err(ReadFailure::Error(error)) => panic!("{error}"),
        Err(ReadFailure::Contradiction(why)) => panic!("{why}"),
    }
}

pub(super) async fn loaded(name: &str) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "1,2\n").unwrap();
    hoplake::load(name, LoadOptions::from_paths([file])).await.unwrap();
    Graph::open(name).await.unwrap()
}

#[tokio::test]
async fn a_batch_is_committed_once_and_kept_after_an_error() {
    let graph = loaded("memory://commits/once").await;
    let mut late = graph.begin();
    late.upsert_vertex("vertex", 1, [("age", 1)]);
    graph.begin().upsert_vertex("vertex", 1, [("age", 2)]).commit().await.unwrap();
    for _ in 0..2 {
        // Not an empty batch, which would be in conflict with nothing.
        assert_eq!(late.commit().await.unwrap_err().kind(), ErrorKind::Conflict);
    }
    let mut once = graph.begin();
    let version = once.upsert_vertex("vertex", 2, [("age", 2)]).commit().await.unwrap().version;
    let again = once.upsert_vertex("vertex", 2, [("age", 3)]).commit().await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Invalid);
    assert!(again.to_string().contains(&format!("was committed as version {version}; begin another one")), "{again}");
}

/// A key says that the graph has the changes of a batch, so it goes when they go: with a restore to before them, and with a load.
#[tokio::test]
async fn a_batch_whose_changes_are_gone_is_applied_when_it_is_sent_again() {
    let name = "memory://commits/again";
    let mut graph = loaded(name).await;
    let store = Store::open(name).unwrap();
    let commit = async |graph: &mut Graph, key: i64| {
        let mut commit = graph.begin();
        commit.upsert_vertex("vertex", key, [("age", key)]).idempotency_key(key.to_string());
        let repeated = commit.commit().await.unwrap().repeated;
        graph.refresh().await.unwrap();
        assert!(graph.query().vertex("vertex", key).await.unwrap().is_some(), "{key}");
        repeated
    };
    assert!(!commit(&mut graph, 20).await);
    let with_first = graph.version();
    assert!(!commit(&mut graph, 21).await);
    Graph::restore(&store, with_first, "").await.unwrap();
    // What the restored version has is known still.
    assert_eq!([commit(&mut graph, 20).await, commit(&mut graph, 21).await], [true, false]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "1,2\n").unwrap();
    let options = LoadOptions { replace: true, ..LoadOptions::from_paths([file]) };
    hoplake::load(name, options).await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!([commit(&mut graph, 20).await, commit(&mut graph, 21).await], [false, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_of_a_random_history_reads_as_its_model() {
    for seed in 0..6 {
        let name = format!("memory://commits/{seed}");
        let mut graph = loaded(&name).await;
        let mut random = SplitMix64::new(seed);
        let mut model = Model::default();
        let mut versions = vec![(graph.version(), model.clone())];
        for _ in 0..12 {
            let (batch, after) = batch(&mut random, &model);
            let committed = graph.apply(batch.clone()).await.unwrap_or_else(|error| panic!("{error}: {batch:?}"));
            model = after;
            versions.push((committed.version, model.clone()));
            assert!(graph.refresh().await.unwrap());
            assert_eq!(graph.version(), committed.version);
            assert_eq!(read(&graph).await, model, "seed {seed}, version {}", committed.version);
        }
        for (version, model) in versions {
            let settings = OpenSettings { version: Some(version), ..OpenSettings::default() };
            let old = Graph::open_with(Store::open(&name).unwrap(), &settings).await.unwrap();
            old.verify(|_| ()).await.unwrap();
            assert_eq!(read(&old).await, model, "seed {seed}, version {version}, opened");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_at_once_all_succeed_unless_they_change_the_same() {
    let name = "memory://commits-at-once/graph";
    let graph = loaded(name).await;
    // Two processes: each has a graph, and each graph many callers.
    let other = Graph::open(name).await.unwrap();
    let commits = (0..40i64).map(|number| {
        let graph = if number % 2 == 0 { graph.clone() } else { other.clone() };
        tokio::spawn(async move {
            let mut commit = graph.begin();
            commit.upsert_vertex("Person", number, [("name", format!("p{number}"))]);
            commit.upsert_edge("knows", ("Person", number), ("vertex", 1), [("weight", number)]);
            commit.commit().await.unwrap().version
        })
    });
    let mut versions = BTreeSet::new();
    for commit in commits.collect::<Vec<_>>() {
        versions.insert(commit.await.unwrap());
    }
    assert!(versions.len() < 40, "no batches shared a delta");
    let mut newest = graph.clone();
    newest.refresh().await.unwrap();
    let mut query = newest.query();
    let one = query.vertex("vertex", 1).await.unwrap().unwrap();
    let edges = query.neighbors(&[one], &"in:knows".parse().unwrap()).await.unwrap();
    assert_eq!(edges.len(), 40);

    let conflict = |commit: &mut Commit| {
        commit.upsert_vertex("Person", 7, [("name", "another")]);
    };
    let mut first = newest.begin();
    let mut second = newest.begin();
    conflict(&mut first);
    conflict(&mut second);
    first.commit().await.unwrap();
    let error = second.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().starts_with("vertex Person:7 was changed between version"), "{error}");
}

#[tokio::test]
async fn a_base_that_is_not_there_yet_is_rejected() {
    let graph = loaded("memory://commits-future/graph").await;
    let batch = Batch { base: Some(99), ..Batch::default() };
    for rejected in [graph.check(batch.clone()).await.map(drop), graph.apply(batch).await.map(drop)] {
        let error = rejected.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains("based on version 99, and the newest is 1"), "{error}");
    }
}

#[tokio::test]
async fn batches_at_once_that_want_one_new_property_to_be_of_two_types_do_not_fail_each_other() {
    let graph = loaded("memory://commits-widen/graph").await;
    let mut first = graph.begin();
    let mut second = graph.begin();
    let mut third = graph.begin();
    first.upsert_vertex("vertex", 1, [("rank", 1)]);
    second.upsert_vertex("vertex", 2, [("rank", "first")]);
    third.upsert_vertex("Person", 1, [("age", 7)]);
    // One leads the group commit, and all three wait before it is assembled.
    let (first, second, third) = tokio::join!(first.commit(), second.commit(), third.commit());
    let first = first.unwrap();
    let third = third.unwrap();
    assert_eq!((first.version, first.batches), (third.version, 2));
    let error = second.unwrap_err();
    assert_eq!(
        error.to_string(),
        "upsert of vertex vertex:2 is refused: property rank of vertex is int64, which \"first\" is not"
    );
}
