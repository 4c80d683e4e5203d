//! Notes on the numbers, each given once: events that could not be counted and why, and counts that
//! mean less than their name promises.

use std::time::Duration;

use quipu::{Count, Event, Filter, SetEvent, Target};

use super::backend::Backends;
use super::rows::Row;
use super::sets::Sets;
use super::system;
use super::uncounted;

/// One remark, with the events it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub about: String,
    pub events: Vec<String>,
    pub text: String,
}

/// Returns the remarks on these sets and rows. `assumed_cpu` is the CPU that native events were named
/// as on, `interval` the time after which counts were reported, if they were.
pub fn notes(
    sets: &Sets,
    rows: &[Row],
    assumed_cpu: Option<&str>,
    interval: Option<Duration>,
) -> Vec<Note> {
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
        notes.row(row, interval);
    }
    for (index, event) in sets.set_events() {
        let name = &*sets.event(index).name;
        let narrow = name.strip_suffix(":u").unwrap_or(name);
        let by_wait4 = |row: &Row| row.backend == Some(uncounted::WAIT4) && &*row.name == narrow;
        if !rows.iter().any(by_wait4) {
            notes.opened(name, event, interval);
        }
    }
    notes.0
}

/// The reason why a count is a lower bound.
const LOWER_BOUND: &str = "the kernel does not count a new process or thread before it is switched to once more, up to a time \
                        slice of each; nor what one does that is running when it is read";

/// Returns the remark without which a count would pass as one of everything.
pub fn warning(row: &Row) -> Option<Note> {
    let (about, text) = match row.count {
        Count::Jumped => ("not counted", row.reason.clone().unwrap_or_default()),
        Count::Partial { missing, parts, .. } => {
            let text = match &row.disturbance {
                Some(how) => how.clone(),
                None => format!("{missing} of {parts} parts have no count"),
            };
            ("incomplete", text)
        }
        Count::AtLeast(_) => ("at least", LOWER_BOUND.to_owned()),
        _ => return None,
    };
    Some(Note {
        about: about.into(),
        events: vec![row.name.to_string()],
        text,
    })
}

/// Returns the remark on counters that another program had enabled.
pub fn taken_over(backends: &Backends) -> Option<Note> {
    let taken = backends.taken_over()?;
    Some(Note {
        about: "taken".into(),
        events: taken.counters,
        text: format!(
            "already enabled, probably by {}, which could not count with them in that time",
            taken.owner
        ),
    })
}

/// Begins the reason of several presets or metrics: a term of each has it.
const A_TERM: &str = "their terms: ";

/// Returns the reason of the term of a preset or metric that could not be counted, if that is the reason of the whole.
fn cause_of_term(text: &str) -> Option<&str> {
    let cause = text.strip_prefix("its term ");
    let cause = cause.and_then(|text| Some(text.split_once(": ")?.1));
    cause.or_else(|| text.strip_prefix(A_TERM))
}

/// The remarks so far, each with its events.
#[derive(Debug, Default)]
pub struct Notes(pub Vec<Note>);

impl Notes {
    fn add(&mut self, about: &str, event: &str, text: impl Into<String>) {
        let text = text.into();
        let cause = cause_of_term(&text);
        let known = self.0.iter_mut().find(|note| {
            let alike = cause.is_some() && cause_of_term(&note.text) == cause;
            note.about == about && (note.text == text || alike)
        });
        match known {
            Some(note) if note.events.iter().any(|known| known == event) => {}
            Some(note) => {
                note.events.push(event.to_owned());
                // Metrics of one cause differ by the term that has it.
                if let Some(cause) = cause.filter(|_| note.text != text) {
                    note.text = format!("{A_TERM}{cause}");
                }
            }
            None => self.0.push(Note {
                about: about.to_owned(),
                events: vec![event.to_owned()],
                text,
            }),
        }
    }

    fn opened(&mut self, name: &str, event: &SetEvent, interval: Option<Duration>) {
        let Some(info) = event.info() else { return };
        if let Some(backend) = event.backend() {
            self.counted_by(backend, name, event.fell_back_to_cpus(), interval.is_some());
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
    fn counted_by(
        &mut self,
        backend: &str,
        name: &str,
        on_cpus: Option<&Target>,
        in_intervals: bool,
    ) {
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
            if in_intervals {
                let text = "each interval has what reading it took on these CPUs, too";
                self.add(&about, name, text);
            }
        }
    }

    pub fn row(&mut self, row: &Row, interval: Option<Duration>) {
        const NO_COUNTER: &str = "never got a hardware counter, because other events used all of \
            them; count fewer events or use smaller groups";
        if let Some(about) = row.no_value() {
            let reason = row.reason.as_deref().unwrap_or(NO_COUNTER);
            self.add(about, &row.name, reason);
        }
        if row.backend == Some(uncounted::WAIT4) {
            let text = format!("in the place of a counter: {}", uncounted::why());
            self.add("counted by wait4(2)", &row.name, text);
        }
        if let (Count::Partial { missing, parts, .. }, None) = (row.count, &row.disturbance) {
            self.add(
                "incomplete",
                &row.name,
                format!(
                    "{missing} of {parts} parts have no count, mostly for want of a hardware counter; the \
                     value is that of the others"
                ),
            );
        }
        if row.count.is_lower_bound() {
            self.add("at least", &row.name, LOWER_BOUND);
        }
        if let Some(how) = &row.disturbance {
            let text = match row.percent_running() {
                // It was counted all the time, but for a mark.
                99.999.. => how.clone(),
                _ => format!("not counted for part of the time: {how}"),
            };
            self.add("disturbed", &row.name, text);
        }
        if let Some(turn) = row.turn {
            let mut text = format!("took turns on the counters, {turn:?} each");
            if interval.is_some_and(|interval| interval < turn) {
                text += ", which is longer than an interval: those without a turn have no count";
            }
            self.add("turns", &row.name, text);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_whose_terms_fail_for_one_reason_share_a_note() {
        let mut notes = Notes::default();
        notes.add("not supported", "ipc", "its term a: there is no PMU");
        notes.add("not supported", "ipc", "its term a: there is no PMU");
        assert_eq!(notes.0[0].text, "its term a: there is no PMU");
        notes.add("not supported", "cpi", "its term b: there is no PMU");
        notes.add("not supported", "mpki", "its term a: there is no PMU");
        notes.add("not supported", "other", "its term a: it is reserved");
        let texts = notes
            .0
            .iter()
            .map(|note| (note.events.join(" "), note.text.as_str()));
        let texts: Vec<_> = texts.collect();
        assert_eq!(
            texts,
            [
                ("ipc cpi mpki".to_owned(), "their terms: there is no PMU"),
                ("other".to_owned(), "its term a: it is reserved"),
            ]
        );
    }
}
