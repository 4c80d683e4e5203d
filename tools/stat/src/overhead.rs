//! `quipu stat --overhead`: what starting, reading and stopping a set adds to its own counts.

use std::process::ExitCode;
use std::sync::Arc;

use quipu::{EventSet, Target};

use crate::names::Names;
use quipu_shell::Failure;

use super::events;
use super::options::Options;
use super::reasons;
use super::report::Output;
use super::report::overhead::OverheadRow;
use super::sets;

/// Measures a set of the events on the calling thread and reports what it counts of itself.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let names = options.names.choose()?;
    let native = Names::native(names.as_ref());
    let requests = events::requests(options, false, native)?;
    let mut output = Output::open(options)?;
    let mut builder = EventSet::builder();
    builder
        .events(&requests)?
        .target(Target::CurrentThread)
        .user_mode_fallback(true);
    if let Some(names) = &names {
        builder.machine(Arc::clone(&names.machine));
    }
    let mut set = builder.open()?;
    let measured = set.calibrate()?;
    let typed = sets::names(&requests, set.events());
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
    output.finish()?;
    let known = rows.iter().any(|row| row.overhead.is_ok());
    Ok(ExitCode::from(if known { 0 } else { Failure::STATUS }))
}
