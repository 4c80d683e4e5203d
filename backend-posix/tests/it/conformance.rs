//! The conformance suite over getrusage(2), as far as it goes.

use std::sync::Arc;

use quipu_conformance::fixtures::PosixFixture;
use quipu_conformance::{Fixture, all, run};
use quipu_posix::PosixBackend;

#[test]
fn the_backend_conforms() {
    let backend = Arc::new(PosixBackend::new());
    let fixture: Arc<dyn Fixture> = Arc::new(PosixFixture::new(backend));
    let report = run(&fixture, all());
    println!("{report}");
    assert_eq!(report.failed().count(), 0, "{report}");
    let capabilities = fixture.backend().capabilities();
    for (check, missing) in report.skipped() {
        let claimed = missing.is_claimed_by(capabilities);
        assert!(!claimed, "{} was skipped: {missing}", check.id);
    }
}
