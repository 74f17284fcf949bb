//! Past versions by time, and in the log.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hoplake::{ErrorKind, Graph, LoadOptions, OpenSettings, Store, load_with};
use hoplake_storage::Clock;

/// A clock that a test sets, names that count up.
#[derive(Debug, Default)]
struct Hands {
    unix_ms: AtomicU64,
    names: AtomicU64,
}

impl Clock for Hands {
    fn unix_ms(&self) -> u64 {
        self.unix_ms.load(Relaxed)
    }

    fn running(&self) -> Duration {
        Duration::from_millis(self.unix_ms())
    }

    fn ulid(&self) -> String {
        format!("{:026}", self.names.fetch_add(1, Relaxed))
    }
}

#[tokio::test]
async fn every_moment_has_the_version_that_was_the_newest_then() {
    let clock = Arc::new(Hands::default());
    clock.unix_ms.store(1_000, Relaxed);
    let store = Store::open("memory://past/times").unwrap().with_clock(clock.clone());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "1,2\n").unwrap();
    load_with(store.clone(), LoadOptions::from_paths([file]), Arc::new(())).await.unwrap();
    let graph = Graph::open_with(store.clone(), &OpenSettings::default()).await.unwrap();
    let mut made = vec![(1_000, graph.version())];
    for number in 0..40i64 {
        // Some at the same time; one by a clock that went back, which does not make time go back.
        let now = [1_100, 1_250, 900][number as usize % 3] + 100 * (number as u64 / 2);
        clock.unix_ms.store(now, Relaxed);
        let mut commit = graph.begin();
        commit.upsert_vertex("vertex", 100 + number, [("n", number)]).message(format!("number {number}"));
        commit.source_position("even", if number % 2 == 0 { number } else { number - 1 }.to_string());
        let version = commit.commit().await.unwrap().version;
        made.push((now.max(made.last().unwrap().0), version));
    }
    for unix_ms in (1_000..3_500).step_by(49).chain(made.iter().map(|(time, _)| *time)) {
        let newest_then = made.iter().rev().find(|(time, _)| *time <= unix_ms).unwrap().1;
        assert_eq!(Graph::version_as_of(&store, unix_ms).await.unwrap(), newest_then, "at {unix_ms}");
    }
    let too_early = Graph::version_as_of(&store, 999).await.unwrap_err();
    assert_eq!(too_early.kind(), ErrorKind::NotFound, "{too_early}");

    let mut log = Graph::log(&store).await.unwrap();
    for (number, (time, version)) in made.iter().enumerate().skip(1).rev() {
        let entry = log.next().await.unwrap().unwrap();
        assert_eq!((entry.version, entry.created_unix_ms), (*version, *time));
        assert_eq!(entry.change.message, format!("number {}", number - 1));
        // An unchanged position is not repeated.
        let expected = (number % 2 == 1).then(|| (number - 1).to_string());
        assert_eq!(entry.source_positions.get("even"), expected.as_ref(), "number {}", number - 1);
    }
    assert_eq!(log.next().await.unwrap().unwrap().version, 1);
    assert_eq!(log.next().await.unwrap(), None);
    assert!(log.cost().waves < 10, "{:?}", log.cost());
}
