//! Values of types that a program prints while it is looked into.

use std::sync::Arc;

use quipu::{EventSet, Machine, NativeEvents, Target};
use quipu_hal::Backend;
use quipu_scripted::{Scripted, ScriptedGroup};

fn backend() -> Arc<dyn Backend> {
    let open = |spec: &_, _: &_| Ok(ScriptedGroup::of(spec));
    Arc::new(Scripted::new("scripted", open))
}

/// Asserts that a text begins and goes on with these, in their order.
fn assert_parts(text: &str, start: &str, parts: &[&str]) {
    assert!(text.starts_with(start), "{text}");
    let mut rest = text;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("no {part} in {text}");
        };
        rest = after;
    }
}

#[test]
fn sets_and_counts_are_printed_with_what_is_in_them() {
    let mut builder = EventSet::builder();
    let presets = builder.preset("sum", "a + b").expect("a formula");
    presets.events("sum:u,c").expect("a list");
    builder.target(Target::Cpu(3)).backends([backend()]);
    assert_parts(
        &format!("{builder:?}"),
        "EventSetBuilder { requests: [",
        &["target: Cpu(3)", "[\"scripted\"]", "presets: [(\"sum\""],
    );
    let set = builder.open().expect("a backend");
    let printed = format!("{set:?}");
    assert_parts(
        &printed,
        "EventSet { events: [SetEvent {",
        &["backend: \"scripted\"", "\"c\""],
    );
    let preset = set.events()[0].preset().expect("it is one");
    let printed = format!("{preset:?}");
    assert_parts(
        &printed,
        "Preset { formula: ",
        &["terms: [", "in_one_group: true, .."],
    );
    let counts = set.counts();
    let event = counts.get(1).expect("an event");
    let printed = format!("{event:?}");
    assert_eq!(
        printed,
        "EventCount { name: \"c\", total: Ok(Exact(0)), .. }"
    );
}

#[test]
fn a_machine_is_printed_with_the_state_of_its_backends() {
    let machine = Machine::with_native_events(Arc::new(NativeEvents::new()));
    let machine = machine.with_backend(backend());
    assert_parts(
        &format!("{machine:?}"),
        "[BackendStatus { name: \"linux\", state: ",
        &["BackendStatus { name: \"scripted\", state: Ok(Capabilities {"],
    );
}
