//! `quipu complete`: the words that may stand where a shell completes one. The scripts of `quipu generate completions` ask for
//! them.

mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::engine;

use quipu_shell::{Failure, terminal};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The command line up to the word that is completed, with the name of the program
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "WORD"
    )]
    words: Vec<OsString>,
}

/// Prints a word a line, each with its description after a tab.
pub(crate) fn run(options: &Options, mut command: Command) -> Result<ExitCode, Failure> {
    command.build();
    let command = command.mut_subcommands(|subcommand| with_values(subcommand, &[]));
    let last = options.words.len() - 1;
    // What is wrong with a command line is said when it is run.
    let found = engine::complete(&mut { command }, options.words.clone(), last, None);
    let mut text = String::new();
    for candidate in found.unwrap_or_default() {
        let Some(word) = candidate.get_value().to_str() else {
            continue;
        };
        let help = candidate.get_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        text += &format!(
            "{}\t{}\n",
            terminal::escaped(word),
            terminal::escaped(help.lines().next().unwrap_or_default())
        );
    }
    terminal::print(&text).map_err(Failure::new)?;
    Ok(ExitCode::SUCCESS)
}

/// Adds to a subcommand, below those of these names, the words of its arguments that its parser does not list.
fn with_values(command: Command, below: &[&str]) -> Command {
    let name = command.get_name().to_owned();
    let path = [below, &[name.as_str()]].concat();
    command
        .mut_args(|argument| match values::of(&path, &argument) {
            Some(completer) => argument.add(completer),
            None => argument,
        })
        .mut_subcommands(|subcommand| with_values(subcommand, &path))
}
