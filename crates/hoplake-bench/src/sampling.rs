//! Samples of neighbourhoods: edges a second and core from memory, and batches of an epoch before the simulated bucket.
//!
//! Batches before the bucket are in virtual time: what the network takes, as if computing took none. The first batch of a process reads most of
//! the lists that it wants; later ones find them in the caches.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use anyhow::{Context, Result};
use clap::Args;
use futures::TryStreamExt;
use hoplake::{
    compute::Workers,
    sampling::{FanOut, FeatureSettings, Features, Sample, Sampler, SamplerSettings},
};
use hoplake_engine::{OpenSettings, Snapshot, traversal::Hop};
use hoplake_format::{LabelId, VertexId};
use hoplake_storage::{QueryContext, ReadPool, ReadSettings, Reader, Store, StoreProfile};
use hoplake_testkit::{SimStore, clock::in_virtual_time, generate::SplitMix64};
use object_store::{ObjectStore, ObjectStoreExt, local::LocalFileSystem, memory::InMemory};

/// What to sample.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The folder of a graph that `social-network` made.
    #[arg(long, default_value = "bench-data/social-network-0.05.hoplake")]
    graph: PathBuf,
    /// The label of seeds.
    #[arg(long, default_value = "Person")]
    label: String,
    /// The edges.
    #[arg(long, default_value = "both:knows")]
    hop: Hop,
    /// Neighbours in each hop.
    #[arg(long, value_delimiter = ',', default_value = "15,10")]
    fan_out: Vec<u32>,
    /// Seeds of a batch.
    #[arg(long, default_value_t = 1024)]
    seeds: usize,
    /// How many batches.
    #[arg(long, default_value_t = 100)]
    batches: u64,
    /// Properties that are read as features of vertices with the label of seeds.
    #[arg(long, value_delimiter = ',')]
    features: Vec<String>,
    /// The seed of everything random.
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// Prints tables.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(from_memory(arguments))?;
    println!();
    from_bucket(arguments)
}

impl Arguments {
    fn settings(&self, snapshot: &Snapshot) -> Result<SamplerSettings> {
        let counts: Vec<_> = self.fan_out.iter().map(|count| Some(*count)).collect();
        let fan_outs = FanOut::of_hop(snapshot, &self.hop, &counts)?;
        Ok(SamplerSettings { fan_outs, seed: self.seed, ..SamplerSettings::default() })
    }

    fn label(&self, snapshot: &Snapshot) -> Result<LabelId> {
        snapshot.schema().label_id(&self.label).with_context(|| format!("the graph has no label {}", self.label))
    }

    /// Distinct seeds of each batch.
    fn batches(&self, snapshot: &Snapshot) -> Result<Vec<Vec<VertexId>>> {
        let label = self.label(snapshot)?;
        let mut random = SplitMix64::new(self.seed);
        let count = snapshot.ordinal_count(label);
        let batch = |_| {
            let drawn = (0..self.seeds).filter_map(|_| VertexId::new(label, random.below(count)));
            let mut drawn: Vec<_> = drawn.collect();
            drawn.sort_unstable();
            drawn.dedup();
            drawn
        };
        Ok((0..self.batches).map(batch).collect())
    }
}

fn edges_of(sample: &Sample) -> usize {
    sample.edges.iter().map(|edges| edges.near.len()).sum()
}

async fn open(store: Store) -> Result<Arc<Snapshot>> {
    let reader = Reader::new(store, ReadPool::new(ReadSettings::default())?);
    Ok(Arc::new(Snapshot::open(reader, &OpenSettings::default()).await?))
}

async fn from_memory(arguments: &Arguments) -> Result<()> {
    println!(
        "| lists | threads | batches | edges a batch | vertices a batch | p50, ms | M edges/s |\n|{}",
        " --- |".repeat(7)
    );
    let snapshot = open(Store::open(&arguments.graph.to_string_lossy())?).await?;
    let batches = arguments.batches(&snapshot)?;
    for threads in [1, std::thread::available_parallelism().map_or(1, usize::from)] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        let workers = Workers::new(Arc::new(pool));
        let mut branch = QueryContext::new().branch();
        let settings = arguments.settings(&snapshot)?;
        let in_memory = Sampler::in_memory(&snapshot, settings.clone(), workers.clone(), &mut branch).await?;
        let cached = Sampler::on_bucket(&snapshot, settings, workers)?;
        for (lists, sampler) in [("in memory", in_memory), ("in the caches", cached)] {
            let (mut edges, mut vertices, mut micros) = (0, 0, Vec::new());
            for round in 0..2 {
                (edges, vertices) = (0, 0);
                micros.clear();
                for (number, seeds) in batches.iter().enumerate() {
                    let begun = Instant::now();
                    let sample = sampler.sample(seeds, number as u64 + round, &mut branch).await?;
                    micros.push(begun.elapsed().as_secs_f64() * 1e6);
                    edges += edges_of(&sample);
                    vertices += sample.vertices.iter().map(|vertices| vertices.ordinals.len()).sum::<usize>();
                }
            }
            let total: f64 = micros.iter().sum();
            let count = batches.len();
            println!(
                "| {lists} | {threads} | {count} | {} | {} | {:.2} | {:.2} |",
                edges / count,
                vertices / count,
                at(&mut micros, 0.5) / 1e3,
                edges as f64 / total
            );
        }
    }
    Ok(())
}

fn at(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}

async fn objects(folder: &Path) -> Result<Arc<InMemory>> {
    let objects = Arc::new(InMemory::new());
    let from = LocalFileSystem::new_with_prefix(folder)?;
    let mut names = from.list(None);
    while let Some(object) = names.try_next().await? {
        let bytes = from.get(&object.location).await?.bytes().await?;
        objects.put(&object.location, bytes.into()).await?;
    }
    Ok(objects)
}

fn from_bucket(arguments: &Arguments) -> Result<()> {
    println!(
        "| store, simulated | features | first batch, ms | p50, ms | p99, ms | goal, ms | waves of a batch | requests of the first | of all | MiB of the first | of all |\n|{}",
        " --- |".repeat(11)
    );
    for with_features in [false, true] {
        if with_features && arguments.features.is_empty() {
            continue;
        }
        let profile = StoreProfile::s3_standard();
        let name = profile.name.clone();
        let row = in_virtual_time(async {
            let (sim, store) =
                SimStore::before(objects(&arguments.graph).await?, profile, arguments.seed, "s3://bench");
            let snapshot = open(store).await?;
            let sampler = Sampler::on_bucket(&snapshot, arguments.settings(&snapshot)?, Workers::default())?;
            let mut branch = QueryContext::new().branch();
            let feature = FeatureSettings {
                missing: Some(0.0),
                ..FeatureSettings::new("x", arguments.label(&snapshot)?, arguments.features.clone())
            };
            let features = if with_features { vec![feature] } else { Vec::new() };
            let features = Features::open(&snapshot, features, Workers::default(), &mut branch).await?;
            let (mut millis, mut waves) = (Vec::new(), 0);
            let before = sim.counts();
            let mut first = before;
            for (number, seeds) in arguments.batches(&snapshot)?.iter().enumerate() {
                let mut branch = QueryContext::new().branch();
                let began = tokio::time::Instant::now();
                let sample = sampler.sample(seeds, number as u64, &mut branch).await?;
                features.of_sample(&sample, &mut branch).await?;
                millis.push(began.elapsed().as_secs_f64() * 1e3);
                waves = waves.max(branch.context().cost().waves);
                if number == 0 {
                    first = sim.counts();
                }
            }
            let all = sim.counts();
            let goal = (arguments.fan_out.len() + 1) * 40;
            anyhow::Ok(format!(
                "{:.0} | {:.0} | {:.0} | {goal} | {waves} | {} | {} | {} | {} |",
                millis[0],
                at(&mut millis.clone(), 0.5),
                at(&mut millis.clone(), 0.99),
                first.requests.get - before.requests.get,
                all.requests.get - before.requests.get,
                (first.bytes_read - before.bytes_read) >> 20,
                (all.bytes_read - before.bytes_read) >> 20,
            ))
        })?;
        let shown = if with_features { arguments.features.join(", ") } else { "none".into() };
        println!("| {name} | {shown} | {row}");
    }
    Ok(())
}
