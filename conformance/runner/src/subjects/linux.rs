//! `perf_event_open` of this machine.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use quipu_conformance::subjects::LinuxSubject;

use super::Tested;

pub(super) fn subject() -> Result<Tested> {
    let statuses = quipu::Machine::this().backends();
    let status = statuses.iter().find(|status| status.name() == "linux");
    let status = status.context("this build has no backend for Linux")?;
    match (status.backend(), status.error()) {
        (Some(backend), _) => Ok(Tested {
            subject: Arc::new(LinuxSubject::new(Arc::clone(backend))),
            pmu: None,
        }),
        (None, Some(error)) => bail!("{error:#}"),
        (None, None) => bail!("the backend for Linux cannot be used here"),
    }
}
