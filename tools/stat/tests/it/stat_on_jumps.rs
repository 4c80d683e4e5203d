//! The command on counters that jump, as those of some virtual machines do: no such value is reported,
//! in any form, and nothing is computed from it.

use quipu::{Event, Hardware};
use quipu_hal::{GroupSpec, MaxRate, Reading};
use quipu_scripted::{Scripted, ScriptedGroup};
use quipu_stat::Options;

use crate::session::{measured, options};

/// The distance of jumps that were seen on virtual machines.
const LARGE: u64 = 1 << 47;
/// More than the cycles of one read, and less than those of three, with the tolerance of the bound.
const SMALL: u64 = 400_000_000;
/// The nanoseconds between two reads.
const STEP: u64 = 10_000_000;

/// Opens counters of which each read is a step after the one before, with a cycle and three instructions in each
/// nanosecond; the cycles jump in the read of a number.
fn jumping(spec: &GroupSpec, jumps_in: u64, jump: u64) -> ScriptedGroup {
    let events = spec.members.iter().map(|member| member.event.clone());
    let events: Vec<Event> = events.collect();
    let mut reads = 0;
    ScriptedGroup::of(spec).reading(move |out| {
        reads += 1;
        for (reading, event) in out[0].iter_mut().zip(&events) {
            let time = reads * STEP;
            let value = match event {
                Event::Hardware(Hardware::Instructions) => 3 * time,
                _ if reads >= jumps_in => time + jump,
                _ => time,
            };
            *reading = Reading::new(value, time, time).with_max_rate(MaxRate::CYCLES);
        }
        Ok(())
    })
}

/// Returns the report of a command that takes some milliseconds, and its exit status.
fn report(
    events: &str,
    (jumps_in, jump): (u64, u64),
    change: impl FnOnce(&mut Options),
) -> (String, String) {
    let mut options = options(&["sleep", "0.05"]);
    options.event = vec![events.into()];
    change(&mut options);
    let open = move |spec: &GroupSpec, _: &_| Ok(jumping(spec, jumps_in, jump));
    let backend = Scripted::new("jumping", open).counting_cpus();
    let (report, status) = measured(backend, options, |_| {}).expect("no failure of its own");
    (report, format!("{status:?}"))
}

const WHY: &str = "the counter jumped: it moved further than the event can have occurred";

#[test]
fn a_jump_is_not_counted_and_every_form_says_why() {
    let (text, status) = report("{cycles,instructions}", (1, LARGE), |_| {});
    let line = |name| {
        text.lines()
            .find(|line| line.contains(name))
            .expect("a line")
    };
    assert!(
        line("cycles").trim_start().starts_with("<not counted>"),
        "{text}"
    );
    assert!(
        line("instructions").trim_start().starts_with("30,000,000"),
        "{text}"
    );
    assert!(
        !text.contains("insn per cycle") && !text.contains("GHz"),
        "{text}"
    );
    assert!(
        text.contains("not counted: cycles\n    the counter jumped: "),
        "{text}"
    );
    assert!(status.contains("(0)"), "{status}");

    let (csv, _) = report("{cycles,instructions}", (1, LARGE), |options| {
        options.form.csv = true;
    });
    let mut lines = csv.lines().skip(2);
    assert!(
        lines
            .next()
            .is_some_and(|line| line.starts_with("<not counted>,,cycles,")),
        "{csv}"
    );
    let comment = lines.next().unwrap_or_default();
    assert!(
        comment.starts_with(&format!("# not counted: cycles: {WHY}")),
        "{csv}"
    );
    assert!(
        lines
            .next()
            .is_some_and(|line| line.starts_with("30000000,,instructions,")),
        "{csv}"
    );

    let (json, _) = report("{cycles,instructions}", (1, LARGE), |options| {
        options.form.json = true;
    });
    let object = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("an object");
    let lines: Vec<_> = json.lines().map(object).collect();
    assert_eq!(lines[0]["counter-value"], "<not counted>");
    assert_eq!(lines[1]["not counted"][0], "cycles", "{json}");
    assert!(
        lines[1]["reason"]
            .as_str()
            .is_some_and(|reason| reason.starts_with(WHY)),
        "{json}"
    );

    let (alone, status) = report("cycles", (1, LARGE), |_| {});
    assert!(status.contains("(125)"), "{status}: {alone}");
}

/// Over the whole run a jump may be within what the event can have occurred.
#[test]
fn a_jump_in_an_interval_is_in_the_total_too() {
    let intervals = |options: &mut Options| {
        options.interval_print = Some(10);
        options.summary = true;
        options.form.json = true;
    };
    let (json, _) = report("{cycles,instructions}", (2, SMALL), intervals);
    let rows: Vec<serde_json::Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect();
    let cycles: Vec<&str> = rows
        .iter()
        .filter(|row| row["event"] == "cycles")
        .filter_map(|row| row["counter-value"].as_str())
        .collect();
    assert_eq!(cycles[..2], ["10000000.000000", "<not counted>"], "{json}");
    // Once it has jumped it goes on from there.
    assert_eq!(cycles[2], "10000000.000000", "{json}");
    assert_eq!(cycles.last(), Some(&"<not counted>"), "{json}");
}

/// A run in which a counter jumped is left out of the mean, and the report says so.
#[test]
fn a_jump_in_a_run_is_no_part_of_the_mean() {
    let (text, _) = report("{cycles,instructions}", (1, LARGE), |options| {
        options.repeat = Some(2);
    });
    assert!(
        text.contains("not counted: cycles\n    the counter jumped: "),
        "{text}"
    );
}
