//! `quipu list`, run as people run it, on whatever machine this is.

mod catalog;
#[cfg(target_os = "linux")]
mod pmus;
mod probe;
mod report;
mod selection;

use std::process::Stdio;

use assert_cmd::Command;
use serde_json::Value;

use crate::skip;

fn quipu(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.arg("list").args(args);
    command
}

fn stdout(args: &[&str]) -> String {
    let output = quipu(args).assert().success().get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

fn json(args: &[&str]) -> Vec<Value> {
    let args = [&["--json"], args].concat();
    serde_json::from_str(&stdout(&args)).unwrap()
}

fn names(entries: &[Value]) -> Vec<&str> {
    entries.iter().filter_map(|e| e["event"].as_str()).collect()
}

#[test]
fn all_generalized_events_are_there_with_state_and_reason() {
    let entries = json(&["--all", "hw", "sw", "cache"]);
    let of = |kind| entries.iter().filter(|e| e["kind"] == kind).count();
    assert_eq!((of("hardware"), of("software"), of("cache")), (10, 12, 42));
    for entry in &entries {
        match entry["state"].as_str() {
            Some("opens") => assert!(entry["backend"].is_string(), "{entry}"),
            Some("refused") => assert!(entry["reason"].is_string(), "{entry}"),
            _ => panic!("{entry}"),
        }
    }
}

#[test]
fn what_does_not_open_is_listed_only_if_asked_for() {
    let all = json(&["--all", "hw", "sw"]);
    let opening = json(&["hw", "sw"]);
    assert!(opening.iter().all(|e| e["state"] == "opens"));
    let opens = all.iter().filter(|e| e["state"] == "opens");
    let opens: Vec<Value> = opens.cloned().collect();
    assert_eq!(names(&opening), names(&opens));
}

#[test]
fn a_raw_dump_has_the_names_of_what_opens_in_a_line() {
    let line = stdout(&["--raw-dump", "sw", "tool"]);
    assert!(line.ends_with('\n') && line.lines().count() == 1, "{line}");
    let listed = json(&["sw", "tool"]);
    let listed: Vec<&str> = names(&listed);
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), listed);
    // Forms with parts to fill in are no names.
    let raw = stdout(&["--all", "--raw-dump", "raw", "breakpoint"]);
    assert!(!raw.contains('<') && !raw.contains("mem:"), "{raw}");
    let metrics = stdout(&["--raw-dump", "--cpu", "intel-adl-atom", "metrics"]);
    assert!(metrics.ends_with(" tma_resource_bound\n"), "{metrics}");
    let groups = stdout(&["--raw-dump", "--cpu", "intel-adl-atom", "metricgroups"]);
    assert_eq!(groups, "TopdownL1 TopdownL2\n");
    let native = stdout(&["--raw-dump", "--cpu", "intel-p5"]);
    assert!(
        native.split_whitespace().any(|name| name == "DATA_READ"),
        "{native}"
    );
    let tool = stdout(&["--raw-dump", "tool"]);
    assert_eq!(tool, "duration_time user_time system_time peak_memory\n");
    let uncore = stdout(&["--raw-dump", "--cpu", "intel-skx", "uncore", "cas_count"]);
    assert!(uncore.contains("UNC_M_CAS_COUNT.RD "), "{uncore}");
    quipu(&["--raw-dump", "--json"]).assert().code(2);
}

#[test]
fn long_descriptions_say_what_else_is_known() {
    let of = |args: &[&str]| stdout(&[args, &["--cpu", "intel-skl", "L1D.REPLACEMENT"]].concat());
    let (short, long) = (of(&[]), of(&["--long-desc"]));
    let sentence = "L1D data line replacements";
    let whole = "Counts L1D data line replacements including opportunistic replacements, and replacements that require";
    assert!(
        short.contains(sentence) && !short.contains("opportunistic"),
        "{short}"
    );
    assert!(long.contains(sentence) && long.contains(whole), "{long}");
    let entries = json(&["--cpu", "intel-skl", "L1D.REPLACEMENT"]);
    assert_eq!(entries[0]["BriefDescription"], sentence);
    assert!(
        entries[0]["PublicDescription"]
            .as_str()
            .is_some_and(|text| text.contains(whole))
    );
    // There is nothing to add to this one.
    let entries = json(&["--cpu", "intel-skl", "L2_RQSTS.MISS"]);
    assert!(entries[0]["PublicDescription"].is_null());
}

#[test]
fn words_of_perf_list_and_parts_of_names_select() {
    assert_eq!(names(&json(&["-a", "sw", "cs"])), ["context-switches"]);
    assert_eq!(
        names(&json(&["-a", "sw", "*-FAULTS"])),
        [
            "page-faults",
            "minor-faults",
            "major-faults",
            "alignment-faults",
            "emulation-faults"
        ]
    );
    assert_eq!(
        names(&json(&["-a", "hw", "ref-cyc", "bus"])),
        ["bus-cycles", "ref-cycles"]
    );
    for kind in ["pmu", "tracepoint", "raw", "breakpoint"] {
        let entries = json(&["--all", kind]);
        assert!(entries.iter().all(|e| e["kind"] == kind), "{kind}");
    }
}

#[test]
fn text_has_headings_aliases_and_no_colour_in_a_pipe() {
    let text = stdout(&["--all", "sw"]);
    assert!(text.starts_with("Software events: 12, "), "{text}");
    let mut lines = text.lines();
    let faults = lines
        .find(|line| line.starts_with("  page-faults "))
        .unwrap();
    assert_eq!(
        faults.split_whitespace().take(2).collect::<Vec<_>>(),
        ["page-faults", "faults"]
    );
    assert!(!text.contains('\x1b'));
}

/// Returns true if the database knows the CPU of this machine; if not, the listing says so.
fn knows_this_cpu(test: &str) -> bool {
    let text = stdout(&[]);
    let known = !text.contains("Native events: none listed");
    if !known {
        skip(test, text);
    }
    known
}

#[test]
fn native_events_and_presets_come_with_the_others() {
    if !knows_this_cpu("native_events_and_presets_come_with_the_others") {
        return;
    }
    let text = stdout(&[]);
    let headings = [
        "\nSoftware events: ",
        "\nNative events of ",
        "\nPresets on ",
    ];
    let places = headings.map(|heading| text.find(heading).unwrap_or_else(|| panic!("{text}")));
    assert!(places.is_sorted(), "{places:?}");

    let entries = json(&[]);
    let native: Vec<&Value> = entries.iter().filter(|e| e["kind"] == "native").collect();
    let listed = text
        .lines()
        .filter(|line| line.contains("  event 0x"))
        .count();
    let countable = |e: &&&Value| e["native"]["needs_mask"] == false;
    assert_eq!(native.iter().filter(countable).count(), listed);
    assert!(listed > 20, "{listed}");

    // Searched by a part of the name, in any letter case, and left out where another kind is asked for.
    let name = native[listed / 2]["event"].as_str().unwrap();
    let found = json(&["-a", &name.to_uppercase()]);
    assert!(names(&found).contains(&name), "{name}: {found:?}");
    quipu(&["sw", name]).assert().code(1);
    for key in ["formula", "reason"] {
        let mut presets = entries.iter().filter(|e| e["kind"] == "preset");
        let preset = presets.find(|preset| preset[key].is_string()).unwrap();
        let [name, says] = ["event", key].map(|key| preset[key].as_str().unwrap());
        let line = match key {
            "formula" => format!("  {name} = {says}\n"),
            _ => format!("  {name}  {says}\n"),
        };
        let found = stdout(&[&name.to_lowercase()]);
        assert!(found.contains(&line), "{found}");
        assert_eq!(text.contains(&line), key == "formula");
    }
}

#[test]
fn nothing_found_is_told_with_what_was_perhaps_meant() {
    for (sought, meant) in [
        (
            &["cylces"] as &[_],
            "no event matches cylces; did you mean cycles",
        ),
        // Of several words, and of a CPU's own names.
        (&["cashe miss"], "; did you mean \"cache miss\"?"),
        (
            &["--cpu", "intel-skl", "cashe miss"],
            "; did you mean \"cache miss\"?",
        ),
        (
            &["--cpu", "intel-skl", "L2_RQST.MISS"],
            "; did you mean L2_RQSTS.MISS",
        ),
    ] {
        let output = quipu(sought).assert().code(1).get_output().clone();
        assert!(output.stdout.is_empty());
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(meant), "{message}");
    }
}

#[test]
fn tracepoints_are_probed_within_a_budget_and_the_rest_marked() {
    let entries = json(&["--all", "tracepoint"]);
    let Some(first) = entries.first() else {
        return skip(
            "tracepoints_are_probed_within_a_budget_and_the_rest_marked",
            "no tracefs",
        );
    };
    assert_ne!(first["state"], "not probed");
    let known = ["opens", "refused", "not probed"];
    for entry in &entries {
        assert!(
            known.iter().any(|state| entry["state"] == *state),
            "{entry}"
        );
    }
    // The first of those asked for is probed in any case.
    let name = entries[entries.len() - 1]["event"].as_str().unwrap();
    let last = json(&["--all", "tracepoint", name]);
    let state = &last[0]["state"];
    assert!(state == "opens" || state == "refused", "{}", last[0]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut list = std::process::Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["list", "--all"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(list.stdout.take());
    let ended = list.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[test]
fn descriptions_are_printed_and_searched() {
    let of = |args: &[&str]| stdout(&[&["native", "--cpu", "intel-skl"], args].concat());
    let misses = of(&["l2_rqsts.miss"]);
    let line = "\n      All requests that miss L2 cache\n";
    assert!(misses.contains(line), "{misses}");
    assert!(of(&["-v", "l2_rqsts.miss"]).contains(line));
    assert!(!of(&["--no-desc", "l2_rqsts.miss"]).contains("All requests"));
    // Both words stand in its description, and only one in its name.
    let found = of(&["requests Miss"]);
    assert!(found.contains("  L2_RQSTS.MISS  "), "{found}");
    assert!(!found.contains("  L2_RQSTS.ALL_RFO  "), "{found}");
    // One word is sought in names alone.
    assert!(!of(&["miss"]).contains("  L2_RQSTS.ALL_RFO  "));
    let uncore = stdout(&["uncore", "--cpu", "intel-skx", "dram cas commands issued"]);
    assert!(uncore.contains("UNC_M_CAS_COUNT.RD"), "{uncore}");
}

#[test]
fn json_has_the_keys_of_perf_list() {
    let native = json(&["native", "--cpu", "intel-skl", "L2_RQSTS.MISS"]);
    assert_eq!(
        native[0]["BriefDescription"],
        "All requests that miss L2 cache"
    );
    let clock = json(&["sw", "cpu-clock"]);
    assert_eq!(clock[0]["EventName"], "cpu-clock");
    assert_eq!(
        clock[0]["BriefDescription"],
        "time on the CPU, by its timer"
    );
}

#[test]
fn metrics_and_their_groups_are_listed() {
    let of = |args: &[&str]| stdout(&[args, &["--cpu", "intel-skx"]].concat());
    let text = of(&["metrics", "frontend_bound"]);
    assert!(
        text.contains(
            "  tma_frontend_bound  in %, TopdownL1; threshold: tma_frontend_bound > 15\n"
        ),
        "{text}"
    );
    assert!(!text.contains("tma_retiring"), "{text}");
    let whole = of(&["metrics", "-v", "tma_retiring"]);
    assert!(
        whole.contains("= 100 * ( ( UOPS_RETIRED.RETIRE_SLOTS )"),
        "{whole}"
    );
    let groups = of(&["metricgroups"]);
    let first =
        "TopdownL1\n  tma_backend_bound, tma_bad_speculation, tma_frontend_bound, tma_retiring\n";
    assert!(groups.starts_with(first), "{groups}");
    let listed = json(&["metrics", "--cpu", "amd-zen5", "retiring_microcode"]);
    assert_eq!(listed[0]["MetricName"], "retiring_microcode");
    assert_eq!(listed[0]["MetricGroup"], "TopdownL2;PipelineL2");
    assert_eq!(listed[0]["ScaleUnit"], "1%");
    quipu(&["metrics", "--cpu", "intel-p5"]).assert().code(1);
    // By perf's words too.
    assert_eq!(of(&["metricgroup"]), groups);
    assert_eq!(of(&["metric", "frontend_bound"]), text);
    let refused = quipu(&["sdt"]).assert().code(1).get_output().clone();
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("list has no sdt (perf's: "), "{refused}");
}

/// Returns what `quipu` prints on a terminal of script(1) with a pager that marks the lines it pages.
#[cfg(target_os = "linux")]
fn on_a_terminal(test: &str, arguments: &str) -> Option<String> {
    let mut script = std::process::Command::new("script");
    let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_quipu"));
    script
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .env("PAGER", "sed s/^/paged:/");
    match script.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).replace('\r', "")),
        Err(error) => {
            skip(test, format_args!("no script(1): {error}"));
            None
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_a_short_listing_in_a_pager() {
    const TEST: &str = "a_terminal_gets_a_short_listing_in_a_pager";
    let Some(short) = on_a_terminal(TEST, "list") else {
        return;
    };
    assert!(
        short.lines().all(|line| line.starts_with("paged:")),
        "{short}"
    );
    assert!(
        short.contains("\npaged:  quipu list tracepoint  Tracepoints: "),
        "{short}"
    );
    let of = |arguments| on_a_terminal(TEST, arguments).expect("script(1) is there");
    let all = of("list all --no-pager");
    assert!(
        !all.contains("paged:") && !all.contains("quipu list tracepoint"),
        "{all}"
    );
    // The kinds are those of a pipe.
    let headings = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with(' '));
        let headings = lines.filter_map(|line| line.split_once(": "));
        headings
            .map(|(heading, _)| heading.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(headings(&all), headings(&stdout(&[])));
    assert!(of("list --json sw").starts_with("[\n"));
    assert!(of("stat -h").starts_with("paged:"));
    assert!(of("help permissions").starts_with("paged:"));
}
