//! Ways of reading blocks of files on a local disk, compared on the same work.
//!
//! Hoplake maps the files of a graph in a folder, turns the system's readahead off, and advises it of the blocks that it will read. This
//! program measures that against maps without such advice, against plain reads by a pool of threads, and against io_uring. Each way does
//! the work that queries bring:
//!
//! - *one after the other*: random blocks, each drawn from the bytes of the one before, as in a query of edges;
//! - *waves*: random blocks, all known when a wave begins, as in the frontier of a traversal;
//! - *a pass*: all blocks of all files in order, as in a scan.
//!
//! Each is measured with one thread and with several, which have draws of their own; of a pass, each thread has its part. All ways read
//! the same blocks, look at every byte, and must find the same sums.
//!
//! *Cold* begins with none of the files' pages in the page cache. *Warm* is the same work once more: what it reads is in the page
//! cache, and in the page tables of maps. How much cold work read from the disk is counted by the system, for the whole process.
//! Pages that another process has mapped cannot be evicted: no server may have the folder open. Nothing else may run next to it.
//!
//! ```sh
//! cargo run --release --manifest-path compare/Cargo.toml -p hoplake-compare-reads -- --folder FOLDER
//! ```

mod files;
mod measure;
mod ways;
mod work;

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::{Result, ensure};
use clap::{ArgGroup, Parser};

use crate::{files::Files, measure::Measurement, ways::Settings, work::Work};

/// Measures which way of reading blocks from a local disk is the fastest, and prints a Markdown table.
///
/// The ways are maps (with the system's readahead, without it, and with advice for each block), plain reads by a pool of threads, and
/// io_uring. The table has milliseconds, the least of a row in bold, and what was read from the disk.
#[derive(Debug, Parser)]
#[command(version, group(ArgGroup::new("what").required(true).args(["folder", "files"])))]
struct Arguments {
    /// The folder of a graph; all files in its folder `data` are read.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Files to read, in place of a graph's.
    files: Vec<PathBuf>,
    /// Bytes of a block. Blocks begin at multiples of that.
    #[arg(long, default_value_t = 16 << 10, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    block_bytes: u32,
    /// Blocks that a thread reads one after the other.
    #[arg(long, default_value_t = 2_000)]
    blocks: usize,
    /// Waves that a thread reads.
    #[arg(long, default_value_t = 16)]
    waves: usize,
    /// Blocks of a wave.
    #[arg(long, default_value_t = 256)]
    wave_blocks: usize,
    /// Blocks that a pass asks for before it needs them.
    #[arg(long, default_value_t = 32, value_parser = at_least_one)]
    ahead: usize,
    /// Blocks of a pass for which the system is advised with one call; at most as many as `--ahead`.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    together: usize,
    /// Threads of the pool for plain reads.
    #[arg(long, default_value_t = 32, value_parser = at_least_one)]
    pool: usize,
    /// Threads that work at once, next to a measurement with one thread.
    #[arg(long, default_value_t = 2, value_parser = at_least_one)]
    threads: usize,
    /// Rounds, of which the median counts.
    #[arg(long, default_value_t = 5, value_parser = at_least_one)]
    rounds: usize,
    /// The seed of all draws.
    #[arg(long, default_value_t = 42)]
    seed: u64,
}

fn at_least_one(given: &str) -> Result<usize> {
    let number = given.parse()?;
    ensure!(number > 0, "at least 1 is needed");
    Ok(number)
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let paths = match &arguments.folder {
        Some(folder) => files::of_graph(folder)?,
        None => arguments.files.clone(),
    };
    let files = Files::open(&paths, arguments.block_bytes)?;
    ensure!(files.blocks() > 0, "the files have no bytes");
    let settings = Settings {
        ahead: arguments.ahead,
        together: arguments.together.min(arguments.ahead),
        pool_threads: arguments.pool,
        in_flight_max: arguments.ahead.max(arguments.wave_blocks),
    };
    let works = [
        Work::OneByOne { blocks: arguments.blocks },
        Work::Waves { waves: arguments.waves, blocks: arguments.wave_blocks },
        Work::Pass,
    ];

    println!(
        "{} files, {} MiB, {} blocks of {} bytes",
        paths.len(),
        files.bytes() >> 20,
        files.blocks(),
        arguments.block_bytes
    );
    println!(
        "seed {}, {} blocks ahead, {} advised together, a pool of {} threads, medians of {} rounds\n",
        arguments.seed, settings.ahead, settings.together, settings.pool_threads, arguments.rounds
    );
    let ways = ways::available(&files, &settings);
    measure::print_header(&ways);
    for threads in BTreeSet::from([1, arguments.threads]) {
        for work in works {
            let shares = work.shares(&files, threads, arguments.seed);
            let name = match threads {
                1 => work.to_string(),
                _ => format!("{work}, {threads} threads"),
            };
            Measurement::take(&ways, &files, &settings, &shares, arguments.rounds)?.print(&name);
        }
    }
    Ok(())
}
