//! What a kernel takes over lists in memory, over stored blocks, and as a vertex program; what 16 deltas cost; and how fast lists are
//! decoded.

use std::{hint::black_box, sync::Arc, time::Instant};

use anyhow::{Result, ensure};
use clap::Args;
use hoplake_analytics::{
    Adjacency, Lists, Packed, RunSettings, Selection, Topology, Workers,
    kernels::{PageRankSettings, breadth_first_levels, connected_components, count_triangles, page_rank},
    programs, run as run_program,
    stores::{MemoryStore, StateStore},
};
use hoplake_engine::{ListBlock, ListRange, Snapshot};
use hoplake_format::{
    Direction, EdgeTypeId,
    adjacency::{Block, Lists as AdjacencyLists},
};
use hoplake_storage::{QueryContext, ReadSettings};
use hoplake_testkit::{clock::median, generate::SplitMix64};
use tokio::runtime::Runtime;

use crate::kronecker;

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The graph has 2 to this power vertices, and up to 16 times as many edges.
    #[arg(long, default_value_t = 20)]
    scale: u32,
    /// Commits on top of a load, of the other graph.
    #[arg(long, default_value_t = 16)]
    deltas: usize,
    /// The part of all edges that each of them adds.
    #[arg(long, default_value_t = 0.001)]
    delta_share: f64,
    /// Rounds, of which the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The seed of the graph.
    #[arg(long, default_value_t = 42)]
    seed: u64,
}

/// Iterations of PageRank.
const ITERATIONS: usize = 10;
/// Starts of breadth-first searches.
const STARTS: usize = 8;

/// A graph, loaded in both ways.
struct Loaded {
    snapshot: Arc<Snapshot>,
    csr: Arc<Topology>,
    packed: Topology<Packed>,
    /// Seconds to load the one and the other.
    seconds: [f64; 2],
    /// Bytes of memory that they take.
    bytes: [u64; 2],
}

/// Measures and prints tables.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut edges = kronecker::edges(arguments.scale, arguments.seed);
    let vertices = 1 << arguments.scale;
    let folder = tempfile::tempdir()?;
    let runtime = Runtime::new()?;
    let compacted = folder.path().join("compacted");
    runtime.block_on(kronecker::load(&compacted, vertices, &edges, &[]))?;
    let mut random = SplitMix64::new(arguments.seed);
    let of_each = (edges.len() as f64 * arguments.delta_share) as usize;
    let delta = |_| (0..of_each).map(|_| edges.swap_remove(random.below(edges.len() as u64) as usize)).collect();
    let deltas: Vec<Vec<_>> = (0..arguments.deltas).map(delta).collect();
    edges.sort_unstable();
    let with_deltas = folder.path().join("deltas");
    runtime.block_on(kronecker::load(&with_deltas, vertices, &edges, &deltas))?;
    drop(edges);
    let compacted = runtime.block_on(load(&compacted))?;
    let deltas = runtime.block_on(load(&with_deltas))?;
    ensure!(compacted.csr.out.edges() == deltas.csr.out.edges(), "both graphs have the same edges");
    println!(
        "scale {}, {} entries of lists, {} threads\n",
        arguments.scale,
        compacted.csr.out.edges(),
        rayon::current_num_threads()
    );
    println!("| lists | load, s | of {} deltas | memory, MiB | of {} deltas |", arguments.deltas, arguments.deltas);
    println!("| --- | --- | --- | --- | --- |");
    for (at, name) in ["decoded", "stored blocks"].into_iter().enumerate() {
        let mib = |loaded: &Loaded| loaded.bytes[at] >> 20;
        println!(
            "| {name} | {:.2} | {:.2} | {} | {} |",
            compacted.seconds[at],
            deltas.seconds[at],
            mib(&compacted),
            mib(&deltas)
        );
    }
    kernels(arguments, &runtime, &compacted, &deltas)?;
    decoder(arguments, &runtime, &compacted.snapshot)
}

/// Decodes all lists on one thread, without their reading.
fn decoder(arguments: &Arguments, runtime: &Runtime, snapshot: &Arc<Snapshot>) -> Result<()> {
    let mut blocks = Vec::new();
    let mut branch = QueryContext::new().branch();
    for direction in [Direction::Out, Direction::In] {
        let mut scan = snapshot.scan_lists(&ListRange::all(EdgeTypeId(0), direction), 32 << 20);
        while let Some(block) = runtime.block_on(scan.next_block(&mut branch))? {
            blocks.push(block);
        }
    }
    let stored: usize = blocks.iter().filter_map(|block| Some(block.stored()?.len())).sum();
    let mut seconds = Vec::new();
    let mut edges = 0;
    let mut lists = AdjacencyLists::default();
    for _ in 0..arguments.rounds {
        let began = Instant::now();
        edges = 0;
        for block in blocks.iter().filter_map(ListBlock::stored) {
            Block::parse(block)?.decode_all(&mut lists)?;
            edges += black_box(&lists).targets.len();
        }
        seconds.push(began.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let gb_per_second = |bytes: usize| bytes as f64 / seconds[seconds.len() / 2] / 1e9;
    println!(
        "\nA core decodes {:.2} GB/s of stored blocks to {:.2} GB/s of lists with 4 bytes an edge.",
        gb_per_second(stored),
        gb_per_second(edges * 4)
    );
    Ok(())
}

async fn load(folder: &std::path::Path) -> Result<Loaded> {
    let snapshot = kronecker::open(folder, ReadSettings::default()).await?;
    let selection = selection();
    let workers = Workers::default();
    let mut seconds = [0.0; 2];
    let mut bytes = [0; 2];
    // The first reads the files into the page cache.
    drop(Topology::load(&snapshot, &selection, &workers, &mut QueryContext::new().branch()).await?);
    let context = QueryContext::new();
    let began = Instant::now();
    let csr = Topology::load(&snapshot, &selection, &workers, &mut context.branch()).await?;
    (seconds[0], bytes[0]) = (began.elapsed().as_secs_f64(), context.memory().used());
    let context = QueryContext::new();
    let began = Instant::now();
    let packed = Topology::load_packed(&snapshot, &selection, &workers, &mut context.branch()).await?;
    (seconds[1], bytes[1]) = (began.elapsed().as_secs_f64(), context.memory().used());
    Ok(Loaded { snapshot, csr: Arc::new(csr), packed, seconds, bytes })
}

fn selection() -> Selection {
    Selection { hop: "both".parse().expect("a hop"), ..Selection::default() }
}

fn kernels(arguments: &Arguments, runtime: &Runtime, compacted: &Loaded, deltas: &Loaded) -> Result<()> {
    println!(
        "\n| computation, ms | decoded lists | stored blocks | program | decoded, deltas | stored blocks, deltas |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let row = |name: &str, works: [Option<&dyn Fn() -> Result<()>>; 5]| -> Result<()> {
        let mut times: [Vec<f64>; 5] = Default::default();
        for _ in 0..arguments.rounds {
            for (work, times) in works.iter().zip(&mut times) {
                if let Some(work) = work {
                    let began = Instant::now();
                    work()?;
                    times.push(began.elapsed().as_secs_f64() * 1e3);
                }
            }
        }
        let medians = times.map(median);
        let first = medians[0].unwrap_or(f64::NAN);
        let cell = |median: &Option<f64>| median.map_or("".into(), |ms| format!("{ms:.1} ({:.2})", ms / first));
        println!("| {name} | {} |", medians.iter().map(cell).collect::<Vec<String>>().join(" | "));
        Ok(())
    };
    let settings = PageRankSettings { iterations_max: ITERATIONS, tolerance: 0.0, ..PageRankSettings::default() };
    let mut random = SplitMix64::new(arguments.seed);
    let csr = &compacted.csr.out;
    let draws = std::iter::repeat_with(|| random.below(csr.len() as u64) as u32);
    let starts: Vec<u32> = draws.filter(|start| csr.degree(*start) > 0).take(STARTS).collect();
    let program = || -> Result<()> {
        let program = Arc::new(programs::PageRank::new(settings, None));
        runtime.block_on(by_program(&program, compacted, Some(ITERATIONS)))
    };
    row(
        &format!("PageRank, {ITERATIONS} iterations"),
        [
            Some(&|| ranks(csr, &settings)),
            Some(&|| ranks(&compacted.packed.out, &settings)),
            Some(&program),
            Some(&|| ranks(&deltas.csr.out, &settings)),
            Some(&|| ranks(&deltas.packed.out, &settings)),
        ],
    )?;
    let program = || runtime.block_on(by_program(&Arc::new(programs::Components), compacted, None));
    row(
        "components",
        [
            Some(&|| components(csr)),
            Some(&|| components(&compacted.packed.out)),
            Some(&program),
            Some(&|| components(&deltas.csr.out)),
            Some(&|| components(&deltas.packed.out)),
        ],
    )?;
    let levels = |starts: &[u32], program: bool| -> Result<()> {
        for start in starts {
            if program {
                runtime.block_on(by_program(&Arc::new(programs::Levels { start: *start }), compacted, None))?;
            }
        }
        Ok(())
    };
    row(
        &format!("breadth-first, {STARTS} starts"),
        [
            Some(&|| searches(csr, &starts)),
            Some(&|| searches(&compacted.packed.out, &starts)),
            Some(&|| levels(&starts, true)),
            Some(&|| searches(&deltas.csr.out, &starts)),
            Some(&|| searches(&deltas.packed.out, &starts)),
        ],
    )?;
    row(
        "triangles",
        [
            Some(&|| triangles(csr)),
            Some(&|| triangles(&compacted.packed.out)),
            None,
            Some(&|| triangles(&deltas.csr.out)),
            Some(&|| triangles(&deltas.packed.out)),
        ],
    )?;
    let streamed = |loaded: &Loaded| -> Result<()> {
        runtime.block_on(async {
            let lists = Lists::streamed(&loaded.snapshot, &selection(), &mut QueryContext::new().branch()).await?;
            let program = Arc::new(programs::PageRank::new(settings, None));
            of_program(&program, &lists, Some(ITERATIONS)).await
        })
    };
    row(
        &format!("PageRank, {ITERATIONS} iterations, streamed"),
        [Some(&|| streamed(compacted)), None, None, Some(&|| streamed(deltas)), None],
    )
}

fn ranks(lists: &impl Adjacency, settings: &PageRankSettings) -> Result<()> {
    black_box(page_rank(lists, lists, &[], settings, &QueryContext::new())?);
    Ok(())
}

fn components(lists: &impl Adjacency) -> Result<()> {
    black_box(connected_components(lists, Some(lists), &QueryContext::new())?);
    Ok(())
}

fn searches(lists: &impl Adjacency, starts: &[u32]) -> Result<()> {
    for start in starts {
        black_box(breadth_first_levels(lists, Some(lists), *start, &QueryContext::new())?);
    }
    Ok(())
}

fn triangles(lists: &impl Adjacency) -> Result<()> {
    black_box(count_triangles(lists, &QueryContext::new())?);
    Ok(())
}

/// A program over decoded lists.
async fn by_program<P: hoplake_analytics::VertexProgram>(
    program: &Arc<P>,
    loaded: &Loaded,
    supersteps_max: Option<usize>,
) -> Result<()> {
    let lists = Lists::in_memory(&loaded.csr, &QueryContext::new())?;
    of_program(program, &lists, supersteps_max).await
}

async fn of_program<P: hoplake_analytics::VertexProgram>(
    program: &Arc<P>,
    lists: &Lists,
    supersteps_max: Option<usize>,
) -> Result<()> {
    let store: Arc<dyn StateStore<P::State>> = Arc::new(MemoryStore::new(lists.vertices()));
    let settings = RunSettings { supersteps_max, ..RunSettings::default() };
    let mut branch = QueryContext::new().branch();
    black_box(run_program(program, lists, &store, &settings, |_| (), &mut branch).await?);
    Ok(())
}
