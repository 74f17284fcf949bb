//! Feeds that run, are killed, and are compared with a history of the tables.

use std::{ops::Range, path::Path, sync::Arc, time::Duration};

use hoplake::{Graph, OpenSettings, Store};
use hoplake_feed::{Feed, FeedError, RunOptions, Settings};
use tokio::{
    sync::{Notify, oneshot},
    task::JoinSet,
};

use crate::{model::Model, reconciling::names_what_was_deleted};

/// The seed and the number of transactions of a random run.
pub fn from_environment(transactions: u64) -> (u64, u64) {
    let number = |name: &str, otherwise| std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(otherwise);
    (number("HOPLAKE_FEED_SEED", 1), number("HOPLAKE_FEED_TRANSACTIONS", transactions))
}

/// The settings of a feed from a database into a folder.
pub fn settings_of(url: &str, graph: &Path, mapping: &str) -> Settings {
    let text = format!(
        "graph = {graph:?}\n[source]\nname = 'company'\nurl = '{url}'\ntimeout_ms = 20000\n[stream]\nlinger_ms = 5\n{mapping}"
    );
    Settings::parse(&text).unwrap()
}

/// A feed that has followed until there was no more, or why it has not.
pub async fn once(settings: &Settings, options: RunOptions) -> Result<Feed, FeedError> {
    let options = RunOptions { once: true, ..options };
    let mut feed = Feed::open(settings.clone(), options, Arc::new(())).await?;
    feed.run(std::future::pending()).await?;
    Ok(feed)
}

/// The same of one that has to succeed.
pub async fn caught_up(settings: &Settings) -> Feed {
    once(settings, RunOptions::default()).await.unwrap()
}

/// All vertices and edges of the graph.
pub async fn content(settings: &Settings) -> Model {
    Model::of_graph(&Graph::open(&settings.graph).await.unwrap()).await
}

/// A feed that is open, as soon as it can be.
async fn opened(settings: &Settings, options: RunOptions) -> Feed {
    loop {
        match Feed::open(settings.clone(), options.clone(), Arc::new(())).await {
            Err(error) if error.is_transient() => tokio::time::sleep(Duration::from_millis(100)).await,
            opened => return opened.unwrap(),
        }
    }
}

/// Runs a feed until it is stopped. One that stops at a row which names a vertex that was damaged does as its error says.
pub async fn run_through_damage(mut feed: Feed, settings: &Settings, stop: &Notify) {
    loop {
        let Err(error) = feed.run(stop.notified()).await else { return };
        assert!(names_what_was_deleted(&error), "{error}");
        drop(feed);
        feed = opened(settings, RunOptions { resnapshot: true, ..RunOptions::default() }).await;
    }
}

/// Runs a feed that is killed at random, again and again, after it was open for so many milliseconds; of four times once within these of its
/// start, when it may not be open yet.
pub async fn followed_with_kills(settings: Settings, seed: u64, alive_ms: Range<u64>) {
    followed_and_killed(settings, seed, alive_ms, false).await;
}

/// The same of a feed whose graph is damaged meanwhile.
pub async fn followed_with_kills_and_damage(settings: Settings, seed: u64, alive_ms: Range<u64>) {
    followed_and_killed(settings, seed, alive_ms, true).await;
}

async fn followed_and_killed(settings: Settings, seed: u64, alive_ms: Range<u64>, is_damaged: bool) {
    let mut dice = fastrand::Rng::with_seed(seed);
    loop {
        let settings = settings.clone();
        // Ends with its value, also if this task is aborted.
        let mut feed = JoinSet::new();
        let (is_open, open) = oneshot::channel();
        feed.spawn(async move {
            let mut feed = opened(&settings, RunOptions::default()).await;
            let _ = is_open.send(());
            match is_damaged {
                true => run_through_damage(feed, &settings, &Notify::new()).await,
                false => feed.run(std::future::pending()).await.unwrap(),
            }
        });
        if dice.u8(..4) > 0 {
            let _ = open.await;
        }
        tokio::time::sleep(Duration::from_millis(dice.u64(alive_ms.clone()))).await;
        assert!(feed.try_join_next().is_none(), "the feed ended by itself");
        feed.shutdown().await;
    }
}

/// Whether there are enough versions to compare, which takes longer on a busy machine.
pub async fn has_versions(settings: &Settings) -> bool {
    let store = Store::open(&settings.graph).unwrap();
    Graph::versions(&store).await.is_ok_and(|all| all.len() >= 60)
}

/// Compares all versions that follow the source with one of those that the tables may have been at its position, and returns how many there
/// are.
pub async fn check_versions<'a>(store: &Store, history: impl Fn(&str) -> Vec<&'a Model>) -> usize {
    let mut checked = 0;
    let mut last = String::new();
    for version in Graph::versions(store).await.unwrap() {
        let opened = OpenSettings { version: Some(version), ..OpenSettings::default() };
        let graph = Graph::open_with(store.clone(), &opened).await.unwrap();
        let Some(position) = graph.source_position("company") else { continue };
        let of_source = position.split(' ').next().unwrap().to_owned();
        if of_source == last || position.contains("copying") {
            continue;
        }
        let expected = history(&of_source);
        let last_of = expected.last().unwrap_or_else(|| panic!("no transaction ended at {of_source}"));
        let found = Model::of_graph(&graph).await;
        assert!(
            expected.contains(&&found),
            "version {version} at {position}: graph | tables\n{}",
            found.difference(last_of)
        );
        checked += 1;
        last = of_source;
    }
    checked
}
