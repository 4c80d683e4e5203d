//! perf's event text, beside the event.

use quipu_shell::event_text::{EventText, Said, matches};

fn tracepoints(pattern: &str) -> Result<Vec<String>, String> {
    match pattern {
        "sched:sched_*" => Ok(vec!["sched:sched_switch".into(), "sched:sched_stat".into()]),
        other => Err(other.into()),
    }
}

fn read(text: &str) -> EventText {
    EventText::read(text, &tracepoints).expect(text)
}

#[test]
fn text_that_says_nothing_more_is_left_as_it_is() {
    for text in [
        "cycles:u, {instructions,branches}:uD ,faults",
        "cpu/event=0xc0,umask=0x1/u,r1c0",
        "uprobe:/usr/lib/libc.so.6:malloc,cs",
        "syscalls:sys_enter_read/filter='count > 4096, or so'/,faults:u",
        "mem:0x1000/8:w,'odd, name':u",
        "{cs,faults}:W",
        ",,",
    ] {
        assert_eq!(read(text).list, text);
    }
    assert_eq!(
        read("cycles:u, {instructions,branches}:uD ,faults")
            .said
            .len(),
        4
    );
    assert_eq!(read("mem:0x1000/8:w,'odd, name':u").said.len(), 2);
}

#[test]
fn names_and_rates_are_taken_out_of_the_slashes() {
    for (text, list, said) in [
        ("cs/name=switches/", "cs", (Some("switches"), None, None)),
        ("cycles/period=1000/u", "cycles:u", (None, Some(1000), None)),
        (
            "{cs/name=a/,cs/freq=99,name='b,c'/k}:D",
            "{cs,cs:k}:D",
            (Some("b,c"), None, Some(99)),
        ),
        (
            "cpu/event=0xc0,name=foo,umask=1/u",
            "cpu/event=0xc0,umask=1/u",
            (Some("foo"), None, None),
        ),
        ("cpu/cycles,period=5/", "cpu/cycles/", (None, Some(5), None)),
    ] {
        let read = read(text);
        assert_eq!(read.list, list);
        let said = Said {
            name: said.0.map(str::to_owned),
            period: said.1,
            frequency: said.2,
        };
        assert_eq!(read.said.last(), Some(&said), "{text}");
    }
    let refused = EventText::read("cycles/period=many/", &tracepoints).expect_err("no number");
    assert!(refused.contains("positive number"), "{refused}");
}

#[test]
fn patterns_stand_for_tracepoints() {
    let all = read("{faults,sched:sched_*}:u,sched:sched_*:k,cs");
    assert_eq!(
        all.list,
        "{faults,sched:sched_switch,sched:sched_stat}:u,sched:sched_switch:k,sched:sched_stat:k,cs"
    );
    assert_eq!(all.said.len(), 6);
    let condition = read("sched:sched_*/filter='prev_pid > 0'/");
    assert!(
        condition
            .list
            .contains("sched:sched_stat/filter='prev_pid > 0'/")
    );
    assert!(EventText::read("nosuch:*", &tracepoints).is_err());
}

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
