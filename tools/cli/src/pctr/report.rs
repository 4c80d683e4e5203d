//! The values of the counters and the list of events as text.

use std::fmt::Write;

use quipu_events::{CpuTable, EventDetails, Interface};
use quipu_hal::{Encoding, Event, EventMap, Filter, P5Function, SlotClass, X86Select};
use quipu_pctr::CounterKind;
use quipu_pctr::abi::Status;

/// Returns the counters, their functions, and the time stamp counter.
pub(super) fn status(status: &Status, counters: u8, table: Option<&CpuTable>) -> String {
    let mut text = String::new();
    let kind = table.and_then(|t| CounterKind::of(t.model()));
    for counter in 0..usize::from(counters) {
        let (value, word) = (status.counters[counter], status.functions[counter]);
        let function = match kind {
            _ if word == 0 => "not set".to_owned(),
            Some(CounterKind::P5) => p5(word),
            _ => x86(word),
        };
        let name = match (kind, table) {
            (Some(kind), Some(table)) if word != 0 => name(word, counter as u8, kind, table),
            _ => None,
        };
        let name = name.map_or_else(String::new, |name| format!(" {name}"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, " ctr{counter} = {value:>20}  [{function}]{name}");
    }
    if status.time_stamp != 0 {
        let _ = writeln!(text, "  tsc = {:>20}", status.time_stamp);
    }
    if let Some(idle) = status.idle {
        let _ = writeln!(text, "  idl = {idle:>20}");
    }
    text
}

/// Letters for flags that are set, `-` for those that are not.
fn letters(word: u64, flags: &[(u64, char)]) -> String {
    let letter = |(bit, letter): &(u64, char)| if word & bit != 0 { *letter } else { '-' };
    flags.iter().map(letter).collect()
}

fn p5(word: u32) -> String {
    let function = P5Function(word as u16);
    let flags = letters(
        word.into(),
        &[
            (P5Function::CLOCKS.into(), 'c'),
            (P5Function::KERNEL.into(), 'k'),
            (P5Function::USER.into(), 'u'),
        ],
    );
    format!("{flags} {:02x}", function.event())
}

fn x86(word: u32) -> String {
    let select = X86Select {
        select: word.into(),
        extra: Vec::new(),
    };
    let flags = letters(
        select.select,
        &[
            (X86Select::INVERT, 'i'),
            (X86Select::EDGE, 'e'),
            (X86Select::KERNEL, 'k'),
            (X86Select::USER, 'u'),
        ],
    );
    let mut text = format!("{flags} {:02x}", select.event());
    if select.unit_mask() != 0 {
        let _ = write!(text, "/{:02x}", select.unit_mask());
    }
    if select.counter_mask() != 0 {
        let _ = write!(text, "+{}", select.counter_mask());
    }
    if select.select & X86Select::ENABLE == 0 {
        text.push_str(" not enabled");
    }
    text
}

/// Returns the name of what a word counts on a counter; nothing when the CPU has no such event.
fn name(word: u32, counter: u8, kind: CounterKind, table: &CpuTable) -> Option<String> {
    let encoding = match kind {
        CounterKind::P5 => Encoding::P5(P5Function((word & kind.word_mask()) as u16)),
        _ => Encoding::X86(X86Select {
            select: u64::from(word) & !X86Select::ENABLE,
            extra: Vec::new(),
        }),
    };
    let name = table.decode(&encoding).ok()?.name;
    let (event, modifiers) = name.split_at(name.find(':').unwrap_or(name.len()));
    let counts_here = |event: &EventDetails| event.slots.contains(SlotClass::General, counter);
    match table.event(event) {
        // One number can be two events, one on each counter.
        Some(named) if !counts_here(&named) => {
            let bits = (named.code, named.unit_mask);
            let events = table.events();
            let mut same = events.iter().filter(|e| (e.code, e.unit_mask) == bits);
            same.find(|e| counts_here(e))
                .map(|e| format!("{}{modifiers}", e.name))
        }
        _ => Some(name),
    }
}

/// Returns the events that the counters behind pctr(4) can be set to.
pub(super) fn events(table: &CpuTable, kind: CounterKind) -> String {
    let mut text = String::new();
    let map = table.events_for(Interface::Pctr);
    for event in table.events() {
        let Ok(resolved) = map.resolve(&Event::Named(event.name.clone()), Filter::all()) else {
            continue;
        };
        if kind.word(&resolved.encoding).is_err() {
            continue;
        }
        let on = |counter| resolved.slots.contains(SlotClass::General, counter);
        let only = match (on(0), on(1)) {
            (true, false) => "  counter 0 only",
            (false, true) => "  counter 1 only",
            _ => "",
        };
        let number = match &resolved.encoding {
            Encoding::X86(select) if select.unit_mask() != 0 => {
                format!("{:02x}/{:02x}", select.event(), select.unit_mask())
            }
            _ => format!("{:02x}", event.code),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {number:<5}  {}{only}", event.name);
    }
    text
}
