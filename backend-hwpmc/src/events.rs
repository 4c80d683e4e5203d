//! Events in the words of the driver: the requests that can count one, in the order in which they are tried.

use quipu_hal::{
    Encoding, Error, ErrorKind, Event, EventInfo, EventMap, EventSpec, Filter, FixedCounter,
    PmuEvent, Precision, ResolvedEvent, Result, SlotClass, X86Select,
};

use crate::abi::{
    CAP_EDGE, CAP_INVERT, CAP_QUALIFIER, CAP_READ, CAP_SYSTEM, CAP_THRESHOLD, CAP_USER, Class,
};
use crate::driver::Request;

/// An event with the requests that can count it.
#[derive(Debug, Clone)]
pub(crate) struct Countable {
    /// Fixed counters first, which leaves the others free; `cpu` and `descendants` are yet to be set.
    pub(crate) requests: Vec<Request>,
    pub(crate) info: EventInfo,
}

impl Countable {
    /// Returns the word of the event in a select register, without levels and interrupts; None of the kernel's own.
    pub(crate) fn select(&self) -> Option<u32> {
        let request = self.requests.last()?;
        let word = u64::from(request.select) & TAKEN & !LEVELS;
        (request.class != Class::SOFTWARE).then_some(word as u32)
    }
}

/// The bits of a select word that the driver takes. It sets the others itself.
const TAKEN: u64 = 0xffff
    | X86Select::USER
    | X86Select::KERNEL
    | X86Select::EDGE
    | X86Select::ANY_THREAD
    | X86Select::INVERT
    | 0xff << 24;
/// Those that are its own: interrupts, the pin and the enable.
const DRIVERS: u64 = X86Select::INTERRUPT | X86Select::PIN | X86Select::ENABLE;

/// Those of the privilege levels.
const LEVELS: u64 = X86Select::USER | X86Select::KERNEL;

/// The words by which the driver knows the events of fixed counters, from that of instructions on (`iaf_allocate_pmc`).
const FIXED: [u32; 4] = [0x00c0, 0x003c, 0x0300, 0x0400];

/// The PMU of the kernel's own events, by the driver's name of their class.
pub(crate) const SOFTWARE: &str = "soft";

/// Resolves an event, of the CPU's counters or of the kernel's `software`.
pub(crate) fn resolve(
    map: &dyn EventMap,
    member: &EventSpec,
    classes: &[Class],
    software: impl FnOnce() -> Result<Vec<(String, u32)>>,
) -> Result<Countable> {
    let refused =
        |kind, reason: &str| Err(Error::new(kind, format!("count {member}")).with_reason(reason));
    let unsupported = |reason| refused(ErrorKind::UnsupportedFeature, reason);
    if member.precision != Precision::Any {
        return unsupported("hwpmc(4) has no precise samples");
    }
    if member.overflow.is_some() {
        return unsupported("hwpmc(4) sends no signal for overflows");
    }
    if !member.filter.intersects(Filter::USER | Filter::KERNEL) {
        return unsupported("it would count nothing: neither user nor kernel mode");
    }
    match &member.event {
        Event::Hardware(_) | Event::Cache(_) | Event::Raw(_) | Event::Named(_) => {}
        Event::Pmu(event) if event.pmu == SOFTWARE => {
            if !member.filter.contains(Filter::USER | Filter::KERNEL) {
                return unsupported(
                    "the kernel counts it in user mode and in kernel mode together",
                );
            }
            return of_the_kernel(member, event, &software()?);
        }
        _ => {
            return refused(
                ErrorKind::UnsupportedEvent,
                "hwpmc(4) counts the events of the CPU's counters, and the kernel's own as soft/NAME/",
            );
        }
    }
    let resolved = map.resolve(&member.event, member.filter)?;
    let requests = match requests(&resolved, classes) {
        Ok(requests) => requests,
        Err(reason) => return unsupported(reason),
    };
    if requests.is_empty() {
        return refused(
            ErrorKind::UnsupportedEvent,
            "the driver has no counter of a class that counts it",
        );
    }
    Ok(Countable {
        requests,
        info: resolved.info,
    })
}

/// Resolves one of the kernel's own events by its name, in capitals or not.
fn of_the_kernel(
    member: &EventSpec,
    event: &PmuEvent,
    known: &[(String, u32)],
) -> Result<Countable> {
    let number = match event.terms.as_slice() {
        [name] if name.value.is_none() => {
            let mut named = known
                .iter()
                .filter(|(known, _)| known.eq_ignore_ascii_case(&name.name));
            named.next().map(|(_, number)| *number)
        }
        _ => None,
    };
    let Some(number) = number else {
        let error = Error::new(ErrorKind::UnsupportedEvent, format!("count {member}"));
        let names: Vec<String> = known.iter().map(|(name, _)| name.to_lowercase()).collect();
        return Err(match names.is_empty() {
            true => error.with_reason(
                "this kernel has no events of its own: it was built without HWPMC_HOOKS",
            ),
            false => error
                .with_reason("the kernel has no event of this name")
                .with_hint(format!("those that it has are {}", names.join(", "))),
        });
    };
    Ok(Countable {
        requests: vec![Request {
            select: number,
            capabilities: CAP_READ | CAP_USER | CAP_SYSTEM,
            ..request(Class::SOFTWARE, 0)
        }],
        info: EventInfo::counter(member.event.to_string()).honouring(Filter::empty()),
    })
}

/// Returns the requests for what a map has found.
fn requests(resolved: &ResolvedEvent, classes: &[Class]) -> Result<Vec<Request>, &'static str> {
    let mut requests = Vec::new();
    let (select, fixed) = match &resolved.encoding {
        Encoding::X86(select) => {
            if !select.extra.is_empty() {
                return Err("hwpmc(4) does not set the extra register that it needs");
            }
            (Some(select.select), None)
        }
        Encoding::Fixed(fixed) => (general(*fixed), Some(*fixed)),
        _ => return Ok(requests),
    };
    let is_amd = classes.contains(&Class::AMD);
    // AMD's events have 12 bits, of which the driver of FreeBSD 12 takes the word as it is.
    // They have no bit for the core's other thread.
    let taken = match is_amd {
        true => TAKEN & !X86Select::ANY_THREAD,
        false => TAKEN,
    };
    if select.is_some_and(|select| select & !(taken | DRIVERS) != 0) {
        return Err("it needs bits of the select register that hwpmc(4) does not set");
    }
    let by_fixed = match (fixed, select) {
        (Some(fixed), _) if fixed.control & FixedCounter::ANY_THREAD == 0 => {
            Some((fixed.index, levels(fixed)))
        }
        // The fixed counters have the same events as these words (Intel SDM, "Fixed-function Performance Counters").
        (None, Some(select)) => match select & TAKEN & !LEVELS {
            0xc0 => Some((0, select & LEVELS)),
            0x3c => Some((1, select & LEVELS)),
            _ => None,
        },
        _ => None,
    };
    if let Some((index, levels)) = by_fixed
        && classes.contains(&Class::INTEL_FIXED)
        && let Some(word) = FIXED.get(usize::from(index))
    {
        requests.push(request(Class::INTEL_FIXED, word | levels as u32));
    }
    let class = if is_amd { Class::AMD } else { Class::INTEL };
    let by_general = (0..64).any(|number| resolved.slots.contains(SlotClass::General, number));
    if let (Some(select), true, true) = (
        select,
        by_general || fixed.is_some(),
        classes.contains(&class),
    ) {
        requests.push(request(class, (select & TAKEN) as u32));
    }
    Ok(requests)
}

/// Returns the word of a programmable counter for the event of a fixed one, if there is one.
fn general(fixed: FixedCounter) -> Option<u64> {
    let event = match fixed.index {
        0 => 0xc0,
        1 => 0x3c,
        _ => return None,
    };
    (fixed.control & FixedCounter::ANY_THREAD == 0).then_some(event | levels(fixed))
}

/// Returns a request for a counter of a class, whatever it counts.
pub(crate) fn any(class: Class, cpu: Option<u32>) -> Request {
    let cycles = if class == Class::AMD { 0x76 } else { 0x3c };
    Request {
        cpu,
        ..request(class, cycles | X86Select::USER as u32)
    }
}

fn levels(fixed: FixedCounter) -> u64 {
    let mut levels = 0;
    if fixed.control & FixedCounter::USER != 0 {
        levels |= X86Select::USER;
    }
    if fixed.control & FixedCounter::KERNEL != 0 {
        levels |= X86Select::KERNEL;
    }
    levels
}

fn request(class: Class, select: u32) -> Request {
    let bits = u64::from(select);
    let mut capabilities = CAP_READ;
    let mut add = |is_set: bool, capability| {
        if is_set {
            capabilities |= capability;
        }
    };
    add(bits & X86Select::USER != 0, CAP_USER);
    add(bits & X86Select::KERNEL != 0, CAP_SYSTEM);
    add(bits & X86Select::EDGE != 0, CAP_EDGE);
    add(bits & X86Select::INVERT != 0, CAP_INVERT);
    add(bits >> 24 & 0xff != 0, CAP_THRESHOLD);
    add(class != Class::INTEL_FIXED, CAP_QUALIFIER);
    Request {
        class,
        select,
        capabilities,
        cpu: None,
        descendants: false,
        sampling: None,
    }
}
