//! Unusual surroundings: no `/sys`, no `/proc`, few files, other users, user namespaces. What can be counted is counted,
//! and what cannot says so truly.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

/// A directory that every user may use, with a copy of quipu.
struct Place {
    test: &'static str,
    directory: TempDir,
}

impl Place {
    /// Returns one, or says why a test is skipped.
    fn new(test: &'static str) -> Option<Self> {
        let directory = TempDir::new().expect("a directory");
        let place = Self { test, directory };
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(place.directory.path(), open).expect("it is ours");
        fs::copy(cargo_bin("quipu"), place.quipu()).expect("a copy");
        let counts = place.run("", "stat -a -e task-clock true");
        if !counts.status.success() {
            place.skip(&text(&counts));
            return None;
        }
        Some(place)
    }

    fn skip(&self, why: &str) {
        let _ = writeln!(std::io::stderr(), "SKIP {}: {}", self.test, why.trim());
    }

    fn quipu(&self) -> std::path::PathBuf {
        self.directory.path().join("quipu")
    }

    /// Runs quipu by a shell, after commands of it.
    fn run(&self, before: &str, arguments: &str) -> Output {
        let quipu = self.quipu();
        self.shell(&format!("{before}\n{} {arguments}", quipu.display()))
    }

    fn shell(&self, script: &str) -> Output {
        Command::new("sh")
            .args(["-c", script])
            .current_dir(self.directory.path())
            .output()
            .expect("every system has a shell")
    }

    /// Runs quipu in a mount namespace after commands of a shell there.
    fn among(&self, mounts: &str, arguments: &str) -> Output {
        let quipu = self.quipu();
        let script = format!(
            "unshare -m sh -c '{mounts}\nexec {} {arguments}'",
            quipu.display()
        );
        self.shell(&script)
    }

    /// Returns true if there can be mount namespaces here.
    fn has_namespaces(&self) -> bool {
        let tried = self.shell("unshare -m mount -t tmpfs none /sys");
        if !tried.status.success() {
            self.skip(&text(&tried));
        }
        tried.status.success()
    }
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(err)
}

const ORDINARY_USER: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";
const NO_SYS: &str = "mount -t tmpfs none /sys";
const NO_PROC: &str = "mount -t tmpfs none /proc";

#[test]
fn without_sys_and_proc_the_cpus_are_known_all_the_same() {
    let Some(place) = Place::new("without_sys_and_proc_the_cpus_are_known_all_the_same") else {
        return;
    };
    if !place.has_namespaces() {
        return;
    }
    let lines = |output: &Output| text(output).matches("CPU").count();
    let known = lines(&place.run("", "stat -x, -a -A -e task-clock true"));
    for mounts in [NO_SYS, NO_PROC, &format!("{NO_SYS}\n{NO_PROC}")] {
        let all = place.among(mounts, "stat -x, -a -A -e task-clock true");
        assert!(all.status.success(), "{}", text(&all));
        assert_eq!(lines(&all), known, "{}", text(&all));
        for command in ["record -o d", "record -a -o d"] {
            let recorded = place.among(mounts, &format!("{command} -e cpu-clock -c 100000 true"));
            assert!(recorded.status.success(), "{}", text(&recorded));
            assert!(
                text(&recorded).contains(" samples, 0 lost"),
                "{}",
                text(&recorded)
            );
            let report = place.among(mounts, "report -i d");
            assert!(text(&report).contains("cpu-clock"), "{}", text(&report));
        }
        let info = text(&place.among(mounts, "info"));
        assert!(!info.contains("unknown online"), "{info}");
        let top = place.among(mounts, "top --stdio -d 1 -e cpu-clock & sleep 2; kill $!");
        let top = text(&top);
        assert!(
            top.contains("Overhead") || top.contains("cpu-clock"),
            "{top}"
        );
    }
    let cores = text(&place.among(NO_SYS, "stat -a --per-core -e task-clock true"));
    assert!(
        cores.contains("/sys, which shows cores and sockets, is not mounted"),
        "{cores}"
    );
}

#[test]
fn the_machine_is_described_without_proc() {
    let Some(place) = Place::new("the_machine_is_described_without_proc") else {
        return;
    };
    if !place.has_namespaces() {
        return;
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("it is mounted");
    let known = text(&place.run("", "info"));
    let info = text(&place.among(NO_PROC, "info"));
    assert!(
        info.contains(&format!("Linux {}", release.trim())),
        "{info}"
    );
    // A thread that cannot be looked up is counted as long as it lives.
    let thread = place.among(NO_PROC, "stat -t 1 -e task-clock sleep 0.1");
    assert!(text(&thread).contains("task-clock"), "{}", text(&thread));
    for line in ["open files", "capabilities"] {
        let of = |info: &str| {
            let line = info.lines().find(|shown| shown.contains(line));
            line.map(str::to_owned)
        };
        assert_eq!(of(&info), of(&known), "{info}");
    }
}

#[test]
fn the_limit_of_open_files_is_named_wherever_it_is_met() {
    const TEST: &str = "the_limit_of_open_files_is_named_wherever_it_is_met";
    let Some(place) = Place::new(TEST) else {
        return;
    };
    let sleeps = "sleep 10 &\n";
    for limit in [9, 13, 16, 20] {
        for command in [
            "stat -a -e task-clock,page-faults,cs,migrations,minor-faults,major-faults true",
            "record -a -o d -e task-clock,page-faults,cs,migrations true",
            "record -o d -e task-clock,page-faults,cs,migrations true",
            "record -o d -e task-clock,page-faults,cs,migrations -p $! true",
        ] {
            // The hard limit too: quipu raises the other as far as that.
            let before = format!("{sleeps}ulimit -n {limit}");
            let output = place.shell(&format!(
                "{before}\n{} {command}; code=$?; kill $!; exit $code",
                place.quipu().display()
            ));
            let text = text(&output);
            let hints = [
                format!("the limit is {limit}; raise it with `ulimit -n`"),
                // Of the command's own files.
                "raise the limit (ulimit -n 64)".to_owned(),
            ];
            let is_named = hints.iter().any(|hint| text.contains(hint));
            assert!(
                output.status.success() || is_named,
                "{limit} {command}: {text}"
            );
            assert!(!text.contains("panicked"), "{text}");
        }
    }
}

#[test]
fn a_process_that_is_hidden_is_not_said_to_be_missing() {
    let Some(place) = Place::new("a_process_that_is_hidden_is_not_said_to_be_missing") else {
        return;
    };
    let become_another = place.shell(&format!("{ORDINARY_USER} true"));
    if !become_another.status.success() {
        return place.skip(&text(&become_another));
    }
    let quipu = place.quipu();
    let count = |mount: &str, process: &str| {
        let commands = ["stat -e task-clock", "record -o d", "top --stdio"]
            .map(|command| format!("{ORDINARY_USER} {} {command} -p {process}", quipu.display()));
        place.shell(&format!(
            "unshare -m sh -c '{mount}\n{}'",
            commands.join("\n")
        ))
    };
    if place.has_namespaces() {
        let hidden = text(&count("mount -t proc -o hidepid=2 none /proc", "1"));
        assert_eq!(
            hidden.matches("it belongs to another user").count(),
            3,
            "{hidden}"
        );
        let missing = text(&count(
            "mount -t proc -o hidepid=2 none /proc",
            "2147483647",
        ));
        assert_eq!(missing.matches("no such process").count(), 3, "{missing}");
        let shown = text(&count(":", "1"));
        assert_eq!(
            shown
                .matches("counting another user's process requires")
                .count(),
            3,
            "{shown}"
        );
    }
}

#[test]
fn no_capability_is_recommended_where_it_does_not_count() {
    let Some(place) = Place::new("no_capability_is_recommended_where_it_does_not_count") else {
        return;
    };
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if paranoid.trim() != "2" || !Path::new("/proc/self/ns/user").exists() {
        return place.skip("perf_event_paranoid is not 2");
    }
    let tried = place.shell("unshare -U -r true");
    if !tried.status.success() {
        return place.skip(&text(&tried));
    }
    for command in [
        "stat true",
        "stat -a true",
        "record -o d true",
        "record -a -o d true",
        "info",
    ] {
        let output = place.shell(&format!(
            "unshare -U -r {} {command}",
            place.quipu().display()
        ));
        let text = text(&output)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let named =
            text.matches("with CAP_PERFMON").count() + text.matches("so does CAP_PERFMON").count();
        let outside = text
            .matches("CAP_PERFMON outside of this user namespace")
            .count();
        assert_eq!(named, outside, "{text}");
        assert!(command == "info" || outside > 0, "{text}");
    }
}
