//! Arrow's PyCapsule interface, in both directions. Buffers are shared, not copied.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>

#![expect(unsafe_code, reason = "Arrow's C interface")]

use std::ffi::CStr;

use arrow_array::{
    RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray,
    ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi},
    ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader},
};
use arrow_schema::{ArrowError, Schema};
use pyo3::{
    prelude::*,
    types::{PyCapsule, PyTuple},
};

use crate::errors;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// A stream of record batches as a capsule. What a consumer leaves is dropped with the capsule.
pub fn stream<'py>(py: Python<'py>, reader: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// A schema as a capsule.
pub fn schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| failed(py, "an Arrow schema", &error))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// A reader of whatever has `__arrow_c_stream__`, such as a data frame, or `__arrow_c_array__`, such as a record batch.
pub fn reader(data: &Bound<'_, PyAny>, what: &str) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let py = data.py();
    if data.hasattr("__arrow_c_stream__")? {
        let capsule = data.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
        let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>().as_ptr();
        // SAFETY: a capsule of this name has an initialised stream. `from_raw` takes it out and marks it as released, as the interface asks
        // of a consumer, and the interpreter lock is held meanwhile.
        let reader = unsafe { RecordBatchStreamReader::from_raw(pointer) };
        return Ok(Box::new(reader.map_err(|error| failed(py, what, &error))?));
    }
    if data.hasattr("__arrow_c_array__")? {
        let capsules = data.call_method0("__arrow_c_array__")?.cast_into::<PyTuple>()?;
        let [schema, array] = [capsules.get_item(0)?, capsules.get_item(1)?];
        let schema = schema.cast_into::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
        let array = array.cast_into::<PyCapsule>()?.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
        // SAFETY: capsules of these names have an initialised array and its schema. `from_raw` takes the array out and marks it as
        // released; the schema is only read. `capsules` keeps both alive.
        let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
        let data = data.map_err(|error| failed(py, what, &error))?;
        let batch = RecordBatch::from(StructArray::from(data));
        let schema = batch.schema();
        return Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
    }
    let kind = data.get_type().name()?;
    let message =
        format!("{what} is a {kind}; give a data frame, a table or a record batch of Arrow (__arrow_c_stream__)");
    Err(errors::invalid(py, message))
}

/// The exception of data that cannot be taken over.
pub fn failed(py: Python<'_>, what: &str, error: &ArrowError) -> PyErr {
    errors::invalid(py, format!("{what} cannot be read: {error}"))
}
