//! Loading: files, URLs, and tables in memory.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow_array::RecordBatchReader;
use hoplake::{
    BadRowPolicy, Error, LoadOptions, LoadPhase, LoadProgress, StagedEnd, StagedTables, Store, VertexOrder, load_until,
};
use pyo3::{prelude::*, types::PyDict};

use crate::{
    arrow::{self, Raised},
    errors, process,
    table::Priced,
    task::{Progress, Stop, Task},
};

/// A table of vertices: label, column of keys, rows.
type VertexRows = (String, Option<String>, Py<PyAny>);

/// The column of keys, unless the user names another.
pub const KEYS: &[&str] = &["key", "id"];
/// The columns of the ends of edges.
pub const SOURCES: &[&str] = &["source", "from", "src"];
pub const TARGETS: &[&str] = &["target", "to", "dst"];

/// The column that a user named, or the first of the usual ones that there is.
pub fn column(named: Option<String>, usual: &[&str], rows: &dyn RecordBatchReader) -> String {
    let schema = rows.schema();
    let found = || usual.iter().find(|name| schema.column_with_name(name).is_some()).unwrap_or(&usual[0]);
    named.unwrap_or_else(|| (*found()).to_owned())
}

/// A table of edges: label, and label and column of each end, and rows.
type EdgeRows = (String, (String, Option<String>), (String, Option<String>), Py<PyAny>);

/// Reports the steps of a load.
struct Reported {
    progress: Progress,
    step: AtomicU64,
    done: AtomicU64,
    total: AtomicU64,
}

impl Reported {
    fn name(&self) -> &'static str {
        ["vertices", "order", "edges"][self.step.load(Ordering::Relaxed) as usize]
    }
}

impl LoadProgress for Reported {
    fn begin(&self, step: LoadPhase, total: u64) {
        let number = match step {
            LoadPhase::Vertices => 0,
            LoadPhase::Order => 1,
            LoadPhase::Edges => 2,
        };
        self.step.store(number, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.progress.report(self.name(), 0, Some(total));
    }

    fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.progress.report(self.name(), done, Some(self.total.load(Ordering::Relaxed)));
    }
}

/// Writes tables to files that a load reads.
fn staged(
    temp_dir: Option<&Path>,
    vertices: Vec<VertexRows>,
    edges: Vec<EdgeRows>,
    implies_labels: bool,
    stop: &Stop,
) -> PyResult<StagedTables> {
    let raised = Raised::default();
    let failed = |error: Error| raised.or_else(|py| errors::raised(py, &error));
    let reader = |rows: &Py<PyAny>, what: &str| Python::attach(|py| arrow::reader(rows.bind(py), what, &raised, stop));
    let goes_on = || !stop.is_requested();
    let mut tables = StagedTables::new(temp_dir).map_err(|error| failed(error.into()))?;
    if implies_labels {
        tables.imply_labels();
    }
    for (label, key, rows) in vertices {
        let rows = reader(&rows, &format!("the table of vertices {label:?}"))?;
        let key = column(key, KEYS, &*rows);
        tables.add_vertices(&label, &key, rows, &goes_on).map_err(|error| failed(error.into()))?;
    }
    for (label, source, target, rows) in edges {
        let rows = reader(&rows, &format!("the table of edges {label:?}"))?;
        let [source, target] =
            [(source, SOURCES), (target, TARGETS)].map(|((label, named), usual)| (label, column(named, usual, &*rows)));
        let ends = [&source, &target].map(|(label, column)| StagedEnd { label, column });
        tables.add_edges(&label, ends, rows, &goes_on).map_err(|error| failed(error.into()))?;
    }
    Ok(tables)
}

/// Loads a graph.
#[pyfunction]
#[pyo3(signature = (url, from_paths, mapping, vertices, edges, imply_labels, options))]
pub fn load(
    py: Python<'_>,
    url: String,
    from_paths: Vec<PathBuf>,
    mapping: Option<PathBuf>,
    vertices: Vec<VertexRows>,
    edges: Vec<EdgeRows>,
    imply_labels: bool,
    options: &Bound<'_, PyDict>,
) -> PyResult<Task> {
    let mut load = LoadOptions { mapping, ..LoadOptions::from_paths(from_paths) };
    set(py, &mut load, options)?;
    Task::stoppable(
        move |progress, stop| async move {
            let store = Store::open(&url)?;
            let mut tables = None;
            if !vertices.is_empty() || !edges.is_empty() {
                progress.report("tables", 0, None);
                let folder = load.temp_dir.clone();
                let for_tables = stop.clone();
                let stage = move || staged(folder.as_deref(), vertices, edges, imply_labels, &for_tables);
                let staged = tokio::select! {
                    staged = tokio::task::spawn_blocking(stage) => staged,
                    () = stop.clone().requested() => return Ok(None),
                };
                match staged {
                    Ok(Ok(staged)) => {
                        load.mapping = Some(staged.mapping()?);
                        // Until the load has ended.
                        tables = Some(staged);
                    }
                    Ok(Err(exception)) => return Ok(Some(Err(exception))),
                    Err(panic) => std::panic::resume_unwind(panic.into_panic()),
                }
            }
            let prices = store.prices().clone();
            let [step, done, total] = [0, 0, 0].map(AtomicU64::new);
            let reported = Arc::new(Reported { progress, step, done, total });
            let report = load_until(store, load, reported, stop.requested()).await?;
            drop(tables);
            Ok(report.map(|report| Ok((report, prices))))
        },
        |py, loaded: PyResult<_>| {
            let (report, prices) = loaded?;
            let fields = PyDict::new(py);
            fields.set_item("version", report.version)?;
            fields.set_item("vertices", report.vertices)?;
            fields.set_item("edges", report.edges)?;
            fields.set_item("bad_rows", report.bad_rows)?;
            fields.set_item("bytes", report.bytes)?;
            fields.set_item("cost", Priced::new(report.cost, &prices, report.time.as_secs_f64()).object(py)?)?;
            py.import("hoplake._changes")?.getattr("Loaded")?.call((), Some(&fields))
        },
    )
}

/// Options by their names in [`LoadOptions`].
fn set(py: Python<'_>, load: &mut LoadOptions, options: &Bound<'_, PyDict>) -> PyResult<()> {
    for (name, value) in options {
        let name: String = name.extract()?;
        match &*name {
            "memory" => load.memory_bytes = value.extract()?,
            "threads" => {
                load.threads =
                    process::checked_threads(value.extract()?).map_err(|error| errors::invalid(py, error))?;
            }
            "temp_dir" => load.temp_dir = Some(value.extract()?),
            "indexes" => load.indexes = value.extract()?,
            "replace" => load.replace = value.extract()?,
            "message" => load.message = value.extract()?,
            "rejects" => load.bad_rows = BadRowPolicy::Skip(value.extract()?),
            "source_positions" => load.source_positions = value.extract::<BTreeMap<_, _>>()?,
            "order" => {
                load.order = match &*value.extract::<String>()? {
                    "keys" => VertexOrder::Keys,
                    "locality" => VertexOrder::Locality,
                    other => return Err(errors::invalid(py, format!("order is {other:?}; write keys or locality"))),
                }
            }
            _ => return Err(errors::invalid(py, format!("load has no option {name}"))),
        }
    }
    Ok(())
}
