//! The workloads of the LLAMA study (Wu, Ding 2014) over a graph in mapped files: edge queries, friends of friends, shortest paths from
//! both ends, a pass of PageRank, triangles.
//!
//! Each is run with cold pages: with the system's own reading ahead, as kernels that pass in order have it; without any, where pages are
//! read when they are touched; with each block asked for as a whole when it is opened, and some ahead in a pass, as readers do; with the
//! advisor, too; and with one that knows the whole sequence of lists beforehand, which bounds what a policy could gain. And once more with
//! warm pages. Gains are over nothing. To see what a graph costs that is larger than memory, run it in a group with a memory limit; the
//! system's pages count there, too.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hint::black_box,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use hoplake_analytics::{
    Adjacency, Advised, Advisor, AdvisorSettings, Cursor, Packed, PackedCursor, Passing, Selection, Topology, Visiting,
    Workers,
};
use hoplake_charts::{Axis, Chart, write_svg};
use hoplake_engine::Snapshot;
use hoplake_storage::{AccessPattern, QueryContext, ReadSettings};
use hoplake_testkit::{clock::median, generate::SplitMix64};

use crate::kronecker;

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Where the graph is; it is generated if it is not there.
    #[arg(long)]
    folder: PathBuf,
    /// The graph has 2 to this power vertices, and up to 16 times as many edges.
    #[arg(long, default_value_t = 22)]
    scale: u32,
    /// Commits on top of the load, each of a thousandth of all edges.
    #[arg(long, default_value_t = 0)]
    deltas: usize,
    /// Edge queries.
    #[arg(long, default_value_t = 20_000)]
    queries: usize,
    /// Vertices whose friends of friends are found.
    #[arg(long, default_value_t = 20)]
    friends: usize,
    /// Shortest paths.
    #[arg(long, default_value_t = 20)]
    paths: usize,
    /// Vertices whose triangles are counted.
    #[arg(long, default_value_t = 200)]
    triangles: usize,
    /// Threads, each of which does all that a workload has with a seed of its own.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Rounds, of which the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// The seed of the graph and of all draws.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Lists that the advisor reads ahead for a visit.
    #[arg(long, default_value_t = AdvisorSettings::default().lists_max)]
    lists: usize,
    /// Draws the table into this file, as SVG.
    #[arg(long)]
    plot: Option<PathBuf>,
}

/// How a workload is run.
const WAYS: [&str; 6] =
    ["the system reads ahead", "nothing is", "blocks are asked for", "with the advisor", "all known", "warm"];

/// Measures and prints a table.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(generate(arguments))?;
    let bench = runtime.block_on(Bench::open(&arguments.folder))?;
    let blocks = bench.files.iter().map(|(_, bytes)| bytes).sum::<u64>() >> 20;
    println!("scale {}, {} entries of lists in {blocks} MiB of files", arguments.scale, bench.lists.edges());
    println!("seed {}, {} threads, medians of {} rounds\n", arguments.seed, arguments.threads, arguments.rounds);
    println!(
        "| workload | the system reads ahead, s | nothing is, s | blocks are asked for, s | gain | with the advisor, s | gain | all known, s | warm, s |"
    );
    println!("|{}", " --- |".repeat(9));
    let count = arguments.queries;
    let mut rows = Vec::new();
    for alpha in [0.1, 0.5, 1.0] {
        rows.push(bench.measure(&format!("edge queries, α {alpha}"), &EdgeQueries { alpha, count }, arguments)?);
    }
    let friends = FriendsOfFriends { count: arguments.friends };
    rows.push(bench.measure("friends of friends", &friends, arguments)?);
    rows.push(bench.measure("shortest paths", &ShortestPaths { count: arguments.paths }, arguments)?);
    rows.push(bench.measure("a pass of PageRank", &PageRank, arguments)?);
    rows.push(bench.measure("triangles", &Triangles { count: arguments.triangles }, arguments)?);
    let title = format!("Reading ahead of mapped files: scale {}, {} deltas", arguments.scale, arguments.deltas);
    let chart = Chart::bars(title, Axis::logarithmic("s, cold"), &WAYS, &rows);
    let Some(file) = &arguments.plot else { return Ok(()) };
    write_svg(file, &[chart]).with_context(|| format!("could not write {}", file.display()))
}

async fn generate(arguments: &Arguments) -> Result<()> {
    let folder = &arguments.folder;
    if folder.exists() {
        return Ok(());
    }
    let mut edges = kronecker::edges(arguments.scale, arguments.seed);
    let mut random = SplitMix64::new(arguments.seed);
    let of_each = edges.len() / 1000;
    let delta = |_| (0..of_each).map(|_| edges.swap_remove(random.below(edges.len() as u64) as usize)).collect();
    let deltas: Vec<Vec<_>> = (0..arguments.deltas).map(delta).collect();
    kronecker::load(folder, 1 << arguments.scale, &edges, &deltas).await
}

/// What walks over lists: it says which lists it visits, so that those of their neighbours may be next, and which it passes in their order.
trait Walk {
    /// Reads a list from which the walk may go on to neighbours.
    fn visit(&mut self, vertex: u32) -> &[u32];

    /// Reads a list from which it does not go on.
    fn read(&mut self, vertex: u32) -> &[u32];

    /// Reads a list after which that of the next vertex comes.
    fn pass(&mut self, vertex: u32) -> &[u32];
}

struct Plain<'a>(PackedCursor<'a>);

impl Walk for Plain<'_> {
    fn visit(&mut self, vertex: u32) -> &[u32] {
        self.0.neighbours(vertex)
    }

    fn read(&mut self, vertex: u32) -> &[u32] {
        self.0.neighbours(vertex)
    }

    fn pass(&mut self, vertex: u32) -> &[u32] {
        self.0.neighbours(vertex)
    }
}

struct WithAdvice<'a> {
    visiting: Visiting<'a>,
    passing: Passing<'a>,
    plain: PackedCursor<'a>,
}

impl Walk for WithAdvice<'_> {
    fn visit(&mut self, vertex: u32) -> &[u32] {
        self.visiting.neighbours(vertex)
    }

    fn read(&mut self, vertex: u32) -> &[u32] {
        self.plain.neighbours(vertex)
    }

    fn pass(&mut self, vertex: u32) -> &[u32] {
        self.passing.neighbours(vertex)
    }
}

/// Notes which lists are read.
struct Recorder<'a>(PackedCursor<'a>, Vec<u32>);

impl Walk for Recorder<'_> {
    fn visit(&mut self, vertex: u32) -> &[u32] {
        self.1.push(vertex);
        self.0.neighbours(vertex)
    }

    fn read(&mut self, vertex: u32) -> &[u32] {
        self.visit(vertex)
    }

    fn pass(&mut self, vertex: u32) -> &[u32] {
        self.visit(vertex)
    }
}

/// Counts the visits of a walk, for a thread that reports progress.
struct CountingWalk<'a>(PackedCursor<'a>, &'a AtomicUsize);

impl Walk for CountingWalk<'_> {
    fn visit(&mut self, vertex: u32) -> &[u32] {
        self.1.fetch_add(1, Relaxed);
        self.0.neighbours(vertex)
    }

    fn read(&mut self, vertex: u32) -> &[u32] {
        self.visit(vertex)
    }

    fn pass(&mut self, vertex: u32) -> &[u32] {
        self.visit(vertex)
    }
}

/// Lists that the thread that knows the walk is ahead of it.
const KNOWN_AHEAD: usize = 256;

/// Reads ahead what a walk will read.
fn foresee(lists: &Packed, sequence: &[u32], at: &AtomicUsize, is_over: &AtomicBool) {
    let mut next = 0;
    let mut last = 0;
    while next < sequence.len() && !is_over.load(Relaxed) {
        let now = at.load(Relaxed);
        if next >= now + KNOWN_AHEAD {
            std::thread::sleep(Duration::from_micros(50));
            continue;
        }
        // What has been read needs no advice.
        next = next.max(now);
        let Some(vertex) = sequence.get(next) else { return };
        for block in lists.blocks_of(*vertex) {
            if std::mem::replace(&mut last, block.as_ptr().addr()) != block.as_ptr().addr() {
                hoplake_mapping::will_need(block);
            }
        }
        next += 1;
    }
}

/// What is done with lists. It returns a number that depends on all that it read.
trait Workload: Sync {
    fn run(&self, lists: &mut impl Walk, vertices: u32, seed: u64) -> u64;
}

struct EdgeQueries {
    /// The probability that a vertex is drawn from all, not from those seen last.
    alpha: f64,
    count: usize,
}

/// Vertices that an edge query may come back to.
const RECENT: usize = 1_000;
/// Neighbours of a visited vertex that become recent.
const NEIGHBOURS_RECENT: usize = 8;

impl Workload for EdgeQueries {
    fn run(&self, lists: &mut impl Walk, vertices: u32, seed: u64) -> u64 {
        let mut random = SplitMix64::new(seed);
        let mut recent = VecDeque::new();
        let mut sum = 0;
        for _ in 0..self.count {
            let is_random = recent.is_empty() || (random.below(1000) as f64) < self.alpha * 1000.0;
            let vertex = match is_random {
                true => random.below(vertices.into()) as u32,
                false => recent[random.below(recent.len() as u64) as usize],
            };
            let list = lists.visit(vertex);
            sum += list.iter().map(|neighbour| u64::from(*neighbour)).sum::<u64>();
            recent.push_back(vertex);
            if !list.is_empty() {
                let draws = (0..NEIGHBOURS_RECENT).map(|_| list[random.below(list.len() as u64) as usize]);
                recent.extend(draws);
            }
            while recent.len() > RECENT {
                recent.pop_front();
            }
        }
        sum
    }
}

struct FriendsOfFriends {
    count: usize,
}

impl Workload for FriendsOfFriends {
    fn run(&self, lists: &mut impl Walk, vertices: u32, seed: u64) -> u64 {
        let mut random = SplitMix64::new(seed);
        let mut sum = 0;
        let mut left = self.count;
        while left > 0 {
            let friends = lists.visit(random.below(vertices.into()) as u32).to_vec();
            if friends.is_empty() {
                continue;
            }
            left -= 1;
            let mut found: HashSet<u32> = HashSet::new();
            friends.iter().for_each(|friend| found.extend(lists.read(*friend)));
            sum += found.len() as u64;
        }
        sum
    }
}

struct ShortestPaths {
    count: usize,
}

impl Workload for ShortestPaths {
    fn run(&self, lists: &mut impl Walk, vertices: u32, seed: u64) -> u64 {
        let mut random = SplitMix64::new(seed);
        let mut sum = 0;
        let mut left = self.count;
        while left > 0 {
            let ends = [0; 2].map(|_| random.below(vertices.into()) as u32);
            if ends.iter().any(|end| lists.visit(*end).is_empty()) {
                continue;
            }
            left -= 1;
            sum += length(lists, ends).map_or(0, u64::from);
        }
        sum
    }
}

/// The length of a shortest path, searched from both ends, always from the one with the smaller frontier.
fn length(lists: &mut impl Walk, ends: [u32; 2]) -> Option<u32> {
    if ends[0] == ends[1] {
        return Some(0);
    }
    let mut levels = ends.map(|end| HashMap::from([(end, 0u32)]));
    let mut frontiers = ends.map(|end| vec![end]);
    loop {
        let near = usize::from(frontiers[1].len() < frontiers[0].len());
        if frontiers[near].is_empty() {
            return None;
        }
        let mut next = Vec::new();
        for vertex in std::mem::take(&mut frontiers[near]) {
            let level = levels[near][&vertex] + 1;
            for neighbour in lists.visit(vertex) {
                if let Some(other) = levels[1 - near].get(neighbour) {
                    return Some(level + other);
                }
                levels[near].entry(*neighbour).or_insert_with(|| {
                    next.push(*neighbour);
                    level
                });
            }
        }
        frontiers[near] = next;
    }
}

struct PageRank;

impl Workload for PageRank {
    fn run(&self, lists: &mut impl Walk, vertices: u32, _: u64) -> u64 {
        let shares = vec![1.0f32 / vertices as f32; vertices as usize];
        let ranks = (0..vertices)
            .map(|vertex| lists.pass(vertex).iter().map(|neighbour| shares[*neighbour as usize]).sum::<f32>());
        (ranks.map(f64::from).sum::<f64>() * 1e3) as u64
    }
}

struct Triangles {
    count: usize,
}

impl Workload for Triangles {
    fn run(&self, lists: &mut impl Walk, vertices: u32, seed: u64) -> u64 {
        let mut random = SplitMix64::new(seed);
        let mut sum = 0;
        for _ in 0..self.count {
            let own: Vec<u32> = lists.visit(random.below(vertices.into()) as u32).to_vec();
            for neighbour in &own {
                sum += lists.read(*neighbour).iter().filter(|other| own.binary_search(other).is_ok()).count() as u64;
            }
        }
        sum
    }
}

struct Bench {
    snapshot: Arc<Snapshot>,
    lists: Arc<Packed>,
    /// Names and lengths of the files of lists.
    files: Vec<(String, u64)>,
}

impl Bench {
    async fn open(folder: &Path) -> Result<Self> {
        // What a load leaves in the page cache is given back behind it.
        let read = ReadSettings { mapped: true, scan_keeps_bytes: 0, ..ReadSettings::default() };
        let snapshot = kronecker::open(folder, read).await?;
        ensure!(snapshot.reader().is_mapped(), "{} is not mapped", folder.display());
        let selection = Selection { hop: "both".parse()?, ..Selection::default() };
        let mut branch = QueryContext::new().branch();
        let topology = Topology::load_packed(&snapshot, &selection, &Workers::default(), &mut branch).await?;
        let files = snapshot.manifest().segments.iter().map(|segment| (segment.name.clone(), segment.end.length));
        Ok(Self { files: files.collect(), lists: Arc::new(topology.out), snapshot })
    }

    /// Empties the page cache of the files.
    fn forget(&self) {
        let reader = self.snapshot.reader();
        for (name, bytes) in &self.files {
            let object = reader.object(name);
            reader.will_not_need(&object, 0..*bytes);
        }
    }

    /// Measures a row of the table: the workload and the median seconds of each way.
    fn measure(&self, name: &str, workload: &impl Workload, arguments: &Arguments) -> Result<(String, Vec<f64>)> {
        let vertices = self.lists.len() as u32;
        let seeds: Vec<u64> = (0..arguments.threads as u64).map(|thread| arguments.seed * 1000 + thread).collect();
        let record = |seed: &u64| {
            let mut recorder = Recorder(self.lists.cursor(), Vec::new());
            let found = workload.run(&mut recorder, vertices, *seed);
            (recorder.1, found)
        };
        let known: Vec<(Vec<u32>, u64)> = seeds.iter().map(record).collect();
        let mut times: [Vec<f64>; 6] = Default::default();
        let mut advised = Advised::default();
        let settings = AdvisorSettings { lists_max: arguments.lists, ..AdvisorSettings::default() };
        for _ in 0..arguments.rounds {
            for (way, times) in times.iter_mut().enumerate() {
                // Warm pages are those that the way before has read.
                if way < 5 {
                    self.forget();
                }
                // In order, nobody asks for blocks.
                self.lists.expect_order(way < 2);
                if way == 1 {
                    self.expect(AccessPattern::Random);
                }
                let advisor = (way == 3).then(|| Advisor::new(&self.lists, settings.clone()));
                let began = Instant::now();
                std::thread::scope(|scope| {
                    let each = |(seed, (sequence, expected)): (&u64, &(Vec<u32>, u64))| {
                        let found = match (&advisor, way) {
                            (Some(advisor), _) => {
                                let visiting = advisor.visiting();
                                let passing = advisor.passing();
                                let mut lists = WithAdvice { visiting, passing, plain: self.lists.cursor() };
                                workload.run(&mut lists, vertices, *seed)
                            }
                            (None, 4) => self.foreseen(workload, sequence, *seed),
                            _ => workload.run(&mut Plain(self.lists.cursor()), vertices, *seed),
                        };
                        assert_eq!(black_box(found), *expected, "advice changes no answer");
                    };
                    let threads: Vec<_> =
                        seeds.iter().zip(&known).map(|of_thread| scope.spawn(move || each(of_thread))).collect();
                    threads.into_iter().try_for_each(|thread| thread.join().ok())
                })
                .context("a thread of the workload panicked")?;
                times.push(began.elapsed().as_secs_f64());
                advised = advisor.map_or(advised, |advisor| advisor.advised());
            }
        }
        self.lists.check()?;
        let medians @ [any, none, asked, advised_by, all, warm] = times.map(|times| median(times).unwrap_or(f64::NAN));
        let gain = |seconds: f64| (1.0 - seconds / none) * 100.0;
        println!(
            "| {name} | {any:.2} | {none:.2} | {asked:.2} | {:.0} % | {advised_by:.2} | {:.0} % | {all:.2} | {warm:.2} |",
            gain(asked),
            gain(advised_by)
        );
        eprintln!("{name}: {advised:?}");
        Ok((name.to_owned(), medians.to_vec()))
    }

    /// Says how the files will be read.
    fn expect(&self, access: AccessPattern) {
        let reader = self.snapshot.reader();
        self.files.iter().for_each(|(name, _)| reader.expect(&reader.object(name), access));
    }

    /// A walk that a thread knows beforehand.
    fn foreseen(&self, workload: &impl Workload, sequence: &[u32], seed: u64) -> u64 {
        let at = AtomicUsize::new(0);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| foresee(&self.lists, sequence, &at, &is_over));
            let found = workload.run(&mut CountingWalk(self.lists.cursor(), &at), self.lists.len() as u32, seed);
            is_over.store(true, Relaxed);
            found
        })
    }
}
