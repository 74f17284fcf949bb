//! The evaluation: a study of traversals over object storage (A. Chandla, TU Eindhoven, 2024) repeated, and the
//! figures that Hoplake is to reach.
//!
//! Each part measures one thing on one graph and keeps its raw numbers as JSON, so that parts can be run one at a
//! time; the report is written from whatever parts there are.
//!
//! * `subject`, `queries`: the graphs and the seven queries. `baseline`: the study's own way, rebuilt.
//! * `recorder`, `run`: what the store was asked, one run of the workload.
//! * `workload`, `latency`, `waves`, `hindsight`, `caches`, `tradeoff`, `warm`, `nodes`: the parts.
//! * `report`: the document and its plots.

mod baseline;
mod caches;
mod hindsight;
mod latency;
mod nodes;
mod queries;
mod recorder;
mod report;
mod run;
pub mod subject;
mod tradeoff;
mod warm;
mod waves;
mod workload;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde::{Serialize, de::DeserializeOwned};

use hoplake_testkit::clock::in_virtual_time;
use subject::{Facts, Size, Subject};

/// A part of the evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EvaluationPart {
    /// The workload, ours and the baseline's.
    Baseline,
    /// Cold queries from many sources.
    Latency,
    /// Waves of 64 ranges, of the workload, and an idle hour.
    Waves,
    /// Dollars against the best plan in hindsight.
    Hindsight,
    /// Where blocks are found.
    Tiers,
    /// Parallelism across traversals and within them.
    Parallel,
    /// S3 Standard and Express One Zone.
    Stores,
    /// Sizes of blocks (small graph only).
    Blocks,
    /// Sizes of the baseline's partitions.
    Partitions,
    /// Eviction policies.
    Caches,
    /// Latency and dollars by what waiting is worth.
    Tradeoff,
    /// Warm memory, in real time.
    Warm,
    /// None to three access nodes, in real time.
    Nodes,
}

/// What to evaluate.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The parts to measure; all by default.
    #[arg(long = "part", value_enum)]
    parts: Vec<EvaluationPart>,
    /// The graphs to measure; those that are there by default.
    #[arg(long = "size", value_enum)]
    sizes: Vec<Size>,
    /// A loaded social network of 30 M vertices and 170 M edges, ordered for locality: the large graph.
    #[arg(long)]
    large: Option<PathBuf>,
    /// The same in the order of its keys, whose cold queries and dollars are measured as well.
    #[arg(long)]
    large_by_key: Option<PathBuf>,
    /// Where loaded graphs and raw numbers go.
    #[arg(long, default_value = "bench-data")]
    folder: PathBuf,
    /// The report; its plots go to a folder of the same name next to it.
    #[arg(long, default_value = "docs/evaluation.md")]
    report: PathBuf,
    /// Writes the report from the numbers at hand, and measures nothing.
    #[arg(long)]
    report_only: bool,
    /// Sources of cold queries, of each kind.
    #[arg(long, default_value_t = 10_000)]
    queries: usize,
    /// Waves of 64 ranges.
    #[arg(long, default_value_t = 20_000)]
    waves: usize,
    /// The baseline's partitions, in MB.
    #[arg(long, default_value_t = 16)]
    partition_mb: u64,
}

/// Measures the parts and writes the report.
pub fn run(arguments: &Arguments) -> Result<()> {
    let numbers = arguments.folder.join("evaluation");
    fs::create_dir_all(&numbers)?;
    if !arguments.report_only {
        let wanted = |size: Size| arguments.sizes.is_empty() || arguments.sizes.contains(&size);
        if wanted(Size::Small) {
            let runtime = tokio::runtime::Runtime::new()?;
            let loaded = runtime.block_on(subject::load_small(&arguments.folder, None))?;
            let subject = runtime.block_on(Subject::read(Size::Small, "SNB SF0.1", &loaded))?;
            measure(arguments, &subject, &numbers)?;
        }
        for (folder, size, name) in [
            (&arguments.large, Size::Large, "SNB-shaped, generated"),
            (&arguments.large_by_key, Size::LargeByKey, "SNB-shaped, generated, in key order"),
        ] {
            let Some(folder) = folder.as_deref().filter(|_| wanted(size)) else { continue };
            let runtime = tokio::runtime::Runtime::new()?;
            let subject = runtime.block_on(Subject::read(size, name, folder))?;
            measure(arguments, &subject, &numbers)?;
        }
    }
    report::write(&numbers, &arguments.report)
}

fn measure(arguments: &Arguments, subject: &Subject, numbers: &Path) -> Result<()> {
    let parts = if arguments.parts.is_empty() { EvaluationPart::value_variants() } else { &arguments.parts };
    for part in parts {
        let save = |name: &str| Saver { file: file(numbers, name, subject.facts.size), facts: &subject.facts };
        let partition_bytes = arguments.partition_mb * 1_000_000;
        let begun = std::time::Instant::now();
        let beside = matches!(part, EvaluationPart::Latency | EvaluationPart::Hindsight);
        match part {
            _ if subject.facts.size == Size::LargeByKey && !beside => continue,
            EvaluationPart::Baseline => {
                save("baseline").save(&in_virtual_time(workload::beside_baseline(subject, partition_bytes))?)
            }
            EvaluationPart::Latency => {
                save("latency").save(&in_virtual_time(latency::measure(subject, arguments.queries))?)
            }
            EvaluationPart::Waves => save("waves").save(&in_virtual_time(waves::measure(subject, arguments.waves))?),
            EvaluationPart::Hindsight => save("hindsight").save(&in_virtual_time(hindsight::measure(subject))?),
            EvaluationPart::Tiers => save("tiers").save(&in_virtual_time(workload::by_tier(subject))?),
            EvaluationPart::Parallel => save("parallel").save(&in_virtual_time(workload::by_parallelism(subject))?),
            EvaluationPart::Stores => {
                save("stores").save(&in_virtual_time(workload::by_store(subject, partition_bytes))?)
            }
            EvaluationPart::Blocks if subject.facts.size == Size::Large => continue,
            EvaluationPart::Blocks => {
                save("blocks").save(&in_virtual_time(workload::by_block_size(subject, &arguments.folder))?)
            }
            EvaluationPart::Partitions => {
                save("partitions").save(&in_virtual_time(workload::by_partition_size(subject))?)
            }
            EvaluationPart::Caches => save("caches").save(&in_virtual_time(caches::measure(subject, numbers))?),
            EvaluationPart::Tradeoff => {
                save("tradeoff").save(&in_virtual_time(tradeoff::measure(subject, arguments.queries.min(1_000)))?)
            }
            EvaluationPart::Warm => save("warm").save(&warm::measure(subject, 200_000)?),
            EvaluationPart::Nodes => save("nodes").save(&nodes::measure(subject)?),
        }?;
        eprintln!("{part:?}, {}: {:.0} s", subject.facts.name, begun.elapsed().as_secs_f64());
    }
    Ok(())
}

fn file(numbers: &Path, part: &str, size: Size) -> PathBuf {
    numbers.join(format!("{part}-{}.json", size.name()))
}

/// Keeps the numbers of a part.
struct Saver<'a> {
    file: PathBuf,
    facts: &'a Facts,
}

impl Saver<'_> {
    fn save(&self, figures: &impl Serialize) -> Result<()> {
        let json = serde_json::to_string_pretty(&(self.facts, figures))?;
        fs::write(&self.file, json).with_context(|| format!("could not write {}", self.file.display()))
    }
}

/// The numbers of a part, if it was run on that graph.
fn saved<T: DeserializeOwned>(numbers: &Path, part: &str, size: Size) -> Result<Option<(Facts, T)>> {
    let file = file(numbers, part, size);
    match fs::read_to_string(&file) {
        Ok(json) => serde_json::from_str(&json).with_context(|| format!("{} is of another version", file.display())),
        Err(_) => Ok(None),
    }
}
