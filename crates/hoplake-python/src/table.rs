//! Results as tables.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, SchemaRef};
use hoplake::{Cost, Error, PriceList, tables};
use pyo3::{
    prelude::*,
    types::{PyCapsule, PyDict, PyList},
};

use crate::{arrow, errors, values};

/// A sum of costs. Its lock is held only with the interpreter lock, as a `fork` is: a child never finds it held.
#[derive(Clone, Default)]
pub struct Spent(Arc<Mutex<Priced>>);

impl Spent {
    pub fn add(&self, _: Python<'_>, priced: &Priced) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *sum = sum.and(priced);
    }

    pub fn priced(&self, _: Python<'_>) -> Priced {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
