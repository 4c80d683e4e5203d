//! The text of each event as it was written, and the settings beside it.

use std::cell::RefCell;

use quipu_hal::{Error, ErrorKind, Event, Result};
use quipu_text::{EventNames, NoNames, Parsed, parse, parse_list, parse_spec};

/// A CPU with an event `L2_LD` whose masks are `M`, `E`, `S` and `I`, and a kernel with two tracepoints.
#[derive(Default)]
struct Names {
    /// The names that were asked for, in order.
    asked: RefCell<Vec<String>>,
}

impl EventNames for Names {
    fn ends_in_mask(&self, name: &str) -> bool {
        self.asked.borrow_mut().push(name.to_owned());
        let last = name.rsplit(':').next().unwrap_or_default();
        name.starts_with("L2_LD:") && ["M", "E", "S", "I"].contains(&last)
    }

    fn tracepoints(&self, pattern: &str) -> Result<Vec<String>> {
        self.asked.borrow_mut().push(pattern.to_owned());
        match pattern {
            "sched:sched_*" | "*:sched_s?*" => {
                Ok(vec!["sched:sched_switch".into(), "sched:sched_stat".into()])
            }
            _ => Err(Error::new(ErrorKind::UnsupportedEvent, "find it")),
        }
    }
}

/// Returns the label of an event with more modifiers.
fn label(member: &Parsed<'_>, more: &str) -> String {
    let mut label = member.label();
    label.add(more, &member.spec);
    label.to_string()
}

/// Returns the text of each event, the label that its group's modifiers give it, and its event with all modifiers.
fn written(text: &str) -> Vec<(String, String, String)> {
    let groups = parse(text, &Names::default()).unwrap_or_else(|error| panic!("{error:#}"));
    let mut all = Vec::new();
    for group in &groups {
        for member in &group.members {
            all.push((
                member.as_written.to_owned(),
                label(member, group.modifiers),
                member.spec.to_string(),
            ));
        }
    }
    all
}

#[test]
fn each_event_has_the_text_that_was_typed() {
    for (text, expected) in [
        ("cpu-cycles", &[("cpu-cycles", "cpu-cycles", "cycles")][..]),
        (
            " cs , faults:u,{ r1c0 ,\n'two words':k }",
            &[
                ("cs", "cs", "context-switches"),
                ("faults:u", "faults:u", "page-faults:u"),
                ("r1c0", "r1c0", "r01c0"),
                ("'two words':k", "'two words':k", "'two words':k"),
            ],
        ),
        (
            "{cycles,instructions:k,cpu/event=0xc0,umask=0x1/,cpu/ event=192 /k} :u",
            &[],
        ),
        (
            "{cycles,instructions:k,branches:-k,cpu/event=0xc0,umask=0x1/,cpu/ event=192 /k}:u",
            &[
                ("cycles", "cycles:u", "cycles:u"),
                ("instructions:k", "instructions:ku", "instructions:uk"),
                ("branches:-k", "branches:uh", "branches:uh"),
                (
                    "cpu/event=0xc0,umask=0x1/",
                    "cpu/event=0xc0,umask=0x1/:u",
                    "cpu/event=0xc0,umask=1/u",
                ),
                (
                    "cpu/ event=192 /k",
                    "cpu/ event=192 /ku",
                    "cpu/event=0xc0/uk",
                ),
            ],
        ),
        (
            "{L2_LD:I,L2_LD:M:I:k,L2_LD:u:I}:p,L2_LD:S:u",
            &[
                ("L2_LD:I", "L2_LD:I:p", "'L2_LD:I':p"),
                ("L2_LD:M:I:k", "L2_LD:M:I:kp", "'L2_LD:M:I':kp"),
                ("L2_LD:u:I", "L2_LD:up:I", "'L2_LD:I':up"),
                ("L2_LD:S:u", "L2_LD:S:u", "L2_LD:S:u"),
            ],
        ),
        (
            "syscalls:sys_enter_read/filter='count > 4096, or so'/,tracepoint:a:'b,c'/filter='d}'/u",
            &[
                (
                    "syscalls:sys_enter_read/filter='count > 4096, or so'/",
                    "syscalls:sys_enter_read/filter='count > 4096, or so'/",
                    "syscalls:sys_enter_read/filter='count > 4096, or so'/",
                ),
                (
                    "tracepoint:a:'b,c'/filter='d}'/u",
                    "tracepoint:a:'b,c'/filter='d}'/u",
                    "tracepoint:a:'b,c'/filter='d}'/u",
                ),
            ],
        ),
        (
            "{uprobe:/usr/lib/libc.so.6:malloc,mem:0x1000/8:w,kprobe:do_exit+4:k}:u",
            &[
                (
                    "uprobe:/usr/lib/libc.so.6:malloc",
                    "uprobe:/usr/lib/libc.so.6:malloc:u",
                    "uprobe:/usr/lib/libc.so.6:malloc:u",
                ),
                ("mem:0x1000/8:w", "mem:0x1000/8:w:u", "mem:0x1000/8:w:u"),
                (
                    "kprobe:do_exit+4:k",
                    "kprobe:do_exit+4:ku",
                    "kprobe:do_exit+4:uk",
                ),
            ],
        ),
        ("{é,'caf\u{e9},{':u}", &[]),
        (
            "{'é','caf\u{e9},{':u}:k",
            &[
                ("'é'", "'é':k", "'é':k"),
                ("'café,{':u", "'café,{':uk", "'café,{':uk"),
            ],
        ),
    ] {
        if expected.is_empty() {
            assert!(parse(text, &Names::default()).is_err(), "{text}");
            continue;
        }
        let expected: Vec<_> = expected
            .iter()
            .map(|&(text, label, event)| (text.to_owned(), label.to_owned(), event.to_owned()))
            .collect();
        assert_eq!(written(text), expected, "{text}");
    }
}

#[test]
fn labels_read_as_the_events_that_they_are_of() {
    let text = "{cycles,instructions:k,branches:-h,cpu/x/,cpu/x/k,mem:1:w,cs:u,sched:a:pu,'q':u,X:u:c=1,kprobe:f,L2_LD:I}:u";
    let groups = parse(text, &Names::default()).unwrap();
    for member in &groups[0].members {
        let label = label(member, "u");
        assert_eq!(
            parse_spec(&label, &Names::default()).as_ref(),
            Ok(&member.spec),
            "{label}"
        );
    }
}

#[test]
fn a_list_is_parsed_once() {
    let names = Names::default();
    let text = "L2_LD:I,{X:u,'L2_LD:S',cycles:u,sched:sched_switch}:k,sched:sched_*,cpu/event=1,umask=2/,L2_LD:M:E";
    parse(text, &names).unwrap();
    let asked = names.asked.into_inner();
    let expected = [
        "L2_LD:I",
        "X:u",
        "sched:sched_switch",
        "sched:sched_*",
        "L2_LD:M:E",
        "sched:sched_*",
    ];
    assert_eq!(asked, expected);
}

#[test]
fn settings_stand_beside_the_event() {
    let one = |text: &'static str| -> Parsed<'static> {
        let groups = parse(text, &NoNames).unwrap_or_else(|error| panic!("{error:#}"));
        groups
            .into_iter()
            .next_back()
            .and_then(|group| group.members.into_iter().next_back())
            .expect(text)
    };
    for (text, event, (name, period, frequency)) in [
        (
            "cs/name=switches/",
            "context-switches",
            (Some("switches"), None, None),
        ),
        ("cycles/period=1000/u", "cycles:u", (None, Some(1000), None)),
        (
            "cycles/ period = 0x10 , freq=5 /:u",
            "cycles:u",
            (None, Some(16), Some(5)),
        ),
        ("r1c0/period=7/", "r01c0", (None, Some(7), None)),
        (
            "raw/config=1,name=x,config1=2/",
            "raw/config=0x1,config1=0x2/",
            (Some("x"), None, None),
        ),
        (
            "{cs/name=a/,cs/freq=99,name='b,c'/k}:D",
            "context-switches:k",
            (Some("b,c"), None, Some(99)),
        ),
        (
            "cpu/event=0xc0,name=a name: 5=5,umask=1/u",
            "cpu/event=0xc0,umask=1/u",
            (Some("a name: 5=5"), None, None),
        ),
        ("cpu/cycles,period=5/", "cpu/cycles/", (None, Some(5), None)),
        (
            "sched:a/filter='x',period=5/",
            "sched:a/filter='x'/",
            (None, Some(5), None),
        ),
        ("cpu/'name'=5/", "cpu/'name'=5/", (None, None, None)),
        ("'cycles'/period=5/", "cycles//", (None, Some(5), None)),
    ] {
        let parsed = one(text);
        assert_eq!(parsed.spec.to_string(), event, "{text}");
        let settings = &parsed.settings;
        assert_eq!(
            (
                settings.name.as_deref(),
                settings.period,
                settings.frequency
            ),
            (name, period, frequency),
            "{text}"
        );
    }
    for (text, reason) in [
        (
            "cycles/period=many/",
            "at character 15: period takes a positive number",
        ),
        ("cycles/freq=0/", "freq takes a positive number"),
        ("cycles/period/", "period takes a positive number"),
        ("cycles/name/", "at character 12: expected '=' and a name"),
        ("cycles/name=,u/", "at character 13: expected a name"),
        (
            "cycles/period=1,period=2/",
            "at character 17: period for the second time",
        ),
    ] {
        let error = parse(text, &NoNames).expect_err(text);
        assert!(
            error.reason().unwrap_or_default().contains(reason),
            "{text}: {error}"
        );
    }
}

#[test]
fn settings_are_refused_where_only_events_are_read() {
    for text in ["cycles/name=x/", "cpu/event=1,period=2/", "cs/freq=1/"] {
        let reason = "name, period and freq are for reports and samples";
        let list = parse_list(text, &NoNames).expect_err(text);
        assert!(list.reason().unwrap_or_default().contains(reason), "{list}");
        let spec = parse_spec(text, &NoNames).expect_err(text);
        assert!(spec.reason().unwrap_or_default().contains(reason), "{spec}");
    }
}

#[test]
fn patterns_stand_for_tracepoints() {
    let shown: Vec<_> = parse_list(
        "{faults,sched:sched_*}:u,*:sched_s?*:k,cs",
        &Names::default(),
    )
    .unwrap()
    .iter()
    .map(ToString::to_string)
    .collect();
    assert_eq!(
        shown,
        [
            "{page-faults:u,sched:sched_switch:u,sched:sched_stat:u}",
            "sched:sched_switch:k",
            "sched:sched_stat:k",
            "context-switches"
        ]
    );
    let of_pattern = written("{cs,sched:sched_*/filter='prev_pid > 0'/k}:u");
    let texts: Vec<_> = of_pattern
        .iter()
        .map(|(text, label, _)| (text.as_str(), label.as_str()))
        .collect();
    let typed = "sched:sched_*/filter='prev_pid > 0'/k";
    assert_eq!(
        texts,
        [
            ("cs", "cs:u"),
            (typed, "sched:sched_switch/filter='prev_pid > 0'/uk"),
            (typed, "sched:sched_stat/filter='prev_pid > 0'/uk"),
        ]
    );
    assert!(parse("nosuch:*", &Names::default()).is_err());
    // Without knowledge of tracepoints the pattern is a name like others.
    let unknown = parse("nosuch:*", &NoNames).unwrap();
    assert_eq!(
        unknown[0].members[0].spec.event,
        Event::Named("nosuch:*".into())
    );
}

#[test]
fn modifiers_are_added_behind_each_other() {
    let member = |text: &'static str| {
        parse(text, &Names::default())
            .expect(text)
            .remove(0)
            .members
            .remove(0)
    };
    for (text, added, expected) in [
        ("cycles:u", &["k", "p"][..], "cycles:ukp"),
        ("L2_LD:u:I", &["k", "p", "G"], "L2_LD:ukpG:I"),
        ("cycles", &["", "u", "", "k"], "cycles:uk"),
        // What cannot stand together is shown as the event itself, and stays so.
        ("cycles:-k", &["u", "p"], "cycles:uh"),
        ("cycles:u", &["u"], "cycles:u"),
        ("cycles:p", &["p"], "cycles:pp"),
    ] {
        let member = member(text);
        let mut label = member.label();
        added.iter().for_each(|more| label.add(more, &member.spec));
        assert_eq!(label.to_string(), expected, "{text} and {added:?}");
    }
}
