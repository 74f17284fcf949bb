//! Computations over the whole graph.

use std::{path::PathBuf, sync::Arc};

use arrow_array::RecordBatch;
use hoplake::{
    Error, Hop,
    compute::{
        Algorithm, Asynchronous, CHECKPOINT_EVERY, CheckpointFile, ComputeOptions, ComputeProgress, Computed, Figure,
        Placement, Selection,
        registry::{self, OptionKind, OptionValue},
        usual_hop,
    },
    tables::Written,
};
use pyo3::{
    prelude::*,
    types::{PyDict, PyString, PyTuple},
};

use crate::{
    errors,
    graph::{Graph, TableParts, metered, object, parsed},
    opened::Opened,
    table::{Priced, Spent},
    task::Task,
    values,
};

/// A value for each vertex, or figures for the whole graph.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Computation {
    opened: Arc<Opened>,
    limits: hoplake::Limits,
    spent: Spent,
    computed: Arc<Computed>,
    priced: Priced,
}

/// The algorithms of the registry: name, what its values are called, help, and options with kind, help and default.
#[pyfunction]
pub fn algorithms(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let all = registry::ALGORITHMS.iter().map(|spec| {
        let options = spec.options.iter().map(|option| {
            (option.name, format!("{:?}", option.kind).to_lowercase(), option.help, option.default, option.requires)
        });
        (spec.name, spec.value, spec.help, options.collect::<Vec<_>>())
    });
    object(py, all.collect::<Vec<_>>())
}

/// The options of an algorithm that were given, and the vertices that it begins at.
pub fn algorithm(py: Python<'_>, name: &str, given: &Bound<'_, PyDict>) -> PyResult<Algorithm> {
    let unknown = || {
        let names: Vec<&str> = registry::ALGORITHMS.iter().map(|algorithm| algorithm.name).collect();
        errors::invalid(py, format!("unknown algorithm {name:?}; there are {}", names.join(", ")))
    };
    let spec = registry::find(name).ok_or_else(unknown)?;
    let mut starts = Vec::new();
    let mut options = Vec::new();
    for (key, value) in given {
        let key = values::text(key.cast()?)?;
        let Some(option) = spec.option(&key) else {
            let known: Vec<_> = spec.options.iter().map(|option| option.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let (key, known) = (as_argument(&key), as_argument(&known));
            return Err(errors::invalid(py, format!("{name} has no option {key}; it has {known}")));
        };
        let wrong = || errors::invalid(py, format!("{} has to be {}", as_argument(&key), option.kind.range()));
        let value = match option.kind {
            OptionKind::Vertex => {
                starts.push(values::start(&value)?);
                continue;
            }
            OptionKind::Vertices if value.is_instance_of::<PyString>() || value.is_instance_of::<PyTuple>() => {
                starts.push(values::start(&value)?);
                continue;
            }
            OptionKind::Vertices => {
                for vertex in value.try_iter()? {
                    starts.push(values::start(&vertex?)?);
                }
                continue;
            }
            OptionKind::Property => OptionValue::Text(values::text(value.cast().map_err(|_| wrong())?)?),
            OptionKind::Count | OptionKind::Seed => OptionValue::Integer(value.extract().map_err(|_| wrong())?),
            OptionKind::Part | OptionKind::NotNegative => OptionValue::Float(value.extract().map_err(|_| wrong())?),
        };
        options.push((option.name, value));
    }
    let made = Algorithm::from_starts(name, starts);
    let made = options.into_iter().fold(made, |made, (option, value)| made?.with(option, value));
    made.map_err(|error| errors::raised(py, &error))
}

/// Names of options as keyword arguments of Python.
fn as_argument(names: &str) -> String {
    let renamed = |name: &str| if name == "from" { "from_".to_owned() } else { name.replace('-', "_") };
    names.split(", ").map(renamed).collect::<Vec<_>>().join(", ")
}

fn describe(progress: &ComputeProgress) -> String {
    let ComputeProgress { superstep, changed, residual, .. } = progress;
    let residual = residual.map(|residual| format!(", by {residual:.2e} in sum")).unwrap_or_default();
    format!("superstep {superstep}: {changed} vertices changed{residual}")
}

/// Which part of the graph is computed, where its lists are, and on how many threads.
pub fn computing(
    py: Python<'_>,
    hop: Hop,
    labels: Vec<String>,
    lists: &str,
    threads: Option<usize>,
) -> PyResult<ComputeOptions> {
    let placement = match lists {
        "automatic" => Placement::Automatic,
        "memory" => Placement::Memory,
        "packed" => Placement::Packed,
        "streamed" => Placement::Streamed,
        other => {
            let message = format!("lists is {other:?}; write automatic, memory, packed or streamed");
            return Err(errors::invalid(py, message));
        }
    };
    Ok(ComputeOptions {
        selection: Selection { hop, labels, ..Selection::default() },
        placement,
        workers: py.detach(|| crate::process::workers(threads)).map_err(|error| errors::invalid(py, error))?,
        ..ComputeOptions::default()
    })
}

#[pymethods]
impl Graph {
    /// Computes an algorithm.
    #[pyo3(signature = (name, options, edges, labels, lists, threads, checkpoint, asynchronous))]
    fn run(
        &self,
        py: Python<'_>,
        name: &str,
        options: &Bound<'_, PyDict>,
        edges: Option<&str>,
        labels: Vec<String>,
        lists: &str,
        threads: Option<usize>,
        checkpoint: Option<PathBuf>,
        asynchronous: bool,
    ) -> PyResult<Task> {
        let algorithm = algorithm(py, name, options)?;
        let hop: Option<Hop> = edges.map(|hop| parsed(py, hop)).transpose()?;
        let hop = hop.unwrap_or_else(|| usual_hop(algorithm.spec()));
        let computing = ComputeOptions {
            checkpoint: checkpoint.map(|path| CheckpointFile { path, every: CHECKPOINT_EVERY }),
            asynchronous: asynchronous.then(Asynchronous::default),
            ..computing(py, hop, labels, lists, threads)?
        };
        let graph = self.opened.graph();
        let location = self.opened.location();
        let (limits, spent) = (self.limits, self.spent.clone());
        let meter = self.meter();
        Task::stoppable(
            move |progress, stop| async move {
                let graph = graph.await?;
                let mut query = metered(&graph, &limits, &meter);
                let computed = {
                    let observe = |step: &ComputeProgress| progress.report(describe(step), step.superstep as u64, None);
                    let computed = query.compute(&algorithm, &computing, observe);
                    tokio::select! {
                        computed = computed => computed?,
                        () = stop.requested() => return Ok(None),
                    }
                };
                Ok(Some((graph, Arc::new(computed), meter.priced(), limits, spent)))
            },
            move |py, (graph, computed, priced, limits, spent)| {
                // Its own: the values are of this version, whatever the graph moves on to.
                let opened = Arc::new(Opened::now(location, graph));
                Ok(Bound::new(py, Computation { opened, limits, spent, computed, priced })?.into_any())
            },
        )
    }
}

#[pymethods]
impl Computation {
    /// What its values are called.
    #[getter]
    fn name(&self) -> &str {
        self.computed.name()
    }

    /// Whether each vertex has a value.
    #[getter]
    fn has_values(&self) -> bool {
        self.computed.has_values()
    }

    /// How many supersteps or iterations it took.
    #[getter]
    fn iterations(&self) -> Option<usize> {
        self.computed.supersteps
    }

    /// Whether lists were read again in each superstep.
    #[getter]
    fn streamed(&self) -> bool {
        self.computed.streamed
    }

    /// Numbers for the whole graph.
    #[getter]
    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let figures = PyDict::new(py);
        for (name, figure) in &self.computed.figures {
            match figure {
                Figure::Count(count) => figures.set_item(name, count)?,
                Figure::Number(number) => figures.set_item(name, number)?,
            }
        }
        Ok(figures)
    }

    /// How many groups there are, and how many vertices the largest has.
    #[getter]
    fn groups(&self) -> Option<(u64, u64)> {
        self.computed.groups()
    }

    #[getter]
    fn cost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.priced.object(py)
    }

    fn __len__(&self) -> usize {
        self.computed.len()
    }

    /// The values as a table: those of all vertices, by label and as they are stored, or the first by value.
    #[pyo3(signature = (top, select))]
    fn table(&self, top: Option<usize>, select: Vec<String>) -> PyResult<Task> {
        let computed = self.computed.clone();
        self.graph().ask_table(move |graph, mut query| async move {
            if !computed.has_values() {
                let figures = computed.figure_table()?;
                let empty = figures.slice(0, 0);
                return Ok(((vec![figures], empty), query));
            }
            let batches: Vec<RecordBatch> = match top {
                Some(most) => query.top_tables(&computed, most, &select).await?,
                None => {
                    let vertices: Vec<_> = computed.vertices().collect();
                    query.value_tables(&computed, &vertices, &select).await?
                }
            };
            let parts: TableParts = (batches, computed.empty_table(graph.schema(), &select)?);
            Ok::<_, Error>((parts, query))
        })
    }

    /// Writes the values as a property, in one commit, and returns the version and how many vertices have a value.
    fn write(&self, property: String) -> PyResult<Task> {
        let computed = self.computed.clone();
        self.graph().ask(
            move |graph, mut query| async move {
                let written = query.write_values(&graph, &computed, &property).await?;
                Ok((written, query))
            },
            |py, written: Written, _| object(py, (written.committed.version, written.vertices)),
        )
    }
}

impl Computation {
    /// What was computed on a version of a graph.
    pub fn new(opened: Arc<Opened>, limits: hoplake::Limits, spent: Spent, computed: Computed, priced: Priced) -> Self {
        Self { opened, limits, spent, computed: Arc::new(computed), priced }
    }

    fn graph(&self) -> Graph {
        Graph { opened: self.opened.clone(), limits: self.limits, spent: self.spent.clone() }
    }
}
