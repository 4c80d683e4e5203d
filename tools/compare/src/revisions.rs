//! Programs of two revisions, built by cargo in work trees of their own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use quipu_shell::Failure;
use serde_json::Value;
use tempfile::TempDir;

use crate::options::Options;
use crate::subjects::{self, Subject};

/// Two programs, which are there until this is dropped.
#[derive(Debug)]
pub(crate) struct Revisions {
    trees: Vec<Tree>,
    arguments: Vec<OsString>,
    names: Vec<String>,
    /// Holds the work trees and what was built.
    _directory: TempDir,
}

/// A work tree, which git forgets when this is dropped.
#[derive(Debug)]
struct Tree {
    revision: String,
    path: PathBuf,
    program: PathBuf,
}

impl Drop for Tree {
    fn drop(&mut self) {
        // What is left of it `git worktree prune` removes.
        let _ = Command::new("git")
            .args(["worktree", "remove", "--force"])
            .arg(&self.path)
            .stderr(Stdio::null())
            .status();
    }
}

/// The program to build of a package.
#[derive(Debug)]
enum Target<'a> {
    Bench(&'a str),
    Bin(&'a str),
}

impl Revisions {
    /// Builds the program of both revisions of a range, `BASE..HEAD`.
    pub(crate) fn build(range: &str, options: &Options) -> Result<Self, Failure> {
        let target = match (&options.bench, &options.bin) {
            (Some(bench), _) => Target::Bench(bench),
            (None, Some(bin)) => Target::Bin(bin),
            (None, None) => {
                return Err(Failure::usage(
                    "--cargo needs the name of what is built: --bench NAME or --bin NAME",
                ));
            }
        };
        let Some((base, head)) = range.split_once("..").filter(|(base, _)| !base.is_empty()) else {
            return Err(Failure::usage(format_args!(
                "--cargo takes two revisions, such as main..HEAD, and not {range:?}"
            )));
        };
        let head = if head.is_empty() { "HEAD" } else { head };
        let directory = tempfile::tempdir()
            .map_err(|e| Failure::new(format_args!("cannot make a directory: {e}")))?;
        let mut trees = Vec::new();
        // Their names are as long as each other: the length of a program's path moves its stack.
        for (revision, name) in [(base, "a"), (head, "b")] {
            trees.push(Tree::build(
                revision,
                &directory.path().join(name),
                &target,
            )?);
        }
        let mut arguments = options.words.clone();
        if let Target::Bench(_) = target {
            // As cargo bench gives it to a benchmark.
            arguments.push("--bench".into());
        }
        Ok(Self {
            trees,
            arguments,
            names: options.name.clone(),
            _directory: directory,
        })
    }

    /// Returns the commands.
    pub(crate) fn subjects(&self) -> Result<Vec<Subject>, Failure> {
        let subject = |tree: &Tree| Subject {
            label: String::new(),
            name: tree.revision.clone(),
            parameters: Vec::new(),
            words: [tree.program.clone().into_os_string()]
                .into_iter()
                .chain(self.arguments.iter().cloned())
                .collect(),
        };
        let mut subjects: Vec<Subject> = self.trees.iter().map(subject).collect();
        subjects::call(&mut subjects, &self.names, 0)?;
        Ok(subjects)
    }
}

impl Tree {
    fn build(revision: &str, path: &Path, target: &Target<'_>) -> Result<Self, Failure> {
        let mut git = Command::new("git");
        git.args(["worktree", "add", "--quiet", "--detach"])
            .arg(path)
            .args(["--end-of-options", revision]);
        // A revision is no option, and where git is too old to know that, it says so.
        output("git worktree", git.stdout(Stdio::null()))?;
        let mut tree = Self {
            revision: revision.to_owned(),
            path: path.to_owned(),
            program: PathBuf::new(),
        };
        // The package in the same place of the work tree.
        let mut prefix = Command::new("git");
        let prefix = output(
            "git rev-parse",
            prefix
                .args(["rev-parse", "--show-prefix"])
                .stdout(Stdio::piped()),
        )?;
        let prefix = String::from_utf8_lossy(&prefix).trim().to_owned();
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(path.join(prefix))
            .env("CARGO_TARGET_DIR", path.join("target"));
        let name = match target {
            Target::Bench(name) => {
                cargo.args(["bench", "--no-run", "--bench", name]);
                name
            }
            Target::Bin(name) => {
                cargo.args(["build", "--release", "--bin", name]);
                name
            }
        };
        cargo
            .arg("--message-format=json-render-diagnostics")
            .stdout(Stdio::piped());
        let messages = output(&format!("cargo in the work tree of {revision}"), &mut cargo)?;
        let program = String::from_utf8_lossy(&messages)
            .lines()
            .filter_map(|line| executable(line, name))
            .next_back();
        let none = || {
            Failure::new(format_args!(
                "cargo built no program called {name} of {revision}"
            ))
        };
        tree.program = program.ok_or_else(none)?;
        Ok(tree)
    }
}

/// Returns the executable of a target, if a message of cargo names it.
fn executable(message: &str, target: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_it = message["reason"] == "compiler-artifact" && message["target"]["name"] == target;
    is_it
        .then(|| message["executable"].as_str().map(PathBuf::from))
        .flatten()
}

/// Runs a program, and returns what it writes to standard output, if that is kept.
fn output(name: &str, command: &mut Command) -> Result<Vec<u8>, Failure> {
    let run = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    let run = run.map_err(|e| {
        Failure::new(format_args!(
            "cannot execute {}: {e}",
            command.get_program().display()
        ))
    })?;
    match run.status.success() {
        true => Ok(run.stdout),
        false => Err(Failure::new(format_args!("{name} failed ({})", run.status))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_names_what_it_built() {
        let line =
            r#"{"reason":"compiler-artifact","target":{"name":"parse"},"executable":"/t/parse-1"}"#;
        assert_eq!(executable(line, "parse"), Some(PathBuf::from("/t/parse-1")));
        assert_eq!(executable(line, "other"), None);
        assert_eq!(
            executable(&line.replace("\"/t/parse-1\"", "null"), "parse"),
            None
        );
        assert_eq!(executable("no json", "parse"), None);
    }
}
