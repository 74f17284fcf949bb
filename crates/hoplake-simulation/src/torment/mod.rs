//! The real thing: processes that are killed at random, a real S3 server, and a network before it that breaks.
//!
//! ```text
//! writers, compactor, vacuum ──▶ proxy that breaks ──▶ S3 server ◀── checker
//!      ▲ SIGKILL, and another in its place                              ▲
//!      └───────────────────────── this process ─────────────────────────┘
//! ```
//! The deterministic simulation decides what happens in which order, and so finds what a seed finds again. This here cannot: it is
//! for what a model of a store, of a client or of a process may have left out. Processes are this program in another
//! role (`roles`); what they write shows halves and doubles (`script`); what they were told is noted (`ledger`) and
//! held against what can be read past the proxy (`check`).

mod check;
mod crew;
mod ledger;
mod roles;
mod script;

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use hoplake::{
    CompactionSettings, Graph, LoadOptions, OpenSettings, ReadPool, ReadSettings, Reader, Store, VacuumSettings,
    load_with,
};
use hoplake_storage::planted::Bug;
use hoplake_testkit::{S3Server, TcpFault, TcpProxy, generate::SplitMix64};

use crew::{Orders, Worker};
use ledger::{Ledger, Outcome};
use script::Attempt;

pub use roles::{Role, play};

/// Where the graph is in the bucket.
const PREFIX: &str = "torment/graph";

/// Past versions that are read at the end.
const VERSIONS_READ: u64 = 8;

/// How a graph is tormented.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Torment {
    /// For so long.
    pub time: Duration,
    /// Decides which processes are killed, and which faults there are. When each meets the other is chance.
    pub seed: u64,
    /// Processes that commit.
    pub writers: u32,
    /// A mistake that all processes make.
    pub bug: Option<Bug>,
}

/// What happened.
#[derive(Debug, Clone, Default)]
pub struct Tormented {
    /// One line for each count.
    pub lines: Vec<String>,
}

impl Torment {
    /// Torments a graph, and checks it after each death and at the end.
    ///
    /// # Errors
    /// What does not hold, with what was expected and what was found; or that something could not be started.
    pub fn run(&self) -> anyhow::Result<Tormented> {
        let server = S3Server::start()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(self.run_before(&server))
    }

    async fn run_before(&self, server: &S3Server) -> anyhow::Result<Tormented> {
        let proxy = TcpProxy::start(&server.endpoint(), self.seed).await?;
        let store = Store::new(Arc::new(server.store()), PREFIX.into(), &server.url(PREFIX));
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let orders = Orders {
            url: server.url(PREFIX),
            environment: server.env_at(&proxy.endpoint()),
            bug: self.bug,
            ledger: ledger.clone(),
        };
        let pool = ReadPool::new(ReadSettings::default())?;
        let random = SplitMix64::new(self.seed);
        let mut run = Run { torment: *self, store, pool, orders, random, kills: 0, checks: 0 };
        run.begin().await?;
        run.torment(&proxy).await?;
        run.end(&proxy).await
    }
}

struct Run {
    torment: Torment,
    store: Store,
    /// What was read of one version need not be read for the next, but for what is verified.
    pool: Arc<ReadPool>,
    orders: Orders,
    random: SplitMix64,
    kills: u64,
    checks: u64,
}

impl Run {
    fn ledger(&self) -> Ledger {
        self.orders.ledger.lock().expect("nobody panics with the ledger").clone()
    }

    /// A version, past the proxy.
    async fn open(&self, version: Option<u64>) -> Result<Graph, hoplake::Error> {
        let reader = Reader::new(self.store.clone(), self.pool.clone());
        Graph::open_through(reader, &OpenSettings { version, ..OpenSettings::default() }).await
    }

    /// Makes a graph in which each writer has written once.
    async fn begin(&self) -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("edges.csv");
        std::fs::write(&file, "1,2\n")?;
        load_with(self.store.clone(), LoadOptions::from_paths([file]), Arc::new(())).await?;
        let graph = self.open(None).await?;
        for writer in 1..=self.torment.writers {
            let first = Attempt { writer, batch: 1, name: "first".into() };
            let done = graph.apply(first.changes(None)).await?;
            let mut ledger = self.orders.ledger.lock().expect("nobody panics with the ledger");
            ledger.attempts.insert(first, Outcome::Acknowledged(done.version));
        }
        Ok(())
    }

    /// Lets processes work, kills them, and changes the weather.
    async fn torment(&mut self, proxy: &TcpProxy) -> anyhow::Result<()> {
        let roles = (1..=self.torment.writers).map(Role::Writer).chain([Role::Compactor, Role::Vacuum]);
        let mut workers = Vec::new();
        for role in roles {
            workers.push(Worker::start(role, self.random.next_u64(), &self.orders)?);
        }
        let until = Instant::now() + self.torment.time;
        while Instant::now() < until {
            proxy.set_faults(weather(&mut self.random));
            tokio::time::sleep(Duration::from_millis(200 + self.random.below(1_300))).await;
            let victim = self.random.below(workers.len() as u64) as usize;
            let role = workers[victim].role;
            workers[victim].kill()?;
            self.kills += 1;
            let begun = Instant::now();
            let (version, batches) = self.check_newest().await?;
            let left_s = until.saturating_duration_since(Instant::now()).as_secs();
            eprintln!(
                "{role:?} was killed; version {version} with {batches} batches holds, read in {:.1} s; {left_s} s left",
                begun.elapsed().as_secs_f64()
            );
            workers[victim] = Worker::start(role, self.random.next_u64(), &self.orders)?;
        }
        workers.iter_mut().try_for_each(Worker::kill)
    }

    /// The newest version, while others work.
    async fn check_newest(&mut self) -> anyhow::Result<(u64, usize)> {
        let ledger = self.ledger();
        self.checks += 1;
        let mut graph = self.open(None).await?;
        let mut found = self.check(&graph, &ledger).await;
        // The vacuum is at work: what was the newest may be gone before it is read.
        while found.is_err() && !graph.is_there().await? {
            graph = self.open(None).await?;
            found = self.check(&graph, &ledger).await;
        }
        let seen = found.with_context(|| format!("version {}, check {}", graph.version(), self.checks))?;
        Ok((graph.version(), seen.values().map(|batches| batches.len()).sum()))
    }

    async fn check(&self, graph: &Graph, ledger: &Ledger) -> anyhow::Result<check::Seen> {
        ensure!(ledger.wrong.is_none(), "{}", ledger.wrong.clone().unwrap_or_default());
        let seen = check::read(graph, self.torment.writers).await?;
        check::hold(&seen, graph.version(), ledger)?;
        graph.verify(|_| ()).await?;
        Ok(seen)
    }

    /// When nobody works any more: all versions, then what a last compaction and a last vacuum leave of them.
    async fn end(mut self, proxy: &TcpProxy) -> anyhow::Result<Tormented> {
        // What stalled in the proxy may still take effect.
        proxy.set_faults([]);
        tokio::time::sleep(Duration::from_secs(4)).await;
        let ledger = self.ledger();
        eprintln!("all processes are dead, {} times in all; reading all versions", self.kills);
        // Past versions came under vacuums that were killed; more than some take minutes to read.
        let some = VacuumSettings { keep_versions: Some(VERSIONS_READ), ..VacuumSettings::default() };
        Graph::vacuum(&self.store, &some).await.context("the vacuum before the end")?;
        self.check_versions(&ledger).await?;
        let settings = CompactionSettings { everything: true, ..CompactionSettings::default() };
        eprintln!("all versions hold; a last compaction and a last vacuum");
        Graph::compact(&self.store, &settings).await.context("the last compaction")?;
        let all = VacuumSettings {
            keep_versions: Some(3),
            announced_before_unix_ms: u64::MAX,
            written_before_unix_ms: i64::MAX,
            ..VacuumSettings::default()
        };
        Graph::vacuum(&self.store, &all).await.context("the last vacuum")?;
        let kept = self.check_versions(&ledger).await?;
        let newest = kept.last().context("a graph has a version")?;
        let graph = self.open(None).await?;
        let named = graph.manifest().objects().len();
        ensure!(graph.version() == newest.0, "version {} came after all was done", graph.version());
        Ok(self.tell(proxy, &ledger, newest, named))
    }

    /// All versions that can be opened, oldest first.
    async fn check_versions(&mut self, ledger: &Ledger) -> anyhow::Result<Vec<(u64, check::Seen)>> {
        let acknowledged = |(attempt, outcome): (&Attempt, &Outcome)| match outcome {
            Outcome::Acknowledged(version) => Some((attempt.batch, *version)),
            _ => None,
        };
        let acknowledged = || ledger.attempts.iter().filter_map(acknowledged);
        // From then on all writers have written.
        let first = acknowledged().filter(|(batch, _)| *batch == 1).map(|(_, version)| version).max().unwrap_or(1);
        let versions = Graph::versions(&self.store).await?;
        let (newest, last) = (versions.last().copied(), acknowledged().map(|(_, version)| version).max());
        ensure!(newest >= last, "version {last:?} was acknowledged, the newest is {newest:?}");
        let mut checked = Vec::new();
        for version in versions.into_iter().filter(|version| *version >= first) {
            let checked_one = async { self.check(&self.open(Some(version)).await?, ledger).await };
            let seen = checked_one.await.with_context(|| format!("version {version}, at the end"))?;
            check::hold_begun(&seen, ledger).with_context(|| format!("version {version}, at the end"))?;
            checked.push((version, seen));
            self.checks += 1;
        }
        Ok(checked)
    }

    fn tell(&self, proxy: &TcpProxy, ledger: &Ledger, newest: &(u64, check::Seen), named: usize) -> Tormented {
        let (version, seen) = newest;
        let visible = |it: &Attempt| seen.get(&it.writer).and_then(|it2| it2.get(&it.batch)) == Some(&it.name);
        let turned_out = |outcome: Outcome, name: &str| {
            let all = ledger.count(|_, found| found == outcome);
            let there = ledger.count(|attempt, found| found == outcome && visible(attempt));
            format!("{name}: {all}, of which {there} turned out to be there and {} not", all - there)
        };
        let acknowledged = ledger.count(|_, outcome| matches!(outcome, Outcome::Acknowledged(_)));
        let refused = ledger.count(|_, outcome| outcome == Outcome::Refused);
        let faults = proxy.counts().into_iter().map(|(fault, count)| format!("{fault:?} {count}"));
        let failed = ledger.failed.iter().map(|(what, count)| format!("{what} {count}"));
        let Ledger { compactions, merges, parts, vacuums, versions_removed, objects_removed, aborted, .. } = ledger;
        let lines = vec![
            format!(
                "seed {}: {:.0} s, {} writers",
                self.torment.seed,
                self.torment.time.as_secs_f64(),
                self.torment.writers
            ),
            format!("commits acknowledged: {acknowledged}; refused, and not there: {refused}"),
            turned_out(Outcome::Unknown, "commits of which the writer was told that nobody knows"),
            turned_out(Outcome::Began, "commits whose writer was killed"),
            format!("kills: {}; checks of a version: {}", self.kills, self.checks),
            format!("faults on {} connections: {}", proxy.connections(), faults.collect::<Vec<_>>().join(", ")),
            format!("versions: {version}; objects of the last: {named}"),
            format!("compactions: {compactions}, {parts} parts merged into {merges}"),
            format!(
                "vacuums: {vacuums}, which removed {versions_removed} versions and {objects_removed} objects, and took \
                 {aborted} writers for dead"
            ),
            format!("steps that failed: {}", failed.collect::<Vec<_>>().join(", ")),
        ];
        Tormented { lines }
    }
}

/// What breaks for a while: nothing, one kind of fault, all kinds, or everything.
fn weather(random: &mut SplitMix64) -> Vec<(TcpFault, f64)> {
    match random.below(8) {
        0 | 1 => Vec::new(),
        2..=4 => vec![(TcpFault::ALL[random.below(7) as usize], 0.02 + 0.1 * random.unit())],
        5 | 6 => TcpFault::ALL.into_iter().map(|fault| (fault, 0.02 * random.unit())).collect(),
        _ => vec![(TcpFault::Refuse, 1.0), (TcpFault::Reset, 0.5)],
    }
}
