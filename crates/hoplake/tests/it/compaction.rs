//! Compaction changes no answer, whatever happens at the same time.

use std::sync::Arc;

use hoplake::{Compacted, CompactionSettings, ErrorKind, Graph, OpenSettings, Store, VacuumSettings};
use hoplake_testkit::generate::SplitMix64;
use tokio::sync::watch;

use crate::commits::{Model, batch, loaded, read};

async fn compact(name: &str, everything: bool) -> Compacted {
    let settings = CompactionSettings { everything, ..CompactionSettings::default() };
    Graph::compact(&Store::open(name).unwrap(), &settings).await.unwrap()
}

async fn open(name: &str, version: Option<u64>) -> Graph {
    let settings = OpenSettings { version, ..OpenSettings::default() };
    Graph::open_with(Store::open(name).unwrap(), &settings).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_reads_as_its_model_whatever_was_compacted() {
    for seed in 0..6 {
        let name = format!("memory://compaction/{seed}");
        let mut graph = loaded(&name).await;
        let mut random = SplitMix64::new(seed + 100);
        let mut model = Model::default();
        let mut versions = vec![(graph.version(), model.clone())];
        for step in 0..24 {
            let (batch, after) = batch(&mut random, &model);
            graph.apply(batch).await.unwrap();
            model = after;
            // All of it now and then, so that later merges have an old run below them.
            if step % 5 == 4 {
                let compacted = compact(&name, random.below(3) == 0).await;
                assert!(compacted.version > graph.version());
            }
            assert!(graph.refresh().await.unwrap());
            assert_eq!(read(&graph).await, model, "seed {seed}, step {step}");
            versions.push((graph.version(), model.clone()));
        }
        let parts = graph.manifest().segments.len();
        assert!(compact(&name, true).await.merges > 0);
        let graph = open(&name, None).await;
        assert!(graph.manifest().segments.len() < parts && graph.manifest().leases.is_empty());
        assert_eq!(compact(&name, true).await.merges, 0, "there is nothing left to merge");
        versions.push((graph.version(), model.clone()));
        for (version, model) in versions {
            let old = open(&name, Some(version)).await;
            old.verify(|_| ()).await.unwrap();
            assert_eq!(read(&old).await, model, "seed {seed}, version {version}, opened");
        }
        // Each label and edge type has one sorted run, without tombstones.
        let live: u64 = graph.manifest().vertex_counts.iter().map(|count| count.live()).sum();
        assert_eq!(live, model.vertices.len() as u64 + 2, "two vertices were loaded");
        assert_eq!(graph.manifest().edge_counts.iter().sum::<u64>(), model.edge_count() as u64 + 1);
    }
}

const COMMITS: u32 = 60;

#[tokio::test(flavor = "multi_thread")]
async fn commits_and_a_vacuum_go_on_beside_compactions() {
    let name = "memory://compaction-beside/graph";
    let graph = loaded(name).await;
    let store = Store::open(name).unwrap();
    let (committed, mut commits) = watch::channel(0);
    let compacting = tokio::spawn(async move {
        let mut merges = 0;
        let mut last = false;
        while !last {
            // Once more when all is committed.
            last = *commits.borrow_and_update() == COMMITS;
            merges += compact(name, false).await.merges;
            let settings = VacuumSettings { keep_versions: Some(3), ..VacuumSettings::default() };
            Graph::vacuum(&store, &settings).await.unwrap();
            // Such a vacuum always has something to decide: without end, no commit would ever be fast enough.
            if !last {
                commits.changed().await.unwrap();
            }
        }
        merges
    });
    let mut random = SplitMix64::new(7);
    let mut model = Model::default();
    let graph = Arc::new(graph);
    for number in 1..=COMMITS {
        let (batch, after) = batch(&mut random, &model);
        graph.apply(batch).await.unwrap();
        model = after;
        committed.send_replace(number);
    }
    assert!(compacting.await.unwrap() > 0);
    let newest = open(name, None).await;
    newest.verify(|_| ()).await.unwrap();
    assert_eq!(read(&newest).await, model);
}

#[tokio::test]
async fn a_compaction_hides_no_conflict_even_where_nothing_is_left() {
    let name = "memory://compaction-conflict/graph";
    let mut graph = loaded(name).await;
    let ends = (("vertex", 1), ("vertex", 2));
    let mut commit = graph.begin();
    commit.upsert_edge("likes", ends.0, ends.1, [("weight", 1)]).commit().await.unwrap();
    graph.refresh().await.unwrap();
    let mut late = graph.begin();
    late.upsert_edge("likes", ends.0, ends.1, [("weight", 2)]);
    graph.begin().delete_edge("likes", ends.0, ends.1).commit().await.unwrap();
    compact(name, true).await;
    graph.refresh().await.unwrap();
    let mut query = graph.query();
    let one = query.vertex("vertex", 1).await.unwrap().unwrap();
    assert!(query.neighbors(&[one], &"out:likes".parse().unwrap()).await.unwrap().is_empty());
    graph.verify(|_| ()).await.unwrap();
    assert_eq!(late.commit().await.unwrap_err().kind(), ErrorKind::Conflict);
}

/// Wherever it stops, it has withdrawn its lease, and the versions that it published are intact.
#[tokio::test]
async fn a_compaction_that_is_told_to_stop_leaves_no_name() {
    let mut announced = 0;
    let mut finished = 0;
    for steps in (0..120).step_by(4) {
        let name = format!("memory://compaction-stopped/{steps}");
        let graph = loaded(&name).await;
        for key in 10..18 {
            let mut commit = graph.begin();
            commit.upsert_vertex("vertex", key, [("name", "new")]).upsert_edge(
                "edge",
                ("vertex", 1),
                ("vertex", key),
                [("n", 1)],
            );
            commit.commit().await.unwrap();
        }
        let before = open(&name, None).await;
        let mut left = steps;
        assert!(before.compaction_is_due(&CompactionSettings::default()).await.unwrap());
        // It is asked each time that the compaction waits for something.
        let stop = std::future::poll_fn(|_| {
            left -= 1;
            if left < 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        });
        let store = Store::open(&name).unwrap();
        let compacted = Graph::compact_until(&store, &CompactionSettings::default(), stop).await.unwrap();
        let after = open(&name, None).await;
        assert!(after.manifest().leases.is_empty(), "after {steps} steps");
        after.verify(|_| ()).await.unwrap();
        for key in 10..18 {
            assert!(after.query().vertex("vertex", key).await.unwrap().is_some(), "after {steps} steps");
        }
        let done = !after.compaction_is_due(&CompactionSettings::default()).await.unwrap();
        announced += usize::from(!done && after.version() > before.version());
        finished += usize::from(done);
        assert_eq!(done && compacted.merges > 0, done);
    }
    assert!(announced > 0 && finished > 0, "{announced} stopped in the middle, {finished} finished");
}
