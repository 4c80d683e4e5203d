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

/// Every page has the sections that people look for, and groff(1) fits it into 80 columns without a warning.
#[test]
fn man_pages_have_their_sections_and_fit() {
    const TEST: &str = "man_pages_have_their_sections_and_fit";
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("text");
    assert!(quipu(&["generate", "man", path]).status.success());
    let has_groff = match std::process::Command::new("groff")
        .arg("--version")
        .output()
    {
        Ok(_) => true,
        Err(error) => {
            crate::skip(TEST, format_args!("no groff(1): {error}"));
            false
        }
    };
    let mut pages = 0;
    for file in fs::read_dir(directory.path()).expect("it is ours") {
        let file = file.expect("it is ours").path();
        let page = fs::read_to_string(&file).expect("text");
        for section in ["\"EXIT STATUS\"", "ENVIRONMENT", "\"SEE ALSO\""] {
            assert_eq!(
                page.matches(&format!("\n.SH {section}\n")).count(),
                1,
                "{section}: {page}"
            );
        }
        assert!(
            !page.contains(".SH EXTRA") && !page.contains("\nExamples:"),
            "{page}"
        );
        pages += 1;
        if !has_groff {
            continue;
        }
        let mut groff = std::process::Command::new("groff");
        groff
            .args(["-man", "-ww", "-Tascii", "-P-c", "-rLL=80n"])
            .arg(&file);
        let output = groff.output().expect("it was there");
        let warnings = String::from_utf8_lossy(&output.stderr);
        assert!(warnings.is_empty(), "{}: {warnings}", file.display());
        let text = String::from_utf8_lossy(&output.stdout);
        for line in text.lines() {
            // A character that is struck over itself is bold.
            let struck = 2 * line.matches('\x08').count();
            let width = line.chars().count() - struck;
            assert!(width <= 80, "{}: {line}", file.display());
        }
    }
    assert!(pages > 20, "{pages}");
    let stat = fs::read_to_string(directory.path().join("quipu-stat.1")).expect("text");
    for part in [
        ".TH quipu-stat 1  \"quipu 0",
        "\n.SS \"What\"\n",
        "\n.SH EXAMPLES\n.TP\n\\fBquipu stat \\-\\- make \\-j8\\fR\nwhat a build costs\n",
        "\n.SH FILES\n",
        "\\fBperf\\-stat\\fR(1)",
    ] {
        assert!(stat.contains(part), "{part}: {stat}");
    }
    // NAME says it.
    assert!(!stat.contains(".SH DESCRIPTION"), "{stat}");
}
