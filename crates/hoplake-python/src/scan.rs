//! Scans, which read on while they are consumed.

use std::{collections::VecDeque, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use hoplake::{Condition, Error, Query, ScanRequest, SortBy, tables};
use pyo3::{prelude::*, types::PyCapsule};
use tokio::sync::Mutex as AsyncMutex;

use crate::{
    arrow, errors,
    graph::{Graph, metered, parsed},
    process::{self, OfProcess},
    table::{Meter, Table},
    task::Task,
};

/// A scan under way and the query that it belongs to.
struct Reading {
    query: Query,
    rows: Rows,
    schema: SchemaRef,
    meter: Arc<Meter>,
}

const ELSEWHERE: &str = "the scan was begun in another process; begin it again in this one";

/// What is scanned.
enum Rows {
    Vertices(hoplake::Scan),
    Edges(Edges),
}

/// Edges of some types, one type after the other.
struct Edges {
    types: VecDeque<EdgeName>,
    current: Option<(EdgeName, hoplake::EdgeScan)>,
    left: usize,
    piece: (u64, u64),
}

/// The label of edges, those of their ends, and the properties to read.
struct EdgeName {
    label: String,
    ends: [String; 2],
    select: Vec<String>,
}

impl Edges {
    async fn next(&mut self, query: &mut Query) -> Result<Option<RecordBatch>, Error> {
        while self.left > 0 {
            let Some((name, scan)) = &mut self.current else {
                let Some(name) = self.types.front() else { return Ok(None) };
                let [source, target] = &name.ends;
                let scan = query.scan_edges(&name.label, (source, target), &name.select).await?;
                let scan = scan.piece(self.piece.0, self.piece.1);
                // After that: what failed or was cancelled is begun again.
                self.current = self.types.pop_front().map(|name| (name, scan));
                continue;
            };
            let Some(batch) = query.next_edges(scan).await? else {
                self.current = None;
                continue;
            };
            let batch = batch.slice(0, batch.num_rows().min(self.left));
            self.left -= batch.num_rows();
            let [source, target] = &name.ends;
            return tables::with_ends(&name.label, [source, target], &batch).map(Some);
        }
        Ok(None)
    }
}

impl Reading {
    async fn next(&mut self) -> Result<Option<RecordBatch>, Error> {
        let batch = self.read().await;
        self.meter.priced();
        batch
    }

    async fn read(&mut self) -> Result<Option<RecordBatch>, Error> {
        let batch = match &mut self.rows {
            Rows::Vertices(scan) => match self.query.next_rows(scan).await? {
                Some(rows) => tables::with_label(&rows)?,
                None => return Ok(None),
            },
            Rows::Edges(edges) => match edges.next(&mut self.query).await? {
                Some(batch) => batch,
                None => return Ok(None),
            },
        };
        tables::fit(&batch, &self.schema).map(Some)
    }
}

/// Rows of a scan, in the order of labels unless they are sorted. They are consumed once.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Scan {
    schema: SchemaRef,
    // A child of the process has neither the connections nor the threads of what is being read.
    reading: OfProcess<Arc<AsyncMutex<Reading>>>,
    meter: OfProcess<Arc<Meter>>,
}

impl Scan {
    /// What is being read.
    fn reading(&self) -> PyResult<Arc<AsyncMutex<Reading>>> {
        let reading = self.reading.get().cloned();
        reading.ok_or_else(|| Python::attach(|py| errors::invalid(py, ELSEWHERE)))
    }
}

#[pymethods]
impl Scan {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// What was spent so far.
    #[getter]
    fn cost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.meter.get() {
            Some(meter) => meter.noted().object(py),
            None => Err(errors::invalid(py, ELSEWHERE)),
        }
    }

    /// The next rows as a table, or None at the end.
    fn next(&self) -> PyResult<Task> {
        let reading = self.reading()?;
        let call = async move {
            let mut reading = reading.lock().await;
            let batch = reading.next().await?;
            let priced = reading.meter.priced();
            batch.map(|batch| Table::new(std::slice::from_ref(&batch), &batch, priced)).transpose()
        };
        Task::spawn(call, |py, table| match table {
            Some(table) => Ok(Bound::new(py, table)?.into_any()),
            None => Ok(py.None().into_bound(py)),
        })
    }

    /// All rows that are left as a table.
    fn rest(&self) -> PyResult<Task> {
        let reading = self.reading()?;
        let schema = self.schema.clone();
        let call = async move {
            let mut reading = reading.lock().await;
            let mut batches = Vec::new();
            let mut memory = reading.query.context().hold(0)?;
            while let Some(batch) = reading.next().await? {
                let bytes = memory.bytes().saturating_add(batch.get_array_memory_size() as u64);
                reading.query.context().resize(&mut memory, bytes)?;
                batches.push(batch);
            }
            Table::new(&batches, &RecordBatch::new_empty(schema), reading.meter.priced())
        };
        Task::spawn(call, |py, table| Ok(Bound::new(py, table)?.into_any()))
    }

    /// Arrow's stream interface: rows are read as they are taken.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let (schema, reading) = (self.schema.clone(), OfProcess::new(self.reading()?));
        arrow::stream(py, Box::new(Stream { schema, reading, failed: false }))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, &self.schema)
    }
}

/// The rest of a scan as a reader, which any thread may consume. It waits in short steps, between which the main thread looks for signals.
struct Stream {
    schema: SchemaRef,
    reading: OfProcess<Arc<AsyncMutex<Reading>>>,
    failed: bool,
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let Some(reading) = self.reading.get().cloned() else {
            self.failed = true;
            return Some(Err(ArrowError::ExternalError(ELSEWHERE.into())));
        };
        let call = async move { reading.lock().await.next().await };
        let next = process::wait_with_signals(call).and_then(|next| next.map_err(|error| error.to_string()));
        self.failed = !matches!(next, Ok(Some(_)));
        next.map_err(|message| ArrowError::ExternalError(message.into())).transpose()
    }
}

/// A scan that was begun.
fn started(py: Python<'_>, reading: Reading) -> PyResult<Bound<'_, PyAny>> {
    let (schema, meter) = (reading.schema.clone(), OfProcess::new(reading.meter.clone()));
    let scan = Scan { schema, reading: OfProcess::new(Arc::new(AsyncMutex::new(reading))), meter };
    Ok(Bound::new(py, scan)?.into_any())
}

#[pymethods]
impl Graph {
    /// Begins a scan.
    #[pyo3(signature = (labels, condition, select, order_by, limit, piece=(0, 1)))]
    fn scan(
        &self,
        py: Python<'_>,
        labels: Vec<String>,
        condition: Option<String>,
        select: Option<Vec<String>>,
        order_by: Vec<String>,
        limit: Option<usize>,
        piece: (u64, u64),
    ) -> PyResult<Task> {
        let condition = condition.map(|text| parsed::<Condition>(py, &text)).transpose()?;
        let order_by = order_by.iter().map(|text| text.parse::<SortBy>()).collect::<Result<_, _>>();
        let order_by = order_by.map_err(|error| errors::raised(py, &error))?;
        let graph = self.opened.graph();
        let (limits, meter) = (self.limits, self.meter());
        let call = async move {
            let graph = graph.await?;
            let of_scan = graph.schema().vertex_labels.iter();
            let of_scan: Vec<_> = of_scan.filter(|label| labels.is_empty() || labels.contains(&label.name)).collect();
            let select = select.unwrap_or_else(|| tables::all_properties(&of_scan));
            let schemas: Vec<_> = of_scan.iter().map(|label| tables::schema_of_label(label, &select)).collect();
            let schema = match schemas.is_empty() {
                true => tables::empty(graph.schema(), &select).schema(),
                false => tables::schema_of_each(&schemas),
            };
            let query = metered(&graph, &limits, &meter);
            let scan = query.scan(&ScanRequest { labels, condition, select, order_by, limit })?.piece(piece.0, piece.1);
            Ok(Reading { query, rows: Rows::Vertices(scan), schema, meter: Arc::new(meter) })
        };
        Task::spawn(call, started)
    }

    /// Begins a scan of edges: of a label, between vertices of these labels, or of all.
    #[pyo3(signature = (label, source, target, select, limit, piece=(0, 1)))]
    fn scan_edges(
        &self,
        label: Option<String>,
        source: Option<String>,
        target: Option<String>,
        select: Option<Vec<String>>,
        limit: Option<usize>,
        piece: (u64, u64),
    ) -> PyResult<Task> {
        let graph = self.opened.graph();
        let (limits, meter) = (self.limits, self.meter());
        let call = async move {
            let graph = graph.await?;
            let schema = graph.schema();
            let name = |label| schema.label(label).map_or("", |label| label.name.as_str());
            let is = |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
            let of_scan: Vec<_> = schema
                .edge_types()
                .map(|(_, edge)| edge)
                .filter(|edge| {
                    is(&label, &edge.label) && is(&source, name(edge.source)) && is(&target, name(edge.target))
                })
                .collect();
            tables::check_edge_scan(
                schema,
                &of_scan,
                [&label, &source, &target],
                select.as_deref().unwrap_or_default(),
            )?;
            let mut types = VecDeque::new();
            let mut schemas = Vec::new();
            for edge in of_scan {
                let own = edge.properties.iter().map(|property| property.name.clone());
                let select: Vec<String> = match &select {
                    Some(select) => own.filter(|name| select.contains(name)).collect(),
                    None => own.collect(),
                };
                schemas.push(tables::schema_of_edge_type(schema, edge, &select));
                let ends = [edge.source, edge.target].map(|label| name(label).to_owned());
                types.push_back(EdgeName { label: edge.label.clone(), ends, select });
            }
            let columns = tables::schema_of_each(&schemas);
            let query = metered(&graph, &limits, &meter);
            let rows = Rows::Edges(Edges { types, current: None, left: limit.unwrap_or(usize::MAX), piece });
            Ok(Reading { query, rows, schema: columns, meter: Arc::new(meter) })
        };
        Task::spawn(call, started)
    }
}
