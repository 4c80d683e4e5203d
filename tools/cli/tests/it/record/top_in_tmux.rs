//! `quipu top` on a terminal of tmux(1), as people see it.

use super::Bench;
use super::top::{Killed, spinning};
use crate::tmux::Window;

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
    let quipu = env!("CARGO_BIN_EXE_quipu");
    let id = spin.0.id();
    let line =
        format!("'{quipu}' top {options} -p {id} 2>errors; echo $? >status; cat errors; sleep 600");
    let window = Window::open(test, bench.directory.path(), size, &line)?;
    Some((bench, spin, window))
}

/// Waits until quipu has ended; returns its exit status.
fn status(bench: &Bench, window: &Window) -> String {
    let file = bench.path("status");
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    window.wait_for("end", |_| read().ends_with('\n'));
    read()
}

#[test]
fn rows_are_shown_without_a_key_on_every_size_of_terminal() {
    const TEST: &str = "rows_are_shown_without_a_key_on_every_size_of_terminal";
    for size in [(80, 24), (20, 24), (200, 24), (80, 8), (20, 4)] {
        // The usual event: where the CPU has no counters, a note says so.
        let Some((bench, _spin, window)) = begin(TEST, size, "-d 1") else {
            return;
        };
        let screen = window.wait_for("row", has_row);
        assert!(screen.starts_with("quipu top  "), "{size:?}:\n{screen}");
        assert!(
            screen.trim_end().lines().count() == usize::from(size.1),
            "{size:?}:\n{screen}"
        );
        window.keys(&["q"]);
        assert_eq!(status(&bench, &window), "0\n", "{size:?}");
    }
}

#[test]
fn keys_do_as_the_help_says() {
    const TEST: &str = "keys_do_as_the_help_says";
    let Some((bench, _spin, window)) = begin(TEST, (80, 24), "-d 1") else {
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
    assert_eq!(status(&bench, &window), "0\n");
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
    let Some((bench, spin, window)) = begin(TEST, (40, 24), "-e cpu-clock:u -d 1") else {
        return;
    };
    window.wait_for("row", has_row);
    let ended = format!("process {} has ended", spin.0.id());
    drop(spin);
    assert_eq!(status(&bench, &window), "0\n");
    window.wait_for("last table", |screen| {
        has_row(screen) && screen.contains(&ended)
    });
    let lines = window.lines();
    assert!(
        lines.lines().all(|line| line.chars().count() <= 40),
        "{lines}"
    );
}
