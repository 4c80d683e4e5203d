//! A shell that waits before it executes what it is to be sampled in.

use std::io::Write as _;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A process that executes `/bin/sh` anew once it is let go.
pub(crate) struct HeldShell(Child);

impl HeldShell {
    /// A shell for this script, which holds no single quotes.
    pub(crate) fn new(script: &str) -> Self {
        let held = format!("read -r go; exec /bin/sh -c '{script}'");
        let child = Command::new("/bin/sh")
            .args(["-c", &held])
            .stdin(Stdio::piped())
            .spawn();
        Self(child.expect("a shell"))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    /// Lets it go, and waits until it has ended.
    pub(crate) fn run(mut self) -> ExitStatus {
        let mut stdin = self.0.stdin.take().expect("piped");
        stdin.write_all(b"go\n").expect("it waits");
        drop(stdin);
        self.0.wait().expect("it is a child")
    }
}
