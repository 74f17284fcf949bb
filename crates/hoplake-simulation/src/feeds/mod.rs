//! A graph that follows the tables of a database, while both, the store and the feeds fail.
//!
//! ```text
//! tables     what the database does with its rows, and what a graph has to have of them
//! database   its log, and random transactions
//! feeding    what happens in a seed
//! source     the way to it: connections that break, answers that come late
//! actors     feeds that are killed, commands next to them, and somebody who damages the graph
//! oracle     what each version has to be
//! ```
//! The store, its faults and its machines are those of graphs that processes change.

mod actors;
mod database;
mod feeding;
mod oracle;
mod source;
mod tables;

use std::{collections::BTreeSet, sync::Arc};

use hoplake::{Batch, Graph};
use hoplake_feed::{
    Ends, Feed, FeedError, FeedErrorKind, ReconcileOptions, Retried, RunOptions, Selection, Settings, discard_on,
    letters::Letter, reconcile_on, retry_on,
};
use tokio::{
    task::JoinSet,
    time::{Duration, sleep, timeout},
};

use self::{
    actors::Watching,
    feeding::{Feeding, Plan},
    oracle::observe,
    source::SOURCE,
};
use crate::{
    beginning::begin_empty,
    drawing::drawing,
    machine::Machine,
    process::open,
    upkeep::{compact_once, now_and_then},
    world::{Concern, World},
};

/// How often the last feed begins anew: what a process of before has sent may still arrive.
const LAST_FEEDS_MAX: u32 = 20;

/// After so long without faults everything is followed.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(3_600);

/// A seed from beginning to end.
pub(crate) async fn live(world: &Arc<World>) {
    let feeding = Arc::new(Feeding::draw(world));
    let mut audited = JoinSet::new();
    audited.spawn(drawing(audit(feeding.clone())));
    found(&feeding).await;
    let mut actors = JoinSet::new();
    for number in 0..feeding.plan.feeds {
        actors.spawn(drawing(actors::follow(feeding.clone(), number)));
    }
    let Plan { purges, damages, discards, reconciles, retries, vacuums, .. } = feeding.plan;
    if purges {
        actors.spawn(drawing(actors::purge(feeding.clone())));
    }
    actors.spawn(drawing(now_and_then(world.clone(), "compaction", 20_000, compact_once)));
    let of_feeding = |is_there: bool| is_there.then(|| feeding.clone());
    if let Some(feeding) = of_feeding(vacuums) {
        let step = move |_, machine| actors::vacuum_all_once(feeding.clone(), machine);
        actors.spawn(drawing(now_and_then(world.clone(), "vacuum", 20_000, step)));
    }
    if let Some(feeding) = of_feeding(damages) {
        let step = move |_, machine| actors::damage_once(feeding.clone(), machine);
        actors.spawn(drawing(now_and_then(world.clone(), "vandal", 30_000, step)));
    }
    if let Some(feeding) = of_feeding(reconciles) {
        let step = move |_, machine| actors::reconcile_once(feeding.clone(), machine);
        actors.spawn(drawing(now_and_then(world.clone(), "reconciler", 20_000, step)));
    }
    if let Some(feeding) = of_feeding(retries || discards) {
        let step = move |_, machine| actors::letters_once(feeding.clone(), machine);
        actors.spawn(drawing(now_and_then(world.clone(), "operator", 20_000, step)));
    }
    for _ in 0..feeding.plan.transactions {
        sleep(Duration::from_millis(world.below(feeding.plan.pause_ms + 1))).await;
        if feeding.plan.alters && world.random(Concern::Alter).below(15) == 0 {
            feeding.alter();
        }
        feeding.transact();
    }
    sleep(Duration::from_millis(world.below(60_000))).await;
    actors.abort_all();
    while let Some(ended) = actors.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            world.violated(format!("an actor panicked: {error}"));
        }
    }
    world.log(|| "all is done; now it is calm".into());
    world.calm_down();
    if timeout(FOLLOWED_WITHIN, reckon(&feeding)).await.is_err() {
        world.violated("without faults the tables are not followed to their end");
    }
}

/// The graph before the first fault: empty, at the beginning of the log, or a first copy.
async fn found(feeding: &Arc<Feeding>) {
    let Feeding { world, plan, .. } = &**feeding;
    world.history().is_fed();
    begin_empty(world);
    let machine = Machine::new("founder", true);
    let Some(transactions) = plan.copied else {
        let Some(graph) = open(world, &machine, None).await else { return };
        let source_positions = [(SOURCE.to_owned(), "0".to_owned())].into();
        if let Err(error) = graph.apply(Batch { source_positions, ..Batch::default() }).await {
            world.violated(format!("the first commit failed: {error}"));
        }
        // It notes what the tables are at the beginning of the log.
        return open_once(feeding, &machine).await;
    };
    for _ in 0..transactions {
        feeding.transact();
    }
    if plan.feeds_copy {
        return;
    }
    open_once(feeding, &machine).await;
}

async fn open_once(feeding: &Feeding, machine: &Arc<Machine>) {
    let ends = feeding.ends(machine);
    let settings = feeding.settings.clone();
    if let Err(error) = Feed::open_on(ends, settings, RunOptions::default(), Arc::new(())).await {
        feeding.world.violated(format!("the first feed failed: {error}"));
    }
}

/// Reads every version as soon as it is there, without any fault.
async fn audit(feeding: Arc<Feeding>) {
    // What is there may not be there any more after the next loss of power.
    if feeding.world.in_folder {
        std::future::pending::<()>().await;
    }
    let mut audited = 1;
    loop {
        audited = audit_after(&feeding, audited).await;
        feeding.world.until_published().await;
    }
}

/// Reads the versions behind one, and returns the newest.
async fn audit_after(feeding: &Feeding, mut audited: u64) -> u64 {
    let world = &feeding.world;
    let machine = Machine::new("auditor", true);
    loop {
        let (version, remembered, message) = {
            let history = world.history();
            let Some(version) = history.after(audited) else { return audited };
            let message = history.manifest(version).map(|manifest| manifest.change.message.clone());
            (version, history.remembered(version), message.unwrap_or_default())
        };
        audited = version;
        let Some(graph) = open(world, &machine, Some(version)).await else { continue };
        match observe(&graph, remembered, message).await {
            Ok(None) => {}
            Ok(Some(observed)) => {
                world.log(|| format!("version {version} is at {}", observed.position));
                let taken = feeding.oracle().take(observed);
                world.check(taken);
            }
            Err(error) if !world.history().is_gone(version) => {
                world.violated(format!("version {version} cannot be read: {error}"));
            }
            Err(_) => {}
        }
    }
}

/// Without faults everything is followed, what was set aside is applied, and what differs is repaired.
async fn reckon(feeding: &Arc<Feeding>) {
    let world = &feeding.world;
    if world.in_folder {
        audit_after(feeding, 1).await;
    }
    for number in 0..LAST_FEEDS_MAX {
        match last_feed(feeding, number).await {
            Ok(true) => return,
            Ok(false) => {}
            // What was sent before may arrive now.
            Err(error) if error.kind() == FeedErrorKind::Conflict => {}
            Err(error) => return world.violated(format!("the last feed failed: {:?}, {error}", error.kind())),
        }
    }
    world.violated("the last feeds do not come to an end");
}

/// Whether the graph is what the tables say.
async fn last_feed(feeding: &Arc<Feeding>, number: u32) -> Result<bool, FeedError> {
    let Feeding { world, settings, .. } = &**feeding;
    let machine = Machine::new(format!("last feed.{number}"), false);
    let ends = feeding.ends(&machine);
    let watching = Arc::new(Watching { feeding: feeding.clone(), machine: machine.clone() });
    let repair = ReconcileOptions { repair: true, ..ReconcileOptions::default() };
    let mut options = RunOptions { once: true, ..RunOptions::default() };
    let followed = follow_once(&ends, settings, options.clone(), watching.clone()).await;
    match followed {
        Err(error) if error.kind() == FeedErrorKind::Purged || error.stop_note().is_some() => {
            options.resnapshot = true;
            follow_once(&ends, settings, options, watching).await?;
        }
        // Of a graph that is not what the tables say, the feed may not go on.
        Err(error) if error.kind() == FeedErrorKind::Row && feeding.oracle().is_spoiled => {
            reconcile_on(&ends, settings, &repair).await?;
            return Ok(false);
        }
        followed => followed?,
    }
    let is_spoiled = feeding.oracle().is_spoiled;
    if is_spoiled {
        machine.stepped();
        // What letters depend on may not be there.
        reconcile_on(&ends, settings, &repair).await?;
    }
    machine.stepped();
    let has_all = match retry_on(&ends, settings, &Selection::All).await {
        Ok(Retried { left, .. }) => left == 0,
        // What somebody deleted of the graph, and a letter holds, no repair brings back.
        Err(error) if is_spoiled && error.kind() == FeedErrorKind::Graph => false,
        Err(error) => return Err(error),
    };
    if is_spoiled && !has_all {
        discard_on(&ends, settings, &Selection::All).await?;
    }
    for _ in 0..5 {
        machine.stepped();
        let reconciled = reconcile_on(&ends, settings, &repair).await?;
        if reconciled.is_equal() {
            break;
        }
        if !is_spoiled {
            world.violated(format!("a reconciliation finds differences where none are: {reconciled:?}"));
        }
    }
    // Until the auditor has read what was published.
    sleep(Duration::from_millis(1)).await;
    check_end(feeding, &machine).await;
    Ok(true)
}

async fn follow_once(
    ends: &Ends,
    settings: &Settings,
    options: RunOptions,
    watching: Arc<Watching>,
) -> Result<(), FeedError> {
    let mut feed = Feed::open_on(ends.clone(), settings.clone(), options, watching).await?;
    feed.run(std::future::pending()).await
}

/// The newest version has what the tables have, but for rows that cannot be read.
async fn check_end(feeding: &Feeding, machine: &Arc<Machine>) {
    let world = &feeding.world;
    let newest = world.history().newest();
    let Some(graph): Option<Graph> = open(world, machine, Some(newest)).await else { return };
    let remembered = world.history().remembered(newest);
    let observed = match observe(&graph, remembered, String::new()).await {
        Ok(Some(observed)) => observed,
        found => return world.violated(format!("version {newest} cannot be read: {found:?}")),
    };
    let position = feeding.database.position();
    if observed.number() != position {
        return world.violated(format!("the end is {position}, and the graph is at {}", observed.position));
    }
    let expected = match feeding.oracle().expected(position) {
        Ok(expected) => expected,
        Err(why) => return world.violated(why),
    };
    if let Some(letter) = readable(&observed.letters, expected.bad.clone()) {
        let names = &letter.names;
        let why = &letter.why;
        return world.violated(format!("at the end {names:?} are held for {why:?}, and the rows can be read"));
    }
    let different = expected.differences(&observed.content, &observed.held);
    if let Some(element) = different.first() {
        world.violated(format!("at the end {element} is not what the tables say"));
    }
}

/// A letter that no row keeps which cannot be read, by its own names or those of letters that share some.
fn readable(letters: &[Letter], mut bad: BTreeSet<String>) -> Option<&Letter> {
    loop {
        let known = bad.len();
        for letter in letters {
            if letter.names.iter().any(|name| bad.contains(name)) {
                bad.extend(letter.names.iter().cloned());
            }
        }
        if bad.len() == known {
            return letters.iter().find(|letter| !letter.names.iter().any(|name| bad.contains(name)));
        }
    }
}
