//! Targets other than a command of its own.

use std::process::{Child, Command, Stdio};

use assert_cmd::cargo::cargo_bin;

use serde_json::Value;

use super::{can_count, has_perf_events, json_rows, run, skip, stderr};

/// A process that sleeps; killed in the end.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").spawn().expect("sleep(1)"))
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_is_counted_while_a_command_runs() {
    if !has_perf_events("a_process") {
        return;
    }
    let (one, two) = (Sleeper::start(), Sleeper::start());
    let both = format!("{},{}", one.id(), two.id());
    let events = ["-e", "task-clock", "-j"];
    let output = run(&[&["-p", &both], &events[..], &["--", "sh", "-c", "exit 5"]].concat());
    assert_eq!(output.status.code(), Some(5));
    let rows = json_rows(&stderr(&output));
    assert_eq!(rows.len(), 1, "one line for both: {rows:?}");
    let output = run(&[&["-p", &both, "--per-thread"], &events[..], &["true"]].concat());
    let rows = json_rows(&stderr(&output));
    let threads: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["thread"].as_str())
        .collect();
    assert_eq!(threads.len(), 2);
    assert!(
        threads
            .iter()
            .any(|name| name.ends_with(&format!("-{}", one.id())))
    );
}

#[test]
fn a_zombie_is_not_among_the_threads_of_the_machine() {
    let events = ["-a", "--per-thread", "-j", "-e", "task-clock,cycles"];
    if !can_count("a_zombie", &["-a", "-e", "task-clock"]) {
        return;
    }
    let mut sleeper = Sleeper::start();
    sleeper.0.kill().expect("it is ours");
    let state = format!("/proc/{}/stat", sleeper.id());
    while !std::fs::read_to_string(&state).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    let output = run(&[&events[..], &["--", "true"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows = json_rows(&stderr(&output));
    let zombie = format!("-{}", sleeper.id());
    assert!(!rows.is_empty());
    let name = |row: &Value| row["thread"].as_str().map(str::to_owned);
    assert!(
        rows.iter()
            .filter_map(name)
            .all(|name| !name.ends_with(&zombie))
    );
}

#[test]
fn counting_a_process_ends_with_it() {
    if !can_count("counting_a_process", &["-e", "task-clock"]) {
        return;
    }
    let mut sleeper = Sleeper::start();
    let quipu = Command::new(cargo_bin("quipu"))
        .args([
            "stat",
            "-p",
            &sleeper.id(),
            "-e",
            "task-clock",
            "-I",
            "10",
            "-x,",
        ])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Killed before or after quipu has found it: both end, one with a report, one with a message.
    std::thread::sleep(std::time::Duration::from_millis(300));
    sleeper.0.kill().expect("it is ours");
    let output = quipu.wait_with_output().expect("it ends");
    let text = stderr(&output);
    match output.status.code() {
        Some(0) => assert!(text.contains(",task-clock,"), "{text}"),
        code => assert!(code == Some(125) && text.contains("no such"), "{text}"),
    }
}

#[test]
fn cpus_have_a_line_each() {
    if !can_count("cpus_have_a_line_each", &["-a", "-e", "cpu-clock"]) {
        return;
    }
    let rows = |options: &[&str]| {
        let output = run(&[&["-a", "-e", "cpu-clock", "-j"], options, &["true"]].concat());
        json_rows(&stderr(&output))
    };
    let cpus = rows(&["-A"]);
    let numbers: Vec<&str> = cpus.iter().filter_map(|row| row["cpu"].as_str()).collect();
    // Of the machine: this process may be kept from some of them.
    match Command::new("getconf").arg("_NPROCESSORS_ONLN").output() {
        Ok(online) => {
            let online = String::from_utf8_lossy(&online.stdout);
            assert_eq!(numbers.len().to_string(), online.trim());
        }
        Err(e) => skip("cpus_have_a_line_each", format_args!("getconf(1): {e}")),
    }
    assert!(numbers.contains(&"0"));
    assert_eq!(rows(&[]).len(), 1);
    let cores = rows(&["--per-core"]);
    let of_cores: u64 = cores
        .iter()
        .filter_map(|row| row["aggregate-number"].as_u64())
        .sum();
    assert_eq!(of_cores, cpus.len() as u64);
    assert!(cores[0]["core"].as_str().expect("text").starts_with('S'));
    let sockets = rows(&["--per-socket"]);
    let of_sockets: u64 = sockets
        .iter()
        .filter_map(|row| row["aggregate-number"].as_u64())
        .sum();
    assert_eq!(of_sockets, cpus.len() as u64);
    let output = run(&["-C", "0", "-A", "-e", "cpu-clock", "-x,", "true"]);
    assert!(stderr(&output).starts_with("CPU0,"), "{}", stderr(&output));
}

#[test]
fn children_are_counted_unless_told_otherwise() {
    if !has_perf_events("children") {
        return;
    }
    let faults = |options: &[&str]| {
        let script = "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done; exit 0";
        let output = run(&[options, &["-e", "faults:u", "-x,", "sh", "-c", script]].concat());
        let text = stderr(&output);
        let value = text.split(',').next().expect("a field");
        value.parse::<u64>().unwrap_or_else(|_| panic!("{text}"))
    };
    // Each of the ten programs has dozens of page faults of its own.
    assert!(faults(&[]) > faults(&["-i"]) + 200);
}

#[test]
fn a_cgroup_is_counted_under_the_name_it_was_given() {
    let target = ["-G", "/", "-e", "cpu-clock"];
    if !can_count("a_cgroup", &target) {
        return;
    }
    let output = run(&[&target[..], &["-j", "true"]].concat());
    let rows = json_rows(&stderr(&output));
    // A CPU that switches to no task in that time may have no count of a group: the report then says so in an
    // object of its own.
    let (counts, remarks): (Vec<&Value>, Vec<&Value>) =
        rows.iter().partition(|row| row["event"].is_string());
    assert_eq!(counts.len(), 1, "{rows:?}");
    assert_eq!(counts[0]["cgroup"], "/");
    assert!(
        remarks.iter().all(|remark| remark["incomplete"].is_array()),
        "{rows:?}"
    );
}

/// The kernel's times of the root group are not those of its CPUs: a rate is over the clock, and without
/// one over the time that passed on all CPUs.
#[test]
fn rates_in_the_root_cgroup_are_over_the_clock_of_all_cpus() {
    if !can_count("rates_in_the_root_cgroup", &["-G", "/", "-e", "cpu-clock"]) {
        return;
    }
    let number = |row: &Value, field: &str| -> f64 {
        let value = &row[field];
        let parsed = value.as_str().and_then(|text| text.parse().ok());
        parsed.or(value.as_f64()).expect("a number")
    };
    let per_second = |row: &Value| {
        let factor = match row["metric-unit"].as_str().expect("a unit") {
            "G/sec" => 1e9,
            "M/sec" => 1e6,
            "K/sec" => 1e3,
            unit => {
                assert_eq!(unit, "/sec");
                1.0
            }
        };
        number(row, "metric-value") * factor
    };
    for events in ["cpu-clock,page-faults", "page-faults,cpu-clock"] {
        let output = run(&[
            "-a",
            "-G",
            "/",
            "-e",
            events,
            "-j",
            "--",
            "sh",
            "-c",
            "ls -R /etc",
        ]);
        let rows = json_rows(&stderr(&output));
        let find = |name: &str| rows.iter().find(|row| row["event"] == name).expect("a row");
        let seconds = number(find("cpu-clock"), "counter-value") / 1e3;
        let faults = find("page-faults");
        let rate = number(faults, "counter-value") / seconds;
        assert!(
            (per_second(faults) / rate - 1.0).abs() < 0.01,
            "{rate}: {rows:?}"
        );
    }
}

#[test]
fn the_command_keeps_its_limit_of_open_files() {
    let target = ["-a", "-e", "cpu-clock"];
    if !can_count("the_limit_of_open_files", &target) {
        return;
    }
    let quipu = cargo_bin("quipu");
    let script = format!(
        "ulimit -S -n 64; {} stat -a -e cpu-clock sh -c 'ulimit -S -n'",
        quipu.display()
    );
    let output = Command::new("sh").args(["-c", &script]).output();
    assert_eq!(output.expect("sh(1)").stdout, b"64\n");
}
