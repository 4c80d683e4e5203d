//! The listing: what opens, what is in the way, for people and as JSON.

use quipu::{Error, ErrorKind, EventSpec, Software, Target};

use quipu_cli::list::catalog::Catalog;
use quipu_cli::list::entry::{ListedEvent, OpenedEvent, State};
use quipu_cli::list::report::{json, text};
use quipu_cli::list::selection::EventKind;
use quipu_cli::list::short::{self, ShortSection};
use quipu_shell::terminal::Layout;
use serde_json::Value;

fn entry(kind: EventKind, name: &str, description: &str, state: State) -> ListedEvent {
    ListedEvent {
        kind,
        name: name.to_owned(),
        aliases: &[],
        description: description.to_owned(),
        probe: Some((EventSpec::new(Software::Dummy), Target::CurrentThread)),
        state,
    }
}

fn opens(user_only: bool) -> State {
    State::Opens(OpenedEvent {
        backend: "linux",
        user_only,
    })
}

fn refused(reason: &str) -> State {
    let error = Error::new(ErrorKind::NoPermission, "open it");
    State::Refused(error.with_reason(reason).with_hint(format!("end {reason}")))
}

fn catalog() -> Catalog {
    let mut faults = entry(
        EventKind::Software,
        "page-faults",
        "page faults",
        opens(true),
    );
    faults.aliases = &["faults"];
    Catalog {
        entries: vec![
            entry(
                EventKind::Hardware,
                "cycles",
                "CPU cycles",
                refused("no PMU"),
            ),
            entry(EventKind::Hardware, "branches", "", refused("no PMU")),
            faults,
            entry(
                EventKind::Software,
                "cs",
                "switches",
                refused("kernel only"),
            ),
            entry(
                EventKind::Raw,
                "cpu/event=N/",
                "event config:0-7",
                State::Form,
            ),
            entry(
                EventKind::Tracepoint,
                "sched:sched_switch",
                "",
                opens(false),
            ),
            entry(
                EventKind::Tracepoint,
                "sched:sched_wakeup",
                "",
                State::NotProbed,
            ),
            entry(
                EventKind::Tracepoint,
                "irq:softirq_entry",
                "",
                State::NotProbed,
            ),
        ],
        unavailable: Vec::new(),
    }
}

#[test]
fn what_opens_and_what_is_in_the_way() {
    assert_eq!(
        text(&catalog(), false, Layout::PLAIN),
        "\
Hardware events: 2, none available here
  why:  no PMU
  hint: end no PMU

Software events: 2, 1 available here
  page-faults  faults  page faults (user mode only)

Raw events: by pattern
  cpu/event=N/  event config:0-7

Tracepoints: 3, 1 probed, all available here
  sched:sched_switch
  sched:sched_wakeup  (not probed)
  irq:softirq_entry   (not probed)

3 events are not available here; --all lists them with the reason.
"
    );
}

#[test]
fn everything_with_its_reason_fits_a_narrow_terminal() {
    let layout = Layout {
        width: Some(48),
        ..Layout::PLAIN
    };
    let all = text(&catalog(), true, layout);
    assert_eq!(
        all,
        "\
Hardware events: 2, none available here
  why:  no PMU
  hint: end no PMU
  cycles    CPU cycles
  branches

Software events: 2, 1 available here
  page-faults  faults  page faults (user mode
                       only)
  cs                   switches (kernel only)
  hint: end kernel only

Raw events: by pattern
  cpu/event=N/  event config:0-7

Tracepoints: 3, 1 probed, all available here
  sched:sched_switch
  sched:sched_wakeup  (not probed)
  irq:softirq_entry   (not probed)
"
    );
}

#[test]
fn the_short_listing_has_a_line_for_each_other_kind() {
    let named = |filter, heading: &str, names: &[&str], summary: &str| ShortSection {
        filter,
        heading: heading.to_owned(),
        names: names.iter().map(|&name| name.to_owned()).collect(),
        summary: summary.to_owned(),
    };
    let database = [
        named(
            "PAPI_",
            "Presets of X",
            &["PAPI_L1_DCM", "PAPI_TOT_INS"],
            "2",
        ),
        named(
            "native",
            "Native events of X",
            &[],
            "375, none available here",
        ),
    ];
    let mut catalog = catalog();
    let error = Error::new(ErrorKind::NoSuchDevice, "read sysfs").with_reason("there is no /sys");
    catalog.unavailable.push((EventKind::Pmu, error));
    assert_eq!(
        short::text(&catalog, &database, Layout::PLAIN),
        "\
Hardware events: 2, none available here
  why:  no PMU
  hint: end no PMU

Software events: 2, 1 available here
  page-faults  faults  page faults (user mode only)

Presets of X: 2
  PAPI_L1_DCM  PAPI_TOT_INS

More, by the words that list it:
  quipu list tool        Events of quipu stat: none listed
  quipu list cache       Cache events: none listed
  quipu list raw         Raw events: by pattern
  quipu list breakpoint  Breakpoints: none listed
  quipu list pmu         PMU events: there is no /sys
  quipu list tracepoint  Tracepoints: 3 in 2 systems; quipu list sched: lists those of one
  quipu list PAPI_       Presets of X: 2
  quipu list native      Native events of X: 375, none available here
  quipu list TEXT        events of every kind with TEXT in their names
  quipu list all         everything; --all adds what is not available here, with the reasons
"
    );
}

#[test]
fn colours_mark_headings_and_what_does_not_open() {
    let layout = Layout {
        width: Some(80),
        colour: true,
        ..Layout::PLAIN
    };
    let all = text(&catalog(), true, layout);
    assert!(all.contains("\x1b[1mSoftware events\x1b[0m: 2"));
    assert!(all.contains("\x1b[2m  cycles    CPU cycles\x1b[0m\n"));
}

#[test]
fn kinds_that_cannot_be_listed_say_why() {
    let error = Error::new(ErrorKind::NoSuchDevice, "read the tracepoints")
        .with_reason("tracefs is not mounted")
        .with_hint("mount it");
    let catalog = Catalog {
        entries: Vec::new(),
        unavailable: vec![(EventKind::Tracepoint, error)],
    };
    assert_eq!(
        text(&catalog, false, Layout::PLAIN),
        "\
Tracepoints: none listed
  why:  tracefs is not mounted
  hint: mount it
"
    );
}

#[test]
fn json_has_every_state() {
    let entries: Vec<Value> =
        serde_json::from_str(&json(&catalog(), Vec::new(), true).unwrap()).unwrap();
    let states: Vec<&str> = entries.iter().filter_map(|e| e["state"].as_str()).collect();
    assert_eq!(
        states,
        [
            "refused",
            "refused",
            "opens",
            "refused",
            "form",
            "opens",
            "not probed",
            "not probed"
        ]
    );
    assert_eq!(entries[0]["reason"], "no PMU");
    assert_eq!(entries[0]["hint"], "end no PMU");
    assert_eq!(entries[2]["aliases"][0], "faults");
    assert_eq!(entries[2]["user_mode_only"], true);
    assert_eq!(entries[5]["backend"], "linux");
    assert!(entries[5].get("reason").is_none());

    let opening: Vec<Value> =
        serde_json::from_str(&json(&catalog(), Vec::new(), false).unwrap()).unwrap();
    assert_eq!(opening.len(), 5);
}
