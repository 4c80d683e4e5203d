//! The library laid out as it is installed, and C programs that are built against it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use tempfile::TempDir;

/// Says that a check is left out, past what the test harness captures.
pub(crate) fn skip(name: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "SKIP {name}: {reason}");
}

/// The folder of this crate.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns true if a program is installed.
#[allow(dead_code, reason = "not every test asks")]
pub(crate) fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Runs a command that has to succeed.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    output
}

/// Returns the output of a command that has to succeed.
#[allow(dead_code, reason = "not every test reads it")]
pub(crate) fn printed(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).expect("UTF-8")
}

/// The library in a directory of its own, under its installed names.
pub(crate) struct Library {
    dir: TempDir,
}

impl Library {
    /// Lays out what cargo built beside this test.
    #[allow(dead_code, reason = "not every test lays one out")]
    pub(crate) fn lay_out() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let test = env::current_exe().expect("the test's own path");
        let built = test.parent().expect("its directory").join("libpapi.so");
        fs::copy(&built, dir.path().join("libpapi.so.7.0"))
            .unwrap_or_else(|e| panic!("{}: {e}", built.display()));
        std::os::unix::fs::symlink("libpapi.so.7.0", dir.path().join("libpapi.so"))
            .expect("a link");
        Self { dir }
    }

    /// Returns the path of the shared library.
    #[allow(dead_code, reason = "not every test reads it")]
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("libpapi.so.7.0")
    }

    /// Builds a program from a C source, warnings being errors.
    #[allow(dead_code, reason = "not every test builds one")]
    pub(crate) fn build(&self, source: &Path) -> PathBuf {
        self.build_with(&["cc", "-std=gnu11", "-Wextra", "-pthread"], source)
    }

    /// Builds a program by a compiler with its options, warnings being errors.
    #[allow(dead_code, reason = "not every test builds one")]
    pub(crate) fn build_with(&self, compiler: &[&str], source: &Path) -> PathBuf {
        let program = self.dir.path().join(source.file_stem().expect("a name"));
        run(Command::new(compiler[0])
            .args(&compiler[1..])
            .args(["-Wall", "-Werror", "-g", "-I"])
            .arg(root().join("include"))
            .arg(source)
            .arg("-o")
            .arg(&program)
            .arg("-L")
            .arg(self.dir.path())
            .arg(format!("-Wl,-rpath,{}", self.dir.path().display()))
            .arg("-lpapi"));
        program
    }
}
