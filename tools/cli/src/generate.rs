//! `quipu generate`: man pages and completions, for packages.

mod man;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};

use quipu_shell::{Failure, output_file};

const EXAMPLES: &str = "\
Examples:
  quipu generate man ~/.local/share/man/man1
  quipu generate completions .
  cp quipu.bash ~/.local/share/bash-completion/completions/quipu

zsh looks for _quipu in the directories of $fpath, fish for quipu.fish in ~/.config/fish/completions. Completions run quipu,
which knows the events, metrics and CPUs of the machine.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
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
        Product::Man => man::write(directory, command),
        Product::Completions => completions(directory),
    }
    .map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes scripts that ask `quipu complete` for words, and the shell for those of a measured command.
fn completions(directory: &Path) -> std::io::Result<()> {
    for (name, script) in [
        ("quipu.bash", include_str!("generate/quipu.bash")),
        ("_quipu", include_str!("generate/quipu.zsh")),
        ("quipu.fish", include_str!("generate/quipu.fish")),
    ] {
        output_file::write(&directory.join(name), script)?;
    }
    Ok(())
}
