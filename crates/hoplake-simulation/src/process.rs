//! A process: it opens the graph, and its callers commit and read, until they are done or it crashes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hoplake::{
    Batch, COMMIT_TIMEOUT_MS, Committed, Error, ErrorKind, Graph, OpenSettings, Operation, Properties, ReadPool,
    ReadSettings, Reader, Store, VertexRef,
};
use object_store::path::Path;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    batches::Vocabulary,
    client::Client,
    clock::MachineClock,
    columns,
    disk::Platter,
    faults::Fault,
    history::Answer,
    location::GraphLocation,
    machine::Machine,
    power::Ground,
    reading::{ReadFailure, read},
    world::{Concern, World},
};

/// A commit that others overtook fewer times must not run out of time.
const OVERTAKEN_MIN: u64 = 5;

/// The graph that a process works on, as it reaches it.
pub fn store_of(world: &Arc<World>, machine: &Arc<Machine>) -> Store {
    store_at(machine.location, world, machine)
}

/// A graph, as a process reaches it.
pub fn store_at(location: GraphLocation, world: &Arc<World>, machine: &Arc<Machine>) -> Store {
    let clock = MachineClock { machine: machine.clone(), world: world.clone() };
    let client = Arc::new(Client::new(world, machine));
    let prefix = Path::from(location.prefix());
    let store = if world.in_folder {
        world.has_machine(machine);
        Store::on_files(Arc::new(Ground::new(world, machine)), client, prefix, &location.url())
    } else {
        Store::new(client, prefix, &location.url()).with_proof()
    };
    store.with_clock(Arc::new(clock)).with_part_bytes(world.part_bytes)
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
    let index_bytes_max = if random.below(4) == 0 { 1 << 10 } else { 8 << 20 };
    // Then index blocks that the open does not read are read through the caches.
    let index_with_root_bytes_max = if random.below(2) == 0 { 0 } else { 64 << 10 };
    let filter_bytes_max = if random.below(4) == 0 { 1 << 8 } else { 1 << 20 };
    OpenSettings { version, index_bytes_max, index_with_root_bytes_max, filter_bytes_max, read }
}

/// The state that all callers of all processes share.
#[derive(Debug)]
pub struct Workload {
    /// The items to change.
    pub vocabulary: Vocabulary,
    /// Operations that are left to do.
    pub operations: AtomicU64,
    /// The longest pause between two operations of a caller, in milliseconds.
    pub pause_ms: u64,
}

impl Workload {
    fn is_done(&self) -> bool {
        self.operations.load(Relaxed) == 0
    }

    /// Takes one of the operations that are left.
    fn take(&self) -> bool {
        self.operations.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// Runs a process, and after each that ends or crashes another one, until the work is done. All of
/// them have the same disk, or none.
pub async fn run(world: Arc<World>, workload: Arc<Workload>, location: GraphLocation, name: String) {
    let platter = Platter::draw(&world);
    for life in 0u64.. {
        let machine = Machine::at(location, format!("{name}.{life}"), false);
        let mut callers = JoinSet::new();
        let died = {
            let pool = platter.as_ref().map(|platter| pool_on(platter, &world, &machine));
            let live = live(&world, &workload, &machine, pool, &mut callers);
            tokio::select! {
                biased;
                () = machine.until_dead() => true,
                () = live => false,
            }
        };
        // Calls that still wait for an answer never get one.
        callers.abort_all();
        while callers.join_next().await.is_some() {}
        machine.crash();
        if !died && workload.is_done() {
            return;
        }
        if let Some(platter) = platter.as_ref().filter(|_| died) {
            platter.crashed(&world);
        }
        let rest = world.below(5_000);
        sleep(Duration::from_millis(rest)).await;
    }
}

/// Caches on the disk of a machine, and few in memory, so that the disk is read.
fn pool_on(platter: &Arc<Platter>, world: &Arc<World>, machine: &Arc<Machine>) -> Arc<ReadPool> {
    let mut read = settings(world, None).read;
    if world.below(2) == 0 {
        read.cache_bytes_max = 0;
    }
    let pool = ReadPool::on_disk(read, platter.of(world, machine), platter.bytes_max);
    pool.expect("the settings are valid, and the disk can be listed")
}

/// A reader with a minimal cache, whose pauses come from the seed.
pub fn reader_of(world: &Arc<World>, machine: &Arc<Machine>) -> Reader {
    let pool = ReadPool::new(settings(world, None).read).expect("the settings are valid");
    Reader::new(store_of(world, machine), pool)
}

async fn live(
    world: &Arc<World>,
    workload: &Arc<Workload>,
    machine: &Arc<Machine>,
    pool: Option<Arc<ReadPool>>,
    callers: &mut JoinSet<()>,
) {
    let Some(graph) = open_through(world, machine, pool.as_ref(), None).await else { return };
    // Some end before everything is done, and another goes on.
    let operations_max = if pool.is_some() && world.below(2) == 0 { 1 + world.below(6) } else { u64::MAX };
    for caller in 0..1 + world.below(4) {
        let name = format!("{} caller {caller}", machine.name);
        let caller = Caller {
            world: world.clone(),
            workload: workload.clone(),
            machine: machine.clone(),
            graph: graph.clone(),
            pool: pool.clone(),
            name,
            operations_max,
            fed: 0,
        };
        callers.spawn(caller.run());
    }
    drop((graph, pool));
    while let Some(ended) = callers.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            world.violated(format!("{} panicked: {error}", machine.name));
        }
    }
}

/// Opens a machine's graph, trying again while the store fails; `None` if the version was removed.
pub async fn open(world: &Arc<World>, machine: &Arc<Machine>, version: Option<u64>) -> Option<Graph> {
    open_through(world, machine, None, version).await
}

/// A graph, through the caches of its process if it has any.
async fn graph_at(store: Store, pool: Option<&Arc<ReadPool>>, settings: &OpenSettings) -> Result<Graph, Error> {
    match pool {
        Some(pool) => Graph::open_through(Reader::new(store, pool.clone()), settings).await,
        None => Graph::open_with(store, settings).await,
    }
}

async fn open_through(
    world: &Arc<World>,
    machine: &Arc<Machine>,
    pool: Option<&Arc<ReadPool>>,
    version: Option<u64>,
) -> Option<Graph> {
    let settings = settings(world, version);
    let mut failures = 0;
    while failures < 10 {
        machine.stepped();
        let acknowledged = world.history_of(machine.location).acknowledged();
        match graph_at(store_of(world, machine), pool, &settings).await {
            Ok(graph) => {
                world.log(|| format!("{} opened version {}", machine.name, graph.version()));
                if version.is_some_and(|version| version != graph.version()) {
                    world.violated(format!("{version:?} was to be opened, and {} was", graph.version()));
                }
                // A store that denies what it has may make any version look like the newest.
                if version.is_none() && graph.version() < acknowledged && !world.schedule.has(Fault::Missing) {
                    let found = graph.version();
                    world.violated(format!(
                        "version {acknowledged} was acknowledged, and {found} was opened after that"
                    ));
                }
                return Some(graph);
            }
            Err(_) if version.is_some_and(|version| world.history_of(machine.location).is_gone(version)) => {
                return None;
            }
            Err(error) => {
                world.log(|| format!("{} could not open: {:?}", machine.name, error.kind()));
                excused(world, machine, "open", &error);
            }
        }
        sleep(Duration::from_secs(2)).await;
        // A fault may happen again.
        failures += u32::from(world.is_calm() && !machine.is_suspended(world.now()));
    }
    world.violated(format!("{} could not open the graph without faults", machine.name));
    None
}

/// An error must come from the fault schedule.
pub fn excused(world: &World, machine: &Machine, what: &str, error: &Error) {
    let of_schedule = matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Corrupt | ErrorKind::NotFound);
    if !of_schedule || machine.reliable || world.schedule.is_fair() {
        world.violated(format!("{} could not {what}: {:?}, {error}", machine.name, error.kind()));
    }
}

/// A caller that commits and reads.
struct Caller {
    world: Arc<World>,
    workload: Arc<Workload>,
    machine: Arc<Machine>,
    graph: Graph,
    pool: Option<Arc<ReadPool>>,
    name: String,
    /// The number of its operations.
    operations_max: u64,
    /// Up to where it has fed the graph from its source.
    fed: u64,
}

impl Caller {
    async fn run(mut self) {
        for _ in 0..self.operations_max {
            if !self.workload.take() {
                return;
            }
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
                    self.world
                        .violated(format!("refreshing moved from version {before} to {now} and returned {moved}"));
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
        let versions: Vec<u64> = self.world.history_of(self.machine.location).versions().collect();
        let version = versions[self.world.below(versions.len() as u64) as usize];
        let settings = settings(&self.world, Some(version));
        match graph_at(store_of(&self.world, &self.machine), self.pool.as_ref(), &settings).await {
            Ok(graph) => check_reading(&self.world, &self.machine, &graph, &self.workload.vocabulary, 2).await,
            // A vacuum may have been faster.
            Err(_) if self.world.history_of(self.machine.location).is_gone(version) => {}
            Err(error) => excused(&self.world, &self.machine, "open a past version", &error),
        }
    }

    /// Makes a batch that would do on the version that the caller sees, or on the newest.
    fn batch(&mut self) -> Batch {
        let world = &self.world;
        let newest = world.history_of(self.machine.location).newest();
        let seen = self.graph.version();
        let on = if world.below(3) == 0 { newest } else { seen };
        let model = world.history_of(self.machine.location).model(on).unwrap_or_default();
        let (mut batch, _) = self.workload.vocabulary.batch(&mut world.random(Concern::Batches), &model);
        batch.base = (world.below(2) == 0).then_some(seen);
        match world.below(12) {
            0 => {
                let source = self.any();
                let target = self.any();
                let edge = Operation::UpsertEdge {
                    label: self.workload.vocabulary.edge_labels[0].clone(),
                    source,
                    target,
                    key: None,
                    properties: Properties::new(),
                    replace: true,
                };
                // Perhaps its ends are missing, and the batch is rejected.
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

    fn any(&self) -> VertexRef {
        let vertices = &self.workload.vocabulary.vertices;
        vertices[self.world.below(vertices.len() as u64) as usize].clone()
    }

    async fn commit(&mut self) {
        let mut batch = self.batch();
        let base = batch.base;
        let operations = describe(&batch);
        let number = self.world.history_of(self.machine.location).submit(&mut batch, self.graph.version());
        self.world.log(|| format!("{} commits batch {number} on {base:?}: {operations}", self.name));
        let patience = match self.world.below(20) {
            0 => Duration::from_millis(self.world.below(500)),
            _ => Duration::from_secs(48 * 3_600),
        };
        let begun = self.world.now();
        let before = self.world.history_of(self.machine.location).newest();
        // Whatever a batch does, it does as columns too.
        let by_columns = self.world.random(Concern::Columns).below(2) == 0;
        let batch = if by_columns { columns::by_columns(&batch) } else { batch };
        let answer = match timeout(patience, self.graph.apply(batch)).await {
            Ok(Ok(committed)) => self.committed(&committed),
            Ok(Err(error)) => self.rejected(number, &error),
            Err(_) => Answer::None,
        };
        self.world.log(|| format!("{}: batch {number} is {answer:?}", self.name));
        let mut history = self.world.history_of(self.machine.location);
        // Where every flush takes seconds, others may be faster again and again until its time is over.
        let had_its_time = self.world.now() - begun >= Duration::from_millis(COMMIT_TIMEOUT_MS);
        let overtaken = had_its_time && history.newest() >= before + OVERTAKEN_MIN;
        let late = overtaken && answer == Answer::Rejected(ErrorKind::Unavailable);
        let excuse = !self.world.schedule.is_fair() || late;
        let answered = history.answered(number, answer, excuse);
        drop(history);
        self.world.check(answered);
    }

    fn committed(&self, committed: &Committed) -> Answer {
        Answer::Committed(committed.version)
    }

    fn rejected(&self, number: usize, error: &Error) -> Answer {
        self.world.log(|| format!("{}: batch {number} failed as {:?}", self.name, error.kind()));
        match error.kind() {
            ErrorKind::Unknown => Answer::Unknown,
            kind => Answer::Rejected(kind),
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

/// Reads everything in a graph, and compares it with the oracle.
pub async fn check_reading(
    world: &Arc<World>,
    machine: &Arc<Machine>,
    graph: &Graph,
    vocabulary: &Vocabulary,
    starts: usize,
) {
    // It had read before the loss of power, and no process gets its result.
    if machine.is_dead() {
        return;
    }
    let version = graph.version();
    let Some(expected) = world.history_of(machine.location).model(version) else {
        return world.violated(format!("version {version} is open, but was never published"));
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
        Err(ReadFailure::Error(_)) if world.history_of(machine.location).is_gone(version) => {}
        Err(ReadFailure::Error(error)) => {
            world.log(|| format!("{} could not read version {version}: {:?}", machine.name, error.kind()));
            excused(world, machine, &format!("read version {version}"), &error);
        }
    }
}
