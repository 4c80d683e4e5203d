//! The command, end to end, over the simulated PMU.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::{contains, starts_with};

fn conform(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("quipu-conform").expect("the command is built");
    command.args(args);
    command
}

fn stdout(args: &[&str]) -> String {
    let output = conform(args).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn it_lists_every_check_without_running_any() {
    let listed = stdout(&["--list"]);
    for check in quipu_conformance::all() {
        assert!(listed.contains(&format!("{}\n    {}\n", check.id, check.requires)));
    }
    let number = quipu_conformance::all().count();
    assert!(listed.ends_with(&format!("{number} checks\n")));
}

#[test]
fn a_table_says_what_it_ran_on_and_why_checks_were_skipped() {
    conform(&["--backend", "sim"])
        .assert()
        .success()
        .stdout(starts_with("machine "))
        .stdout(contains("pmu     simulated"))
        .stdout(contains("pass  groups.member-order\n"))
        .stdout(contains("the backend does not offer inherit"))
        .stdout(contains(" 0 failed, "));
}

#[test]
fn tap_numbers_every_check() {
    let tap = stdout(&["--backend", "sim", "--format", "tap", "--filter", "inherit"]);
    let checks = tap.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(
        tap.starts_with(&format!("TAP version 13\n1..{checks}\n# backend: sim\n")),
        "{tap}"
    );
    assert!(
        tap.contains("ok 1 - inherit.threads-are-counted # SKIP the backend"),
        "{tap}"
    );
}

#[test]
fn json_counts_what_it_lists() {
    let json = stdout(&["--backend", "sim", "--format", "json"]);
    let all: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(all["not_run"], serde_json::json!([]));
    let json = &all["runs"][0];
    let checks = json["checks"].as_array().expect("checks");
    assert_eq!(checks.len(), quipu_conformance::all().count());
    for (sum, verdict) in [("passed", "pass"), ("failed", "fail"), ("skipped", "skip")] {
        let of = checks.iter().filter(|check| check["verdict"] == verdict);
        assert_eq!(json[sum], of.count(), "{sum}");
    }
    let skipped = checks.iter().find(|check| check["verdict"] == "skip");
    assert!(skipped.is_some_and(|check| check["reason"].is_string()));
    assert_eq!(json["pmu"], "simulated");
}

#[test]
fn junit_is_well_formed_and_has_a_suite_for_each_area() {
    let xml = stdout(&["--backend", "sim", "--format", "junit"]);
    let (mut suites, mut cases, mut skipped) = (0, 0, 0);
    let mut reader = quick_xml::Reader::from_str(&xml);
    loop {
        use quick_xml::events::Event;
        match reader.read_event().expect("well-formed") {
            Event::Start(tag) | Event::Empty(tag) => match tag.name().as_ref() {
                b"testsuite" => suites += 1,
                b"testcase" => cases += 1,
                b"skipped" => skipped += 1,
                b"failure" => panic!("{xml}"),
                _ => {}
            },
            Event::Eof => break,
            _ => {}
        }
    }
    let areas: std::collections::HashSet<_> = quipu_conformance::all()
        .map(quipu_conformance::Check::area)
        .collect();
    assert_eq!(suites, areas.len());
    assert_eq!(cases, quipu_conformance::all().count());
    assert!(skipped > 0);
}

#[cfg(target_os = "linux")]
#[test]
fn without_arguments_it_runs_what_can_be_run_here_and_says_what_was_not_proven() {
    let filters = ["--filter", "lifecycle.", "--filter", "multiplexing.every"];
    let output = conform(&filters).output().expect("it runs");
    let report = String::from_utf8(output.stdout).expect("UTF-8");
    for line in [
        "posix: ",
        "not proven of posix, by what was missing:",
        "not run: msr: it writes registers of the CPU",
    ] {
        assert!(report.lines().any(|l| l.starts_with(line)), "{report}");
    }
    // Where perf_event_open cannot be called, that is said.
    assert!(
        report.contains("\nlinux: ") || report.contains("not run: linux: "),
        "{report}"
    );
    assert!(
        report.contains("not run: pctr: cannot open /dev/pctr: there is no such node\n"),
        "{report}"
    );
    assert_eq!(output.status.code(), Some(0), "{report}");
}

#[cfg(unix)]
#[test]
fn a_run_of_skips_only_is_no_pass() {
    let nothing = ["--backend", "posix", "--filter", "multiplexing."];
    conform(&nothing)
        .assert()
        .code(3)
        .stdout(contains("posix: 0 passed, 0 failed, "))
        .stderr(contains("posix: nothing is proven, since none of "));
    // Beside a backend that proves something.
    conform(&[&nothing[..], &["--backend", "sim"]].concat())
        .assert()
        .code(3)
        .stderr(contains("sim: nothing").not());
}

/// A report in every form that others read, of two backends.
fn of_two(format: &str) -> String {
    let backends = ["--backend", "sim", "--backend", "sim-msr:p6"];
    stdout(&[&backends[..], &["--filter", "reset.", "--format", format]].concat())
}

/// Runs a program of Python's over a text; returns what it prints, or `None` where there is no Python.
fn python(program: &str, text: &str) -> Option<String> {
    let Ok(output) = Command::new("python3")
        .args(["-c", program])
        .write_stdin(text)
        .output()
    else {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"SKIP forms of reports by Python's parsers: there is no python3\n",
        );
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(
        String::from_utf8(output.stdout)
            .expect("UTF-8")
            .trim()
            .to_owned(),
    )
}

#[test]
fn another_parser_reads_the_reports() {
    let checks = quipu_conformance::all().filter(|check| check.area() == "reset");
    let cases = 2 * checks.count();
    let junit = "
import sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.stdin.buffer.read())
cases = list(root.iter('testcase'))
assert int(root.get('tests')) == len(cases) == sum(int(s.get('tests')) for s in root)
assert {c.get('classname') for c in cases} == {'sim.reset', 'sim-msr:p6.reset'}
print(len(cases))";
    assert!(python(junit, &of_two("junit")).is_none_or(|seen| seen == cases.to_string()));
    // As XML, and as HTML: each element that is not void is closed where it should be.
    let html = "
import sys, html.parser, xml.etree.ElementTree as tree
text = sys.stdin.buffer.read().decode()
rows = len(list(tree.fromstring(text).iter('tr')))
class Parser(html.parser.HTMLParser):
    open, verdicts = [], 0
    def handle_starttag(self, tag, attributes):
        assert not any(n in ('src', 'href') for n, _ in attributes), 'it needs another file'
        self.verdicts += ('class', 'pass') in attributes
        if tag not in ('meta',): self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        assert tag == 'meta', tag
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag
parser = Parser()
parser.feed(text)
parser.close()
assert text.startswith('<!DOCTYPE html>') and not parser.open and rows > 10
print(parser.verdicts)";
    assert!(python(html, &of_two("html")).is_none_or(|seen| seen == cases.to_string()));
}

#[test]
fn a_page_of_markdown_has_a_row_for_each_backend_and_check() {
    let page = of_two("markdown");
    assert!(
        page.starts_with("# Conformance of Quipu\n\n## Backends\n"),
        "{page}"
    );
    for row in ["| sim | ", "| sim-msr:p6 | "] {
        assert!(page.lines().any(|line| line.starts_with(row)), "{page}");
    }
    let row = "| reset.twice | pass | pass | ";
    assert!(page.lines().any(|line| line.starts_with(row)), "{page}");
    // Every row of a table has as many cells as its head.
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    for table in page.split("\n\n").filter(|part| part.starts_with('|')) {
        let head = cells(table.lines().next().expect("a line"));
        assert!(table.lines().all(|line| cells(line) == head), "{table}");
    }
}

#[test]
fn it_writes_to_a_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("report");
    let path = path.to_str().expect("UTF-8");
    let args = ["--backend", "sim", "--filter", "reset.", "--output", path];
    conform(&args).assert().success().stdout("");
    let written = std::fs::read_to_string(path).expect("written");
    assert!(written.contains("pass  reset.clears-value"), "{written}");
    assert!(!written.contains("groups."), "{written}");
}

#[test]
fn what_cannot_be_run_is_an_error() {
    let nothing = ["--backend", "sim", "--filter", "no-such-check"];
    conform(&nothing)
        .assert()
        .code(2)
        .stderr(contains("no check has no-such-check in its id"));
    conform(&["--format", "record"])
        .assert()
        .code(2)
        .stderr(contains("name it with --backend"));
    let nowhere = [
        "--backend",
        "sim",
        "--filter",
        "reset.twice",
        "--output",
        "/no/such/file",
    ];
    conform(&nowhere)
        .assert()
        .code(2)
        .stderr(contains("/no/such/file").and(contains("No such file")));
}

#[cfg(unix)]
#[test]
fn simulated_registers_of_every_generation_have_a_report_of_their_own() {
    for (generation, counters) in [
        ("p6", "P6, two counters of 40 bits"),
        ("amd-perfmonv2", "PerfMonV2"),
    ] {
        let backend = format!("sim-msr:{generation}");
        conform(&["--backend", &backend, "--filter", "reset."])
            .assert()
            .success()
            .stdout(contains("pmu     simulated: ").and(contains(counters)))
            .stdout(contains(" 0 failed, "));
    }
    conform(&["--backend", "sim-msr:p7"])
        .assert()
        .code(2)
        .stderr(contains("the generations are p5, p6, intel-v1, "));
}

/// Runs the suite on them if they can be used; elsewhere the reason is said.
#[cfg(target_os = "linux")]
#[test]
fn registers_that_cannot_be_used_are_no_silence() {
    let output = conform(&["--backend", "msr"]).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(2) => assert!(errors.contains("cannot "), "{errors}"),
        status => assert_eq!(status, Some(0), "{output:?}"),
    }
}

/// The sums of a suite that has to have passed something and failed nothing.
fn sums(backend: &str) -> (u64, u64) {
    let json = stdout(&["--backend", backend, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let run = &json["runs"][0];
    assert_eq!(run["failed"], 0, "{backend}: {json}");
    let sum = |of: &str| run[of].as_u64().expect("a number");
    (sum("passed"), sum("skipped"))
}

#[cfg(unix)]
#[test]
fn every_simulated_pctr_has_its_table() {
    for machine in [
        "i386-1996:p5",
        "i386-2003:p6",
        "i386-2023:core",
        "amd64-2019:k8",
    ] {
        let (passed, skipped) = sums(&format!("sim-pctr:{machine}"));
        assert!(
            passed > skipped,
            "{machine}: {passed} passed, {skipped} skipped"
        );
    }
    for (name, reason) in [
        ("sim-pctr:p6", "an era, a colon and a CPU"),
        ("sim-pctr:amd64-2019:p6", "does not run on p6"),
        ("sim-pctr:1970:p6", "the eras are i386-1996"),
    ] {
        let refused = conform(&["--backend", name]).assert().code(2);
        refused.stderr(contains(reason));
    }
    conform(&["--backend", "sim-pctr:i386-2023:p6"])
        .assert()
        .code(2)
        .stderr(contains("knows no counters on that CPU"));
    conform(&["--backend", "pctr", "--device", "/nowhere/pctr"])
        .assert()
        .code(2)
        .stderr(contains("/nowhere/pctr"));
}

#[cfg(unix)]
#[test]
fn posix_has_its_table() {
    assert!(sums("posix").0 > 20);
}
