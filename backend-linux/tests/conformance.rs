//! In a process of its own, because its checks count the whole process and the time it takes: the
//! conformance suite over perf_event_open(2), as far as this machine goes.

#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::sync::Arc;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use quipu_conformance::fixtures::LinuxFixture;
use quipu_conformance::{Fixture, all, run};
use quipu_linux::LinuxBackend;
use quipu_linux::sysfs::SysfsPmus;

#[test]
fn the_backend_conforms() {
    // The suite finds the counters that count by itself.
    let backend = match LinuxBackend::new() {
        Ok(backend) => backend.without_counter_test(),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "SKIP the_backend_conforms: {error:#}");
            return;
        }
    };
    let cores = SysfsPmus::new().core_pmus();
    if let [first, _, ..] = cores.as_slice() {
        // Checks look at the first part of a thread, which is that of the first kind of core.
        let mut cpus = CpuSet::new();
        for cpu in &first.cpus {
            cpus.set(*cpu as usize).expect("no more than a set has");
        }
        sched_setaffinity(Pid::from_raw(0), &cpus).expect("they are online");
    }
    let fixture: Arc<dyn Fixture> = Arc::new(LinuxFixture::new(Arc::new(backend)));
    let report = run(&fixture, all());
    println!("{report}");
    assert_eq!(report.failed().count(), 0, "{report}");
    for (check, missing) in report.skipped() {
        let _ = writeln!(std::io::stderr(), "SKIP {}: {missing}", check.id);
        let capabilities = fixture.backend().capabilities();
        assert!(
            !missing.is_claimed_by(capabilities),
            "{} was skipped, and {missing}, which the backend claims",
            check.id
        );
    }
}
