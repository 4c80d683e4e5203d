//! Errors as exceptions.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(
    quipu,
    Error,
    PyException,
    "Why something could not be done."
);

/// Returns the exception for an error: its text, and `kind`, `errno` and `hint` apart.
pub(crate) fn raised(py: Python<'_>, error: &quipu::Error) -> PyErr {
    let raised = Error::new_err(error.to_string());
    let value = raised.value(py);
    let done = value
        .setattr("kind", error.kind().as_str())
        .and_then(|()| value.setattr("errno", error.errno()))
        .and_then(|()| value.setattr("hint", error.hint()));
    match done {
        Ok(()) => raised,
        Err(other) => other,
    }
}
