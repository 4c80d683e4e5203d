//! Libraries that tests compile.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// A directory in which a test has tools make files.
pub(crate) struct Built {
    directory: tempfile::TempDir,
    test: &'static str,
}

impl Built {
    pub(crate) fn new(test: &'static str) -> Self {
        let directory = tempfile::tempdir().expect("writable");
        Self { directory, test }
    }

    /// Compiles `a.c` to the library `a.so` with these options; `None`, which is said, if there is no compiler that takes them.
    pub(crate) fn library(test: &'static str, source: &str, options: &[&str]) -> Option<Self> {
        let built = Self::new(test);
        fs::write(built.path("a.c"), source).expect("writable");
        let compile = ["cc", "-shared", "-fPIC", "-o", "a.so", "a.c"];
        built.run(&[&compile, options].concat()).then_some(built)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a tool in the directory; returns false, which is said, if it is missing or fails.
    pub(crate) fn run(&self, words: &[&str]) -> bool {
        let mut tool = Command::new(words[0]);
        let output = tool.args(&words[1..]).current_dir(&self.directory).output();
        let ran = output.is_ok_and(|output| output.status.success());
        if !ran {
            let (test, words) = (self.test, words.join(" "));
            let _ = writeln!(std::io::stderr(), "SKIP {test}: `{words}` fails here");
        }
        ran
    }
}
