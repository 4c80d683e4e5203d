//! A build without the test of the counters: none is known not to count, and in a virtual machine events say so.

use quipu_hal::{Error, EventInfo};
use std::convert::Infallible;
use std::sync::OnceLock;

use crate::events::EventSource;
use crate::events::Placement;
use crate::machine::privileges;
use crate::machine::sysfs::CorePmu;

const ERRATUM: &str = "Quipu was built without the test that finds counters which a hypervisor shows and does not run";

/// A test that was made: there is never one.
pub(crate) struct CounterTest {
    pub(crate) pmu: String,
    pub(crate) advertised: usize,
    pub(crate) tested: usize,
    pub(crate) counting: usize,
    never: Infallible,
}

impl CounterTest {
    pub(crate) fn has_dead_counters(&self) -> bool {
        match self.never {}
    }

    pub(crate) fn refusal(&self, _: usize) -> Error {
        match self.never {}
    }

    pub(crate) fn erratum(&self) -> String {
        match self.never {}
    }
}

pub(crate) fn known(_: impl FnOnce() -> Vec<CorePmu>) -> &'static [CounterTest] {
    &[]
}

/// Adds to each event that takes a counter of a core PMU that these were not tested, where a hypervisor may hold some.
pub(crate) fn add_errata(events: &EventSource, placements: &[Placement], infos: &mut [EventInfo]) {
    static VIRTUAL: OnceLock<bool> = OnceLock::new();
    if *VIRTUAL.get_or_init(privileges::may_be_virtual) {
        add_erratum(events, placements, infos);
    }
}

fn add_erratum(events: &EventSource, placements: &[Placement], infos: &mut [EventInfo]) {
    for (placement, info) in placements.iter().zip(infos) {
        if events.core_pmus().give_counter(placement) {
            info.errata.push(ERRATUM.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use quipu_hal::{EventSpec, Hardware, Software};

    use super::*;
    use crate::events::tests::machine;

    #[test]
    fn events_that_take_counters_say_that_these_were_not_tested() {
        let machine = machine(&[("cpu", 4, &[])]);
        let mut placements = Vec::new();
        let mut infos = Vec::new();
        let members = [
            EventSpec::new(Hardware::Cycles),
            EventSpec::new(Software::TaskClock),
        ];
        for member in &members {
            let resolved = machine.source.resolve(member).expect("portable");
            placements.push(resolved.placement);
            infos.push(resolved.info);
        }
        add_erratum(&machine.source, &placements, &mut infos);
        assert_eq!(infos[0].errata, [ERRATUM]);
        assert!(infos[1].errata.is_empty());
    }
}
