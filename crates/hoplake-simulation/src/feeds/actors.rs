//! What happens while a graph follows its tables.

use std::{collections::BTreeSet, sync::Arc};

use hoplake::{Batch, Graph, Key, Operation, Properties, Value, VertexRef};
use hoplake_feed::{
    Applied, Element, Event, Feed, FeedError, FeedErrorKind, Position, Progress, ReconcileOptions, Reconciled,
    RemovedObjects, RunOptions, Selection, discard_on, followed::StopNote, reconcile_on, remove_orphans, retry_on,
};
use tokio::time::{Duration, sleep};

use super::{
    feeding::Feeding,
    oracle::{DAMAGE, Observed, observe},
    source::SOURCE,
};
use crate::{
    bucket::EPOCH_UNIX_MS,
    machine::Machine,
    process::{open, store_of},
    upkeep::vacuum_once,
    world::{Concern, World},
};

/// What a feed says it has done is held against the store.
pub struct Watching {
    /// The seed's.
    pub feeding: Arc<Feeding>,
    /// The process.
    pub machine: Arc<Machine>,
}

impl Progress for Watching {
    fn report(&self, event: &Event<'_>) {
        match event {
            Event::Reconciled(reconciled) => {
                self.machine.stepped();
                self.feeding.world.log(|| format!("{}: {:?}", self.machine.name, without_times(reconciled)));
            }
            Event::Applied(applied, at) => self.applied(applied, at.position),
            _ => {}
        }
    }
}

impl Watching {
    fn applied(&self, applied: &Applied, position: &Position) {
        let world = &self.feeding.world;
        self.machine.stepped();
        world.log(|| format!("{} is at {position}: {applied:?}", self.machine.name));
        let mut history = world.history();
        let found = history.manifest(applied.version).and_then(|manifest| manifest.source_positions.get(SOURCE));
        // A vacuum may have committed the same position once more, before the feed knew that its own commit was done.
        let is_same = |found: &String| {
            let found = Position::parse(found).ok();
            found.is_some_and(|found| Position { writer: position.writer.clone(), ..found } == *position)
        };
        if !found.is_some_and(is_same) {
            let found = found.cloned();
            drop(history);
            let name = &self.machine.name;
            let version = applied.version;
            return world
                .violated(format!("{name} has committed {position} as version {version}, which has {found:?}"));
        }
        history.told(applied.version);
    }
}

/// Transactions while a repair is in a hurry, at most.
const HURRIED_TRANSACTIONS: u32 = 20;

/// How a feed ended.
enum Ended {
    Died,
    Killed,
    Stopped,
    Failed(FeedError),
}

/// Runs a feed, and after each that ends another one.
pub async fn follow(feeding: Arc<Feeding>, number: u64) {
    let world = feeding.world.clone();
    // A second one comes while the first is at work.
    sleep(Duration::from_millis(number * world.below(60_000))).await;
    let mut resnapshot = false;
    for life in 0u64.. {
        let machine = Machine::new(format!("feed {number}.{life}"), false);
        let (lives_ms, stops_ms) = {
            let mut random = world.random(Concern::Feed);
            let mut after = |one_in: u64| if random.below(one_in) == 0 { random.below(60_000) } else { u64::MAX >> 20 };
            (after(2), after(4))
        };
        resnapshot |= world.random(Concern::Feed).below(20) == 0;
        let ended = tokio::select! {
            biased;
            () = machine.until_dead() => Ended::Died,
            ended = one_feed(&feeding, &machine, resnapshot, stops_ms) => ended.map_or_else(Ended::Failed, |()| Ended::Stopped),
            () = sleep(Duration::from_millis(lives_ms)) => Ended::Killed,
        };
        machine.crash();
        resnapshot = false;
        match ended {
            Ended::Died | Ended::Killed => world.log(|| format!("{} is killed", machine.name)),
            Ended::Stopped => world.log(|| format!("{} has stopped", machine.name)),
            Ended::Failed(error) => {
                world.log(|| format!("{} failed: {:?}, {error}", machine.name, error.kind()));
                resnapshot = error.kind() == FeedErrorKind::Purged;
                if let Some(note) = error.stop_note() {
                    world.check(is_noted(&feeding, note).await);
                    // Until an operator decides.
                    resnapshot = world.random(Concern::Alter).below(3) == 0;
                }
                if error.kind() == FeedErrorKind::Row {
                    if !feeding.oracle().is_spoiled {
                        return world.violated(format!("{} failed: {error}", machine.name));
                    }
                    repair(&feeding, &Machine::new(format!("repairer {number}.{life}"), false)).await;
                }
            }
        }
        sleep(Duration::from_millis(world.below(5_000))).await;
    }
}

/// A stop is in the graph, unless another feed has gone on over it.
async fn is_noted(feeding: &Feeding, note: &StopNote) -> Result<(), String> {
    let world = &feeding.world;
    let newest = world.history().newest();
    let Some(graph) = open(world, &Machine::new("auditor", true), Some(newest)).await else { return Ok(()) };
    let remembered = world.history().remembered(newest);
    let Ok(Some(observed)) = observe(&graph, remembered, String::new()).await else { return Ok(()) };
    match observed.position.of_source == note.position && observed.stop.is_none() && !world.in_folder {
        true => Err(format!("a feed stopped at {}, and version {newest} does not say so", note.position)),
        false => Ok(()),
    }
}

async fn one_feed(
    feeding: &Arc<Feeding>,
    machine: &Arc<Machine>,
    resnapshot: bool,
    stops_ms: u64,
) -> Result<(), FeedError> {
    let watching = Arc::new(Watching { feeding: feeding.clone(), machine: machine.clone() });
    let options = RunOptions { resnapshot, ..RunOptions::default() };
    let mut feed = Feed::open_on(feeding.ends(machine), feeding.settings.clone(), options, watching).await?;
    feed.run(sleep(Duration::from_millis(stops_ms))).await
}

async fn repair(feeding: &Arc<Feeding>, machine: &Arc<Machine>) {
    let options = ReconcileOptions { repair: true, ..ReconcileOptions::default() };
    let ends = feeding.ends(machine);
    let repaired = tokio::select! {
        biased;
        () = machine.until_dead() => return machine.crash(),
        repaired = reconcile_on(&ends, &feeding.settings, &options) => repaired.map(|it| without_times(&it)),
    };
    feeding.world.log(|| format!("{}: {}", machine.name, summary(&repaired)));
}

fn summary<T: std::fmt::Debug>(done: &Result<T, FeedError>) -> String {
    match done {
        Ok(done) => format!("{done:?}"),
        Err(error) => format!("{:?}, {error}", error.kind()),
    }
}

/// The database forgets its log, now and then also what no feed has read yet.
pub async fn purge(feeding: Arc<Feeding>) {
    let world = &feeding.world;
    loop {
        sleep(Duration::from_millis(world.below(60_000))).await;
        let position = world.below(feeding.database.position() + 1);
        world.log(|| format!("the log before {position} is purged"));
        feeding.database.purge(position);
    }
}

/// Lets versions go, and removes what feeds have left: what is written at this moment, or only what is older.
pub async fn vacuum_all_once(feeding: Arc<Feeding>, machine: Arc<Machine>) {
    let world = &feeding.world;
    vacuum_once(world.clone(), machine.clone()).await;
    let min_age_ms = [0, 0, 1_000, 60_000][world.random(Concern::Feed).below(4) as usize];
    // By the store's clock. What is written at this moment has no age.
    let now_ms = EPOCH_UNIX_MS as i64 + world.now().as_millis() as i64;
    let mut removed = RemovedObjects::default();
    let done = remove_orphans(&store_of(world, &machine), now_ms + 1 - min_age_ms, &mut removed).await;
    world.log(|| format!("vacuum of feeds, {min_age_ms} ms: {}, {removed:?}", summary(&done)));
}

/// Applies dead letters, or gives them up.
pub async fn letters_once(feeding: Arc<Feeding>, machine: Arc<Machine>) {
    let world = &feeding.world;
    let names: Vec<String> = feeding.oracle().last().into_iter().flat_map(|last| last.held.iter().cloned()).collect();
    let selection = match world.below(2) {
        0 if !names.is_empty() => Selection::Names(vec![names[world.below(names.len() as u64) as usize].clone()]),
        _ => Selection::All,
    };
    let ends = feeding.ends(&machine);
    let discards = feeding.plan.discards;
    let retries = feeding.plan.retries;
    let done = if discards && (!retries || world.below(4) == 0) {
        feeding.oracle().is_spoiled = true;
        world.log(|| format!("{} discards {selection:?}", machine.name));
        discard_on(&ends, &feeding.settings, &selection).await
    } else {
        world.log(|| format!("{} retries {selection:?}", machine.name));
        retry_on(&ends, &feeding.settings, &selection).await
    };
    world.log(|| format!("{}: {}", machine.name, summary(&done)));
}

/// Compares, and perhaps repairs.
pub async fn reconcile_once(feeding: Arc<Feeding>, machine: Arc<Machine>) {
    let world = &feeding.world;
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let report = Some(folder.path().to_owned());
    let repair = world.below(2) == 0;
    let options = ReconcileOptions { repair, report, ..ReconcileOptions::default() };
    let done = reconcile_on(&feeding.ends(&machine), &feeding.settings, &options).await;
    world.log(|| format!("{}: {}", machine.name, summary(&done.as_ref().map(without_times).map_err(again))));
    let Ok(reconciled) = done else { return };
    let text = std::fs::read_to_string(folder.path().join("differences.jsonl")).unwrap_or_default();
    let name = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["name"].as_str().map(str::to_owned);
    let reported: BTreeSet<String> = text.lines().filter_map(name).collect();
    let is_spoiled = feeding.oracle().is_spoiled;
    let checked = match feeding.oracle().seen.get(&reconciled.version) {
        Some(compared) => check_report(&reconciled, &reported, compared, is_spoiled),
        None => Ok(()),
    };
    world.check(checked);
}

/// How long it took is not decided by the seed.
fn without_times(reconciled: &Reconciled) -> Reconciled {
    Reconciled { ms: 0, ..reconciled.clone() }
}

fn again(error: &FeedError) -> FeedError {
    FeedError::new(error.kind(), error.to_string())
}

/// A reconciliation finds what differs, and nothing else.
fn check_report(
    reconciled: &Reconciled,
    reported: &BTreeSet<String>,
    compared: &Observed,
    is_spoiled: bool,
) -> Result<(), String> {
    let due = &compared.differences;
    let version = compared.version;
    if due.is_empty() {
        // Which edges wait does not show in the graph, and may be wrong there since it was spoiled.
        return match reported.iter().find(|name| !is_spoiled || !name.contains("-> ")) {
            None => Ok(()),
            Some(name) => {
                Err(format!("a reconciliation says that {name} differs in version {version}, which it does not"))
            }
        };
    }
    // What comes upon a graph that is not right may not be right, either: then it is not known what has to be found.
    if reconciled.position != compared.position.of_source {
        return Ok(());
    }
    // Whether an edge at a vertex that differs is there or waits is the same to a reconciliation.
    let is_at_one = |element: &&Element| match element {
        Element::Edge(id) => [&id.source, &id.target].iter().any(|end| due.contains(&Element::Vertex((*end).clone()))),
        Element::Vertex(_) => false,
    };
    let at_one: BTreeSet<String> = due.iter().filter(is_at_one).map(ToString::to_string).collect();
    let due: BTreeSet<String> = due.iter().filter(|it| !is_at_one(it)).map(ToString::to_string).collect();
    let found: BTreeSet<String> = reported.difference(&at_one).cloned().collect();
    let is_excused = is_spoiled && found.difference(&due).all(|name| name.contains("-> "));
    match due == found || (is_excused && due.is_subset(&found)) {
        true => Ok(()),
        false => Err(format!("a reconciliation of version {version} finds {found:?}, where {due:?} differ")),
    }
}

/// Changes the graph as nobody should.
pub async fn damage_once(feeding: Arc<Feeding>, machine: Arc<Machine>) {
    let world = &feeding.world;
    let Some(graph): Option<Graph> = open(world, &machine, None).await else { return };
    let elements: Vec<Element> =
        feeding.oracle().last().into_iter().flat_map(|last| last.content.keys().cloned()).collect();
    let Some(operation) = damage(world, &elements) else { return };
    feeding.oracle().is_spoiled = true;
    world.log(|| format!("{} damages the graph: {operation}", machine.name));
    let batch = Batch { operations: vec![operation], message: DAMAGE.into(), ..Batch::default() };
    let done = graph.apply(batch).await.map_err(FeedError::from);
    world.log(|| format!("{}: {}", machine.name, summary(&done.map(|done| done.version))));
    if world.below(2) == 0 {
        repair_in_a_hurry(&feeding, &machine).await;
    }
}

/// Repairs while much of what is repaired changes.
async fn repair_in_a_hurry(feeding: &Arc<Feeding>, machine: &Arc<Machine>) {
    let changing = async {
        for _ in 0..HURRIED_TRANSACTIONS {
            sleep(Duration::from_millis(feeding.world.below(1_000))).await;
            feeding.transact();
        }
        std::future::pending().await
    };
    tokio::select! {
        biased;
        () = repair(feeding, machine) => {}
        () = changing => {}
    }
}

fn damage(world: &World, elements: &[Element]) -> Option<Operation> {
    let mut random = world.random(Concern::Feed);
    let element = elements.get(random.below(elements.len().max(1) as u64) as usize)?;
    Some(match (element, random.below(4)) {
        (_, 0) => {
            let vertex = VertexRef::new("Note", Key::Int64(1_000 + random.below(100) as i64));
            Operation::UpsertVertex { vertex, properties: Properties::new(), replace: false }
        }
        (Element::Vertex(vertex), 1) => Operation::DeleteVertex { vertex: vertex.clone() },
        (Element::Vertex(vertex), _) => {
            let (name, value) = match vertex.label.as_str() {
                "Team" => ("title", Value::from("nobody's")),
                "Person" => ("name", Value::from("nobody")),
                _ => ("body", Value::Int64(-1)),
            };
            let properties = Properties::from_iter([(name, value)]);
            Operation::UpsertVertex { vertex: vertex.clone(), properties, replace: false }
        }
        (Element::Edge(id), _) => {
            let label = id.label.clone();
            let source = id.source.clone();
            let target = id.target.clone();
            Operation::DeleteEdge { label, source, target, key: id.key.as_ref().map(Into::into) }
        }
    })
}
