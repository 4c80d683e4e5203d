//! Journeys of people who have not used quipu before, on terminals of tmux(1) and in a browser.

use std::process::Command;

use crate::tmux::Window;

use super::{Bench, quipu, skip, stderr};

const QUIPU: &str = env!("CARGO_BIN_EXE_quipu");

/// Finds words by hashes: most of the time is in one function with two callers.
const WORDS: &str = r#"
static unsigned counts[4096];
static unsigned hash(const char *word) {
    unsigned sum = 5381;
    for (int round = 0; round < 200; round++)
        for (const char *c = word; *c; c++) sum = sum * 33 + (unsigned char)*c;
    return sum % 4096;
}
static void insert(const char *word) { counts[hash(word)]++; }
static unsigned look_up(const char *word) { return counts[hash(word)]; }
int main(void) {
    unsigned sum = 0;
    for (int i = 0; i < 20000; i++) { insert("journeys"); sum += look_up("of people"); }
    return sum == 1;
}
"#;

/// Has the words found and recorded with their callers; `None`, which is said, where that cannot be.
fn recorded(test: &str) -> Option<Bench> {
    let bench = Bench::new(test)?;
    // As people build what they measure, without frame pointers.
    let options = ["-O1", "-g", "-fno-inline", "-fomit-frame-pointer"];
    bench
        .compile_with(&options, "words", WORDS)
        .expect("it compiled another");
    let options = ["-e", "cpu-clock:u", "--call-graph", "dwarf"];
    let recorded = bench.record(&options, &bench.path("words").to_string_lossy());
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    Some(bench)
}

/// Searches a picture for the text `hash` when the browser has shown it, and writes down what is then said below.
const SEARCH: &str = r#"<!DOCTYPE html><iframe id="picture" src="out.svg"></iframe><p id="found">unfinished</p><script>
const frame = document.getElementById("picture");
frame.onload = () => {
  frame.contentWindow.search("hash");
  const shown = frame.contentDocument;
  document.getElementById("found").textContent = shown.getElementById("matched").textContent;
};
</script>"#;

/// The README's three commands, of which another test installs the first.
#[test]
fn a_flame_graph_of_a_program_is_drawn_and_searched() {
    const TEST: &str = "a_flame_graph_of_a_program_is_drawn_and_searched";
    let Some(bench) = recorded(TEST) else {
        return;
    };
    let drawn = bench.report(&["--flamegraph", "out.svg"]);
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    std::fs::write(bench.path("search.html"), SEARCH).expect("it is ours");
    let browser = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--allow-file-access-from-files",
            "--virtual-time-budget=10000",
        ])
        .arg(format!(
            "--user-data-dir={}",
            bench.path("browser").display()
        ))
        .arg("--dump-dom")
        .arg(format!("file://{}", bench.path("search.html").display()))
        .output();
    let Ok(browser) = browser else {
        return skip(TEST, "chromium is not installed");
    };
    let page = String::from_utf8_lossy(&browser.stdout);
    let found = page
        .split_once("Matched: ")
        .and_then(|(_, rest)| rest.split_once('%'));
    let (share, _) = found.unwrap_or_else(|| panic!("{page}\n{}", stderr(&browser)));
    assert!(
        share.parse::<f64>().is_ok_and(|share| share > 90.0),
        "{share}"
    );
}

#[test]
fn a_reader_that_has_read_enough_ends_what_goes_on_for_ever() {
    const TEST: &str = "a_reader_that_has_read_enough_ends_what_goes_on_for_ever";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    for endless in [
        "top -e cpu-clock:u -d 1 -p $$",
        "top --stdio -e cpu-clock:u -d 1 -p $$",
        "stat -I 100 -e cs -o /dev/stdout -p $$",
        "stat -j -I 100 -e cs --log-fd 1 -p $$",
    ] {
        let line = format!("'{QUIPU}' {endless} | head -n 2; echo at its end; sleep 600");
        let Some(window) = Window::open(TEST, bench.directory.path(), (80, 24), &line) else {
            return;
        };
        window.wait_for("end", |screen| screen.contains("at its end"));
        let lines = window.lines();
        // Two lines, and no more on standard error.
        assert_eq!(lines.trim_end().lines().count(), 3, "{endless}:\n{lines}");
    }
}

/// The bottom line of less(1) where a text goes on.
fn is_paged(screen: &str) -> bool {
    screen
        .trim_end()
        .lines()
        .last()
        .is_some_and(|line| line == ":")
}

#[test]
fn long_texts_open_in_a_pager_at_what_matters() {
    const TEST: &str = "long_texts_open_in_a_pager_at_what_matters";
    if Command::new("less").arg("-V").output().is_err() {
        return skip(TEST, "less(1) is not installed");
    }
    let Some(bench) = recorded(TEST) else {
        return;
    };
    // The last part of the name of a function, and on the first screen its hottest instructions.
    for (command, first) in [
        ("annotate hash", "hottest"),
        ("list", "page-faults"),
        ("--help", "Usage"),
    ] {
        let line = format!("'{QUIPU}' {command}; echo at its end; sleep 600");
        let Some(window) = Window::open(TEST, bench.directory.path(), (80, 12), &line) else {
            return;
        };
        let screen = window.wait_for("pager", is_paged);
        assert!(screen.contains(first), "{command}:\n{screen}");
        window.keys(&["q"]);
        window.wait_for("end", |screen| screen.contains("at its end"));
    }
}

#[test]
fn nothing_is_wider_than_a_small_terminal() {
    const TEST: &str = "nothing_is_wider_than_a_small_terminal";
    let Some(bench) = recorded(TEST) else {
        return;
    };
    for columns in [80, 60] {
        for command in [
            "report",
            "report -g",
            "report --children",
            "annotate hash",
            "diff perf.data perf.data",
            "stat -- ./words",
            "stat -r 2 -- ./words",
            "stat -I 20 -- ./words",
            "stat -a --per-core -- ./words",
            "list",
            "info",
        ] {
            let line = format!("PAGER=cat '{QUIPU}' {command}; echo at its end; sleep 600");
            let size = (columns, 24);
            let Some(window) = Window::open(TEST, bench.directory.path(), size, &line) else {
                return;
            };
            window.wait_for("end", |screen| screen.contains("at its end"));
            let lines = window.lines();
            let wide = lines
                .lines()
                .find(|line| line.chars().count() > columns.into());
            assert_eq!(wide, None, "{command} on {columns} columns");
        }
    }
}

#[test]
fn tab_completes_the_names_of_events() {
    const TEST: &str = "tab_completes_the_names_of_events";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let written = quipu()
        .current_dir(bench.directory.path())
        .args(["generate", "completions", "."])
        .output();
    assert!(written.expect("it starts").status.success());
    let beside = std::path::Path::new(QUIPU).parent().expect("a directory");
    for (shell, start) in [
        ("bash --norc --noprofile", "PS1='$ '; source ./quipu.bash"),
        (
            "zsh -f",
            "PS1='$ '; autoload -U compinit; compinit -u -D; source ./_quipu",
        ),
        (
            "fish --no-config",
            "function fish_prompt; echo '$ '; end; source ./quipu.fish",
        ),
    ] {
        let name = shell.split(' ').next().expect("a name");
        if Command::new(name).arg("--version").output().is_err() {
            skip(TEST, format_args!("{name} is not installed"));
            continue;
        }
        let line = format!("HOME=$PWD PATH={}:$PATH exec {shell}", beside.display());
        let Some(window) = Window::open(TEST, bench.directory.path(), (80, 24), &line) else {
            return;
        };
        window.keys(&[start, "Enter", "clear", "Enter"]);
        window.wait_for("prompt", |screen| screen.trim_end() == "$");
        window.keys(&["quipu stat -e page-f", "Tab"]);
        window.wait_for("event", |screen| {
            screen.contains("quipu stat -e page-faults")
        });
        window.keys(&["-r 2 --interval-pr", "Tab"]);
        window.wait_for("option", |screen| screen.contains("-r 2 --interval-print"));
    }
}
