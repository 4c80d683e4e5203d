//! The lists in Linux, `tools/perf/pmu-events/arch/{x86,arm64}`: several files per CPU.
//!
//! On ARM most entries only name an architectural event; its number stands in `common-and-microarch.json`
//! or `recommended.json`, which have to be among the files.

use std::collections::HashMap;
use std::path::Path;

use quipu_events_format::{Bits, flag};
use serde_json::Value;

use super::{Events, number, text};

/// The files that have the numbers of ARM's architectural events.
const ARCHITECTURAL: [&str; 2] = ["common-and-microarch.json", "recommended.json"];

pub(super) fn read(files: &[(&str, Vec<Value>)], events: &mut Events) {
    let refers = files
        .iter()
        .flat_map(|(_, list)| list)
        .any(|event| !text(event, "ArchStdEvent").is_empty());
    // Where nothing refers to them these files are lists like any other.
    let is_architectural = |name: &str| {
        let file = Path::new(name).file_name();
        refers
            && ARCHITECTURAL
                .iter()
                .any(|known| file.is_some_and(|file| file == *known))
    };
    let architectural: HashMap<&str, u64> = files
        .iter()
        .filter(|(name, _)| is_architectural(name))
        .flat_map(|(_, list)| list)
        .filter_map(|event| Some((text(event, "EventName"), number(event, "EventCode")?)))
        .collect();
    for (_, list) in files.iter().filter(|(name, _)| !is_architectural(name)) {
        for event in list {
            read_event(event, &architectural, events);
        }
    }
}

fn read_event(event: &Value, architectural: &HashMap<&str, u64>, events: &mut Events) {
    let standard = text(event, "ArchStdEvent");
    let name = match text(event, "EventName") {
        "" => standard,
        name => name,
    };
    // Metrics have no event name; a unit means another PMU than the core's.
    if name.is_empty() || !text(event, "Unit").is_empty() {
        return;
    }
    let code = match standard {
        "" => number(event, "EventCode"),
        _ => architectural.get(standard).copied(),
    };
    let Some(code) = code else {
        events.leave_out(name, "its number is not known");
        return;
    };
    let Ok(code) = u16::try_from(code) else {
        events.leave_out(name, "its number is too large");
        return;
    };
    let Ok(unit_mask) = u8::try_from(number(event, "UMask").unwrap_or(0)) else {
        events.leave_out(name, "its unit mask is too large");
        return;
    };
    let mut bits = Bits {
        code,
        unit_mask,
        counter_mask: number(event, "CounterMask").unwrap_or(0) as u8,
        ..Bits::default()
    };
    for (key, flag) in [
        ("EdgeDetect", flag::EDGE),
        ("Invert", flag::INVERT),
        ("Deprecated", flag::DEPRECATED),
    ] {
        if number(event, key) == Some(1) {
            bits.flags |= flag;
        }
    }
    // AMD's unit masks are bits to be put together; ARM has none.
    if name.contains('.') {
        bits.flags |= flag::COMBINES;
    }
    events.add(name, bits, Vec::new());
}
