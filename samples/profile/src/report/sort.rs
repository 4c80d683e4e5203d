//! The keys by which samples are told apart, as perf-report(1) names them.

use quipu_shell::Failure;
use quipu_shell::terminal::escaped;

use super::profile::{Profile, Seen};
use super::stacks::Stack;

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
    ObjectFrom,
    ObjectTo,
    SymbolFrom,
    SymbolTo,
    Mispredicted,
    Cycles,
}

/// The keys by their names, of which some have two.
const KEYS: [(&str, Key); 14] = [
    ("comm", Key::Command),
    ("pid", Key::Pid),
    ("tid", Key::Tid),
    ("dso", Key::Object),
    ("sym", Key::Symbol),
    ("symbol", Key::Symbol),
    ("cpu", Key::Cpu),
    ("srcline", Key::SourceLine),
    ("dso_from", Key::ObjectFrom),
    ("dso_to", Key::ObjectTo),
    ("symbol_from", Key::SymbolFrom),
    ("symbol_to", Key::SymbolTo),
    ("mispredict", Key::Mispredicted),
    ("cycles", Key::Cycles),
];

/// Returns the names of the keys of `--sort`, one of each.
pub fn sort_keys() -> impl Iterator<Item = &'static str> {
    let mut keys = KEYS.to_vec();
    keys.dedup_by_key(|(_, key)| *key);
    keys.into_iter().map(|(name, _)| name)
}

/// The keys unless others are named.
pub(super) const USUAL: [Key; 3] = [Key::Command, Key::Object, Key::Symbol];

/// The keys of branches unless others are named.
pub(super) const USUAL_OF_BRANCHES: [Key; 5] = [
    Key::Command,
    Key::ObjectFrom,
    Key::SymbolFrom,
    Key::SymbolTo,
    Key::Cycles,
];

/// Returns the keys that are named, or the usual ones.
pub(crate) fn keys(names: &[String]) -> Result<Vec<Key>, Failure> {
    if names.is_empty() {
        return Ok(USUAL.to_vec());
    }
    let known = |name: &String| {
        key(name).ok_or_else(|| {
            Failure::usage(format_args!(
                "--sort {name}: there is no such key; there are comm, pid, tid, dso, sym, cpu and srcline, and of branches \
                 dso_from, dso_to, symbol_from, symbol_to, mispredict and cycles"
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
            Self::ObjectFrom => "Source Shared Object",
            Self::ObjectTo => "Target Shared Object",
            Self::SymbolFrom => "Source Symbol",
            Self::SymbolTo => "Target Symbol",
            Self::Mispredicted => "Branch Mispredicted",
            Self::Cycles => "Basic Block Cycles",
        }
    }

    /// Returns true if it tells branches apart.
    pub(crate) fn is_of_branches(self) -> bool {
        matches!(
            self,
            Self::ObjectFrom
                | Self::ObjectTo
                | Self::SymbolFrom
                | Self::SymbolTo
                | Self::Mispredicted
                | Self::Cycles
        )
    }

    /// Returns the text of its column for a function of a stack.
    pub(super) fn text(self, profile: &Profile, stack: Stack, function: usize) -> String {
        let (task, branch) = (profile.stacks.task(stack), profile.stacks.branch(stack));
        let function = profile.functions.get(function);
        let from = branch.and_then(|branch| Some(profile.functions.get(branch.from?)));
        let object = |function: Option<&Seen>| {
            function.map_or("[unknown]".to_owned(), |f| f.short_object().to_owned())
        };
        let symbol = |function: Option<&Seen>| {
            function.map_or("[.] [unknown]".to_owned(), |f| {
                format!("{} {}", f.mark(), f.title())
            })
        };
        let of = |id: Option<i32>| format!("{}:{}", id.unwrap_or(-1), task.command);
        let text = match self {
            Self::Command => task.command.to_string(),
            Self::Pid => of(task.pid),
            Self::Tid => of(task.tid),
            Self::Object | Self::ObjectTo => object(Some(function)),
            Self::Symbol | Self::SymbolTo => symbol(Some(function)),
            Self::ObjectFrom => object(from),
            Self::SymbolFrom => symbol(from),
            Self::Mispredicted => match branch.and_then(|branch| branch.mispredicted) {
                Some(true) => "Y".to_owned(),
                Some(false) => "N".to_owned(),
                None => "N/A".to_owned(),
            },
            Self::Cycles => match branch.map_or(0, |branch| branch.cycles) {
                0 => "-".to_owned(),
                cycles => cycles.to_string(),
            },
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
