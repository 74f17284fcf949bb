//! The steps of a load, for `hoplake.ray.load`.
//!
//! Rows are pairs of a number, which says whose rows they are, and a batch of Arrow. Steps run on the calling thread, without the interpreter lock.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use hoplake::{
    Direction, EdgeTypeId, Error, LabelId, SegmentSettings, Store,
    load_steps::{
        self, Base, BegunLoad, Bounds, BuildSettings, EdgeEnd, EdgeRows, Feed, FeedRows, IngestError, OrderedEdges,
        OrderedVertices, Phase, Tables, TypeKey, VertexRows, WrittenSpan,
    },
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyIterator},
};

use crate::{
    arrow::{self, Raised},
    errors,
    graph::object,
    load::{KEYS, SOURCES, TARGETS, column},
    process::{self, lock},
    table::Batch,
    task::{Stop, Task},
};

/// How long publication may take, in milliseconds.
const PUBLISH_TIMEOUT_MS: u64 = 600_000;

/// A table: label, column of keys, its columns, how many blocks it has.
type Vertices = (String, Option<String>, Py<PyAny>, usize);
/// A table: label, label and column of each end, its columns, how many blocks it has.
type Edges = (String, (String, Option<String>), (String, Option<String>), Py<PyAny>, usize);
/// Whose rows these are, and the rows.
type Rows = Vec<(u64, Batch)>;
/// Rows that come from Python.
type GivenRows<'py> = Vec<(u64, Bound<'py, PyAny>)>;

fn failed(py: Python<'_>, error: IngestError) -> PyErr {
    errors::raised(py, &Error::from(error))
}

fn number_of(feed: Feed) -> u64 {
    match feed {
        Feed::Vertices { table } => table as u64,
        Feed::Edges { table } => 1 << 32 | table as u64,
        Feed::ListValues { table, property } => (2 + property as u64) << 32 | table as u64,
    }
}

fn feed_of(number: u64) -> Feed {
    let table = (number & u64::from(u32::MAX)) as usize;
    match number >> 32 {
        0 => Feed::Vertices { table },
        1 => Feed::Edges { table },
        property => Feed::ListValues { table, property: (property - 2) as usize },
    }
}

fn batch_of(batch: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    arrow::record_batch(batch, "rows of a load")
}

fn rows_of(rows: GivenRows<'_>) -> PyResult<Vec<FeedRows>> {
    rows.into_iter().map(|(feed, batch)| Ok(FeedRows { feed: feed_of(feed), batch: batch_of(&batch)? })).collect()
}

fn rows(found: Vec<FeedRows>) -> Rows {
    found.into_iter().map(|rows| (number_of(rows.feed), Batch(rows.batch))).collect()
}

fn end_of(is_target: bool) -> EdgeEnd {
    if is_target { EdgeEnd::Target } else { EdgeEnd::Source }
}

fn direction_of(is_in: bool) -> Direction {
    if is_in { Direction::In } else { Direction::Out }
}

/// What an iterator of Python yields. An exception ends it, and is kept.
struct Yielded<T> {
    iterator: Py<PyIterator>,
    raised: Arc<Mutex<Option<PyErr>>>,
    read: fn(Bound<'_, PyAny>) -> PyResult<Vec<T>>,
    ready: std::vec::IntoIter<T>,
}

impl<T> Yielded<T> {
    fn new(values: &Bound<'_, PyAny>, read: fn(Bound<'_, PyAny>) -> PyResult<Vec<T>>) -> PyResult<Self> {
        let iterator = values.try_iter()?.unbind();
        Ok(Self { iterator, raised: Arc::default(), read, ready: Vec::new().into_iter() })
    }

    fn raised(&self) -> Arc<Mutex<Option<PyErr>>> {
        self.raised.clone()
    }
}

impl<T> Iterator for Yielded<T> {
    type Item = Result<T, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(value) = self.ready.next() {
                return Some(Ok(value));
            }
            let next = Python::attach(|py| {
                let mut iterator = self.iterator.bind(py).clone();
                iterator.next().map(|value| value.and_then(self.read))
            });
            match next? {
                Ok(values) => self.ready = values.into_iter(),
                Err(exception) => {
                    *lock(&self.raised) = Some(exception);
                    return Some(Err(IngestError::Internal("an iterator raised an exception".into())));
                }
            }
        }
    }
}

/// The exception that ended an iterator, or the error of the step.
fn raised(py: Python<'_>, exception: &Mutex<Option<PyErr>>, error: IngestError) -> PyErr {
    lock(exception).take().unwrap_or_else(|| failed(py, error))
}

fn yielded_rows(value: Bound<'_, PyAny>) -> PyResult<Vec<FeedRows>> {
    rows_of(value.extract()?)
}

/// The steps of a load.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct LoadSteps(load_steps::LoadSteps);

/// Keys of a range.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct RangeKeys(load_steps::RangeKeys);

/// Sorted vertices of a range.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct VertexRange(Mutex<load_steps::VertexRange>);

/// Sorted edges of a range.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct EdgeRange(Mutex<load_steps::EdgeRange>);

#[pymethods]
impl EdgeRange {
    /// The type of the next edges, and the edges; `None` at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<((usize, u16, u16), Batch)>> {
        let next = py.detach(|| lock(&self.0).next_edges()).map_err(|error| failed(py, error))?;
        Ok(next.map(|edges| ((edges.kind.0, edges.kind.1.0, edges.kind.2.0), Batch(edges.batch))))
    }
}

fn kind_of((table, source, target): (usize, u16, u16)) -> TypeKey {
    (table, LabelId(source), LabelId(target))
}

#[pymethods]
impl LoadSteps {
    #[new]
    #[pyo3(signature = (vertices, edges, implies_labels, writer, base_version, memory, temp_dir, span_items))]
    fn new(
        py: Python<'_>,
        vertices: Vec<Vertices>,
        edges: Vec<Edges>,
        implies_labels: bool,
        writer: String,
        base_version: u64,
        memory: u64,
        temp_dir: Option<PathBuf>,
        span_items: Option<u64>,
    ) -> PyResult<Self> {
        let (raised, stop) = (Raised::default(), Stop::never());
        let reader = |rows: &Py<PyAny>, what: &str| arrow::reader(rows.bind(py), what, &raised, &stop);
        let mut tables = Tables { implies_labels, ..Tables::default() };
        for (label, key, columns, blocks) in vertices {
            let rows = reader(&columns, &format!("the table of vertices {label:?}"))?;
            let key = column(key, KEYS, &*rows);
            tables.vertices.push(VertexRows { label, key, schema: schema_of(&*rows), blocks });
        }
        for (label, source, target, columns, blocks) in edges {
            let rows = reader(&columns, &format!("the table of edges {label:?}"))?;
            let source = (source.0, column(source.1, SOURCES, &*rows));
            let target = (target.0, column(target.1, TARGETS, &*rows));
            tables.edges.push(EdgeRows { label, source, target, schema: schema_of(&*rows), blocks });
        }
        let default = SegmentSettings::default();
        let settings = BuildSettings {
            memory_bytes: memory,
            temp_dir,
            threads: 1,
            order: hoplake::VertexOrder::Keys,
            segments: SegmentSettings { span_items: span_items.unwrap_or(default.span_items), ..default },
            indexes: Vec::new(),
            base_version,
            writer,
        };
        let steps = py.detach(|| load_steps::LoadSteps::new(tables, settings));
        Ok(Self(steps.map_err(|error| failed(py, error))?))
    }

    /// The names of labels by their numbers, and the numbers in the order in which their vertices are written.
    fn labels(&self) -> (Vec<String>, Vec<usize>) {
        (self.0.labels().map(str::to_owned).collect(), self.0.label_order())
    }

    /// Reads a block of a table: its vertices or its edges.
    fn read(
        &self,
        py: Python<'_>,
        table: usize,
        block: usize,
        first: u64,
        batch: &Bound<'_, PyAny>,
        is_edges: bool,
    ) -> PyResult<Rows> {
        let batch = batch_of(batch)?;
        let phase = if is_edges { Phase::Edges } else { Phase::Vertices };
        let read = py.detach(|| self.0.read(table, block, first, batch, phase));
        read.map(rows).map_err(|error| failed(py, error))
    }

    /// Some keys of vertices, each with its id space.
    fn sample(&self, py: Python<'_>, rows: GivenRows<'_>) -> PyResult<Vec<(String, Batch)>> {
        let rows = rows_of(rows)?;
        let sampled = py.detach(|| self.0.sample(&rows)).map_err(|error| failed(py, error))?;
        sampled.into_iter().map(|(space, keys)| Ok((space, Batch(one_column(py, keys)?)))).collect()
    }

    /// Divides rows by ranges of keys.
    fn split(
        &self,
        py: Python<'_>,
        rows: GivenRows<'_>,
        is_target: bool,
        bounds: Vec<(String, Bound<'_, PyAny>)>,
        ranges: usize,
    ) -> PyResult<Vec<Rows>> {
        let given = rows_of(rows)?;
        let bounds = bounds.into_iter().map(|(space, keys)| Ok((space, batch_of(&keys)?.column(0).clone())));
        let bounds: Bounds = bounds.collect::<PyResult<_>>()?;
        let divided = py.detach(|| self.0.split(&given, end_of(is_target), &bounds, ranges));
        Ok(divided.map_err(|error| failed(py, error))?.into_iter().map(self::rows).collect())
    }

    /// Divides edges by the ranges of vertices.
    fn split_resolved(
        &self,
        py: Python<'_>,
        rows: GivenRows<'_>,
        is_target: bool,
        firsts: Vec<Vec<u64>>,
        ranges: usize,
    ) -> PyResult<Vec<Rows>> {
        let given = rows_of(rows)?;
        let divided = py.detach(|| self.0.split_resolved(&given, end_of(is_target), &firsts, ranges));
        Ok(divided.map_err(|error| failed(py, error))?.into_iter().map(self::rows).collect())
    }

    /// Sorts the vertices of a range.
    fn vertices(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<VertexRange> {
        let rows = Yielded::new(rows, yielded_rows)?;
        let exception = rows.raised();
        let sorted = py.detach(|| self.0.vertices(rows)).map_err(|error| raised(py, &exception, error))?;
        Ok(VertexRange(Mutex::new(sorted)))
    }

    /// The label of the next vertices of a range, and the vertices; `None` at the end.
    fn next_vertices(&self, py: Python<'_>, range: &VertexRange) -> PyResult<Option<(u16, Batch)>> {
        let next = py.detach(|| lock(&range.0).next_vertices(&self.0)).map_err(|error| failed(py, error))?;
        Ok(next.map(|vertices| (vertices.label.0, Batch(vertices.batch))))
    }

    /// Where the keys of a range are looked up: of labels, the ordinals of first vertices, and batches whose first column has keys.
    fn keys(&self, py: Python<'_>, vertices: &Bound<'_, PyAny>) -> PyResult<RangeKeys> {
        let vertices = Yielded::new(vertices, |value| {
            let (label, first, batch): (u16, u64, Bound<'_, PyAny>) = value.extract()?;
            Ok(vec![(LabelId(label), first, batch_of(&batch)?.column(0).clone())])
        })?;
        let exception = vertices.raised();
        let keys = py.detach(|| self.0.keys(vertices)).map_err(|error| raised(py, &exception, error))?;
        Ok(RangeKeys(keys))
    }

    /// Edges with the vertices of an end in place of their keys.
    fn resolve(&self, py: Python<'_>, keys: &RangeKeys, rows: GivenRows<'_>, is_target: bool) -> PyResult<Rows> {
        let given = rows_of(rows)?;
        let resolved = py.detach(|| self.0.resolve(&keys.0, given, end_of(is_target)));
        resolved.map(self::rows).map_err(|error| failed(py, error))
    }

    /// Sorts the edges of a range.
    fn edges(&self, py: Python<'_>, is_in: bool, counts: Vec<u64>, rows: &Bound<'_, PyAny>) -> PyResult<EdgeRange> {
        let rows = Yielded::new(rows, yielded_rows)?;
        let exception = rows.raised();
        let sorted = py.detach(|| self.0.edges(direction_of(is_in), &counts, rows));
        Ok(EdgeRange(Mutex::new(sorted.map_err(|error| raised(py, &exception, error))?)))
    }

    /// The types of edges in their order, if edges of these were found.
    fn edge_types(&self, found: Vec<(usize, u16, u16)>) -> Vec<(usize, u16, u16)> {
        let found: Vec<TypeKey> = found.into_iter().map(kind_of).collect();
        self.0.edge_types(&found).into_iter().map(|(table, source, target)| (table, source.0, target.0)).collect()
    }

    /// Writes a span of vertices: the ordinals of first ones, labels, and batches.
    fn write_vertices(&self, py: Python<'_>, url: &str, items: u64, vertices: &Bound<'_, PyAny>) -> PyResult<Written> {
        let vertices = Yielded::new(vertices, |value| {
            let (first, label, batch): (u64, u16, Bound<'_, PyAny>) = value.extract()?;
            Ok(vec![(first, OrderedVertices { label: LabelId(label), batch: batch_of(&batch)? })])
        })?;
        let exception = vertices.raised();
        let (store, runtime) = opened(py, url)?;
        let written = py.detach(|| self.0.write_vertices((&store, &runtime), items, vertices));
        written.map(Written).map_err(|error| raised(py, &exception, error))
    }

    /// Writes a span of edges: the numbers of types, how many of the type there are before, types, and batches.
    fn write_edges(
        &self,
        py: Python<'_>,
        url: &str,
        is_in: bool,
        items: u64,
        edges: &Bound<'_, PyAny>,
    ) -> PyResult<Written> {
        let edges = Yielded::new(edges, |value| {
            let (number, first, kind, batch): (u16, u64, _, Bound<'_, PyAny>) = value.extract()?;
            let edges = OrderedEdges { kind: kind_of(kind), batch: batch_of(&batch)? };
            Ok(vec![(EdgeTypeId(number), first, edges)])
        })?;
        let exception = edges.raised();
        let (store, runtime) = opened(py, url)?;
        let written = py.detach(|| self.0.write_edges((&store, &runtime), direction_of(is_in), items, edges));
        written.map(Written).map_err(|error| raised(py, &exception, error))
    }

    /// Publishes what was written; returns the version, and how many vertices and edges it has.
    fn publish(
        &self,
        py: Python<'_>,
        url: String,
        begun: Begun,
        counts: Vec<u64>,
        types: Vec<(usize, u16, u16)>,
        spans: [Vec<Vec<u8>>; 3],
        message: String,
    ) -> PyResult<Task> {
        let begun = begun_of(begun);
        let decode = |spans: Vec<Vec<u8>>| -> PyResult<Vec<WrittenSpan>> {
            let decoded = spans.iter().map(|span| WrittenSpan::decode(span, begun.base.version + 1));
            decoded.map(|span| span.map_err(|error| errors::invalid(py, error.to_string()))).collect()
        };
        let [vertices, out, into] = spans;
        let spans = [decode(vertices)?, decode(out)?, decode(into)?];
        let types: Vec<TypeKey> = types.into_iter().map(kind_of).collect();
        let graph = self.0.graph(counts, &types, spans).map_err(|error| failed(py, error))?;
        let vertices: u64 = graph.vertex_counts.iter().sum();
        let edges: u64 = graph.edge_counts.iter().sum();
        let publish = async move {
            load_steps::publish_load(Store::open(&url)?, &begun, &graph, &message, PUBLISH_TIMEOUT_MS).await
        };
        Task::spawn(publish, move |py, version| object(py, (version, vertices, edges)))
    }
}

/// What was written of a span.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Written(WrittenSpan);

#[pymethods]
impl Written {
    /// As bytes, for the process that publishes it.
    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode())
    }
}

fn opened(py: Python<'_>, url: &str) -> PyResult<(Store, tokio::runtime::Handle)> {
    let store = Store::open(url).map_err(|error| errors::raised(py, &Error::from(error)))?;
    let runtime = process::runtime().map_err(|error| errors::invalid(py, error.to_string()))?;
    Ok((store, runtime.handle().clone()))
}

fn schema_of(rows: &dyn RecordBatchReader) -> SchemaRef {
    rows.schema()
}

fn one_column(py: Python<'_>, column: arrow_array::ArrayRef) -> PyResult<RecordBatch> {
    RecordBatch::try_from_iter([("key", column)]).map_err(|error| errors::invalid(py, error.to_string()))
}

/// The batches of a table in memory, an empty one first.
#[pyfunction]
pub fn batches(py: Python<'_>, rows: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<Batch>> {
    let raised = Raised::default();
    let reader = arrow::reader(rows, what, &raised, &Stop::never())?;
    let empty = RecordBatch::new_empty(reader.schema());
    let mut found = vec![Batch(empty)];
    for batch in py.detach(|| reader.collect::<Vec<_>>()) {
        found.push(Batch(batch.map_err(|error| raised.or_else(|py| errors::invalid(py, format!("{what}: {error}"))))?));
    }
    Ok(found)
}

/// A load that has begun: the name of its writer, and number and reset of the version that it began from.
type Begun = (String, u64, u64);

fn begun_of((writer, version, reset): Begun) -> BegunLoad {
    BegunLoad { writer, base: Base { version, reset } }
}

/// Begins a load.
#[pyfunction]
pub fn begin_load(url: String, replace: bool) -> PyResult<Task> {
    let begin = async move { load_steps::begin_load(Store::open(&url)?, replace).await };
    Task::spawn(begin, |py, begun| object(py, (begun.writer, begun.base.version, begun.base.reset)))
}

/// Takes a load that failed out of the graph.
#[pyfunction]
pub fn give_up_load(url: String, begun: Begun) -> PyResult<Task> {
    let give_up = async move { load_steps::give_up_load(Store::open(&url)?, &begun_of(begun)).await };
    Task::spawn(give_up, |py, ()| Ok(py.None().into_bound(py)))
}
