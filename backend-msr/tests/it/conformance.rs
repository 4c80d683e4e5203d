//! The conformance suite over the simulated register file of every generation.

use std::sync::Arc;

use quipu_conformance::{Ability, Fixture, Missing, all, run};
use quipu_hal::{Features, TargetKinds};
use quipu_msr::sim::Generation;

use crate::simulated_msr::SimulatedMsrFixture;

#[test]
fn every_generation_conforms() {
    for &generation in Generation::ALL {
        let machine = SimulatedMsrFixture::new(generation).unwrap();
        assert!(machine.description().contains("counters"), "{generation:?}");
        let fixture: Arc<dyn Fixture> = Arc::new(machine);
        let report = run(&fixture, all());
        assert_eq!(report.failed().count(), 0, "{generation:?}: {report}");

        // Registers of a CPU know nothing of tasks; everything else has to be there.
        let tasks = TargetKinds::CURRENT_THREAD | TargetKinds::THREAD | TargetKinds::PROCESS;
        let on_exec = Features::INHERIT
            | Features::INHERIT_THREAD
            | Features::REMOVE_ON_EXEC
            | Features::ENABLE_ON_EXEC
            | Features::USER_READS;
        for (check, missing) in report.skipped() {
            let excused = match missing {
                Missing::Target(kinds) => (tasks | TargetKinds::CGROUP).contains(kinds),
                Missing::Features(features) => on_exec.contains(features),
                // What a jump is follows from rates and times, which the simulated PMU tries.
                Missing::Ability(ability) => matches!(
                    ability,
                    Ability::InheritanceProbe | Ability::CountedLoop | Ability::Jump
                ),
                Missing::Simultaneity(_) | Missing::Inapplicable(_) => true,
                _ => false,
            };
            // Whoever else counts with these registers writes their controls, which `errors.interference` is
            // about.
            let excused = excused || check.area() == "interference";
            assert!(
                excused,
                "{generation:?}: {} was skipped: {missing}",
                check.id
            );
        }
    }
}
