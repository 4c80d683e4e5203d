//! `quipu stat --overhead`: what starting, reading and stopping a set adds to its own counts.

use std::process::ExitCode;
use std::sync::Arc;

use quipu::{EventSet, Target};

use quipu_shell::Failure;
use quipu_shell::target::Scope;

use super::backend::Backends;
use super::plan::Plan;
use super::report::Output;
use super::report::overhead::OverheadRow;
use super::sets;
use quipu_shell::reasons;

/// Measures a set of the events on the calling thread, or on the CPUs where the backend counts CPUs only, and reports
/// what it counts of itself.
pub fn report(plan: &Plan, backends: &Backends, output: &mut Output) -> Result<ExitCode, Failure> {
    let requests = &plan.requests;
    let target = match &plan.scope {
        Scope::Cpus(cpus) => cpus.clone(),
        _ => Target::CurrentThread,
    };
    let mut builder = EventSet::builder();
    builder
        .events(requests)?
        .target(target)
        .user_mode_fallback(true)
        .cpu_fallback(true);
    if let Some(names) = &plan.names {
        builder.machine(Arc::clone(&names.machine));
    }
    if let Some(backends) = &backends.counting {
        builder.backends(backends.iter().cloned());
    }
    let mut set = builder.open()?;
    let measured = set.calibrate()?;
    let typed = sets::names(requests, set.events());
    let events = set.events().iter().zip(typed).zip(measured);
    let rows: Vec<OverheadRow> = events
        .filter(|((event, _), _)| !requests[event.request()].optional || event.info().is_some())
        .map(|((event, name), overhead)| OverheadRow {
            name,
            unit: event
                .info()
                .map_or_else(String::new, |info| info.unit.to_string()),
            overhead: overhead.map_err(|error| reasons::why(&event.spec().event, &error)),
        })
        .collect();
    output.overhead(&rows);
    let known = rows.iter().any(|row| row.overhead.is_ok());
    Ok(ExitCode::from(if known { 0 } else { Failure::STATUS }))
}
