//! A generated social network, loaded: speed, memory, and what everything takes.
//!
//! The network is written to Parquet files once, then loaded in a process of its own, whose peak resident
//! memory the system counts, and opened again to be described. The files are removed at the end; the
//! graph stays, for other measurements.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use hoplake::{Graph, Hop, HopDirection, LabelId, LoadOptions, SectionKind, VertexId, VertexOrder};
use hoplake_testkit::generate::{SocialLabel, SocialNetwork, SocialRelation, SplitMix64};
use serde::{Deserialize, Serialize};

use crate::{load::peak_resident_bytes, parquet_pairs, snb};

/// The name of the file that describes the others.
const MAPPING: &str = "mapping.toml";

/// Vertices of each label whose degrees are looked at.
const SAMPLE: usize = 50_000;

/// What to generate, and how to load it.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Persons over 65,645; 1 gives 30 million vertices and 175 million edges.
    #[arg(long, default_value_t = 0.01)]
    scale: f64,
    /// The seed of the network.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where files and the graph go.
    #[arg(long, default_value = "bench-data")]
    folder: PathBuf,
    /// Orders ordinals for locality.
    #[arg(long)]
    locality: bool,
    /// Budget of memory in MiB.
    #[arg(long, default_value_t = 2048)]
    memory_mib: u64,
    /// Keeps the Parquet files for the next load.
    #[arg(long)]
    keep_input: bool,
    /// Loads in this process and prints a line of JSON; what the measurement starts.
    #[arg(long, hide = true)]
    child: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    vertices: u64,
    edges: u64,
    seconds: f64,
    peak_bytes: u64,
    bytes: u64,
}

impl Arguments {
    fn input(&self) -> PathBuf {
        self.folder.join(format!("social-network-{}-seed-{}.parquet", self.scale, self.seed))
    }

    fn graph_folder(&self) -> PathBuf {
        let order = if self.locality { "-locality" } else { "" };
        self.folder.join(format!("social-network-{}{order}.hoplake", self.scale))
    }
}

/// Writes, loads and describes the network.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.child {
        return load_here(arguments);
    }
    let input = arguments.input();
    if !input.join(MAPPING).exists() {
        let begun = Instant::now();
        let bytes = write_input(arguments, &input)?;
        println!("generated {} MiB of Parquet in {:.1} s\n", bytes >> 20, begun.elapsed().as_secs_f64());
    }
    let mut child = Command::new(std::env::current_exe()?);
    child.args(["social-network", "--child", "--scale", &arguments.scale.to_string()]);
    child.args(["--seed", &arguments.seed.to_string(), "--memory-mib", &arguments.memory_mib.to_string()]);
    child.arg("--folder").arg(&arguments.folder);
    if arguments.locality {
        child.arg("--locality");
    }
    let output = child.output()?;
    ensure!(output.status.success(), "the load failed: {}", String::from_utf8_lossy(&output.stderr));
    let measured: Measured = serde_json::from_slice(&output.stdout)?;
    println!("| memory, MiB | vertices | edges | seconds | M edges/s | peak, MiB | graph, MiB |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    println!(
        "| {} | {} | {} | {:.1} | {:.2} | {} | {} |\n",
        arguments.memory_mib,
        measured.vertices,
        measured.edges,
        measured.seconds,
        measured.edges as f64 / measured.seconds / 1e6,
        measured.peak_bytes >> 20,
        measured.bytes >> 20,
    );
    if !arguments.keep_input {
        fs::remove_dir_all(&input)?;
    }
    tokio::runtime::Runtime::new()?.block_on(describe(&arguments.graph_folder()))
}

fn write_input(arguments: &Arguments, folder: &Path) -> Result<u64> {
    fs::create_dir_all(folder)?;
    let network = SocialNetwork::new(arguments.scale, arguments.seed);
    for label in SocialLabel::ALL {
        let out = File::create(folder.join(label.file("parquet")))?;
        // Without dates the second column repeats the key, and the mapping leaves it out.
        let rows = network.vertices(label).map(|vertex| (vertex.key, vertex.created_unix_ms.unwrap_or(vertex.key)));
        parquet_pairs::write(out, ["id", "creationDate"], rows)?;
    }
    for &relation in SocialRelation::ALL {
        let out = File::create(folder.join(relation.file("parquet")))?;
        parquet_pairs::write(out, ["source", "target"], network.edges(relation))?;
    }
    // Last, so that where it is all others are complete.
    fs::write(folder.join(MAPPING), SocialNetwork::mapping("parquet"))?;
    let sizes = fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len()));
    sizes.sum::<Result<u64>>()
}

fn load_here(arguments: &Arguments) -> Result<()> {
    let mut options = LoadOptions::from_paths([arguments.input()]);
    options.mapping = Some(arguments.input().join(MAPPING));
    options.memory_bytes = arguments.memory_mib << 20;
    options.order = if arguments.locality { VertexOrder::Locality } else { VertexOrder::Keys };
    options.temp_dir = Some(arguments.folder.clone());
    let target = arguments.graph_folder();
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    let report = hoplake::blocking::load(target.to_str().context("the folder is not UTF-8")?, options)?;
    let measured = Measured {
        vertices: report.vertices,
        edges: report.edges,
        seconds: report.time.as_secs_f64(),
        peak_bytes: peak_resident_bytes()?,
        bytes: report.bytes,
    };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

async fn describe(folder: &Path) -> Result<()> {
    let graph = Graph::open(folder.to_str().context("the folder is not UTF-8")?).await?;
    let open = graph.open_cost();
    println!("opened in {} waves, {} requests, {} bytes\n", open.waves, open.requests, open.store_bytes);
    snb::print_sizes(&graph).await?;
    let info = graph.info().await?;
    let of = |wanted: fn(&SectionKind) -> bool| -> u64 {
        info.sections.iter().filter(|section| wanted(&section.kind)).map(|section| section.bytes).sum()
    };
    println!("| keys, MiB | adjacency | properties | indexes and filters | all | bytes per edge |");
    println!("| --- | --- | --- | --- | --- | --- |");
    println!(
        "| {} | {} | {} | {:.1} | {} | {:.2} |\n",
        of(|kind| matches!(kind, SectionKind::Keys(_))) >> 20,
        of(|kind| matches!(kind, SectionKind::Adjacency(..))) >> 20,
        info.tables.iter().map(|table| table.1).sum::<u64>() >> 20,
        info.index_bytes as f64 / f64::from(1 << 20),
        info.total_bytes >> 20,
        info.total_bytes as f64 / info.edges as f64,
    );
    print_degrees(&graph).await
}

/// The deciles of the degree of some vertices of each label, all edge types and both directions together.
async fn print_degrees(graph: &Graph) -> Result<()> {
    println!(
        "| label | vertices | degree: mean | decile 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 99 % | 99.9 % | most seen |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let hop = Hop { direction: HopDirection::Both, ..Hop::default() };
    for ((id, label), &count) in (0..).zip(&graph.schema().vertex_labels).zip(&graph.manifest().vertex_counts) {
        let count = count.ordinals;
        let mut random = SplitMix64::new(u64::from(id));
        let drawn = (0..SAMPLE.min(count as usize) as u64).map(|number| match count {
            0..=50_000 => number,
            _ => random.below(count),
        });
        let drawn: Vec<_> = drawn.filter_map(|ordinal| VertexId::new(LabelId(id), ordinal)).collect();
        let mut degrees: Vec<u64> =
            graph.query().degrees(&drawn, &hop).await?.iter().map(|degree| degree.edges).collect();
        degrees.sort_unstable();
        ensure!(!degrees.is_empty(), "there is no {}", label.name);
        let at = |share: f64| degrees[((degrees.len() as f64 * share) as usize).min(degrees.len() - 1)];
        let mean = degrees.iter().sum::<u64>() as f64 / degrees.len() as f64;
        let deciles = (1..10).map(|decile| at(f64::from(decile) / 10.0)).chain([at(0.99), at(0.999), at(1.0)]);
        let deciles: Vec<String> = deciles.map(|degree| degree.to_string()).collect();
        println!("| {} | {count} | {mean:.2} | {} |", label.name, deciles.join(" | "));
    }
    Ok(())
}
