//! `quipu generate`: man pages and completions, for packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;

use quipu_shell::Failure;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The files to write
    kind: Product,
    /// The directory to write them into
    directory: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Product {
    /// quipu.1 and a page for each subcommand
    Man,
    /// quipu.bash, _quipu for zsh, quipu.fish
    Completions,
}

/// Writes the files of a command.
pub(crate) fn run(options: &Options, command: Command) -> Result<ExitCode, Failure> {
    let directory = &options.directory;
    let failed = |e| {
        Failure::new(format_args!(
            "cannot write into {}: {e}",
            directory.display()
        ))
    };
    fs::create_dir_all(directory).map_err(failed)?;
    match options.kind {
        Product::Man => man(directory, command),
        Product::Completions => completions(directory, command),
    }
    .map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

fn man(directory: &Path, command: Command) -> std::io::Result<()> {
    clap_mangen::generate_to(command.disable_help_subcommand(true), directory)
}

fn completions(directory: &Path, mut command: Command) -> std::io::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "quipu", directory)?;
    }
    Ok(())
}
