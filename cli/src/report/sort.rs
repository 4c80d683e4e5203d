//! The keys by which samples are told apart, as perf-report(1) names them.

use crate::failure::Failure;
use crate::terminal::escaped;

use super::profile::{Seen, Task};

/// A key, which is a column of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Command,
    Pid,
    Tid,
    Object,
    Symbol,
    Cpu,
    SourceLine,
}

/// The keys by their names, of which some have two.
const KEYS: [(&str, Key); 8] = [
    ("comm", Key::Command),
    ("pid", Key::Pid),
    ("tid", Key::Tid),
    ("dso", Key::Object),
    ("sym", Key::Symbol),
    ("symbol", Key::Symbol),
    ("cpu", Key::Cpu),
    ("srcline", Key::SourceLine),
];

/// The keys unless others are named.
pub(super) const USUAL: [Key; 3] = [Key::Command, Key::Object, Key::Symbol];

/// Returns the keys that are named, or the usual ones.
pub(crate) fn keys(names: &[String]) -> Result<Vec<Key>, Failure> {
    if names.is_empty() {
        return Ok(USUAL.to_vec());
    }
    let known = |name: &String| {
        key(name).ok_or_else(|| {
            Failure::usage(format_args!(
                "--sort {name}: there is no such key; there are comm, pid, tid, dso, sym, cpu and srcline"
            ))
        })
    };
    names.iter().map(known).collect()
}

/// Returns the key of a name.
pub(super) fn key(name: &str) -> Option<Key> {
    let found = KEYS.iter().find(|(known, _)| *known == name);
    found.map(|(_, key)| *key)
}

impl Key {
    /// Returns the heading of its column.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Command => "Command",
            Self::Pid => "Pid:Command",
            Self::Tid => "Tid:Command",
            Self::Object => "Shared Object",
            Self::Symbol => "Symbol",
            Self::Cpu => "CPU",
            Self::SourceLine => "Source:Line",
        }
    }

    /// Returns the text of its column.
    pub(super) fn text(self, task: &Task, function: &Seen) -> String {
        let of = |id: Option<i32>| format!("{}:{}", id.unwrap_or(-1), task.command);
        let text = match self {
            Self::Command => task.command.to_string(),
            Self::Pid => of(task.pid),
            Self::Tid => of(task.tid),
            Self::Object => function.short_object().to_owned(),
            Self::Symbol => format!("{} {}", function.mark(), function.title()),
            Self::Cpu => task.cpu.map_or("-".to_owned(), |cpu| format!("{cpu:03}")),
            Self::SourceLine => match &function.source {
                Some((file, line)) => {
                    format!("{}:{line}", file.rsplit('/').next().unwrap_or(file))
                }
                None => function.title(),
            },
        };
        escaped(&text).into_owned()
    }
}
