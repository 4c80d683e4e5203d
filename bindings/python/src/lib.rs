//! The native part of the Python module quipu: event sets, readings, regions, samples, and what the machine can count. The rest is Python,
//! in `python/quipu`.

mod count;
mod event_set;
mod failure;
mod machine;
mod reading;
mod region;
#[cfg(target_os = "linux")]
mod sampling;

/// Makes the module. It is used by one interpreter of a process: others refuse to import it.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::count::Count;
    #[pymodule_export]
    use crate::event_set::EventSet;
    #[pymodule_export]
    use crate::failure::Error;
    #[pymodule_export]
    use crate::machine::{info, list_events};
    #[pymodule_export]
    use crate::reading::{Measure, Reading};
    #[pymodule_export]
    use crate::region::{region_begin, region_end, region_events, region_number, region_report};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::sampling::{Samples, Sampling};
}
