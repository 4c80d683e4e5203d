//! Probes of the events that can be counted here: each is opened, without counting, and closed again.

use quipu::{Error, ErrorKind, Event, EventSet, EventSpec, Filter, Target};

use super::entry::{ListedEvent, OpenedEvent, State};
use super::selection::EventKind;

/// Opens an event on a target as `quipu stat` does, and closes it. On OpenBSD, whose hardware counters
/// count CPUs and not threads, it is opened on this CPU where it does not open on the thread.
///
/// # Errors
/// Why it cannot be counted.
pub fn open_here(spec: &EventSpec, target: &Target) -> Result<OpenedEvent, Error> {
    let opened = open_on(spec, target);
    let of_cpus = cfg!(target_os = "openbsd") && !matches!(spec.event, Event::Software(_));
    match opened {
        Err(_) if of_cpus && *target == Target::CurrentThread => open_on(spec, &Target::CurrentCpu),
        opened => opened,
    }
}

fn open_on(spec: &EventSpec, target: &Target) -> Result<OpenedEvent, Error> {
    let set = EventSet::builder()
        .events(spec.clone())?
        .target(target.clone())
        .user_mode_fallback(true)
        .open()?;
    let event = &set.events()[0];
    match (event.error(), event.backend()) {
        (None, Some(backend)) => Ok(OpenedEvent {
            backend,
            // A clock counts every mode, whatever is asked.
            user_only: event.fell_back_to_user()
                && event
                    .info()
                    .is_some_and(|i| i.honours.intersects(Filter::LEVELS)),
        }),
        (Some(error), _) => Err(error.clone()),
        (None, None) => Err(Error::new(ErrorKind::NoSuchDevice, format!("open {spec}"))),
    }
}

/// Probes the entries, each where its target says.
///
/// Tracepoints are thousands and slow to probe, so one is probed for all: when permission or the
/// kernel's support is missing for it, it is for the others. Those are probed while `time_left`.
pub fn probe(
    entries: &mut [ListedEvent],
    open: &dyn Fn(&EventSpec, &Target) -> Result<OpenedEvent, Error>,
    time_left: &mut dyn FnMut() -> bool,
) {
    let mut first_tracepoint: Option<State> = None;
    for entry in entries {
        let Some((spec, target)) = &entry.probe else {
            entry.state = match entry.kind {
                // No counter counts them.
                EventKind::Tool => State::Opens(OpenedEvent {
                    backend: "stat",
                    user_only: false,
                }),
                _ => State::Form,
            };
            continue;
        };
        let state_now = || match open(spec, target) {
            Ok(opened) => State::Opens(opened),
            Err(error) => State::Refused(error),
        };
        entry.state = if entry.kind == EventKind::Tracepoint {
            match &first_tracepoint {
                Some(State::Refused(error)) if holds_for_all(error) => {
                    State::Refused(error.clone())
                }
                Some(_) if !time_left() => State::NotProbed,
                _ => state_now(),
            }
        } else {
            state_now()
        };
        if entry.kind == EventKind::Tracepoint && first_tracepoint.is_none() {
            first_tracepoint = Some(entry.state.clone());
        }
    }
}

/// Returns true if the error of one tracepoint holds for every other.
fn holds_for_all(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::UnsupportedEvent | ErrorKind::InvalidConfiguration
    )
}
