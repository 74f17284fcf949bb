//! One seed from beginning to end: a graph, processes at work, and a reckoning when everything is calm.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use hoplake::{Error, VacuumSettings};
use hoplake_engine::{
    EngineError,
    compaction::{self, CompactionSettings, MEMORY_BYTES_MIN},
    history,
    property_index::{self, IndexSettings},
    vacuum,
};
use hoplake_format::segment::SegmentSettings;
use hoplake_storage::QueryContext;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    batches::Vocabulary,
    beginning::Beginning,
    clones::clone_once,
    drawing::drawing,
    feeds,
    history::Answer,
    location::{GRAPHS_MAX, GraphLocation},
    machine::Machine,
    process::{self, Workload, check_reading, open, reader_of, store_of},
    world::{Concern, Violation, World},
};

/// After so much virtual time every operation has ended: the longest sleep of a zombie, and the longest pause.
const LONGEST: Duration = Duration::from_secs(14 * 24 * 3_600);

/// The outcome of a seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The first invariant that did not hold.
    pub violation: Option<Violation>,
    /// Events.
    pub steps: u64,
    /// Versions that were published.
    pub versions: u64,
    /// Batches that were committed, refused or lost.
    pub batches: u64,
    /// Its virtual time.
    pub virtual_time: Duration,
    /// What happened, if it was asked for.
    pub trace: Vec<String>,
}

/// What happens in a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// Processes change graphs.
    Graphs,
    /// A graph follows the tables of a database.
    Feeds,
}

/// Runs a seed on this thread.
pub fn run_seed(scenario: Scenario, seed: u64, trace: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without I/O needs nothing from the machine");
    runtime.block_on(async {
        let begun = Instant::now();
        // What a feed draws for itself comes from the generator of its thread.
        fastrand::seed(seed);
        let world = World::new(scenario, seed, trace);
        world.log(|| format!("seed {seed}: {}", world.schedule.describe()));
        tokio::select! {
            biased;
            () = world.until_violated() => {}
            ended = timeout(LONGEST, run(scenario, &world)) => if ended.is_err() {
                world.violated("a task waits forever");
            }
        }
        let (versions, batches) = {
            let history = world.history();
            (history.newest(), history.batches() as u64)
        };
        let virtual_time = begun.elapsed();
        let (violation, steps, trace) = world.outcome();
        Outcome { seed, violation, steps, versions, batches, virtual_time, trace }
    })
}

async fn run(scenario: Scenario, world: &Arc<World>) {
    match scenario {
        Scenario::Graphs => live(world).await,
        Scenario::Feeds => drawing(feeds::live(world)).await,
    }
}

async fn live(world: &Arc<World>) {
    let beginning = Beginning::draw(world);
    world.log(|| format!("the graph begins as {beginning:?}"));
    let workload = Arc::new(workload(world, beginning));
    beginning.make(world, &workload.vocabulary).await;
    let mut actors = JoinSet::new();
    for number in 0..1 + world.below(3) {
        actors.spawn(process::run(world.clone(), workload.clone(), GraphLocation::FIRST, format!("p{number}")));
    }
    actors.spawn(audit(world.clone(), workload.clone()));
    let mut beside = JoinSet::new();
    beside.spawn(now_and_then(world.clone(), "vacuum", 5_000, vacuum_once));
    beside.spawn(now_and_then(world.clone(), "compaction", 10_000, compact_once));
    beside.spawn(now_and_then(world.clone(), "operator", 20_000, operate_once));
    let names = Arc::new(index_names(&workload.vocabulary));
    let index = move |world, machine| index_once(world, machine, names.clone());
    beside.spawn(now_and_then(world.clone(), "indexer", 4_000, index));
    // Each clone is as much work as what it began as, so there are some in one seed of three.
    if world.below(3) == 0 && !world.in_folder {
        let workload = workload.clone();
        let clone = move |world, machine| clone_once(world, machine, workload.clone());
        beside.spawn(now_and_then(world.clone(), "cloner", 15_000, clone));
    }
    // The auditor ends last.
    while let Some(ended) = actors.join_next().await {
        if let Err(error) = ended {
            world.violated(format!("an actor panicked: {error}"));
        }
        if actors.len() == 1 {
            break;
        }
    }
    beside.abort_all();
    while let Some(ended) = beside.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            world.violated(format!("an actor panicked: {error}"));
        }
    }
    world.log(|| "all is done; now it is calm".into());
    world.calm_down();
    for location in GraphLocation::all() {
        if world.history_of(location).newest() > 0 {
            reckon(world, &workload, location).await;
        }
    }
}

fn workload(world: &World, beginning: Beginning) -> Workload {
    let keys = 3 + world.below(6) as i64;
    let mut vocabulary = beginning.vocabulary(keys);
    vocabulary.vertices_max = 1 + world.below(6);
    vocabulary.edges_max = 1 + world.below(10);
    let operations = AtomicU64::new(8 + world.below(32));
    let pause_ms = [0, 50, 500, 5_000, 60_000][world.below(5) as usize];
    Workload { vocabulary, operations, pause_ms }
}

/// Reads every version as soon as it is there, without any fault: what is stored must be right.
async fn audit(world: Arc<World>, workload: Arc<Workload>) {
    // What is there may not be there any more after the next loss of power.
    if world.in_folder {
        std::future::pending::<()>().await;
    }
    let mut audited = [0; GRAPHS_MAX];
    audited[0] = world.history().newest();
    loop {
        for location in GraphLocation::all() {
            let machine = Machine::at(location, format!("auditor of {}", location.url()), true);
            loop {
                let Some(version) = world.history_of(location).after(audited[location.number()]) else { break };
                audited[location.number()] = version;
                if let Some(graph) = open(&world, &machine, Some(version)).await {
                    check_reading(&world, &machine, &graph, &workload.vocabulary, 1).await;
                }
            }
        }
        world.until_published().await;
    }
}

/// Does something now and then, in a process of its own, and after each crash in another.
pub(crate) async fn now_and_then<F: Future<Output = ()>>(
    world: Arc<World>,
    name: &'static str,
    pause_ms: u64,
    step: impl Fn(Arc<World>, Arc<Machine>) -> F,
) {
    let mut run = 0u32;
    for life in 0u64.. {
        let machine = Machine::new(format!("{name}.{life}"), false);
        let steps = async {
            loop {
                // While a zombie sleeps for hours there is ever less to do.
                let rest = world.below(pause_ms << run.min(12));
                run += 1;
                sleep(Duration::from_millis(rest)).await;
                machine.stepped();
                step(world.clone(), machine.clone()).await;
            }
        };
        tokio::select! {
            biased;
            () = machine.until_dead() => {}
            () = steps => {}
        }
    }
}

pub async fn vacuum_once(world: Arc<World>, machine: Arc<Machine>) {
    let reader = reader_of(&world, &machine);
    let hour_ms = 3_600_000;
    let settings = VacuumSettings {
        keep_versions: [None, Some(0), Some(2), Some(10)][world.below(4) as usize],
        written_before_unix_ms: if world.below(4) == 0 { i64::MAX } else { i64::MIN },
        announced_before_unix_ms: match world.below(6) {
            0 => u64::MAX,
            1 => reader.store().clock().unix_ms().saturating_sub(hour_ms),
            _ => 0,
        },
        ..VacuumSettings::default()
    };
    let vacuumed = vacuum::vacuum(&reader, &settings, &mut QueryContext::new().branch()).await;
    world.log(|| format!("vacuum {:?}: {}", settings.keep_versions, summary(vacuumed)));
}

pub async fn compact_once(world: Arc<World>, machine: Arc<Machine>) {
    let store = store_of(&world, &machine);
    let everything = world.below(3) == 0;
    // Low tiers, so that small graphs have several.
    let lowest_tier_bytes = [64, 1 << 10, 64 << 10][world.below(3) as usize];
    let segments = segments(&world);
    let settings = CompactionSettings {
        memory_bytes: MEMORY_BYTES_MIN,
        everything,
        lowest_tier_bytes,
        timeout_ms: None,
        retry_seed: Some(world.seed),
        segments,
    };
    let compacted = compaction::compact(&store, &settings, &QueryContext::new()).await;
    let compacted = compacted.map(|it| (it.merges, it.version));
    world.log(|| format!("compaction: {}", summary(compacted)));
}

/// In half of the runs sections go on over several segments, and have many index blocks.
fn segments(world: &World) -> SegmentSettings {
    let tiny = SegmentSettings {
        list_block_bytes: 64,
        key_block_bytes: 30,
        index_entries: 2,
        filter_items: 8,
        tail_bytes: 100,
        data_bytes: 1 << 10,
    };
    [SegmentSettings::default(), tiny][world.below(2) as usize]
}

/// Properties that may have indexes; the graph may lack some of them.
fn index_names(vocabulary: &Vocabulary) -> Vec<String> {
    let of = |label: &&str| ["name", "weight", "score"].map(|property| format!("{label}.{property}"));
    vocabulary.labels().iter().flat_map(of).collect()
}

/// Creates an index, or drops one.
async fn index_once(world: Arc<World>, machine: Arc<Machine>, names: Arc<Vec<String>>) {
    let store = store_of(&world, &machine);
    let name = &names[world.below(names.len() as u64) as usize];
    if world.below(4) == 0 {
        let dropped = property_index::drop_index(&store, name, &QueryContext::new()).await;
        world.log(|| format!("index {name} is dropped: {}", summary(dropped)));
        return;
    }
    let settings = IndexSettings {
        memory_bytes: property_index::MEMORY_BYTES_MIN,
        timeout_ms: None,
        retry_seed: Some(world.seed),
        segments: segments(&world),
    };
    let context = QueryContext::new();
    let built = property_index::create_index(&store, name, &settings, std::future::pending(), &context).await;
    let built = built.map(|built| built.map(|built| (built.version, built.entries)));
    world.log(|| format!("index {name} is created: {}", summary(built)));
}

/// Names versions and restores some.
async fn operate_once(world: Arc<World>, machine: Arc<Machine>) {
    let reader = reader_of(&world, &machine);
    let mut branch = QueryContext::new().branch();
    let versions: Vec<u64> = world.history().versions().collect();
    let version = versions[world.below(versions.len() as u64) as usize];
    let done = match world.below(5) {
        0 => history::restore(&reader, version, "", &mut branch).await.map(Some),
        1 => history::tag(&reader, "a tag", None, &mut branch).await,
        _ => history::tag(&reader, "a tag", Some(version), &mut branch).await,
    };
    world.log(|| format!("operator on version {version}: {}", summary(done)));
}

fn summary<T: std::fmt::Debug>(done: Result<T, EngineError>) -> String {
    done.map_or_else(|error| format!("{:?}", Error::from(error).kind()), |done| format!("{done:?}"))
}

/// In the end everything works again, and everything that was ever published is as it was.
async fn reckon(world: &Arc<World>, workload: &Arc<Workload>, location: GraphLocation) {
    let machine = Machine::at(location, format!("reckoner of {}", location.url()), true);
    let Some(mut graph) = open(world, &machine, None).await else { return };
    let newest = world.history_of(location).newest();
    if graph.version() != newest {
        world.violated(format!("version {newest} is the newest, and {} was opened", graph.version()));
    }
    let (mut batch, _) = {
        let model = world.history_of(location).model(newest).unwrap_or_default();
        workload.vocabulary.batch(&mut world.random(Concern::Batches), &model)
    };
    let number = world.history_of(location).submit(&mut batch, newest);
    match graph.apply(batch).await {
        Ok(committed) => {
            let answered = world.history_of(location).answered(number, Answer::Committed(committed.version), false);
            world.check(answered);
        }
        Err(error) => world.violated(format!("the last commit failed: {:?}, {error}", error.kind())),
    }
    if let Err(error) = graph.refresh().await {
        world.violated(format!("the last refresh failed: {error}"));
    }
    check_reading(world, &machine, &graph, &workload.vocabulary, 3).await;
    let settings = CompactionSettings {
        memory_bytes: MEMORY_BYTES_MIN,
        everything: true,
        retry_seed: Some(world.seed),
        ..CompactionSettings::default()
    };
    if let Err(error) = compaction::compact(&store_of(world, &machine), &settings, &QueryContext::new()).await {
        world.violated(format!("the last compaction failed: {error}"));
    }
    let vacuumed =
        vacuum::vacuum(&reader_of(world, &machine), &VacuumSettings::default(), &mut QueryContext::new().branch())
            .await;
    if let Err(error) = vacuumed {
        world.violated(format!("the last vacuum failed: {error}"));
    }
    let versions: Vec<u64> = world.history_of(location).versions().collect();
    for version in versions {
        if let Some(graph) = open(world, &machine, Some(version)).await {
            check_reading(world, &machine, &graph, &workload.vocabulary, 0).await;
        }
    }
}
