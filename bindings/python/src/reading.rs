//! Readings of event sets, and blocks that become one.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::OnceLock;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyTuple};

use crate::count::Count;
use crate::event_set::EventSet;

/// The counts of an event set: a mapping from the events, as they were asked for, to their counts.
#[pyclass(frozen, mapping, subclass, module = "quipu")]
#[derive(Default)]
pub(crate) struct Reading {
    /// None before the end of a block. They become objects of Python when they are asked for: most readings are taken for one of them.
    counts: OnceLock<Vec<Count>>,
}

impl Reading {
    pub(crate) fn of(counts: Vec<Count>) -> Self {
        Self {
            counts: counts.into(),
        }
    }

    fn all(&self) -> &[Count] {
        self.counts.get().map_or(&[], Vec::as_slice)
    }

    fn find(&self, event: &Bound<'_, PyAny>) -> Option<Count> {
        let name: Cow<'_, str> = event.extract().ok()?;
        self.all()
            .iter()
            .find(|count| count.event() == name)
            .cloned()
    }
}

/// Returns one of Python's views of a mapping.
fn view<'py>(reading: &Bound<'py, Reading>, kind: &str) -> PyResult<Bound<'py, PyAny>> {
    let module = reading.py().import("collections.abc")?;
    module.getattr(kind)?.call1((reading,))
}

#[pymethods]
impl Reading {
    /// The counts in the order of the request.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.all().iter().cloned())
    }

    fn __getitem__(&self, event: &Bound<'_, PyAny>) -> PyResult<Count> {
        let missing = || PyKeyError::new_err(event.clone().unbind());
        self.find(event).ok_or_else(missing)
    }

    /// Returns the count of an event, or another object if it was not asked for.
    #[pyo3(signature = (event, default=None))]
    fn get<'py>(
        &self,
        event: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.find(event) {
            Some(count) => Ok(Some(Bound::new(event.py(), count)?.into_any())),
            None => Ok(default),
        }
    }

    fn __contains__(&self, event: &Bound<'_, PyAny>) -> bool {
        self.find(event).is_some()
    }

    fn __len__(&self) -> usize {
        self.all().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.all().iter().map(Count::event))?.try_iter()
    }

    /// Returns a view of the events.
    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "KeysView")
    }

    /// Returns a view of the counts.
    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "ValuesView")
    }

    /// Returns a view of the events with their counts.
    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "ItemsView")
    }

    fn __str__(&self) -> String {
        let rows: Vec<_> = self
            .all()
            .iter()
            .map(|count| (count.__str__(), count))
            .collect();
        let width = rows.iter().map(|(value, _)| value.chars().count()).max();
        let names = rows
            .iter()
            .map(|(_, count)| count.event().chars().count())
            .max();
        let (width, names) = (width.unwrap_or(0), names.unwrap_or(0));
        let mut text = String::new();
        for (value, count) in &rows {
            let error = count.error().unwrap_or_default();
            let line = format!("{value:>width$}  {:<names$}  {error}", count.event());
            let between = if text.is_empty() { "" } else { "\n" };
            let _ = write!(text, "{between}{}", line.trim_end());
        }
        text
    }

    fn __repr__(&self) -> String {
        let counts: Vec<_> = self.all().iter().map(Count::__repr__).collect();
        format!("<quipu.Reading [{}]>", counts.join(", "))
    }
}

/// Counts events while a with block runs, and is the reading then.
///
///     with quipu.measure("page-faults,instructions:u") as measured:
///         work()
///     print(measured["page-faults"])
///
/// The arguments are those of EventSet. In the block, and after an exception, nothing is read yet: the reading is empty.
#[pyclass(frozen, extends = Reading, name = "measure", module = "quipu")]
pub(crate) struct Measure {
    set: Py<EventSet>,
}

#[pymethods]
impl Measure {
    #[new]
    #[pyo3(signature = (events="instructions,cycles", **options))]
    fn new(
        py: Python<'_>,
        events: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Self, Reading)> {
        let set = py.get_type::<EventSet>().call((events,), options)?;
        let set = set.cast_into::<EventSet>()?.unbind();
        Ok((Self { set }, Reading::default()))
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().set.get().start(slf.py())?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (kind, *_rest))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: Option<&Bound<'_, PyAny>>,
        _rest: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let (py, set) = (slf.py(), slf.get().set.get());
        let counts = match kind {
            None => set.stop(py).and_then(|()| set.counts(py)).map(Some),
            Some(_) => Ok(None),
        };
        set.close(py)?;
        if let Some(counts) = counts? {
            // It is closed from the first time on, so that there is no second one.
            let _ = slf.as_super().get().counts.set(counts);
        }
        Ok(())
    }
}
