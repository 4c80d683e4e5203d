//! The words of the text form: what stands as it is, and what is read as something else.

use quipu_hal::Event;
use quipu_hal::words::*;

/// Asserts what a function says of texts.
fn says(function: fn(&str) -> bool, yes: &[&str], no: &[&str]) {
    yes.iter()
        .for_each(|text| assert!(function(text), "{text}"));
    no.iter()
        .for_each(|text| assert!(!function(text), "{text}"));
}

#[test]
fn characters_stand_in_words() {
    let kinds = [is_word, is_part, is_value, is_name, is_path, is_symbol];
    // For each character, whether it stands in each of them.
    for (c, stands) in [
        ('a', [true; 6]),
        ('Z', [true; 6]),
        ('0', [true; 6]),
        ('_', [true; 6]),
        ('*', [true; 6]),
        (':', [true, false, true, false, false, false]),
        ('=', [true, true, false, false, true, true]),
        ('+', [true, true, true, true, true, false]),
        ('/', [false, false, false, false, true, false]),
        ('é', [false, false, false, false, true, false]),
        (' ', [false; 6]),
        ('\n', [false; 6]),
        ('\0', [false; 6]),
        (',', [false; 6]),
        ('{', [false; 6]),
        ('\'', [false; 6]),
    ] {
        assert_eq!(kinds.map(|kind| kind(c)), stands, "{c:?}");
    }
    assert!(consists_of("ab", is_word));
    assert!(!consists_of("", is_word) && !consists_of("a b", is_word));
}

#[test]
fn values_and_settings_are_told_from_others() {
    says(
        is_plain_value,
        &["core", "a1", "_"],
        &["", "1", "0x1", "a=b", "a b"],
    );
    says(
        is_setting,
        &["name", "period", "freq"],
        &["", "event", "Name"],
    );
}

#[test]
fn segments_are_modifiers_levels_or_assignments() {
    says(
        are_modifiers,
        &["u", "k", "uk", "ppp", "I", "-", "e"],
        &["", "x", "ux", "US"],
    );
    says(are_levels, &["u", "k", "h", "ukh"], &["", "p", "up", "U"]);
    for (segment, read) in [
        ("u=1", Some(("u", "1"))),
        ("K=0", Some(("K", "0"))),
        ("freq=", Some(("freq", ""))),
        ("pinned", Some(("pinned", "1"))),
        ("mg", Some(("mg", "1"))),
        ("mh", Some(("mh", "1"))),
        ("excl", Some(("excl", "1"))),
        ("u", None),
        ("period", None),
        ("c=1", None),
        ("", None),
    ] {
        assert_eq!(assignment(segment), read, "{segment}");
    }
}

#[test]
fn words_of_other_tools_are_known() {
    assert_eq!(after_perf("perf::cycles"), Some(("perf", "cycles")));
    assert_eq!(after_perf("PERF_RAW::r1"), Some(("PERF_RAW", "r1")));
    for other in ["perf:cycles", "perf", "ix86arch::x", "cycles"] {
        assert_eq!(after_perf(other), None, "{other}");
    }
    let kernels = ["PERF_COUNT_HW_CPU_CYCLES", "perf_count_x", "PERF_COUNT_"];
    says(
        is_kernel_name,
        &kernels,
        &["", "PERF_COUNT", "XPERF_COUNT_", "äääääääääää"],
    );
    assert_eq!(raw_digits("r01c0"), Some("01c0"));
    assert_eq!(raw_digits("r0xAb"), Some("Ab"));
    for other in ["", "r", "r0x", "01c0", "rg", "R1"] {
        assert_eq!(raw_digits(other), None, "{other}");
    }
}

#[test]
fn tracepoints_have_a_system_and_a_name() {
    let yes = ["sched:sched_switch", "a:*", "?:b", "a-b.c:d"];
    says(
        is_tracepoint,
        &yes,
        &["", "sched", ":a", "a:", "a:b:c", "a:b=c"],
    );
}

#[test]
fn names_begin_as_names_do() {
    let yes = ["INST_RETIRED", "_a", "9a", "a:b", "*:a", "?a:b", "0xg"];
    says(
        begins_name,
        &yes,
        &["", "1", "0x1f", "12:a", "0x1:a", "*", ":a", "-a", "é"],
    );
    says(
        is_number,
        &["0", "12", "0xff", "0xFF"],
        &["", "0x", "a", "1a", "0xg", "-1"],
    );
}

#[test]
fn a_mask_makes_a_cache_a_native_event() {
    let yes = ["L1D:REPLACEMENT", "L1D:u:PENDING", "L1D:PENDING:-ukh"];
    says(
        has_mask,
        &yes,
        &[
            "L1D",
            "L1D:u",
            "L1D:uk",
            "L1-dcache:LOAD",
            "L1D:1",
            "L1D:",
            "L1D:X",
        ],
    );
}

#[test]
fn names_that_would_be_read_otherwise_stand_in_quotes() {
    let quoted = |name: &str| Event::Named(name.into()).to_string() != name;
    let otherwise = [
        "a b",
        "1",
        "-a",
        "kprobe",
        "kprobe:u",
        "mem:0x1",
        "tracepoint:a:b",
        "cycles",
        "cycles:u",
        "L1D",
        "PERF_COUNT_HW_CPU_CYCLES",
        "perf::x",
        "X:pinned",
        "X:u=1",
        "r1c0",
        "X:u:Y",
        "X:u",
        "X:",
    ];
    says(
        quoted,
        &otherwise,
        &[
            "INST_RETIRED",
            "INST_RETIRED:ANY",
            "L1D:REPLACEMENT",
            "X:c=1",
        ],
    );
}
