//! Loading: files, URLs, and tables in memory.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use arrow_array::RecordBatchReader;
use hoplake::{
    BadRowPolicy, Error, LoadOptions, LoadPhase, LoadProgress, StagedEnd, StagedTables, Store, VertexOrder, load_until,
};
use pyo3::{prelude::*, types::PyDict};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{
    arrow, errors, process,
    table::Priced,
    task::{Progress, Stop, Task},
};

/// A table of vertices: label, column of keys, rows.
type VertexRows = (String, String, Box<dyn RecordBatchReader + Send>);

/// The column of keys, unless the user names another.
const KEYS: &[&str] = &["key", "id"];
/// The columns of the ends of edges.
const SOURCES: &[&str] = &["source", "from", "src"];
const TARGETS: &[&str] = &["target", "to", "dst"];

/// The column that a user named, or the first of the usual ones that there is.
fn column(named: Option<String>, usual: &[&str], rows: &dyn RecordBatchReader) -> String {
    let schema = rows.schema();
    let found = || usual.iter().find(|name| schema.column_with_name(name).is_some()).unwrap_or(&usual[0]);
    named.unwrap_or_else(|| (*found()).to_owned())
}

/// A table of edges: label, and label and column of each end, and rows.
type EdgeRows = (String, [(String, String); 2], Box<dyn RecordBatchReader + Send>);

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

/// Writes tables to files that a load reads; `None` if it was stopped meanwhile.
async fn staged(
    temp_dir: Option<PathBuf>,
    vertices: Vec<VertexRows>,
    edges: Vec<EdgeRows>,
    implies_labels: bool,
    stop: Stop,
) -> Result<Option<StagedTables>, Error> {
    let stopped = Arc::new(AtomicBool::new(false));
    let goes_on = stopped.clone();
    let writing = tokio::task::spawn_blocking(move || {
        let goes_on = || !goes_on.load(Ordering::Relaxed);
        let mut tables = StagedTables::new(temp_dir.as_deref())?;
        if implies_labels {
            tables.imply_labels();
        }
        for (label, key, rows) in vertices {
            tables.add_vertices(&label, &key, rows, &goes_on)?;
        }
        for (label, [source, target], rows) in edges {
            let ends = [&source, &target].map(|(label, column)| StagedEnd { label, column });
            tables.add_edges(&label, ends, rows, &goes_on)?;
        }
        Ok::<_, Error>(tables)
    });
    tokio::select! {
        written = writing => match written {
            Ok(tables) => tables.map(Some),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        },
        () = stop.requested() => {
            stopped.store(true, Ordering::Relaxed);
            Ok(None)
        }
    }
}

/// Loads a graph.
#[pyfunction]
#[pyo3(signature = (url, from_paths, mapping, vertices, edges, imply_labels, options))]
pub fn load(
    py: Python<'_>,
    url: String,
    from_paths: Vec<PathBuf>,
    mapping: Option<PathBuf>,
    vertices: Vec<(String, Option<String>, Bound<'_, PyAny>)>,
    edges: Vec<(String, (String, Option<String>), (String, Option<String>), Bound<'_, PyAny>)>,
    imply_labels: bool,
    options: &Bound<'_, PyDict>,
) -> PyResult<Task> {
    let vertices = vertices.into_iter().map(|(label, key, rows)| {
        let rows = arrow::reader(&rows, &format!("the table of vertices {label:?}"))?;
        let key = column(key, KEYS, &*rows);
        Ok((label, key, rows))
    });
    let vertices: Vec<VertexRows> = vertices.collect::<PyResult<_>>()?;
    let edges = edges.into_iter().map(|(label, source, target, rows)| {
        let rows = arrow::reader(&rows, &format!("the table of edges {label:?}"))?;
        let source = (source.0, column(source.1, SOURCES, &*rows));
        let target = (target.0, column(target.1, TARGETS, &*rows));
        Ok((label, [source, target], rows))
    });
    let edges: Vec<EdgeRows> = edges.collect::<PyResult<_>>()?;
    let mut load = LoadOptions { mapping, ..LoadOptions::from_paths(from_paths) };
    set(py, &mut load, options)?;
    Task::stoppable(
        move |progress, stop| async move {
            let store = Store::open(&url)?;
            let mut tables = None;
            if !vertices.is_empty() || !edges.is_empty() {
                progress.report("tables", 0, None);
                let folder = load.temp_dir.clone();
                let Some(staged) = staged(folder, vertices, edges, imply_labels, stop.clone()).await? else {
                    return Ok(None);
                };
                load.mapping = Some(staged.mapping()?);
                // Until the load has ended.
                tables = Some(staged);
            }
            let prices = store.prices().clone();
            let [step, done, total] = [0, 0, 0].map(AtomicU64::new);
            let reported = Arc::new(Reported { progress, step, done, total });
            let report = load_until(store, load, reported, stop.requested()).await?;
            drop(tables);
            Ok(report.map(|report| (report, prices)))
        },
        |py, (report, prices)| {
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
