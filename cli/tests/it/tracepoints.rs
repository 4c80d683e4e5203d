//! Tracepoints by pattern.

use quipu_cli::tracepoints::matches;

#[test]
fn stars_and_question_marks_match_as_in_a_shell() {
    for (pattern, fits, does_not) in [
        ("sched:*", "sched:sched_switch", "irq:sched:x"),
        (
            "*:sys_enter_?ead",
            "syscalls:sys_enter_read",
            "syscalls:sys_enter_pread",
        ),
        ("a*b*c", "a-b-b-c", "a-c-b"),
        ("?", "x", ""),
    ] {
        assert!(matches(fits.as_bytes(), pattern.as_bytes()), "{pattern}");
        assert!(
            !matches(does_not.as_bytes(), pattern.as_bytes()),
            "{pattern}"
        );
    }
}
