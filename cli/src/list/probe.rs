//! Probes of the events that can be counted here: each is opened, without counting, and closed again.

use quipu::{Error, ErrorKind, EventSet, EventSpec, Filter, Target};

use super::catalog::Entry;
use super::selection::Kind;

/// The outcome of probing an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// There is nothing to open: the text has to be filled in first.
    Form,
    /// It opens.
    Opens(Opened),
    /// It does not, and why.
    Refused(Error),
    /// It was not tried.
    NotProbed,
}

/// An event that opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opened {
    /// The backend that counts it.
    pub(super) backend: &'static str,
    /// User mode only, because kernel mode is not permitted.
    pub(super) user_only: bool,
}

/// Opens an event on a target as `quipu stat` does, and closes it.
///
/// # Errors
/// Why it cannot be counted.
pub(super) fn open_here(spec: &EventSpec, target: &Target) -> Result<Opened, Error> {
    let set = EventSet::builder()
        .events(spec.clone())?
        .target(target.clone())
        .user_mode_fallback(true)
        .open()?;
    let event = &set.events()[0];
    match (event.error(), event.backend()) {
        (None, Some(backend)) => Ok(Opened {
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
pub(super) fn probe(
    entries: &mut [Entry],
    open: &dyn Fn(&EventSpec, &Target) -> Result<Opened, Error>,
    time_left: &mut dyn FnMut() -> bool,
) {
    let mut first_tracepoint: Option<State> = None;
    for entry in entries {
        let Some((spec, target)) = &entry.probe else {
            entry.state = State::Form;
            continue;
        };
        let state_now = || match open(spec, target) {
            Ok(opened) => State::Opens(opened),
            Err(error) => State::Refused(error),
        };
        entry.state = if entry.kind == Kind::Tracepoint {
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
        if entry.kind == Kind::Tracepoint && first_tracepoint.is_none() {
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use std::cell::RefCell;

    use quipu::{Event, Software};

    use super::*;

    const OPENED: Opened = Opened {
        backend: "fake",
        user_only: false,
    };

    fn entry(kind: Kind, name: &str) -> Entry {
        Entry {
            kind,
            name: name.to_owned(),
            aliases: &[],
            description: String::new(),
            probe: Some((
                EventSpec::new(Event::Named(name.into())),
                Target::CurrentThread,
            )),
            state: State::NotProbed,
        }
    }

    fn tracepoints() -> Vec<Entry> {
        ["a:a", "a:b", "a:c", "a:d"]
            .map(|name| entry(Kind::Tracepoint, name))
            .into()
    }

    #[test]
    fn the_first_tracepoint_is_probed_in_any_case_and_others_while_there_is_time() {
        let mut entries = tracepoints();
        entries.insert(0, entry(Kind::Software, "soft"));
        entries.push(entry(Kind::Pmu, "after"));
        let probed = RefCell::new(Vec::new());
        let open = |spec: &EventSpec, _: &Target| {
            probed.borrow_mut().push(spec.to_string());
            Ok(OPENED)
        };
        let mut time = [true, false, false].into_iter();
        probe(&mut entries, &open, &mut || time.next().unwrap());
        assert_eq!(probed.into_inner(), ["soft", "a:a", "a:b", "after"]);
        let states: Vec<bool> = entries
            .iter()
            .map(|e| e.state == State::NotProbed)
            .collect();
        assert_eq!(states, [false, false, false, true, true, false]);
        assert_eq!(entries[1].state, State::Opens(OPENED));
    }

    #[test]
    fn a_permission_missing_for_one_tracepoint_is_missing_for_all() {
        let mut entries = tracepoints();
        let calls = RefCell::new(0);
        let denied = || Error::new(ErrorKind::NoPermission, "open a tracepoint");
        let open = |_: &EventSpec, _: &Target| {
            *calls.borrow_mut() += 1;
            Err(denied())
        };
        probe(&mut entries, &open, &mut || true);
        assert_eq!(calls.into_inner(), 1);
        assert!(entries.iter().all(|e| e.state == State::Refused(denied())));
    }

    #[test]
    fn one_tracepoint_that_cannot_be_counted_says_nothing_of_the_others() {
        let mut entries = tracepoints();
        let open = |spec: &EventSpec, _: &Target| match spec.to_string().as_str() {
            "a:a" => Err(Error::new(ErrorKind::UnsupportedEvent, "open a:a")),
            _ => Ok(OPENED),
        };
        probe(&mut entries, &open, &mut || true);
        assert!(matches!(entries[0].state, State::Refused(_)));
        assert!(entries[1..].iter().all(|e| e.state == State::Opens(OPENED)));
    }

    #[test]
    fn forms_are_not_opened_and_software_events_really_are() {
        let mut entries = vec![entry(Kind::Raw, "cpu/event=N/")];
        entries[0].probe = None;
        probe(&mut entries, &|_, _| Ok(OPENED), &mut || true);
        assert_eq!(entries[0].state, State::Form);

        let faults = EventSpec::new(Software::PageFaults);
        match open_here(&faults, &Target::CurrentThread) {
            Ok(opened) => assert!(!opened.backend.is_empty()),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "SKIP opening page-faults: {error:#}");
            }
        }
        let unknown = EventSpec::new(Event::Named("no-such-event".into()));
        assert!(open_here(&unknown, &Target::CurrentThread).is_err());
    }
}
