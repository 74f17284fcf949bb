//! Nanoseconds of a hit and of an insert that evicts, by policy, and those of a well-kept library.
//!
//! The keys are those of blocks in four segments, drawn by Zipf's law. Nothing looks at the blocks' bytes: what is
//! measured is the cache, not the machine's memory. `--write-trace` writes the synthetic accesses of the tests
//! at full size, for `hoplake cache-sim`.

use std::{
    hint::black_box,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use anyhow::Result;
use bytes::Bytes;
use clap::Args;
use hoplake_storage::{
    Tier,
    cache::{CacheSettings, ENTRY_BYTES, MemoryCache, Policy},
    trace::{Access, Trace},
};
use hoplake_testkit::generate::{AccessPattern, BlockAccess, SplitMix64, Zipf, block_accesses};
use quick_cache::{Weighter, sync::Cache};

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Blocks that are read.
    #[arg(long, default_value_t = 16_384)]
    blocks: usize,
    /// Bytes of a block. Small ones make the machine's memory matter less.
    #[arg(long, default_value_t = 1_024)]
    block_bytes: usize,
    /// Operations of each thread.
    #[arg(long, default_value_t = 2_000_000)]
    operations: usize,
    /// Threads.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Policies; all by default.
    #[arg(long, value_delimiter = ',')]
    policies: Vec<Policy>,
    /// Instead of measuring, writes a synthetic trace to this file.
    #[arg(long)]
    write_trace: Option<PathBuf>,
    /// Runs, of which the best counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// A block's key as the reader has it.
type Key = (u32, u64);

/// What both caches can do.
trait Subject: Sync {
    fn get(&self, key: Key) -> Option<Bytes>;
    fn insert(&self, key: Key, block: Bytes);
}

impl Subject for MemoryCache {
    fn get(&self, key: Key) -> Option<Bytes> {
        self.get(key)
    }

    fn insert(&self, key: Key, block: Bytes) {
        self.insert(key, block);
    }
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<Key, Bytes> for ByBytes {
    fn weight(&self, _: &Key, block: &Bytes) -> u64 {
        block.len() as u64 + ENTRY_BYTES
    }
}

impl Subject for Cache<Key, Bytes, ByBytes> {
    fn get(&self, key: Key) -> Option<Bytes> {
        self.get(&key)
    }

    fn insert(&self, key: Key, block: Bytes) {
        self.insert(key, block);
    }
}

/// Prints a row for each policy and the library.
pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(path) = &arguments.write_trace {
        return write_trace(path);
    }
    let policies = if arguments.policies.is_empty() { Policy::ALL.to_vec() } else { arguments.policies.clone() };
    println!("| cache | threads | hit, ns | miss and insert, ns |");
    println!("| --- | --- | --- | --- |");
    let weight = arguments.block_bytes as u64 + ENTRY_BYTES;
    // Hits: everything fits. Inserts: a quarter does, and every second operation finds nothing.
    let [roomy, tight] = [2, 0].map(|times| match times {
        0 => arguments.blocks as u64 * weight / 4,
        times => arguments.blocks as u64 * weight * times,
    });
    for threads in &arguments.threads {
        for policy in &policies {
            let cache = |cache_bytes_max| {
                MemoryCache::new(CacheSettings { cache_bytes_max, policy: *policy, ..CacheSettings::default() })
            };
            print_row(&policy.to_string(), arguments, *threads, cache(roomy), || cache(tight));
        }
        let cache = |bytes: u64| Cache::with_weighter((bytes / weight) as usize, bytes, ByBytes);
        print_row("quick_cache", arguments, *threads, cache(roomy), || cache(tight));
    }
    Ok(())
}

fn write_trace(path: &Path) -> Result<()> {
    let trace = Trace::create(path)?;
    for BlockAccess { query, wave, object, position, bytes } in block_accesses(&AccessPattern::default()) {
        let object = ["keys", "adjacency", "properties"][object as usize];
        trace.record(&Access { query, wave, object, position, bytes, served: Tier::Store });
    }
    println!("{} accesses", trace.finish()?);
    Ok(())
}

fn print_row<S: Subject>(name: &str, arguments: &Arguments, threads: usize, roomy: S, tight: impl Fn() -> S) {
    for block in 0..arguments.blocks {
        roomy.insert(key(block), vec![0; arguments.block_bytes].into());
    }
    let hit = best(arguments, threads, || &roomy, |cache, key, _| black_box(cache.get(key)).is_some());
    let spare = Bytes::from(vec![0; arguments.block_bytes]);
    let tight = tight();
    let insert = best(
        arguments,
        threads,
        || &tight,
        |cache, (object, position), random| {
            // A thousand times as many blocks as there are: nearly none is there.
            let key = (object, position + (random.below(1_000) << 30));
            let missed = cache.get(key).is_none();
            if missed {
                cache.insert(key, spare.clone());
            }
            missed
        },
    );
    println!("| {name} | {threads} | {hit:.0} | {insert:.0} |");
}

fn key(block: usize) -> Key {
    ((block % 4) as u32, block as u64 / 4 * 16_380)
}

/// Nanoseconds of one operation of one thread, in the best of the runs.
fn best<'a, S: Subject + 'a>(
    arguments: &Arguments,
    threads: usize,
    cache: impl Fn() -> &'a S,
    operation: impl Fn(&S, Key, &mut SplitMix64) -> bool + Sync,
) -> f64 {
    let zipf = Zipf::new(arguments.blocks, 0.9);
    let mut random = SplitMix64::new(11);
    // Drawn beforehand: a draw costs as much as a hit.
    let keys: Vec<Key> = (0..1 << 16).map(|_| key(zipf.draw(&mut random))).collect();
    let one = |_| {
        let cache = cache();
        let begun = Instant::now();
        thread::scope(|scope| {
            for thread in 0..threads {
                let keys = &keys;
                let operation = &operation;
                scope.spawn(move || {
                    let mut random = SplitMix64::new(thread as u64);
                    let mut done = 0;
                    for step in 0..arguments.operations {
                        let key = keys[(step + thread * 30_011) & (keys.len() - 1)];
                        done += usize::from(operation(cache, key, &mut random));
                    }
                    black_box(done)
                });
            }
        });
        begun.elapsed().as_secs_f64() * 1e9 / arguments.operations as f64
    };
    (0..arguments.runs).map(one).fold(f64::INFINITY, f64::min)
}
