//! The `quipu` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    quipu_cli::run(std::env::args_os())
}
