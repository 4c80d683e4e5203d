//! The whole conformance suite on every era of the driver with every CPU it knows counters of.

use std::sync::Arc;

use quipu_conformance::{Ability, Fixture, Missing, all, run};
use quipu_hal::{Features, Simultaneity, TargetKinds};
use quipu_pctr::abi::{Layout, Status};
use quipu_pctr::simulation::{Era, Processor, SimDevice};
use quipu_pctr::{Claimed, CounterKind, Driver, Errno, PctrDevice};

use crate::simulated_pctr::SimulatedPctrFixture;
use crate::support::with_counters;

/// Runs the suite; what was skipped has to have a reason that this machine has.
fn conforms(era: Era, processor: Processor, machine: SimulatedPctrFixture) {
    let fixture: Arc<dyn Fixture> = Arc::new(machine);
    let report = run(&fixture, all());
    assert_eq!(
        report.failed().count(),
        0,
        "{era:?} {processor:?}\n{report}"
    );

    let tasks = TargetKinds::CURRENT_THREAD | TargetKinds::THREAD | TargetKinds::PROCESS;
    let other_cpus = TargetKinds::CPU | TargetKinds::ALL_CPUS | TargetKinds::CGROUP;
    let absent = Features::INHERIT
        | Features::INHERIT_THREAD
        | Features::REMOVE_ON_EXEC
        | Features::ENABLE_ON_EXEC
        | Features::ANY_THREAD
        | Features::USER_READS;
    let unconstrained = matches!(processor.kind(), Some(CounterKind::P5 | CounterKind::Amd));
    for (check, missing) in report.skipped() {
        assert!(
            !missing.is_claimed_by(fixture.backend().capabilities()),
            "{}",
            check.id
        );
        let excused = match missing {
            Missing::Target(kinds) => (tasks | other_cpus).contains(kinds),
            Missing::Features(features) => absent.contains(features),
            Missing::Ability(Ability::Conflict | Ability::Backtracking) => unconstrained,
            // What a jump is follows from rates and times, which the simulated PMU tries.
            Missing::Ability(ability) => matches!(
                ability,
                Ability::InheritanceProbe | Ability::CountedLoop | Ability::Jump
            ),
            // The driver reads one counter after the other.
            Missing::Simultaneity(Simultaneity::Atomic) => true,
            Missing::Inapplicable(_) => true,
            _ => false,
        };
        assert!(
            excused,
            "{era:?} {processor:?}: {} was skipped: {missing}",
            check.id
        );
    }
}

#[test]
fn every_era_conforms_on_every_cpu_with_counters() {
    let mut number = 0;
    for (era, processor) in with_counters() {
        conforms(
            era,
            processor,
            SimulatedPctrFixture::new(era, processor).unwrap(),
        );
        number += 1;
    }
    assert_eq!(number, 35);
}

/// Every reading takes a thread that gets to the CPU that is counted.
#[test]
fn since_2019_every_cpu_conforms_from_another() {
    for (era, processor) in with_counters().filter(|(era, _)| *era == Era::Amd64Of2019) {
        let machine = SimulatedPctrFixture::new(era, processor)
            .unwrap()
            .counted_from_another_cpu();
        conforms(era, processor, machine);
    }
}

/// A device whose time stamp counter says that ages have gone by since the last reading.
#[derive(Clone)]
struct Ageing(SimDevice);

impl PctrDevice for Ageing {
    fn ioctl(&self, word: u32, argument: &mut [u8]) -> Result<(), Errno> {
        self.0.ioctl(word, argument)?;
        let layouts = [Layout::Current, Layout::Legacy];
        if let Some(layout) = layouts.into_iter().find(|l| l.read_word() == word) {
            let status = Status::from_bytes(layout, argument).unwrap();
            // Resuming sets it to 0, which would be noticed.
            let time_stamp = (self.0.machine().calls() << 46) + status.time_stamp;
            let status = Status {
                time_stamp,
                ..status
            };
            argument.copy_from_slice(&status.to_bytes(layout));
        }
        Ok(())
    }

    fn cpu(&self) -> quipu_hal::Result<u32> {
        self.0.cpu()
    }

    fn is_writable(&self) -> bool {
        self.0.is_writable()
    }

    fn reader(&self) -> quipu_hal::Result<Self> {
        self.0.reader().map(Self)
    }

    fn driver(&self) -> Driver {
        self.0.driver()
    }

    fn identity(&self) -> Option<(String, u16)> {
        self.0.identity()
    }

    fn cpus_online(&self) -> usize {
        self.0.cpus_online()
    }

    fn visit_cpus(&self, visit: &(dyn Fn() -> bool + Sync)) {
        self.0.visit_cpus(visit);
    }

    fn claim(&self, counter: u8) -> Result<(), Claimed> {
        self.0.claim(counter)
    }

    fn unclaim(&self, counter: u8) {
        self.0.unclaim(counter);
    }

    fn claimed(&self, counter: u8) -> Option<Claimed> {
        self.0.claimed(counter)
    }

    fn rdpmc(&self, counter: u8) -> u64 {
        self.0.rdpmc(counter)
    }

    fn rdtsc(&self) -> u64 {
        self.0.rdtsc()
    }
}

/// A counter that was zeroed is noticed by the clock as well: there was no time for a wrap.
#[test]
fn a_zeroed_counter_is_told_where_the_time_stamp_counter_is_no_bound() {
    for (era, processor) in with_counters() {
        let fixture: Arc<dyn Fixture> =
            Arc::new(SimulatedPctrFixture::over(era, processor, Ageing).unwrap());
        let wanted = all().filter(|check| check.area() == "interference");
        let report = run(&fixture, wanted);
        assert_eq!(
            report.failed().count(),
            0,
            "{era:?} {processor:?}: {report:?}"
        );
        assert_ne!(report.passed(), 0);
    }
}
