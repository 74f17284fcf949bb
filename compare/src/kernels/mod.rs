//! Whole-graph kernels on the Kronecker graph of the GAP suite (Beamer, Asanović, Patterson, 2015), next to others in one run.
//!
//! The graph is loaded into memory through Hoplake's own store, in the order of keys, so that all have the same ids. Each kernel
//! runs on one thread and on all, in turn with the `graph` crate, which always takes all; the median of several such rounds counts.
//! What the others find is checked against Hoplake's results. networkit runs by itself afterwards, in a process of its own.

mod input;
mod networkit;
mod peer;
mod report;

use std::{hint::black_box, path::PathBuf, time::Instant};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use hoplake_analytics::{
    Csr,
    kernels::{
        PageRankSettings, ShortestPathSettings, UNREACHED, breadth_first_levels, connected_components, count_triangles,
        page_rank, shortest_path_lengths,
    },
};
use hoplake_storage::QueryContext;
use hoplake_testkit::clock::median;
use rayon::ThreadPool;

use input::Input;
use report::{Report, Row};

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The graph has 2 to this power vertices, and up to 16 times as many edges.
    #[arg(long, default_value_t = 20)]
    scale: u32,
    /// The seed of the graph, of weights and of sources.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// The kernels; all by default.
    #[arg(long = "kernel", value_enum)]
    kernels: Vec<Kernel>,
    /// Rounds, of which the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Vertices that breadth-first and shortest paths begin at, one run each.
    #[arg(long, default_value_t = 16)]
    sources: usize,
    /// A Python that has networkit 11: its breadth-first search is measured, too.
    #[arg(long)]
    networkit: Option<PathBuf>,
    /// Writes the figures to this file as JSON, too.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// A kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// Breadth-first levels.
    BreadthFirst,
    /// PageRank, 20 iterations.
    PageRank,
    /// Connected components.
    Components,
    /// Shortest paths, integer weights of 1 to 255.
    ShortestPaths,
    /// Triangles.
    Triangles,
}

/// Iterations of PageRank that are measured, and those after which the results of both are compared.
const ITERATIONS: usize = 20;
const ITERATIONS_COMPARED: usize = 60;

/// Measures and prints a table.
pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!((1..=24).contains(&arguments.scale), "a scale is between 1 and 24");
    ensure!(arguments.rounds > 0 && arguments.sources > 0, "there is at least one round, and one source");
    let input = Input::load(arguments.scale, arguments.seed, arguments.sources)?;
    let bench = Bench::new(arguments, &input)?;
    let mut report = Report::new(arguments, &input, bench.all.current_num_threads());
    let kernels = if arguments.kernels.is_empty() { Kernel::value_variants() } else { &arguments.kernels };
    for kernel in kernels {
        eprintln!("{kernel:?}");
        report.rows.push(match kernel {
            Kernel::BreadthFirst => bench.breadth_first(arguments.networkit.as_deref())?,
            Kernel::PageRank => bench.page_rank()?,
            Kernel::Components => bench.components()?,
            Kernel::ShortestPaths => bench.shortest_paths()?,
            Kernel::Triangles => bench.triangles()?,
        });
    }
    report.print();
    report.write(arguments.json.as_deref())
}

struct Bench<'a> {
    input: &'a Input,
    rounds: usize,
    one: ThreadPool,
    all: ThreadPool,
}

impl<'a> Bench<'a> {
    fn new(arguments: &Arguments, input: &'a Input) -> Result<Self> {
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        // As many as the `graph` crate takes whatever the pool.
        let threads = std::thread::available_parallelism()?.get();
        Ok(Self { input, rounds: arguments.rounds, one: pool(1)?, all: pool(threads)? })
    }

    fn csr(&self) -> &'a Csr {
        &self.input.topology.out
    }

    /// Milliseconds of our kernel on one and on all threads, and of the other's, in turn; divided by `per`.
    fn measure<T, U>(
        &self,
        name: &'static str,
        per: usize,
        own: impl Fn() -> T + Sync,
        other: Option<&(dyn Fn() -> U + Sync)>,
    ) -> Row {
        let mut times: [Vec<f64>; 3] = Default::default();
        for _ in 0..self.rounds {
            times[0].push(milliseconds(|| self.one.install(|| drop(black_box(own())))));
            times[1].push(milliseconds(|| self.all.install(|| drop(black_box(own())))));
            if let Some(other) = other {
                times[2].push(milliseconds(|| self.all.install(|| drop(black_box(other())))));
            }
        }
        let [one, all, other] = times.map(|times| median(times).map(|time| time / per as f64));
        Row::new(name, one.unwrap_or_default(), all.unwrap_or_default(), other)
    }

    fn breadth_first(&self, python: Option<&std::path::Path>) -> Result<Row> {
        let levels = |source| breadth_first_levels(self.csr(), Some(self.csr()), source, &QueryContext::new());
        let sources = &self.input.sources;
        let own = || sources.iter().for_each(|source| drop(black_box(levels(*source))));
        let mut row = self.measure("breadth-first, per source", sources.len(), own, None::<&(dyn Fn() + Sync)>);
        if let Some(python) = python {
            let found = networkit::breadth_first(python, self.input, self.rounds)?;
            for (source, (reached, sum)) in sources.iter().zip(&found.levels) {
                let levels = levels(*source)?;
                let known = || levels.iter().filter(|level| **level != UNREACHED).map(|level| u64::from(*level));
                let same = (known().count() as u64, known().sum::<u64>()) == (*reached, *sum);
                ensure!(same, "networkit reaches other vertices from {source}");
            }
            row = row.against("networkit", found.milliseconds);
        }
        Ok(row.goal(1.0 / 18.0))
    }

    fn page_rank(&self) -> Result<Row> {
        let graph = peer::directed(self.input);
        let ranks = |iterations_max| {
            let settings = PageRankSettings { iterations_max, tolerance: 0.0, ..PageRankSettings::default() };
            page_rank(self.csr(), self.csr(), &[], &settings, &QueryContext::new())
        };
        let own = self.all.install(|| ranks(ITERATIONS_COMPARED))?;
        peer::check_ranks(&own.ranks, &peer::ranks(&graph, ITERATIONS_COMPARED), self.csr())?;
        let row = self.measure(
            "PageRank, per iteration",
            ITERATIONS,
            || ranks(ITERATIONS),
            Some(&|| peer::ranks(&graph, ITERATIONS)),
        );
        Ok(row.goal(0.83))
    }

    fn components(&self) -> Result<Row> {
        let graph = peer::directed(self.input);
        let own = || connected_components(self.csr(), Some(self.csr()), &QueryContext::new());
        // Both name a component by its lowest vertex.
        ensure!(peer::same(&own()?, &peer::components(&graph)), "the components are others");
        Ok(self.measure("components", 1, own, Some(&|| peer::components(&graph))).goal(1.1))
    }

    fn shortest_paths(&self) -> Result<Row> {
        let weights = self.input.weights();
        let graph = peer::weighted(self.input);
        let settings = ShortestPathSettings::default();
        let lengths = |source| shortest_path_lengths(self.csr(), &weights, source, &settings, &QueryContext::new());
        let sources = &self.input.sources;
        // The other has no default: it gets the width that is best for it.
        let (delta, _) = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
            .map(|delta| {
                let run = || sources.iter().take(4).for_each(|source| drop(peer::lengths(&graph, *source, delta)));
                (delta, milliseconds(|| self.all.install(run)))
            })
            .into_iter()
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or((4.0, 0.0));
        eprintln!("the graph crate's best delta is {delta}");
        for source in sources {
            let other = self.all.install(|| peer::lengths(&graph, *source, delta));
            ensure!(peer::same_lengths(&lengths(*source)?, &other), "the lengths from {source} are others");
        }
        let own = || sources.iter().for_each(|source| drop(black_box(lengths(*source))));
        let other = || sources.iter().for_each(|source| drop(black_box(peer::lengths(&graph, *source, delta))));
        Ok(self.measure("shortest paths, per source", sources.len(), own, Some(&other)).goal(0.83))
    }

    /// The other orders its graph in place: that is a part of each round, as it is of ours, but not that it is built anew.
    fn triangles(&self) -> Result<Row> {
        let own = || count_triangles(self.csr(), &QueryContext::new());
        let expected = self.all.install(own)?;
        let mut others = Vec::new();
        let mut counts = Vec::new();
        for _ in 0..self.rounds {
            let mut graph = peer::undirected(self.input);
            let mut found = 0;
            others.push(milliseconds(|| {
                self.all.install(|| peer::order(&mut graph));
                counts.push(milliseconds(|| found = peer::triangles(&graph)));
            }));
            ensure!(found == expected, "the graph crate counts {found} triangles, and not {expected}");
        }
        eprintln!(
            "{expected} triangles; the graph crate without its ordering: {:.0} ms",
            median(counts).unwrap_or(0.0)
        );
        let row = self.measure("triangles", 1, own, None::<&(dyn Fn() + Sync)>);
        Ok(row.against("graph", median(others).unwrap_or_default()).goal(0.9))
    }
}

fn milliseconds(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64() * 1e3
}
