//! Help: topics, subcommands, man pages and completions.

use std::fs;

use assert_cmd::Command;

fn quipu(arguments: &[&str]) -> std::process::Output {
    let mut command = Command::cargo_bin("quipu").expect("cargo builds it");
    command.args(arguments).output().expect("it starts")
}

fn help(words: &[&str]) -> String {
    let output = quipu(&[&["help"], words].concat());
    assert_eq!(output.status.code(), Some(0), "{words:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn topics_and_subcommands_are_explained() {
    assert!(help(&["permissions"]).contains("perf_event_paranoid"));
    assert!(help(&["virtual", "machines"]).contains("pmu=on"));
    // It is a topic and a subcommand.
    let events = help(&["events"]);
    assert!(events.contains("How events are written") && events.contains("quipu events"));
    assert!(help(&["stat"]).contains("quipu stat [OPTIONS]"));
    assert!(help(&["events", "check"]).contains("quipu events check"));
    assert!(help(&[]).contains("Topics: "));
    for topic in ["events", "permissions", "virtual-machines"] {
        let text = help(&[topic]);
        // What clap writes is as wide as the terminal.
        let own = text.split("\nThe subcommand of this name:").next();
        let mut lines = own.into_iter().flat_map(str::lines);
        assert!(lines.all(|line| line.len() <= 80), "{topic}");
    }
    let unknown = quipu(&["help", "nosuch"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("topics are events"));
}

#[test]
fn packages_get_man_pages_and_completions() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("text");
    for kind in ["man", "completions"] {
        assert!(quipu(&["generate", kind, path]).status.success(), "{kind}");
    }
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).expect(name);
    let list = help(&[]);
    let (_, commands) = list.split_once("Commands:\n").expect("a list");
    let commands = commands.lines().take_while(|line| !line.is_empty());
    for name in commands.filter_map(|line| line.split_whitespace().next()) {
        assert!(
            read(&format!("quipu-{name}.1")).starts_with(".ie"),
            "{name}"
        );
    }
    assert!(read("quipu-stat.1").contains("what a build costs"));
    for script in ["quipu.bash", "_quipu", "quipu.fish"] {
        assert!(read(script).contains("complete -- "), "{script}");
    }
    assert!(
        !quipu(&["generate", "man", "/proc/nowhere"])
            .status
            .success()
    );
}
