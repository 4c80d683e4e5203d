//! The conformance suite over getrusage(2), as far as it goes.

#![cfg(any(target_os = "linux", target_os = "freebsd", target_os = "openbsd"))]

use std::sync::Arc;

use quipu_conformance::subjects::PosixSubject;
use quipu_conformance::{Subject, all, run};
use quipu_posix::PosixBackend;

#[test]
fn the_backend_conforms() {
    let backend = Arc::new(PosixBackend::new());
    let subject: Arc<dyn Subject> = Arc::new(PosixSubject::new(backend));
    let report = run(&subject, all());
    println!("{report}");
    assert_eq!(report.failed().count(), 0, "{report}");
    let capabilities = subject.backend().capabilities();
    for (check, missing) in report.skipped() {
        let claimed = missing.is_claimed_by(capabilities);
        assert!(!claimed, "{} was skipped: {missing}", check.id);
    }
}
