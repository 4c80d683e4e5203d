//! `quipu generate`: man pages and completions, for packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;

use crate::args::Cli;
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

/// Writes the files.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let directory = &options.directory;
    let failed = |e| {
        Failure::new(format_args!(
            "cannot write into {}: {e}",
            directory.display()
        ))
    };
    fs::create_dir_all(directory).map_err(failed)?;
    match options.kind {
        Product::Man => man(directory),
        Product::Completions => completions(directory),
    }
    .map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

fn man(directory: &Path) -> std::io::Result<()> {
    let command = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, directory)
}

fn completions(directory: &Path) -> std::io::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "quipu", directory)?;
    }
    Ok(())
}
