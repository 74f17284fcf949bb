//! Loading a graph into a store.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use hoplake_engine::{
    load::{Load, LoadConditions, LoadDescription},
    vacuum::{self, VacuumSettings},
};
use hoplake_format::{BuiltGraph, VertexCount, segment::SegmentSettings};
use hoplake_ingest::{
    BadRows,
    build::{self, BuildSettings},
    inputs::{InputSettings, Inputs, gather},
    source::{self, SourceOptions},
};
use hoplake_storage::{Cost, QueryContext, ReadPool, ReadSettings, Reader, RetrySettings, Store};
use tokio::runtime::Handle;

pub use hoplake_ingest::{
    build::{LoadPhase, Progress as LoadProgress, VertexOrder},
    source::ReadLimits,
    staged::{StagedEnd, StagedTables},
};

use crate::{Error, ErrorKind};

/// What to do with rows that cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BadRowPolicy {
    /// The first ends the load.
    #[default]
    Stop,
    /// They are written to this CSV file (file, line, column, value, reason, row) and left out.
    Skip(PathBuf),
}

/// How to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// Files and folders to load from. The layout is recognised: LDBC SNB, Gremlin or neo4j-admin CSV, edge
    /// lists, or files of a `mapping`. Also URLs of objects and folders in stores and of files on web servers, names with
    /// wildcards, and `-`, which is CSV on standard input. What is not a file of this machine is copied to `temp_dir`.
    pub from: Vec<PathBuf>,
    /// A TOML file that assigns columns of files to the graph, here or at a URL. It may name files itself, in all these ways but
    /// wildcards.
    pub mapping: Option<PathBuf>,
    /// How much of a file is read at a time. The budget of memory bounds it, too.
    pub limits: ReadLimits,
    /// Budget of memory, in bytes; what does not fit is sorted in temporary files. Default 1 GiB.
    pub memory_bytes: u64,
    /// Where temporary files go; the system's folder by default.
    pub temp_dir: Option<PathBuf>,
    /// Threads; all processors by default.
    pub threads: usize,
    /// The order in which vertices get their ordinals.
    pub order: VertexOrder,
    /// How segments are written.
    pub segments: SegmentSettings,
    /// Properties of vertices that get an index, as `label.property`. Not lists.
    pub indexes: Vec<String>,
    /// What to do with rows that cannot be loaded.
    pub bad_rows: BadRowPolicy,
    /// Whether a graph that is there may be replaced; its versions stay readable.
    pub replace: bool,
    /// A message to keep with the version.
    pub message: String,
    /// Up to where sources had been read whose content this is, to keep with the version: changes go on from there.
    pub source_positions: BTreeMap<String, String>,
    /// Up to where sources have to have been read in the graph that is replaced, until the load is published; `None` if nothing of a
    /// source may be in it. Otherwise the load is in conflict: another writer has read on from the source.
    pub if_positions: BTreeMap<String, Option<String>>,
    /// How long publication may take once everything is written, in milliseconds. Default 10 minutes.
    pub publish_timeout_ms: u64,
    /// What pauses before repeated requests are drawn from. By default another each time.
    pub retry_seed: Option<u64>,
    /// How long a web server may say nothing before the load gives up, in milliseconds. Default one minute.
    pub web_timeout_ms: u64,
    /// The most bytes of all inputs that are copied to `temp_dir`; no bound by default.
    pub copied_bytes_max: Option<u64>,
}

impl LoadOptions {
    /// Loads from these files and folders, all else by default.
    pub fn from_paths<P: Into<PathBuf>>(from: impl IntoIterator<Item = P>) -> Self {
        Self {
            from: from.into_iter().map(Into::into).collect(),
            mapping: None,
            limits: ReadLimits::default(),
            memory_bytes: 1 << 30,
            temp_dir: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            order: VertexOrder::Keys,
            segments: SegmentSettings::default(),
            indexes: Vec::new(),
            bad_rows: BadRowPolicy::Stop,
            replace: false,
            message: String::new(),
            source_positions: BTreeMap::new(),
            if_positions: BTreeMap::new(),
            publish_timeout_ms: 600_000,
            retry_seed: None,
            web_timeout_ms: 60_000,
            copied_bytes_max: None,
        }
    }
}

/// What a load did.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadReport {
    /// The version that is now the newest.
    pub version: u64,
    /// Vertices loaded.
    pub vertices: u64,
    /// Edges loaded; each is stored in both directions.
    pub edges: u64,
    /// Rows left out.
    pub bad_rows: u64,
    /// Bytes of all objects.
    pub bytes: u64,
    /// Bytes of adjacency for each edge and direction.
    pub bytes_per_directed_edge: f64,
    /// Its duration.
    pub time: Duration,
    /// Its cost in the store, publication and the removal of leftovers included.
    pub cost: Cost,
}

/// Loads a graph into the store at `url`. Nothing of it is visible until all of it is; when the load
/// fails or is interrupted nothing ever is, and the next load or a vacuum removes what it left.
///
/// # Errors
/// [`Conflict`](ErrorKind::Conflict) if there is a graph and `replace` is not set, if `if_positions` do not hold, or if another load was
/// faster; [`Invalid`](ErrorKind::Invalid) with file, line, column and value of a bad row; the store's.
pub async fn load(url: &str, options: LoadOptions) -> Result<LoadReport, Error> {
    load_with(Store::open(url)?, options, Arc::new(())).await
}

/// Loads a graph into a given store, and reports its steps to `progress`.
///
/// # Errors
/// As [`load`].
pub async fn load_with(
    store: Store,
    options: LoadOptions,
    progress: Arc<dyn LoadProgress>,
) -> Result<LoadReport, Error> {
    let report = load_until(store, options, progress, std::future::pending()).await?;
    report.ok_or_else(|| Error::new(ErrorKind::Internal, "the load stopped by itself"))
}

/// As [`load_with`], but breaks off when `stop` is ready, until everything is written: then `None` is returned, the
/// load has taken its name out of the graph, and nothing of it will ever be visible. Its threads end at their next
/// step; what they still write is garbage that the next load or a vacuum removes.
///
/// # Errors
/// As [`load`].
pub async fn load_until(
    store: Store,
    options: LoadOptions,
    progress: Arc<dyn LoadProgress>,
    stop: impl Future<Output = ()>,
) -> Result<Option<LoadReport>, Error> {
    let begun = Instant::now();
    let context = QueryContext::new();
    let mut stop = pin!(stop);
    let mut branch = context.branch();
    let store = store.metered_by(&context);
    let retry = RetrySettings { seed: options.retry_seed, ..RetrySettings::default() };
    let reader = Reader::new(store.clone(), ReadPool::new(ReadSettings { retry, ..ReadSettings::default() })?);
    let conditions = LoadConditions { replace: options.replace, if_positions: options.if_positions.clone() };
    // Before anything is copied, which may be much.
    let mut load = Load::new(&reader, &conditions, &mut branch).await?;
    let bad_rows = Arc::new(match &options.bad_rows {
        BadRowPolicy::Stop => BadRows::stop(),
        BadRowPolicy::Skip(path) => BadRows::skip(path)?,
    });
    // Before anything is announced in the graph.
    let input_settings = InputSettings {
        from: &options.from,
        mapping: options.mapping.as_deref(),
        limits: ReadLimits { memory_bytes: Some(options.memory_bytes), ..options.limits },
        temp_dir: options.temp_dir.as_deref(),
        web_timeout_ms: options.web_timeout_ms,
        copied_bytes_max: options.copied_bytes_max,
    };
    let inputs = tokio::select! {
        inputs = gather(&input_settings) => inputs?,
        () = &mut stop => return Ok(None),
    };
    if !inputs.copies.is_empty() {
        // Meanwhile another load may have been faster.
        load = Load::new(&reader, &conditions, &mut branch).await?;
    }
    let begin = tokio::select! {
        begin = load.begin(&mut branch) => Some(begin),
        () = &mut stop => None,
    };
    let Some(begin) = begin else {
        // The lease may have reached the store before the announcement was broken off.
        load.give_up(&mut branch).await;
        return Ok(None);
    };
    let trial = begin?;
    let message = options.message.clone();
    let source_positions = options.source_positions.clone();
    let publish_timeout_ms = options.publish_timeout_ms;
    let base_version = load.base_version();
    let writer = load.writer().to_owned();
    let building = Building { options, inputs, bad_rows, base_version, writer };
    let runtime = Handle::current();
    // Parsing and sorting occupy a thread for as long as the load takes: the runtime's own threads stay free for uploads.
    let building = tokio::task::spawn_blocking(move || building.build(store, runtime, &*progress));
    let built = tokio::select! {
        built = building => built,
        () = &mut stop => {
            load.give_up(&mut branch).await;
            return Ok(None);
        }
    };
    trial.end(&mut branch).await;
    let stopped = |error| Err(Error::new(ErrorKind::Internal, format!("the load stopped: {error}")));
    let (built, bad_rows) = match built.unwrap_or_else(stopped) {
        Ok(built) => built,
        Err(error) => {
            load.give_up(&mut branch).await;
            return Err(error);
        }
    };
    let description = LoadDescription { message: &message, source_positions: &source_positions };
    let manifest = load.publish(&built, &description, publish_timeout_ms, &mut branch).await?;
    // Loads that started from an older version can no longer publish: their leftovers are garbage.
    let _ = vacuum::vacuum(&reader, &VacuumSettings::default(), &mut branch).await;
    let edges: u64 = manifest.edge_counts.iter().sum();
    Ok(Some(LoadReport {
        version: manifest.version,
        vertices: manifest.vertex_counts.iter().map(VertexCount::live).sum(),
        edges,
        bad_rows,
        bytes: manifest.objects().values().sum(),
        bytes_per_directed_edge: if edges == 0 { 0.0 } else { built.adjacency_bytes as f64 / (2 * edges) as f64 },
        time: begun.elapsed(),
        cost: context.cost(),
    }))
}

/// A load that may begin.
struct Building {
    options: LoadOptions,
    inputs: Inputs,
    bad_rows: Arc<BadRows>,
    base_version: u64,
    writer: String,
}

impl Building {
    /// Reads the input and writes its objects. Returns them, and how many rows were left out. Blocks.
    fn build(self, store: Store, runtime: Handle, progress: &dyn LoadProgress) -> Result<(BuiltGraph, u64), Error> {
        let Self { options, inputs, bad_rows, base_version, writer } = self;
        let limits = ReadLimits { memory_bytes: Some(options.memory_bytes), ..options.limits };
        let copies = inputs.copies.clone();
        let source = SourceOptions { mapping: options.mapping, limits, copies, ..Default::default() };
        let dataset = source::open(&inputs.from, &source)?;
        let settings = BuildSettings {
            memory_bytes: options.memory_bytes,
            temp_dir: options.temp_dir,
            threads: options.threads,
            order: options.order,
            segments: options.segments,
            indexes: options.indexes,
            base_version,
            writer,
        };
        let built = build::build(&dataset, store, runtime, &settings, &bad_rows, progress);
        // Rejects are written even if the load fails; the load's own error is returned first.
        let flushed = bad_rows.flush();
        let built = built?;
        flushed?;
        Ok((built, bad_rows.skipped()))
    }
}
