//! The graphs that are measured, in memory, and how they are opened before a simulated store.

use std::{fs, path::Path as FilePath, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use hoplake::{Graph, LoadOptions, OpenSettings, ReadPool, ReadSettings, Reader, SegmentSettings, Store, StoreProfile};
use hoplake_testkit::{Sim, SimStore, snb};
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
use serde::{Deserialize, Serialize};

use super::recorder::Recorder;

/// The small graph: real, complete, with known answers.
pub const SMALL_DATA: &str = "snb-sf0.1-datagen";

/// Which graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// SNB SF0.1.
    Small,
    /// The SNB-shaped generated graph, ordered for locality.
    Large,
    /// The same graph in the order of its keys.
    LargeByKey,
}

impl Size {
    /// As in the names of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
            Self::LargeByKey => "large-by-key",
        }
    }
}

/// What is said of a graph in the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Which graph.
    pub size: Size,
    /// What it is.
    pub name: String,
    /// Its vertices.
    pub vertices: u64,
    /// Its edges; each is stored in both directions.
    pub edges: u64,
    /// Bytes of adjacency and keys: what traversals read.
    pub bytes: u64,
}

/// A graph, its objects in memory: only then is virtual time exact.
#[derive(Debug, Clone)]
pub struct Subject {
    /// What it is.
    pub facts: Facts,
    objects: Arc<InMemory>,
}

/// How a graph is opened.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The store that is simulated.
    pub profile: Arc<StoreProfile>,
    /// What its latencies are drawn from.
    pub seed: u64,
    /// How it is read.
    pub read: ReadSettings,
}

impl Setup {
    /// S3 Standard with a memory cache of this size, all else by default.
    pub fn standard(cache_bytes_max: u64) -> Self {
        let read = ReadSettings { cache_bytes_max, ..ReadSettings::default() };
        Self { profile: StoreProfile::s3_standard(), seed: 1, read }
    }

    /// The same before another store.
    pub fn before(self, profile: Arc<StoreProfile>) -> Self {
        Self { profile, ..self }
    }
}

/// An open graph and what stands behind it.
#[derive(Debug)]
pub struct Opened {
    /// The graph.
    pub graph: Graph,
    /// The simulated service.
    pub sim: Sim,
    /// What the reader asked of it.
    pub recorder: Arc<Recorder>,
    pool: Arc<ReadPool>,
}

impl Opened {
    /// Empties its caches, when what is still read for no query has come.
    pub async fn grow_cold(&self) {
        tokio::time::sleep(Duration::from_secs(10)).await;
        self.pool.forget_blocks();
    }
}

/// Loads the small graph into `folder` with blocks of this many bytes, unless it is there.
pub async fn load_small(folder: &FilePath, block_bytes: Option<usize>) -> Result<std::path::PathBuf> {
    ensure!(snb::available(SMALL_DATA), "there is no data set {SMALL_DATA}; set HOPLAKE_TEST_DATA");
    let blocks = block_bytes.map_or_else(String::new, |bytes| format!("-{bytes}"));
    let target = folder.join(format!("{SMALL_DATA}{blocks}.hoplake"));
    if !target.exists() {
        fs::create_dir_all(folder)?;
        let mut options = LoadOptions::from_paths([snb::extract(SMALL_DATA)]);
        options.segments = block_bytes.map_or(options.segments, SegmentSettings::with_list_blocks);
        hoplake::load(target.to_str().context("the folder is not UTF-8")?, options).await?;
    }
    Ok(target)
}

impl Subject {
    /// Reads a graph from a folder into memory.
    pub async fn read(size: Size, name: &str, folder: &FilePath) -> Result<Self> {
        let objects = Arc::new(InMemory::new());
        let mut folders = vec![folder.to_path_buf()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(&next).with_context(|| format!("could not read {}", next.display()))? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let parts = path.strip_prefix(folder)?.components();
                let parts: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
                objects.put(&Path::from_iter(parts), fs::read(&path)?.into()).await?;
            }
        }
        let facts = Facts { size, name: name.to_owned(), vertices: 0, edges: 0, bytes: 0 };
        let mut subject = Self { facts, objects };
        let info = subject.open_local().await?.info().await?;
        let bytes = info.sections.iter().map(|section| section.bytes).sum();
        subject.facts = Facts { vertices: info.vertices, edges: info.edges, bytes, ..subject.facts };
        Ok(subject)
    }

    /// Opens it as what it is, bytes in memory, with room for all of it.
    pub async fn open_local(&self) -> Result<Graph> {
        let store = Store::new(self.objects.clone(), Path::default(), "memory://evaluation");
        let read = ReadSettings { cache_bytes_max: 16 << 30, ..ReadSettings::default() };
        Ok(Graph::open_with(store, &OpenSettings { read, ..OpenSettings::default() }).await?)
    }

    /// A simulated store that holds it.
    pub fn store(&self, profile: Arc<StoreProfile>, seed: u64) -> (Sim, Store) {
        SimStore::before(self.objects.clone(), profile, seed, "s3://evaluation")
    }

    /// Opens it before a simulated store, with caches of its own, and forgets what that took.
    pub async fn open(&self, setup: &Setup) -> Result<Opened> {
        let (sim, store) = self.store(setup.profile.clone(), setup.seed);
        let recorder = Arc::new(Recorder::new(store.clone()));
        let mut read = setup.read.clone();
        read.retry.seed = Some(1);
        let pool = ReadPool::new(read.clone())?;
        let reader = Reader::from_source(store, recorder.clone(), pool.clone());
        let graph = Graph::open_through(reader, &OpenSettings { read, ..OpenSettings::default() }).await?;
        sim.reset_counts();
        Ok(Opened { graph, sim, recorder, pool })
    }
}
