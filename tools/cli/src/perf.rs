//! Options and subcommands of perf that Quipu does not have, and what to use instead.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The table: subcommands, names, meaning, instead; separated by tabs.
const TABLE: &str = include_str!("perf/options.tsv");

/// Names one or several words of perf that Quipu does not have.
#[derive(Debug)]
struct PerfOption {
    /// Subcommands with commas between them; `*` if the words are subcommands themselves.
    of: &'static str,
    /// Options or subcommands, with spaces between them.
    names: &'static str,
    meaning: &'static str,
    /// Empty if perf alone does it.
    instead: &'static str,
}

/// Returns the sentence on a command line that clap refused, if it has a word of perf that Quipu lacks.
pub(crate) fn advice(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let option = word(ContextKind::InvalidArg)?;
            let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
            let of = words.find(|word| is_subcommand(word))?;
            let row = row(of, option)?;
            Some(sentence(&format!("{of} has no {option}"), &row, of))
        }
        ErrorKind::InvalidSubcommand => {
            let name = word(ContextKind::InvalidSubcommand)?;
            let row = row("*", name)?;
            Some(sentence(
                &format!("there is no subcommand {name}"),
                &row,
                name,
            ))
        }
        _ => None,
    }
}

fn sentence(beginning: &str, row: &PerfOption, command: &str) -> String {
    let PerfOption {
        meaning, instead, ..
    } = row;
    match *instead {
        "" => format!("{beginning} (perf's: {meaning}); perf {command} has it"),
        instead => format!("{beginning} (perf's: {meaning}); instead: {instead}"),
    }
}

/// Returns true if some option of a subcommand of this name is in the table.
fn is_subcommand(word: &str) -> bool {
    rows().any(|row| row.of.split(',').any(|of| of == word))
}

/// Returns the sentence on a word that a subcommand was given and that perf's knows.
pub(crate) fn advice_on_word(of: &str, word: &str) -> Option<String> {
    let row = row(of, word)?;
    Some(sentence(&format!("{of} has no {word}"), &row, of))
}

/// Returns the row on an option or a word of a subcommand. Long options may be cut, as perf takes them, where no other one
/// begins so.
fn row(of: &str, name: &str) -> Option<PerfOption> {
    let of_subcommand = || rows().filter(|row| row.of.split(',').any(|known| known == of));
    let whole = of_subcommand().find(|row| row.names.split(' ').any(|known| known == name));
    if whole.is_some() || !name.starts_with("--") || name.len() < "--ab".len() {
        return whole;
    }
    let mut begun =
        of_subcommand().filter(|row| row.names.split(' ').any(|known| known.starts_with(name)));
    begun.next().filter(|_| begun.next().is_none())
}

fn rows() -> impl Iterator<Item = PerfOption> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut columns = line.split('\t');
        Some(PerfOption {
            of: columns.next()?,
            names: columns.next()?,
            meaning: columns.next()?,
            instead: columns.next()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write as _;
    use std::process::Command;

    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::Cli;

    /// Returns what a subcommand accepts, as on the command line.
    fn accepted(of: &str) -> Option<BTreeSet<String>> {
        let mut cli = Cli::command();
        cli.build();
        let command = cli.find_subcommand(of)?;
        let mut names = BTreeSet::new();
        for argument in command.get_arguments() {
            let longs = argument.get_long_and_visible_aliases().unwrap_or_default();
            let hidden = argument.get_aliases().unwrap_or_default();
            names.extend(longs.iter().chain(&hidden).map(|long| format!("--{long}")));
            let shorts = argument.get_short_and_visible_aliases().unwrap_or_default();
            names.extend(shorts.iter().map(|short| format!("-{short}")));
        }
        Some(names)
    }

    #[test]
    fn no_row_is_of_something_that_is_accepted() {
        let mut offending = Vec::new();
        for row in rows() {
            assert!(!row.meaning.is_empty() && !row.names.is_empty(), "{row:?}");
            for of in row.of.split(',').filter(|of| *of != "*") {
                let accepted = accepted(of).unwrap_or_default();
                for name in row.names.split(' ') {
                    // Words that perf has instead of options.
                    let is_word = ["list", "script"].contains(&of);
                    assert!(name.starts_with('-') || is_word, "{row:?}");
                    if accepted.contains(name) {
                        offending.push(format!("{of} {name}"));
                    }
                }
            }
            if row.of == "*" {
                assert!(accepted(row.names).is_none(), "{row:?}");
            }
        }
        assert!(offending.is_empty(), "{offending:#?}");
        let mut names = BTreeSet::new();
        for row in rows() {
            for of in row.of.split(',') {
                for name in row.names.split(' ') {
                    assert!(names.insert((of, name)), "{of} {name} is told twice");
                }
            }
        }
    }

    /// Returns the lines of perf's help, `None` if there is no perf.
    fn help_of_perf(arguments: &[&str]) -> Option<String> {
        match Command::new("perf").args(arguments).output() {
            Ok(output) => {
                let all = [output.stdout, output.stderr].concat();
                Some(String::from_utf8_lossy(&all).into_owned())
            }
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "SKIP there is no perf: {error}");
                None
            }
        }
    }

    #[test]
    fn every_option_of_perf_is_accepted_or_told() {
        let mut seen = 0;
        let mut missing = Vec::new();
        for of in [
            "stat", "record", "report", "script", "list", "annotate", "diff", "top",
        ] {
            let Some(help) = help_of_perf(&[of, "-h"]) else {
                return;
            };
            let Some(accepted) = accepted(of) else {
                continue;
            };
            for line in help.lines().filter(|l| l.trim_start().starts_with('-')) {
                for word in line.split_whitespace().take(2) {
                    let name = word.trim_end_matches(',');
                    let name = name.split(['[', '=']).next().unwrap_or(name);
                    if name.starts_with('-') && name.len() > 1 {
                        seen += 1;
                        if !accepted.contains(name) && row(of, name).is_none() {
                            missing.push(format!("{of} {name}"));
                        }
                    }
                }
            }
        }
        assert!(missing.is_empty(), "{missing:#?}");
        // perf lists none where it is a script that finds no perf for this kernel.
        if seen == 0 {
            let _ = writeln!(std::io::stderr(), "SKIP perf lists no options");
        }
    }

    #[test]
    fn a_refused_word_of_perf_is_told_with_what_to_do() {
        let told = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            let error = Cli::try_parse_from(&words).expect_err("refused");
            advice(&error, &words)
        };
        for (line, sentence) in [
            (
                "quipu stat --smi-cost true",
                "stat has no --smi-cost (perf's: cost of system management interrupts); instead: -e msr/smi/,cycles \
                 counts them",
            ),
            (
                "quipu --color never report --itrace=i1",
                "report has no --itrace (perf's: traces of hardware such as Intel PT); perf report has it",
            ),
            (
                "quipu inject",
                "there is no subcommand inject (perf's: changes to a recording); perf inject has it",
            ),
        ] {
            assert_eq!(told(line).as_deref(), Some(sentence));
        }
        for (line, instead) in [
            ("quipu report --task", "quipu script -F comm,pid,tid"),
            (
                "quipu record --build-id true",
                "mappings carry the build ids",
            ),
            ("quipu script gecko", "quipu report --firefox"),
            ("quipu script flamegraph", "quipu report --flamegraph"),
        ] {
            let told = told(line).expect(line);
            assert!(told.contains(instead), "{told}");
        }
        // It begins several.
        for line in [
            "quipu stat --nonsense true",
            "quipu nonsense",
            "quipu script --show",
        ] {
            assert_eq!(told(line), None, "{line}");
        }
    }

    #[test]
    fn every_subcommand_of_perf_is_there_or_told() {
        let Some(help) = help_of_perf(&["--help"]) else {
            return;
        };
        let lines = help.lines().filter(|line| {
            let name = line.strip_prefix("   ");
            name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
        });
        for name in lines.filter_map(|line| line.split_whitespace().next()) {
            assert!(
                accepted(name).is_some() || row("*", name).is_some(),
                "{name}"
            );
        }
    }
}
