//! A run: a graph is made, processes work on it and are killed while the network breaks, and at the end all is read
//! again.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use hoplake::{
    CompactionSettings, Graph, LoadOptions, OpenSettings, ReadPool, Reader, Store, VacuumSettings, load_with,
};
use hoplake_testkit::{HoplakeServer, TcpFault, TcpProxy, generate::SplitMix64};
use tokio::task::JoinSet;

use super::{
    ChaosReport, ChaosTest, check,
    clients::ServerClient,
    crew::{Orders, Worker},
    ledger::{Ledger, Outcome},
    memory::Watch,
    roles::{Role, TIMEOUT},
    script::Attempt,
    server,
};

/// Past versions that are read at the end.
const VERSIONS_READ: u64 = 8;

/// Clients of each server.
const CLIENTS: u64 = 2;

/// One kill in this many is that of a server that may be killed.
const KILLS_PER_SERVER_KILL: u64 = 30;

/// How long a step may take beyond its deadline: for looking what became of it, on a machine that has other things to
/// do.
const SLACK: Duration = Duration::from_secs(10);

/// A compaction may take so long to take its name out when its time is over.
const WITHDRAWAL: Duration = Duration::from_secs(30);

/// The maximum of steps without a deadline: each of their requests has 15 seconds and five attempts.
const TRIES: Duration = Duration::from_secs(90);

/// After the last fault all go on for so long, or for half of the run if that is less, before they are killed.
const CALM: Duration = Duration::from_secs(15);

/// The test waits for this many compactions before it judges what they left, but not longer than one may take to end.
const COMPACTIONS_IN_CALM: u64 = 3;

/// A server answers, and from the newest version, when its store has been there for so long.
const RECOVERY: Duration = Duration::from_secs(20);

/// Sorted runs of one section, at most, after writers and the compactor were at work without faults: a compaction that
/// others keep from its end leaves hundreds.
const RUNS_MAX: usize = 120;

/// At least one in this many compactions that ended has published something.
const COMPACTIONS_PER_MERGE: u64 = 4;

pub(super) struct Run {
    pub(super) chaos: ChaosTest,
    store: Store,
    /// What was read of one version need not be read for the next, but for what is verified.
    pool: Arc<ReadPool>,
    pub(super) orders: Orders,
    random: SplitMix64,
    begun: Instant,
    pub(super) kills: u64,
    pub(super) server_kills: u64,
    pub(super) checks: u64,
    pub(super) watch: Arc<Watch>,
    pub(super) asked: Vec<ServerClient>,
    /// Attempts that some version contained.
    pub(super) seen: BTreeMap<Attempt, u64>,
    /// Sorted runs before the last compaction.
    pub(super) runs: usize,
    pub(super) recovered: Duration,
}

/// Which processes there are.
struct Crew {
    workers: Vec<Worker>,
    servers: Vec<HoplakeServer>,
}

impl Run {
    pub(super) fn new(chaos: ChaosTest, store: Store, pool: Arc<ReadPool>, orders: Orders, random: SplitMix64) -> Self {
        Self {
            chaos,
            store,
            pool,
            orders,
            random,
            begun: Instant::now(),
            kills: 0,
            server_kills: 0,
            checks: 0,
            watch: Arc::default(),
            asked: Vec::new(),
            seen: BTreeMap::new(),
            runs: 0,
            recovered: Duration::ZERO,
        }
    }

    fn ledger(&self) -> Ledger {
        self.orders.ledger().clone()
    }

    /// A version, past the proxy.
    async fn open(&self, version: Option<u64>) -> Result<Graph, hoplake::Error> {
        let reader = Reader::new(self.store.clone(), self.pool.clone());
        Graph::open_through(reader, &OpenSettings { version, ..OpenSettings::default() }).await
    }

    /// Makes a graph in which each writer has written once.
    pub(super) async fn begin(&self) -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("edges.csv");
        std::fs::write(&file, "1,2\n")?;
        load_with(self.store.clone(), LoadOptions::from_paths([file]), Arc::new(())).await?;
        let graph = self.open(None).await?;
        for writer in 1..=self.chaos.committers() {
            let first = Attempt { writer, batch: 1, name: "first".into() };
            let done = graph.apply(first.changes(None, &[])).await?;
            self.orders.ledger().attempts.insert(first, Outcome::Acknowledged(done.version));
        }
        Ok(())
    }

    fn start(&mut self) -> anyhow::Result<Crew> {
        let ChaosTest { writers, appliers, servers, .. } = self.chaos;
        let roles = (1..=writers).map(Role::Writer).chain((1..=appliers).map(|number| Role::Applier(writers + number)));
        let mut workers = Vec::new();
        for role in roles.chain([Role::Compactor, Role::Vacuum]) {
            workers.push(self.start_worker(role)?);
        }
        let mut crew = Crew { workers, servers: Vec::new() };
        for number in 1..=servers {
            let server = self.start_server(number)?;
            let asked = ServerClient::new(number, self.chaos.committers(), self.orders.ledger.clone());
            asked.is_up(server.http());
            self.asked.push(asked);
            crew.servers.push(server);
        }
        Ok(crew)
    }

    fn start_worker(&mut self, role: Role) -> anyhow::Result<Worker> {
        let worker = Worker::start(role, self.random.next_u64(), &self.orders)?;
        self.watch.name(format!("{role:?}"), worker.process_id());
        Ok(worker)
    }

    fn start_server(&self, number: u32) -> anyhow::Result<HoplakeServer> {
        let server = server::start(&self.orders)?;
        self.watch.name(format!("server {number}"), server.process_id());
        Ok(server)
    }

    /// Lets processes work, kills them, and changes what breaks.
    pub(super) async fn chaos(&mut self, proxy: &TcpProxy) -> anyhow::Result<()> {
        let mut crew = self.start()?;
        self.begun = Instant::now();
        let mut clients = JoinSet::new();
        for asked in &self.asked {
            for _ in 0..CLIENTS {
                clients.spawn(asked.clone().ask_on(SplitMix64::new(self.random.next_u64())));
            }
        }
        let watch = self.watch.clone();
        let begun = self.begun;
        clients.spawn(async move { watch.go_on(begun).await });
        let schedule = change_faults(proxy, SplitMix64::new(self.random.next_u64()));
        let killed = tokio::select! {
            () = schedule => Ok(()),
            killed = self.kill_on(&mut crew) => killed,
        };
        proxy.set_faults([]);
        killed?;
        // The writers continue: a compaction has to make progress next to them.
        let before = self.orders.ledger().compactions;
        tokio::time::sleep(CALM.min(self.chaos.time / 2)).await;
        // One that hung when the last fault ended first has to learn of it.
        let more = Instant::now();
        while self.orders.ledger().compactions < before + COMPACTIONS_IN_CALM && more.elapsed() < WITHDRAWAL {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        self.recover(&crew).await?;
        self.check_steps()?;
        crew.workers.iter_mut().try_for_each(Worker::kill)?;
        clients.shutdown().await;
        self.asked.iter().try_for_each(ServerClient::check)?;
        self.asked.iter().for_each(ServerClient::goes_down);
        let mut servers = (1..).zip(&mut crew.servers);
        servers.try_for_each(|(number, server)| kill_server(number, server))
    }

    /// Kills one after the other, and reads the newest version after each death.
    async fn kill_on(&mut self, crew: &mut Crew) -> anyhow::Result<()> {
        let until = self.begun + self.chaos.time;
        while Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(200 + self.random.below(1_300))).await;
            self.check_steps()?;
            let begun = Instant::now();
            let killed = self.kill_one(crew)?;
            let (version, batches) = self.check_newest().await?;
            let left_s = until.saturating_duration_since(Instant::now()).as_secs();
            eprintln!(
                "{killed} was killed; version {version} with {batches} batches holds, read in {:.1} s; {left_s} s left",
                begun.elapsed().as_secs_f64()
            );
        }
        Ok(())
    }

    /// Kills a process that may be killed, and starts its successor.
    fn kill_one(&mut self, crew: &mut Crew) -> anyhow::Result<String> {
        self.kills += 1;
        let mortal_servers = crew.servers.len().saturating_sub(1) as u64;
        if mortal_servers > 0 && self.random.below(KILLS_PER_SERVER_KILL) == 0 {
            self.server_kills += 1;
            let victim = 1 + self.random.below(mortal_servers) as usize;
            self.asked[victim].goes_down();
            let number = victim as u32 + 1;
            kill_server(number, &mut crew.servers[victim])?;
            crew.servers[victim] = self.start_server(number)?;
            self.asked[victim].is_up(crew.servers[victim].http());
            return Ok(format!("server {number}"));
        }
        let victim = 1 + self.random.below(crew.workers.len() as u64 - 1) as usize;
        let role = crew.workers[victim].role;
        crew.workers[victim].kill()?;
        crew.workers[victim] = self.start_worker(role)?;
        Ok(format!("{role:?}"))
    }

    /// Checks that no step exceeds its maximum, no process reports a violation, and no server is silent.
    fn check_steps(&self) -> anyhow::Result<()> {
        let ledger = self.orders.ledger();
        let wrong = ledger.wrong.clone().or_else(|| ledger.hanging(may_take)).or_else(|| ledger.too_long(may_take));
        ensure!(wrong.is_none(), "{}", wrong.unwrap_or_default());
        drop(ledger);
        self.asked.iter().try_for_each(ServerClient::check)
    }

    /// The network is there again: all servers answer, and from what is the newest version now, or a later one.
    async fn recover(&mut self, crew: &Crew) -> anyhow::Result<()> {
        for (asked, server) in self.asked.iter().zip(&crew.servers) {
            let newest = Graph::newest(&self.store).await?.version;
            let took = asked.recovers(RECOVERY, newest).await.with_context(|| format!("at {}", server.http()))?;
            self.recovered = self.recovered.max(took);
        }
        Ok(())
    }

    /// The newest version, while others work.
    async fn check_newest(&mut self) -> anyhow::Result<(u64, usize)> {
        let ledger = self.ledger();
        self.checks += 1;
        let mut graph = self.open(None).await?;
        let mut found = self.check(&graph, &ledger).await;
        // The vacuum is at work: the newest version may be removed before it is read.
        while found.is_err() && !graph.is_there().await? {
            graph = self.open(None).await?;
            found = self.check(&graph, &ledger).await;
        }
        let seen = found.with_context(|| format!("version {}, check {}", graph.version(), self.checks))?;
        self.remember(&seen, graph.version());
        Ok((graph.version(), seen.values().map(|batches| batches.len()).sum()))
    }

    fn remember(&mut self, seen: &check::VersionBatches, version: u64) {
        for (writer, batches) in seen {
            for (batch, name) in batches {
                self.seen.insert(Attempt { writer: *writer, batch: *batch, name: name.clone() }, version);
            }
        }
    }

    async fn check(&self, graph: &Graph, ledger: &Ledger) -> anyhow::Result<check::VersionBatches> {
        let seen = check::read(graph, self.chaos.committers()).await?;
        check::hold(&seen, graph.version(), ledger)?;
        graph.verify(|_| ()).await?;
        Ok(seen)
    }

    /// The check after all work: all versions, then the result of a last compaction and a last vacuum.
    pub(super) async fn end(mut self, proxy: &TcpProxy) -> anyhow::Result<ChaosReport> {
        let time_s = self.begun.elapsed().as_secs_f64();
        // What stalled in the proxy may still take effect.
        tokio::time::sleep(Duration::from_secs(4)).await;
        let ledger = self.ledger();
        eprintln!("all processes are dead, {} times in all; reading all versions", self.kills);
        // Killed vacuums leave past versions; reading more than some takes minutes.
        let some = VacuumSettings { keep_versions: Some(VERSIONS_READ), ..VacuumSettings::default() };
        Graph::vacuum(&self.store, &some).await.context("the vacuum before the end")?;
        self.check_versions(&ledger).await?;
        self.runs = sorted_runs(&self.open(None).await?);
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
        let newest = *kept.last().context("a graph has a version")?;
        let graph = self.open(None).await?;
        let named = graph.manifest().objects().len();
        ensure!(graph.version() == newest, "version {} appeared after the end of all work", graph.version());
        let told = self.tell(proxy, &ledger, newest, named, time_s);
        self.demand(&ledger, time_s).inspect_err(|_| told.lines.iter().for_each(|line| eprintln!("{line}")))?;
        Ok(told)
    }

    /// All versions that can be opened, oldest first.
    async fn check_versions(&mut self, ledger: &Ledger) -> anyhow::Result<Vec<u64>> {
        let acknowledged = |(attempt, outcome): (&Attempt, &Outcome)| match outcome {
            Outcome::Acknowledged(version) => Some((attempt.batch, *version)),
            _ => None,
        };
        let acknowledged = || ledger.attempts.iter().filter_map(acknowledged);
        // From then on all writers have written.
        let first = acknowledged().filter(|(batch, _)| *batch == 1).map(|(_, version)| version).max().unwrap_or(1);
        let versions = Graph::versions(&self.store).await?;
        let newest = versions.last().copied();
        let last = acknowledged().map(|(_, version)| version).max();
        ensure!(newest >= last, "version {last:?} was acknowledged, the newest is {newest:?}");
        let mut checked = Vec::new();
        for version in versions.into_iter().filter(|version| *version >= first) {
            let checked_one = async { self.check(&self.open(Some(version)).await?, ledger).await };
            let seen = checked_one.await.with_context(|| format!("version {version}, at the end"))?;
            check::hold_begun(&seen, ledger).with_context(|| format!("version {version}, at the end"))?;
            self.remember(&seen, version);
            checked.push(version);
            self.checks += 1;
        }
        Ok(checked)
    }

    /// The checks of the entire run.
    fn demand(&self, ledger: &Ledger, time_s: f64) -> anyhow::Result<()> {
        if let Some(late) = ledger.too_long(may_take) {
            anyhow::bail!(late);
        }
        let ended = ledger.steps("compaction").ended;
        ensure!(
            ledger.merges * COMPACTIONS_PER_MERGE >= ended,
            "of {ended} compactions that were not killed only {} were published with {} merges",
            ledger.compactions,
            ledger.merges
        );
        ensure!(self.runs <= RUNS_MAX, "{} sorted runs of a section are left, at most {RUNS_MAX} should be", self.runs);
        self.watch.memory().check(time_s)
    }
}

/// How long a step may take.
fn may_take(step: &str) -> Duration {
    SLACK
        + match step {
            "commit" | "vacuum" => TIMEOUT,
            // It opens the graph, commits, and lets the hint arrive, each within its time.
            "apply" => 2 * TIMEOUT + Duration::from_secs(10),
            "compaction" => TIMEOUT + WITHDRAWAL,
            _ => TRIES,
        }
}

/// Kills a server; an error if it had ended by itself.
fn kill_server(number: u32, server: &mut HoplakeServer) -> anyhow::Result<()> {
    server.kill().with_context(|| format!("server {number}"))
}

/// The most sorted runs that a version has of a section: what a reader merges.
fn sorted_runs(graph: &Graph) -> usize {
    let mut runs = BTreeMap::new();
    for section in graph.manifest().segments.iter().flat_map(|segment| &segment.sections) {
        if section.versions.is_some() {
            *runs.entry(format!("{:?}", section.kind)).or_insert(0) += 1;
        }
    }
    runs.into_values().max().unwrap_or(0)
}

/// Changes what breaks until the run ends.
async fn change_faults(proxy: &TcpProxy, mut random: SplitMix64) {
    loop {
        proxy.set_faults(fault_schedule(&mut random));
        tokio::time::sleep(Duration::from_millis(200 + random.below(1_300))).await;
    }
}

/// What breaks for a while: nothing, one kind of fault, all kinds, or everything.
fn fault_schedule(random: &mut SplitMix64) -> Vec<(TcpFault, f64)> {
    let all = TcpFault::ALL;
    match random.below(8) {
        0 | 1 => Vec::new(),
        2..=4 => vec![(all[random.below(all.len() as u64) as usize], 0.02 + 0.1 * random.unit())],
        5 | 6 => all.into_iter().map(|fault| (fault, 0.02 * random.unit())).collect(),
        _ => vec![(TcpFault::Refuse, 1.0), (TcpFault::Reset, 0.5)],
    }
}
