//! The events that the options ask for.

use std::cell::RefCell;

use quipu_stat::Options;
use quipu_stat::events::requests;
use quipu_text::{EventNames, NoNames};

fn names(options: &Options, on_cpus: bool) -> Vec<String> {
    requests(options, on_cpus, &NoNames)
        .expect("well-formed")
        .iter()
        .map(|request| match request.labels.is_empty() {
            true => request.group.to_string(),
            false => {
                let labels = request.labels.iter().map(ToString::to_string);
                labels.collect::<Vec<_>>().join(" ")
            }
        })
        .collect()
}

#[test]
fn the_default_set_follows_the_target() {
    let options = Options::default();
    assert_eq!(names(&options, false)[0], "task-clock");
    assert_eq!(names(&options, true)[0], "cpu-clock");
    assert_eq!(names(&options, true).len(), 10);
}

/// Those that registers do not count are counted of the command, if there is one.
#[test]
fn on_registers_the_default_events_of_the_kernel_are_optional() {
    let mut options = Options {
        backend: vec!["msr".into()],
        ..Options::default()
    };
    for (command, clock) in [(vec![], "cpu-clock"), (vec!["ls".into()], "task-clock")] {
        options.target.command = command;
        assert_eq!(names(&options, true)[0], clock);
        let requests = requests(&options, true, &NoNames).expect("well-formed");
        let demanded = requests.iter().filter(|request| !request.optional);
        let demanded: Vec<String> = demanded.map(|r| r.group.to_string()).collect();
        let of_the_cpu = ["cycles", "instructions", "branches", "branch-misses"];
        assert_eq!(demanded, of_the_cpu);
    }
}

#[test]
fn details_come_in_levels_and_are_appended() {
    let mut options = Options {
        event: vec!["faults".into()],
        detailed: 1,
        ..Options::default()
    };
    assert_eq!(
        names(&options, false),
        [
            "faults",
            "L1-dcache-loads",
            "L1-dcache-load-misses",
            "LLC-loads",
            "LLC-load-misses"
        ]
    );
    options.detailed = 3;
    assert_eq!(names(&options, false).len(), 13);
    options.detailed = 9;
    assert_eq!(names(&options, false).len(), 13);
}

#[test]
fn events_keep_the_names_that_were_typed() {
    for (list, expected) in [
        ("cs, faults:u", &["cs", "faults:u"][..]),
        ("{cs,faults},cpu-cycles", &["cs faults", "cpu-cycles"]),
        ("{rc4:u}", &["rc4:u"]),
        (
            "rc4:u,r00c4:u,cpu/event=0xc4,umask=1/",
            &["rc4:u", "r00c4:u", "cpu/event=0xc4,umask=1/"],
        ),
        ("cycles:D,cpu/cycles/", &["cycles:D", "cpu/cycles/"]),
        ("{rc4,rc2:u}:D,cs", &["rc4:D rc2:uD", "cs"]),
        ("{ cs , faults }:u", &["cs:u faults:u"]),
        (
            "mem:0x1000/8:rw:u,PAPI_TOT_INS",
            &["mem:0x1000/8:rw:u", "PAPI_TOT_INS"],
        ),
        (
            "{sched:sched_switch,uprobe:/bin/sh:main}:u",
            &["sched:sched_switch:u uprobe:/bin/sh:main:u"],
        ),
        (
            "sched:sched_switch/filter='a == 1, 2'/,cs",
            &["sched:sched_switch/filter='a == 1, 2'/", "cs"],
        ),
    ] {
        let options = Options {
            event: vec![list.into()],
            ..Options::default()
        };
        assert_eq!(names(&options, false), expected, "{list}");
    }
}

#[test]
fn modifiers_and_names_are_in_the_labels() {
    for (list, all_user, expected) in [
        ("{cs/name=a/,cs/freq=99,name='b,c'/k}:D", false, "a b,c"),
        (
            "cycles/period=1000/u,cs/name=x/",
            false,
            "cycles/period=1000/u x",
        ),
        (
            "{cycles,branches:-k,X:u:c=1}:k",
            false,
            "cycles:k branches X:uk:c=1",
        ),
        (
            "{cycles,faults:k,cpu/x/p}:W",
            true,
            "cycles:u faults:k cpu/x/pu",
        ),
        ("cycles/name=x/", true, "x:u"),
    ] {
        let options = Options {
            event: vec![list.into()],
            all_user,
            ..Options::default()
        };
        assert_eq!(names(&options, false).join(" "), expected, "{list}");
    }
}

/// A CPU that writes down which names it is asked for.
#[derive(Default)]
struct Asked(RefCell<Vec<String>>);

impl EventNames for Asked {
    fn ends_in_mask(&self, name: &str) -> bool {
        self.0.borrow_mut().push(name.to_owned());
        name == "L2_LD:I"
    }
}

#[test]
fn a_list_is_parsed_once() {
    let names = Asked::default();
    let options = Options {
        event: vec![
            "{L2_LD:I,faults}:k,X:Y,cpu/a=1,b=2/".into(),
            "Z:u,cs".into(),
        ],
        all_user: true,
        ..Options::default()
    };
    let requests = requests(&options, false, &names).expect("well-formed");
    assert_eq!(requests.len(), 5);
    assert_eq!(names.0.into_inner(), ["L2_LD:I", "X:Y", "Z:u"]);
}

#[test]
fn a_malformed_list_says_where() {
    let options = Options {
        event: vec!["cycles,,cs".into()],
        ..Options::default()
    };
    let failure = requests(&options, false, &NoNames).expect_err("an empty item");
    assert!(failure.to_string().contains('8'), "{failure}");
}
