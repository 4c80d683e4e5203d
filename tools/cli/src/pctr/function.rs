//! From an event and flags to a function word.

use clap::Args;
use quipu_events::{CpuEvents, CpuTable, Interface};
use quipu_hal::{
    Encoding, Event, EventMap, Filter, P5Function, ResolvedEvent, SlotClass, SlotSet, X86Select,
};
use quipu_pctr::CounterKind;

use quipu_shell::Failure;

/// The unit mask bits for cache states: -M, -E, -S, -I.
const CACHE_STATES: u8 = 0x0f;
/// The unit mask bit for the bus events of all agents: -A.
const ANY_AGENT: u8 = 0x20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Args)]
pub(crate) struct Flags {
    /// Count in user mode; without -u and -k in both
    #[arg(short, requires = "set")]
    pub(super) user: bool,

    /// Count in the kernel
    #[arg(short, requires = "set")]
    pub(super) kernel: bool,

    /// Count rising edges instead of cycles
    #[arg(short, requires = "set")]
    pub(super) edge: bool,

    /// Count cycles with no more occurrences than the threshold, instead of at least as many
    #[arg(short, requires = "set")]
    pub(super) invert: bool,

    /// Count clocks while it lasts, instead of occurrences (Pentium)
    #[arg(short, requires = "set")]
    pub(super) clocks: bool,

    /// The unit mask, in hexadecimal, instead of the event's own
    #[arg(short, value_name = "MASK", requires = "set", value_parser = hexadecimal)]
    #[arg(conflicts_with_all = ["modified", "exclusive", "shared", "invalid", "any_agent"])]
    pub(super) mask: Option<u8>,

    /// Count cycles with at least so many occurrences, 0 to 255
    #[arg(short, value_name = "THRESHOLD", requires = "set")]
    pub(super) threshold: Option<u8>,

    /// Count accesses to modified cache lines; -M, -E, -S and -I add up
    #[arg(short = 'M', requires = "set")]
    pub(super) modified: bool,

    /// Count accesses to exclusive cache lines
    #[arg(short = 'E', requires = "set")]
    pub(super) exclusive: bool,

    /// Count accesses to shared cache lines
    #[arg(short = 'S', requires = "set")]
    pub(super) shared: bool,

    /// Count accesses to invalid cache lines
    #[arg(short = 'I', requires = "set")]
    pub(super) invalid: bool,

    /// Count bus events of all agents, not only of this CPU
    #[arg(short = 'A', requires = "set")]
    #[arg(conflicts_with_all = ["modified", "exclusive", "shared", "invalid"])]
    pub(super) any_agent: bool,
}

impl Flags {
    /// Returns the unit mask: the one asked for, or that of the event with what the letters say of it.
    fn unit_mask(self, of_event: u8) -> u8 {
        let letters = [
            (self.invalid, 0x01),
            (self.shared, 0x02),
            (self.exclusive, 0x04),
            (self.modified, 0x08),
        ];
        let asked = letters.iter().filter(|(asked, _)| *asked);
        let states = asked.fold(0, |mask, (_, bit)| mask | bit);
        let others = if states == 0 {
            of_event
        } else {
            of_event & !CACHE_STATES
        };
        let agents = if self.any_agent { ANY_AGENT } else { 0 };
        self.mask.unwrap_or(others | states | agents)
    }

    /// Returns true if they set the unit mask.
    fn have_unit_mask(self) -> bool {
        self.mask.is_some() || self.unit_mask(0) != 0
    }
}

/// Returns a hexadecimal number of one byte, with or without 0x.
fn hexadecimal(text: &str) -> Result<u8, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u8::from_str_radix(digits, 16).map_err(|_| "not a hexadecimal number from 0 to ff".to_owned())
}

/// Returns the word that makes a counter count an event; 0 for `0` without flags, which stops it.
pub(super) fn word(
    event: &str,
    flags: &Flags,
    counter: u8,
    table: &CpuTable,
    kind: CounterKind,
) -> Result<u32, Failure> {
    let events = table.events_for(Interface::Pctr);
    let (encoding, mut slots) = match hexadecimal(event) {
        Ok(0) if *flags == Flags::default() => return Ok(0),
        Ok(number) => (numbered(number, &events, kind)?, SlotSet::ANY_GENERAL),
        Err(_) => {
            let resolved = named(event, &events)?;
            (resolved.encoding, resolved.slots)
        }
    };
    let encoding = match encoding {
        Encoding::P5(function) => Encoding::P5(p5(function, flags)?),
        Encoding::X86(select) => Encoding::X86(x86(select, flags)?),
        other => other,
    };
    slots = slots.intersection(events.slots_of(&encoding)?);
    if !slots.contains(SlotClass::General, counter) {
        let others = (0..4).filter(|n| slots.contains(SlotClass::General, *n));
        let others: Vec<String> = others.map(|n| n.to_string()).collect();
        return Err(Failure::new(format_args!(
            "counter {counter} cannot count {event}, only counter {} can",
            others.join(" or ")
        )));
    }
    Ok(kind.word(&encoding)?)
}

/// Returns an event by its number, in user and kernel mode, with the unit mask it has when it is asked
/// for by name.
fn numbered(number: u8, events: &CpuEvents, kind: CounterKind) -> Result<Encoding, Failure> {
    if let CounterKind::P5 = kind {
        if number > 0x3f {
            return Err(Failure::usage("a Pentium's events go from 0 to 3f"));
        }
        let levels = P5Function::USER | P5Function::KERNEL;
        return Ok(Encoding::P5(P5Function::new(number).with_flags(levels)));
    }
    let mut own = events.table().events();
    own.retain(|e| (e.code, e.mask.as_str()) == (number.into(), ""));
    let alone = own.len() == 1;
    let mask = own
        .iter()
        .filter(|e| e.unit_mask == 0 || alone)
        .find_map(|e| match named(&e.name, events).ok()?.encoding {
            Encoding::X86(select) => Some(select.unit_mask()),
            _ => None,
        })
        .unwrap_or(0);
    let levels = X86Select::USER | X86Select::KERNEL;
    Ok(Encoding::X86(
        X86Select::new(number.into(), mask).with_flags(levels),
    ))
}

/// Returns an event by its name, in user and kernel mode unless the name says otherwise.
fn named(name: &str, events: &CpuEvents) -> Result<ResolvedEvent, Failure> {
    match events.resolve(&Event::Named(name.to_owned()), Filter::all()) {
        Ok(resolved) => Ok(resolved),
        Err(_) if !events.has_event(name) => Err(Failure::usage(format_args!(
            "{} has no event {name}; quipu pctr -l lists them",
            events.table().name()
        ))),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether user and kernel mode are counted, if the flags say.
fn levels(flags: &Flags) -> Option<(bool, bool)> {
    (flags.user || flags.kernel).then_some((flags.user, flags.kernel))
}

fn p5(function: P5Function, flags: &Flags) -> Result<P5Function, Failure> {
    if flags.edge || flags.invert || flags.threshold.is_some() || flags.have_unit_mask() {
        return Err(Failure::usage(
            "a Pentium's function has no edge, invert, threshold or unit mask",
        ));
    }
    let mut bits = function.0;
    if let Some((user, kernel)) = levels(flags) {
        bits = with_bit(bits.into(), P5Function::USER.into(), user) as u16;
        bits = with_bit(bits.into(), P5Function::KERNEL.into(), kernel) as u16;
    }
    if flags.clocks {
        bits |= P5Function::CLOCKS;
    }
    Ok(P5Function(bits))
}

fn x86(select: X86Select, flags: &Flags) -> Result<X86Select, Failure> {
    if flags.clocks {
        return Err(Failure::usage(
            "only a Pentium's function can count clocks (-c)",
        ));
    }
    let mask = flags.unit_mask(select.unit_mask());
    let mut word = select.select & !0xff00 | u64::from(mask) << 8;
    if let Some((user, kernel)) = levels(flags) {
        word = with_bit(word, X86Select::USER, user);
        word = with_bit(word, X86Select::KERNEL, kernel);
    }
    if flags.edge {
        word |= X86Select::EDGE;
    }
    if flags.invert {
        word |= X86Select::INVERT;
    }
    let threshold = flags.threshold.unwrap_or(select.counter_mask());
    let select = X86Select {
        select: word,
        ..select
    };
    Ok(select.with_counter_mask(threshold))
}

fn with_bit(word: u64, bit: u64, set: bool) -> u64 {
    if set { word | bit } else { word & !bit }
}
