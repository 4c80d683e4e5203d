//! `quipu top`, as tables and on a terminal, which script(1) makes.

use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use quipu_shell::signals::is_ignored;

use super::{Bench, skip, stderr};

/// Spins in a function of its own until it is killed.
const SPIN: &str = r"
void spinning(void) { for (volatile long i = 0; i < 1000000; i++); }
int main(void) { for (;;) spinning(); }
";

/// As long as anything may take on a loaded machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// A process that is killed at the end.
pub(super) struct Killed(pub(super) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program that spins; `None`, which is said, where nothing can be sampled.
pub(super) fn spinning(test: &str) -> Option<(Bench, Killed)> {
    let bench = Bench::new(test)?;
    bench.compile("spin", SPIN).expect("it compiled another");
    let child = Command::new(bench.path("spin")).spawn();
    Some((bench, Killed(child.expect("it starts"))))
}

/// A running `quipu top` and what it has written so far.
struct Running {
    child: Killed,
    pieces: Receiver<Vec<u8>>,
    seen: String,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut output = child.stdout.take().expect("piped");
        let (sender, pieces) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(len @ 1..) = output.read(&mut piece) {
                let _ = sender.send(piece[..len].to_vec());
            }
        });
        Self {
            child: Killed(child),
            pieces,
            seen: String::new(),
        }
    }

    /// Waits until a text has been written.
    fn wait_for(&mut self, text: &str) {
        while !self.seen.contains(text) {
            match self.pieces.recv_timeout(PATIENCE) {
                Ok(piece) => self.seen.push_str(&String::from_utf8_lossy(&piece)),
                Err(why) => panic!("{text:?}: {why}: {:?}", self.seen),
            }
        }
    }

    fn type_keys(&mut self, keys: &str) {
        let stdin = self.child.0.stdin.as_mut().expect("piped");
        stdin.write_all(keys.as_bytes()).expect("it reads");
        stdin.flush().expect("it reads");
    }

    fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.child.0.try_wait().expect("a child") {
                Some(status) => return status,
                None if Instant::now() > end => panic!("it does not end: {:?}", self.seen),
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Returns the id of the program on the terminal.
    fn pid(&self) -> String {
        let (_, rest) = self.seen.split_once("pid=").expect("the line of sh");
        rest.chars().take_while(char::is_ascii_digit).collect()
    }

    /// Waits for the end; returns the exit status.
    fn end(mut self) -> (Option<i32>, String) {
        let status = self.wait();
        while let Ok(piece) = self.pieces.recv_timeout(Duration::from_millis(200)) {
            self.seen.push_str(&String::from_utf8_lossy(&piece));
        }
        (status.code(), std::mem::take(&mut self.seen))
    }

    /// Returns the number of tables seen.
    fn tables(&self) -> usize {
        self.seen.matches("# Overhead").count()
    }

    /// Interrupts it when so many tables were seen; returns all that it printed.
    fn interrupted_after(mut self, tables: usize) -> String {
        while self.tables() < tables {
            let piece = self.pieces.recv_timeout(PATIENCE).expect("a table");
            self.seen.push_str(&String::from_utf8_lossy(&piece));
        }
        let id = self.child.0.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.expect("kill(1)").success());
        let (status, text) = self.end();
        assert_eq!(status, Some(0));
        text
    }
}

/// Starts it on a terminal, after a command of the shell and a line with its process id; `None` if there is no
/// script(1).
fn on_terminal(test: &str, before: &str, pid: u32) -> Option<Running> {
    let quipu = env!("CARGO_BIN_EXE_quipu");
    let line = format!(
        "{before} stty rows 24 cols 80; echo pid=$$; TERM=xterm exec '{quipu}' top -e cpu-clock:u -d 1 -p {pid}"
    );
    if Command::new("script").arg("--version").output().is_err() {
        skip(test, "script(1) is not installed");
        return None;
    }
    let mut running = Running::start(Command::new("script").args(["-qec", &line, "/dev/null"]));
    running.wait_for("spinning");
    Some(running)
}

/// The alternate screen of a terminal is left (`rmcup`, terminfo(5)).
const LEFT: &str = "\x1b[?1049l";

#[test]
fn tables_name_what_is_hot_until_a_signal() {
    let Some((_bench, spin)) = spinning("tables_name_what_is_hot_until_a_signal") else {
        return;
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    let pid = spin.0.id().to_string();
    command.args(["top", "--stdio", "-e", "cpu-clock:u", "-d", "1", "-p", &pid]);
    let mut running = Running::start(&mut command);
    running.wait_for("spinning\n");
    // A second table, in which the first one is still counted.
    let tables = running.tables();
    let text = running.interrupted_after(tables + 1);
    let row = text
        .lines()
        .find(|line| line.ends_with("spinning"))
        .expect("a row");
    assert!(row.contains("%  spin  "), "{row}");
    assert!(text.contains("# cpu-clock:u: "), "{text}");
}

/// Makes system calls until it is killed.
const CALLS: &str = r"
#include <unistd.h>
void calling(void) { for (volatile long i = 0; i < 1000; i++) getppid(); }
int main(void) { for (;;) calling(); }
";

/// Runs it for two tables of a process; returns the first.
pub(super) fn table(options: &[&str], pid: u32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    let usual = [
        "top",
        "--stdio",
        "-e",
        "cpu-clock",
        "-d",
        "1",
        "--percent-limit",
        "0",
    ];
    command
        .args(usual)
        .args(["-p", &pid.to_string()])
        .args(options);
    let running = Running::start(&mut command);
    let text = running.interrupted_after(2);
    text.split("\n\n").next().expect("a table").to_owned()
}

#[test]
fn rows_are_those_of_modes_and_names_that_are_chosen() {
    const TEST: &str = "rows_are_those_of_modes_and_names_that_are_chosen";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.compile("calls", CALLS).expect("it compiled another");
    let child = Command::new(bench.path("calls")).spawn();
    let calls = Killed(child.expect("it starts"));
    let pid = calls.0.id();
    // The objects of rows and their shares.
    let rows = |options: &[&str]| -> Vec<(String, f64)> {
        let text = table(options, pid);
        let rows = text.lines().filter(|line| line.contains("%  "));
        let rows = rows.map(|row| {
            let (share, rest) = row.split_once("%  ").expect("a share");
            let object = rest.split_whitespace().next().expect("an object");
            (object.to_owned(), share.trim().parse().expect("a number"))
        });
        rows.collect()
    };
    let has = |rows: &[(String, f64)], object: &str| rows.iter().any(|row| row.0.contains(object));
    let all = rows(&[]);
    if !has(&all, "[kernel") || !has(&all, "libc") {
        return skip(TEST, format!("samples are of one mode alone: {all:?}"));
    }
    let user = rows(&["-K"]);
    assert!(!has(&user, "[kernel") && has(&user, "calls"), "{user:?}");
    let kernel = rows(&["-U"]);
    assert!(
        has(&kernel, "[kernel") && !has(&kernel, "calls"),
        "{kernel:?}"
    );
    assert!(!has(&kernel, "libc"), "{kernel:?}");
    // Shares are of all samples, also where names choose some of them.
    let own = rows(&["-K", "--dsos", "calls"]);
    assert!(has(&own, "calls") && !has(&own, "libc"), "{own:?}");
    let whole: f64 = own.iter().map(|row| row.1).sum();
    assert!(whole < 99.0, "{own:?}");
    assert!(rows(&["--comms", "nobody"]).is_empty());
    assert_eq!(rows(&["--symbols", "calling"]).len(), 1);
}

#[test]
fn the_samples_of_rows_are_shown_where_they_are_asked_for() {
    const TEST: &str = "the_samples_of_rows_are_shown_where_they_are_asked_for";
    let Some((_bench, spin)) = spinning(TEST) else {
        return;
    };
    let text = table(&["-n", "-K", "-z"], spin.0.id());
    let all = text.lines().find_map(|line| {
        let (_, rest) = line.split_once("# cpu-clock: ")?;
        rest.split(' ').next()?.parse::<u64>().ok()
    });
    let title = text.lines().find(|line| line.starts_with("# Overhead"));
    let title: Vec<_> = title.expect("a title").split_whitespace().collect();
    assert_eq!(
        title[1..],
        ["Overhead", "Samples", "Shared", "Object", "Symbol"]
    );
    let rows = text.lines().filter(|line| line.contains('%'));
    let samples = rows.map(|row| {
        let count = row.split_whitespace().nth(1).expect(row);
        count.parse::<u64>().expect(row)
    });
    assert_eq!(Some(samples.sum()), all, "{text}");
    // What perf top does not do either.
    let output = quipu(&["top", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("quipu record samples a command"));
}

/// Spins in a function that another one calls, until it is killed.
const CALLED: &str = r#"
__attribute__((noinline)) void inner(void) { for (volatile long i = 0; i < 1000000; i++); }
__attribute__((noinline)) void outer(void) { inner(); __asm__ volatile(""); }
int main(void) { for (;;) outer(); }
"#;

#[test]
fn rows_are_told_apart_by_the_keys_and_have_their_callers() {
    const TEST: &str = "rows_are_told_apart_by_the_keys_and_have_their_callers";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench
        .compile("called", CALLED)
        .expect("it compiled another");
    let child = Command::new(bench.path("called")).spawn();
    let called = Killed(child.expect("it starts"));
    let pid = called.0.id();
    let text = table(&["-K", "-g", "-s", "pid,comm,sym", "-n"], pid);
    let mut lines = text
        .lines()
        .skip_while(|line| !line.ends_with(" [.] inner"));
    let row: Vec<_> = lines.next().expect(&text).split_whitespace().collect();
    assert_eq!(
        row[2..],
        [&format!("{pid}:called"), "called", "[.]", "inner"]
    );
    let callers = lines.map(|line| line.split_once("%  ").expect(&text));
    // A sample of where a function begins has another chain, which indents the rest.
    let callers: Vec<_> = callers.map(|(_, name)| name.trim_start()).take(2).collect();
    assert_eq!(callers, ["outer", "main"], "{text}");
    // As perf has them without -s, and the rows of keys without functions.
    let objects = table(&["-K", "-s", "dso"], pid);
    let rows = objects.lines().filter(|line| line.contains("%  called"));
    assert_eq!(rows.count(), 1, "{objects}");
    for (key, why) in [("nothing", "no such key"), ("symbol_to", "no branches")] {
        let output = quipu(&["top", "-s", key]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{output:?}");
    }
}

/// Runs quipu to its end.
fn quipu(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.args(words).output().expect("it starts")
}

#[test]
fn keys_show_instructions_and_end_it() {
    const TEST: &str = "keys_show_instructions_and_end_it";
    let Some((_bench, spin)) = spinning(TEST) else {
        return;
    };
    let Some(mut running) = on_terminal(TEST, "", spin.0.id()) else {
        return;
    };
    running.type_keys("h");
    // Cells that stay as they were are not drawn again, such as spaces between words.
    running.wait_for("these");
    running.type_keys("h\r");
    running.wait_for("Disassembly");
    running.type_keys("q");
    let (status, text) = running.end();
    assert_eq!(status, Some(0), "{text:?}");
    assert!(text.contains(LEFT), "{text:?}");
}

#[test]
fn signals_and_the_end_of_the_process_give_the_terminal_back() {
    const TEST: &str = "signals_and_the_end_of_the_process_give_the_terminal_back";
    let Some((_bench, mut spin)) = spinning(TEST) else {
        return;
    };
    for signal in ["-TERM", "-HUP", "end"] {
        if signal == "-HUP" && is_ignored(libc::SIGHUP) {
            skip(TEST, "SIGHUP is ignored here");
            continue;
        }
        let Some(running) = on_terminal(TEST, "", spin.0.id()) else {
            return;
        };
        let pid = running.pid();
        if signal == "end" {
            spin.0.kill().expect("it runs");
            spin.0.wait().expect("it ends");
        } else {
            let sent = Command::new("kill").args([signal, &pid]).status();
            assert!(sent.expect("kill(1)").success());
        }
        let (status, text) = running.end();
        assert_eq!(status, Some(0), "{signal}: {text:?}");
        assert!(text.contains(LEFT), "{signal}: {text:?}");
    }
}

#[test]
fn it_ends_with_its_terminal() {
    const TEST: &str = "it_ends_with_its_terminal";
    let Some((_bench, spin)) = spinning(TEST) else {
        return;
    };
    // As by nohup(1), no signal tells of it then.
    for before in ["", "trap '' HUP;"] {
        let Some(mut running) = on_terminal(TEST, before, spin.0.id()) else {
            return;
        };
        let pid = running.pid();
        running.child.0.kill().expect("script(1) runs");
        running.wait();
        let end = Instant::now() + PATIENCE;
        while std::path::Path::new("/proc").join(&pid).exists() {
            assert!(Instant::now() < end, "{before:?}: it goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn it_ends_when_nothing_reads_its_tables() {
    const TEST: &str = "it_ends_when_nothing_reads_its_tables";
    let Some((_bench, spin)) = spinning(TEST) else {
        return;
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    let pid = spin.0.id().to_string();
    command.args(["top", "--stdio", "-e", "cpu-clock:u", "-d", "1", "-p", &pid]);
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = Killed(child.expect("it starts"));
    drop(child.0.stdout.take());
    let end = Instant::now() + PATIENCE;
    while child.0.try_wait().expect("a child").is_none() {
        assert!(Instant::now() < end, "it goes on without a reader");
        std::thread::sleep(Duration::from_millis(20));
    }
}
