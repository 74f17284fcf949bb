//! Programs over whole columns, for `Graph.pregel`.
//!
//! Python drives the supersteps: it computes signals with NumPy, has them combined here, and computes new states. So the callbacks of a user run on
//! the thread of the caller, whose signals and exceptions end the run, and no thread of Rust ever calls them. Columns are bytes in both
//! directions: Python's buffer protocol is not part of the stable interface of CPython 3.10, and a copy is short next to a walk over edges.

use std::sync::Arc;

use hoplake::{
    Error, Graph as Opening, Hop,
    compute::{Along, Column, ColumnRun, Combination, Combine, Figure, Number, SignalColumn},
};
use pyo3::{prelude::*, pybacked::PyBackedBytes, types::PyByteArray};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::{
    compute::{Computation, computing},
    errors,
    graph::{Graph, metered, object, parsed},
    opened::{Location, Opened},
    process::OfProcess,
    table::{Meter, Spent},
    task::Task,
};

/// A program under way. Its calls are made one after the other.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Program {
    running: OfProcess<Arc<Mutex<Running>>>,
    /// How many vertices there are.
    vertices: usize,
    along: Option<Along>,
    location: Location,
    limits: hoplake::Limits,
    spent: Spent,
}

/// What the calls of a program share.
struct Running {
    graph: Opening,
    run: ColumnRun,
    meter: Meter,
}

/// A call's turn among those of a program.
type Turn = OwnedMutexGuard<Running>;

/// Numbers of a column as bytes of native order, as NumPy has them.
fn numbers<T, const WIDTH: usize>(bytes: &[u8], number: fn([u8; WIDTH]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|bytes| number(*bytes)).collect()
}

fn column(bytes: &[u8], is_float: bool) -> Column {
    match is_float {
        true => Column::Floats(numbers(bytes, f64::from_ne_bytes)),
        false => Column::Integers(numbers(bytes, i64::from_ne_bytes)),
    }
}

/// A column as bytes that NumPy may write to, and whether it is of floats.
pub fn buffer<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyAny>> {
    let fill = |bytes: &mut [u8]| {
        let places = bytes.as_chunks_mut::<8>().0.iter_mut();
        match column {
            Column::Integers(values) => places.zip(values).for_each(|(place, value)| *place = value.to_ne_bytes()),
            Column::Floats(values) => places.zip(values).for_each(|(place, value)| *place = value.to_ne_bytes()),
        }
        Ok(())
    };
    let bytes = PyByteArray::new_with(py, column.len() * 8, fill)?;
    object(py, (bytes, matches!(column, Column::Floats(_))))
}

#[pymethods]
impl Graph {
    /// Begins a program over columns, whose signals travel along these edges.
    #[pyo3(signature = (edges, labels, lists, threads, weight, along))]
    fn program(
        &self,
        py: Python<'_>,
        edges: Option<&str>,
        labels: Vec<String>,
        lists: &str,
        threads: Option<usize>,
        weight: Option<String>,
        along: &str,
    ) -> PyResult<Task> {
        let hop: Option<Hop> = edges.map(|hop| parsed(py, hop)).transpose()?;
        let mut options = computing(py, hop.unwrap_or_default(), labels, lists, threads)?;
        let along = along_of(py, along, weight.is_some())?;
        options.selection.weight = weight;
        let graph = self.opened.graph();
        let location = self.opened.location();
        let (limits, spent) = (self.limits, self.spent.clone());
        let meter = self.meter();
        let call = async move {
            let graph = graph.await?;
            let run = metered(&graph, &limits, &meter).column_run(&options).await?;
            Ok(Running { graph, run, meter })
        };
        Task::spawn(call, move |py, running| {
            let vertices = running.run.len();
            let running = OfProcess::new(Arc::new(Mutex::new(running)));
            let program = Program { running, vertices, along, location, limits, spent };
            Ok(Bound::new(py, program)?.into_any())
        })
    }
}

impl Program {
    /// Runs a call of it, and makes a result of its answer.
    fn step<T, A>(
        &self,
        py: Python<'_>,
        step: impl FnOnce(Turn) -> A + Send + 'static,
        finish: impl for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    ) -> PyResult<Task>
    where
        T: Send + 'static,
        A: Future<Output = Result<T, Error>> + Send,
    {
        let Some(running) = self.running.get().cloned() else {
            return Err(errors::invalid(py, "a program goes on only in the process that began it"));
        };
        Task::spawn(async move { step(running.lock_owned().await).await }, finish)
    }
}

#[pymethods]
impl Program {
    fn __len__(&self) -> usize {
        self.vertices
    }

    #[getter]
    fn count(&self) -> usize {
        self.vertices
    }

    /// Counts columns that Python keeps from now on.
    fn keep(&self, py: Python<'_>, columns: usize) -> PyResult<Task> {
        let keep = move |mut running: Turn| async move { running.run.keep(columns) };
        self.step(py, keep, |py, ()| Ok(py.None().into_bound(py)))
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
        self.step(py, read, |py, column| buffer(py, &column))
    }

    /// A property of the vertices.
    fn property(&self, py: Python<'_>, name: String) -> PyResult<Task> {
        let read = move |mut running: Turn| async move { running.run.property(&name).await };
        self.step(py, read, |py, column| buffer(py, &column))
    }

    /// Rejects a combinator that there is not, or that does not suit weights.
    fn check(&self, py: Python<'_>, combine: &str) -> PyResult<()> {
        combinator(py, combine, self.along).map(drop)
    }

    /// Combines the signals of all vertices along their edges.
    #[pyo3(signature = (signals, is_float, is_sent, combine, default))]
    fn combine(
        &self,
        py: Python<'_>,
        signals: PyBackedBytes,
        is_float: bool,
        is_sent: Option<PyBackedBytes>,
        combine: &str,
        default: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Task> {
        let how = combination(py, combine, self.along, is_float, default)?;
        let work = move |mut running: Turn| async move {
            let values = column(&signals, is_float);
            let is_sent = is_sent.map(|sent| sent.iter().map(|sent| *sent != 0).collect());
            drop(signals);
            running.run.combine(SignalColumn { values, is_sent }, &how).await
        };
        self.step(py, work, |py, column| buffer(py, &column))
    }

    /// Ends the program with columns, each with its name, its bytes and whether it is of floats.
    fn finish(
        &self,
        py: Python<'_>,
        columns: Vec<(String, PyBackedBytes, bool)>,
        supersteps: usize,
        converged: bool,
        residual: Option<f64>,
    ) -> PyResult<Task> {
        let (location, limits, spent) = (self.location.clone(), self.limits, self.spent.clone());
        let finish = move |running: Turn| async move {
            let columns = columns.into_iter().map(|(name, bytes, is_float)| (name, column(&bytes, is_float))).collect();
            let mut figures = vec![("converged", Figure::Count(converged.into()))];
            figures.extend(residual.map(|residual| ("residual", Figure::Number(residual))));
            let computed = running.run.finish(columns, supersteps, figures)?;
            Ok((computed, running.graph.clone(), running.meter.priced()))
        };
        self.step(py, finish, move |py, (computed, graph, priced)| {
            // Its own: the values are of this version, whatever the graph moves on to.
            let opened = Arc::new(Opened::now(location, graph));
            Ok(Bound::new(py, Computation::new(opened, limits, spent, computed, priced))?.into_any())
        })
    }
}

/// What the weight of an edge does to a signal, if edges have weights.
pub fn along_of(py: Python<'_>, along: &str, is_weighted: bool) -> PyResult<Option<Along>> {
    let along = match along {
        "times" => Along::Times,
        "plus" => Along::Plus,
        other => return Err(errors::invalid(py, format!("along is {other:?}; write times or plus"))),
    };
    Ok(is_weighted.then_some(along))
}

/// A combinator by its name, if it suits the weights of edges.
pub fn combinator(py: Python<'_>, name: &str, along: Option<Along>) -> PyResult<Combine> {
    let Some((_, combine)) = Combine::ALL.into_iter().find(|(known, _)| *known == name) else {
        let known = Combine::ALL.map(|(known, _)| known).join(", ");
        return Err(errors::invalid(py, format!("combine is {name:?}; write one of {known}")));
    };
    if along.is_some() && !combine.has_weights() {
        let message = format!("weight has no effect on combine={name:?}; leave it out");
        return Err(errors::invalid(py, message));
    }
    Ok(combine)
}

/// How signals are combined, and what a vertex receives that no signal arrives at.
pub fn combination(
    py: Python<'_>,
    combine: &str,
    along: Option<Along>,
    is_float: bool,
    default: Option<&Bound<'_, PyAny>>,
) -> PyResult<Combination> {
    let combine = combinator(py, combine, along)?;
    let is_float_result = combine.is_float(is_float || along.is_some());
    let default = match default {
        None => None,
        Some(value) if is_float_result => value.extract().ok().map(Number::Float),
        Some(value) => Some(Number::Integer(value.extract().map_err(|_| {
            errors::invalid(py, "default has to be an int that fits int64, because combined signals are int64")
        })?)),
    };
    Ok(Combination { combine, along, default })
}
