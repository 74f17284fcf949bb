//! Commits to a graph that was written to a store in memory: what goes into one delta, and what waits for the next.

use std::sync::Arc;

use futures::future::join_all;
use hoplake_format::Key;
use hoplake_storage::QueryContext;

use super::{Batch, Committed, Committer, Operation, Properties, VertexRef};
use crate::{
    EngineError,
    read::scan::written::{KEYS, LABEL, LISTS, RunsFixture},
};

fn vertex(key: i64) -> VertexRef {
    VertexRef::new("vertex", key)
}

fn upsert(key: i64, properties: &[(&str, i64)]) -> Batch {
    let properties: Properties = properties.iter().copied().collect();
    let operation = Operation::UpsertVertex { vertex: vertex(key), properties, replace: false };
    Batch { operations: vec![operation], ..Batch::default() }
}

fn edge(source: i64, target: i64) -> Batch {
    let operation = Operation::UpsertEdge {
        label: "edge".into(),
        source: vertex(source),
        target: vertex(target),
        key: None,
        properties: Properties::new(),
        replace: true,
    };
    Batch { operations: vec![operation], ..Batch::default() }
}

/// Version 9, with vertices of the keys 0 to 9 and an edge from 1 to 2.
async fn committer() -> Arc<Committer> {
    let keys = (0..10).map(|key| (key, key as u64));
    let snapshot = RunsFixture::new().keys(1, KEYS, keys).lists(1, LISTS, [(1, &[2][..])]).open().await;
    Arc::new(Committer::new(snapshot))
}

async fn commit_all(committer: &Arc<Committer>, batches: Vec<Batch>) -> Vec<Result<Committed, EngineError>> {
    let commits = join_all(batches.into_iter().map(|batch| committer.commit(batch))).await;
    committer.settled().await;
    commits
}

/// The versions of commits, and how many batches each took along; 0 for one that failed.
fn versions(commits: &[Result<Committed, EngineError>]) -> Vec<(u64, usize)> {
    commits.iter().map(|commit| commit.as_ref().map_or((0, 0), |commit| (commit.version, commit.batches))).collect()
}

#[tokio::test]
async fn batches_that_wait_are_one_delta() {
    let committer = committer().await;
    let commits = commit_all(&committer, (20..28).map(|key| upsert(key, &[])).collect()).await;
    assert_eq!(versions(&commits), [(10, 8); 8]);
    let newest = committer.newest();
    assert_eq!(newest.manifest().version, 10);
    let keys: Vec<_> = (20..28).map(|key| (LABEL, Key::Int64(key))).collect();
    let found = newest.keys().look_up(&keys, &mut QueryContext::new().branch()).await.unwrap();
    assert!(found.iter().all(Option::is_some), "{found:?}");
}

#[tokio::test]
async fn a_batch_that_names_what_another_writes_waits_for_the_next_delta() {
    let committer = committer().await;
    let batches = vec![upsert(20, &[("age", 1)]), upsert(20, &[("age", 2)]), edge(20, 3), upsert(21, &[])];
    // The third names a vertex that the first adds.
    let commits = commit_all(&committer, batches).await;
    assert!(commits[2].is_err() || versions(&commits)[2].0 > 10, "{:?}", commits[2]);
    assert_eq!([versions(&commits)[0], versions(&commits)[3]], [(10, 2); 2]);
    assert!(versions(&commits)[1].0 > 10);
}

#[tokio::test]
async fn a_batch_that_is_rejected_stops_no_other() {
    let committer = committer().await;
    let commits = commit_all(&committer, vec![upsert(20, &[]), edge(1, 99), edge(1, 3)]).await;
    let rejected = commits[1].as_ref().unwrap_err().to_string();
    assert!(rejected.contains("there is no vertex vertex:99"), "{rejected}");
    assert_eq!([versions(&commits)[0], versions(&commits)[2]], [(10, 2); 2]);
}

#[tokio::test]
async fn a_writer_that_is_overtaken_goes_on_from_the_version_of_the_other() {
    let first = committer().await;
    let second = Arc::new(Committer::new(first.newest()));
    first.commit(edge(1, 3)).await.unwrap();
    // It still builds on version 9.
    let late = second.commit(edge(1, 4)).await.unwrap();
    assert_eq!(late.version, 11);
    for committer in [&first, &second] {
        committer.settled().await;
    }
    let newest = second.newest();
    let sources = std::iter::once(hoplake_format::VertexId::new(LABEL, 1).unwrap()).collect();
    let hop = "out:edge".parse().unwrap();
    let edges = newest.adjacency().neighbours(&sources, &hop, &mut QueryContext::new().branch()).await.unwrap();
    let targets: Vec<_> = edges.targets().iter().map(|target| target.ordinal()).collect();
    assert_eq!(targets, [2, 3, 4]);
}

#[tokio::test]
async fn a_batch_that_is_sent_again_is_applied_once() {
    let keyed = |batch| Batch { idempotency_key: Some("a".into()), ..batch };
    let first = committer().await;
    let second = Arc::new(Committer::new(first.newest()));
    // Together with its twin, which waits for the next delta and finds it in the version before.
    let commits = commit_all(&first, vec![keyed(upsert(20, &[])), keyed(upsert(20, &[])), edge(1, 3)]).await;
    let twins = commits.iter().map(|commit| commit.as_ref().map(|it| (it.version, it.repeated, it.place)).unwrap());
    assert_eq!(twins.collect::<Vec<_>>(), [(10, false, 0), (10, true, 0), (10, false, 1)]);
    // By a committer that does not know that version yet, and in conflict with itself if it was applied again.
    let again = second.commit(Batch { base: Some(9), ..keyed(upsert(20, &[])) }).await.unwrap();
    assert_eq!((again.version, again.repeated, again.counts), (10, true, commits[0].as_ref().unwrap().counts));
    assert_eq!((first.newest().manifest().version, second.newest().manifest().version), (10, 10));
    first.settled().await;
}

#[tokio::test]
async fn a_base_is_in_conflict_with_what_came_after_it() {
    let committer = committer().await;
    committer.commit(upsert(1, &[("age", 1)])).await.unwrap();
    let on = |base, batch| Batch { base: Some(base), ..batch };
    let late = committer.commit(on(9, upsert(1, &[("age", 2)]))).await.unwrap_err();
    assert!(matches!(late, EngineError::Conflict(_)), "{late}");
    committer.commit(on(9, upsert(2, &[("age", 2)]))).await.unwrap();
    committer.commit(on(11, upsert(1, &[("age", 2)]))).await.unwrap();
    committer.settled().await;
}
