//! Arrow's PyCapsule interface, in both directions. Buffers are shared, not copied.
//!
//! What comes from outside is checked before it is used: the interface hands over pointers, and Arrow's arrays believe their offsets and texts.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>

#![expect(unsafe_code, reason = "Arrow's C interface")]

use std::{
    ffi::CStr,
    sync::{Arc, Mutex},
};

use arrow_array::{
    Array, ArrayReader, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray,
    cast::AsArray,
    ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi},
    ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream},
};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use pyo3::{
    exceptions::PyStopIteration,
    prelude::*,
    types::{PyCapsule, PyDict, PyTuple},
};

use crate::{errors, process::lock, task::Stop, values};

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// Columns in which pandas puts the index of a data frame that is not a plain count of rows.
const PANDAS_INDEX: &str = "__index_level_";

/// A stream of record batches as a capsule. What a consumer leaves is dropped with the capsule.
pub fn stream<'py>(py: Python<'py>, reader: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// A schema as a capsule.
pub fn schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| failed(py, "an Arrow schema", &error))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// A record batch as a schema and an array, which are capsules.
pub fn array<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let exported = to_ffi(&StructArray::from(batch.clone()).into_data());
    let (array, schema) = exported.map_err(|error| failed(py, "a record batch", &error))?;
    Ok((PyCapsule::new_with_value(py, schema, SCHEMA)?, PyCapsule::new_with_value(py, array, ARRAY)?))
}

/// The exception that ended a reader. Its error is a text: Arrow's interfaces have no other.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn note(&self, exception: PyErr) -> ArrowError {
        let text = exception.to_string();
        *lock(&self.0) = Some(exception);
        ArrowError::ExternalError(text.into())
    }

    /// The exception of a reader, if one ended it; otherwise the one that is made.
    pub fn or_else(&self, error: impl FnOnce(Python<'_>) -> PyErr) -> PyErr {
        let raised = lock(&self.0).take();
        raised.unwrap_or_else(|| Python::attach(error))
    }
}

/// A record batch of whatever has `__arrow_c_array__`.
pub fn record_batch(data: &Bound<'_, PyAny>, what: &str) -> PyResult<RecordBatch> {
    whole(&data.call_method0("__arrow_c_array__")?, what)
}

/// A reader of whatever has `__arrow_c_stream__`, such as a data frame, or `__arrow_c_array__`, such as a record batch; or of a dict of lists.
pub fn reader(
    data: &Bound<'_, PyAny>,
    what: &str,
    raised: &Raised,
    stop: &Stop,
) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let py = data.py();
    if let Ok(columns) = data.cast::<PyDict>() {
        let batch = values::batch(columns, what, stop)?;
        let schema = batch.schema();
        return Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
    }
    let reader: Box<dyn RecordBatchReader + Send> = if data.get_type().fully_qualified_name()? == PYARROW_READER {
        Box::new(OfPyarrow::new(data, what, raised)?)
    } else if data.hasattr("__arrow_c_stream__")? {
        Box::new(streamed(&data.call_method0("__arrow_c_stream__")?, what)?)
    } else if data.hasattr("__arrow_c_array__")? {
        let batch = whole(&data.call_method0("__arrow_c_array__")?, what)?;
        let schema = batch.schema();
        Box::new(RecordBatchIterator::new([Ok(batch)], schema))
    } else {
        let kind = data.get_type().fully_qualified_name()?;
        let message =
            format!("{what} is a {kind}; give a dict of lists, or a data frame, a table or a record batch of Arrow");
        return Err(errors::invalid(py, message));
    };
    let schema = reader.schema();
    let fields = schema.fields().iter().enumerate();
    let kept =
        fields.filter(|(_, field)| !field.name().starts_with(PANDAS_INDEX)).map(|(at, _)| at).collect::<Vec<_>>();
    let schema = schema.project(&kept).map_err(|error| failed(py, what, &error))?.into();
    Ok(Box::new(Checked { reader, kept, schema }))
}

fn streamed(capsule: &Bound<'_, PyAny>, what: &str) -> PyResult<Streamed> {
    let py = capsule.py();
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| not_arrow(py, what))?;
    let pointer = capsule.pointer_checked(Some(STREAM)).map_err(|_| not_arrow(py, what))?;
    // SAFETY: a capsule of this name has an initialised stream. `from_raw` takes it out and marks it as released, as the interface asks of a
    // consumer, and the interpreter lock is held meanwhile. A stream that was taken before is released, which is an error.
    let arrays = unsafe { ArrayStreamReader::from_raw(pointer.cast::<FFI_ArrowArrayStream>().as_ptr()) };
    let arrays = arrays.map_err(|error| failed(py, what, &error))?;
    let DataType::Struct(fields) = arrays.field().data_type() else {
        return Err(errors::invalid(py, format!("{what} {WITHOUT_COLUMNS}")));
    };
    Ok(Streamed { schema: Arc::new(Schema::new(fields.clone())), arrays })
}

/// A reader of pyarrow, such as one of a generator.
const PYARROW_READER: &str = "pyarrow.lib.RecordBatchReader";

/// The batches of a reader of pyarrow. They are taken one by one, and not as a stream of Arrow, in which an exception of the user's
/// generator would be a text.
struct OfPyarrow {
    reader: Py<PyAny>,
    schema: SchemaRef,
    what: String,
    raised: Raised,
}

impl OfPyarrow {
    fn new(reader: &Bound<'_, PyAny>, what: &str, raised: &Raised) -> PyResult<Self> {
        let py = reader.py();
        let capsule = reader.getattr("schema")?.call_method0("__arrow_c_schema__")?;
        let capsule = capsule.cast::<PyCapsule>().map_err(|_| not_arrow(py, what))?;
        let pointer = capsule.pointer_checked(Some(SCHEMA)).map_err(|_| not_arrow(py, what))?;
        // SAFETY: a capsule of this name has an initialised schema, which is only read, and `capsule` keeps it alive.
        let schema = unsafe { Schema::try_from(pointer.cast::<FFI_ArrowSchema>().as_ref()) };
        let schema = schema.map_err(|error| failed(py, what, &error))?.into();
        Ok(Self { reader: reader.clone().unbind(), schema, what: what.to_owned(), raised: raised.clone() })
    }

    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        match self.reader.bind(py).call_method0("read_next_batch") {
            Ok(batch) => whole(&batch.call_method0("__arrow_c_array__")?, &self.what).map(Some),
            Err(end) if end.is_instance_of::<PyStopIteration>(py) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl RecordBatchReader for OfPyarrow {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Iterator for OfPyarrow {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // None while the interpreter shuts down.
        let batch = Python::try_attach(|py| self.next_batch(py))?;
        batch.map_err(|exception| self.raised.note(exception)).transpose()
    }
}

/// A stream of rows. Arrow's own reader of record batches takes rows that are null for rows.
struct Streamed {
    arrays: ArrayStreamReader,
    schema: SchemaRef,
}

impl RecordBatchReader for Streamed {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Iterator for Streamed {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.arrays.next()?.and_then(|array| match array.as_struct_opt() {
            Some(rows) if rows.null_count() == 0 => Ok(RecordBatch::from(rows)),
            Some(_) => Err(ArrowError::InvalidArgumentError(NULL_ROWS.into())),
            None => Err(ArrowError::InvalidArgumentError(WITHOUT_COLUMNS.into())),
        }))
    }
}

const WITHOUT_COLUMNS: &str = "is an array of Arrow without columns; give a table or a record batch";

const NULL_ROWS: &str = "is an array of Arrow in which rows are null; give a table or a record batch";

fn whole(capsules: &Bound<'_, PyAny>, what: &str) -> PyResult<RecordBatch> {
    let py = capsules.py();
    let capsules = capsules.cast::<PyTuple>().map_err(|_| not_arrow(py, what))?;
    let capsule = |at: usize, name: &'static CStr| {
        let item = capsules.get_item(at).map_err(|_| not_arrow(py, what))?;
        let capsule = item.cast_into::<PyCapsule>().map_err(|_| not_arrow(py, what))?;
        capsule.pointer_checked(Some(name)).map_err(|_| not_arrow(py, what))
    };
    let schema = capsule(0, SCHEMA)?.cast::<FFI_ArrowSchema>();
    let array = capsule(1, ARRAY)?.cast::<FFI_ArrowArray>();
    // SAFETY: capsules of these names have an initialised array and its schema. `from_raw` takes the array out and marks it as released; the
    // schema is only read. `capsules` keeps both alive.
    let data = unsafe {
        if array.as_ref().is_released() {
            return Err(errors::invalid(py, format!("{what} was read already")));
        }
        from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref())
    };
    let data = data.map_err(|error| failed(py, what, &error))?;
    if !matches!(data.data_type(), DataType::Struct(_)) {
        return Err(errors::invalid(py, format!("{what} {WITHOUT_COLUMNS}")));
    }
    data.validate_full().map_err(|error| failed(py, what, &error))?;
    if data.null_count() > 0 {
        return Err(errors::invalid(py, format!("{what} {NULL_ROWS}")));
    }
    Ok(RecordBatch::from(StructArray::from(data)))
}

/// A reader whose batches are checked, and which leaves out the index of pandas.
struct Checked {
    reader: Box<dyn RecordBatchReader + Send>,
    kept: Vec<usize>,
    schema: SchemaRef,
}

impl RecordBatchReader for Checked {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Iterator for Checked {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?.and_then(|batch| {
            let batch = batch.project(&self.kept)?;
            // Offsets and texts: others take them as they are.
            batch.columns().iter().try_for_each(|column| column.to_data().validate_full())?;
            Ok(batch)
        });
        Some(batch)
    }
}

fn not_arrow(py: Python<'_>, what: &str) -> PyErr {
    errors::invalid(py, format!("{what} does not keep to Arrow's PyCapsule interface"))
}

/// The exception of data that cannot be taken over.
pub fn failed(py: Python<'_>, what: &str, error: &ArrowError) -> PyErr {
    errors::invalid(py, format!("{what} cannot be read: {error}"))
}
