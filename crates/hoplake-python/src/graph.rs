//! The calls of a graph. `python/hoplake` has their documentation.

use std::{collections::BTreeSet, future::Future, path::PathBuf, sync::Arc, time::Duration};

use hoplake::{
    Condition, Error, Frontier, Hop, Limits, Query, ScanRequest, StartKey, Store, Traversal, TraversalRequest,
    VisitPolicy, compute::COMPUTE_MEMORY_BYTES, tables,
};
use pyo3::{IntoPyObjectExt, prelude::*};

use crate::{
    errors,
    opened::{Location, Opened},
    table::{Meter, Priced, Spent, Table},
    task::Task,
    values,
};

/// An open graph.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Graph {
    pub opened: Arc<Opened>,
    pub limits: Limits,
    /// What its calls have cost, and those of graphs that differ in limits alone.
    pub spent: Spent,
}

/// A parsed argument, or the exception of a text that is wrong.
pub fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(py: Python<'_>, text: &str) -> PyResult<T> {
    text.parse().map_err(|error: T::Err| errors::invalid(py, error.to_string()))
}

pub fn starts(vertices: &[Bound<'_, PyAny>]) -> PyResult<Vec<StartKey>> {
    vertices.iter().map(values::start).collect()
}

/// A query of a graph within limits, whose cost is measured.
pub fn metered(graph: &hoplake::Graph, limits: &Limits, meter: &Meter) -> Query {
    let mut query = graph.query();
    query.limit(limits);
    meter.measure(query.context(), graph.prices());
    query
}

impl Graph {
    /// The meter of a call that begins.
    pub fn meter(&self) -> Meter {
        Python::attach(|py| self.spent.meter(py))
    }

    /// Runs a query of this graph within its limits, and makes a result of its answer and its cost.
    pub fn ask<T, A>(
        &self,
        ask: impl FnOnce(hoplake::Graph, Query) -> A + Send + 'static,
        finish: impl for<'py> FnOnce(Python<'py>, T, Priced) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    ) -> PyResult<Task>
    where
        T: Send + 'static,
        A: Future<Output = Result<(T, Query), Error>> + Send,
    {
        let (graph, limits) = (self.opened.graph(), self.limits);
        let meter = self.meter();
        let call = async move {
            let graph = graph.await?;
            let query = metered(&graph, &limits, &meter);
            let (answer, _) = ask(graph, query).await?;
            Ok((answer, meter.priced()))
        };
        Task::spawn(call, |py, (answer, priced)| finish(py, answer, priced))
    }

    /// As [`Self::ask`], with a table as its answer: its batches, and one with the columns of an empty one.
    pub fn ask_table<A>(&self, ask: impl FnOnce(hoplake::Graph, Query) -> A + Send + 'static) -> PyResult<Task>
    where
        A: Future<Output = Result<(TableParts, Query), Error>> + Send,
    {
        self.ask(ask, |py, (batches, empty): TableParts, priced| {
            let table = Table::new(&batches, &empty, priced).map_err(|error| errors::raised(py, &error))?;
            Ok(Bound::new(py, table)?.into_any())
        })
    }
}

impl Graph {
    /// A traversal along hops, in which a vertex appears once, or once at each depth.
    pub fn traversal(&self, py: Python<'_>, hops: &[String], once: bool) -> PyResult<Traversal> {
        let hops = hops.iter().map(|hop| parsed(py, hop)).collect::<PyResult<_>>()?;
        let visit = if once { VisitPolicy::Global } else { VisitPolicy::PerDepth };
        let limits = self.vertex_limit();
        Ok(Traversal { hops, visit, parallelism: processors(), limits, ..Traversal::default() })
    }

    /// The limit that traversals and searches for paths keep by themselves; the others are those of the query.
    pub fn vertex_limit(&self) -> Limits {
        Limits { vertices_max: self.limits.vertices_max, ..Limits::default() }
    }
}

/// Batches of a result, and one with the columns of an empty result.
pub type TableParts = (Vec<arrow_array::RecordBatch>, arrow_array::RecordBatch);

/// A value as Python has it.
pub fn object<'py>(py: Python<'py>, value: impl IntoPyObjectExt<'py>) -> PyResult<Bound<'py, PyAny>> {
    value.into_bound_py_any(py)
}

#[pymethods]
impl Graph {
    /// A graph that the first call opens: what pickling needs.
    #[new]
    #[pyo3(signature = (url, version, cache_bytes, disk_folder, disk_bytes, mapped))]
    fn new(
        url: String,
        version: Option<u64>,
        cache_bytes: Option<u64>,
        disk_folder: Option<PathBuf>,
        disk_bytes: Option<u64>,
        mapped: bool,
    ) -> Self {
        let location = Location { url, version, cache_bytes, disk_folder, disk_bytes, mapped };
        Self { opened: Arc::new(Opened::later(location)), limits: Limits::default(), spent: Spent::default() }
    }

    /// Opens the graph at a version, or at one that is named by its tag or its time.
    #[staticmethod]
    #[pyo3(signature = (url, version, tag, as_of, cache_bytes, disk_folder, disk_bytes, mapped))]
    fn open(
        py: Python<'_>,
        url: String,
        version: Option<u64>,
        tag: Option<String>,
        as_of: Option<String>,
        cache_bytes: Option<u64>,
        disk_folder: Option<PathBuf>,
        disk_bytes: Option<u64>,
        mapped: bool,
    ) -> PyResult<Task> {
        let as_of = as_of.map(|time| hoplake::parse_time(&time)).transpose();
        let as_of = as_of.map_err(|error| errors::raised(py, &error))?;
        let mut location = Location { url, version, cache_bytes, disk_folder, disk_bytes, mapped };
        let call = async move {
            let store = Store::open(&location.url)?;
            if let Some(unix_ms) = as_of {
                location.version = Some(hoplake::Graph::version_as_of(&store, unix_ms).await?);
            }
            if let Some(tag) = tag {
                location.version = Some(hoplake::Graph::tagged(&store, &tag).await?);
            }
            let graph = location.open().await?;
            Ok(Opened::now(location, graph))
        };
        Task::spawn(call, |py, opened| {
            let graph = Self { opened: Arc::new(opened), limits: Limits::default(), spent: Spent::default() };
            Ok(Bound::new(py, graph)?.into_any())
        })
    }

    /// Makes an empty graph, and returns whether it did.
    #[staticmethod]
    fn create(url: String) -> PyResult<Task> {
        let call = async move { hoplake::Graph::create(&Store::open(&url)?).await };
        Task::spawn(call, |py, made| object(py, made))
    }

    #[getter]
    fn url(&self) -> String {
        self.opened.location().url
    }

    /// The version, once it is known.
    #[getter]
    fn version(&self) -> Option<u64> {
        self.opened.location().version
    }

    /// What a graph is made of again in another process.
    pub fn location(&self) -> (String, Option<u64>, Option<u64>, Option<PathBuf>, Option<u64>, bool) {
        let Location { url, version, cache_bytes, disk_folder, disk_bytes, mapped } = self.opened.location();
        (url, version, cache_bytes, disk_folder, disk_bytes, mapped)
    }

    /// The same graph, whose calls end at these limits.
    #[pyo3(signature = (seconds, vertices, requests, bytes, dollars, memory))]
    fn within(
        &self,
        py: Python<'_>,
        seconds: Option<f64>,
        vertices: Option<u64>,
        requests: Option<u64>,
        bytes: Option<u64>,
        dollars: Option<f64>,
        memory: Option<u64>,
    ) -> PyResult<Self> {
        let timeout = seconds.map(|time| self::seconds(py, time)).transpose()?;
        if dollars.is_some_and(|dollars| dollars.is_nan() || dollars < 0.0) {
            return Err(errors::invalid(py, "dollars has to be a number, 0 or more"));
        }
        let known = &self.limits;
        let limits = Limits {
            timeout: timeout.or(known.timeout),
            vertices_max: vertices.or(known.vertices_max),
            requests_max: requests.or(known.requests_max),
            bytes_max: bytes.or(known.bytes_max),
            usd_max: dollars.or(known.usd_max),
            memory_bytes_max: memory.or(known.memory_bytes_max),
        };
        Ok(Self { opened: self.opened.clone(), limits, spent: self.spent.clone() })
    }

    /// The limits of its calls, as [`Self::within`] takes them.
    pub fn limits(&self) -> (Option<f64>, Option<u64>, Option<u64>, Option<u64>, Option<f64>, Option<u64>) {
        let Limits { timeout, vertices_max, requests_max, bytes_max, usd_max, memory_bytes_max } = &self.limits;
        let seconds = timeout.map(|timeout| timeout.as_secs_f64());
        (seconds, *vertices_max, *requests_max, *bytes_max, *usd_max, *memory_bytes_max)
    }

    /// What its calls have cost.
    #[getter]
    fn cost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.spent.priced(py).object(py)
    }

    /// Lets go of the open graph; the next call opens it again.
    fn close(&self) {
        self.opened.close();
    }

    /// Opens the graph if it is not open.
    fn ready(&self) -> PyResult<Task> {
        let graph = self.opened.graph();
        Task::spawn(graph, |py, graph| object(py, graph.version()))
    }

    /// Moves on to the newest version, and returns whether there was a newer one.
    fn refresh(&self) -> PyResult<Task> {
        let graph = self.opened.graph();
        let opened = self.opened.clone();
        let meter = self.meter();
        let call = async move {
            let mut graph = graph.await?;
            // What it reads later is not metered by this call.
            let mut metered = meter.graph(&graph);
            let moved = metered.refresh().await?;
            graph.advance();
            Ok((graph, moved))
        };
        Task::spawn(call, move |py, (graph, moved)| {
            opened.set(graph);
            object(py, moved)
        })
    }

    /// The schema, as JSON.
    fn schema(&self) -> PyResult<Task> {
        let graph = self.opened.graph();
        Task::spawn(graph, |py, graph| crate::describe::schema(py, &graph))
    }

    /// Vertices by key or condition, in the order of labels.
    #[pyo3(signature = (vertices, select))]
    fn get(&self, vertices: Vec<Bound<'_, PyAny>>, select: Option<Vec<String>>) -> PyResult<Task> {
        let starts = starts(&vertices)?;
        self.ask_table(|graph, mut query| async move {
            let labels = query.label_ids(starts.iter().map(StartKey::label));
            query.expect_rows(labels.iter().copied());
            let found = query.start_vertices(&starts).await?;
            let found: Frontier = found.iter().copied().collect();
            let batches = query.vertex_tables(&found, select.as_deref()).await?;
            let empty = tables::empty_of(graph.schema(), &labels, select.as_deref());
            Ok(((batches, empty), query))
        })
    }

    /// How many vertices a scan finds.
    #[pyo3(signature = (labels, condition))]
    fn count(&self, py: Python<'_>, labels: Vec<String>, condition: Option<String>) -> PyResult<Task> {
        let condition = condition.map(|text| parsed::<Condition>(py, &text)).transpose()?;
        let request = ScanRequest { labels, condition, ..ScanRequest::default() };
        let count = |_, mut query: Query| async move { Ok((query.count_found(&request).await?, query)) };
        self.ask(count, |py, count, _| object(py, count))
    }

    /// The edges of a hop from vertices, with what they lead to.
    #[pyo3(signature = (vertices, hop, select, limit, ids))]
    fn neighbors(
        &self,
        py: Python<'_>,
        vertices: Vec<Bound<'_, PyAny>>,
        hop: &str,
        select: Vec<String>,
        limit: Option<usize>,
        ids: bool,
    ) -> PyResult<Task> {
        let starts = starts(&vertices)?;
        let hop: Hop = parsed(py, hop)?;
        self.ask_table(move |_, mut query| async move {
            query.check_select(&select)?;
            let labels = query.label_ids(starts.iter().map(StartKey::label));
            query.expect_rows_at_end(&labels, std::slice::from_ref(&hop));
            if !select.is_empty() {
                query.expect_edge_rows(&labels, &hop);
            }
            let vertices = query.start_vertices(&starts).await?;
            let mut edges = match limit {
                None => query.neighbors(&vertices, &hop).await?,
                Some(limit) => query.first_neighbors(&vertices, &hop, limit).await?,
            };
            edges.truncate(limit.unwrap_or(usize::MAX));
            let table = query.edge_table_with_sources(&edges, &select, ids).await?;
            let empty = table.slice(0, 0);
            Ok(((vec![table], empty), query))
        })
    }

    /// How many edges of a hop each of some vertices has, in the order given.
    fn degrees(&self, py: Python<'_>, vertices: Vec<Bound<'_, PyAny>>, hop: &str) -> PyResult<Task> {
        let starts = starts(&vertices)?;
        let hop: Hop = parsed(py, hop)?;
        let ask = |_, mut query: Query| async move {
            let vertices = query.named(&starts).await?;
            let degrees = query.degrees(&vertices, &hop).await?;
            let of: std::collections::HashMap<_, _> = degrees.iter().map(|it| (it.vertex, it.edges)).collect();
            let counts: Vec<u64> = vertices.iter().map(|vertex| of.get(vertex).copied().unwrap_or(0)).collect();
            Ok((counts, query))
        };
        self.ask(ask, |py, counts, _| object(py, counts))
    }

    /// Runs a traversal, and returns the vertices reached.
    #[pyo3(signature = (vertices, hops, select, limit, once))]
    fn traverse(
        &self,
        py: Python<'_>,
        vertices: Vec<Bound<'_, PyAny>>,
        hops: Vec<String>,
        select: Option<Vec<String>>,
        limit: Option<usize>,
        once: bool,
    ) -> PyResult<Task> {
        let request = TraversalRequest {
            starts: starts(&vertices)?,
            traversal: self.traversal(py, &hops, once)?,
            select: select.clone(),
            limit,
        };
        self.ask_table(move |graph, mut query| async move {
            let labels = query.label_ids(request.starts.iter().map(StartKey::label));
            let ends = query.labels_at_end(&labels, &request.traversal.hops);
            if select.is_none() {
                query.expect_rows_at_end(&labels, &request.traversal.hops);
            }
            let answer = query.run(&request).await?;
            let batches = match &select {
                Some(_) => answer.rows.iter().map(tables::with_label).collect::<Result<Vec<_>, Error>>()?,
                None => {
                    let most = request.limit.unwrap_or(usize::MAX);
                    let found: Frontier = answer.reached.last().vertices().take(most).collect();
                    query.vertex_tables(&found, None).await?
                }
            };
            Ok(((batches, tables::empty_of(graph.schema(), &ends, select.as_deref())), query))
        })
    }

    /// How many vertices a traversal reaches.
    fn count_reached(
        &self,
        py: Python<'_>,
        vertices: Vec<Bound<'_, PyAny>>,
        hops: Vec<String>,
        once: bool,
    ) -> PyResult<Task> {
        let (starts, traversal) = (starts(&vertices)?, self.traversal(py, &hops, once)?);
        let request = TraversalRequest { starts, traversal, ..TraversalRequest::default() };
        let ask = |_, mut query: Query| async move { Ok((query.run(&request).await?.reached.last().len(), query)) };
        self.ask(ask, |py, count, _| object(py, count))
    }

    /// Vertices within some hops, nearest first, with their distance.
    #[pyo3(signature = (vertex, hop, depth, select, limit))]
    fn neighborhood(
        &self,
        py: Python<'_>,
        vertex: &Bound<'_, PyAny>,
        hop: &str,
        depth: usize,
        select: Vec<String>,
        limit: Option<usize>,
    ) -> PyResult<Task> {
        let start = values::start(vertex)?;
        let hop: Hop = parsed(py, hop)?;
        if depth > HOPS_MAX {
            return Err(errors::invalid(py, format!("depth is {depth}; {HOPS_MAX} is the most")));
        }
        let limits = self.vertex_limit();
        self.ask_table(move |graph, mut query| async move {
            let hops = vec![hop; depth];
            let labels = query.label_ids([start.label()]);
            query.expect_rows_on_the_way(&labels, &hops);
            let near = (0..=hops.len().min(LABELS_FAR)).flat_map(|far| query.labels_at_end(&labels, &hops[..far]));
            let near: BTreeSet<_> = near.collect();
            let near: Vec<_> = near.into_iter().collect();
            let starts = query.named(std::slice::from_ref(&start)).await?;
            let reached = query.traverse(Traversal {
                starts,
                hops,
                visit: VisitPolicy::Global,
                parallelism: processors(),
                limits,
                ..Traversal::default()
            });
            let reached = reached.await?;
            let batches = query.distance_tables(&reached, &select, limit).await?;
            let empty = tables::with_distance(&tables::empty_of(graph.schema(), &near, Some(&select)), 0)?;
            Ok(((batches, empty), query))
        })
    }
}

/// A time in seconds.
pub fn seconds(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| errors::invalid(py, "seconds has to be a number, 0 or more"))
}

/// Hops of a traversal, at most: each is a set of vertices in memory.
const HOPS_MAX: usize = 10_000;
/// After this many hops no label is met for the first time, in any schema that we know.
pub const LABELS_FAR: usize = 64;

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Limits of a query whose text decides what it builds: memory is bounded even if the user did not say so.
pub fn with_memory(limits: &Limits) -> Limits {
    Limits { memory_bytes_max: Some(limits.memory_bytes_max.unwrap_or(COMPUTE_MEMORY_BYTES)), ..*limits }
}
