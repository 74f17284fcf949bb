//! Versions, copies and upkeep.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use hoplake::{
    CompactionSettings, Difference, Error, ExportFormat, ExportOptions, IndexSettings, LogEntry, Properties, Store,
    VacuumSettings, VertexRef,
};
use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};

use crate::{
    describe, errors,
    graph::{Graph, metered, object},
    task::Task,
    values,
};

/// Versions that are listed at a time.
const VERSIONS: usize = 1_000;

impl Graph {
    /// Runs a call that needs the store alone.
    pub fn at_store<T: Send + 'static, A: Future<Output = Result<T, Error>> + Send>(
        &self,
        call: impl FnOnce(Store) -> A + Send + 'static,
        finish: impl for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    ) -> PyResult<Task> {
        let (url, meter) = (self.opened.location().url, self.meter());
        Task::spawn(async move { call(meter.store(&url)?).await }, finish)
    }
}

fn entry<'py>(py: Python<'py>, entry: &LogEntry) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("version", entry.version)?;
    fields.set_item("created_ms", entry.created_unix_ms)?;
    fields.set_item("kind", entry.change.kind.name())?;
    fields.set_item("writer", &entry.change.writer)?;
    fields.set_item("message", &entry.change.message)?;
    fields.set_item("source_positions", entry.source_positions.clone())?;
    fields.set_item("tags", &entry.tags)?;
    py.import("hoplake._changes")?.getattr("Version")?.call((), Some(&fields))
}

fn named<'py>(py: Python<'py>, properties: Option<&Properties>) -> PyResult<Bound<'py, PyAny>> {
    let Some(properties) = properties else { return Ok(py.None().into_bound(py)) };
    let named = PyDict::new(py);
    for (name, value) in properties {
        named.set_item(&**name, values::property(py, value)?)?;
    }
    Ok(named.into_any())
}

fn vertex<'py>(py: Python<'py>, vertex: &VertexRef) -> PyResult<Bound<'py, PyAny>> {
    object(py, (&*vertex.label, values::key_object(py, &vertex.key)?))
}

fn difference<'py>(py: Python<'py>, difference: &Difference) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("hoplake._changes")?.getattr("Difference")?;
    match difference {
        Difference::Vertex { vertex: of, before, after } => class.call1((
            &*of.label,
            vertex(py, of)?,
            py.None(),
            named(py, before.as_ref())?,
            named(py, after.as_ref())?,
        )),
        Difference::Edge { label, source, target, before, after } => class.call1((
            &**label,
            vertex(py, source)?,
            vertex(py, target)?,
            named(py, before.as_ref())?,
            named(py, after.as_ref())?,
        )),
    }
}

/// The memory of a difference.
fn difference_bytes(difference: &Difference) -> u64 {
    let (before, after) = match difference {
        Difference::Vertex { before, after, .. } | Difference::Edge { before, after, .. } => (before, after),
    };
    let properties = before.iter().chain(after).map(|properties| properties.bytes() as u64).sum::<u64>();
    size_of::<Difference>() as u64 + properties
}

#[pymethods]
impl Graph {
    /// Counts and sizes.
    fn info(&self) -> PyResult<Task> {
        let (graph, meter) = (self.opened.graph(), self.meter());
        Task::spawn(async move { meter.graph(&graph.await?).info().await }, |py, info| describe::info(py, &info))
    }

    /// The number of the newest version.
    fn newest(&self) -> PyResult<Task> {
        let newest = |store: Store| async move { Ok(hoplake::Graph::newest(&store).await?.version) };
        self.at_store(newest, |py, version| object(py, version))
    }

    /// The newest versions, newest first.
    fn log(&self, limit: usize) -> PyResult<Task> {
        let (url, meter) = (self.opened.location().url, self.meter());
        let read = async move {
            let store = meter.store(&url)?;
            let mut log = hoplake::Graph::log(&store).await?;
            let mut entries = Vec::with_capacity(limit.min(VERSIONS));
            while entries.len() < limit {
                let entry = log.next().await;
                meter.set_other(log.cost());
                match entry? {
                    Some(entry) => entries.push(entry),
                    None => break,
                }
            }
            Ok(entries)
        };
        Task::spawn(read, |py, entries| {
            let list = PyList::empty(py);
            for one in &entries {
                list.append(entry(py, one)?)?;
            }
            Ok(list.into_any())
        })
    }

    /// The differences between two versions, `most` of them at most. They cost this graph, and are within its limits.
    fn diff(&self, before: &Self, after: &Self, labels: Vec<String>, most: usize) -> PyResult<Task> {
        let (before, after) = (before.opened.graph(), after.opened.graph());
        let (limits, meter) = (self.limits, self.meter());
        let call = async move {
            let (before, after) = (before.await?, after.await?);
            let query = metered(&before, &limits, &meter);
            let context = query.context();
            let mut memory = context.hold(0)?;
            let mut diff = before.diff(&after, &labels)?;
            let mut differences = Vec::new();
            while differences.len() < most {
                let page = diff.next_page().await;
                meter.set_other(diff.cost());
                let Some(page) = page? else { break };
                let bytes = page.iter().map(difference_bytes).fold(memory.bytes(), u64::saturating_add);
                context.resize(&mut memory, bytes)?;
                differences.extend(page);
            }
            differences.truncate(most);
            Ok((differences, memory))
        };
        // What is built counts until it is objects of Python.
        Task::spawn(call, |py, (differences, _memory)| {
            let list = PyList::empty(py);
            for one in &differences {
                list.append(difference(py, one)?)?;
            }
            Ok(list.into_any())
        })
    }

    /// Names a version; without one the name is removed. Returns the version that has the change, or None if nothing was to change.
    #[pyo3(signature = (name, version))]
    fn tag(&self, name: String, version: Option<u64>) -> PyResult<Task> {
        let tag = move |store: Store| async move { hoplake::Graph::tag(&store, &name, version).await };
        self.at_store(tag, |py, version| object(py, version))
    }

    /// Publishes the content of an older version as the newest, and returns its number.
    fn restore(&self, version: u64, message: String) -> PyResult<Task> {
        let restore = move |store: Store| async move { hoplake::Graph::restore(&store, version, &message).await };
        self.at_store(restore, |py, version| object(py, version))
    }

    /// Makes a graph at another location of the bucket with the content of a version, and returns the tag that keeps it here.
    #[pyo3(signature = (target, version))]
    fn clone_to(&self, target: String, version: Option<u64>) -> PyResult<Task> {
        let clone =
            move |store: Store| async move { hoplake::Graph::clone_to(&store, version, &Store::open(&target)?).await };
        self.at_store(clone, |py, tag| object(py, tag))
    }

    /// Copies the newest version to another store, which becomes or is a mirror of this one.
    fn mirror(&self, target: String) -> PyResult<Task> {
        let (url, meter) = (self.opened.location().url, self.meter());
        Task::stoppable(
            move |progress, stop| async move {
                let (source, target) = (meter.store(&url)?, Store::open(&target)?);
                let report: Box<dyn Fn(u64, u64) + Send + Sync> =
                    Box::new(move |copied, all| progress.report("copying", copied, Some(all)));
                tokio::select! {
                    mirrored = hoplake::Graph::mirror(&source, &target, report) => mirrored.map(Some),
                    () = stop.requested() => Ok(None),
                }
            },
            |py, mirrored| {
                let fields = PyDict::new(py);
                fields.set_item("version", mirrored.version)?;
                fields.set_item("was_current", mirrored.is_current)?;
                fields.set_item("objects", mirrored.objects)?;
                fields.set_item("bytes", mirrored.bytes)?;
                fields.set_item("kept", mirrored.kept)?;
                fields.set_item("removed", mirrored.removed)?;
                py.import("hoplake._changes")?.getattr("Mirrored")?.call((), Some(&fields))
            },
        )
    }

    /// Writes the version as files.
    #[pyo3(signature = (target, format, labels, overwrite))]
    fn export(
        &self,
        py: Python<'_>,
        target: String,
        format: &str,
        labels: Vec<String>,
        overwrite: bool,
    ) -> PyResult<Task> {
        let format = match format {
            "parquet" => ExportFormat::Parquet,
            "csv" => ExportFormat::Csv,
            "neo4j" => ExportFormat::Neo4j,
            "gremlin" => ExportFormat::Gremlin,
            "graphml" => ExportFormat::GraphMl,
            other => {
                let known = "parquet, csv, neo4j, gremlin or graphml";
                return Err(errors::invalid(py, format!("format is {other:?}; write {known}")));
            }
        };
        let options = ExportOptions { labels, overwrite, ..ExportOptions::new(format) };
        let graph = self.opened.graph();
        let (limits, meter) = (self.limits, self.meter());
        Task::stoppable(
            move |progress, stop| async move {
                let graph = graph.await?;
                let target = Store::open(&target)?;
                let mut query = metered(&graph, &limits, &meter);
                let all = graph.manifest().vertex_counts.iter().map(hoplake::VertexCount::live).sum::<u64>()
                    + graph.manifest().edge_counts.iter().sum::<u64>();
                let written = AtomicU64::new(0);
                let report: Box<dyn Fn(u64) + Send + Sync> = Box::new(move |items| {
                    progress.report("writing", written.fetch_add(items, Ordering::Relaxed) + items, Some(all));
                });
                tokio::select! {
                    exported = query.export(&target, &options, &*report) => exported.map(Some),
                    () = stop.requested() => Ok(None),
                }
            },
            |py, exported| {
                let fields = PyDict::new(py);
                fields.set_item("vertices", exported.vertices)?;
                fields.set_item("edges", exported.edges)?;
                fields.set_item("files", exported.files)?;
                fields.set_item("bytes", exported.bytes)?;
                py.import("hoplake._changes")?.getattr("Exported")?.call((), Some(&fields))
            },
        )
    }

    /// Merges sorted runs that are due, or all.
    #[pyo3(signature = (memory, everything))]
    fn compact(&self, memory: Option<u64>, everything: bool) -> PyResult<Task> {
        let (url, meter) = (self.opened.location().url, self.meter());
        let usual = CompactionSettings::default();
        let memory_bytes = memory.unwrap_or(usual.memory_bytes);
        let settings = CompactionSettings { memory_bytes, everything, ..usual };
        Task::stoppable(
            move |_, stop| async move {
                let store = meter.store(&url)?;
                hoplake::Graph::compact_until(&store, &settings, stop.requested()).await.map(Some)
            },
            |py, compacted| {
                let fields = PyDict::new(py);
                fields.set_item("version", compacted.version)?;
                fields.set_item("merges", compacted.merges)?;
                fields.set_item("runs", compacted.runs)?;
                fields.set_item("bytes_read", compacted.bytes_read)?;
                fields.set_item("bytes_written", compacted.bytes_written)?;
                py.import("hoplake._changes")?.getattr("Compacted")?.call((), Some(&fields))
            },
        )
    }

    /// Removes versions that are not kept, and what no version names. Returns counts of versions and objects, and bytes.
    #[pyo3(signature = (keep_versions, keep_seconds))]
    fn vacuum(&self, py: Python<'_>, keep_versions: Option<u64>, keep_seconds: Option<f64>) -> PyResult<Task> {
        let since = match keep_seconds {
            None => None,
            Some(seconds) if seconds.is_finite() && seconds >= 0.0 => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
                Some(now.saturating_sub((seconds * 1e3) as u64))
            }
            Some(_) => return Err(errors::invalid(py, "keep has to be a time of 0 seconds or more")),
        };
        let settings = VacuumSettings { keep_versions, keep_since_unix_ms: since, ..VacuumSettings::default() };
        let vacuum = move |store: Store| async move { hoplake::Graph::vacuum(&store, &settings).await };
        self.at_store(vacuum, |py, vacuumed| object(py, (vacuumed.versions, vacuumed.objects, vacuumed.bytes)))
    }

    /// Reads everything and checks it. Returns counts of objects, and their bytes, and all damage as pairs of a version and a sentence.
    fn verify(&self) -> PyResult<Task> {
        let (url, meter) = (self.opened.location().url, self.meter());
        Task::stoppable(
            move |progress, stop| async move {
                let store = meter.store(&url)?;
                let report = |bytes| progress.report("reading", bytes, None);
                tokio::select! {
                    verification = hoplake::Graph::verify_all(&store, report) => verification.map(Some),
                    () = stop.requested() => Ok(None),
                }
            },
            |py, verification| {
                let damages: Vec<_> = verification.damages.into_iter().map(|it| (it.version, it.what)).collect();
                object(py, (verification.verified.objects, verification.verified.bytes, damages))
            },
        )
    }

    /// Builds an index of a property of vertices, and returns the version that has it.
    #[pyo3(signature = (name, memory))]
    fn create_index(&self, name: String, memory: Option<u64>) -> PyResult<Task> {
        let (url, meter) = (self.opened.location().url, self.meter());
        let usual = IndexSettings::default();
        let settings = IndexSettings { memory_bytes: memory.unwrap_or(usual.memory_bytes), ..usual };
        Task::stoppable(
            move |_, stop| async move {
                let store = meter.store(&url)?;
                hoplake::Graph::create_index_until(&store, &name, &settings, stop.requested()).await
            },
            |py, built| object(py, (built.version, built.entries, built.bytes)),
        )
    }

    /// Takes an index out, and returns the version without it.
    fn drop_index(&self, name: String) -> PyResult<Task> {
        let drop = move |store: Store| async move { hoplake::Graph::drop_index(&store, &name).await };
        self.at_store(drop, |py, version| object(py, version))
    }

    /// The indexes: label, property, entries, bytes.
    fn indexes(&self) -> PyResult<Task> {
        let (graph, meter) = (self.opened.graph(), self.meter());
        let call = async move {
            let graph = meter.graph(&graph.await?);
            let label = |id| graph.schema().label(id).map_or_else(String::new, |label| label.name.clone());
            let indexes = graph.indexes().await?;
            Ok(indexes.into_iter().map(|it| (label(it.index.label), it.index.property, it.entries, it.bytes)).collect())
        };
        Task::spawn(call, |py, indexes: Vec<(String, String, u64, u64)>| object(py, indexes))
    }
}
