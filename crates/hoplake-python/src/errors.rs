//! Errors as exceptions of Python.

use hoplake::{Error, ErrorKind, Reason};
use pyo3::{prelude::*, types::PyDict};

/// The exception of an error.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error).unwrap_or_else(|failed| failed)
}

/// The exception of a panic.
pub fn panicked(py: Python<'_>, message: &str) -> PyErr {
    let made = || {
        let errors = py.import("hoplake._errors")?;
        let message = format!("a bug in Hoplake: {message}");
        Ok(PyErr::from_value(errors.call_method1("make", ("internal", message))?))
    };
    made().unwrap_or_else(|failed: PyErr| failed)
}

/// The exception of a wrong argument.
pub fn invalid(py: Python<'_>, message: impl Into<String>) -> PyErr {
    let made = || {
        let errors = py.import("hoplake._errors")?;
        Ok(PyErr::from_value(errors.call_method1("make", ("invalid", message.into()))?))
    };
    made().unwrap_or_else(|failed: PyErr| failed)
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let kind = match error.kind() {
        ErrorKind::Invalid => "invalid",
        ErrorKind::NotFound => "not_found",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Unknown => "unknown",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Limit => "limit",
        ErrorKind::Corrupt => "corrupt",
        ErrorKind::Internal => "internal",
    };
    let details = PyDict::new(py);
    details.set_item("reason", error.reason().map(Reason::name))?;
    details.set_item("operation", error.operation())?;
    details.set_item("row", error.row())?;
    details.set_item("item", error.item())?;
    details.set_item("location", error.location().map(ToString::to_string))?;
    let errors = py.import("hoplake._errors")?;
    let arguments = (kind, error.to_string());
    Ok(PyErr::from_value(errors.getattr("make")?.call(arguments, Some(&details))?))
}
