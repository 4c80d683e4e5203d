//! Counts as they are printed.

use std::sync::Arc;

use quipu::{
    Error, ErrorKind, EventInfo, EventSet, EventSpec, GroupSpec, Part, Reading, Result, Target,
};
use quipu_hal::{Backend, Filter, MaxRate};
use quipu_scripted::{Scripted, ScriptedGroup};

/// Opens every event but `refused`, each in the parts and with the readings that its name says.
fn open(spec: &GroupSpec, _: &Target) -> Result<ScriptedGroup> {
    let infos: Vec<EventInfo> = spec.members.iter().map(info).collect::<Result<_>>()?;
    let names: Vec<String> = infos.iter().map(|info| info.name.to_string()).collect();
    let parts = match names[0].ends_with("partial") {
        true => vec![Part::on_cpu(0), Part::on_cpu(1)],
        false => vec![Part::whole()],
    };
    let group = ScriptedGroup::of_members(infos).in_parts(parts);
    Ok(group.reading(move |out| {
        for (member, name) in names.iter().enumerate() {
            out[0][member] = reading(name);
            if out.parts().len() > 1 {
                out[1][member] = Reading::new(0, 300, 0);
            }
        }
        Ok(())
    }))
}

fn info(event: &EventSpec) -> Result<EventInfo> {
    let name = event.event.to_string();
    let mut info = EventInfo::counter(name.clone());
    match name.as_str() {
        "refused" => {
            return Err(Error::new(ErrorKind::UnsupportedEvent, "open refused")
                .with_reason("the CPU has no such event")
                .with_hint("name another"));
        }
        "kernel" if event.filter.contains(Filter::KERNEL) => {
            return Err(Error::new(ErrorKind::NoPermission, "open kernel"));
        }
        "time" => info = info.with_unit("ns"),
        "energy" => {
            info = info.with_unit("Joules");
            info.scale = 0.25;
        }
        _ => {}
    }
    Ok(info)
}

fn reading(name: &str) -> Reading {
    match name {
        "zero" => Reading::new(0, 300, 300),
        "energy" => Reading::new(7, 300, 300),
        "estimated" => Reading::new(1_000, 300, 100),
        "low" => Reading::new(1_000, 300, 300).with_at_least(true),
        "estimated-partial" => Reading::new(1_000, 300, 200),
        "waiting" => Reading::new(0, 300, 0),
        "jumped" => Reading::new(u64::MAX, 300, 300).with_max_rate(MaxRate::per_second(1)),
        _ => Reading::new(1_234_567, 300, 300),
    }
}

#[test]
fn counts_are_printed_with_what_they_are() -> Result<()> {
    let backend: Arc<dyn Backend> = Arc::new(Scripted::new("scripted", open));
    let mut builder = EventSet::builder();
    builder.backends([backend]).user_mode_fallback(true);
    builder.preset("ratio", "exact / zero")?;
    builder.events(
        "ratio,exact,time,energy,estimated,low,partial,estimated-partial,waiting,refused,kernel",
    )?;
    let mut set = builder.open()?;
    let mut counts = set.counts();
    set.read(&mut counts)?;
    let table = "        -         ratio              not counted: exact / zero divides by zero for exact 1234567, zero 0
1,234,567         exact              exact
1,234,567 ns      time               exact
     1.75 Joules  energy             exact
   ~3,000         estimated          estimated: it had a counter for 33.33% of the time
    1,000         low                at least: a part of the time may not have been counted
1,234,567         partial            at least: 1 of 2 parts never had a counter
   ~1,500         estimated-partial  at least: 1 of 2 parts never had a counter, and others for a part of the time
        -         waiting            not counted: it never had a counter
        -         refused            not counted: the CPU has no such event; name another
1,234,567         kernel             exact, user mode only";
    assert_eq!(counts.to_string(), table);
    let partial = counts.by_name("partial").expect("it was asked for");
    let refused = partial.value().expect_err("a part was not counted");
    assert_eq!(
        (refused.kind(), refused.reason()),
        (
            ErrorKind::Busy,
            Some("1 parts of the target never had a counter for it")
        )
    );
    Ok(())
}

#[test]
fn a_counter_that_jumped_is_printed_and_of_no_event_nothing() -> Result<()> {
    let backend: Arc<dyn Backend> = Arc::new(Scripted::new("scripted", open));
    let mut set = EventSet::builder()
        .backends([backend])
        .events("jumped")?
        .open()?;
    let mut counts = set.counts();
    set.read(&mut counts)?;
    let printed = counts.to_string();
    let start = "-  jumped  not counted: the counter jumped: it moved further than";
    assert!(printed.starts_with(start), "{printed}");
    let none = EventSet::builder().open()?.counts();
    assert_eq!(none.to_string(), "");
    assert!(none.is_empty() && !counts.is_empty());
    Ok(())
}

#[test]
fn a_measurement_is_printed_as_its_counts() -> Result<()> {
    let measured = quipu::measure("page-faults,no-such-event", || 7)?;
    assert_eq!(measured.to_string(), measured.counts.to_string());
    assert_eq!(measured.to_string().lines().count(), 2);
    assert_eq!(measured.output, 7);
    let total = |name| measured.total(name).map_err(|error| error.kind());
    assert!(total("page-faults").is_ok());
    assert_eq!(total("no-such-event"), Err(ErrorKind::UnsupportedEvent));
    assert_eq!(total("cycles"), Err(ErrorKind::UnsupportedEvent));
    Ok(())
}
