//! Event sets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use quipu::{Counts, Error, ErrorKind, Target};

use crate::count::{Count, Described};
use crate::failure::raised;
use crate::reading::Reading;

/// Events that are counted together, in the calling thread, a process (`pid`) or a thread (`tid`).
///
/// Events are written as for `quipu stat -e`: names of any kind with commas between them, and groups in braces. An event that cannot
/// be counted keeps its error in each count, unless `require_all` refuses it. `inherit` counts threads and processes that the
/// target starts later; `formulas` are names for formulas over events. Where counting the kernel is not permitted, user mode alone
/// is counted, and each count says so.
///
/// A set is used by one thread at a time. It is closed by close(), at the end of a with block, or when nothing refers to it.
#[pyclass(frozen, subclass, module = "quipu")]
pub(crate) struct EventSet {
    events: Vec<Arc<Described>>,
    /// None when it is closed. It is never waited for: another thread may have it in a process that forks.
    open: Mutex<Option<Open>>,
}

struct Open {
    set: quipu::EventSet,
    counts: Counts,
}

fn refused(attempted: &str, reason: &str) -> Error {
    Error::new(ErrorKind::InvalidConfiguration, attempted).with_reason(reason)
}

impl EventSet {
    fn lock(&self) -> quipu::Result<MutexGuard<'_, Option<Open>>> {
        match self.open.try_lock() {
            Ok(open) => Ok(open),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Error::new(ErrorKind::Busy, "use an event set")
                .with_reason("another thread uses it at this moment")),
        }
    }

    /// Calls a function with the open set, while other threads of Python run.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Open) -> quipu::Result<T> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| match self.lock()?.as_mut() {
            Some(open) => call(open),
            None => Err(refused("use an event set", "it is closed")),
        });
        done.map_err(|error| raised(py, &error))
    }

    /// Reads a count of each event, in the order of the request.
    pub(crate) fn counts(&self, py: Python<'_>) -> PyResult<Vec<Count>> {
        self.with(py, |open| {
            open.set.read(&mut open.counts)?;
            let counts = self.events.iter().zip(open.counts.events());
            Ok(counts
                .map(|(described, count)| Count::of(described, &count))
                .collect())
        })
    }
}

#[pymethods]
impl EventSet {
    #[new]
    #[pyo3(signature = (events, *, pid=None, tid=None, inherit=false, user_mode_fallback=true, require_all=false, formulas=None))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        events: &str,
        pid: Option<i32>,
        tid: Option<i32>,
        inherit: bool,
        user_mode_fallback: bool,
        require_all: bool,
        formulas: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let open = || {
            let target = match (pid, tid) {
                (None, None) => Target::CurrentThread,
                (Some(pid), None) => Target::Process(pid),
                (None, Some(tid)) => Target::Thread(tid),
                (Some(_), Some(_)) => {
                    return Err(refused(
                        "open an event set",
                        "it counts a process or a thread, not both",
                    ));
                }
            };
            let mut builder = quipu::EventSet::builder();
            for (name, formula) in formulas.unwrap_or_default() {
                builder.preset(name, &formula)?;
            }
            builder
                .events(events)?
                .target(target)
                .inherit(inherit)
                .user_mode_fallback(user_mode_fallback);
            let set = match require_all {
                true => builder.open_all()?,
                false => builder.open()?,
            };
            if set.events().is_empty() {
                return Err(refused("open an event set", "no event is named"));
            }
            let counts = set.counts();
            Ok(Open { set, counts })
        };
        let open = py.detach(open).map_err(|error| raised(py, &error))?;
        let events = open
            .set
            .events()
            .iter()
            .map(|event| Arc::new(Described::of(event)));
        Ok(Self {
            events: events.collect(),
            open: Mutex::new(Some(open)),
        })
    }

    /// The events, as they were asked for.
    #[getter]
    fn events(&self) -> Vec<&str> {
        self.events
            .iter()
            .map(|event| event.name.as_str())
            .collect()
    }

    /// Starts counting; values go on from where they are.
    pub(crate) fn start(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |open| open.set.enable())
    }

    /// Stops counting.
    pub(crate) fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |open| open.set.disable())
    }

    /// Sets all values to zero.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |open| open.set.reset())
    }

    /// Returns what was counted since the last reset.
    fn read(&self, py: Python<'_>) -> PyResult<Reading> {
        self.counts(py).map(Reading::of)
    }

    /// Returns the plain values, if each event was counted all the time; else the error of the first that was not.
    ///
    /// A formula that may have fractions has no plain value: read() has it.
    fn values(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        if let Some(event) = self.events.iter().find(|event| !event.is_plain()) {
            let attempted = format!("return the plain value of {}", event.name);
            return Err(raised(
                py,
                &refused(
                    &attempted,
                    "it has fractions: read() returns it in its unit",
                ),
            ));
        }
        self.with(py, |open| {
            let mut values = vec![0; self.events.len()];
            if !open.set.read_exact(&mut open.counts, &mut values)? {
                for (event, value) in open.counts.events().zip(&mut values) {
                    *value = event.value()?;
                }
            }
            Ok(values)
        })
    }

    /// Closes the counters. What is closed already stays so.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = py.detach(|| Ok(self.lock()?.take()));
        open.map(drop).map_err(|error| raised(py, &error))
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().start(slf.py())?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*_failure))]
    fn __exit__(&self, py: Python<'_>, _failure: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}

impl Drop for EventSet {
    fn drop(&mut self) {
        // A panic of a call left it locked; what it has is given back all the same.
        drop(
            self.open
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}
