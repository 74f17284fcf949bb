//! Time, memory and disk of the stores of states. States are loaded once and changed in each superstep, in ranges, as a run does it;
//! on one thread, so that stores are compared and not locks.

use std::{ops::Range, path::Path, time::Instant};

use anyhow::Result;
use clap::Args;
use hoplake_analytics::{
    Value,
    stores::{CompressedStore, KeyValueStore, MemoryStore, SlotStore, StateStore, StoreError},
};
use hoplake_testkit::generate::SplitMix64;

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Vertices, a table for each.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000_000, 10_000_000])]
    vertices: Vec<u32>,
    /// Supersteps, of which the median counts.
    #[arg(long, default_value_t = 5)]
    supersteps: usize,
    /// The cache of the key-value store, in MiB.
    #[arg(long, default_value_t = 64)]
    cache_mib: usize,
    /// The seed of the states.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Vertices of a range.
const RANGE: u32 = 1 << 14;

/// Measures and prints a table for each number of vertices.
pub fn run(arguments: &Arguments) -> Result<()> {
    for vertices in &arguments.vertices {
        println!("{vertices} vertices\n");
        println!("| store | state | load, ns a vertex | superstep, ns a vertex | memory, bytes a vertex | disk |");
        println!("| --- | --- | --- | --- | --- | --- |");
        let mut random = SplitMix64::new(arguments.seed);
        // Ranks of which no two are the same, and levels of a small world.
        let ranks: Vec<f64> = (0..*vertices).map(|_| random.next_u64() as f64 / 1e26).collect();
        let levels: Vec<u32> = (0..*vertices).map(|_| 3 + (random.next_u64() % 9).min(3) as u32).collect();
        of_states(arguments, "rank, 8 bytes", &ranks, |rank| rank * 0.99)?;
        of_states(arguments, "level, 4 bytes", &levels, |level| level.max(3))?;
        println!();
    }
    Ok(())
}

fn of_states<S: Value>(arguments: &Arguments, name: &str, states: &[S], change: impl Fn(S) -> S) -> Result<()> {
    let count = states.len() as u32;
    for store in ["memory", "compressed", "slots", "key-value"] {
        let folder = tempfile::tempdir()?;
        let began = Instant::now();
        let store_of_states = open::<S>(store, folder.path(), count, arguments.cache_mib << 20)?;
        for range in ranges(count) {
            store_of_states.put(range.start, states[range.start as usize..range.end as usize].to_vec())?;
        }
        let load = began.elapsed();
        let mut times = Vec::new();
        for _ in 0..arguments.supersteps.max(1) {
            let began = Instant::now();
            for range in ranges(count) {
                let mut taken = store_of_states.take(range.clone())?;
                taken.iter_mut().for_each(|state| *state = change(*state));
                store_of_states.put(range.start, taken)?;
            }
            times.push(began.elapsed());
        }
        times.sort();
        let [load, superstep] = [load, times[times.len() / 2]].map(|time| time.as_nanos() as f64 / f64::from(count));
        let bytes = store_of_states.bytes();
        let [memory, disk] = [bytes.memory, bytes.disk].map(|bytes| bytes as f64 / f64::from(count));
        println!("| {store} | {name} | {load:.1} | {superstep:.1} | {memory:.1} | {disk:.1} |");
    }
    Ok(())
}

fn open<S: Value>(
    store: &str,
    folder: &Path,
    vertices: u32,
    cache_bytes: usize,
) -> Result<Box<dyn StateStore<S>>, StoreError> {
    Ok(match store {
        "memory" => Box::new(MemoryStore::new(vertices)),
        "compressed" => Box::new(CompressedStore::new(vertices)),
        "slots" => Box::new(SlotStore::open(&folder.join("slots"), vertices)?),
        _ => Box::new(KeyValueStore::open(&folder.join("states.redb"), vertices, cache_bytes)?),
    })
}

fn ranges(vertices: u32) -> impl Iterator<Item = Range<u32>> {
    (0..vertices).step_by(RANGE as usize).map(move |first| first..vertices.min(first + RANGE))
}
