//! The values of options and arguments: names of events, metrics and CPUs, and words of the parsers of other crates.

use std::ffi::OsStr;

use clap::{Arg, CommandFactory};
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use quipu::{Machine, NativeEvents};
use quipu_profile::report::sort_keys;

use crate::args::Cli;
use crate::events::CpuChoice;
use crate::help;
use crate::list::catalog::Catalog;
use crate::list::selection::{EventKind, ListFilter};

/// The columns of `quipu report --fields` beside the keys.
const COLUMNS: [&str; 4] = ["overhead", "overhead_children", "sample", "period"];

/// The methods of `--call-graph`.
const CALL_GRAPHS: [&str; 4] = ["fp", "dwarf", "lbr", "fp,defer"];

/// The comparisons of `quipu diff`.
const COMPUTES: [&str; 4] = ["delta-abs", "delta", "ratio", "wdiff:"];

/// The kinds of `quipu list` beside those of its catalog.
const KINDS: [&str; 7] = [
    "all",
    "native",
    "uncore",
    "metrics",
    "metricgroups",
    "cpus",
    "PAPI_",
];

/// A word with its description.
type Word = (String, String);

/// Returns what completes an argument of a subcommand, if its parser does not list its values.
pub(super) fn of(subcommand: &[&str], argument: &Arg) -> Option<ArgValueCompleter> {
    let words: fn(&str) -> Vec<Word> = match (subcommand, argument.get_id().as_str()) {
        (["stat" | "record" | "top" | "compare"], _) if argument.get_long() == Some("event") => {
            return Some(ArgValueCompleter::new(|word: &OsStr| of_list(word, events)));
        }
        (["encode"] | ["events", "which"], "name") => events,
        (["list"], "filters") => kinds,
        (["stat"], "metrics") => metrics,
        (["stat"], "backend") => backends,
        (["help"], "topic") => topics,
        (["report" | "diff" | "top"], "sort") => |_| plain(sort_keys()),
        (["report"], "fields") => |_| plain(COLUMNS.into_iter().chain(sort_keys())),
        (["record" | "top"], "call_graph") => |_| plain(CALL_GRAPHS),
        (["diff"], "compute") => |_| plain(COMPUTES),
        (_, "cpu") if value_name(argument) == Some("ID") => cpus,
        _ => return None,
    };
    // The engine knows of lists where the parser splits them.
    let is_split = argument.get_value_delimiter().is_some();
    Some(ArgValueCompleter::new(move |word: &OsStr| {
        if is_split {
            matching(word, "", words)
        } else {
            of_list(word, words)
        }
    }))
}

fn value_name(argument: &Arg) -> Option<&str> {
    argument
        .get_value_names()?
        .first()
        .map(clap::builder::Str::as_str)
}

/// Returns the words for the last of a list: of names with commas between them, and groups in braces.
fn of_list(list: &OsStr, words: fn(&str) -> Vec<Word>) -> Vec<CompletionCandidate> {
    let text = list.to_string_lossy();
    let start = text.rfind([',', '{']).map_or(0, |at| at + 1);
    let (before, word) = text.split_at(start);
    matching(OsStr::new(word), before, words)
}

/// Returns the words that begin as one does, after what stands before it. Letter case does not count: names of vendors go on
/// in the case that they were begun in.
fn matching(word: &OsStr, before: &str, words: fn(&str) -> Vec<Word>) -> Vec<CompletionCandidate> {
    let word = word.to_string_lossy();
    let is_lower = !word.chars().any(char::is_uppercase);
    let found = words(&word).into_iter().filter_map(|(known, help)| {
        let (start, rest) = known.split_at_checked(word.len())?;
        let rest = match start == word {
            true => rest.to_owned(),
            false if !start.eq_ignore_ascii_case(&word) => return None,
            false if is_lower => rest.to_lowercase(),
            false => rest.to_uppercase(),
        };
        let help = Some(help).filter(|help| !help.is_empty());
        Some(CompletionCandidate::new(format!("{before}{word}{rest}")).help(help.map(Into::into)))
    });
    found.collect()
}

fn plain(words: impl IntoIterator<Item = &'static str>) -> Vec<Word> {
    let words = words.into_iter();
    words.map(|word| (word.to_owned(), String::new())).collect()
}

/// Returns the events of this machine: of tracepoints their systems, until one is named.
fn events(word: &str) -> Vec<Word> {
    let (selection, is_tracepoint) = match word.split_once(':') {
        Some(_) => (&["tracepoint".to_owned(), word.to_owned()][..], true),
        None => (&[][..], false),
    };
    let mut words: Vec<Word> = Vec::new();
    for entry in Catalog::of_this_machine(&ListFilter::new(selection)).entries {
        match entry.kind {
            EventKind::Tracepoint if !is_tracepoint => {
                let system = entry.name.split(':').next().unwrap_or_default();
                let system = format!("{system}:");
                if words.last().is_none_or(|(last, _)| *last != system) {
                    words.push((system, "tracepoints".to_owned()));
                }
            }
            // They have parts to fill in.
            EventKind::Raw | EventKind::Breakpoint => {}
            _ => {
                let aliases = entry.aliases.iter().map(|alias| (*alias).to_owned());
                let names = std::iter::once(entry.name).chain(aliases);
                words.extend(names.map(|name| (name, entry.description.clone())));
            }
        }
    }
    if is_tracepoint {
        return words;
    }
    let native = NativeEvents::this();
    for table in native.tables().unwrap_or_default() {
        for preset in table.presets() {
            let help = preset.description().unwrap_or_default().to_owned();
            words.push((preset.name, help));
        }
        for event in table.events() {
            let help = event.description().unwrap_or_default().to_owned();
            words.push((event.name, help));
        }
    }
    words
}

fn kinds(_: &str) -> Vec<Word> {
    let kinds = EventKind::ALL.map(EventKind::name);
    plain(KINDS.into_iter().chain(kinds))
}

fn metrics(_: &str) -> Vec<Word> {
    let native = NativeEvents::this();
    let mut words = Vec::new();
    for metric in native
        .tables()
        .unwrap_or_default()
        .iter()
        .flat_map(quipu_events::CpuTable::metrics)
    {
        let groups = metric
            .groups
            .iter()
            .map(|group| (group.clone(), "a group of metrics".to_owned()));
        words.extend(groups);
        words.push((metric.name, metric.description));
    }
    words.sort();
    words.dedup();
    words
}

fn backends(_: &str) -> Vec<Word> {
    let machine = Machine::this();
    let there = machine.backends().iter().chain(machine.on_request());
    there
        .map(|status| (status.name().to_owned(), String::new()))
        .collect()
}

fn topics(_: &str) -> Vec<Word> {
    let topics = help::topics().map(|topic| (topic.to_owned(), "topic".to_owned()));
    let command = Cli::command();
    let subcommands = command.get_subcommands().filter(|of| !of.is_hide_set());
    let subcommands = subcommands.map(|of| {
        let about = of.get_about().map(ToString::to_string);
        (of.get_name().to_owned(), about.unwrap_or_default())
    });
    topics.chain(subcommands).collect()
}

fn cpus(_: &str) -> Vec<Word> {
    let choice = CpuChoice {
        cpu: None,
        events: None,
    };
    let cpus = choice.database().map(|database| database.cpus());
    let cpus = cpus.unwrap_or_default().into_iter();
    cpus.map(|cpu| (cpu.id, cpu.name)).collect()
}
