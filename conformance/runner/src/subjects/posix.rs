//! What getrusage(2) and clock_gettime(2) of this machine tell.

use std::sync::Arc;

use anyhow::Result;
use quipu_conformance::subjects::PosixSubject;

use super::Tested;

pub(super) fn subject() -> Result<Tested> {
    let backend = quipu::Machine::this().named("posix")?;
    Ok(Tested {
        subject: Arc::new(PosixSubject::new(backend)),
        pmu: Some("none, as none is needed".into()),
    })
}
