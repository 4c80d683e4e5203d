//! Systems on which no backend samples.

use std::convert::Infallible;
#[cfg(unix)]
use std::iter::Empty;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::time::Duration;

use quipu_hal::{Error, ErrorKind, Result, Target, Woken};

use super::{Sample, SamplerBuilder};

/// A sampler that cannot be opened.
#[derive(Debug)]
pub(super) struct Open(Infallible);

impl Open {
    pub(super) const BACKEND: &str = "";

    pub(super) fn new(_: &SamplerBuilder) -> Result<Self> {
        Err(Error::new(ErrorKind::UnsupportedFeature, "sample")
            .with_reason("no backend of this system takes samples"))
    }

    pub(super) fn attach(&mut self, _: &Target) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn enable(&mut self) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn disable(&mut self) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn drain(&mut self, _: impl FnMut(&Sample<'_>)) -> Result<()> {
        match self.0 {}
    }

    /// Returns at once: the list is empty, as there is no sampler.
    pub(super) fn wait_any(open: &mut [&mut Self], _: Option<Duration>) -> Result<Woken> {
        match open {
            [] => Ok(Woken::Ended),
            [open, ..] => match open.0 {},
        }
    }

    #[cfg(unix)]
    pub(super) fn descriptors(&self) -> Empty<BorrowedFd<'_>> {
        match self.0 {}
    }

    pub(super) fn jumped(&self) -> u64 {
        match self.0 {}
    }

    pub(super) fn lost(&self) -> u64 {
        match self.0 {}
    }
}
