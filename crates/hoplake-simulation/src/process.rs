//! A process: it opens the graph, and its callers commit and read, until they are done or it crashes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hoplake::{
    Batch, Committed, End, Error, ErrorKind, Graph, OpenSettings, Operation, Properties, ReadPool, ReadSettings,
    Reader, Store,
};
use object_store::path::Path;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    batches::Vocabulary,
    client::{Client, Machine, MachineClock},
    faults::Fault,
    history::Answer,
    reading::{ReadFailure, read},
    world::{Concern, World},
};

/// Where the graph is, in the simulated bucket and in messages.
const URL: &str = "s3://simulation/graph";

/// The store, as a process reaches it.
pub fn store_of(world: &Arc<World>, machine: &Arc<Machine>) -> Store {
    let clock = MachineClock { machine: machine.clone(), world: world.clone() };
    Store::new(Arc::new(Client::new(world, machine)), Path::default(), URL).with_clock(Arc::new(clock))
}

/// How a process reads: small caches in some, so that blocks go and come back.
fn settings(world: &World, version: Option<u64>) -> OpenSettings {
    let mut random = world.random(Concern::Actors);
    let mut read = ReadSettings::default();
    read.retry.seed = Some(random.next_u64());
    if random.below(4) == 0 {
        read.cache_bytes_max = 0;
    }
    if random.below(4) == 0 {
        read.request_bytes_max = 0;
    }
    let index_bytes_max = if random.below(4) == 0 { 1 << 10 } else { 32 << 20 };
    OpenSettings { version, index_bytes_max, read }
}

/// What all callers of all processes share.
#[derive(Debug)]
pub struct Workload {
    /// What there is to change.
    pub vocabulary: Vocabulary,
    /// Operations that are left to do.
    pub operations: AtomicU64,
    /// The longest pause between two operations of a caller, in milliseconds.
    pub pause_ms: u64,
}

impl Workload {
    /// Takes one of the operations that are left.
    fn take(&self) -> bool {
        self.operations.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// Runs a process, and after each crash another in its place, until there is nothing left to do.
pub async fn run(world: Arc<World>, workload: Arc<Workload>, number: u64) {
    for life in 0u64.. {
        let machine = Machine::new(format!("p{number}.{life}"), false);
        let mut callers = JoinSet::new();
        let live = live(&world, &workload, &machine, &mut callers);
        let died = tokio::select! {
            biased;
            () = machine.until_dead() => true,
            () = live => false,
        };
        // Whoever still waits for an answer never gets one.
        callers.abort_all();
        while callers.join_next().await.is_some() {}
        if !died {
            return;
        }
        let rest = world.below(5_000);
        sleep(Duration::from_millis(rest)).await;
    }
}

/// A reader of what is not worth caching, whose pauses come from the seed.
pub fn reader_of(world: &Arc<World>, machine: &Arc<Machine>) -> Reader {
    let pool = ReadPool::new(settings(world, None).read).expect("the settings are valid");
    Reader::new(store_of(world, machine), pool)
}

async fn live(world: &Arc<World>, workload: &Arc<Workload>, machine: &Arc<Machine>, callers: &mut JoinSet<()>) {
    let Some(graph) = open(world, machine, None).await else { return };
    for caller in 0..1 + world.below(4) {
        let name = format!("{} caller {caller}", machine.name);
        let caller = Caller {
            world: world.clone(),
            workload: workload.clone(),
            machine: machine.clone(),
            graph: graph.clone(),
            name,
            fed: 0,
        };
        callers.spawn(caller.run());
    }
    while let Some(ended) = callers.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            world.violated(format!("{} panicked: {error}", machine.name));
        }
    }
}

/// Opens the graph, trying again while the store fails; `None` if the version is gone.
pub async fn open(world: &Arc<World>, machine: &Arc<Machine>, version: Option<u64>) -> Option<Graph> {
    let settings = settings(world, version);
    let mut failures = 0;
    while failures < 10 {
        machine.stepped();
        let acknowledged = world.history().acknowledged();
        match Graph::open_with(store_of(world, machine), &settings).await {
            Ok(graph) => {
                world.log(|| format!("{} opened version {}", machine.name, graph.version()));
                if version.is_some_and(|version| version != graph.version()) {
                    world.violated(format!("{version:?} was to be opened, and {} was", graph.version()));
                }
                // A store that denies what it has may make any version look like the newest.
                if version.is_none() && graph.version() < acknowledged && !world.weather.has(Fault::Missing) {
                    let found = graph.version();
                    world.violated(format!(
                        "version {acknowledged} was acknowledged, and {found} was opened after that"
                    ));
                }
                return Some(graph);
            }
            Err(_) if version.is_some_and(|version| world.history().is_gone(version)) => return None,
            Err(error) => {
                world.log(|| format!("{} could not open: {:?}", machine.name, error.kind()));
                excused(world, machine, "open", &error);
            }
        }
        sleep(Duration::from_secs(2)).await;
        // What goes wrong in bad weather may go wrong again.
        failures += u32::from(world.is_calm() && !machine.is_suspended(world.now()));
    }
    world.violated(format!("{} could not open the graph in calm weather", machine.name));
    None
}

/// An error must come from the weather.
fn excused(world: &World, machine: &Machine, what: &str, error: &Error) {
    let of_weather = matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Corrupt | ErrorKind::NotFound);
    if !of_weather || machine.reliable || world.weather.is_fair() {
        world.violated(format!("{} could not {what}: {:?}, {error}", machine.name, error.kind()));
    }
}

/// One who commits and reads.
struct Caller {
    world: Arc<World>,
    workload: Arc<Workload>,
    machine: Arc<Machine>,
    graph: Graph,
    name: String,
    /// Up to where it has fed the graph from its source.
    fed: u64,
}

impl Caller {
    async fn run(mut self) {
        while self.workload.take() {
            let rest = self.world.below(self.workload.pause_ms + 1);
            sleep(Duration::from_millis(rest)).await;
            self.machine.stepped();
            match self.world.below(10) {
                0 => self.refresh().await,
                1..=2 => self.read().await,
                3 => self.read_past().await,
                _ => self.commit().await,
            }
        }
    }

    async fn refresh(&mut self) {
        let before = self.graph.version();
        match self.graph.refresh().await {
            Ok(moved) => {
                let now = self.graph.version();
                self.world.log(|| format!("{} refreshed from version {before} to {now}", self.name));
                if moved != (now > before) || now < before {
                    self.world.violated(format!("refreshing moved from version {before} to {now} and said {moved}"));
                }
            }
            Err(error) => excused(&self.world, &self.machine, "refresh", &error),
        }
    }

    async fn read(&mut self) {
        if self.world.below(2) == 0 {
            self.refresh().await;
        }
        check_reading(&self.world, &self.machine, &self.graph, &self.workload.vocabulary, 2).await;
    }

    async fn read_past(&mut self) {
        let versions: Vec<u64> = self.world.history().versions().collect();
        let version = versions[self.world.below(versions.len() as u64) as usize];
        let settings = settings(&self.world, Some(version));
        match Graph::open_with(store_of(&self.world, &self.machine), &settings).await {
            Ok(graph) => check_reading(&self.world, &self.machine, &graph, &self.workload.vocabulary, 2).await,
            // A vacuum may have been faster.
            Err(_) if self.world.history().is_gone(version) => {}
            Err(error) => excused(&self.world, &self.machine, "open a past version", &error),
        }
    }

    /// Makes a batch that would do on the version that the caller sees, or on the newest.
    fn batch(&mut self) -> Batch {
        let world = &self.world;
        let (newest, seen) = (world.history().newest(), self.graph.version());
        let on = if world.below(3) == 0 { newest } else { seen };
        let model = world.history().model(on).unwrap_or_default();
        let (mut batch, _) = self.workload.vocabulary.batch(&mut world.random(Concern::Batches), &model);
        batch.base = (world.below(2) == 0).then_some(seen);
        match world.below(12) {
            0 => {
                let (source, target) = (self.any(), self.any());
                let edge = Operation::UpsertEdge {
                    label: self.workload.vocabulary.edge_labels[0].clone(),
                    source,
                    target,
                    key: None,
                    properties: Properties::new(),
                    whole: true,
                };
                // Perhaps its ends are not there, and the whole batch is refused.
                if !batch.operations.iter().any(|it| same_pair(it, &edge)) {
                    batch.operations.push(edge);
                }
            }
            1..=3 => batch.create_missing = true,
            _ => {}
        }
        if world.below(2) == 0 {
            self.fed += 1;
            batch.source_positions.insert(self.name.clone(), self.fed.to_string());
        }
        batch
    }

    fn any(&self) -> End {
        let vertices = &self.workload.vocabulary.vertices;
        vertices[self.world.below(vertices.len() as u64) as usize].clone()
    }

    async fn commit(&mut self) {
        let mut batch = self.batch();
        let (base, operations) = (batch.base, describe(&batch));
        let number = self.world.history().submit(&mut batch, self.graph.version());
        self.world.log(|| format!("{} commits batch {number} on {base:?}: {operations}", self.name));
        let patience = match self.world.below(20) {
            0 => Duration::from_millis(self.world.below(500)),
            _ => Duration::from_secs(48 * 3_600),
        };
        let answer = match timeout(patience, self.graph.apply(batch)).await {
            Ok(Ok(committed)) => self.committed(&committed),
            Ok(Err(error)) => self.refused(number, &error),
            Err(_) => Answer::None,
        };
        self.world.log(|| format!("{}: batch {number} is {answer:?}", self.name));
        let excuse = !self.world.weather.is_fair();
        let answered = self.world.history().answered(number, answer, excuse);
        self.world.check(answered);
    }

    fn committed(&self, committed: &Committed) -> Answer {
        Answer::Committed(committed.version)
    }

    fn refused(&self, number: usize, error: &Error) -> Answer {
        self.world.log(|| format!("{}: batch {number} failed as {:?}", self.name, error.kind()));
        match error.kind() {
            ErrorKind::Unknown => Answer::Unknown,
            kind => Answer::Refused(kind),
        }
    }
}

/// The operations of a batch, for a trace.
fn describe(batch: &Batch) -> String {
    let operations: Vec<String> = batch.operations.iter().map(ToString::to_string).collect();
    format!("{}{}", operations.join(", "), if batch.create_missing { ", making what is missing" } else { "" })
}

fn same_pair(one: &Operation, other: &Operation) -> bool {
    let ends = |operation: &Operation| match operation {
        Operation::UpsertEdge { label, source, target, .. } | Operation::DeleteEdge { label, source, target, .. } => {
            Some((label.clone(), source.clone(), target.clone()))
        }
        _ => None,
    };
    ends(one).is_some_and(|one| Some(one) == ends(other))
}

/// Reads everything that a graph says, and holds it against the oracle.
pub async fn check_reading(
    world: &Arc<World>,
    machine: &Arc<Machine>,
    graph: &Graph,
    vocabulary: &Vocabulary,
    starts: usize,
) {
    let version = graph.version();
    let Some(expected) = world.history().model(version) else {
        return world.violated(format!("version {version} is open, and nobody published it"));
    };
    match read(graph, vocabulary, starts).await {
        Ok(found) if found == *expected => world.log(|| format!("{} read version {version}", machine.name)),
        Ok(found) => {
            let difference = expected.difference(&found);
            world.violated(format!("{} read version {version}: {difference}", machine.name));
        }
        Err(ReadFailure::Contradiction(why)) => {
            world.violated(format!("{} read version {version}: {why}", machine.name))
        }
        Err(ReadFailure::Error(_)) if world.history().is_gone(version) => {}
        Err(ReadFailure::Error(error)) => {
            world.log(|| format!("{} could not read version {version}: {:?}", machine.name, error.kind()));
            excused(world, machine, &format!("read version {version}"), &error);
        }
    }
}
