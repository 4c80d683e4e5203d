//! Intel's lists: <https://github.com/intel/perfmon>, one file of core events per CPU, and for some CPUs a
//! matrix of what the offcore response event takes.

use quipu_events_format::{Bits, flag};
use serde_json::Value;

use super::offcore_matrix::{self, Matrix};
use super::{Events, nth_number, number, text};

pub(super) fn read(files: &[(&str, Vec<Value>)], events: &mut Events) {
    let (matrix, list): (Vec<&Value>, Vec<&Value>) = files
        .iter()
        .flat_map(|(_, list)| list)
        .partition(|event| offcore_matrix::is_part(event));
    let all = list
        .iter()
        .map(|event| general_counters(text(event, "Counter")))
        .fold(0, |all, mask| all | mask);
    let first_fixed = list.iter().filter_map(|event| fixed_counter(event)).min();
    let combinations = Matrix::new(&matrix, events).combinations(events);
    for event in &list {
        let name = text(event, "EventName");
        if name.is_empty() {
            continue;
        }
        // One list writes some names as `EVENT:request=MASK:response=MASK`.
        let name = name.replace(":request=", ".").replace(":response=", ".");
        let name = name.as_str();
        let corrected = combinations
            .iter()
            .find(|combination| combination.corrects(name, event))
            .map(|combination| combination.over(event));
        let event = corrected.as_ref().unwrap_or(event);
        match bits(event, all, first_fixed.unwrap_or(0)) {
            Ok(bits) => events.add(name, bits, errata(text(event, "Errata"))),
            Err(reason) => events.leave_out(name, reason),
        }
    }
    let event_of_matrix = list
        .iter()
        .find(|event| text(event, "EventName").starts_with(offcore_matrix::EVENT));
    for combination in &combinations {
        match event_of_matrix {
            Some(event) => match bits(&combination.over(event), all, 0) {
                Ok(bits) => events.add(&combination.name, bits, Vec::new()),
                Err(reason) => events.leave_out(&combination.name, reason),
            },
            None => events.leave_out(&combination.name, "no list has its event"),
        }
    }
}

fn bits(event: &Value, all_counters: u32, first_fixed: u8) -> Result<Bits, &'static str> {
    let register = number(event, "MSRIndex").unwrap_or(0);
    // Two numbers or masks stand for the two offcore response registers.
    let which = usize::from(register == u64::from(offcore_matrix::REGISTERS[1]));
    let code = nth_number(event, "EventCode", which).ok_or("it has no event number")?;
    let unit_mask = nth_number(event, "UMask", which).ok_or("it has no unit mask")?;
    let counter = text(event, "Counter");
    let mut bits = Bits {
        code: u16::try_from(code).map_err(|_| "its event number is too large")?,
        unit_mask: u8::try_from(unit_mask).map_err(|_| "its unit mask is too large")?,
        second_mask: number(event, "UMaskExt").unwrap_or(0) as u8,
        counter_mask: number(event, "CounterMask").unwrap_or(0) as u8,
        ..Bits::default()
    };
    for (key, flag) in [
        ("EdgeDetect", flag::EDGE),
        ("Invert", flag::INVERT),
        ("AnyThread", flag::ANY_THREAD),
        ("Equal", flag::EQUAL),
        ("Deprecated", flag::DEPRECATED),
    ] {
        if number(event, key) == Some(1) {
            bits.flags |= flag;
        }
    }
    if counter.starts_with("Fixed counter ") {
        // Event 0 names the fixed counters by unit mask, from 1. Where a list has another event there, the
        // number in the text tells it, which old lists count from 1.
        if code == 0 && (1..=16).contains(&unit_mask) {
            bits.fixed = bits.unit_mask;
        } else {
            let number = fixed_counter(event).and_then(|number| number.checked_sub(first_fixed));
            bits.fixed = match number {
                Some(number @ 0..=15) => number + 1,
                _ => return Err("its fixed counter is not known"),
            };
            bits.code = 0;
            bits.unit_mask = bits.fixed;
        }
    } else {
        let counters = general_counters(counter);
        if counters == 0 {
            return Err("it names no counter");
        }
        if counters != all_counters {
            bits.counters = counters;
        }
    }
    if register != 0 {
        bits.register = u32::try_from(register).map_err(|_| "its register is too large")?;
        bits.value = number(event, "MSRValue").unwrap_or(0);
    }
    Ok(bits)
}

/// Returns the number of the fixed counter that an event is for, as the list counts them.
fn fixed_counter(event: &Value) -> Option<u8> {
    text(event, "Counter")
        .strip_prefix("Fixed counter ")?
        .parse()
        .ok()
}

/// Returns the counters of a list such as `0,1,2,3`.
fn general_counters(list: &str) -> u32 {
    list.split(',')
        .filter_map(|number| number.trim().parse::<u32>().ok())
        .filter(|number| *number < 32)
        .fold(0, |mask, number| mask | 1 << number)
}

fn errata(field: &str) -> Vec<String> {
    field
        .split(',')
        .map(str::trim)
        .filter(|erratum| !matches!(*erratum, "" | "0" | "null" | "None"))
        .map(|erratum| {
            erratum
                .chars()
                .filter(|c| !c.is_control() && *c != '"' && *c != '\\')
                .collect()
        })
        .collect()
}
