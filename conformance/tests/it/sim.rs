//! The suite over the virtual PMU, with the simulated one beneath.

use std::sync::Arc;

use quipu_conformance::fixtures::SimFixture;
use quipu_conformance::{Ability, Fixture, Missing, all, run};
use quipu_hal::{Features, TargetKinds};

/// Targets that registers of a CPU cannot have: they count whatever runs.
const TASK_TARGETS: TargetKinds = TargetKinds::CURRENT_THREAD
    .union(TargetKinds::THREAD)
    .union(TargetKinds::PROCESS)
    .union(TargetKinds::CGROUP);
/// And it takes no system call to read memory, so there is one way of reading only.
const TASK_FEATURES: Features = Features::INHERIT
    .union(Features::INHERIT_THREAD)
    .union(Features::ENABLE_ON_EXEC)
    .union(Features::REMOVE_ON_EXEC)
    .union(Features::USER_READS);

/// Runs the suite; only what is excused may be skipped.
fn conforms(fixture: SimFixture, targets: TargetKinds, features: Features) {
    let fixture: Arc<dyn Fixture> = Arc::new(fixture);
    let report = run(&fixture, all());
    println!("{report}");
    assert_eq!(report.failed().count(), 0, "{report}");
    let capabilities = fixture.backend().capabilities();
    for (check, missing) in report.skipped() {
        assert!(
            !missing.is_claimed_by(capabilities),
            "{} was skipped",
            check.id
        );
        let excused = match missing {
            Missing::Target(kinds) => targets.contains(kinds),
            Missing::Features(missing) => features.contains(missing),
            Missing::Ability(ability) => {
                matches!(ability, Ability::InheritanceProbe | Ability::CountedLoop)
            }
            Missing::Inapplicable(_) => true,
            _ => false,
        };
        // Nothing zeroes a simulated register but a wrap.
        let excused = excused || check.area() == "interference";
        assert!(excused, "{} was skipped: {missing}", check.id);
    }
}

#[test]
fn the_virtual_pmu_conforms() {
    conforms(SimFixture::new(), TASK_TARGETS, TASK_FEATURES);
}

#[test]
fn the_virtual_pmu_conforms_where_only_the_measuring_thread_reaches_the_registers() {
    let cpus = TargetKinds::CPU | TargetKinds::ALL_CPUS;
    conforms(
        SimFixture::tied_to_its_thread(),
        TASK_TARGETS | cpus,
        TASK_FEATURES | Features::ANY_THREAD,
    );
}
