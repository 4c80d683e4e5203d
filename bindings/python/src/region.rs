//! Regions.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quipu_regions::{Region, Report};

use crate::failure::raised;

/// Returns the number of the region of a name.
#[pyfunction]
pub(crate) fn region_number(name: &str) -> u32 {
    Region::named(name).number()
}

/// Enters a region in the calling thread.
#[pyfunction]
pub(crate) fn region_begin(py: Python<'_>, number: u32) -> PyResult<()> {
    Region::of_number(number)
        .begin()
        .map_err(|error| raised(py, &error))
}

/// Leaves the region that the calling thread has entered last.
#[pyfunction]
pub(crate) fn region_end(py: Python<'_>, number: u32) -> PyResult<()> {
    Region::of_number(number)
        .end()
        .map_err(|error| raised(py, &error))
}

/// Chooses the events of regions, before the first one is entered.
#[pyfunction]
pub(crate) fn region_events(py: Python<'_>, events: &str) -> PyResult<()> {
    quipu_regions::choose_events(events).map_err(|error| raised(py, &error))
}

/// Returns what was counted in regions so far: a table, JSON or CSV.
#[pyfunction]
#[pyo3(signature = (form="table"))]
pub(crate) fn region_report(form: &str) -> PyResult<String> {
    let report = Report::now();
    match form {
        "table" => Ok(report.to_string()),
        "csv" => Ok(report.csv()),
        "json" => Ok(String::from_utf8_lossy(&report.json()?).into_owned()),
        other => Err(PyValueError::new_err(format!(
            "there is no form {other}: table, json, csv"
        ))),
    }
}
