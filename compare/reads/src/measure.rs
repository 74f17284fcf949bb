//! Measurements of one kind of work in all ways.

use std::{
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use crate::{
    files::{Files, disk_bytes},
    ways::{Open, Settings, Way},
    work::Share,
};

/// The figures of one kind of work, by way.
pub struct Measurement(Vec<Figures>);

/// The figures of a way, one of each round.
#[derive(Default)]
struct Figures {
    cold_ms: Vec<f64>,
    warm_ms: Vec<f64>,
    /// What cold work read from the disk. Empty if the system does not count it.
    cold_mib: Vec<f64>,
}

impl Measurement {
    /// Does the work in all ways, and fails if one of them finds other bytes.
    ///
    /// # Errors
    /// If files cannot be read, or ways differ.
    pub fn take(ways: &[Way], files: &Files, settings: &Settings, shares: &[Share<'_>], rounds: usize) -> Result<Self> {
        let mut figures: Vec<Figures> = ways.iter().map(|_| Figures::default()).collect();
        let mut expected: Option<Vec<u64>> = None;
        for round in 0..rounds {
            // Each way is the first at times: what drifts in a round spoils none more than others.
            for position in (0..ways.len()).map(|step| (step + round) % ways.len()) {
                files.evict()?;
                let open = ways[position].open(files, settings)?;
                let read_before = disk_bytes();
                let (cold, cold_sums) = run(&*open, shares)?;
                let read_after = disk_bytes();
                let (warm, warm_sums) = run(&*open, shares)?;
                let expected = expected.get_or_insert_with(|| cold_sums.clone());
                ensure!(
                    *expected == cold_sums && *expected == warm_sums,
                    "{} reads other bytes than {}",
                    ways[position],
                    ways[0]
                );
                let figures = &mut figures[position];
                figures.cold_ms.push(cold.as_secs_f64() * 1e3);
                figures.warm_ms.push(warm.as_secs_f64() * 1e3);
                let read =
                    read_before.zip(read_after).map(|(before, after)| (after - before) as f64 / f64::from(1 << 20));
                figures.cold_mib.extend(read);
            }
        }
        Ok(Self(figures))
    }

    /// Prints three rows of the table.
    pub fn print(self, name: &str) {
        let Self(figures) = self;
        let mut cold = Vec::new();
        let mut warm = Vec::new();
        let mut read = Vec::new();
        for Figures { cold_ms, warm_ms, cold_mib } in figures {
            cold.push(median(cold_ms));
            warm.push(median(warm_ms));
            read.push(median(cold_mib));
        }
        print_row(&format!("{name} \\| cold, ms"), &cold, true);
        print_row(&format!("{name} \\| warm, ms"), &warm, true);
        print_row(&format!("{name} \\| cold, MiB of the disk"), &read, false);
    }
}

/// Prints the head of the table.
pub fn print_header(ways: &[Way]) {
    let names: Vec<String> = ways.iter().map(Way::to_string).collect();
    println!("| work | {} |", names.join(" | "));
    println!("| --- {}|", "| ---: ".repeat(ways.len()));
}

fn print_row(name: &str, figures: &[Option<f64>], has_winner: bool) {
    let least = figures.iter().flatten().copied().min_by(f64::total_cmp);
    let cell = |figure: &Option<f64>| match figure {
        None => "?".to_owned(),
        Some(figure) if has_winner && Some(*figure) == least => format!("**{figure:.1}**"),
        Some(figure) => format!("{figure:.1}"),
    };
    let cells: Vec<String> = figures.iter().map(cell).collect();
    println!("| {name} | {} |", cells.join(" | "));
}

/// The median; `None` of nothing.
fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

/// Does the work with a thread for each share. Returns the time from the first thread's beginning to the last one's end, and what each
/// found. Threads begin together, once all have what they need.
///
/// # Errors
/// If a block cannot be read.
pub fn run(open: &dyn Open, shares: &[Share<'_>]) -> Result<(Duration, Vec<u64>)> {
    let ready = Barrier::new(shares.len());
    let work = |share: &Share<'_>| {
        let reader = open.reader();
        // Nobody may leave before the barrier, at which the others wait.
        ready.wait();
        let mut reader = reader?;
        let began = Instant::now();
        let found = share.read(&mut *reader)?;
        Ok((began, Instant::now(), found))
    };
    let done: Vec<(Instant, Instant, u64)> = thread::scope(|scope| {
        let threads: Vec<_> = shares.iter().map(|share| scope.spawn(|| work(share))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("a thread does not panic");
        threads.into_iter().map(join).collect::<Result<_>>()
    })?;
    let began = done.iter().map(|(began, ..)| *began).min().expect("there is a share");
    let ended = done.iter().map(|(_, ended, _)| *ended).max().expect("there is a share");
    Ok((ended - began, done.into_iter().map(|(.., found)| found).collect()))
}
