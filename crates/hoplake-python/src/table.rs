//! Results as tables.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, SchemaRef};
use hoplake::{Cost, Error, Graph, PriceList, QueryContext, Store, tables};
use pyo3::{
    prelude::*,
    types::{PyCapsule, PyDict, PyList},
};

use crate::{
    arrow, errors,
    process::{OfProcess, lock},
    values,
};

/// What calls have cost, those under way included. Its lock is held only with the interpreter lock, as a `fork` is: a child never finds it
/// held.
#[derive(Clone, Default)]
pub struct Spent(Arc<Mutex<Sum>>);

#[derive(Default)]
struct Sum {
    over: Priced,
    under_way: Vec<Arc<OfProcess<Measured>>>,
}

impl Sum {
    /// Adds up calls that are over.
    fn fold(&mut self) {
        let over = &mut self.over;
        self.under_way.retain(|call| {
            // The other is the meter's.
            let is_over = Arc::strong_count(call) == 1;
            if is_over && let Some(call) = call.get() {
                *over = over.and(&call.priced());
            }
            !is_over
        });
    }
}

impl Spent {
    /// The meter of a call that begins.
    pub fn meter(&self, _: Python<'_>) -> Meter {
        let mut sum = lock(&self.0);
        sum.fold();
        let measured = Arc::new(OfProcess::new(Measured::default()));
        sum.under_way.push(measured.clone());
        Meter { measured, begun: Instant::now() }
    }

    pub fn priced(&self, _: Python<'_>) -> Priced {
        let mut sum = lock(&self.0);
        sum.fold();
        let under_way = sum.under_way.iter().filter_map(|call| call.get());
        under_way.fold(sum.over, |all, call| all.and(&call.priced()))
    }
}

/// What one call costs. It counts also if the call fails or is cancelled.
pub struct Meter {
    measured: Arc<OfProcess<Measured>>,
    begun: Instant,
}

#[derive(Default)]
struct Measured {
    /// The query that the call is, once it has begun, and the prices of its store.
    query: Mutex<Option<(QueryContext, PriceList)>>,
    /// What was counted elsewhere.
    other: Mutex<Cost>,
    /// Microseconds.
    time: AtomicU64,
}

impl Measured {
    fn priced(&self) -> Priced {
        let query = lock(&self.query);
        let Some((context, prices)) = &*query else { return Priced::default() };
        let cost = context.cost() + *lock(&self.other);
        Priced::new(cost, prices, self.time.load(Relaxed) as f64 / 1e6)
    }
}

impl Meter {
    /// Measures a query from now on. One that was measured before, such as that of a batch that had to begin again, counts as well.
    pub fn measure(&self, context: &QueryContext, prices: &PriceList) {
        if let Some(measured) = self.measured.get() {
            let mut query = lock(&measured.query);
            if let Some((before, _)) = query.replace((context.clone(), prices.clone())) {
                let mut other = lock(&measured.other);
                *other = *other + before.cost();
            }
        }
    }

    /// A store whose requests are measured.
    pub fn store(&self, url: &str) -> Result<Store, Error> {
        let context = QueryContext::new();
        let store = Store::open(url)?.metered_by(&context);
        self.measure(&context, store.prices());
        Ok(store)
    }

    /// A graph whose requests outside of queries are measured.
    pub fn graph(&self, graph: &Graph) -> Graph {
        let context = QueryContext::new();
        self.measure(&context, graph.prices());
        graph.metered_by(&context)
    }

    /// What was counted elsewhere, instead of what was before.
    pub fn set_other(&self, cost: Cost) {
        if let Some(measured) = self.measured.get() {
            *lock(&measured.other) = cost;
        }
    }

    /// The cost until now.
    pub fn priced(&self) -> Priced {
        let Some(measured) = self.measured.get() else { return Priced::default() };
        measured.time.store(self.begun.elapsed().as_micros() as u64, Relaxed);
        measured.priced()
    }

    /// The cost when it was last asked for.
    pub fn noted(&self) -> Priced {
        self.measured.get().map(Measured::priced).unwrap_or_default()
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        // A call that did not ask failed or was cancelled.
        if self.noted().seconds == 0.0 {
            self.priced();
        }
    }
}

/// What a result cost.
#[derive(Clone, Copy, Default)]
pub struct Priced {
    cost: Cost,
    usd: f64,
    seconds: f64,
}

impl Priced {
    pub fn new(cost: Cost, prices: &PriceList, seconds: f64) -> Self {
        Self { cost, usd: cost.usd(prices), seconds }
    }

    fn and(&self, other: &Self) -> Self {
        Self { cost: self.cost + other.cost, usd: self.usd + other.usd, seconds: self.seconds + other.seconds }
    }

    /// As `hoplake.Cost`.
    pub fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let fields = PyDict::new(py);
        let Self { cost, usd, seconds } = self;
        fields.set_item("waves", cost.waves)?;
        fields.set_item("requests", cost.requests)?;
        fields.set_item("bytes", cost.store_bytes)?;
        fields.set_item("writes", cost.puts)?;
        fields.set_item("written_bytes", cost.put_bytes)?;
        fields.set_item("background_requests", cost.background.requests)?;
        fields.set_item("background_bytes", cost.background.bytes)?;
        fields.set_item("dollars", usd)?;
        fields.set_item("seconds", seconds)?;
        py.import("hoplake._cost")?.getattr("Cost")?.call((), Some(&fields))
    }
}

/// Rows on their way from one step of a load to another.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Batch(pub RecordBatch);

#[pymethods]
impl Batch {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // A consumer that wants other types converts them itself.
        let _ = requested_schema;
        arrow::array(py, &self.0)
    }
}

/// Rows of a result.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    priced: Priced,
}

impl Table {
    /// A table of batches that may have different columns; `empty` has those of a result without rows.
    pub fn new(batches: &[RecordBatch], empty: &RecordBatch, priced: Priced) -> Result<Self, Error> {
        let schema = if batches.is_empty() { empty.schema() } else { tables::schema_of_all(batches) };
        let batches = batches.iter().map(|batch| tables::fit(batch, &schema)).collect::<Result<_, _>>()?;
        Ok(Self { schema, batches, priced })
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Names of the columns' types, as Arrow writes them.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    #[getter]
    fn cost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.priced.object(py)
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Rows from a position on, as dicts.
    fn rows<'py>(&self, py: Python<'py>, start: usize, count: usize) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        let mut skipped = start;
        for batch in &self.batches {
            if skipped >= batch.num_rows() {
                skipped -= batch.num_rows();
                continue;
            }
            for row in skipped..batch.num_rows() {
                if rows.len() == count {
                    return Ok(rows);
                }
                rows.append(values::row(py, batch, row)?)?;
            }
            skipped = 0;
        }
        Ok(rows)
    }

    /// A column as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Ok(at) = self.schema.index_of(name) else {
            let known = self.columns().join(", ");
            return Err(errors::invalid(py, format!("the table has no column {name:?}; it has {known}")));
        };
        let column = PyList::empty(py);
        for batch in &self.batches {
            for row in 0..batch.num_rows() {
                column.append(values::cell(py, batch.column(at), row)?)?;
            }
        }
        Ok(column)
    }

    /// Arrow's stream interface. A requested schema is an offer that a producer may ignore, as this one does.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok::<_, ArrowError>);
        arrow::stream(py, Box::new(RecordBatchIterator::new(batches, self.schema.clone())))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, &self.schema)
    }
}
