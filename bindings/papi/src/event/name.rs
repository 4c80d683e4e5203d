//! Names of native events: libpfm4's, Quipu's and perf's.

use std::ffi::c_int;

use quipu::{ErrorKind, Event, EventSpec, Filter, NativeEvents, Target, text};
use quipu_events::{CpuTable, Interface};
use quipu_hal::EventMap as _;

use crate::code::{ENOEVNT, Outcome};
use crate::component::{CPU, UNCORE, component_of_prefix};
use crate::event::native::{Native, known_code_of, register};
use crate::event_set::builder::{counted_here, registers};

/// Returns the code of a native event by its name: libpfm4's, Quipu's or perf's.
pub(crate) fn code_of(name: &str) -> Outcome<c_int> {
    if let Some(code) = known_code_of(name) {
        return Ok(code);
    }
    let native = parse(name)?;
    if !exists(&native) {
        return Err(ENOEVNT);
    }
    Ok(register(native))
}

/// Returns true if the machine knows the event, be it that it may not be counted now.
fn exists(native: &Native) -> bool {
    let target = match native.component {
        UNCORE => Target::AllCpus,
        _ => Target::CurrentThread,
    };
    let mut builder = counted_here(target);
    let spec = native
        .spec
        .clone()
        .with_filter(Filter::default().with_levels(Filter::USER));
    let opened = builder.events(spec).and_then(|builder| builder.open());
    let error = match &opened {
        Ok(set) => set.events().first().and_then(|event| event.error()),
        Err(error) => Some(error),
    };
    let unknown = [
        ErrorKind::UnsupportedEvent,
        ErrorKind::NoSuchDevice,
        ErrorKind::InvalidConfiguration,
    ];
    let is_software = matches!(native.spec.event, Event::Software(_));
    match (error, registers()) {
        (None, _) => true,
        // Events of the CPU are refused for another reason there, whether there are such or not.
        (Some(_), Some(_)) if !is_software => have_registers(&native.spec),
        (Some(error), _) => !unknown.contains(&error.kind()),
    }
}

/// Returns true if the registers of this CPU count an event.
fn have_registers(spec: &EventSpec) -> bool {
    let knows = |table: &CpuTable| {
        let map = table.events_for(Interface::Msr);
        map.resolve(&spec.event, spec.filter).is_ok()
    };
    let tables = NativeEvents::this().tables().unwrap_or_default();
    tables.iter().any(knows)
}

/// Returns what a name stands for, which may be an event that this machine lacks.
pub(crate) fn parse(name: &str) -> Outcome<Native> {
    let (component, text) = match name.split_once(":::") {
        Some((prefix, rest)) => (Some(component_of_prefix(prefix).ok_or(ENOEVNT)?), rest),
        None => (None, name),
    };
    let (text, cpu) = without_cpu(text)?;
    let groups = text::parse(&text, &**NativeEvents::this()).map_err(|_| ENOEVNT)?;
    let [group] = &groups[..] else {
        return Err(ENOEVNT);
    };
    let [parsed] = &group.members[..] else {
        return Err(ENOEVNT);
    };
    let (event, description, found_in) = found(&parsed.spec.event).ok_or(ENOEVNT)?;
    if component.is_some_and(|component| component != found_in) {
        return Err(ENOEVNT);
    }
    let levels = parsed.spec.filter.intersection(Filter::LEVELS);
    Ok(Native {
        name: name.to_owned(),
        component: found_in,
        has_levels: parsed.names_levels() && !levels.is_empty(),
        pinned: group.attributes.pinned,
        exclusive: group.attributes.exclusive,
        cpu,
        description,
        spec: EventSpec::new(event).with_filter(match levels.is_empty() {
            true => parsed.spec.filter.with_levels(Filter::LEVELS),
            false => parsed.spec.filter,
        }),
        ..Native::new(parsed.spec.event.clone())
    })
}

/// Returns a name without the CPU that it is counted on, `cpu=1`, and that CPU.
fn without_cpu(name: &str) -> Outcome<(String, Option<u32>)> {
    let mut cpu = None;
    let mut parts = Vec::new();
    for part in name.split(':') {
        match part.split_once('=') {
            Some((key, value)) if key.eq_ignore_ascii_case("cpu") => {
                cpu = Some(value.parse().map_err(|_| ENOEVNT)?);
            }
            _ => parts.push(part),
        }
    }
    Ok((parts.join(":"), cpu))
}

/// Returns an event as it is counted, its description, and the component that counts it; `None` if its name is one of a PMU
/// that is not there, or has no such event.
fn found(event: &Event) -> Option<(Event, String, usize)> {
    let Event::Named(name) = event else {
        let description = match event {
            Event::Tracepoint { system, name } => format!("the tracepoint {name} of {system}"),
            Event::Raw(_) => "the bits as given".to_owned(),
            event => text::describe(event).unwrap_or_default(),
        };
        return Some((event.clone(), description, CPU));
    };
    for table in NativeEvents::this().tables().unwrap_or_default() {
        let map = table.events_for(Interface::Linux);
        if map.resolve(event, Filter::default()).is_ok() {
            let details = table.event(name);
            let description = details.and_then(|details| details.description().map(str::to_owned));
            return Some((event.clone(), description.unwrap_or_default(), CPU));
        }
        if let Some(details) = table.uncore_event(name) {
            let named = Event::Named(details.name.clone());
            return Some((named, format!("counted by {}", details.encoded()), UNCORE));
        }
    }
    // Others may know it: sched:sched_switch.
    (!name.contains("::")).then(|| (event.clone(), String::new(), CPU))
}
