//! Time, memory and disk of the stores of states, of caches above them, and of serialisers. States are loaded once and changed in each
//! superstep, in ranges, as a run does it; on one thread, so that stores are compared and not locks.

use std::{
    hint::black_box,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::{Args, ValueEnum};
use hoplake_analytics::{
    Value,
    stores::{
        CacheCounts, CachePolicy, CachedStore, Compressed, CompressedStore, FixedWidth, Generic, KeyValueStore,
        MemoryStore, Serialiser, SlotStore, StateStore,
    },
};
use hoplake_testkit::{clock::median, generate::SplitMix64};
use serde::{Serialize, de::DeserializeOwned};

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Vertices, tables for each.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000_000, 10_000_000])]
    vertices: Vec<u32>,
    /// The tables.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Table::Stores, Table::Caches, Table::Serialisers])]
    tables: Vec<Table>,
    /// The stores.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Kind::value_variants().to_vec())]
    stores: Vec<Kind>,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// Each store by itself.
    Stores,
    /// Policies and sizes of caches above the stores on disk.
    Caches,
    /// Bytes of states, and the time to make and to read them.
    Serialisers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Memory,
    Compressed,
    Slots,
    KeyValue,
}

impl Kind {
    /// Whether a cache above it makes sense.
    fn is_slow(self) -> bool {
        !matches!(self, Self::Memory | Self::Compressed)
    }
}

/// Vertices of a range.
const RANGE: u32 = 1 << 14;
/// Parts of the states that caches have room for, in a hundred.
const ROOM: [u64; 3] = [50, 90, 100];

/// Measures and prints tables for each number of vertices.
pub fn run(arguments: &Arguments) -> Result<()> {
    for vertices in &arguments.vertices {
        println!("{vertices} vertices");
        let mut random = SplitMix64::new(arguments.seed);
        // Ranks of which no two are the same, and levels of a small world.
        let ranks: Vec<f64> = (0..*vertices).map(|_| random.next_u64() as f64 / 1e26).collect();
        let levels: Vec<u32> = (0..*vertices).map(|_| 3 + (random.next_u64() % 9).min(3) as u32).collect();
        for table in &arguments.tables {
            match table {
                Table::Stores => {
                    println!(
                        "\n| store | state | load, ns a vertex | superstep, ns a vertex | memory, bytes a vertex | disk |"
                    );
                    println!("| --- | --- | --- | --- | --- | --- |");
                    of_stores(arguments, "rank, 8 bytes", &ranks, |rank| rank * 0.99)?;
                    of_stores(arguments, "level, 4 bytes", &levels, |level| level.max(3))?;
                }
                Table::Caches => of_caches(arguments, &ranks)?,
                Table::Serialisers => {
                    println!("\n| serialiser | state | bytes a state | write, ns | read, ns |");
                    println!("| --- | --- | --- | --- | --- |");
                    of_serialisers(arguments, "rank, 8 bytes", &ranks)?;
                    of_serialisers(arguments, "level, 4 bytes", &levels)?;
                }
            }
        }
        println!();
    }
    Ok(())
}

fn of_stores<S: Value>(arguments: &Arguments, name: &str, states: &[S], change: impl Fn(S) -> S) -> Result<()> {
    for kind in &arguments.stores {
        let place = Place::new(*kind)?;
        let store = place.open::<S>(states.len() as u32, arguments.cache_mib << 20)?;
        let [load, superstep] = times(arguments, &*store, states, &change)?;
        let bytes = store.bytes();
        let [memory, disk] = [bytes.memory, bytes.disk].map(|bytes| bytes as f64 / states.len() as f64);
        println!("| {} | {name} | {load:.1} | {superstep:.1} | {memory:.1} | {disk:.1} |", place.name());
    }
    Ok(())
}

/// Loads states, and returns the nanoseconds a vertex of that and of the median superstep.
fn times<S: Value>(
    arguments: &Arguments,
    store: &dyn StateStore<S>,
    states: &[S],
    change: impl Fn(S) -> S,
) -> Result<[f64; 2]> {
    let count = states.len() as u32;
    let began = Instant::now();
    for range in ranges(count) {
        store.put(range.start, states[range.start as usize..range.end as usize].to_vec())?;
    }
    let load = began.elapsed();
    let mut times = Vec::new();
    for _ in 0..arguments.supersteps.max(1) {
        let began = Instant::now();
        superstep(store, count, &change)?;
        times.push(began.elapsed());
    }
    Ok([load, median(times).unwrap_or_default()].map(|time| time.as_nanos() as f64 / f64::from(count)))
}

fn superstep<S: Value>(store: &dyn StateStore<S>, count: u32, change: impl Fn(S) -> S) -> Result<()> {
    for range in ranges(count) {
        let mut taken = store.take(range.clone())?;
        taken.iter_mut().for_each(|state| *state = change(*state));
        store.put(range.start, taken)?;
    }
    Ok(())
}

fn of_caches(arguments: &Arguments, ranks: &[f64]) -> Result<()> {
    println!(
        "\n| store | policy | room, % of the states | found, % | load, ns a vertex | superstep, ns a vertex | end, ns a vertex |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let count = ranks.len() as u32;
    let whole = ranks.len() as u64 * 8;
    for kind in arguments.stores.iter().filter(|kind| kind.is_slow()) {
        for (policy, room) in
            [CachePolicy::Lru, CachePolicy::Score].into_iter().flat_map(|policy| ROOM.map(|room| (policy, room)))
        {
            let place = Place::new(*kind)?;
            let below: Arc<dyn StateStore<f64>> = place.open(count, arguments.cache_mib << 20)?.into();
            let cache = CachedStore::new(below, count, policy, whole * room / 100)?;
            let [load, time] = times(arguments, &cache, ranks, |rank| rank * 0.99)?;
            let before = cache.counts();
            superstep(&cache, count, |rank| rank * 0.99)?;
            let CacheCounts { reads, .. } = cache.counts();
            let chunks = f64::from(count.div_ceil(RANGE));
            let found = 100.0 * (1.0 - (reads - before.reads) as f64 / chunks);
            let began = Instant::now();
            cache.flush()?;
            let end = began.elapsed().as_nanos() as f64 / f64::from(count);
            let name = place.name();
            println!("| {name} | {policy:?} | {room} | {found:.0} | {load:.1} | {time:.1} | {end:.1} |");
        }
    }
    Ok(())
}

fn of_serialisers<S>(arguments: &Arguments, name: &str, states: &[S]) -> Result<()>
where
    S: Value + Serialize + DeserializeOwned,
{
    let serialisers: [(&str, Box<dyn Serialiser<S>>); 4] = [
        ("fixed width", Box::new(FixedWidth)),
        ("generic", Box::new(Generic)),
        ("fixed width, compressed", Box::new(Compressed(FixedWidth))),
        ("generic, compressed", Box::new(Compressed(Generic))),
    ];
    for (serialiser_name, serialiser) in serialisers {
        let mut writes = Vec::new();
        let mut reads = Vec::new();
        let mut bytes = 0;
        for _ in 0..arguments.supersteps.max(1) {
            let [mut write, mut read] = [Duration::ZERO; 2];
            bytes = 0;
            for chunk in states.chunks(RANGE as usize) {
                let began = Instant::now();
                let written = black_box(serialiser.write(chunk)?);
                write += began.elapsed();
                bytes += written.len();
                let began = Instant::now();
                black_box(serialiser.read(&written, chunk.len())?);
                read += began.elapsed();
            }
            writes.push(write);
            reads.push(read);
        }
        let a_state = |time: Duration| time.as_nanos() as f64 / states.len() as f64;
        let [write, read] = [writes, reads].map(|times| a_state(median(times).unwrap_or_default()));
        let bytes = bytes as f64 / states.len() as f64;
        println!("| {serialiser_name} | {name} | {bytes:.2} | {write:.1} | {read:.1} |");
    }
    Ok(())
}

/// Where a store is.
struct Place {
    kind: Kind,
    folder: tempfile::TempDir,
}

impl Place {
    fn new(kind: Kind) -> Result<Self> {
        Ok(Self { kind, folder: tempfile::tempdir()? })
    }

    fn name(&self) -> String {
        self.kind.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn open<S: Value>(&self, vertices: u32, cache_bytes: usize) -> Result<Box<dyn StateStore<S>>> {
        let file = |name: &str| self.folder.path().join(name);
        Ok(match self.kind {
            Kind::Memory => Box::new(MemoryStore::new(vertices)),
            Kind::Compressed => Box::new(CompressedStore::new(vertices)),
            Kind::Slots => Box::new(SlotStore::open(&file("slots"), vertices)?),
            Kind::KeyValue => Box::new(KeyValueStore::open(&file("states.redb"), vertices, cache_bytes)?),
        })
    }
}

fn ranges(vertices: u32) -> impl Iterator<Item = Range<u32>> {
    (0..vertices).step_by(RANGE as usize).map(move |first| first..vertices.min(first + RANGE))
}
