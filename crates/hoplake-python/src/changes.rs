//! Changes: batches that are applied as a whole.

use std::{
    io::Cursor,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use hoplake::{
    Batch, COMMIT_TIMEOUT_MS, ChangeCounts, Columns, Committed, EdgeKey, Error, Name, Operation, Properties,
    QueryContext, VertexRef,
    changes::{ChangeReader, ReadChange},
    tables,
};
use pyo3::{
    prelude::*,
    types::{PyDict, PyString, PyTuple},
};

use crate::{
    arrow::{self, Raised},
    errors,
    graph::{self, Graph},
    opened::Opened,
    process::lock,
    table::{Priced, Spent},
    task::{Stop, Task},
    values,
};

/// A batch of changes.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Commit {
    opened: Arc<Opened>,
    spent: Spent,
    changes: Arc<Changes>,
}

/// The batch, which is shared with a call that commits or checks it, and not copied unless it is changed meanwhile.
#[derive(Default)]
struct Changes(Mutex<Arc<Batch>>);

impl Changes {
    fn extend(&self, operations: impl IntoIterator<Item = Operation>) {
        Arc::make_mut(&mut *lock(&self.0)).operations.extend(operations);
    }

    /// The batch with other settings.
    fn with(&self, set: impl FnOnce(&mut Batch)) -> Arc<Batch> {
        let mut batch = lock(&self.0);
        set(Arc::make_mut(&mut batch));
        batch.clone()
    }
}

fn name_of(text: &str) -> Name {
    text.into()
}

fn vertex(label: &str, key: &Bound<'_, PyAny>) -> PyResult<VertexRef> {
    Ok(VertexRef::new(label, values::key(key)?))
}

/// An end of an edge: `("Person", 933)`.
fn end(value: &Bound<'_, PyAny>) -> PyResult<VertexRef> {
    if let Ok(pair) = value.cast::<PyTuple>()
        && pair.len() == 2
        && let Ok(label) = pair.get_item(0)?.cast::<PyString>()
    {
        return vertex(&values::text(label)?, &pair.get_item(1)?);
    }
    Err(errors::invalid(value.py(), "an end of an edge is a pair of label and key, as in (\"Person\", 933)"))
}

fn properties(given: &Bound<'_, PyDict>) -> PyResult<Properties> {
    let one = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let Ok(name) = name.cast::<PyString>() else {
            return Err(errors::invalid(name.py(), "the name of a property has to be a str"));
        };
        Ok((name_of(&values::text(name)?), values::property_value(&value)?))
    };
    // A copy: reading a value may run code that changes it.
    given.copy()?.iter().map(one).collect()
}

fn edge_key(key: Option<(String, Bound<'_, PyAny>)>) -> PyResult<Option<EdgeKey>> {
    let one = |(property, value): (String, Bound<'_, PyAny>)| {
        Ok(EdgeKey { property: name_of(&property), value: values::property_value(&value)? })
    };
    key.map(one).transpose()
}

/// What a commit did, as `hoplake.Committed` has it.
fn committed<'py>(py: Python<'py>, committed: &Committed, priced: Priced) -> PyResult<Bound<'py, PyAny>> {
    let fields = counts(py, &committed.counts)?;
    fields.set_item("version", committed.version)?;
    fields.set_item("repeated", committed.repeated)?;
    fields.set_item("cost", priced.object(py)?)?;
    py.import("hoplake._changes")?.getattr("Committed")?.call((), Some(&fields))
}

fn counts<'py>(py: Python<'py>, counts: &ChangeCounts) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("vertices_added", counts.vertices_added)?;
    fields.set_item("vertices_changed", counts.vertices_changed)?;
    fields.set_item("vertices_removed", counts.vertices_removed)?;
    fields.set_item("edges_written", counts.edges_written)?;
    fields.set_item("pairs_removed", counts.pairs_removed)?;
    Ok(fields)
}

impl Commit {
    fn push(&self, operation: Operation) {
        self.changes.extend([operation]);
    }

    /// Reads changes on another thread, and adds them once all are read: none if one is wrong, or if the call is cancelled.
    fn read(&self, read: impl FnOnce(&Stop) -> PyResult<Vec<Operation>> + Send + 'static) -> PyResult<Task> {
        let changes = self.changes.clone();
        Task::blocking(read, move |py, operations| {
            changes.extend(operations);
            Ok(py.None().into_bound(py))
        })
    }

    /// Upserts of all rows of a table.
    fn push_columns(
        &self,
        rows: Py<PyAny>,
        what: &'static str,
        columns: impl Fn(&arrow_array::RecordBatch) -> Result<Columns, Error> + Send + 'static,
    ) -> PyResult<Task> {
        self.read(move |stop| {
            let raised = Raised::default();
            let mut operations = Vec::new();
            for batch in Python::attach(|py| arrow::reader(rows.bind(py), what, &raised, stop))? {
                stop.check()?;
                let batch = batch.map_err(|error| raised.or_else(|py| arrow::failed(py, what, &error)))?;
                let columns = columns(&batch).map_err(|error| Python::attach(|py| errors::raised(py, &error)))?;
                operations.push(Operation::UpsertColumns(Arc::new(columns)));
            }
            Ok(operations)
        })
    }
}

#[pymethods]
impl Commit {
    fn __len__(&self) -> usize {
        lock(&self.changes.0).operations.iter().map(Operation::changes).sum()
    }

    fn upsert_vertex(
        &self,
        label: &str,
        key: &Bound<'_, PyAny>,
        properties: &Bound<'_, PyDict>,
        replace: bool,
    ) -> PyResult<()> {
        let (vertex, properties) = (vertex(label, key)?, self::properties(properties)?);
        self.push(Operation::UpsertVertex { vertex, properties, replace });
        Ok(())
    }

    fn delete_vertex(&self, label: &str, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.push(Operation::DeleteVertex { vertex: vertex(label, key)? });
        Ok(())
    }

    #[pyo3(signature = (label, source, target, properties, key, replace))]
    fn upsert_edge(
        &self,
        label: &str,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        properties: &Bound<'_, PyDict>,
        key: Option<(String, Bound<'_, PyAny>)>,
        replace: bool,
    ) -> PyResult<()> {
        let (source, target) = (end(source)?, end(target)?);
        let (key, properties) = (edge_key(key)?, self::properties(properties)?);
        self.push(Operation::UpsertEdge { label: name_of(label), source, target, key, properties, replace });
        Ok(())
    }

    #[pyo3(signature = (label, source, target, key))]
    fn delete_edge(
        &self,
        label: &str,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        key: Option<(String, Bound<'_, PyAny>)>,
    ) -> PyResult<()> {
        let (source, target) = (end(source)?, end(target)?);
        self.push(Operation::DeleteEdge { label: name_of(label), source, target, key: edge_key(key)? });
        Ok(())
    }

    /// Upserts of vertices, a row each, with their keys in the column `key`.
    fn upsert_vertices(&self, label: String, rows: Py<PyAny>) -> PyResult<Task> {
        self.push_columns(rows, "the table of vertices", move |rows| tables::vertex_columns(&label, rows))
    }

    /// Upserts of edges, a row each, with the keys of their ends in the columns `source` and `target`.
    fn upsert_edges(&self, label: String, source: String, target: String, rows: Py<PyAny>) -> PyResult<Task> {
        self.push_columns(rows, "the table of edges", move |rows| {
            tables::edge_columns(&label, (&source, &target), rows)
        })
    }

    /// Changes of a file, a text in JSON Lines, or a table with the columns of changes.
    fn add(&self, changes: &Bound<'_, PyAny>, is_path: bool) -> PyResult<Task> {
        let py = changes.py();
        let Some(graph) = self.opened.known() else {
            return Err(errors::panicked(py, "the graph was to be opened first"));
        };
        let source = if is_path {
            Source::Path(changes.extract()?)
        } else if let Ok(text) = changes.cast::<PyString>() {
            Source::Text(values::text(text)?)
        } else {
            Source::Table(changes.clone().unbind())
        };
        self.read(move |stop| {
            let raised = Raised::default();
            let mut reader = ChangeReader::new(graph.schema());
            let changes = match source {
                Source::Path(path) => reader.read(&path),
                Source::Text(text) => Ok(reader.lines("the text", Cursor::new(text.into_bytes()))),
                Source::Table(table) => {
                    let batches =
                        Python::attach(|py| arrow::reader(table.bind(py), "the table of changes", &raised, stop))?;
                    reader.batches("the table", batches)
                }
            };
            let failed = |error: Error| raised.or_else(|py| errors::raised(py, &error));
            let operation = |change: Result<ReadChange, Error>| {
                stop.check()?;
                Ok(change.map_err(failed)?.operation)
            };
            changes.map_err(failed)?.map(operation).collect()
        })
    }

    /// Applies the changes, all or none. The batch stays as it is: an idempotency key lets it be sent again.
    #[pyo3(signature = (message, base, strict, create_missing, idempotency_key, positions, if_positions, seconds))]
    fn commit(
        &self,
        py: Python<'_>,
        message: String,
        base: Option<u64>,
        strict: bool,
        create_missing: bool,
        idempotency_key: Option<String>,
        positions: std::collections::BTreeMap<String, String>,
        if_positions: std::collections::BTreeMap<String, Option<String>>,
        seconds: Option<f64>,
    ) -> PyResult<Task> {
        let timeout = seconds.map(|seconds| graph::seconds(py, seconds)).transpose()?;
        let batch = self.changes.with(|batch| {
            let settings = Batch {
                base,
                message,
                strict,
                create_missing,
                idempotency_key,
                source_positions: positions,
                if_positions,
                ..std::mem::take(batch)
            };
            *batch = settings;
        });
        let graph = self.opened.graph();
        let meter = self.spent.meter(py);
        let call = async move {
            let graph = graph.await?;
            meter.measure(&QueryContext::new(), graph.prices());
            graph.set_commit_timeout(timeout.unwrap_or(Duration::from_millis(COMMIT_TIMEOUT_MS)));
            let committed = graph.apply(batch).await?;
            // The hint for the next open, for which no commit waits, would end with the process.
            graph.settled().await;
            meter.set_other(committed.cost);
            Ok((committed, meter.priced()))
        };
        Task::spawn(call, |py, (done, priced)| committed(py, &done, priced))
    }

    /// What the changes would do on the newest version. Writes nothing.
    #[pyo3(signature = (base, strict, create_missing))]
    fn check(&self, py: Python<'_>, base: Option<u64>, strict: bool, create_missing: bool) -> PyResult<Task> {
        let batch = self.changes.with(|batch| {
            batch.base = base;
            batch.strict = strict;
            batch.create_missing = create_missing;
        });
        let graph = self.opened.graph();
        let meter = self.spent.meter(py);
        let call = async move { meter.graph(&graph.await?).check(batch).await };
        Task::spawn(call, |py, changes| Ok(counts(py, &changes)?.into_any()))
    }
}

/// Where changes are read from.
enum Source {
    Path(PathBuf),
    Text(String),
    Table(Py<PyAny>),
}

#[pymethods]
impl Graph {
    /// A batch of changes to this graph.
    fn begin(&self) -> Commit {
        Commit { opened: self.opened.clone(), spent: self.spent.clone(), changes: Arc::default() }
    }
}
