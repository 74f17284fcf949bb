//! Clones: a process creates a graph from a version of the first one, and others change it.
//!
//! The guarantee: a clone has the content of the version, and keeps it whatever happens to the first graph, as long as
//! the first graph has the clone's tag, which no process removes here. The oracle of each graph looks at every object
//! that goes.

use std::sync::{Arc, atomic::AtomicU64};

use hoplake::{Error, ErrorKind, Reader};
use hoplake_engine::history;
use hoplake_storage::QueryContext;

use crate::{
    location::GraphLocation,
    machine::Machine,
    process::{self, Workload, excused, reader_of, store_at},
    upkeep::{compact_once, vacuum_once},
    world::World,
};

/// Clones a version, and works on the clone for a while.
pub async fn clone_once(world: Arc<World>, machine: Arc<Machine>, workload: Arc<Workload>) {
    let versions: Vec<u64> = world.history().versions().collect();
    let version = versions[world.below(versions.len() as u64) as usize];
    let Some(location) = world.next_location() else { return clone_over(&world, &machine, version).await };
    if !clone(&world, &machine, version, location).await {
        return;
    }
    let workload = Workload {
        vocabulary: workload.vocabulary.clone(),
        operations: AtomicU64::new(1 + world.below(6)),
        pause_ms: workload.pause_ms,
    };
    process::run(world.clone(), Arc::new(workload), location, format!("p of {}", location.url())).await;
    let machine = Machine::at(location, format!("keeper of {}", location.url()), false);
    let work = async {
        if world.below(2) == 0 {
            compact_once(world.clone(), machine.clone()).await;
        }
        vacuum_once(world.clone(), machine.clone()).await;
    };
    tokio::select! {
        biased;
        () = machine.until_dead() => {}
        () = work => {}
    }
}

/// Whether there is a clone then.
async fn clone(world: &Arc<World>, machine: &Arc<Machine>, version: u64, location: GraphLocation) -> bool {
    let source = reader_of(world, machine);
    let target = Reader::new(store_at(location, world, machine), source.pool().clone());
    world.log(|| format!("{} clones version {version} to {}", machine.name, location.url()));
    let cloned =
        history::clone(&source, version, &target, &mut QueryContext::new().branch()).await.map_err(Error::from);
    world
        .log(|| format!("{}: {}", location.url(), cloned.as_ref().map_or_else(ToString::to_string, |tag| tag.clone())));
    let found = world.history_of(location).newest();
    match cloned {
        Ok(_) if found != version => {
            world.violated(format!("{} was cloned as version {version}, and has {found}", location.url()));
        }
        Ok(_) => return true,
        // A vacuum was faster.
        Err(error) if error.kind() == ErrorKind::NotFound && world.history().is_gone(version) => {}
        // A client that repeats its create may meet itself, or never learns what became of it.
        Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Unknown) && !world.schedule.is_fair() => {
        }
        Err(error) => excused(world, machine, &format!("clone version {version}"), &error),
    }
    false
}

/// A clone over an existing graph must fail.
async fn clone_over(world: &Arc<World>, machine: &Arc<Machine>, version: u64) {
    let begun = GraphLocation::all().skip(1).find(|location| world.history_of(*location).newest() > 0);
    let Some(location) = begun else { return };
    let source = reader_of(world, machine);
    let target = Reader::new(store_at(location, world, machine), source.pool().clone());
    match history::clone(&source, version, &target, &mut QueryContext::new().branch()).await.map_err(Error::from) {
        Ok(_) => world.violated(format!("version {version} was cloned over {}", location.url())),
        Err(error) if error.kind() == ErrorKind::Conflict => {}
        Err(error) if error.kind() == ErrorKind::Unknown && !world.schedule.is_fair() => {}
        Err(error) if error.kind() == ErrorKind::NotFound && world.history().is_gone(version) => {}
        Err(error) => excused(world, machine, "clone over another graph", &error),
    }
}
