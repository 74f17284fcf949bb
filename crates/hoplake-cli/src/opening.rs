//! Opening a graph, as all verbs that read one do.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytesize::ByteSize;
use hoplake::{
    DiskSettings, ErrorKind, Graph, Hop, OpenSettings, QueryContext, ReadPool, ReadSettings, Reader, Reason, Schema,
    StepCost, Store,
    caching::{Trace, TraceError},
};
use tokio::time::timeout;

use crate::{arguments, failure::Failure};

/// Which graph.
#[derive(Debug, clap::Args)]
pub struct GraphArgs {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// Open this version, by number or tag, instead of the newest
    #[arg(long, value_name = "VERSION")]
    pub version: Option<VersionArg>,
    /// Open the version that was the newest at this time, as in 2026-11-01 or 2026-11-01T09:30:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "version", value_parser = hoplake::parse_time)]
    pub as_of: Option<u64>,
    #[command(flatten)]
    reading: ReadingArgs,
}

/// A version, by its number or by a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionArg {
    /// Its number.
    Number(u64),
    /// Its tag.
    Tag(String),
}

impl FromStr for VersionArg {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.parse().map_or_else(|_| Self::Tag(text.to_owned()), Self::Number))
    }
}

impl VersionArg {
    /// Its number.
    pub async fn find(&self, store: &Store) -> anyhow::Result<u64> {
        let name = match self {
            Self::Number(version) => return Ok(*version),
            Self::Tag(name) => name,
        };
        Graph::tagged(store, name).await.map_err(|error| match error.reason() {
            Some(Reason::NoVersion) => {
                Failure::of(&error, format!("hoplake tag {} shows the tags there are", store.url())).into()
            }
            _ => error.into(),
        })
    }
}

const CACHE: ByteSize = ByteSize::mib(256);
const DISK_CACHE: ByteSize = ByteSize::b(hoplake::DISK_CACHE_BYTES);

/// How it is read.
#[derive(Debug, clap::Args)]
// A heading for each option: one for the struct would also stand above the options of the verb that follow it.
pub struct ReadingArgs {
    /// Memory for blocks of the graph
    #[arg(long, help_heading = "Reading", value_name = "SIZE", default_value_t = CACHE, value_parser = arguments::size)]
    cache: ByteSize,
    /// Keep blocks in this folder too, for the next time
    #[arg(long, help_heading = "Reading", value_name = "FOLDER", env = "HOPLAKE_DISK_CACHE")]
    disk_cache: Option<PathBuf>,
    /// Disk space for them
    #[arg(long, help_heading = "Reading", value_name = "SIZE", default_value_t = DISK_CACHE, value_parser = arguments::size)]
    disk_cache_size: ByteSize,
    /// Map the files of a graph in a folder into memory: the system's page cache is the cache
    #[arg(long, help_heading = "Reading")]
    mapped: bool,
    /// Record every block that is read in this file, for `hoplake cache-sim`; compressed if it ends in .zst
    #[arg(long, help_heading = "Reading", value_name = "FILE")]
    trace: Option<PathBuf>,
}

impl Default for ReadingArgs {
    fn default() -> Self {
        Self { cache: CACHE, disk_cache: None, disk_cache_size: DISK_CACHE, mapped: false, trace: None }
    }
}

fn trace_failure(path: &Path, error: &TraceError) -> anyhow::Error {
    match error {
        TraceError::Create { source, .. } => Failure::file(format!("create {}", path.display()), source).into(),
        other => Failure::new(ErrorKind::Unavailable, other.to_string(), "choose another file with --trace").into(),
    }
}

impl ReadingArgs {
    /// The caches to read through.
    pub fn pool(&self) -> anyhow::Result<Arc<ReadPool>> {
        let disk_settings =
            |folder: &PathBuf| DiskSettings { folder: folder.clone(), bytes_max: self.disk_cache_size.as_u64() };
        let mut settings = ReadSettings {
            cache_bytes_max: self.cache.as_u64(),
            mapped: self.mapped,
            disk: self.disk_cache.as_ref().map(disk_settings),
            ..ReadSettings::default()
        };
        if settings.disk.is_none() {
            // No reads for later queries: this process has none, and others cannot use its memory.
            settings.full_read_bytes_max = 0;
        }
        let trace = match &self.trace {
            None => Trace::off(),
            Some(path) => Trace::create(path).map_err(|error| trace_failure(path, &error))?,
        };
        Ok(ReadPool::traced(settings, trace).map_err(hoplake::Error::from)?)
    }
}

/// An open graph and the cost of opening it.
pub struct Opened {
    /// The graph.
    pub graph: Graph,
    /// The cost of opening it.
    pub cost: StepCost,
}

/// How long a process waits for background work before it ends.
const SETTLE: Duration = Duration::from_secs(10);

impl Opened {
    /// Waits, for some seconds at most, until nothing is under way in the background: what is, would end with the
    /// process.
    pub async fn settle(&self) {
        let _ = timeout(SETTLE, self.graph.settled()).await;
    }
}

impl GraphArgs {
    /// The newest version at a URL, read as by default.
    pub fn at(url: String) -> Self {
        Self { url, version: None, as_of: None, reading: ReadingArgs::default() }
    }

    /// Opens the graph.
    pub async fn open(&self) -> anyhow::Result<Opened> {
        let begun = Instant::now();
        let context = QueryContext::new();
        // Finding a version by its time or tag is a part of opening it.
        let store = self.store()?.metered_by(&context);
        let version = match (&self.version, self.as_of) {
            // clap rejects both at once.
            (_, Some(unix_ms)) => Some(Graph::version_as_of(&store, unix_ms).await?),
            (Some(version), None) => Some(version.find(&store).await?),
            (None, None) => None,
        };
        let settings = OpenSettings { version, ..OpenSettings::default() };
        let reader = Reader::new(store, self.reading.pool()?);
        let graph = Graph::open_through(reader, &settings).await?;
        let cost = StepCost { cost: context.cost() + graph.open_cost(), time_us: begun.elapsed().as_micros() as u64 };
        Ok(Opened { graph, cost })
    }

    /// Opens the graph, within a time.
    pub async fn open_within(&self, time: Duration) -> anyhow::Result<Opened> {
        timeout(time, self.open()).await.unwrap_or_else(|_| {
            let message = format!("{} was not opened within {}", self.url, humantime::format_duration(time));
            let hint = "nothing is changed; try again later, or raise --timeout";
            Err(Failure::new(ErrorKind::Unavailable, message, hint).into())
        })
    }

    /// The store the graph is in.
    pub fn store(&self) -> anyhow::Result<Store> {
        open_store(&self.url)
    }
}

/// The store at a URL.
pub fn open_store(url: &str) -> anyhow::Result<Store> {
    Ok(Store::open(url).map_err(hoplake::Error::from)?)
}

/// The object that a mirror has.
pub const MIRROR: &str = "mirror";

/// Warns before a change of a mirror in a folder; of other stores it would cost a request each time.
pub fn warn_of_mirror(url: &str) {
    let marker = Path::new(url.strip_prefix("file://").unwrap_or(url)).join(MIRROR);
    if let Ok(source) = std::fs::read_to_string(&marker) {
        let marker = marker.display();
        eprintln!(
            "warning: {url} is a mirror of {source}, which cannot be updated any more once it has changes of its own: change {source} \
             instead, or remove {marker} if this is to be a graph of its own"
        );
    }
}

/// Rejects a hop along an edge label that the graph does not have.
pub fn check_hop(schema: &Schema, hop: &Hop) -> Result<(), Failure> {
    let mut known: Vec<_> = schema.edge_types.iter().map(|edge| edge.label.as_str()).collect();
    // An edge label between several vertex labels is several edge types.
    known.sort_unstable();
    known.dedup();
    let Some(missing) = hop.labels.iter().find(|label| !known.contains(&label.as_str())) else { return Ok(()) };
    let message = format!("the graph has no edge label {missing:?}");
    let hint = match known.is_empty() {
        true => "it has no edges yet".into(),
        false => format!("its edge labels are {}", known.join(", ")),
    };
    Err(Failure::new(ErrorKind::NotFound, message, hint))
}
