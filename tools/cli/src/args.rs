//! The command line: `quipu` and its subcommands.

mod deferred;

use clap::{Parser, Subcommand, ValueEnum};

use self::deferred::Deferred;
use quipu_profile::{annotate, archive, diff, report, script};
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
use quipu_profile::{record, top};

use crate::{complete, encode, events, generate, help, info, list};
#[cfg(unix)]
use crate::{msr, pctr};

/// Count CPU and software events: cycles, cache misses, page faults and thousands more.
#[derive(Debug, Parser)]
#[command(
    name = "quipu",
    version,
    propagate_version = true,
    disable_help_subcommand = true
)]
#[command(after_help = "Try:\n  \
    quipu stat -- make          what a build costs\n  \
    quipu compare 'ls' 'ls -R'  which of two commands is cheaper, and how sure that is\n  \
    quipu list page             events with \"page\" in their name\n  \
    quipu info                  what can be counted here, and why the rest cannot\n  \
    quipu help permissions      who may count what; also: events, virtual-machines")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Colour::Auto, global = true, hide_default_value = true)]
    pub(crate) color: Colour,
}

/// When colours are used.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, as `NO_COLOR`, `CLICOLOR_FORCE` and `TERM` have it
    Auto,
    Always,
    Never,
}

impl Colour {
    /// Makes this the choice for all output.
    pub(crate) fn write_global(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// The arguments of a command that this system does not have, whatever they are.
#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
#[derive(Debug, clap::Args)]
pub(crate) struct Refused {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<std::ffi::OsString>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Count what a command, a process or the whole machine does
    #[cfg(unix)]
    Stat(Deferred<quipu_stat::Stat>),
    /// Find which of two commands is cheaper, by how much, and how sure that is
    #[cfg(unix)]
    Compare(Deferred<quipu_compare::Options>),
    /// Give counts of this machine to Prometheus and OpenTelemetry, for as long as it runs
    #[cfg(all(feature = "export", target_os = "linux"))]
    Export(Deferred<quipu_export::Options>),
    /// Take samples of what a command, a process or the whole machine does
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    Record(Deferred<record::Options>),
    /// Take samples (only on Linux and FreeBSD)
    #[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
    #[command(disable_help_flag = true)]
    Record(Refused),
    /// Show what was recorded, function by function
    Report(Deferred<report::Options>),
    /// Print every sample that was recorded, a line each
    Script(Deferred<script::Options>),
    /// Show the hot instructions of functions, beside their source lines
    Annotate(Deferred<annotate::Options>),
    /// Show what differs between recordings, function by function
    Diff(Deferred<diff::Options>),
    /// Put the programs that were hit into an archive, for another machine
    Archive(Deferred<archive::Options>),
    /// Show the functions that are hot now, as they run
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    Top(Deferred<top::Options>),
    /// Show the functions that are hot now (only on Linux and FreeBSD)
    #[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
    #[command(disable_help_flag = true)]
    Top(Refused),
    /// List the events that can be counted
    List(Deferred<list::Options>),
    /// Show what this machine can count, and why the rest cannot be counted
    Info(Deferred<info::Options>),
    /// Show the encoding of an event, field by field
    Encode(Deferred<encode::EncodeOptions>),
    /// Show the event that an encoding counts
    Decode(Deferred<encode::DecodeOptions>),
    /// Check event files (check), and find where events are defined (which)
    Events(Deferred<events::Options>),
    /// Repair counter registers after a measurement with --backend msr was killed
    #[cfg(unix)]
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly")),
        command(about = "Repair counter registers (only on Linux, FreeBSD and DragonFly)")
    )]
    Msr(Deferred<msr::Options>),
    /// Read and set OpenBSD's counters by hand, as pctr(1) does
    #[cfg(unix)]
    Pctr(Deferred<pctr::Options>),
    /// Explain events, permissions, virtual-machines, or a subcommand
    Help(Deferred<help::Options>),
    /// Print the version
    #[command(hide = true)]
    Version,
    /// Write man pages or completions of shells into a directory
    Generate(Deferred<generate::Options>),
    /// Print the words that may stand where a shell completes one
    #[command(hide = true, disable_help_flag = true)]
    Complete(Deferred<complete::Options>),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    /// Words of Rust's own parsers, and of clap's ranges.
    const FOREIGN: [&str; 5] = [
        "invalid digit",
        "invalid float",
        "is not in",
        "too large",
        "empty string",
    ];

    /// Tries every option that takes a value with what is no number, and with one that is too large.
    #[test]
    fn every_option_refuses_numbers_in_plain_words() {
        let mut cli = Cli::command();
        cli.build();
        let (mut refused, mut offending) = (0, Vec::new());
        for of in cli.get_subcommands() {
            let arguments = of.get_arguments();
            let with_value = arguments.filter(|argument| argument.get_action().takes_values());
            for argument in with_value.filter(|argument| argument.get_possible_values().is_empty())
            {
                let Some(long) = argument.get_long() else {
                    continue;
                };
                for value in ["abc", "99999999999999999999999"] {
                    let option = format!("--{long}={value}");
                    let told = of.clone().try_get_matches_from(["quipu", &option]);
                    let Err(told) = told else { continue };
                    let told = told.to_string();
                    refused += usize::from(told.contains("expected"));
                    if FOREIGN.iter().any(|words| told.contains(words)) {
                        offending.push(format!("{} {option}: {told}", of.get_name()));
                    }
                }
            }
        }
        assert!(offending.is_empty(), "{offending:#?}");
        assert!(refused > 20, "{refused}");
    }
}
