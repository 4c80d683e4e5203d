//! Series of counters whose every reading is scripted.

use std::sync::atomic::{AtomicUsize, Ordering};

use quipu::{Part, Reading, Result};
use quipu_scripted::{Scripted, ScriptedGroup};

use super::*;
use crate::config::parse;

/// A reading of a part, or an error.
type Step = Result<Vec<Reading>>;

fn pinned_without_counter() -> Step {
    Err(Error::new(ErrorKind::CounterInErrorState, "read a group"))
}

fn one(value: u64, enabled: u64, running: u64) -> Step {
    Ok(vec![Reading::new(value, enabled, running)])
}

/// A collector of one event on the machine, whose counter reads the steps one after the other.
fn scripted(parts: usize, steps: Vec<Step>) -> Collector {
    let steps = Arc::new(steps);
    let backend = Scripted::new("scripted", move |spec, _| {
        let (steps, next) = (Arc::clone(&steps), AtomicUsize::new(0));
        let parts = (0..parts).map(|cpu| Part::on_cpu(cpu as u32)).collect();
        Ok(ScriptedGroup::of(spec).in_parts(parts).reading(move |out| {
            let step = steps[next.fetch_add(1, Ordering::Relaxed)].clone()?;
            for (part, reading) in step.into_iter().enumerate() {
                out[part].fill(reading);
            }
            Ok(())
        }))
    });
    let config = Config {
        ..parse("test.toml", "events = [\"page-faults\"]", "").expect("it is right")
    };
    Collector::with_backends(config, Some(vec![Arc::new(backend)]))
}

/// The values of a family, with the label that tells them apart.
fn values(snapshot: &Snapshot, family: &str, label: &str) -> Vec<(String, Value)> {
    let families = snapshot.families.iter();
    let of_name = families.filter(|of| of.name == family);
    let points = of_name.flat_map(|family| &family.points);
    points
        .map(|point| {
            let found = point.labels.iter().find(|Label(name, _)| *name == label);
            let value = found.map_or("", |Label(_, value)| value);
            (value.to_owned(), point.value)
        })
        .collect()
}

fn counts(snapshot: &Snapshot) -> Vec<(String, Value)> {
    values(snapshot, "quipu_page_faults", "kind")
}

fn ratio(snapshot: &Snapshot) -> Option<f64> {
    let of_event = values(snapshot, "quipu_event_running_ratio", "event");
    match of_event.first() {
        Some((_, Value::Real(ratio))) => Some(*ratio),
        _ => None,
    }
}

fn is(kind: &str, count: u64) -> Vec<(String, Value)> {
    vec![(kind.to_owned(), Value::Whole(count))]
}

#[test]
fn counting_begins_at_nothing_and_goes_on_exactly() {
    let mut collector = scripted(1, vec![one(5, 10, 10), one(7, 20, 20), one(7, 30, 30)]);
    assert_eq!(counts(&collector.collect()), is("exact", 0));
    let first = collector.collect();
    assert_eq!((counts(&first), ratio(&first)), (is("exact", 5), Some(1.0)));
    assert_eq!(counts(&collector.collect()), is("exact", 7));
    assert_eq!(counts(&collector.collect()), is("exact", 7));
}

#[test]
fn a_pinned_group_without_a_counter_is_absent_and_comes_back() {
    let steps = vec![
        one(5, 10, 10),
        pinned_without_counter(),
        pinned_without_counter(),
        one(9, 20, 20),
    ];
    let mut collector = scripted(1, steps);
    collector.collect();
    assert_eq!(counts(&collector.collect()), is("exact", 5));
    for errors in 1..=2 {
        let starved = collector.collect();
        assert_eq!((counts(&starved), ratio(&starved)), (vec![], Some(0.0)));
        let told = values(&starved, "quipu_event_errors", "event");
        assert_eq!(told, is("page-faults", errors));
    }
    assert_eq!(counts(&collector.collect()), is("exact", 9));
}

#[test]
fn a_counter_that_waits_is_absent_and_not_constant() {
    let steps = vec![one(5, 10, 10), one(5, 20, 10), one(8, 30, 20)];
    let mut collector = scripted(1, steps);
    collector.collect();
    assert_eq!(counts(&collector.collect()), is("exact", 5));
    let waiting = collector.collect();
    assert_eq!((counts(&waiting), ratio(&waiting)), (vec![], Some(0.0)));
    assert_eq!(counts(&collector.collect()), is("exact", 8));
}

/// The estimate over all the time goes from 272 back to 228 here.
#[test]
fn estimates_never_go_back_and_are_not_added_to_what_is_exact() {
    let steps = vec![
        one(50, 100, 100),
        one(150, 200, 110),
        one(160, 300, 210),
        one(170, 400, 260),
    ];
    let mut collector = scripted(1, steps);
    collector.collect();
    assert_eq!(counts(&collector.collect()), is("exact", 50));
    let estimated = collector.collect();
    assert_eq!(counts(&estimated), is("estimated", 1000));
    assert_eq!(ratio(&estimated), Some(0.1));
    assert_eq!(counts(&collector.collect()), is("exact", 60));
    assert_eq!(counts(&collector.collect()), is("estimated", 1020));
}

#[test]
fn a_target_of_which_a_part_was_not_counted_is_absent() {
    let both = |a, b| Ok(vec![a, b]);
    let steps = vec![
        both(Reading::new(3, 10, 10), Reading::new(4, 10, 10)),
        both(Reading::new(6, 20, 20), Reading::new(4, 20, 10)),
        both(Reading::new(7, 30, 30), Reading::new(6, 30, 20)),
    ];
    let mut collector = scripted(2, steps);
    collector.collect();
    assert_eq!(counts(&collector.collect()), is("exact", 7));
    let partly = collector.collect();
    assert_eq!((counts(&partly), ratio(&partly)), (vec![], Some(0.5)));
    assert_eq!(counts(&collector.collect()), is("exact", 10));
}

#[test]
fn a_counter_that_was_reset_by_others_does_not_go_back() {
    let steps = vec![one(50, 100, 100), one(3, 5, 5), one(7, 10, 10)];
    let mut collector = scripted(1, steps);
    collector.collect();
    assert_eq!(counts(&collector.collect()), is("exact", 50));
    assert_eq!(counts(&collector.collect()), vec![]);
    assert_eq!(counts(&collector.collect()), is("exact", 54));
}

#[test]
fn totals_go_on_when_groups_are_opened_again() {
    let steps: Vec<Step> = (1..20).map(|n| one(n * 10, n, n)).collect();
    let mut collector = scripted(1, steps);
    let file = |text| parse("test.toml", text, "").expect("it is right");
    collector.collect();
    assert_eq!(counts(&collector.collect()), is("exact", 10));
    // What another configuration counts is opened again, and reads from 10 on.
    collector.reload(file("events = [\"page-faults\", \"context-switches\"]"));
    let reopened = collector.collect();
    assert_eq!(counts(&reopened), is("exact", 20));
    let other = values(&reopened, "quipu_context_switches", "kind");
    assert_eq!(other, is("exact", 0));
    assert_eq!(counts(&collector.collect()), is("exact", 30));
    // The same one is not, so that nothing is missing.
    collector.reload(file("events = [\"page-faults\", \"context-switches\"]"));
    assert_eq!(counts(&collector.collect()), is("exact", 40));
}

#[test]
fn what_cannot_be_opened_is_told_and_the_others_go_on() {
    let backend = Scripted::new("scripted", |spec, _| {
        let name = spec.members[0].event.to_string();
        match name.as_str() {
            "page-faults" => Ok(ScriptedGroup::of(spec)),
            _ => Err(Error::new(ErrorKind::UnsupportedEvent, "open an event")),
        }
    });
    let text = "events = [\"page-faults\", \"cycles\"]\n[[metric]]\nname = \"per_fault\"\nformula = \"cycles / minor-faults\"\n";
    let config = parse("test.toml", text, "").expect("it is right");
    let mut collector = Collector::with_backends(config, Some(vec![Arc::new(backend)]));
    collector.collect();
    let read = collector.collect();
    assert_eq!(counts(&read), is("exact", 0));
    let told = values(&read, "quipu_event_errors", "event");
    let told: Vec<&str> = told.iter().map(|(event, _)| event.as_str()).collect();
    assert_eq!(told, ["cycles", "per_fault"]);
    assert_eq!(values(&read, "quipu_up", ""), is("", 1));
    assert_eq!(values(&read, "quipu_cycles", "kind"), vec![]);
}

#[test]
fn a_machine_on_which_nothing_can_be_counted_says_so() {
    let backend = Scripted::new("scripted", |_, _| {
        Err(Error::new(ErrorKind::NoPermission, "open an event"))
    });
    let config = parse("test.toml", "", "page-faults").expect("it is right");
    let mut collector = Collector::with_backends(config, Some(vec![Arc::new(backend)]));
    assert_eq!(values(&collector.collect(), "quipu_up", ""), is("", 0));
}
