//! The suite over the virtual PMU, with the simulated one beneath.

use std::sync::Arc;

use quipu_conformance::subjects::SimSubject;
use quipu_conformance::{Ability, Missing, Subject, all, run};
use quipu_hal::{Features, TargetKinds};

#[test]
fn the_virtual_pmu_conforms() {
    let subject: Arc<dyn Subject> = Arc::new(SimSubject::new());
    let report = run(&subject, all());
    println!("{report}");
    assert_eq!(report.failed().count(), 0, "{report}");

    // Registers of a CPU know nothing of tasks; everything else has to be there.
    let tasks = TargetKinds::CURRENT_THREAD | TargetKinds::THREAD | TargetKinds::PROCESS;
    let on_exec = Features::INHERIT | Features::ENABLE_ON_EXEC;
    for (check, missing) in report.skipped() {
        assert!(
            !missing.is_claimed_by(subject.backend().capabilities()),
            "{}",
            check.id
        );
        let excused = match missing {
            Missing::Target(kinds) => (tasks | TargetKinds::CGROUP).contains(kinds),
            Missing::Features(features) => on_exec.contains(features),
            Missing::Ability(ability) => ability == Ability::InheritanceProbe,
            Missing::Inapplicable(_) => true,
            _ => false,
        };
        assert!(excused, "{} was skipped: {missing}", check.id);
    }
}
