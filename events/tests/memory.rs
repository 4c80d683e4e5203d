//! The memory that an event file takes: at most three times its size, whatever is in it.
//!
//! A process of its own: what is measured is the high water mark of one.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use quipu_events::{Database, check_file};

/// The size of each file.
const SIZE: u64 = 31 << 20;

/// Writes a file of a head and of lines, as many as there is room for.
fn fill(path: &Path, head: &str, line: impl Fn(usize) -> String, end: &str) {
    let mut file = BufWriter::new(fs::File::create(path).unwrap());
    file.write_all(head.as_bytes()).unwrap();
    let mut size = head.len() + end.len();
    for number in 0.. {
        let line = line(number);
        size += line.len();
        if size as u64 > SIZE {
            break;
        }
        file.write_all(line.as_bytes()).unwrap();
    }
    file.write_all(end.as_bytes()).unwrap();
}

/// The name of the file that a child of this test reads.
const FILE: &str = "QUIPU_MEMORY_FILE";

/// Reads the file, and prints the most memory that the process has had, in bytes, and what came of it.
///
/// A process of its own for each file: an allocator keeps what was freed.
#[test]
fn child() {
    let Some(path) = std::env::var_os(FILE) else {
        return;
    };
    let path = Path::new(&path);
    let database = Database::embedded();
    let layered = database.with_file(path);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    let peak = kib.unwrap().parse::<u64>().unwrap() << 10;
    let outcome = match layered {
        Ok(database) => database.cpu("x-a").unwrap().events().len().to_string(),
        Err(_) => {
            let first = check_file(path, &database).unwrap().swap_remove(0);
            format!("{}: {}", first.line, first.message)
        }
    };
    println!("\nread: {peak} {outcome}");
}

const HEAD: &str = "[[cpu]]\nid = \"x-a\"\nscheme = \"perf\"\n";

fn event(number: usize) -> String {
    format!("E{number:07} = {number:#09x}\n")
}

/// Files of one kind, each of which is read by a child.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn fill(&self, head: &str, line: impl Fn(usize) -> String, end: &str) {
        fill(&self.path(), head, line, end);
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("large.toml")
    }

    /// Has the file read; asserts that it takes at most three times its size, and returns what came of it.
    fn outcome(&self, what: &str) -> String {
        let size = fs::metadata(self.path()).unwrap().len();
        assert!(size > SIZE - 600 && size <= SIZE, "{what}: {size}");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(FILE, self.path())
            .output()
            .unwrap();
        let output = String::from_utf8(child.stdout).unwrap();
        let line = output.lines().find_map(|line| line.strip_prefix("read: "));
        let (peak, outcome) = line.and_then(|line| line.split_once(' ')).unwrap();
        let tenths = peak.parse::<u64>().unwrap() * 10 / size;
        println!("{what}: {tenths} tenths of the size");
        assert!(tenths <= 30, "{what}: {tenths} tenths of the size");
        outcome.to_owned()
    }
}

fn events() -> String {
    format!("{HEAD}[cpu.events]\n")
}

#[test]
fn a_large_file_of_events_takes_at_most_three_times_its_size() {
    let files = Files::new();
    let described = |number: usize| {
        let text = "what it counts, in the words of the one who wrote the file ".repeat(4);
        format!("E{number} = {{ code = {number}, description = \"{number}: {text}\" }}\n")
    };
    files.fill(&events(), described, "");
    let number: usize = files.outcome("events with descriptions").parse().unwrap();
    assert!(number > 110_000, "{number}");

    let tabled = |number: usize| {
        let words = format!("description = \"{number} {}\"", "of this, ".repeat(50));
        format!(
            "[cpu.events.E{number}]\ncode = {number}\n{words}\nmasks.A = {{ bits = 0, code = 0x1{number:06x} }}\n"
        )
    };
    files.fill(HEAD, tabled, "");
    let number: usize = files.outcome("events as tables").parse().unwrap();
    assert!(number > 100_000, "{number}");
}

#[test]
fn a_large_file_of_presets_takes_at_most_three_times_its_size() {
    let files = Files::new();
    let preset = |number: usize| {
        let sum = "instructions + ".repeat(20);
        format!("P{number} = \"{sum}{number}\"\n")
    };
    let generalized =
        "[cpu.events]\nI = 1\n[cpu.generalized]\ninstructions = \"I\"\n[cpu.presets]\n";
    files.fill(&format!("{HEAD}{generalized}"), preset, "");
    assert_eq!(files.outcome("presets"), "1");
}

/// Says where the mistake is.
#[test]
fn a_large_file_that_is_refused_takes_at_most_three_times_its_size() {
    let files = Files::new();
    let events = events();
    let comment = |_| "# nothing\n".to_owned();
    files.fill(&format!("{events}{}", event(1)), comment, "LAST = \"1\"\n");
    let last = files.outcome("comments");
    let line = fs::read_to_string(files.path()).unwrap().lines().count();
    assert_eq!(
        last,
        format!("{line}: `LAST` wants a table or a number, not a string")
    );

    // More than there may be: read no further.
    files.fill(&events, event, "");
    let excess = files.outcome("two million events");
    assert!(excess.contains("more than 131072 events"), "{excess}");

    files.fill(
        "",
        |number| format!("[[cpu]]\nid = \"x-{number}\"\nscheme = \"p6\"\n"),
        "",
    );
    let excess = files.outcome("CPU entries");
    assert!(excess.contains("more than 4096 CPU"), "{excess}");

    let mask = |number| format!("M{number}=1,");
    files.fill(
        &format!("{events}E = {{ code = 1, masks = {{ "),
        mask,
        "L=2 } }\n",
    );
    let excess = files.outcome("masks of one event");
    assert!(excess.starts_with("5: what begins here"), "{excess}");

    files.fill(&format!("{HEAD}match = ["), |_| "{},".to_owned(), "]\n");
    let excess = files.outcome("rules of one CPU");
    assert!(excess.contains("what begins here"), "{excess}");

    files.fill(&events, |_| "[".to_owned(), "");
    let excess = files.outcome("brackets");
    assert!(excess.contains("what begins here"), "{excess}");
}
