//! The machine, and the events that it has.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use quipu::{Hardware, Machine, NativeEvents, Software};

use crate::failure::raised;

/// Returns the machine as `quipu info` has it: its CPUs in the event database, and the backends with why they cannot be used.
#[pyfunction]
pub(crate) fn info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let machine = py.detach(Machine::this);
    let selection = machine.selection();
    let cpus = PyList::empty(py);
    for cpu in selection.cpus().unwrap_or_default() {
        let entry = PyDict::new(py);
        entry.set_item("id", &cpu.id)?;
        entry.set_item("name", &cpu.name)?;
        cpus.append(entry)?;
    }
    let backends = PyList::empty(py);
    for status in machine.backends() {
        let entry = PyDict::new(py);
        let capabilities = status.backend().map(|backend| backend.capabilities());
        entry.set_item("name", status.name())?;
        entry.set_item("usable", status.backend().is_some())?;
        entry.set_item("error", status.error().map(|error| format!("{error:#}")))?;
        entry.set_item("counters", capabilities.and_then(|can| can.slots))?;
        backends.append(entry)?;
    }
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item("cpus", cpus)?;
    info.set_item("backends", backends)?;
    Ok(info)
}

/// Returns the names of events, each with its kind (software, hardware, preset, native) and a description. That this CPU has
/// them does not mean that they may be counted here: opening them says so.
#[pyfunction]
pub(crate) fn list_events(py: Python<'_>) -> PyResult<Vec<(String, &'static str, String)>> {
    py.detach(|| {
        let mut events = Vec::new();
        for event in Software::ALL {
            events.push((
                quipu::Event::from(*event).to_string(),
                "software",
                String::new(),
            ));
        }
        for event in Hardware::ALL {
            events.push((
                quipu::Event::from(*event).to_string(),
                "hardware",
                String::new(),
            ));
        }
        // Without an entry for this CPU there are no others.
        for table in NativeEvents::this().tables()? {
            for preset in table.presets() {
                let description = preset.description().unwrap_or_default().to_owned();
                events.push((preset.name.clone(), "preset", description));
            }
            for event in table.events() {
                let description = event.description().unwrap_or_default().to_owned();
                events.push((event.name.clone(), "native", description));
            }
        }
        Ok(events)
    })
    .map_err(|error: quipu::Error| raised(py, &error))
}
