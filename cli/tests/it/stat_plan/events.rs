//! The events that the options ask for.

use quipu_cli::stat::Options;
use quipu_cli::stat::events::requests;

fn names(options: &Options, on_cpus: bool) -> Vec<String> {
    requests(options, on_cpus)
        .expect("well-formed")
        .iter()
        .map(|r| r.label.clone().unwrap_or_else(|| r.group.to_string()))
        .collect()
}

#[test]
fn the_default_set_follows_the_target() {
    let options = Options::default();
    assert_eq!(names(&options, false)[0], "task-clock");
    assert_eq!(names(&options, true)[0], "cpu-clock");
    assert_eq!(names(&options, true).len(), 10);
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
fn plain_lists_keep_the_names_people_wrote() {
    let options = Options {
        event: vec!["cs, faults:u".into(), "{cs,faults},cpu-cycles".into()],
        ..Options::default()
    };
    assert_eq!(
        names(&options, false),
        ["cs", "faults:u", "{context-switches,page-faults}", "cycles"]
    );
}

#[test]
fn a_malformed_list_says_where() {
    let options = Options {
        event: vec!["cycles,,cs".into()],
        ..Options::default()
    };
    let failure = requests(&options, false).expect_err("an empty item");
    assert!(failure.to_string().contains('8'), "{failure}");
}
