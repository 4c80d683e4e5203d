//! The selection of events by kind and text.

use quipu_cli::list::selection::{Kind, Selection, contains};

fn selection(filters: &[&str]) -> Selection {
    let filters: Vec<String> = filters.iter().map(|f| (*f).to_owned()).collect();
    Selection::new(&filters)
}

#[test]
fn kinds_and_texts_narrow_each_other() {
    let all = selection(&[]);
    assert!(all.is_everything() && all.has_kind(Kind::Raw) && all.has_name(["x"]));

    let faults = selection(&["sw", "FAULTS"]);
    assert!(faults.has_kind(Kind::Software) && !faults.has_kind(Kind::Hardware));
    assert!(faults.has_name(["page-faults"]) && !faults.has_name(["cpu-clock"]));
    assert!(!faults.is_everything());

    let either = selection(&["hw", "cache", "miss", "cycles"]);
    assert!(either.has_kind(Kind::Cache) && either.has_kind(Kind::Hardware));
    assert!(either.has_name(["bus-cycles"]) && either.has_name(["x", "cache-misses"]));
}

#[test]
fn every_kind_is_a_word() {
    for kind in Kind::ALL {
        assert_eq!(Kind::from_word(kind.name()), Some(kind));
    }
}

#[test]
fn stars_stand_for_anything() {
    for (pattern, matches) in [
        ("sched:*", true),
        ("*switch", true),
        ("sch*swi*ch", true),
        ("switch*sched:", false),
        ("d:s", true),
        ("schedswitch", false),
    ] {
        assert_eq!(
            contains("sched:sched_switch", pattern),
            matches,
            "{pattern}"
        );
    }
}
