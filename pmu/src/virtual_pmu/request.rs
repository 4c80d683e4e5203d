//! Conversion of a group and target into members and CPUs for the engine, or the reason for a refusal.

use std::sync::Arc;

use quipu_hal::{
    Encoding, Error, ErrorKind, Event, EventInfo, EventMap, EventSpec, Filter, GroupSpec, MaxRate,
    Precision, ResolvedEvent, Result, Target, TargetKinds, ValueKind,
};

use super::engine::Core;
use super::scheduled_group::Member;
use crate::assign::{Matching, Shortage, bits};
use crate::pmu::free_running;
use crate::{Access, Pmu, Slot};

const TAKE_TURNS: &str = "put them into different groups, which take turns";

/// Refuses attributes that need an operating system's scheduler.
pub(super) fn check_attributes(spec: &GroupSpec) -> Result<()> {
    if spec.members.is_empty() {
        return Err(Error::new(ErrorKind::InvalidConfiguration, "open a group")
            .with_reason("it has no members"));
    }
    let refuse = |what: &str| {
        Err(unsupported("open a group").with_reason(format!(
            "{what} needs the operating system to follow tasks, and these are bare registers of a CPU"
        )))
    };
    if spec.attributes.inherit || spec.attributes.inherit_thread {
        return refuse("inheritance");
    }
    if spec.attributes.enable_on_exec {
        return refuse("enabling on exec");
    }
    if spec.attributes.remove_on_exec {
        return refuse("removal on exec");
    }
    Ok(())
}

/// Returns the CPUs of a target.
pub(super) fn cpus<P: Pmu>(core: &Core<P>, target: &Target) -> Result<Vec<u32>> {
    let attempted = || format!("count on {target}");
    let find = |number: u32| match core.position(number) {
        Some(_) => Ok(number),
        None => Err(Error::new(ErrorKind::NoSuchTarget, attempted())
            .with_reason(format!("there is no CPU {number} here"))),
    };
    let kinds = TargetKinds::CURRENT_CPU | TargetKinds::CPU | TargetKinds::ALL_CPUS;
    let current = core.pmu.access() == Access::MeasuringThread;
    if !kinds.contains(target.kind()) {
        let reason = match current {
            false => "these are bare registers, which count on a CPU whatever runs there",
            true => {
                "these are bare registers, which count on a CPU whatever runs there, and only those of the CPU \
                 that the calling thread is on can be reached"
            }
        };
        return Err(unsupported(attempted()).with_reason(reason));
    }
    if current && !matches!(target, Target::CurrentCpu) {
        return Err(unsupported(attempted()).with_reason(
            "only the counters of the CPU that the calling thread is on can be reached",
        ));
    }
    match target {
        Target::CurrentCpu => Ok(vec![find(core.pmu.current_cpu()?)?]),
        Target::Cpu(number) => Ok(vec![find(*number)?]),
        Target::Cpus(numbers) => {
            let invalid = |reason: String| {
                Err(Error::new(ErrorKind::InvalidConfiguration, attempted()).with_reason(reason))
            };
            if numbers.is_empty() {
                return invalid("no CPU is named".into());
            }
            if let Some(twice) = (1..numbers.len()).find(|&i| numbers[..i].contains(&numbers[i])) {
                return invalid(format!("CPU {} is named twice", numbers[twice]));
            }
            numbers.iter().map(|&number| find(number)).collect()
        }
        _ => Ok(core.pmu.cpus().to_vec()),
    }
}

/// Resolves the members; checks that they can all be counted at the same time.
pub(super) fn members<P: Pmu>(
    pmu: &P,
    map: &dyn EventMap,
    spec: &GroupSpec,
) -> Result<(Vec<EventInfo>, Arc<[Member]>)> {
    let mut infos = Vec::with_capacity(spec.members.len());
    let mut members = Vec::with_capacity(spec.members.len());
    for (i, asked) in spec.members.iter().enumerate() {
        let (info, member) = member(pmu, map, asked).map_err(|e| e.with_member(i))?;
        infos.push(info);
        members.push(member);
    }
    for (i, member) in members.iter().enumerate() {
        if let Some((j, register)) = member.conflict(&members[..i]) {
            let (a, b): (&str, &str) = (&infos[j].name, &infos[i].name);
            return Err(Error::new(ErrorKind::TooManyEvents, "open a group")
                .with_reason(format!(
                    "{a} and {b} need different values in register {register:#x}"
                ))
                .with_hint(TAKE_TURNS)
                .with_member(i));
        }
    }
    let events = members.iter().map(|member| (member.allowed, None));
    let mut matching = Matching::new().with_shared(free_running(pmu.slots()));
    if let Err(shortage) = matching.add_all(events) {
        let culprit = shortage.events().last().unwrap_or_default();
        return Err(Error::new(ErrorKind::TooManyEvents, "open a group")
            .with_reason(explain(&shortage, &infos, pmu.slots()))
            .with_hint(TAKE_TURNS)
            .with_member(culprit));
    }
    Ok((infos, members.into()))
}

fn member<P: Pmu>(pmu: &P, map: &dyn EventMap, asked: &EventSpec) -> Result<(EventInfo, Member)> {
    let resolved = match time_stamp_counter(pmu, &asked.event) {
        Some(resolved) => resolved,
        None => map.resolve(&asked.event, asked.filter)?,
    };
    let name = &resolved.info.name;
    // `Best` equals `Any` for counting.
    if !matches!(asked.precision, Precision::Any | Precision::Best) {
        return Err(unsupported(format!("count {name}")).with_reason(
            "a precision was asked for, and these counters take no samples to be precise about",
        ));
    }
    if asked.overflow.is_some() {
        return Err(unsupported(format!("count {name}")).with_reason(
            "a signal for overflows was asked for, and these counters do not interrupt",
        ));
    }
    let ignored = Filter::all() - asked.filter - resolved.info.honours;
    if !ignored.is_empty() {
        return Err(unsupported(format!("count {name}"))
            .with_reason(format!("its counter cannot leave out {}", words(ignored))));
    }
    let refuse = |reason: &str| {
        Error::new(ErrorKind::UnsupportedEvent, format!("count {name}")).with_reason(reason)
    };
    let prepared = pmu
        .prepare(&resolved.encoding)
        .map_err(|e| refuse(e.reason().unwrap_or_default()))?;
    let usable = resolved.slots.intersection(prepared);
    let slots = pmu.slots().iter().enumerate();
    let allowed = slots
        .filter(|(_, slot)| usable.contains(slot.class, slot.number))
        .fold(0, |mask, (i, _)| mask | 1 << i);
    if allowed == 0 {
        let busy = pmu.busy(&resolved.encoding, resolved.slots);
        return Err(busy.unwrap_or_else(|| refuse("no counter here can count it")));
    }
    let max_rate = resolved.info.max_rate;
    let gauge = resolved.info.kind == ValueKind::Gauge;
    let bound = match (gauge, max_rate) {
        (true, _) => MaxRate::NONE,
        (false, Some(rate)) => MaxRate::per_second(rate),
        (false, None) => map.max_rate(&resolved.encoding),
    };
    let member = Member {
        encoding: resolved.encoding,
        allowed,
        max_rate,
        bound,
        gauge,
    };
    Ok((resolved.info, member))
}

/// Returns the time stamp counter, if that is the event and the PMU has it. No event map has it: it needs no bits.
fn time_stamp_counter<P: Pmu>(pmu: &P, event: &Event) -> Option<ResolvedEvent> {
    if !matches!(event, Event::Named(name) if name.eq_ignore_ascii_case(Event::TIME_STAMP)) {
        return None;
    }
    let slots = pmu.prepare(&Encoding::TimeStamp).ok()?;
    let info = EventInfo::counter(Event::TIME_STAMP).honouring(Filter::empty());
    (!slots.is_empty()).then(|| ResolvedEvent::new(Encoding::TimeStamp, slots, info))
}

/// Explains a shortage of slots: `FLOPS and CYCLES_DIV_BUSY both need counter 0`.
fn explain(shortage: &Shortage, infos: &[EventInfo], slots: &[Slot]) -> String {
    let names = shortage.events().map(|i| &*infos[i].name);
    let counters = bits(shortage.slots())
        .filter_map(|i| slots.get(i))
        .map(Slot::to_string);
    match (shortage.events().count(), shortage.slots().count_ones()) {
        (2, 1) => format!("{} both need {}", list(names), list(counters)),
        (events, have) => format!(
            "{} are {events} events for {have} counters: they can only use {}",
            list(names),
            list(counters)
        ),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn list(items: impl Iterator<Item = impl ToString>) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    match &*items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Names a filter's parts.
fn words(filter: Filter) -> String {
    let names = [
        (Filter::USER, "user mode"),
        (Filter::KERNEL, "kernel mode"),
        (Filter::HYPERVISOR, "hypervisor mode"),
        (Filter::IDLE, "idle time"),
        (Filter::HOST, "the host"),
        (Filter::GUEST, "guests"),
    ];
    let named = names.iter().filter(|(part, _)| filter.contains(*part));
    list(named.map(|(_, name)| name))
}

fn unsupported(attempted: impl Into<String>) -> Error {
    Error::new(ErrorKind::UnsupportedFeature, attempted)
}
