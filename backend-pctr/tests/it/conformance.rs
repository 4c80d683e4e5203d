//! The whole conformance suite on every era of the driver with every CPU it knows counters of.

use std::sync::Arc;

use quipu_conformance::{Ability, Fixture, Missing, all, run};
use quipu_hal::{Features, Simultaneity, TargetKinds};
use quipu_pctr::simulation::{Era, Processor};

use crate::simulated_pctr::Machine;

/// Runs the suite; what was skipped has to have a reason that this machine has.
fn conforms(era: Era, processor: Processor) {
    let fixture: Arc<dyn Fixture> = Arc::new(Machine::new(era, processor).unwrap());
    let report = run(&fixture, all());
    assert_eq!(
        report.failed().count(),
        0,
        "{era:?} {processor:?}\n{report}"
    );

    let tasks = TargetKinds::CURRENT_THREAD | TargetKinds::THREAD | TargetKinds::PROCESS;
    let other_cpus = TargetKinds::CPU | TargetKinds::ALL_CPUS | TargetKinds::CGROUP;
    let absent =
        Features::INHERIT | Features::ENABLE_ON_EXEC | Features::ANY_THREAD | Features::USER_READS;
    let unconstrained = matches!(processor, Processor::P5 | Processor::K8);
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
            Missing::Ability(ability) => {
                matches!(ability, Ability::InheritanceProbe | Ability::CountedLoop)
            }
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
    let machines = Era::machines().filter(|(era, processor)| era.counters(*processor) > 0);
    let mut number = 0;
    for (era, processor) in machines {
        conforms(era, processor);
        number += 1;
    }
    assert_eq!(number, 18);
}
