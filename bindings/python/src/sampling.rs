//! Samples of a thread and its stacks as text.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::prelude::*;
use quipu::{Error, ErrorKind};
use quipu_profile::report::Profile;
use quipu_profile::sampling::{self, Options};

use crate::failure::raised;

/// The longest time until a sampler notices that it is to stop.
const PATIENCE: Duration = Duration::from_millis(10);

/// Samples that are being taken. A thread that was there before takes them out of the kernel's memory, so that it is not sampled.
#[pyclass(frozen, module = "quipu")]
pub(crate) struct Sampling {
    /// The process that has the thread: one that is forked has not.
    pid: u32,
    is_over: Arc<AtomicBool>,
    /// None when it was stopped.
    thread: Mutex<Option<JoinHandle<Result<sampling::Sampling, String>>>>,
}

fn failed(py: Python<'_>, reason: impl Into<String>) -> PyErr {
    let error = Error::new(ErrorKind::InvalidConfiguration, "sample this thread");
    raised(py, &error.with_reason(reason.into()))
}

#[pymethods]
impl Sampling {
    /// Starts sampling a thread.
    #[new]
    #[pyo3(signature = (tid, events, *, frequency=None, period=None, call_graph=None, inherit=false))]
    fn new(
        py: Python<'_>,
        tid: i32,
        events: Option<String>,
        frequency: Option<u64>,
        period: Option<u64>,
        call_graph: Option<String>,
        inherit: bool,
    ) -> PyResult<Self> {
        let mut options = Options::of_thread(tid);
        options.events = events;
        options.frequency = frequency;
        options.period = period;
        options.call_graph = call_graph;
        options.inherit = inherit;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let (started, starts) = mpsc::channel();
        let take = move || {
            let mut sampling = match sampling::Sampling::start(&options) {
                Ok(sampling) => sampling,
                Err(why) => return Err(why.to_string()),
            };
            // Who waits for it is there until it has started.
            let _ = started.send(());
            while !ends.load(Ordering::Acquire) {
                sampling.drain(PATIENCE).map_err(|why| why.to_string())?;
            }
            Ok(sampling)
        };
        let thread = py
            .detach(move || {
                let thread = std::thread::Builder::new()
                    .name("quipu".to_owned())
                    .spawn(take)
                    .map_err(|why| why.to_string())?;
                match starts.recv() {
                    Ok(()) => Ok(thread),
                    Err(_) => Err(taken(thread).err().unwrap_or_default()),
                }
            })
            .map_err(|why| failed(py, why))?;
        Ok(Self {
            pid: std::process::id(),
            is_over,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Stops it, and returns what was sampled.
    fn stop(&self, py: Python<'_>) -> PyResult<Samples> {
        if self.pid != std::process::id() {
            return Err(failed(
                py,
                "it is the process that has started it that is sampled",
            ));
        }
        self.is_over.store(true, Ordering::Release);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(thread) = thread else {
            return Err(failed(py, "it was stopped before"));
        };
        let stop = || taken(thread)?.stop().map_err(|why| why.to_string());
        let profile = py.detach(stop).map_err(|why| failed(py, why))?;
        Ok(Samples { profile })
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// Waits for what a thread has taken.
fn taken(
    thread: JoinHandle<Result<sampling::Sampling, String>>,
) -> Result<sampling::Sampling, String> {
    thread
        .join()
        .unwrap_or_else(|_| Err("the thread that takes the samples has failed".to_owned()))
}

/// Samples that were taken, by stack.
#[pyclass(frozen, module = "quipu")]
pub(crate) struct Samples {
    profile: Profile,
}

#[pymethods]
impl Samples {
    /// Each event with the number of its samples, and that of those that were lost.
    #[getter]
    fn events(&self) -> Vec<(&str, u64, u64)> {
        let events = self.profile.events.iter();
        events
            .map(|event| (event.name.as_str(), event.total.samples, event.lost))
            .collect()
    }

    /// Remarks on the samples: what was lost or has no names, and why.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.profile.notes.clone()
    }

    /// Returns the stacks of the event at a position as folded text.
    fn folded(&self, py: Python<'_>, event: usize) -> String {
        let event = self.profile.events.get(event);
        py.detach(|| event.map_or_else(String::new, |event| self.profile.folded(event)))
    }
}
