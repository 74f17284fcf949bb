//! `hoplake-simulation simulate`: runs seeds, and says which of them found something.

use std::{
    ops::RangeInclusive,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use hoplake_simulation::{Outcome, run_seed};

#[derive(Debug, Parser)]
#[command(about = "A deterministic simulation of graphs that change")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Runs seeds until one violates an invariant.
    Simulate(Simulate),
}

#[derive(Debug, Args)]
struct Simulate {
    /// Seeds to run, as FIRST..LAST; both are run.
    #[arg(long, default_value = "1..100", conflicts_with = "seed", value_parser = parse_seeds)]
    seeds: RangeInclusive<u64>,
    /// The one seed to run.
    #[arg(long)]
    seed: Option<u64>,
    /// Prints everything that happened.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// How many seeds run at a time.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    jobs: usize,
}

fn parse_seeds(text: &str) -> anyhow::Result<RangeInclusive<u64>> {
    let (first, last) = text.split_once("..").context("seeds are FIRST..LAST")?;
    Ok(first.parse()?..=last.parse()?)
}

fn main() -> anyhow::Result<()> {
    let Verb::Simulate(arguments) = Arguments::parse().verb;
    match arguments.seed {
        Some(seed) => replay(seed, arguments.trace),
        None => simulate(&arguments),
    }
}

fn replay(seed: u64, trace: bool) -> anyhow::Result<()> {
    let outcome = run_seed(seed, trace);
    for line in &outcome.trace {
        println!("{line}");
    }
    report(&outcome);
    if outcome.violation.is_some() {
        bail!("seed {seed} violates an invariant");
    }
    Ok(())
}

fn report(outcome: &Outcome) {
    let Outcome { seed, violation, steps, versions, batches, virtual_time, .. } = outcome;
    let virtual_s = virtual_time.as_secs();
    println!("seed {seed}: {steps} events, {versions} versions, {batches} batches in {virtual_s} virtual seconds");
    if let Some(violation) = violation {
        println!("seed {seed}, step {}, at {:.3} s: {}", violation.step, violation.at.as_secs_f64(), violation.message);
    }
}

fn simulate(arguments: &Simulate) -> anyhow::Result<()> {
    let begun = Instant::now();
    let next = AtomicU64::new(*arguments.seeds.start());
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let (steps, versions) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    let seed = next.fetch_add(1, Relaxed);
                    if !arguments.seeds.contains(&seed) {
                        return;
                    }
                    let outcome = run_seed(seed, false);
                    steps.fetch_add(outcome.steps, Relaxed);
                    versions.fetch_add(outcome.versions, Relaxed);
                    let done = done.fetch_add(1, Relaxed) + 1;
                    if outcome.violation.is_some() {
                        stop.store(true, Relaxed);
                        report(&outcome);
                    } else if done % 100 == 0 {
                        eprintln!("{done} seeds, {:.1} a second", done as f64 / begun.elapsed().as_secs_f64());
                    }
                }
            });
        }
    });
    let (done, seconds) = (done.load(Relaxed), begun.elapsed().as_secs_f64());
    println!(
        "{done} seeds, {} events and {} versions in {seconds:.1} s: {:.1} seeds a second",
        steps.load(Relaxed),
        versions.load(Relaxed),
        done as f64 / seconds
    );
    if stop.load(Relaxed) {
        bail!("an invariant does not hold");
    }
    Ok(())
}
