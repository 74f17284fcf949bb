//! `hoplake-simulation simulate`: runs seeds, and says which of them found something. `torment`: the real thing.

use std::{
    ops::RangeInclusive,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use clap::{Args, Parser, Subcommand};
use hoplake_simulation::{
    Outcome, run_seed,
    torment::{Play, Role, Torment},
};
use hoplake_storage::planted::Bug;

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
    /// Kills processes that change a graph on a real server behind a network that breaks.
    Torment(TormentArguments),
    /// A process of torment.
    #[command(hide = true)]
    Worker(Worker),
}

#[derive(Debug, Args)]
struct TormentArguments {
    /// For how long, in minutes.
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// Decides which processes are killed, and which faults there are.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Processes that commit through the library.
    #[arg(long, default_value_t = 3)]
    writers: u32,
    /// Processes that commit with `hoplake apply`.
    #[arg(long, default_value_t = 1)]
    appliers: u32,
    /// Processes `hoplake serve`; the first is never killed.
    #[arg(long, default_value_t = 2)]
    servers: u32,
    /// The `hoplake` command for them; by default the one next to this program.
    #[arg(long)]
    hoplake: Option<PathBuf>,
    /// Makes a mistake that is planted in the code, in all processes.
    #[arg(long, value_parser = parse_bug)]
    bug: Option<Bug>,
}

#[derive(Debug, Args)]
struct Worker {
    /// What it does.
    role: String,
    /// Of a writer.
    #[arg(long, default_value_t = 0)]
    number: u32,
    #[arg(long)]
    url: String,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    hoplake: Option<PathBuf>,
    #[arg(long, value_parser = parse_bug)]
    bug: Option<Bug>,
}

#[derive(Debug, Args)]
struct Simulate {
    /// Seeds to run, as FIRST..LAST; both are run.
    #[arg(long, default_value = "1..1000", conflicts_with = "seed", value_parser = parse_seeds)]
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
    /// Makes a mistake that is planted in the code.
    #[arg(long, value_parser = parse_bug)]
    bug: Option<Bug>,
    /// Makes each planted mistake in turn; each must be found.
    #[arg(long, conflicts_with_all = ["seed", "bug"])]
    bugs: bool,
    /// How many of them must be found; all, unless it is said.
    #[arg(long, requires = "bugs", default_value_t = Bug::ALL.len())]
    found_min: usize,
    /// Lists the planted mistakes.
    #[arg(long)]
    list_bugs: bool,
}

fn parse_seeds(text: &str) -> anyhow::Result<RangeInclusive<u64>> {
    let (first, last) = text.split_once("..").context("seeds are FIRST..LAST")?;
    Ok(first.parse()?..=last.parse()?)
}

fn parse_bug(name: &str) -> anyhow::Result<Bug> {
    let found = Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name);
    found.with_context(|| format!("no bug {name} is planted; --list-bugs lists them"))
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let arguments = match Arguments::parse().verb {
        Verb::Simulate(arguments) => arguments,
        Verb::Torment(arguments) => return torment(&arguments),
        Verb::Worker(worker) => return work(worker),
    };
    // A panic is an outcome, which is reported as one.
    std::panic::set_hook(Box::new(|_| {}));
    if arguments.list_bugs {
        Bug::ALL.iter().for_each(|bug| println!("{bug:?}"));
        return Ok(());
    }
    match arguments.seed {
        Some(seed) => replay(seed, &arguments),
        None if arguments.bugs => find_bugs(&arguments),
        None => simulate(&arguments),
    }
}

fn torment(arguments: &TormentArguments) -> anyhow::Result<()> {
    let time = Duration::try_from_secs_f64(arguments.minutes * 60.0).context("minutes must not be negative")?;
    let &TormentArguments { seed, writers, bug, appliers, servers, .. } = arguments;
    ensure!(writers > 0, "at least one writer is needed");
    let hoplake = match &arguments.hoplake {
        _ if appliers + servers == 0 => None,
        Some(named) => Some(named.clone()),
        None => Some(std::env::current_exe()?.with_file_name("hoplake")),
    };
    if let Some(hoplake) = hoplake.as_ref().filter(|hoplake| !hoplake.is_file()) {
        let place = hoplake.display();
        bail!("there is no {place}; build it with cargo build -p hoplake-cli, or give --appliers 0 --servers 0");
    }
    let tormented = Torment { time, seed, writers, bug, hoplake, appliers, servers };
    let tormented = tormented.run().context("an invariant does not hold")?;
    tormented.lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn work(worker: Worker) -> anyhow::Result<()> {
    let role = match worker.role.as_str() {
        "writer" => Role::Writer(worker.number),
        "applier" => Role::Applier(worker.number),
        "compactor" => Role::Compactor,
        "vacuum" => Role::Vacuum,
        other => bail!("there is no role {other}"),
    };
    let Worker { url, seed, bug, hoplake, .. } = worker;
    Play { role, url, seed, bug, hoplake }.run()
}

fn replay(seed: u64, arguments: &Simulate) -> anyhow::Result<()> {
    let outcome = run_seed(seed, arguments.bug, arguments.trace);
    outcome.trace.iter().for_each(|line| println!("{line}"));
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
    let ran = run_until_found(arguments, arguments.bug, true);
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{} seeds, {} events and {} versions in {seconds:.1} s: {:.1} seeds a second",
        ran.seeds,
        ran.steps,
        ran.versions,
        ran.seeds as f64 / seconds
    );
    match ran.found {
        Some(found) => {
            report(&found);
            bail!("an invariant does not hold; --seed {} --trace says how it came", found.seed)
        }
        None => Ok(()),
    }
}

/// One line for each planted mistake, as a table; fails if one is not found.
fn find_bugs(arguments: &Simulate) -> anyhow::Result<()> {
    let mut missed = Vec::new();
    println!("| planted | found by seed | as |\n| --- | --- | --- |");
    for bug in Bug::ALL {
        match run_until_found(arguments, Some(bug), false).found {
            Some(Outcome { seed, violation: Some(violation), .. }) => {
                println!("| `{bug:?}` | {seed} | {} |", violation.message.replace('|', "/"));
            }
            _ => {
                println!("| `{bug:?}` | not found | |");
                missed.push(format!("{bug:?}"));
            }
        }
    }
    if Bug::ALL.len() - missed.len() < arguments.found_min {
        bail!("not found: {}", missed.join(", "));
    }
    Ok(())
}

/// What came of many seeds.
#[derive(Default)]
struct Ran {
    seeds: u64,
    steps: u64,
    versions: u64,
    /// The first seed, by number, that violates an invariant.
    found: Option<Outcome>,
}

/// Runs seeds in their order, on several threads, until one violates an invariant.
fn run_until_found(arguments: &Simulate, bug: Option<Bug>, progress: bool) -> Ran {
    let begun = Instant::now();
    let (next, ran) = (AtomicU64::new(*arguments.seeds.start()), Mutex::new(Ran::default()));
    let locked = || ran.lock().expect("no thread panics with it");
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    // Seeds before the one that was found are run to the end: the first counts, on any machine.
                    if !arguments.seeds.contains(&seed) || locked().found.is_some() {
                        return;
                    }
                    let outcome = run_seed(seed, bug, false);
                    let mut ran = locked();
                    ran.seeds += 1;
                    ran.steps += outcome.steps;
                    ran.versions += outcome.versions;
                    let first = ran.found.as_ref().is_none_or(|found| outcome.seed < found.seed);
                    if outcome.violation.is_some() && first {
                        ran.found = Some(outcome);
                    }
                    if progress && ran.seeds.is_multiple_of(100) {
                        eprintln!(
                            "{} seeds, {:.1} a second",
                            ran.seeds,
                            ran.seeds as f64 / begun.elapsed().as_secs_f64()
                        );
                    }
                }
            });
        }
    });
    ran.into_inner().expect("no thread panics with it")
}
