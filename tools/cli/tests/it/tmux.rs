//! A terminal of tmux(1): what people see, and the keys that they press.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::skip;

/// As long as anything may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server of tmux with one window. It ends when this is dropped.
pub(crate) struct Window {
    /// A directory for its socket, in which it starts.
    directory: PathBuf,
    /// The name of its socket: one that ends would take the next one with it.
    socket: String,
}

static OPENED: AtomicU32 = AtomicU32::new(0);

impl Window {
    /// Runs a line of sh(1) in a window of so many columns and lines; `None`, which is said, if tmux is not installed.
    pub(crate) fn open(
        test: &str,
        directory: &Path,
        (columns, lines): (u16, u16),
        line: &str,
    ) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skip(test, "tmux(1) is not installed");
            return None;
        }
        let window = Self {
            directory: directory.to_owned(),
            socket: format!("window{}", OPENED.fetch_add(1, Ordering::Relaxed)),
        };
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let session = ["new-session", "-d", "-x", &columns, "-y", &lines, line];
        window.tmux(&[&["-f", "/dev/null"], &session[..]].concat());
        Some(window)
    }

    /// Runs a command of the server; returns its output.
    fn tmux(&self, words: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.current_dir(&self.directory)
            .env("TMUX_TMPDIR", &self.directory)
            .env("SHELL", "/bin/sh")
            .env_remove("TMUX");
        let output = tmux.args(["-u", "-L", &self.socket]).args(words).output();
        String::from_utf8(output.expect("it runs").stdout).expect("text")
    }

    pub(crate) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "--"], keys].concat());
    }

    /// Returns all lines that were printed, those longer than the window as one.
    pub(crate) fn lines(&self) -> String {
        self.tmux(&["capture-pane", "-pJ", "-S", "-"])
    }

    /// Waits for a screen that is as it should be, and returns it. It may take as long as anything on a loaded machine.
    pub(crate) fn wait_for(&self, wanted: &str, is_good: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if is_good(&screen) {
                return screen;
            }
            assert!(Instant::now() < end, "no {wanted}:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
