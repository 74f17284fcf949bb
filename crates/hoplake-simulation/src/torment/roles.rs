//! What processes do until they are killed: write, compact, vacuum.
//!
//! Each says on standard output what it does, one line a step, before it goes on: [`super::ledger`] holds it to that. A
//! process keeps nothing: how far a writer is, it reads from the source position in the graph. It ends by itself only
//! when nobody reads its lines any more.

use std::{
    process,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use hoplake::{CompactionSettings, Error, ErrorKind, Graph, Store, VacuumSettings};
use hoplake_storage::planted::{Bug, plant};
use hoplake_testkit::generate::SplitMix64;

use super::script::{Attempt, source};

/// Past versions that were the newest so long ago stay.
const KEPT: Duration = Duration::from_secs(4);

/// Past versions that stay, at least.
const KEPT_VERSIONS: u64 = 20;

/// Whoever announced itself longer ago is taken for dead.
const DEAD_AFTER: Duration = Duration::from_secs(8);

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Commits batches, one after the other; its number.
    Writer(u32),
    /// Compacts again and again.
    Compactor,
    /// Vacuums again and again.
    Vacuum,
}

impl Role {
    /// As it is named on the command line.
    pub(super) fn arguments(self) -> Vec<String> {
        match self {
            Self::Writer(number) => vec!["writer".into(), "--number".into(), number.to_string()],
            Self::Compactor => vec!["compactor".into()],
            Self::Vacuum => vec!["vacuum".into()],
        }
    }
}

/// Does what a role does at the graph at `url`, for ever.
///
/// # Errors
/// If `url` is no store.
pub fn play(role: Role, url: &str, seed: u64, bug: Option<Bug>) -> Result<(), Error> {
    // One thread: mistakes are planted in threads.
    plant(bug, seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    let store = Store::open(url)?;
    let random = SplitMix64::new(seed);
    runtime.block_on(async {
        match role {
            Role::Writer(number) => write(&store, number, random).await,
            Role::Compactor => compact(&store, random).await,
            Role::Vacuum => vacuum(&store, random).await,
        }
    })
}

/// Says a line, and that it is whole. If nobody listens any more, it panics, which ends the process.
fn say(line: impl std::fmt::Display) {
    println!("{line}.");
}

async fn pause(random: &mut SplitMix64, longest_ms: u64) {
    tokio::time::sleep(Duration::from_millis(random.below(longest_ms))).await;
}

/// What a step that failed has to say of itself: that it failed, if there may be such failures, or that it is wrong.
fn failure(what: &str, error: &Error) -> String {
    let text = error.to_string().replace('\n', " ");
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Conflict | ErrorKind::Unknown => format!("failed {what} {text}"),
        // A version that was let go while it was read: whether one is damaged that was not, the checker finds.
        ErrorKind::Corrupt | ErrorKind::NotFound if expired(&text) => format!("expired {what} {text}"),
        kind => format!("wrong {what} ended as {kind:?}: {text}"),
    }
}

fn expired(text: &str) -> bool {
    text.ends_with("does not exist") || text.contains("was removed by a vacuum")
}

async fn write(store: &Store, number: u32, mut random: SplitMix64) -> ! {
    let mut graph = loop {
        match Graph::open_with(store.clone(), &Default::default()).await {
            Ok(graph) => break graph,
            Err(error) => say(failure("open", &error)),
        }
        pause(&mut random, 100).await;
    };
    let mut committed: Option<Attempt> = None;
    let mut tries = 0;
    loop {
        if let Err(error) = graph.refresh().await {
            say(failure("refresh", &error));
            pause(&mut random, 100).await;
            continue;
        }
        let last = graph.source_position(&source(number)).and_then(|it| Attempt::at_position(number, it));
        if let Some(own) = committed.take().filter(|own| last.as_ref() != Some(own)) {
            say(format!("wrong refresh after {own} was committed leads to {last:?}"));
        }
        tries += 1;
        let batch = last.map_or(1, |last| last.batch + 1);
        let attempt = Attempt { writer: number, batch, name: format!("{}x{tries}", process::id()) };
        say(format!("began {}", attempt.position()));
        match graph.apply(attempt.changes(Some(graph.version()))).await {
            Ok(done) => {
                say(format!("acknowledged {} {}", attempt.position(), done.version));
                committed = Some(attempt);
            }
            Err(error) if error.kind() == ErrorKind::Unknown => say(format!("unknown {}", attempt.position())),
            Err(error) => {
                say(format!("refused {}", attempt.position()));
                say(failure("commit", &error));
            }
        }
        pause(&mut random, 200).await;
    }
}

async fn compact(store: &Store, mut random: SplitMix64) -> ! {
    loop {
        let everything = random.below(4) == 0;
        let settings = CompactionSettings { memory_bytes: 64 << 20, everything, ..CompactionSettings::default() };
        match Graph::compact(store, &settings).await {
            Ok(done) => say(format!("compacted {} {}", done.merges, done.parts)),
            Err(error) => say(failure("compaction", &error)),
        }
        pause(&mut random, 500).await;
    }
}

async fn vacuum(store: &Store, mut random: SplitMix64) -> ! {
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ago = |time: Duration| now.saturating_sub(time).as_millis() as u64;
        let settings = VacuumSettings {
            keep_versions: Some(KEPT_VERSIONS),
            keep_since_unix_ms: Some(ago(KEPT)),
            announced_before_unix_ms: ago(DEAD_AFTER),
            // Of the newest version, too: whoever is at work on it has to begin again.
            written_before_unix_ms: ago(Duration::from_millis(random.below(4_000))) as i64,
            ..VacuumSettings::default()
        };
        match Graph::vacuum(store, &settings).await {
            Ok(done) => say(format!("vacuumed {} {} {}", done.versions, done.objects, done.aborted.len())),
            Err(error) => say(failure("vacuum", &error)),
        }
        pause(&mut random, 1_000).await;
    }
}
