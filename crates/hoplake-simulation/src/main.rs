//! `hoplake-simulation simulate`: runs seeds, and reports which of them found a violation. `chaos`: the same with real
//! processes.

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
    Outcome, Scenario,
    chaos::{ChaosTest, Play, Role},
    run_seed,
    world::Violation,
};

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
    ChaosTest(ChaosArguments),
    /// A process of the chaos test.
    #[command(hide = true)]
    Worker(Worker),
}

#[derive(Debug, Args)]
struct ChaosArguments {
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
}

#[derive(Debug, Args)]
struct Worker {
    /// Its role.
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
}

#[derive(Debug, Args)]
struct Simulate {
    /// What happens in them: `graphs` or `feeds`.
    #[arg(long, default_value = "graphs", value_parser = parse_scenario)]
    scenario: Scenario,
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
}

fn parse_scenario(text: &str) -> anyhow::Result<Scenario> {
    match text {
        "graphs" => Ok(Scenario::Graphs),
        "feeds" => Ok(Scenario::Feeds),
        other => bail!("there is no scenario {other}"),
    }
}

fn parse_seeds(text: &str) -> anyhow::Result<RangeInclusive<u64>> {
    let (first, last) = text.split_once("..").context("seeds are FIRST..LAST")?;
    Ok(first.parse()?..=last.parse()?)
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
        Verb::ChaosTest(arguments) => return chaos(&arguments),
        Verb::Worker(worker) => return work(worker),
    };
    // A panic is an outcome, which is reported as one.
    std::panic::set_hook(Box::new(|_| {}));
    match arguments.seed {
        Some(seed) => replay(arguments.scenario, seed, arguments.trace),
        None => simulate(&arguments),
    }
}

fn chaos(arguments: &ChaosArguments) -> anyhow::Result<()> {
    let time = Duration::try_from_secs_f64(arguments.minutes * 60.0).context("minutes must not be negative")?;
    let &ChaosArguments { seed, writers, appliers, servers, .. } = arguments;
    ensure!(writers > 0, "at least one writer is needed");
    let hoplake = match &arguments.hoplake {
        _ if appliers + servers == 0 => None,
        Some(named) => Some(named.clone()),
        // Built into the same folder: the command of this version, not one that is installed.
        None => Some(std::env::current_exe()?.with_file_name("hoplake")),
    };
    if let Some(hoplake) = hoplake.as_ref().filter(|hoplake| !hoplake.is_file()) {
        let program = hoplake.display();
        bail!("there is no {program}; build it with cargo build -p hoplake-cli, or give --appliers 0 --servers 0");
    }
    let report = ChaosTest { time, seed, writers, hoplake, appliers, servers };
    let report = report.run().context("an invariant does not hold")?;
    report.lines.iter().for_each(|line| println!("{line}"));
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
    let Worker { url, seed, hoplake, .. } = worker;
    Play { role, url, seed, hoplake }.run()
}

fn replay(scenario: Scenario, seed: u64, trace: bool) -> anyhow::Result<()> {
    let outcome = run_seed(scenario, seed, trace);
    outcome.trace.iter().for_each(|line| println!("{line}"));
    print!("{}", report(&outcome));
    if outcome.violation.is_some() {
        bail!("seed {seed} violates an invariant");
    }
    Ok(())
}

/// Lines about a seed; the second, if any, has the violation and its time. `mutations/run` reads it.
fn report(outcome: &Outcome) -> String {
    let Outcome { seed, violation, steps, versions, batches, virtual_time, .. } = outcome;
    let virtual_s = virtual_time.as_secs();
    let ran =
        format!("seed {seed}: {steps} events, {versions} versions, {batches} batches in {virtual_s} virtual seconds\n");
    let Some(Violation { step, at, message }) = violation else { return ran };
    format!("{ran}seed {seed}, step {step}, at {:.3} s: {message}\n", at.as_secs_f64())
}

fn simulate(arguments: &Simulate) -> anyhow::Result<()> {
    let begun = Instant::now();
    let ran = run_until_found(&arguments.seeds, arguments.jobs, |seed| run_seed(arguments.scenario, seed, false));
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
            print!("{}", report(&found));
            bail!("an invariant does not hold; --seed {} --trace shows how", found.seed)
        }
        None => Ok(()),
    }
}

/// The outcome of many seeds.
#[derive(Default)]
struct Ran {
    seeds: u64,
    steps: u64,
    versions: u64,
    /// The first seed, by number, that violates an invariant.
    found: Option<Outcome>,
}

/// Runs seeds in their order, on several threads, until one violates an invariant.
fn run_until_found(seeds: &RangeInclusive<u64>, jobs: usize, run: impl Fn(u64) -> Outcome + Sync) -> Ran {
    let begun = Instant::now();
    let next = AtomicU64::new(*seeds.start());
    let ran = Mutex::new(Ran::default());
    let locked = || ran.lock().expect("no thread panics with the outcome");
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    // Seeds before the one that was found are run to the end: the first counts, on any machine.
                    if !seeds.contains(&seed) || locked().found.is_some() {
                        return;
                    }
                    let outcome = run(seed);
                    let mut ran = locked();
                    ran.seeds += 1;
                    ran.steps += outcome.steps;
                    ran.versions += outcome.versions;
                    // By number, not by time: threads end in any order.
                    let first = ran.found.as_ref().is_none_or(|found| outcome.seed < found.seed);
                    if outcome.violation.is_some() && first {
                        ran.found = Some(outcome);
                    }
                    if ran.seeds.is_multiple_of(100) {
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
    ran.into_inner().expect("no thread panics with the outcome")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds 7 and 8 violate an invariant, and 7 takes longer.
    fn run(seed: u64) -> Outcome {
        if seed == 7 {
            std::thread::sleep(Duration::from_millis(50));
        }
        let violation = Violation { step: 3, at: Duration::from_millis(1_500), message: "a version is lost".into() };
        let violation = matches!(seed, 7 | 8).then_some(violation);
        let virtual_time = Duration::from_secs(60);
        Outcome { seed, violation, steps: 10, versions: 2, batches: 1, virtual_time, trace: Vec::new() }
    }

    #[test]
    fn the_first_seed_that_violates_an_invariant_ends_the_run_and_is_reported() {
        for jobs in [1, 4] {
            let ran = run_until_found(&(1..=1_000_000), jobs, run);
            let said = report(&ran.found.unwrap());
            assert!(said.starts_with("seed 7: 10 events, 2 versions, 1 batches in 60 virtual seconds\n"), "{said}");
            assert!(said.ends_with("\nseed 7, step 3, at 1.500 s: a version is lost\n"), "{said}");
        }
        let ran = run_until_found(&(1..=6), 2, run);
        assert!(ran.found.is_none() && ran.seeds == 6, "{} seeds", ran.seeds);
        assert_eq!(report(&run(1)).lines().count(), 1);
    }
}
