//! The time between the first and the last marker of a process.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use quipu_regions::{EVENTS_VARIABLE, REPORT_VARIABLE, Report};

use crate::cpu;
use crate::events::{self, EventGroup};
use crate::file;

/// The groups of events, and which of them GET returns.
pub(crate) struct Session {
    pub(crate) groups: Vec<EventGroup>,
    active: AtomicUsize,
}

static SESSION: OnceLock<Option<Session>> = OnceLock::new();

/// Begins to measure if the user asked for it.
pub(crate) fn begin() {
    SESSION.get_or_init(|| {
        let wanted = [REPORT_VARIABLE, "LIKWID_EVENTS", "LIKWID_FILEPATH"];
        let is_wanted = |name| quipu_environment::variable(name).is_some();
        if wanted.into_iter().any(is_wanted) {
            Some(Session::start())
        } else {
            say("the markers are off: LIKWID_EVENTS or QUIPU_REGIONS turns them on");
            None
        }
    });
}

/// Returns what is measured, if the program has begun and its user asked for it.
pub(crate) fn current() -> Option<&'static Session> {
    SESSION.get()?.as_ref()
}

impl Session {
    fn start() -> Self {
        let own = quipu_environment::text(EVENTS_VARIABLE);
        let asked = quipu_environment::text("LIKWID_EVENTS").unwrap_or_default();
        let mut request = events::parse(&asked);
        if own.is_some_and(|own| !own.is_empty()) {
            // They go before all others, and are one group.
            request = events::Request::default();
        }
        let mut all: Vec<&str> = Vec::new();
        for event in request.groups.iter().flat_map(|group| &group.events) {
            if !all.contains(&event.as_str()) {
                all.push(event);
            }
        }
        if !request.missing.is_empty() {
            let missing = request.missing.join("; ");
            say(&format!("LIKWID_EVENTS is not counted in whole: {missing}"));
        }
        if !all.is_empty()
            && let Err(error) = quipu_regions::choose_events(&all.join(","))
        {
            say(&format!("LIKWID_EVENTS is not counted: {error:#}"));
            request.groups.clear();
        }
        Self {
            groups: request.groups,
            active: AtomicUsize::new(0),
        }
    }

    /// Returns the names of the events of a group, or `None` if all that is counted is one group.
    pub(crate) fn events_of(&self, group: usize) -> Option<&[String]> {
        self.groups.get(group).map(|group| &*group.events)
    }

    /// Returns the number of the group that GET returns.
    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Has GET return the next group. All are counted all the time.
    pub(crate) fn next_group(&self) {
        let number = self.groups.len().max(1);
        let next = |active: usize| Some((active + 1) % number);
        // It is never refused.
        let _ = self
            .active
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// Writes what was counted where the user wants it.
    pub(crate) fn close(&self) {
        match quipu_environment::variable("LIKWID_FILEPATH") {
            Some(path) => {
                if let Err(error) = self.write(path.as_ref()) {
                    let path = path.display();
                    say(&format!("cannot write the regions to {path}: {error}"));
                }
            }
            // At the end of the process there is a report then.
            None if quipu_environment::variable(REPORT_VARIABLE).is_some() => {}
            None => {
                let _ = write!(io::stderr(), "{}", Report::now());
            }
        }
    }

    /// Writes what was counted as LIKWID does.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let report = Report::now();
        let text = file::text(&report, &self.groups, cpu::of_thread);
        quipu_environment::create_named(path)?.write_all(text.as_bytes())
    }
}

/// Says something to the user, a line.
fn say(line: &str) {
    // Standard error may be closed.
    let _ = writeln!(io::stderr(), "quipu: {line}");
}
