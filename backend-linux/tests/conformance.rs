//! The conformance suite over perf_event_open(2), as far as this machine goes.

#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::sync::Arc;

use quipu_conformance::subjects::LinuxSubject;
use quipu_conformance::{Subject, all, run};
use quipu_linux::LinuxBackend;

#[test]
fn the_backend_conforms() {
    let backend = match LinuxBackend::new() {
        Ok(backend) => backend,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "SKIP the_backend_conforms: {error:#}");
            return;
        }
    };
    let subject: Arc<dyn Subject> = Arc::new(LinuxSubject::new(Arc::new(backend)));
    let report = run(&subject, all());
    println!("{report}");
    assert_eq!(report.failed().count(), 0, "{report}");
    for (check, missing) in report.skipped() {
        let _ = writeln!(std::io::stderr(), "SKIP {}: {missing}", check.id);
        let capabilities = subject.backend().capabilities();
        assert!(
            !missing.is_claimed_by(capabilities),
            "{} was skipped, and {missing}, which the backend claims",
            check.id
        );
    }
}
