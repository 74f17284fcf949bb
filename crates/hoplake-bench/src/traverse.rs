//! Latency and edges per second of traversals from warm memory, embedded, on one core.

use std::{hint::black_box, path::PathBuf, time::Instant};

use anyhow::Result;
use clap::Args;
use hoplake::{Graph, Hop, HopDirection, OpenSettings, ReadSettings, Store, Strategy, Traversal};
use hoplake_testkit::generate::SplitMix64;

/// What to traverse.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// A graph that `load` made.
    #[arg(long, default_value = "bench-data/log-normal-20.hoplake")]
    graph: PathBuf,
    /// The vertex label to start from.
    #[arg(long, default_value = "vertex")]
    label: String,
    /// The edge label to follow.
    #[arg(long, default_value = "edge")]
    edge: String,
    /// Keys are drawn below two to the power of this.
    #[arg(long, default_value_t = 20)]
    scale: u32,
    /// How many starts for one hop; a tenth for two, a hundredth for three.
    #[arg(long, default_value_t = 20_000)]
    starts: usize,
}

/// Prints a row for each number of hops.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let read = ReadSettings { cache_bytes_max: 8 << 30, ..ReadSettings::default() };
    let store = Store::open(&arguments.graph.to_string_lossy())?;
    let graph = Graph::open_with(store, &OpenSettings { read, ..OpenSettings::default() }).await?;
    println!(
        "opened in {} waves, {} requests, {} bytes",
        graph.open_cost().waves,
        graph.open_cost().requests,
        graph.open_cost().store_bytes
    );
    println!("| hops | starts | p50, us | p99, us | edges a query | M edges/s |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (hops, starts) in [(1, arguments.starts), (2, arguments.starts / 10), (3, arguments.starts / 100)] {
        // Once for the cache, and once for the clock.
        measure_hops(&graph, arguments, hops, starts.max(1)).await?;
        let (mut micros, edges) = measure_hops(&graph, arguments, hops, starts.max(1)).await?;
        micros.sort_by(f64::total_cmp);
        let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
        let total: f64 = micros.iter().sum();
        println!(
            "| {hops} | {} | {:.1} | {:.1} | {:.0} | {:.0} |",
            micros.len(),
            at(0.5),
            at(0.99),
            edges as f64 / micros.len() as f64,
            edges as f64 / total,
        );
    }
    Ok(())
}

/// The time of each query, by key, in microseconds, and all edges that were followed.
async fn measure_hops(graph: &Graph, arguments: &Arguments, hops: usize, starts: usize) -> Result<(Vec<f64>, u64)> {
    let mut random = SplitMix64::new(7);
    let mut micros = Vec::with_capacity(starts);
    let mut edges = 0;
    let hops = vec![Hop::along(HopDirection::Out, &arguments.edge); hops];
    while micros.len() < starts {
        let key = random.below(1 << arguments.scale) as i64;
        let begun = Instant::now();
        let mut query = graph.query();
        let Some(start) = query.vertex(&arguments.label, key).await? else { continue };
        let traversal =
            Traversal { starts: vec![start], hops: hops.clone(), strategy: Strategy::Bfs, ..Traversal::default() };
        let reached = query.traverse(traversal).await?;
        micros.push(begun.elapsed().as_secs_f64() * 1e6);
        edges += reached.profile.iter().map(|depth| depth.edges).sum::<u64>();
        black_box(reached);
    }
    Ok((micros, edges))
}
