//! The bits of `cpu/event=0xc0,umask=1/` on an x86 CPU that this machine is not.

use quipu_events::CpuTable;
use quipu_hal::{
    Error, ErrorKind, Event, PmuEvent, RawEvent, Result, Scheme, TermValue, X86Select,
};

/// Returns the raw event that terms of a core's PMU are on a CPU that was chosen by name; `None` for another event, or
/// where the kernel of the machine is asked, since the CPU is its own.
pub(crate) fn raw_of_terms(table: &CpuTable, event: &Event) -> Option<Result<RawEvent>> {
    let Event::Pmu(event) = event else {
        return None;
    };
    let of_core = matches!(&*event.pmu, "cpu" | "cpu_core" | "cpu_atom");
    let is_x86 = matches!(
        table.scheme(),
        Scheme::P6 | Scheme::IntelArchitectural | Scheme::AmdK7 | Scheme::Amd10h
    );
    (of_core && is_x86 && table.recognised_by().is_none()).then(|| raw(table, event))
}

fn raw(table: &CpuTable, event: &PmuEvent) -> Result<RawEvent> {
    let mut config = 0;
    for term in &event.terms {
        let refused = |reason: String| {
            let attempted = format!("resolve {} on {}", Event::Pmu(event.clone()), table.id());
            Err(Error::new(ErrorKind::UnsupportedEvent, attempted).with_reason(reason))
        };
        let value = match &term.value {
            None => 1,
            Some(TermValue::Number(value)) => *value,
            Some(TermValue::Text(text)) => {
                return refused(format!("{} is {text}, which is no number", term.name));
            }
        };
        let Some((most, shift)) = field(table.scheme(), &term.name) else {
            return refused(format!("the PMU of this CPU has no field {}", term.name));
        };
        if value > most {
            return refused(format!("{} is at most {most:#x}", term.name));
        }
        config |= match &*term.name {
            "event" => X86Select::new(value as u16, 0).select,
            _ => value << shift,
        };
    }
    Ok(RawEvent::new(config))
}

/// Returns the largest value and the lowest bit of a field, as Linux's drivers of the cores have them in
/// `/sys/bus/event_source/devices/cpu/format`.
fn field(scheme: Scheme, name: &str) -> Option<(u64, u32)> {
    let intel = scheme == Scheme::IntelArchitectural || scheme == Scheme::P6;
    let flag = |bit: u64| Some((1, bit.trailing_zeros()));
    match name {
        "config" => Some((u64::MAX, 0)),
        "event" if scheme == Scheme::Amd10h => Some((0xfff, 0)),
        "event" => Some((0xff, 0)),
        "umask" => Some((0xff, 8)),
        "cmask" => Some((0xff, 24)),
        "edge" => flag(X86Select::EDGE),
        "inv" => flag(X86Select::INVERT),
        "pc" if intel => flag(X86Select::PIN),
        "any" if scheme == Scheme::IntelArchitectural => flag(X86Select::ANY_THREAD),
        _ => None,
    }
}
