//! `quipu generate`: man pages and completions, for packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};

use quipu_shell::Failure;

const EXAMPLES: &str = "\
Examples:
  quipu generate man ~/.local/share/man/man1
  quipu generate completions ./completions; then, for each shell that you use:
    bash  cp completions/quipu.bash ~/.local/share/bash-completion/completions/quipu
    zsh   cp completions/_quipu into a directory of $fpath
    fish  cp completions/quipu.fish ~/.config/fish/completions/

The completions of a shell run quipu, which knows the events, metrics and CPUs of the machine.";

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
        Product::Man => man(directory, command),
        Product::Completions => completions(directory),
    }
    .map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

fn man(directory: &Path, command: Command) -> std::io::Result<()> {
    clap_mangen::generate_to(command.disable_help_subcommand(true), directory)
}

/// Writes scripts that ask `quipu complete` for words, and the shell for those of a measured command.
fn completions(directory: &Path) -> std::io::Result<()> {
    for (name, script) in [
        ("quipu.bash", include_str!("generate/quipu.bash")),
        ("_quipu", include_str!("generate/quipu.zsh")),
        ("quipu.fish", include_str!("generate/quipu.fish")),
    ] {
        fs::write(directory.join(name), script)?;
    }
    Ok(())
}
