//! Counts.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use quipu::EventCount;

/// An event, as all of its counts have it.
pub(crate) struct Described {
    pub(crate) name: String,
    unit: String,
    scale: f64,
    user_mode_only: bool,
}

impl Described {
    pub(crate) fn of(event: &quipu::SetEvent) -> Self {
        let info = event.info();
        Self {
            name: event.name().to_owned(),
            unit: info.map(|info| info.unit.to_string()).unwrap_or_default(),
            scale: info.map_or(1.0, |info| info.scale),
            user_mode_only: event.fell_back_to_user(),
        }
    }

    /// Returns true if values are whole numbers of the unit.
    pub(crate) fn is_plain(&self) -> bool {
        self.scale == 1.0
    }
}

/// A count of an event, with what it is.
#[pyclass(frozen, module = "quipu")]
#[derive(Clone)]
pub(crate) struct Count {
    of: Arc<Described>,
    count: Option<quipu::Count>,
    error: Option<quipu::Error>,
}

impl Count {
    pub(crate) fn of(described: &Arc<Described>, event: &EventCount<'_>) -> Self {
        let (count, error) = match event.total() {
            Ok(count) => (Some(count), None),
            Err(error) => (None, Some(error)),
        };
        let of = Arc::clone(described);
        Self { of, count, error }
    }
}

#[pymethods]
impl Count {
    /// The event, as it was asked for.
    #[getter]
    pub(crate) fn event(&self) -> &str {
        &self.of.name
    }

    /// The kind of the value: exact, estimated, at_least, partial, or where there is none not_counted or not_read.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.count {
            Some(quipu::Count::Exact(_)) => "exact",
            Some(quipu::Count::Estimated(_)) => "estimated",
            Some(quipu::Count::AtLeast(_)) => "at_least",
            Some(quipu::Count::Partial { .. }) => "partial",
            Some(_) => "not_counted",
            None => "not_read",
        }
    }

    /// The value in its unit, of any kind; None if there is none.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(value) = self.count.and_then(quipu::Count::value) else {
            return Ok(None);
        };
        if !self.of.is_plain() {
            return Ok(Some(
                PyFloat::new(py, value as f64 * self.of.scale).into_any(),
            ));
        }
        // Numbers of 128 bits take several steps to make.
        let number: Bound<'py, PyInt> = match u64::try_from(value) {
            Ok(value) => value.into_pyobject(py)?,
            Err(_) => value.into_pyobject(py)?,
        };
        Ok(Some(number.into_any()))
    }

    /// The value if it is a fact, else None.
    #[getter]
    fn exact<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.count {
            Some(quipu::Count::Exact(_)) => self.value(py),
            _ => Ok(None),
        }
    }

    /// The unit of the value; empty for a plain count.
    #[getter]
    fn unit(&self) -> &str {
        &self.of.unit
    }

    /// The number of parts of the target that have no value, if others have.
    #[getter]
    fn missing(&self) -> usize {
        self.count.map_or(0, quipu::Count::missing)
    }

    /// True if user mode alone was counted, as more is not permitted.
    #[getter]
    fn user_mode_only(&self) -> bool {
        self.of.user_mode_only
    }

    /// Why it could not be opened or read, with what would help; None if it was.
    #[getter]
    pub(crate) fn error(&self) -> Option<String> {
        self.error.as_ref().map(|error| format!("{error:#}"))
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.exact(py)? {
            Some(value) if self.of.is_plain() => Ok(value),
            Some(_) => Err(PyValueError::new_err(format!(
                "{} has fractions: use float()",
                self.of.name
            ))),
            None => Err(self.no_fact()),
        }
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        self.exact(py)?.ok_or_else(|| self.no_fact())?.extract()
    }

    pub(crate) fn __str__(&self) -> String {
        let Some(count) = self.count else {
            return "<not read>".to_owned();
        };
        let number = match count.value() {
            // Marks are before and behind the digits.
            Some(value) if !self.of.is_plain() => {
                let whole = count.to_string();
                let digits = |c: char| c.is_ascii_digit() || c == ',';
                let before = whole.find(digits).unwrap_or(0);
                let behind = whole[before..]
                    .find(|c| !digits(c))
                    .map_or("", |at| &whole[before + at..]);
                format!(
                    "{}{}{behind}",
                    &whole[..before],
                    value as f64 * self.of.scale
                )
            }
            _ => count.to_string(),
        };
        match (self.of.unit.as_str(), count.value()) {
            ("", _) | (_, None) => number,
            (unit, _) => format!("{number} {unit}"),
        }
    }

    pub(crate) fn __repr__(&self) -> String {
        format!(
            "<quipu.Count {}: {self}, {}>",
            self.of.name,
            self.kind(),
            self = self.__str__()
        )
    }
}

impl Count {
    fn no_fact(&self) -> PyErr {
        let why = match &self.error {
            Some(error) => format!("{error:#}"),
            None => format!("it is {}", self.__str__()),
        };
        PyValueError::new_err(format!("{} has no exact count: {why}", self.of.name))
    }
}
