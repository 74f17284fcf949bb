//! Parts of a program over columns, and the objects of a run on many machines, for `hoplake.ray`.
//!
//! Signals come in through Arrow's interface, without a copy: they are in memory that processes of a machine share. What goes out is copied once, into bytes
//! that NumPy may write to (see [`crate::columns`]).

use std::{collections::HashMap, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch};
use hoplake::{
    Error, Graph as Opening, Hop, Store,
    compute::{Algorithm, Along, Combination, PartRun, PartSignals, usual_hop},
    tables,
};
use pyo3::{
    prelude::*,
    pybacked::PyBackedBytes,
    types::{PyByteArray, PyBytes, PyDict},
};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::{
    arrow,
    columns::{along_of, buffer, combination, combinator},
    compute::{algorithm, computing},
    errors,
    graph::{Graph, metered, object, parsed},
    process::OfProcess,
    table::{Meter, Table},
    task::Task,
};

/// A part of a program under way. Its calls are made one after the other.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Part {
    running: OfProcess<Arc<Mutex<Running>>>,
    rows: usize,
    count: usize,
    edges: u64,
    bytes: u64,
    along: Option<Along>,
    algorithm: Option<Algorithm>,
}

/// What the calls of a part share.
struct Running {
    graph: Opening,
    run: PartRun,
    meter: Meter,
}

type Turn = OwnedMutexGuard<Running>;

/// Signals, as a record batch of Arrow.
fn signals(batch: &Bound<'_, PyAny>) -> PyResult<PartSignals> {
    let py = batch.py();
    PartSignals::new(&batch_of(batch)?).map_err(|error| errors::raised(py, &error))
}

fn batch_of(batch: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    arrow::record_batch(batch, "a column of a part")
}

#[pymethods]
impl Graph {
    /// Cuts the vertices of a program, or of an algorithm, into parts.
    #[pyo3(signature = (count, edges, labels, weight, name, options))]
    fn plan_parts(
        &self,
        py: Python<'_>,
        count: usize,
        edges: Option<&str>,
        labels: Vec<String>,
        weight: Option<String>,
        name: Option<&str>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Task> {
        let algorithm = name.map(|name| algorithm(py, name, options)).transpose()?;
        let hop = hop_of(py, edges, algorithm.as_ref())?;
        let mut computing = computing(py, hop, labels, "streamed", None)?;
        computing.selection.weight = weight;
        self.ask(
            move |_, mut query| async move {
                let bounds = query.plan_parts(algorithm.as_ref(), &computing, count).await?;
                Ok((bounds, query))
            },
            |py, bounds: Vec<u32>, _| object(py, bounds),
        )
    }

    /// Begins a part of a program, or of an algorithm: reads its lists.
    #[pyo3(signature = (bounds, number, edges, labels, threads, weight, along, name, options))]
    fn part(
        &self,
        py: Python<'_>,
        bounds: Vec<u32>,
        number: usize,
        edges: Option<&str>,
        labels: Vec<String>,
        threads: Option<usize>,
        weight: Option<String>,
        along: &str,
        name: Option<&str>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Task> {
        let algorithm = name.map(|name| algorithm(py, name, options)).transpose()?;
        let hop = hop_of(py, edges, algorithm.as_ref())?;
        let mut computing = computing(py, hop, labels, "streamed", threads)?;
        let along = along_of(py, along, weight.is_some())?;
        computing.selection.weight = weight;
        let graph = self.opened.graph();
        let (limits, meter) = (self.limits, self.meter());
        let own = algorithm.clone();
        let call = async move {
            let graph = graph.await?;
            let query = metered(&graph, &limits, &meter);
            let run = query.part_run(algorithm.as_ref(), &computing, &bounds, number).await?;
            Ok(Running { graph, run, meter })
        };
        Task::spawn(call, move |py, running| {
            let (rows, count) = (running.run.len(), running.run.count());
            let (edges, bytes) = (running.run.part().edges(), running.run.part().bytes());
            let running = OfProcess::new(Arc::new(Mutex::new(running)));
            let part = Part { running, rows, count, edges, bytes, along, algorithm: own };
            Ok(Bound::new(py, part)?.into_any())
        })
    }
}

fn hop_of(py: Python<'_>, edges: Option<&str>, algorithm: Option<&Algorithm>) -> PyResult<Hop> {
    let hop: Option<Hop> = edges.map(|hop| parsed(py, hop)).transpose()?;
    Ok(hop.unwrap_or_else(|| algorithm.map_or_else(Hop::default, |algorithm| usual_hop(algorithm.spec()))))
}

impl Part {
    /// Runs a call of it, and makes a result of its answer.
    fn ask<T, A>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(Turn) -> A + Send + 'static,
        finish: impl for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    ) -> PyResult<Task>
    where
        T: Send + 'static,
        A: Future<Output = Result<T, Error>> + Send,
    {
        let Some(running) = self.running.get().cloned() else {
            return Err(errors::invalid(py, "a part goes on only in the process that began it"));
        };
        Task::spawn(async move { ask(running.lock_owned().await).await }, finish)
    }
}

#[pymethods]
impl Part {
    fn __len__(&self) -> usize {
        self.rows
    }

    /// How many vertices all parts have.
    #[getter]
    fn count(&self) -> usize {
        self.count
    }

    /// How many edges lead to its vertices.
    #[getter]
    fn edges(&self) -> u64 {
        self.edges
    }

    /// What its tiles take, in bytes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts columns that Python keeps from now on.
    fn keep(&self, py: Python<'_>, columns: usize) -> PyResult<Task> {
        let keep = move |mut running: Turn| async move { running.run.keep(columns) };
        self.ask(py, keep, |py, ()| Ok(py.None().into_bound(py)))
    }

    /// Numbers of the vertices: `degree`, `weight` or `order`.
    fn column(&self, py: Python<'_>, name: &str) -> PyResult<Task> {
        let name = name.to_owned();
        let read = move |mut running: Turn| async move {
            match name.as_str() {
                "degree" => running.run.edge_counts().await,
                "weight" => running.run.weight_sums().await,
                _ => running.run.places().await,
            }
        };
        self.ask(py, read, |py, column| buffer(py, &column))
    }

    /// A property of the vertices.
    fn property(&self, py: Python<'_>, name: String) -> PyResult<Task> {
        let read = move |mut running: Turn| async move { running.run.property(&name).await };
        self.ask(py, read, |py, column| buffer(py, &column))
    }

    /// The rows at which the algorithm begins, and how many it begins at in all parts.
    fn starts(&self, py: Python<'_>) -> PyResult<Task> {
        let Some(algorithm) = self.algorithm.clone() else {
            return Err(errors::invalid(py, "a program has no vertices that it begins at"));
        };
        let find = move |mut running: Turn| async move { running.run.starts(&algorithm).await };
        self.ask(py, find, |py, starts: (Vec<u32>, usize)| object(py, starts))
    }

    /// The rows of another part whose signals this one needs, as bytes of uint32.
    fn needed(&self, py: Python<'_>, part: usize) -> PyResult<Task> {
        let copy = move |running: Turn| async move {
            let rows = running.run.part().needed(part);
            Ok(rows.iter().flat_map(|row| row.to_ne_bytes()).collect::<Vec<u8>>())
        };
        self.ask(py, copy, |py, bytes: Vec<u8>| Ok(PyByteArray::new(py, &bytes).into_any()))
    }

    /// Rejects a combinator that there is not, or that does not suit weights.
    fn check(&self, py: Python<'_>, combine: &str) -> PyResult<()> {
        combinator(py, combine, self.along).map(drop)
    }

    /// The signals of some rows: bytes, whether they are floats, and which are sent unless all are. Rows are bytes of uint32.
    fn gather(&self, py: Python<'_>, values: &Bound<'_, PyAny>, rows: PyBackedBytes) -> PyResult<Task> {
        let values = signals(values)?;
        let work = move |running: Turn| async move {
            let rows = rows.as_chunks().0.iter().map(|row| u32::from_ne_bytes(*row)).collect();
            running.run.gather(values, rows).await
        };
        self.ask(py, work, |py, (column, is_sent)| {
            let sent = is_sent.map(|sent| PyByteArray::new(py, &sent));
            object(py, (buffer(py, &column)?, sent))
        })
    }

    /// Begins to fold signals.
    #[pyo3(signature = (is_float, combine, default))]
    fn begin_fold(
        &self,
        py: Python<'_>,
        is_float: bool,
        combine: &str,
        default: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Task> {
        let how: Combination = combination(py, combine, self.along, is_float, default)?;
        let begin = move |mut running: Turn| async move { running.run.begin_fold(&how) };
        self.ask(py, begin, |py, ()| Ok(py.None().into_bound(py)))
    }

    /// Folds the signals of the next part.
    fn fold(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<Task> {
        let values = signals(values)?;
        let fold = move |mut running: Turn| async move { running.run.fold(values).await };
        self.ask(py, fold, |py, ()| Ok(py.None().into_bound(py)))
    }

    /// What the vertices have received. `own` are their own signals.
    fn finish_fold(&self, py: Python<'_>, own: &Bound<'_, PyAny>) -> PyResult<Task> {
        let own = signals(own)?;
        let finish = move |mut running: Turn| async move { running.run.finish_fold(own).await };
        self.ask(py, finish, |py, column| buffer(py, &column))
    }

    /// Labels and keys of the vertices, with the columns of a record batch.
    fn table(&self, py: Python<'_>, columns: &Bound<'_, PyAny>) -> PyResult<Task> {
        let batch = batch_of(columns)?;
        let schema = batch.schema();
        let columns: Vec<(String, ArrayRef)> =
            schema.fields().iter().map(|field| field.name().clone()).zip(batch.columns().iter().cloned()).collect();
        let call = move |mut running: Turn| async move {
            let batches = running.run.tables(&columns).await?;
            Ok((batches, tables::empty(running.graph.schema(), &[]), running.meter.priced()))
        };
        self.ask(py, call, |py, (batches, empty, priced)| {
            let table = Table::new(&batches, &empty, priced).map_err(|error| errors::raised(py, &error))?;
            Ok(Bound::new(py, table)?.into_any())
        })
    }
}

/// Objects below a location, which a run on many machines keeps what it has done in.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Objects {
    url: String,
}

impl Objects {
    fn store(&self) -> Result<Store, Error> {
        Ok(Store::open(&self.url)?)
    }
}

#[pymethods]
impl Objects {
    #[new]
    fn new(url: String) -> Self {
        Self { url }
    }

    /// Creates an object unless there is one of that name; returns whether it did.
    fn create(&self, name: String, bytes: PyBackedBytes) -> PyResult<Task> {
        let url = self.url.clone();
        let create = async move {
            let store = Store::open(&url)?;
            Ok(store.create(&name, bytes.to_vec().into()).await?)
        };
        Task::spawn(create, |py, created: bool| object(py, created))
    }

    /// An object; `None` if it is not there.
    fn get(&self, name: String) -> PyResult<Task> {
        let store = self.store();
        let get = async move { Ok(store?.get(&name).await?) };
        Task::spawn(get, |py, bytes| object(py, bytes.map(|bytes| PyBytes::new(py, &bytes))))
    }

    /// The names of objects that begin with `folder/`, with their bytes.
    fn list(&self, folder: String) -> PyResult<Task> {
        let store = self.store();
        let list = async move {
            let listed = store?.list(&folder).await?;
            Ok(listed.into_iter().map(|found| (found.name, found.bytes)).collect::<HashMap<_, _>>())
        };
        Task::spawn(list, |py, listed: HashMap<String, u64>| object(py, listed))
    }

    /// Deletes objects, if they are there.
    fn delete(&self, names: Vec<String>) -> PyResult<Task> {
        let store = self.store();
        let delete = async move { Ok(store?.delete(&names).await?) };
        Task::spawn(delete, |py, ()| Ok(py.None().into_bound(py)))
    }
}
