//! Notes on the numbers, each given once: events that could not be counted and why, and counts that
//! mean less than their name promises.

use quipu::{Count, Error, Event, Filter, SetEvent, Target};
use quipu_hal::ErrorKind;

use super::rows::Row;
use super::sets::Sets;
use super::system;

/// One remark, with the events it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub about: String,
    pub events: Vec<String>,
    pub text: String,
}

/// Returns true if an event that failed with this error is not supported here, false if it is and could
/// not be counted.
pub fn is_unsupported(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnsupportedEvent
            | ErrorKind::UnsupportedFeature
            | ErrorKind::NoSuchDevice
            | ErrorKind::TooManyEvents
            | ErrorKind::InvalidConfiguration
    )
}

/// Returns the remarks on these sets and rows. `assumed_cpu` is the CPU that native events were named
/// as on.
pub fn notes(sets: &Sets, rows: &[Row], assumed_cpu: Option<&str>) -> Vec<Note> {
    let mut notes = Notes::default();
    let is_native = |row: &&Row| matches!(row.event(), Event::Named(_));
    for (row, cpu) in rows
        .iter()
        .filter(is_native)
        .zip(assumed_cpu.iter().cycle())
    {
        let text = format!("encoded as on {cpu}; it is not verified that this CPU counts the same");
        notes.add("another CPU's event", &row.name, text);
    }
    for row in rows {
        notes.row(row);
    }
    for (index, event) in sets.set_events() {
        notes.opened(&sets.event(index).name, event);
    }
    notes.0
}

/// The remarks so far, each with its events.
#[derive(Debug, Default)]
pub struct Notes(pub Vec<Note>);

impl Notes {
    fn add(&mut self, about: &str, event: &str, text: impl Into<String>) {
        let text = text.into();
        let known = self
            .0
            .iter_mut()
            .find(|note| note.about == about && note.text == text);
        match known {
            Some(note) if note.events.iter().any(|known| known == event) => {}
            Some(note) => note.events.push(event.to_owned()),
            None => self.0.push(Note {
                about: about.to_owned(),
                events: vec![event.to_owned()],
                text,
            }),
        }
    }

    fn opened(&mut self, name: &str, event: &SetEvent) {
        let Some(info) = event.info() else { return };
        if let Some(backend) = event.backend() {
            self.counted_by(backend, name, event.fell_back_to_cpus());
        }
        let levels = event.spec().filter & Filter::LEVELS;
        let ignores_levels = !info.honours.intersects(Filter::LEVELS);
        if ignores_levels && levels != Filter::LEVELS {
            self.add(
                "in every mode",
                name,
                "counts user and kernel mode together: it does not support filters",
            );
        } else if event.fell_back_to_user() {
            self.add("user mode only", name, fallback_hint());
        } else if !levels.is_empty() && !info.occurs_in.intersects(levels) {
            let only = match info.occurs_in.contains(Filter::USER) {
                true => "happens in user mode only, which is not counted",
                false => "happens in the kernel only, which is not counted",
            };
            self.add("always 0", name, only);
        }
        if event.backend() == Some("posix") {
            // What there is to know of these is what comes with not following the kernel's events.
            for erratum in &info.errata {
                self.add("counted by posix", name, erratum.as_str());
            }
        } else if !info.errata.is_empty() {
            self.add("note", name, info.errata.join("; "));
        }
    }

    /// Notes the CPUs that were counted in place of the command.
    fn counted_by(&mut self, backend: &str, name: &str, on_cpus: Option<&Target>) {
        let about = format!("counted by {backend}");
        if let Some(cpus) = on_cpus {
            self.add(
                &about,
                name,
                format!(
                    "everything that ran on {cpus} in that time, whichever program it was: the command's share of \
                     it is unknown"
                ),
            );
        }
    }

    pub fn row(&mut self, row: &Row) {
        const NO_COUNTER: &str = "never got a hardware counter, because other events used all of \
            them; count fewer events or use smaller groups";
        if let Some(about) = row.no_value() {
            let reason = row.reason.as_deref().unwrap_or(NO_COUNTER);
            self.add(about, &row.name, reason);
        }
        if let Count::Partial { missing, parts, .. } = row.count {
            self.add(
                "incomplete",
                &row.name,
                format!(
                    "{missing} of {parts} parts have no count, mostly for want of a hardware counter; the \
                     value is that of the others"
                ),
            );
        }
        if let Some(how) = &row.disturbance {
            let text = format!("not counted for part of the time: {how}");
            self.add("disturbed", &row.name, text);
        }
        if let Some(turn) = row.turn {
            let text = format!("took turns on the counters, {turn:?} each");
            self.add("turns", &row.name, text);
        }
    }
}

/// Returns the reason why an event could not be opened, worded to fit other events with the same reason.
pub fn why(event: &Event, error: &Error) -> String {
    let in_kernel_only = !event.levels().contains(Filter::USER);
    if error.kind() == ErrorKind::CounterInErrorState {
        return "pinned (:D), but the counters that it needs are in use; count fewer events, or leave \
                out D to let it take turns"
            .to_owned();
    }
    let mut text = if in_kernel_only && error.kind() == ErrorKind::NoPermission {
        "happens in the kernel only, where counting is not permitted; in user mode it would read 0"
            .to_owned()
    } else if let (ErrorKind::TooManyEvents, Some(member)) = (error.kind(), error.member()) {
        format!(
            "there are not enough counters for the whole group: its event {} opens by itself, but \
             not together with those before it; use smaller groups",
            member + 1
        )
    } else {
        error
            .reason()
            .map_or_else(|| error.kind().to_string(), str::to_owned)
    };
    if let Some(hint) = error.hint() {
        text.push_str("; ");
        text.push_str(hint);
    }
    text
}

/// Returns the reason why only user mode is counted.
fn fallback_hint() -> String {
    let mut text = String::from("counting in the kernel is not permitted");
    if let Some(hint) = system::kernel_mode_hint() {
        text.push_str(": ");
        text.push_str(&hint);
    }
    text
}
