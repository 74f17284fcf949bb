//! The seven traversals of the social network, cold: waves, requests and bytes; and its size by edge type.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use hoplake::{Direction, Graph, LoadOptions, SectionKind, StartKey, Traversal, TraversalRequest, VertexOrder};
use hoplake_testkit::{oracle, snb};

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The data set; found as the tests find it.
    #[arg(long, default_value = "snb-sf0.1-datagen")]
    data: String,
    /// Where the graph goes.
    #[arg(long, default_value = "bench-data")]
    folder: PathBuf,
    /// Orders ordinals for locality.
    #[arg(long)]
    locality: bool,
}

/// Prints the size of each edge type and what each query costs from an empty process.
pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(snb::available(&arguments.data), "there is no data set {}; set HOPLAKE_TEST_DATA", arguments.data);
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let target = arguments.folder.join(format!("{}.hoplake", arguments.data));
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    fs::create_dir_all(&arguments.folder)?;
    let url = target.to_str().context("the folder is not UTF-8")?;
    let mut options = LoadOptions::from_paths([snb::extract(&arguments.data)]);
    options.order = if arguments.locality { VertexOrder::Locality } else { VertexOrder::Keys };
    let report = hoplake::load(url, options).await?;
    println!("{} vertices, {} edges in {:.1} s\n", report.vertices, report.edges, report.time.as_secs_f64());
    print_sizes(&Graph::open(url).await?).await?;
    print_queries(arguments, url).await
}

/// Prints what each edge type takes, by direction.
pub async fn print_sizes(graph: &Graph) -> Result<()> {
    println!("| edge type | edges | bytes per edge, out | in |\n| --- | --- | --- | --- |");
    let info = graph.info().await?;
    let bytes = |wanted: SectionKind| {
        info.sections.iter().find(|section| section.kind == wanted).map_or(0, |section| section.bytes)
    };
    for ((id, edge), count) in graph.schema().edge_types().zip(&graph.manifest().edge_counts) {
        let label = |label| graph.schema().label(label).map_or("", |label| label.name.as_str());
        let each = |direction| bytes(SectionKind::Adjacency(id, direction)) as f64 / (*count).max(1) as f64;
        let out = each(Direction::Out);
        let into = each(Direction::In);
        println!("| {} {} {} | {count} | {out:.2} | {into:.2} |", label(edge.source), edge.label, label(edge.target));
    }
    println!("\nall together {:.3} bytes per directed edge\n", info.bytes_per_directed_edge());
    Ok(())
}

/// Every query from every source with an empty cache: opening, key, hops, and the keys of the result.
async fn print_queries(arguments: &Arguments, url: &str) -> Result<()> {
    println!("| query | hops | sources | waves, all | requests, median | worst | bytes, median | worst |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (name, query) in snb::truth(&arguments.data).queries {
        let mut waves = Vec::new();
        let mut requests = Vec::new();
        let mut bytes = Vec::new();
        for case in &query.cases {
            let graph = Graph::open(url).await?;
            let mut run = graph.query();
            let hop = |hop: &snb::TruthHop| {
                let direction = match hop.direction {
                    oracle::Direction::Out => "out",
                    oracle::Direction::In => "in",
                    oracle::Direction::Both => "both",
                };
                format!("{direction}:{}", hop.edge_label).parse()
            };
            let hops = query.hops.iter().map(hop).collect::<Result<Vec<hoplake::Hop>, _>>()?;
            let start = StartKey::key(&query.source_label, case.source.to_string());
            let traversal = Traversal { hops, ..Traversal::default() };
            let request = TraversalRequest { starts: vec![start], traversal, select: Some(Vec::new()), limit: None };
            run.run(&request).await?;
            let open = graph.open_cost();
            let cost = run.cost();
            waves.push(open.waves + cost.waves);
            requests.push(open.requests + cost.requests);
            bytes.push(open.store_bytes + cost.store_bytes);
        }
        [&mut waves, &mut requests, &mut bytes].into_iter().for_each(|numbers| numbers.sort_unstable());
        let median = waves.len() / 2;
        let last = waves.len() - 1;
        println!(
            "| {name} | {} | {} | {} to {} | {} | {} | {} | {} |",
            query.hops.len(),
            waves.len(),
            waves[0],
            waves[last],
            requests[median],
            requests[last],
            bytes[median],
            bytes[last],
        );
    }
    Ok(())
}
