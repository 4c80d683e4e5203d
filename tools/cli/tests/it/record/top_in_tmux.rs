//! `quipu top` on a terminal of tmux(1), as people see it.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::top::{Killed, PATIENCE, spinning};
use super::{Bench, skip};

/// A server of tmux with `quipu top` of a process in its window. It ends when this is dropped.
struct Window {
    /// A directory for its socket and for the exit status of quipu.
    directory: PathBuf,
}

impl Window {
    /// Starts both; `None`, which is said, if tmux is not installed.
    fn open(test: &str, bench: &Bench, (columns, lines): (u16, u16), top: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skip(test, "tmux(1) is not installed");
            return None;
        }
        let window = Self {
            directory: bench.path("."),
        };
        let quipu = env!("CARGO_BIN_EXE_quipu");
        let line = format!("'{quipu}' top {top} 2>errors; echo $? >status; cat errors; sleep 600");
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let session = ["new-session", "-d", "-x", &columns, "-y", &lines, &line];
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
        let output = tmux.args(["-u", "-L", "top"]).args(words).output();
        String::from_utf8(output.expect("it runs").stdout).expect("text")
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Waits for a screen that is as it should be, and returns it.
    fn wait_for(&self, wanted: &str, is_good: impl Fn(&str) -> bool) -> String {
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

    /// Waits until quipu has ended; returns its exit status.
    fn status(&self) -> String {
        let file = self.directory.join("status");
        self.wait_for("end", |_| {
            std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))
        });
        std::fs::read_to_string(&file).expect("it was read")
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// Returns the rows of a screen, with their shares.
fn rows(screen: &str) -> Vec<&str> {
    let lines = screen.lines().skip(2);
    lines.filter(|line| line.contains("% ")).collect()
}

fn has_row(screen: &str) -> bool {
    rows(screen).iter().any(|row| row.contains("[.] spin"))
}

fn begin(test: &str, size: (u16, u16), options: &str) -> Option<(Bench, Killed, Window)> {
    let (bench, spin) = spinning(test)?;
    let top = format!("{options} -p {}", spin.0.id());
    let window = Window::open(test, &bench, size, &top)?;
    Some((bench, spin, window))
}

#[test]
fn rows_are_shown_without_a_key_on_every_size_of_terminal() {
    const TEST: &str = "rows_are_shown_without_a_key_on_every_size_of_terminal";
    for size in [(80, 24), (20, 24), (200, 24), (80, 8), (20, 4)] {
        // The usual event: where the CPU has no counters, a note says so.
        let Some((_bench, _spin, window)) = begin(TEST, size, "-d 1") else {
            return;
        };
        let screen = window.wait_for("row", has_row);
        assert!(screen.starts_with("quipu top  "), "{size:?}:\n{screen}");
        assert!(
            screen.trim_end().lines().count() == usize::from(size.1),
            "{size:?}:\n{screen}"
        );
        window.keys(&["q"]);
        assert_eq!(window.status(), "0\n", "{size:?}");
    }
}

#[test]
fn keys_do_as_the_help_says() {
    const TEST: &str = "keys_do_as_the_help_says";
    let Some((_bench, _spin, window)) = begin(TEST, (80, 24), "-d 1") else {
        return;
    };
    window.wait_for("row", has_row);
    window.keys(&["h"]);
    let help = window.wait_for("help", |screen| screen.contains("these keys"));
    assert!(rows(&help).is_empty(), "{help}");
    window.keys(&["h"]);
    window.wait_for("row after the help", has_row);
    window.keys(&["s"]);
    let by_object = |screen: &str| screen.contains("; by Shared Object");
    let screen = window.wait_for("other order", by_object);
    assert!(has_row(&screen), "{screen}");
    let is_paused = |screen: &str| screen.contains(", paused");
    window.keys(&["p"]);
    window.wait_for("pause", |screen| is_paused(screen) && has_row(screen));
    // A pause keeps the empty table of a count from zero on the screen until it ends.
    window.keys(&["z"]);
    window.wait_for("count from zero", |screen| {
        screen.contains("no samples yet")
    });
    window.keys(&["p"]);
    window.wait_for("row after the pause", |screen| {
        !is_paused(screen) && has_row(screen)
    });
    window.keys(&["p"]);
    window.wait_for("second pause", |screen| {
        is_paused(screen) && has_row(screen)
    });
    window.keys(&["/", "n", "o", "t", "h", "e", "r", "e", "Enter"]);
    window.wait_for("filter", |screen| {
        screen.contains("no row has the text") && !has_row(screen)
    });
    // Escape undoes the filter before it ends the program.
    window.keys(&["Escape"]);
    window.wait_for("row without a filter", has_row);
    window.keys(&["/", "[.] spin", "Enter", "Enter"]);
    window.wait_for("instructions", |screen| screen.contains("Disassembly"));
    window.keys(&["Escape"]);
    window.wait_for("row after the instructions", has_row);
    window.keys(&["Enter"]);
    window.wait_for("instructions again", |screen| {
        screen.contains("Disassembly")
    });
    window.keys(&["q"]);
    assert_eq!(window.status(), "0\n");
}

#[test]
fn samples_in_the_title_are_those_of_the_rows() {
    const TEST: &str = "samples_in_the_title_are_those_of_the_rows";
    let options = "-e cpu-clock:u -d 1 -z -n --percent-limit 0";
    let Some((_bench, _spin, window)) = begin(TEST, (80, 24), options) else {
        return;
    };
    let agrees = |screen: &str| {
        let (before, _) = screen.split_once(" recent samples").unwrap_or_default();
        let all = before
            .rsplit(' ')
            .next()
            .and_then(|number| number.parse().ok());
        let of_row = |row: &&str| row.split_whitespace().nth(1)?.parse::<u64>().ok();
        let sum: u64 = rows(screen).iter().filter_map(of_row).sum();
        sum > 0 && all == Some(sum)
    };
    for _ in 0..3 {
        window.wait_for("table that agrees with its title", agrees);
        // Keys leave the table and its title as they are.
        window.keys(&["s"]);
    }
}

#[test]
fn the_last_table_stays_when_the_process_ends() {
    const TEST: &str = "the_last_table_stays_when_the_process_ends";
    let Some((_bench, spin, window)) = begin(TEST, (80, 24), "-e cpu-clock:u -d 1") else {
        return;
    };
    window.wait_for("row", has_row);
    let ended = format!("process {} has ended", spin.0.id());
    drop(spin);
    assert_eq!(window.status(), "0\n");
    window.wait_for("last table", |screen| {
        has_row(screen) && screen.contains(&ended)
    });
}
