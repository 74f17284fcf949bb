//! Supersteps next to asynchronous runs of the same programs: steps, collections, what is read, and time.
//!
//! ```sh
//! cargo bench -p hoplake-analytics --bench asynchronous -- kronecker 19 20
//! cargo bench -p hoplake-analytics --bench asynchronous -- grid 500
//! ```
//! `kronecker SCALE EDGES` is a graph of Graph500 with that number of edges a vertex; `grid SIDE` has roads between neighbours, in the order of
//! its rows, and `shuffled SIDE` has the same in no order. Weights are 1 to 255. All from one seed.

#![allow(clippy::unwrap_used)]

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    sync::Arc,
    time::Instant,
};

use hoplake::{LoadOptions, OpenSettings, Store};
use hoplake_analytics::{
    AsyncSettings, Lists, RunSettings, Selection, Topology, VertexProgram, Workers,
    kernels::PageRankSettings,
    programs::{Components, PageRank, ShortestPaths},
    run, run_asynchronously,
    stores::{MemoryStore, StateStore},
};
use hoplake_engine::Snapshot;
use hoplake_storage::{QueryContext, ReadPool, ReadSettings, Reader};
use hoplake_testkit::generate::{SplitMix64, kronecker};

const SEED: u64 = 42;

fn main() {
    // `cargo bench` adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number = |at: usize, usual: u64| arguments.get(at).map_or(usual, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    match arguments.first().map(String::as_str) {
        Some("kronecker") => {
            let edges = kronecker(number(1, 19) as u32, number(2, 20), SEED);
            write(folder.path(), edges.vertices(), edges);
        }
        Some("grid") => write(folder.path(), number(1, 500).pow(2), grid(number(1, 500))),
        Some("shuffled") => {
            let side = number(1, 500);
            let mut random = SplitMix64::new(SEED);
            let mut names: Vec<u64> = (0..side * side).collect();
            (1..names.len()).for_each(|at| names.swap(at, random.below(at as u64 + 1) as usize));
            let edges = grid(side).map(|(a, b)| (names[a as usize], names[b as usize]));
            write(folder.path(), side * side, edges.collect::<Vec<_>>().into_iter());
        }
        _ => {
            // As when all benches are run: what is measured takes minutes, and needs a graph to be named.
            println!("name a graph: kronecker SCALE EDGES, grid SIDE or shuffled SIDE");
            return;
        }
    }
    tokio::runtime::Runtime::new().unwrap().block_on(measure(folder.path(), arguments.get(3).map(String::as_str)));
}

/// Roads to the right and down.
fn grid(side: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..side * side).flat_map(move |town| {
        let right = (town % side + 1 < side).then_some((town, town + 1));
        let down = (town / side + 1 < side).then_some((town, town + side));
        right.into_iter().chain(down)
    })
}

fn write(folder: &Path, vertices: u64, edges: impl Iterator<Item = (u64, u64)>) {
    let mut random = SplitMix64::new(SEED);
    let mut towns = BufWriter::new(File::create(folder.join("towns.csv")).unwrap());
    writeln!(towns, "~id,~label").unwrap();
    (0..vertices).for_each(|town| writeln!(towns, "{town},Town").unwrap());
    let mut roads = BufWriter::new(File::create(folder.join("roads.csv")).unwrap());
    writeln!(roads, "~from,~to,~label,weight:Long").unwrap();
    for (source, target) in edges {
        writeln!(roads, "{source},{target},road,{}", 1 + random.below(255)).unwrap();
    }
}

async fn measure(folder: &Path, only: Option<&str>) {
    let url = folder.join("graph").display().to_string();
    hoplake::load(&url, LoadOptions::from_paths([folder.join("towns.csv"), folder.join("roads.csv")])).await.unwrap();
    let reader = Reader::new(Store::open(&url).unwrap(), ReadPool::new(ReadSettings::default()).unwrap());
    let snapshot = Arc::new(Snapshot::open(reader, &OpenSettings::default()).await.unwrap());
    println!("| program | lists | run | steps | collections a vertex | requests | MiB read | ms |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for streamed in [false, true] {
        if only.is_none_or(|only| only == "paths") {
            program("shortest paths", ShortestPaths { start: 0 }, Some("weight"), streamed, &snapshot).await;
        }
        if only.is_none_or(|only| only == "components") {
            program("components", Components, None, streamed, &snapshot).await;
        }
        let settings = PageRankSettings { tolerance: 1e-6, iterations_max: 1000, ..PageRankSettings::default() };
        if only.is_none_or(|only| only == "pagerank") {
            program("PageRank to 1e-6", PageRank::new(settings, None), None, streamed, &snapshot).await;
        }
    }
}

async fn program<P: VertexProgram>(
    name: &str,
    program: P,
    weight: Option<&str>,
    streamed: bool,
    snapshot: &Arc<Snapshot>,
) {
    let hop = "both".parse().unwrap();
    let selection = Selection { hop, weight: weight.map(Into::into), ..Selection::default() };
    let context = QueryContext::new();
    let program = Arc::new(program);
    let mut branch = context.branch();
    let lists = match streamed {
        true => Lists::streamed(snapshot, &selection, &mut branch).await.unwrap(),
        false => {
            let topology = Topology::load(snapshot, &selection, &Workers::default(), &mut branch).await.unwrap();
            Lists::in_memory(&Arc::new(topology), &context).unwrap()
        }
    };
    for asynchronous in [false, true] {
        let store: Arc<dyn StateStore<P::State>> = Arc::new(MemoryStore::new(lists.vertices()));
        let before = context.cost();
        let began = Instant::now();
        let ran = if asynchronous {
            run_asynchronously(&program, &lists, &store, &AsyncSettings::default(), |_| (), &mut branch).await.unwrap()
        } else {
            run(&program, &lists, &store, &RunSettings::default(), |_| (), &mut branch).await.unwrap()
        };
        let ms = began.elapsed().as_millis();
        let cost = context.cost();
        let collections = ran.collections as f64 / f64::from(lists.vertices());
        println!(
            "| {name} | {} | {} | {} | {collections:.2} | {} | {:.1} | {ms} |",
            if streamed { "streamed" } else { "in memory" },
            if asynchronous { "asynchronous" } else { "supersteps" },
            ran.superstep,
            cost.requests - before.requests,
            (cost.store_bytes - before.store_bytes) as f64 / f64::from(1 << 20),
        );
    }
}
