//! What happens next to the processes that commit: vacuums, compactions, indexes, tags and restored versions.

use std::{sync::Arc, time::Duration};

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
use tokio::time::sleep;

use crate::{
    batches::Vocabulary,
    machine::Machine,
    process::{reader_of, store_of},
    world::World,
};

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
        span_items: 200,
    };
    [SegmentSettings::default(), tiny][world.below(2) as usize]
}

/// Properties that may have indexes; the graph may lack some of them.
pub fn index_names(vocabulary: &Vocabulary) -> Vec<String> {
    let of = |label: &&str| ["name", "weight", "score"].map(|property| format!("{label}.{property}"));
    vocabulary.labels().iter().flat_map(of).collect()
}

/// Creates an index, or drops one.
pub async fn index_once(world: Arc<World>, machine: Arc<Machine>, names: Arc<Vec<String>>) {
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
pub async fn operate_once(world: Arc<World>, machine: Arc<Machine>) {
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
