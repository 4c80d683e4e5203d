//! The backend on systems that are not Linux: there is none, and it says so.

use std::convert::Infallible;
use std::sync::Arc;

use quipu_hal::{
    Backend, Capabilities, Error, ErrorKind, EventInfo, EventMap, Group, GroupSpec, Part, ReadBuf,
    Result, Simultaneity, Target,
};

/// Counting with perf_event_open(2), which this system does not have: there is never a value.
#[derive(Debug)]
pub struct LinuxBackend(Infallible);

/// A group of counters of [`LinuxBackend`]: there is never a value.
#[derive(Debug)]
pub struct LinuxGroup(Infallible);

impl LinuxBackend {
    /// Fails.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice), always.
    pub fn new() -> Result<Self> {
        Err(Error::new(ErrorKind::NoSuchDevice, "use perf_event_open")
            .with_reason("this system is not Linux"))
    }

    /// Returns the backend with native event names from a database.
    #[must_use]
    pub fn with_event_map(self, _: Arc<dyn EventMap>) -> Self {
        self
    }

    /// Returns the backend with native event names from a database.
    #[must_use]
    pub fn with_event_maps(
        self,
        _: impl Fn() -> Result<Vec<Arc<dyn EventMap>>> + Send + Sync + 'static,
    ) -> Self {
        self
    }

    /// Opens a group; it cannot be called, as there is no value of this type.
    ///
    /// # Errors
    /// None.
    pub fn open_group(&self, _: &GroupSpec, _: &Target) -> Result<LinuxGroup> {
        match self.0 {}
    }
}

impl Backend for LinuxBackend {
    fn name(&self) -> &'static str {
        match self.0 {}
    }

    fn capabilities(&self) -> &Capabilities {
        match self.0 {}
    }

    fn open(&self, _: &GroupSpec, _: &Target) -> Result<Box<dyn Group>> {
        match self.0 {}
    }
}

impl Group for LinuxGroup {
    fn members(&self) -> &[EventInfo] {
        match self.0 {}
    }

    fn parts(&self) -> &[Part] {
        match self.0 {}
    }

    fn simultaneity(&self) -> Simultaneity {
        match self.0 {}
    }

    fn enable(&mut self) -> Result<()> {
        match self.0 {}
    }

    fn disable(&mut self) -> Result<()> {
        match self.0 {}
    }

    fn reset(&mut self) -> Result<()> {
        match self.0 {}
    }

    fn read(&mut self, _: &mut ReadBuf) -> Result<()> {
        match self.0 {}
    }
}
