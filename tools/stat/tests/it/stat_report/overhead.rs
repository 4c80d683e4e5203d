//! The overhead of a set, in every form.

use std::sync::Arc;

use quipu::{Backend, EventSet, Target};
use quipu_hal::Reading;
use quipu_scripted::{Scripted, ScriptedGroup};
use quipu_shell::terminal::Layout;
use quipu_stat::report::overhead::{OverheadRow, csv, json, text};

/// Returns the overhead of two events, of which the first has the same in each reading, and a reason why there is none of
/// a third.
fn rows() -> Vec<OverheadRow> {
    let backend = Scripted::new("script", |spec, _| {
        let mut reads = 0;
        Ok(ScriptedGroup::of(spec).reading(move |out| {
            reads += 1;
            out[0][0] = Reading::new(1200 * reads, reads, reads);
            out[0][1] = Reading::new(1500 * reads + 1100 * (reads % 3), reads, reads);
            Ok(())
        }))
    });
    let mut builder = EventSet::builder();
    builder
        .events("{cycles,instructions}")
        .expect("a list")
        .target(Target::CurrentThread)
        .backends([Arc::new(backend) as Arc<dyn Backend>]);
    let mut set = builder.open().expect("a set");
    let measured = set.calibrate().expect("measured");
    let row = |(event, overhead): (&quipu::SetEvent, quipu::Result<_>)| OverheadRow {
        name: event.name().to_owned(),
        unit: String::new(),
        overhead: overhead.map_err(|error| error.to_string()),
    };
    let mut rows: Vec<_> = set.events().iter().zip(measured).map(row).collect();
    rows.push(OverheadRow {
        name: "branches".into(),
        unit: String::new(),
        overhead: Err("this CPU has no event that counts it".into()),
    });
    rows
}

#[test]
fn overheads_in_every_form() {
    let rows = rows();
    let forms = [text(&rows, Layout::PLAIN), csv(&rows, ";"), json(&rows)];
    insta::assert_snapshot!(forms.join("----\n"));
}
