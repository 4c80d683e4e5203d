//! A pager for what is longer than a screen.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Stdout, Write};
use std::process::{Child, Command, Stdio};
#[cfg(unix)]
use std::sync::Arc;

/// The pager unless another one is named: it shows colours, ends where all fits on a screen, and leaves it there.
const USUAL: &str = "less -RFX";

/// Standard output, through a pager if it is a terminal.
#[derive(Debug)]
pub enum Pager {
    /// The pager, which reads what is written.
    Paged(Child),
    /// No pager.
    Direct(Stdout),
}

impl Pager {
    /// Begins a pager, if standard output is a terminal and there is one: `PAGER`, of which `cat` and nothing mean none.
    pub fn begin(never: bool) -> Self {
        let command = quipu_environment::text("PAGER").unwrap_or_else(|| USUAL.into());
        let is_none = matches!(command.trim(), "" | "cat");
        let path = quipu_environment::variable("PATH").unwrap_or_default();
        if never || is_none || !io::stdout().is_terminal() || !is_there(&command, &path) {
            return Self::Direct(io::stdout());
        }
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &command]).stdin(Stdio::piped());
        if quipu_environment::variable("LESS").is_none() {
            shell.env("LESS", "RFX");
        }
        match shell.spawn() {
            Ok(child) => {
                // Ctrl-C is the pager's, which would be left behind.
                #[cfg(unix)]
                let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::default());
                Self::Paged(child)
            }
            Err(_) => Self::Direct(io::stdout()),
        }
    }

    /// Waits until all that was written has been read. A reader that went away is no error.
    pub fn finish(self, written: io::Result<()>) -> io::Result<()> {
        match written.and_then(|()| self.wait()) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }

    fn wait(self) -> io::Result<()> {
        match self {
            Self::Direct(mut stdout) => stdout.flush(),
            Self::Paged(mut child) => {
                drop(child.stdin.take());
                child.wait().map(drop)
            }
        }
    }
}

/// Writes a whole text to standard output, through a pager unless `never`. A reader that went away is no error.
pub fn print(text: &str, never: bool) -> io::Result<()> {
    let mut pager = Pager::begin(never);
    let written = pager.write_all(text.as_bytes());
    pager.finish(written)
}

/// Returns true if the program that a command begins with is in one of these directories: a pager that cannot be
/// executed would leave nothing of what it was to show.
fn is_there(command: &str, path: &OsStr) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    // Variables and the like are the shell's to understand.
    let is_plain = program
        .chars()
        .all(|c| c.is_alphanumeric() || "/._-+".contains(c));
    !is_plain || env::split_paths(path).any(|directory| directory.join(program).is_file())
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Direct(stdout) => stdout.write(bytes),
            Self::Paged(child) => match &mut child.stdin {
                Some(pipe) => pipe.write(bytes),
                None => Ok(bytes.len()),
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Direct(stdout) => stdout.flush(),
            Self::Paged(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pager_that_is_not_installed_is_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join("less");
        std::fs::write(&program, "").expect("it is ours");
        let path = env::join_paths(["/nowhere", directory.path().to_str().expect("text")]);
        let path = path.expect("without colons");
        assert!(is_there("less -RFX", &path) && is_there("LESS=-R less", &path));
        assert!(is_there(
            program.to_str().expect("text"),
            OsStr::new("/nowhere")
        ));
        assert!(!is_there("less -RFX", OsStr::new("/nowhere")) && !is_there("/no/less", &path));
    }
}
