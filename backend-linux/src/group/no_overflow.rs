//! A build without signals for overflows: they are refused.

use std::convert::Infallible;
use std::sync::Arc;

use quipu_hal::{Error, ErrorKind, EventSpec, GroupSpec, OverflowSignal, Overflows, Result};

use crate::sys::{CounterFd, PerfEventAttr};

/// Refuses groups of which a member is to send signals.
pub(crate) fn check(spec: &GroupSpec, _: bool) -> Result<()> {
    match spec
        .members
        .iter()
        .position(|event| event.overflow.is_some())
    {
        Some(member) => Err(refused(&spec.members[member]).with_member(member)),
        None => Ok(()),
    }
}

fn refused(event: &EventSpec) -> Error {
    let attempted = format!("have a signal sent for overflows of {event}");
    Error::new(ErrorKind::UnsupportedFeature, attempted)
        .with_reason("Quipu was built without samples and overflows")
}

pub(crate) fn is_asked_for(_: &GroupSpec) -> bool {
    false
}

pub(crate) fn request(_: &mut PerfEventAttr, _: &EventSpec) {}

/// The ring of an overflowing counter: there is never one.
#[derive(Debug)]
pub(crate) struct OverflowRing(Infallible);

/// A ring that others than its group may hold.
pub(crate) type SharedRing = OverflowRing;

/// Returns a ring for another holder.
pub(crate) fn shared(ring: &SharedRing) -> Arc<dyn Overflows> {
    match ring.0 {}
}

impl OverflowRing {
    pub(crate) fn new(
        _: &CounterFd,
        _: Option<&CounterFd>,
        _: OverflowSignal,
        _: bool,
    ) -> Result<Self> {
        let attempted = "have a signal sent for overflows";
        Err(Error::new(ErrorKind::UnsupportedFeature, attempted))
    }

    pub(crate) fn enable(&self) -> Result<(), i32> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use quipu_hal::Software;

    use super::*;

    #[test]
    fn a_member_that_is_to_send_signals_is_refused() {
        let plain = EventSpec::new(Software::PageFaults);
        let spec = GroupSpec::new([plain.clone()]);
        assert_eq!(check(&spec, true), Ok(()));
        let signals = plain.clone().with_overflow(OverflowSignal::new(1000, 10));
        let refused = check(&GroupSpec::new([plain, signals]), true).expect_err("no such build");
        assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
        assert_eq!(refused.member(), Some(1));
    }
}
