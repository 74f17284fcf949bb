//! Scans, which read on while they are consumed.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use hoplake::{Condition, Cost, Error, Query, ScanRequest, SortBy, tables};
use pyo3::{prelude::*, types::PyCapsule};
use tokio::sync::Mutex as AsyncMutex;

use crate::{
    arrow, errors,
    graph::{Graph, parsed},
    process,
    table::{Priced, Table},
    task::Task,
};

/// A scan under way and the query that it belongs to.
struct Reading {
    query: Query,
    scan: hoplake::Scan,
    begun: Instant,
    schema: SchemaRef,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<RecordBatch>, Error> {
        let Some(rows) = self.query.next_rows(&mut self.scan).await? else { return Ok(None) };
        tables::fit(&tables::with_label(&rows)?, &self.schema).map(Some)
    }
}

/// Rows of a scan, in the order of labels unless they are sorted. They are consumed once.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Scan {
    schema: SchemaRef,
    reading: Arc<AsyncMutex<Reading>>,
    prices: hoplake::PriceList,
    cost: Arc<Mutex<(Cost, f64)>>,
}

impl Scan {
    fn note(cost: &Mutex<(Cost, f64)>, reading: &Reading) {
        let spent = (reading.query.cost(), reading.begun.elapsed().as_secs_f64());
        *cost.lock().unwrap_or_else(PoisonError::into_inner) = spent;
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
        let (cost, seconds) = *self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        Priced::new(cost, &self.prices, seconds).object(py)
    }

    /// The next rows as a table, or None at the end.
    fn next(&self) -> PyResult<Task> {
        let reading = self.reading.clone();
        let (prices, spent) = (self.prices.clone(), self.cost.clone());
        let call = async move {
            let mut reading = reading.lock().await;
            let batch = reading.next().await?;
            Self::note(&spent, &reading);
            let priced = Priced::new(reading.query.cost(), &prices, reading.begun.elapsed().as_secs_f64());
            batch.map(|batch| Table::new(std::slice::from_ref(&batch), &batch, priced)).transpose()
        };
        Task::spawn(call, |py, table| match table {
            Some(table) => Ok(Bound::new(py, table)?.into_any()),
            None => Ok(py.None().into_bound(py)),
        })
    }

    /// All rows that are left as a table.
    fn rest(&self) -> PyResult<Task> {
        let reading = self.reading.clone();
        let (prices, spent, schema) = (self.prices.clone(), self.cost.clone(), self.schema.clone());
        let call = async move {
            let mut reading = reading.lock().await;
            let mut batches = Vec::new();
            while let Some(batch) = reading.next().await? {
                batches.push(batch);
            }
            Self::note(&spent, &reading);
            let priced = Priced::new(reading.query.cost(), &prices, reading.begun.elapsed().as_secs_f64());
            Table::new(&batches, &RecordBatch::new_empty(schema), priced)
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
        let (schema, reading, cost) = (self.schema.clone(), self.reading.clone(), self.cost.clone());
        arrow::stream(py, Box::new(Stream { schema, reading, cost, failed: false }))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, &self.schema)
    }
}

/// The rest of a scan as a reader, which any thread may consume. It waits in short steps, between which the main thread looks for signals.
struct Stream {
    schema: SchemaRef,
    reading: Arc<AsyncMutex<Reading>>,
    cost: Arc<Mutex<(Cost, f64)>>,
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
        let (reading, cost) = (self.reading.clone(), self.cost.clone());
        let call = async move {
            let mut reading = reading.lock().await;
            let batch = reading.next().await;
            Scan::note(&cost, &reading);
            batch
        };
        let next = process::wait_with_signals(call).and_then(|next| next.map_err(|error| error.to_string()));
        self.failed = !matches!(next, Ok(Some(_)));
        next.map_err(|message| ArrowError::ExternalError(message.into())).transpose()
    }
}

#[pymethods]
impl Graph {
    /// Begins a scan.
    #[pyo3(signature = (labels, condition, select, order_by, limit))]
    fn scan(
        &self,
        py: Python<'_>,
        labels: Vec<String>,
        condition: Option<String>,
        select: Option<Vec<String>>,
        order_by: Vec<String>,
        limit: Option<usize>,
    ) -> PyResult<Task> {
        let condition = condition.map(|text| parsed::<Condition>(py, &text)).transpose()?;
        let order_by = order_by.iter().map(|text| text.parse::<SortBy>()).collect::<Result<_, _>>();
        let order_by = order_by.map_err(|error| errors::raised(py, &error))?;
        let graph = self.opened.graph();
        let limits = self.limits;
        let call = async move {
            let begun = Instant::now();
            let graph = graph.await?;
            let of_scan = graph.schema().vertex_labels.iter();
            let of_scan: Vec<_> = of_scan.filter(|label| labels.is_empty() || labels.contains(&label.name)).collect();
            let select = select.unwrap_or_else(|| tables::all_properties(&of_scan));
            let schemas: Vec<_> = of_scan.iter().map(|label| tables::schema_of_label(label, &select)).collect();
            let schema = match schemas.is_empty() {
                true => tables::empty(graph.schema(), &select).schema(),
                false => tables::schema_of_each(&schemas),
            };
            let mut query = graph.query();
            query.limit(&limits);
            let scan = query.scan(&ScanRequest { labels, condition, select, order_by, limit })?;
            let prices = graph.prices().clone();
            Ok((Reading { query, scan, begun, schema }, prices))
        };
        Task::spawn(call, |py, (reading, prices)| {
            let schema = reading.schema.clone();
            let cost = Arc::new(Mutex::new((Cost::default(), 0.0)));
            let scan = Scan { schema, reading: Arc::new(AsyncMutex::new(reading)), prices, cost };
            Ok(Bound::new(py, scan)?.into_any())
        })
    }
}
