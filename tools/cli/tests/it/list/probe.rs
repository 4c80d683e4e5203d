//! Probing: which events are opened, and what the outcome says of others.

use std::io::Write as _;

use std::cell::RefCell;

use quipu::{Error, ErrorKind, Event, EventSpec, Software, Target};

use quipu_cli::list::entry::{ListedEvent, OpenedEvent, State};
use quipu_cli::list::probe::{open_here, probe};
use quipu_cli::list::selection::EventKind;

const OPENED: OpenedEvent = OpenedEvent {
    backend: "fake",
    user_only: false,
};

fn entry(kind: EventKind, name: &str) -> ListedEvent {
    ListedEvent {
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

fn tracepoints() -> Vec<ListedEvent> {
    ["a:a", "a:b", "a:c", "a:d"]
        .map(|name| entry(EventKind::Tracepoint, name))
        .into()
}

#[test]
fn the_first_tracepoint_is_probed_in_any_case_and_others_while_there_is_time() {
    let mut entries = tracepoints();
    entries.insert(0, entry(EventKind::Software, "soft"));
    entries.push(entry(EventKind::Pmu, "after"));
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
    let mut entries = vec![entry(EventKind::Raw, "cpu/event=N/")];
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
