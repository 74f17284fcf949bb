//! Loading a graph into a store.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use hoplake_engine::{
    intent,
    publish::{self, Published},
    vacuum::{self, VacuumSettings},
    versions,
};
use hoplake_format::{Change, ChangeKind, Manifest, Schema, VersionRange, VertexCount, segment::SegmentSettings};
use hoplake_ingest::{
    BadRows,
    build::{self, BuildSettings, Level},
    source::{self, SourceOptions},
};
use hoplake_storage::{Branch, Cost, QueryContext, ReadPool, ReadSettings, Reader, Store};

pub use hoplake_ingest::{
    build::{Progress as LoadProgress, Step as LoadPhase, VertexOrder},
    source::ReadLimits,
};

use crate::{Error, ErrorKind, Reason};

/// What to do with rows that cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BadRowPolicy {
    /// The first ends the load.
    #[default]
    Stop,
    /// They are written to this CSV file (file, line, column, value, reason) and left out.
    Skip(PathBuf),
}

/// How to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// Files and folders to load from. The layout is recognised: LDBC SNB, Gremlin or neo4j-admin CSV, edge
    /// lists, or whatever `mapping` says.
    pub from: Vec<PathBuf>,
    /// A TOML file that says which column of which file is what.
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
    /// What to do with rows that cannot be loaded.
    pub bad_rows: BadRowPolicy,
    /// Whether a graph that is there may be replaced; its versions stay readable.
    pub replace: bool,
    /// A message to keep with the version.
    pub message: String,
    /// How long publication may take once everything is written, in milliseconds. Default 10 minutes.
    pub publish_timeout_ms: u64,
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
            bad_rows: BadRowPolicy::Stop,
            replace: false,
            message: String::new(),
            publish_timeout_ms: 600_000,
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
    /// How long it took.
    pub time: Duration,
    /// What it took of the store, publication and the removal of leftovers included.
    pub cost: Cost,
}

/// Loads a graph into the store at `url`. Nothing of it is visible until all of it is; when the load
/// fails or is interrupted nothing ever is, and the next load or a vacuum removes what it left.
///
/// # Errors
/// [`Conflict`](ErrorKind::Conflict) if there is a graph and `replace` is not set, or another load was
/// faster; [`Invalid`](ErrorKind::Invalid) with file, line, column and value of a bad row; the store's.
pub async fn load(url: &str, options: LoadOptions) -> Result<LoadReport, Error> {
    load_with(Store::open(url)?, options, Arc::new(())).await
}

/// Loads a graph into a store at hand, and tells `progress` what it is doing.
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

/// As [`load_with`], but breaks off when `stop` is ready, until everything is written: then `None` is returned, the load has
/// taken its name out of the graph, and nothing of it will ever be visible. Its threads end at their next step; what they
/// still write is garbage that the next load or a vacuum removes.
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
    options.from.iter().try_for_each(|path| check_local(path))?;
    let context = QueryContext::new();
    let (mut stop, mut branch) = (pin!(stop), context.branch());
    let store = store.on_account(&context);
    let reader = Reader::new(store.clone(), ReadPool::new(ReadSettings::default())?);
    let current = versions::newest(&reader, &mut branch).await?;
    // One without anything is what a vacuum made of a load that was never done.
    let in_the_way = current.as_ref().filter(|current| !options.replace && current.schema != Schema::default());
    if let Some(current) = in_the_way {
        let message = format!(
            "there is a graph at {} already, in version {}, which stays readable if it is replaced",
            store.url(),
            current.version
        );
        return Err(Error::new(ErrorKind::Conflict, message).with_reason(Reason::Exists));
    }
    // Others may commit meanwhile, and vacuums must know whose objects these are.
    let writer = store.clock().ulid();
    let base = match current {
        Some(current) => {
            let announced = intent::announce(&reader, ChangeKind::Load, &writer, Some(current), &mut branch);
            let announced = tokio::select! {
                announced = announced => announced?,
                () = &mut stop => {
                    give_up(&reader, &writer, &mut branch).await;
                    return Ok(None);
                }
            };
            publish::hint(&store, &announced).await;
            announced
        }
        None => Manifest::default(),
    };
    let base_version = base.version;
    // A store that would lose it is refused before hours of loading.
    let tried = publish::prove(&store, base_version).await?;
    if tried.is_some() {
        branch.then(1);
    }
    let target = store.clone();
    let message = options.message.clone();
    let runtime = tokio::runtime::Handle::current();
    let settings_writer = writer.clone();
    let publish_timeout_ms = options.publish_timeout_ms;
    let building = tokio::task::spawn_blocking(move || {
        let bad_rows = Arc::new(match &options.bad_rows {
            BadRowPolicy::Stop => BadRows::stop(),
            BadRowPolicy::Skip(path) => BadRows::skip(path)?,
        });
        let limits = ReadLimits { memory_bytes: Some(options.memory_bytes), ..options.limits };
        let dataset =
            source::open(&options.from, &SourceOptions { mapping: options.mapping, limits, ..Default::default() })?;
        let settings = BuildSettings {
            memory_bytes: options.memory_bytes,
            temp_dir: options.temp_dir,
            threads: options.threads,
            order: options.order,
            segments: options.segments,
            base_version,
            writer: settings_writer,
        };
        let level = build::build(&dataset, target, runtime, &settings, &bad_rows, progress.as_ref())?;
        bad_rows.flush()?;
        Ok::<_, Error>((level, bad_rows.skipped()))
    });
    let built = tokio::select! {
        built = building => built,
        () = &mut stop => {
            give_up(&reader, &writer, &mut branch).await;
            return Ok(None);
        }
    };
    let built = built.map_err(|error| Error::new(ErrorKind::Internal, format!("the load stopped: {error}")))?;
    if let Some(removal) = tried {
        // Not before there are other objects in its folder: a server that keeps objects as files removes a folder that
        // becomes empty, and fails a load that is about to write there.
        removal.await;
        branch.then(1);
    }
    let (level, bad_rows) = match built {
        Ok(built) => built,
        Err(error) => {
            give_up(&reader, &writer, &mut branch).await;
            return Err(error);
        }
    };
    let adjacency_bytes = level.adjacency_bytes;
    let change = Change { kind: ChangeKind::Load, writer: writer.clone(), message, ..Change::default() };
    context.give_time(Some(publish_timeout_ms));
    let visible = make_visible(&reader, &base, level, change, &mut branch).await;
    context.give_time(None);
    let manifest = match visible {
        Ok(manifest) => manifest,
        Err(error) => {
            // What was in time to be refused for its time was not sent.
            if error.kind() == ErrorKind::Limit {
                give_up(&reader, &writer, &mut branch).await;
                let message = format!(
                    "{} did not answer within {publish_timeout_ms} ms when the load was to be published; nothing of it is \
                     visible",
                    store.url()
                );
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
            // If that is not known, the version may yet be visible.
            if error.kind() != ErrorKind::Unknown {
                give_up(&reader, &writer, &mut branch).await;
            }
            return Err(error);
        }
    };
    // Loads that started from an older version can no longer publish: their leftovers are garbage.
    let _ = vacuum::vacuum(&reader, &VacuumSettings::default(), &mut branch).await;
    let edges: u64 = manifest.edge_counts.iter().sum();
    Ok(Some(LoadReport {
        version: manifest.version,
        vertices: manifest.vertex_counts.iter().map(VertexCount::live).sum(),
        edges,
        bad_rows,
        bytes: manifest.objects().values().sum(),
        bytes_per_directed_edge: if edges == 0 { 0.0 } else { adjacency_bytes as f64 / (2 * edges) as f64 },
        time: begun.elapsed(),
        cost: context.cost(),
    }))
}

/// Refuses a URL in the place of a file or folder: input is read from this machine.
pub(crate) fn check_local(path: &Path) -> Result<(), Error> {
    match path.to_str().and_then(|text| text.split_once(":/")) {
        Some((scheme, _)) if SCHEMES.contains(&scheme) => {
            let message = format!("{} is a URL, and files are read from this machine only", path.display());
            Err(Error::new(ErrorKind::Invalid, message).with_reason(Reason::Remote))
        }
        _ => Ok(()),
    }
}

/// Schemes by which a URL in the place of a file is told.
const SCHEMES: [&str; 10] = ["s3", "s3a", "gs", "az", "abfs", "abfss", "azure", "http", "https", "file"];

/// Publishes a load: in the place of all that the version says which it began from, if nobody has changed that.
async fn make_visible(
    reader: &Reader,
    base: &Manifest,
    level: Level,
    change: Change,
    branch: &mut Branch,
) -> Result<Manifest, Error> {
    let store = reader.store();
    let faster = |version: u64| {
        let url = store.url();
        let message = format!("another writer changed {url} first, in version {version}; nothing of this is visible");
        Error::new(ErrorKind::Conflict, message).with_reason(Reason::Overtaken)
    };
    let mut newest = base.clone();
    loop {
        if base.version > 0 {
            intent::check(&newest, &change.writer)?;
        }
        let changed = newest.parts().any(|part| part.until > base.version) || newest.reset > base.reset;
        if changed {
            return Err(faster(newest.version));
        }
        let manifest = loaded(&newest, &level, change.clone(), store.clock().unix_ms());
        if let Err(error) = publish::check_objects(store, &manifest).await {
            // Of two first loads, the one that is done removes what the other has written, which can no longer publish.
            return Err(match versions::newest(reader, branch).await? {
                Some(newest) if newest.version > base.version => faster(newest.version),
                _ => error.into(),
            });
        }
        if let Published::Visible = publish::publish(reader, &manifest, branch).await? {
            publish::hint(store, &manifest).await;
            return Ok(manifest);
        }
        newest = versions::newest(reader, branch).await?.ok_or_else(|| faster(newest.version + 1))?;
    }
}

/// The version after `newest`, with what was loaded and nothing else.
fn loaded(newest: &Manifest, level: &Level, change: Change, now_unix_ms: u64) -> Manifest {
    let writer = change.writer.clone();
    let mut next = match newest.version {
        0 => Manifest { version: 1, created_unix_ms: now_unix_ms, change, ..Manifest::default() },
        _ => newest.next(change, now_unix_ms),
    };
    next.intents.retain(|intent| intent.writer != writer);
    let versions = VersionRange::of(next.version);
    let mut segments = level.segments.clone();
    segments.iter_mut().flat_map(|segment| &mut segment.sections).for_each(|section| section.versions = Some(versions));
    let mut tables = level.tables.clone();
    tables.iter_mut().for_each(|table| table.versions = versions);
    Manifest {
        reset: next.version,
        source_positions: BTreeMap::new(),
        schema: level.schema.clone(),
        vertex_counts: level.vertex_counts.iter().map(|&ordinals| VertexCount { ordinals, gone: 0 }).collect(),
        edge_counts: level.edge_counts.clone(),
        degrees: level.degrees.clone(),
        segments,
        tables,
        ..next
    }
}

/// How long a load that failed or was stopped may take to take its name out.
const GIVEN_UP_TIMEOUT_MS: u64 = 30_000;

/// Removes what a load that failed has written. What it cannot remove, the next load or a vacuum will.
async fn give_up(reader: &Reader, writer: &str, branch: &mut Branch) {
    // The store may be what failed.
    branch.context().give_time(Some(GIVEN_UP_TIMEOUT_MS));
    let _ = intent::withdraw(reader, writer, branch).await;
    let Ok(listed) = reader.store().list(hoplake_format::constants::DATA_FOLDER).await else { return };
    let mine = listed.into_iter().map(|object| object.name).filter(|name| name.contains(writer));
    let _ = reader.store().delete(&mine.collect::<Vec<_>>()).await;
}
