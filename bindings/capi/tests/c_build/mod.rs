//! The library laid out as it is installed, and C programs built against it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tempfile::TempDir;

use crate::commands::{root, run};

/// A language standard to compile by.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(dead_code, reason = "not every test compiles both")]
pub(crate) enum Language {
    C11,
    Cpp17,
}

/// The library in a directory of its own, under its installed names.
pub(crate) struct Library {
    dir: TempDir,
}

impl Library {
    /// Lays out what cargo built beside this test.
    pub(crate) fn lay_out() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let test = env::current_exe().expect("the test's own path");
        let built = test.parent().expect("its directory").join("libquipu_capi");
        let put = |from: &Path, name: &str| {
            let to = dir.path().join(name);
            fs::copy(from, &to).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
        };
        put(&built.with_extension("so"), "libquipu.so.0.1");
        put(&built.with_extension("a"), "libquipu.a");
        std::os::unix::fs::symlink("libquipu.so.0.1", dir.path().join("libquipu.so"))
            .expect("a link");
        Self { dir }
    }

    /// Returns its directory.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Builds a program from a C source, warnings being errors.
    #[allow(dead_code, reason = "a test may have a compiler of its own")]
    pub(crate) fn build(&self, source: &Path, language: Language) -> PathBuf {
        let stem = source.file_stem().expect("a name").to_string_lossy();
        let program = self.dir().join(format!("{stem}-{language:?}"));
        let mut compiler = match language {
            Language::C11 => {
                let mut cc = Command::new("cc");
                cc.arg("-std=c11");
                cc
            }
            Language::Cpp17 => {
                let mut cc = Command::new("c++");
                cc.args(["-std=c++17", "-x", "c++"]);
                cc
            }
        };
        compiler
            .args(["-Wall", "-Wextra", "-Werror", "-g", "-pthread", "-I"])
            .arg(root().join("include"))
            .arg(source)
            .args(["-x", "none", "-o"])
            .arg(&program)
            .arg("-L")
            .arg(self.dir())
            .arg(format!("-Wl,-rpath,{}", self.dir().display()))
            .arg("-lquipu");
        run(&mut compiler);
        program
    }
}
