//! One seed from beginning to end: a graph, processes at work, and a reckoning when everything is calm.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use hoplake::VacuumSettings;
use hoplake_engine::{
    compaction::{self, CompactionSettings, MEMORY_BYTES_MIN},
    vacuum,
};
use hoplake_storage::QueryContext;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use crate::{
    beginning::Beginning,
    clones::clone_once,
    drawing::drawing,
    feeds,
    history::Answer,
    location::{GRAPHS_MAX, GraphLocation},
    machine::Machine,
    process::{self, Workload, check_reading, open, reader_of, store_of},
    upkeep::{compact_once, index_names, index_once, now_and_then, operate_once, vacuum_once},
    world::{Concern, Scenario, Violation, World},
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
    /// Batches that were committed, rejected or lost.
    pub batches: u64,
    /// Its virtual time.
    pub virtual_time: Duration,
    /// What happened, if it was asked for.
    pub trace: Vec<String>,
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
