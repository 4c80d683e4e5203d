//! The selection of events by kind and text.

use quipu_cli::list::selection::{EventKind, ListFilter, contains};

fn selection(filters: &[&str]) -> ListFilter {
    let filters: Vec<String> = filters.iter().map(|f| (*f).to_owned()).collect();
    ListFilter::new(&filters)
}

#[test]
fn kinds_and_texts_narrow_each_other() {
    let all = selection(&[]);
    assert!(all.is_everything() && all.has_kind(EventKind::Raw) && all.has_name(["x"]));

    let faults = selection(&["sw", "FAULTS"]);
    assert!(faults.has_kind(EventKind::Software) && !faults.has_kind(EventKind::Hardware));
    assert!(faults.has_name(["page-faults"]) && !faults.has_name(["cpu-clock"]));
    assert!(!faults.is_everything());

    let either = selection(&["hw", "cache", "miss", "cycles"]);
    assert!(either.has_kind(EventKind::Cache) && either.has_kind(EventKind::Hardware));
    assert!(either.has_name(["bus-cycles"]) && either.has_name(["x", "cache-misses"]));
}

#[test]
fn every_kind_is_a_word() {
    for kind in EventKind::ALL {
        assert_eq!(EventKind::from_word(kind.name()), Some(kind));
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
