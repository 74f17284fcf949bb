//! What processes do until they are killed: write, compact, vacuum.
//!
//! Each reports every step on standard output, one line a step, before it continues: [`super::ledger`] holds it to
//! that, and to the time that each step may take. A process keeps nothing: how far a writer is, it reads from the
//! source position in the graph. It ends by itself only when its pipe is closed.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use hoplake::{
    Batch, CompactionSettings, Error, ErrorKind, Graph, Hop, HopDirection, Store, VacuumSettings, VertexRef,
};
use hoplake_testkit::generate::SplitMix64;

use super::{
    command_line::{Applied, CommandLine},
    script::{Attempt, WINDOW, source, writer},
};

/// What a commit, a compaction, a vacuum and `hoplake apply` may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15);

/// Names of the steps by which a writer commits.
const COMMIT: &str = "commit";
const APPLY: &str = "apply";

/// Past versions that were the newest so long ago stay.
const KEPT: Duration = Duration::from_secs(4);

/// Past versions that stay, at least.
const KEPT_VERSIONS: u64 = 20;

/// A writer that announced itself longer ago is taken for dead.
// Less than a compaction may take, so that some that still live are aborted, and have to notice.
const DEAD_AFTER: Duration = Duration::from_secs(8);

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Commits batches, one after the other; its number.
    Writer(u32),
    /// Commits batches with the command `hoplake apply`; its number among the writers.
    Applier(u32),
    /// Compacts again and again.
    Compactor,
    /// Vacuums again and again.
    Vacuum,
}

impl Role {
    /// As it is named on the command line.
    pub(super) fn arguments(self) -> Vec<String> {
        let numbered = |name: &str, number: u32| vec![name.into(), "--number".into(), number.to_string()];
        match self {
            Self::Writer(number) => numbered("writer", number),
            Self::Applier(number) => numbered("applier", number),
            Self::Compactor => vec!["compactor".into()],
            Self::Vacuum => vec!["vacuum".into()],
        }
    }

    /// Its number among the writers.
    pub(super) fn writer(self) -> Option<u32> {
        match self {
            Self::Writer(number) | Self::Applier(number) => Some(number),
            Self::Compactor | Self::Vacuum => None,
        }
    }

    /// The step by which it commits.
    pub(super) fn commits_by(self) -> Option<&'static str> {
        match self {
            Self::Writer(_) => Some(COMMIT),
            Self::Applier(_) => Some(APPLY),
            Self::Compactor | Self::Vacuum => None,
        }
    }
}

/// How a process is started.
#[derive(Debug, Clone)]
pub struct Play {
    /// What it does.
    pub role: Role,
    /// Where the graph is.
    pub url: String,
    /// Of its pauses.
    pub seed: u64,
    /// The `hoplake` command, for an applier.
    pub hoplake: Option<PathBuf>,
}

impl Play {
    /// Does what its role does, for ever.
    ///
    /// # Errors
    /// If the URL is not that of a store, or an applier lacks the command.
    pub fn run(&self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let store = Store::open(&self.url)?;
        let random = SplitMix64::new(self.seed);
        runtime.block_on(async {
            match self.role {
                Role::Writer(number) => write(&store, number, random, &Committing::Library).await,
                Role::Applier(number) => {
                    let commands = CommandLine::new(self.hoplake.as_deref(), &self.url)?;
                    write(&store, number, random, &Committing::CommandLine(commands)).await
                }
                Role::Compactor => compact(&store, random).await,
                Role::Vacuum => vacuum(&store, random).await,
            }
        })
    }
}

/// Prints a line with an end marker. If the pipe is closed, it panics, which ends the process.
fn say(line: impl std::fmt::Display) {
    // A line without its end was cut by the kill, and says nothing.
    println!("{line}.");
}

async fn pause(random: &mut SplitMix64, longest_ms: u64) {
    tokio::time::sleep(Duration::from_millis(random.below(longest_ms))).await;
}

/// The report of a failed step: an expected failure, or a violation.
fn failure(what: &str, kind: ErrorKind, text: &str) -> String {
    let text = text.replace('\n', " ");
    match kind {
        ErrorKind::Unavailable | ErrorKind::Conflict | ErrorKind::Unknown => format!("failed {what} {text}"),
        // Its time was over.
        ErrorKind::Limit if matches!(what, "compaction" | "vacuum") => format!("failed {what} {text}"),
        // A version that was let go while it was read: whether one is damaged that was not, the checker finds.
        ErrorKind::Corrupt | ErrorKind::NotFound if expired(&text) => format!("expired {what} {text}"),
        kind => format!("wrong {what} ended as {kind:?}: {text}"),
    }
}

fn say_failed(what: &str, error: &Error) {
    say(failure(what, error.kind(), &error.to_string()));
}

fn expired(text: &str) -> bool {
    text.contains("does not exist") || text.contains("was removed by a vacuum")
}

/// How a writer commits.
enum Committing {
    Library,
    CommandLine(CommandLine),
}

impl Committing {
    async fn apply(&self, graph: &Graph, batch: Batch) -> Applied {
        match self {
            Self::Library => Applied::of(graph.apply(batch).await),
            Self::CommandLine(commands) => commands.apply(&batch).await,
        }
    }

    /// The name of the step.
    fn step(&self) -> &'static str {
        match self {
            Self::Library => COMMIT,
            Self::CommandLine(_) => APPLY,
        }
    }
}

async fn open(store: &Store, random: &mut SplitMix64) -> Graph {
    loop {
        say("tries open");
        match Graph::open_with(store.clone(), &Default::default()).await {
            Ok(graph) => {
                say("done open");
                graph.set_commit_timeout(TIMEOUT);
                return graph;
            }
            Err(error) => say_failed("open", &error),
        }
        pause(random, 100).await;
    }
}

async fn write(store: &Store, number: u32, mut random: SplitMix64, by: &Committing) -> ! {
    let mut graph = open(store, &mut random).await;
    let mut written = WriterItems { number, items: BTreeMap::new(), last: None };
    let mut committed: Option<Attempt> = None;
    let mut tries = 0;
    loop {
        say("tries refresh");
        let last = match refreshed(&mut graph, &mut written).await {
            Ok(last) => last,
            Err(error) => {
                say_failed("refresh", &error);
                pause(&mut random, 100).await;
                continue;
            }
        };
        say("done refresh");
        // What was acknowledged to this process must be in the version that its next refresh leads to.
        if let Some(own) = committed.take().filter(|own| last.as_ref() != Some(own)) {
            say(format!("wrong refresh after {own} was committed leads to {last:?}"));
        }
        tries += 1;
        let batch = last.map_or(1, |last| last.batch + 1);
        // Another attempt at the batch has another name, in this process and in the one that follows it.
        let attempt = Attempt { writer: number, batch, name: format!("{}x{tries}", process::id()) };
        let changes = attempt.changes(Some(graph.version()), &written.old(batch));
        // Before anything is sent: otherwise a kill could leave a batch in the graph that no one knows of.
        say(format!("began {}", attempt.position()));
        match by.apply(&graph, changes).await {
            Applied::Version(version) => {
                say(format!("acknowledged {} {version}", attempt.position()));
                written.add(&attempt);
                committed = Some(attempt);
            }
            Applied::Failed(ErrorKind::Unknown, _) => say(format!("unknown {}", attempt.position())),
            Applied::Failed(kind, text) => {
                say(format!("rejected {}", attempt.position()));
                say(failure(by.step(), kind, &text));
            }
        }
        pause(&mut random, 200).await;
    }
}

/// The newest version, and the last batch of the writer there.
async fn refreshed(graph: &mut Graph, written: &mut WriterItems) -> Result<Option<Attempt>, Error> {
    graph.refresh().await?;
    let position = graph.source_position(&source(written.number));
    let last = position.and_then(|it| Attempt::at_position(written.number, it));
    // Otherwise what this process wrote itself is all there is, and reading it again would only cost requests.
    if written.last != last {
        written.read(graph).await?;
        written.last.clone_from(&last);
    }
    Ok(last)
}

/// The items of one writer in a version.
struct WriterItems {
    number: u32,
    /// By batch.
    items: BTreeMap<u64, Vec<VertexRef>>,
    /// The batch with which they end.
    last: Option<Attempt>,
}

impl WriterItems {
    /// Those that go with a batch.
    fn old(&self, batch: u64) -> Vec<VertexRef> {
        self.items.get(&batch.saturating_sub(WINDOW)).cloned().unwrap_or_default()
    }

    fn add(&mut self, attempt: &Attempt) {
        self.items.insert(attempt.batch, attempt.all_items());
        self.items.retain(|batch, _| batch + WINDOW > attempt.batch);
        self.last = Some(attempt.clone());
    }

    /// Reads them all, since another process may have written.
    async fn read(&mut self, graph: &Graph) -> Result<(), Error> {
        let mut query = graph.query();
        let end = writer(self.number);
        self.items.clear();
        let Some(id) = query.vertex(&end.label, end.key).await? else { return Ok(()) };
        let edges = query.neighbors(&[id], &Hop::along(HopDirection::Out, "wrote")).await?;
        let keys = query.keys_of(edges.targets()).await?;
        for key in keys {
            if let Some((attempt, _)) = Attempt::of_item(&key.to_string()) {
                self.items.entry(attempt.batch).or_default().push(VertexRef::new("Item", key));
            }
        }
        Ok(())
    }
}

async fn compact(store: &Store, mut random: SplitMix64) -> ! {
    loop {
        let everything = random.below(4) == 0;
        let timeout_ms = Some(TIMEOUT.as_millis() as u64);
        let settings = CompactionSettings { memory_bytes: 64 << 20, everything, timeout_ms, ..Default::default() };
        say("tries compaction");
        match Graph::compact(store, &settings).await {
            Ok(done) => say(format!("compacted {} {}", done.merges, done.runs)),
            Err(error) => say_failed("compaction", &error),
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
            // Of the newest version, too: a writer at work on it has to begin again.
            written_before_unix_ms: ago(Duration::from_millis(random.below(4_000))) as i64,
            timeout_ms: Some(TIMEOUT.as_millis() as u64),
            ..VacuumSettings::default()
        };
        say("tries vacuum");
        match Graph::vacuum(store, &settings).await {
            Ok(done) => say(format!("vacuumed {} {} {}", done.versions, done.objects, done.aborted.len())),
            Err(error) => say_failed("vacuum", &error),
        }
        pause(&mut random, 1_000).await;
    }
}
