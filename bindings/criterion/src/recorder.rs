//! Recordings of benchmarks that run for `--profile-time`.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::{fs, process};

use criterion::profiler::Profiler;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::note;

/// A profiler for [`Criterion::with_profiler`](criterion::Criterion::with_profiler): with `--profile-time SECONDS` it leaves
/// `perf.data` and `flamegraph.svg` in the folder `profile` of each benchmark.
///
/// It runs the command `quipu record` beside the program: the work of recording is not in the samples then, and callers are
/// found by DWARF, as Rust's own library has no frame pointers.
#[derive(Debug)]
pub struct Recorder {
    command: OsString,
    running: Option<Child>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::with_command("quipu")
    }
}

impl Recorder {
    /// Makes one that runs `quipu` by this path, or by this name in `PATH`.
    pub fn with_command(command: impl Into<OsString>) -> Self {
        Self {
            command: command.into(),
            running: None,
        }
    }

    fn quipu(&self) -> Command {
        let mut command = Command::new(&self.command);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    fn start(&self, folder: &Path) -> Result<Child, String> {
        fs::create_dir_all(folder)
            .map_err(|why| format!("cannot make {}: {why}", folder.display()))?;
        let mut record = self.quipu();
        record.args(["record", "--quiet", "--call-graph", "dwarf", "-p"]);
        record
            .arg(process::id().to_string())
            .arg("-o")
            .arg(folder.join("perf.data"));
        record.spawn().map_err(|why| {
            format!(
                "cannot run {}: {why}; cargo install quipu-cli installs it",
                self.command.display()
            )
        })
    }

    fn stop(&self, recording: Child, folder: &Path) -> Result<(), String> {
        // A recording that has ended keeps its process id until it is waited for: the signal reaches no other process.
        if let Ok(pid) = i32::try_from(recording.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGINT);
        }
        let output = recording.wait_with_output();
        succeeded("quipu record", output)?;
        let picture = folder.join("flamegraph.svg");
        let mut report = self.quipu();
        report
            .arg("report")
            .arg("-i")
            .arg(folder.join("perf.data"))
            .arg("--flamegraph")
            .arg(&picture);
        succeeded("quipu report", report.output())?;
        note::once(format!("a flame graph is in {}", picture.display()));
        Ok(())
    }
}

fn succeeded(what: &str, output: std::io::Result<Output>) -> Result<(), String> {
    let output = output.map_err(|why| format!("cannot run {what}: {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{what} failed ({}): {}",
        output.status,
        said.trim()
    ))
}

impl Profiler for Recorder {
    /// Starts a recording of this process. criterion warms up for a second then, in which it begins.
    fn start_profiling(&mut self, _: &str, folder: &Path) {
        match self.start(folder) {
            Ok(recording) => self.running = Some(recording),
            Err(why) => note::once(why),
        }
    }

    fn stop_profiling(&mut self, _: &str, folder: &Path) {
        if let Some(recording) = self.running.take()
            && let Err(why) = self.stop(recording, folder)
        {
            note::once(why);
        }
    }
}

impl Drop for Recorder {
    /// Ends a recording whose benchmark has panicked.
    fn drop(&mut self) {
        if let Some(mut recording) = self.running.take() {
            let _ = recording.kill();
            let _ = recording.wait();
        }
    }
}
