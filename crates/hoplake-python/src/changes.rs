//! Changes: batches that are applied as a whole.

use std::{
    io::Cursor,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hoplake::{
    Batch, COMMIT_TIMEOUT_MS, ChangeCounts, Columns, Committed, EdgeKey, Error, Name, Operation, Properties, VertexRef,
    changes::{ChangeReader, Changes},
    tables,
};
use pyo3::{
    prelude::*,
    types::{PyDict, PyString, PyTuple},
};

use crate::{
    arrow, errors,
    graph::{self, Graph, object},
    opened::Opened,
    table::Priced,
    task::Task,
    values,
};

/// Why rows are no changes.
enum Unread {
    Arrow(arrow_schema::ArrowError),
    Rows(Error),
}

/// A batch of changes.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Commit {
    opened: Arc<Opened>,
    batch: Mutex<Batch>,
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
    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, operation: Operation) {
        self.batch().operations.push(operation);
    }

    /// Upserts of all rows of a table. Nothing is added if one of its batches is wrong.
    fn push_columns(
        &self,
        rows: &Bound<'_, PyAny>,
        what: &str,
        columns: impl Fn(&arrow_array::RecordBatch) -> Result<Columns, Error> + Send + Sync,
    ) -> PyResult<()> {
        let py = rows.py();
        let reader = arrow::reader(rows, what)?;
        // Without the interpreter lock: the rows may come from threads that need it.
        let operations = py.detach(|| {
            let mut operations = Vec::new();
            for batch in reader {
                let columns = columns(&batch.map_err(Unread::Arrow)?).map_err(Unread::Rows)?;
                operations.push(Operation::UpsertColumns(Arc::new(columns)));
            }
            Ok(operations)
        });
        let operations = operations.map_err(|unread| match unread {
            Unread::Arrow(error) => arrow::failed(py, what, &error),
            Unread::Rows(error) => errors::raised(py, &error),
        })?;
        self.batch().operations.extend(operations);
        Ok(())
    }
}

#[pymethods]
impl Commit {
    fn __len__(&self) -> usize {
        self.batch().operations.iter().map(Operation::changes).sum()
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
    fn upsert_vertices(&self, label: &str, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        self.push_columns(rows, "the table of vertices", |rows| tables::vertex_columns(label, rows))
    }

    /// Upserts of edges, a row each, with the keys of their ends in the columns `source` and `target`.
    fn upsert_edges(&self, label: &str, source: &str, target: &str, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        self.push_columns(rows, "the table of edges", |rows| tables::edge_columns(label, (source, target), rows))
    }

    /// Changes of a file, a text in JSON Lines, or a table with the columns of changes.
    fn add(&self, changes: &Bound<'_, PyAny>, is_path: bool) -> PyResult<()> {
        let py = changes.py();
        let Some(graph) = self.opened.known() else {
            return Err(errors::panicked(py, "the graph was to be opened first"));
        };
        let mut reader = ChangeReader::new(graph.schema());
        let raise = |error: Error| errors::raised(py, &error);
        let operations = if is_path {
            let path: PathBuf = changes.extract()?;
            py.detach(|| collect(reader.read(&path)?)).map_err(raise)?
        } else if let Ok(text) = changes.cast::<PyString>() {
            let text = values::text(text)?;
            py.detach(|| collect(reader.lines("the text", Cursor::new(text.into_bytes())))).map_err(raise)?
        } else {
            let batches = arrow::reader(changes, "the table of changes")?;
            py.detach(|| collect(reader.batches("the table", batches)?)).map_err(raise)?
        };
        self.batch().operations.extend(operations);
        Ok(())
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
        let batch = Batch {
            base,
            message,
            strict,
            create_missing,
            idempotency_key,
            source_positions: positions,
            if_positions,
            ..self.batch().clone()
        };
        let graph = self.opened.graph();
        let call = async move {
            let begun = std::time::Instant::now();
            let graph = graph.await?;
            graph.set_commit_timeout(timeout.unwrap_or(Duration::from_millis(COMMIT_TIMEOUT_MS)));
            let committed = graph.apply(batch).await?;
            // The hint for the next open, for which no commit waits, would end with the process.
            graph.settled().await;
            let priced = Priced::new(committed.cost, graph.prices(), begun.elapsed().as_secs_f64());
            Ok((committed, priced))
        };
        Task::spawn(call, |py, (done, priced)| committed(py, &done, priced))
    }

    /// What the changes would do on the newest version. Writes nothing.
    #[pyo3(signature = (base, strict, create_missing))]
    fn check(&self, base: Option<u64>, strict: bool, create_missing: bool) -> PyResult<Task> {
        let batch = Batch { base, strict, create_missing, ..self.batch().clone() };
        let graph = self.opened.graph();
        let call = async move { graph.await?.check(&batch).await };
        Task::spawn(call, |py, changes| Ok(counts(py, &changes)?.into_any()))
    }
}

fn collect(changes: Changes<'_>) -> Result<Vec<Operation>, Error> {
    changes.map(|change| Ok(change?.operation)).collect()
}

#[pymethods]
impl Graph {
    /// A batch of changes to this graph.
    fn begin(&self) -> Commit {
        Commit { opened: self.opened.clone(), batch: Mutex::new(Batch::default()) }
    }

    /// Whether changes to the graph are all of the newest version.
    fn newest(&self) -> PyResult<Task> {
        let url = self.opened.location().url;
        let call = async move { Ok(hoplake::Graph::newest(&hoplake::Store::open(&url)?).await?.version) };
        Task::spawn(call, |py, version| object(py, version))
    }
}
