//! Files that are right, wrong, and junk.

use proptest::prelude::*;

use super::*;

const WHOLE: &str = r#"
interval = 15
most-series = 500
events = ["page-faults", "{context-switches,cpu-migrations}"]

[labels]
rack = "a7"

[[metric]]
name = "faults_per_switch"
formula = "page-faults / context-switches"
description = "Page faults of a context switch"

[[target]]
cpus = "0-1"
by = "core"

[[target]]
cgroups = "/system.slice/*"
events = ["task-clock"]
most = 7

[[target]]
units = "*.service"

[[target]]
processes = "nginx"

[[target]]
user = "0"
"#;

#[test]
fn a_whole_file_is_read() {
    let config = parse("export.toml", WHOLE, "cycles").expect("it is right");
    assert_eq!(config.interval, Duration::from_secs(15));
    assert_eq!(config.labels, [("rack".to_owned(), "a7".to_owned())]);
    assert_eq!(config.most_series, 500);
    let common = "page-faults,{context-switches,cpu-migrations}";
    let targets: Vec<_> = config
        .targets
        .iter()
        .map(|target| (target.what.clone(), target.events.as_str(), target.most))
        .collect();
    assert_eq!(
        targets,
        [
            (What::Cpus(vec![0, 1], By::Core), common, most_of_cpus()),
            (What::Cgroups("system.slice/*".into()), "task-clock", 7),
            (What::Units("*.service".into()), common, 100),
            (What::Processes("nginx".into()), common, 100),
            (What::User("0".into(), 0), common, 1000),
        ]
    );
    assert_eq!(config.metrics.len(), 1);
}

#[test]
fn an_empty_file_is_what_the_command_line_says() {
    let config = parse("export.toml", "", "cycles").expect("it is right");
    assert_eq!(config, Config::with_events("cycles"));
}

#[test]
fn every_fault_is_found_with_its_place() {
    let text = "interval = 0
intervals = 5
events = [\"page-faults:\"]
[labels]
kind = \"mine\"
rack = 7
[[metric]]
formula = \"1\"
[[metric]]
name = \"m\"
formula = \"cycles /\"
[[target]]
cpus = \"some\"
[[target]]
units = \"a\"
cgroups = \"b\"
[[target]]
processes = \"nginx\"
by = \"cpu\"
[[target]]
user = \"no such user\"
[[target]]
cpus = \"all\"
by = \"sockets\"
";
    let findings = parse("export.toml", text, "cycles").expect_err("it is wrong");
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let starts = [
        "export.toml:1:12: `interval` is 0, which is not from 1 to 3600",
        "export.toml:2:1: unknown key `intervals`; did you mean `interval`?",
        "export.toml:3:11: ",
        "export.toml:5:8: `kind` cannot be a label",
        "export.toml:6:8: `rack` wants a string, not a number",
        "export.toml:7:1: a metric needs a `name`",
        "export.toml:11:11: ",
        "export.toml:13:8: `some` are no CPUs: write all, or 0-3,8",
        "export.toml:14:1: a target has one of `cpus`, `cgroups`, `units`, `processes`, `user`",
        "export.toml:19:6: `by` is for `cpus`",
        "export.toml:21:8: there is no user `no such user`",
        "export.toml:24:6: unknown word `sockets`; there are machine, socket, core, cpu",
    ];
    let text = lines.join("\n");
    assert_eq!(lines.len(), starts.len(), "{text}");
    for start in starts {
        assert!(
            lines.iter().any(|line| line.starts_with(start)),
            "{start}\n{text}"
        );
    }
}

proptest! {
    /// Junk anywhere is a finding or nothing, never a panic.
    #[test]
    fn junk_in_a_file_is_reported(at in 0..WHOLE.len(), length in 0_usize..40, junk in "\\PC{0,12}") {
        let text: String = [
            &WHOLE.chars().take(at).collect::<String>(),
            &junk,
            &WHOLE.chars().skip(at + length).collect::<String>(),
        ]
        .map(String::as_str)
        .concat();
        if let Err(findings) = parse("export.toml", &text, "page-faults") {
            prop_assert!(!findings.is_empty());
            prop_assert!(findings.iter().all(|f| f.line >= 1 && !f.message.is_empty()));
        }
    }
}
