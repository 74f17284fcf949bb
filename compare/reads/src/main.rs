//! Ways of reading blocks of files on a local disk, compared: maps with and without advice, plain reads by a pool of threads, and io_uring.
//!
//! The files are those of a graph, or any others, and the work is what a graph's readers do: blocks one after the other where each names
//! the next, waves of blocks that are known together, and a pass over all. All ways read the same blocks, look at each byte of them, and
//! must find the same sum.
//!
//! ```sh
//! cargo run --release --manifest-path compare/Cargo.toml -p hoplake-compare-reads -- --folder FOLDER
//! ```

mod ways;
mod work;

use std::{fs, hint::black_box, path::PathBuf, time::Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use hoplake_mapping::MappedFile;

use crate::{
    ways::{Pool, Way},
    work::{Files, Work},
};

/// Compares ways of reading blocks of files on a local disk.
#[derive(Debug, Parser)]
struct Arguments {
    /// The files below this folder are read.
    #[arg(long)]
    folder: PathBuf,
    /// Bytes of a block.
    #[arg(long, default_value_t = 16 << 10)]
    block_bytes: usize,
    /// Blocks that are read one after the other.
    #[arg(long, default_value_t = 2_000)]
    blocks: usize,
    /// Waves of blocks that are known together.
    #[arg(long, default_value_t = 16)]
    waves: usize,
    /// Blocks of a wave.
    #[arg(long, default_value_t = 256)]
    wave: usize,
    /// Blocks that a pass reads ahead.
    #[arg(long, default_value_t = 32)]
    ahead: usize,
    /// Threads of the pool.
    #[arg(long, default_value_t = 32)]
    pool: usize,
    /// Threads that work at once, each with its own blocks.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Rounds, of which the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// The seed of all draws.
    #[arg(long, default_value_t = 42)]
    seed: u64,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let files = Files::below(&arguments.folder, arguments.block_bytes)?;
    ensure!(files.blocks() > 0, "{} has no file of a block or more", arguments.folder.display());
    println!(
        "{} blocks of {} bytes, {} MiB; {} threads, medians of {} rounds, in ms\n",
        files.blocks(),
        arguments.block_bytes,
        (files.blocks() * arguments.block_bytes as u64) >> 20,
        arguments.threads,
        arguments.rounds
    );
    let names = Way::ALL.map(|way| format!("{way}, cold | warm")).join(" | ");
    println!("| work | {names} |\n| --- |{}", " --- |".repeat(2 * Way::ALL.len()));
    let Arguments { blocks, waves, wave, ahead, threads, seed, .. } = arguments;
    let of_each = |draw: &dyn Fn(u64) -> Work| (0..threads as u64).map(draw).collect::<Vec<_>>();
    let one_by_one = of_each(&|thread| Work::waves(&files, blocks, 1, seed * 1000 + thread));
    measure(&format!("{blocks} blocks one after the other"), &files, &one_by_one, &arguments)?;
    let in_waves = of_each(&|thread| Work::waves(&files, waves, wave, seed * 1000 + thread));
    measure(&format!("{waves} waves of {wave} blocks"), &files, &in_waves, &arguments)?;
    let pass = of_each(&|thread| Work::pass(&files, thread, threads as u64, ahead));
    measure("a pass", &files, &pass, &arguments)
}

/// Measures a row of the table.
fn measure(name: &str, files: &Files, works: &[Work], arguments: &Arguments) -> Result<()> {
    let pool = Pool::new(files, arguments.pool)?;
    let (mut cells, mut sums) = (Vec::new(), Vec::new());
    for way in Way::ALL {
        let mut cold = Vec::new();
        for _ in 0..arguments.rounds {
            forget(files)?;
            let (sum, ms) = run(way, files, &pool, works)?;
            sums.push(sum);
            cold.push(ms);
        }
        cold.sort_by(f64::total_cmp);
        let (sum, warm) = run(way, files, &pool, works)?;
        sums.push(sum);
        cells.push(format!("{:.1} | {warm:.1}", cold[cold.len() / 2]));
    }
    ensure!(sums.iter().all(|sum| *sum == sums[0]), "all ways read the same bytes");
    println!("| {name} | {} |", cells.join(" | "));
    Ok(())
}

/// The sum of what all threads read, and how long it took.
fn run(way: Way, files: &Files, pool: &Pool, works: &[Work]) -> Result<(u64, f64)> {
    let began = Instant::now();
    let sums = std::thread::scope(|scope| {
        let threads: Vec<_> = works.iter().map(|work| scope.spawn(move || way.read(files, pool, work))).collect();
        let sum = |thread: std::thread::ScopedJoinHandle<'_, Result<u64>>| thread.join().ok().context("a panic")?;
        threads.into_iter().map(sum).collect::<Result<Vec<u64>>>()
    })?;
    let ms = began.elapsed().as_secs_f64() * 1e3;
    Ok((black_box(sums.into_iter().fold(0, u64::wrapping_add)), ms))
}

/// Empties the page cache of the files.
fn forget(files: &Files) -> Result<()> {
    for path in files.paths() {
        // Pages that were not written to the disk yet would stay.
        fs::File::open(path)?.sync_all()?;
        let mapped = MappedFile::open(path)?;
        mapped.will_not_need(0..mapped.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_read_the_same_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        // Two files, each with a rest that is no block.
        for (name, blocks) in [("a", 50u32), ("b", 30)] {
            let bytes: Vec<u8> = (0..blocks * 128 + 7).flat_map(|word| (word ^ blocks << 24).to_le_bytes()).collect();
            fs::write(folder.path().join(name), bytes).expect("a file");
        }
        let files = Files::below(folder.path(), 512).expect("two files");
        assert_eq!(files.blocks(), 80);
        let pool = Pool::new(&files, 3).expect("threads");
        let words = (0..50 * 128).map(|word: u32| word ^ 50 << 24).chain((0..30 * 128).map(|word| word ^ 30 << 24));
        let pairs: Vec<u32> = words.collect();
        let whole = pairs.as_chunks::<2>().0.iter().map(|[low, high]| u64::from(*high) << 32 | u64::from(*low));
        let whole = whole.fold(0, u64::wrapping_add);
        let halves: Vec<Work> = (0..2).map(|part| Work::pass(&files, part, 2, 8)).collect();
        let waves = [Work::waves(&files, 5, 20, 1)];
        let first = run(Way::Mapped, &files, &pool, &waves).expect("sums").0;
        for way in Way::ALL {
            assert_eq!(run(way, &files, &pool, &halves).expect("sums").0, whole, "{way}");
            assert_eq!(run(way, &files, &pool, &waves).expect("sums").0, first, "{way}");
        }
    }
}
