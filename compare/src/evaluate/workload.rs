//! The workload under many conditions: against the baseline, by tier, by parallelism, by kind of store, by size
//! of blocks and of partitions.

use anyhow::Result;
use hoplake::{DiskSettings, StoreProfile, Strategy};
use serde::{Deserialize, Serialize};
use std::path::Path;

use super::{
    baseline::{Adjacency, Partitions},
    queries::{self, Case},
    run::{self, Answers, BaselineOrder, Manner, Run},
    subject::{Setup, Size, Subject, load_small},
};

/// Runs of the workload, each with what it is about.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Figures {
    /// The runs.
    pub runs: Vec<Labelled>,
    /// The baseline's files: their number and bytes, where it took part.
    pub partitions: Option<(usize, u64)>,
}

/// A run and what sets it apart.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Labelled {
    /// What sets it apart, in words.
    pub condition: String,
    /// The same as a number, for plots.
    pub value: f64,
    /// The run.
    pub run: Run,
}

impl Figures {
    fn add(&mut self, condition: impl Into<String>, value: f64, run: Run) {
        let condition = condition.into();
        let Run { system, manner, took, .. } = &run;
        eprintln!(
            "{condition}: {system}, {manner}: {:.2} s store, {:.2} s processor",
            took.store_ms / 1e3,
            took.processor_ms / 1e3
        );
        self.runs.push(Labelled { condition, value, run });
    }
}

/// How Hoplake runs where it is held against the baseline.
const OURS: [Manner; 4] = [
    Manner { strategy: Strategy::Bfs, at_once: 1, within: 1, prefetch: false },
    Manner { strategy: Strategy::BfsPipelined, at_once: 1, within: 1, prefetch: false },
    Manner { strategy: Strategy::Dfs, at_once: 1, within: 1, prefetch: false },
    Manner { strategy: Strategy::Dfs, at_once: 1, within: 16, prefetch: true },
];

/// Opens a graph from empty caches, opening not counted, and runs the workload.
async fn ours(subject: &Subject, setup: &Setup, cases: &[Case], manner: Manner) -> Result<(Run, Answers)> {
    let opened = subject.open(setup).await?;
    let (run, answers) = run::hoplake(&opened, cases, manner).await?;
    let store = setup.profile.name.clone();
    let cache_bytes_max = setup.read.cache_bytes_max;
    Ok((Run { store, cache_bytes_max, ..run }, answers))
}

/// Budgets of memory, in MiB, under which both are compared.
fn budgets_mib(size: Size) -> &'static [u64] {
    match size {
        Size::Small => &[256],
        Size::Large | Size::LargeByKey => &[256, 1024],
    }
}

/// Both, breadth-first and depth-first, one at a time and 10 at once, under several budgets; all answers are held
/// against each other and against those that are known.
pub async fn beside_baseline(subject: &Subject, partition_bytes: u64) -> Result<Figures> {
    let graph = subject.open_local().await?;
    let cases = queries::workload(subject, &graph, 1).await?;
    let adjacency = Adjacency::of(&graph).await?;
    let partitions = Partitions::cut(&adjacency, partition_bytes).await?;
    let mut figures = Figures { partitions: Some((partitions.len(), partitions.bytes)), ..Figures::default() };
    for mib in budgets_mib(subject.facts.size) {
        let words = format!("{mib} MiB");
        let setup = Setup::standard(mib << 20);
        let baseline = BaselineOrder {
            adjacency: &adjacency,
            partitions: &partitions,
            profile: setup.profile.clone(),
            cache_bytes_max: mib << 20,
        };
        for at_once in [1, 10] {
            let mut theirs: Vec<Answers> = Vec::new();
            for strategy in [Strategy::Bfs, Strategy::Dfs] {
                let (run, answers) = run::baseline(&baseline, &cases, strategy, at_once).await?;
                figures.add(&words, *mib as f64, run);
                theirs.push(answers);
            }
            for manner in OURS {
                let (run, answers) = ours(subject, &setup, &cases, Manner { at_once, ..manner }).await?;
                for theirs in &theirs {
                    run::check(&graph, &cases, &answers, theirs).await?;
                }
                figures.add(&words, *mib as f64, run);
            }
        }
    }
    Ok(figures)
}

/// Where blocks are found: with memory alone, with a disk behind a small memory, and with what is read ahead.
pub async fn by_tier(subject: &Subject) -> Result<Figures> {
    let cases = queries::workload(subject, &subject.open_local().await?, 1).await?;
    let mut figures = Figures::default();
    for at_once in [1, 20] {
        for strategy in [Strategy::Bfs, Strategy::Dfs] {
            for prefetch in [false, true] {
                let manner = Manner { prefetch, at_once, ..Manner::sequential(strategy) };
                // Background reads would count as if queries had asked for them.
                let mut setup = Setup::standard(256 << 20);
                setup.read.full_read_bytes_max = 0;
                figures.add("256 MiB of memory", 0.0, ours(subject, &setup, &cases, manner).await?.0);
            }
        }
        let setup = Setup::standard(256 << 20);
        let manner = Manner { at_once, ..Manner::sequential(Strategy::Bfs) };
        figures.add("the same, small segments whole", 0.0, ours(subject, &setup, &cases, manner).await?.0);
        let folder = tempfile::tempdir()?;
        let mut setup = Setup::standard(1 << 20);
        setup.read.full_read_bytes_max = 0;
        setup.read.disk = Some(DiskSettings { folder: folder.path().to_owned(), bytes_max: 4 << 30 });
        for words in ["1 MiB of memory, an empty disk", "1 MiB of memory, the same disk after a restart"] {
            let manner = Manner { at_once, ..Manner::sequential(Strategy::Bfs) };
            figures.add(words, 0.0, ours(subject, &setup, &cases, manner).await?.0);
        }
    }
    Ok(figures)
}

/// Traversals at once, and vertices at a time within a depth-first one, from 1 to 40.
pub async fn by_parallelism(subject: &Subject) -> Result<Figures> {
    let cases = queries::workload(subject, &subject.open_local().await?, 1).await?;
    let mut figures = Figures::default();
    let setup = Setup::standard(256 << 20);
    for number in [1, 2, 4, 10, 20, 40] {
        for strategy in [Strategy::Bfs, Strategy::Dfs] {
            let manner = Manner { at_once: number, ..Manner::sequential(strategy) };
            figures.add("traversals at once", number as f64, ours(subject, &setup, &cases, manner).await?.0);
        }
        let manner = Manner { within: number, ..Manner::sequential(Strategy::Dfs) };
        figures.add("vertices at a time", number as f64, ours(subject, &setup, &cases, manner).await?.0);
    }
    Ok(figures)
}

/// Both before S3 Standard and before S3 Express One Zone.
pub async fn by_store(subject: &Subject, partition_bytes: u64) -> Result<Figures> {
    let graph = subject.open_local().await?;
    let cases = queries::workload(subject, &graph, 1).await?;
    let adjacency = Adjacency::of(&graph).await?;
    let partitions = Partitions::cut(&adjacency, partition_bytes).await?;
    let mut figures = Figures::default();
    for profile in [StoreProfile::s3_standard(), StoreProfile::s3_express()] {
        let setup = Setup::standard(256 << 20).before(profile.clone());
        let cache_bytes_max = setup.read.cache_bytes_max;
        let baseline =
            BaselineOrder { adjacency: &adjacency, partitions: &partitions, profile: profile.clone(), cache_bytes_max };
        for strategy in [Strategy::Bfs, Strategy::Dfs] {
            figures.add(&profile.name, 0.0, run::baseline(&baseline, &cases, strategy, 1).await?.0);
            figures.add(&profile.name, 0.0, ours(subject, &setup, &cases, Manner::sequential(strategy)).await?.0);
        }
    }
    Ok(figures)
}

/// The small graph with blocks from 2 to 64 KiB.
pub async fn by_block_size(facts: &Subject, folder: &Path) -> Result<Figures> {
    let mut figures = Figures::default();
    for kib in [2, 4, 8, 16, 32, 64] {
        let loaded = load_small(folder, Some(kib << 10)).await?;
        let subject = Subject::read(facts.facts.size, &facts.facts.name, &loaded).await?;
        let cases = queries::workload(&subject, &subject.open_local().await?, 1).await?;
        for profile in [StoreProfile::s3_standard(), StoreProfile::s3_express()] {
            let setup = Setup::standard(256 << 20).before(profile.clone());
            let manner = Manner::sequential(Strategy::Bfs);
            figures.add(format!("{kib} KiB"), kib as f64, ours(&subject, &setup, &cases, manner).await?.0);
        }
    }
    Ok(figures)
}

/// The baseline with partitions from 2 to 128 MB, one at a time and 10 at once.
pub async fn by_partition_size(subject: &Subject) -> Result<Figures> {
    let graph = subject.open_local().await?;
    let cases = queries::workload(subject, &graph, 1).await?;
    let adjacency = Adjacency::of(&graph).await?;
    let mut figures = Figures::default();
    for mb in [2, 4, 8, 16, 32, 64, 128] {
        let partitions = Partitions::cut(&adjacency, mb * 1_000_000).await?;
        let profile = StoreProfile::s3_standard();
        let baseline =
            BaselineOrder { adjacency: &adjacency, partitions: &partitions, profile, cache_bytes_max: 256 << 20 };
        for at_once in [1, 10] {
            let run = run::baseline(&baseline, &cases, Strategy::Bfs, at_once).await?.0;
            figures.add(format!("{mb} MB"), mb as f64, run);
        }
    }
    Ok(figures)
}
