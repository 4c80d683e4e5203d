//! From an entry's numbers to the bits an interface takes.

use quipu_events_format::{Bits, flag};
use quipu_hal::{
    Armv8Event, Encoding, Error, ErrorKind, ExtraRegister, Filter, FixedCounter, P5Function,
    PerfConfig, Result, Scheme, SlotClass, SlotSet, X86Select,
};

/// The interface that an encoding is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interface {
    /// Linux's `perf_event_attr`: type and config words. Filters go into the attribute, not the bits.
    Linux,
    /// OpenBSD's `/dev/pctr`: one 32-bit function word for each counter, no other registers.
    Pctr,
    /// The registers themselves.
    Msr,
    /// Another interface, by its name. Events are encoded as for the registers themselves.
    Other(&'static str),
}

impl Interface {
    /// The interfaces of Quipu's own backends.
    pub const ALL: &'static [Self] = &[Self::Linux, Self::Pctr, Self::Msr];

    /// Returns the name in commands: `linux`, `pctr`, `msr`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Pctr => "pctr",
            Self::Msr => "msr",
            Self::Other(name) => name,
        }
    }
}

/// `PERF_TYPE_RAW`.
pub(crate) const PERF_TYPE_RAW: u32 = 4;

/// The flags of [`Bits`] and the select bits they stand for.
pub(crate) const SELECT_FLAGS: [(u32, u64); 6] = [
    (flag::EDGE, X86Select::EDGE),
    (flag::INVERT, X86Select::INVERT),
    (flag::ANY_THREAD, X86Select::ANY_THREAD),
    (flag::IN_TX, X86Select::IN_TRANSACTION),
    (flag::IN_TX_CP, X86Select::IN_TRANSACTION_CHECKPOINTED),
    (flag::EQUAL, X86Select::EQUAL),
];

/// Returns the encoding of an entry counted where `filter` says, for an interface.
pub(crate) fn encode(
    scheme: Scheme,
    bits: Bits,
    filter: Filter,
    interface: Interface,
    what: &str,
) -> Result<Encoding> {
    let refuse = |reason: &str| {
        Error::new(ErrorKind::UnsupportedFeature, format!("encode {what}")).with_reason(reason)
    };
    if interface != Interface::Linux && !filter.intersects(Filter::USER | Filter::KERNEL) {
        return Err(refuse("the counters count in user or kernel mode only"));
    }
    match (scheme, interface) {
        (Scheme::P5, Interface::Linux) => Err(refuse("Linux has no driver for Pentium counters")),
        (Scheme::P5, _) => Ok(Encoding::P5(p5(bits, filter))),
        (Scheme::Perf, Interface::Linux) => Ok(perf(bits.config(), 0)),
        (Scheme::Perf, _) => Err(refuse(
            "the numbers of its events are those of Linux's driver",
        )),
        (Scheme::Armv8, Interface::Linux) => Ok(perf(u64::from(bits.code), 0)),
        (Scheme::Armv8, Interface::Pctr) => Err(refuse("pctr(4) exists on x86 only")),
        (Scheme::Armv8, _) => Ok(Encoding::Armv8(armv8(bits, filter))),
        (_, Interface::Linux) => Ok(perf(select(scheme, general(bits)).select, bits.value)),
        (_, Interface::Pctr) => pctr(scheme, bits, filter, refuse),
        _ => Ok(registers(scheme, bits, filter)),
    }
}

fn perf(config: u64, config1: u64) -> Encoding {
    Encoding::Perf(PerfConfig::new(PERF_TYPE_RAW, config).with_config1(config1))
}

fn p5(bits: Bits, filter: Filter) -> P5Function {
    let mut flags = 0;
    if filter.contains(Filter::KERNEL) {
        flags |= P5Function::KERNEL;
    }
    if filter.contains(Filter::USER) {
        flags |= P5Function::USER;
    }
    if bits.flags & flag::CLOCKS != 0 {
        flags |= P5Function::CLOCKS;
    }
    P5Function::new(bits.code as u8).with_flags(flags)
}

fn armv8(bits: Bits, filter: Filter) -> Armv8Event {
    let mut flags = 0;
    if !filter.contains(Filter::KERNEL) {
        flags |= Armv8Event::EXCLUDE_EL1;
    }
    if !filter.contains(Filter::USER) {
        flags |= Armv8Event::EXCLUDE_EL0;
    }
    if filter.contains(Filter::HYPERVISOR) {
        flags |= Armv8Event::INCLUDE_EL2;
    }
    Armv8Event::new(bits.code).with_flags(flags)
}

/// Returns an event of a fixed counter as the general counters or Linux know it.
///
/// Most have events of their own (`FIXED_EVENT_CONSTRAINT`, arch/x86/events/intel/core.c); the reference
/// cycles and the top-down slots Linux takes as event 0 with the unit mask that names the counter, and so it
/// does what is `fixed-only`.
pub(crate) fn general(bits: Bits) -> Bits {
    if bits.flags & flag::FIXED_ONLY != 0 {
        return bits;
    }
    let (code, unit_mask) = match bits.fixed {
        1 => (0xc0, 0),
        2 => (0x3c, 0),
        5 => (0x73, 0),
        6 => (0x9c, 1),
        7 => (0xc2, 2),
        _ => return bits,
    };
    Bits {
        code,
        unit_mask,
        ..bits
    }
}

fn select(scheme: Scheme, bits: Bits) -> X86Select {
    let code = match scheme {
        Scheme::Amd10h => bits.code & 0xfff,
        _ => bits.code & 0xff,
    };
    let flags = SELECT_FLAGS
        .iter()
        .filter(|(flag, _)| bits.flags & flag != 0)
        .fold(0, |word, (_, bit)| word | bit);
    let mut select = X86Select::new(code, bits.unit_mask)
        .with_flags(flags)
        .with_counter_mask(bits.counter_mask);
    if bits.second_mask != 0 {
        select = select.with_second_unit_mask(bits.second_mask);
    }
    select
}

fn levels(scheme: Scheme, filter: Filter) -> u64 {
    let mut flags = X86Select::ENABLE;
    if filter.contains(Filter::USER) {
        flags |= X86Select::USER;
    }
    if filter.contains(Filter::KERNEL) {
        flags |= X86Select::KERNEL;
    }
    if scheme == Scheme::Amd10h {
        if filter.intersection(Filter::WORLDS) == Filter::GUEST {
            flags |= X86Select::GUEST_ONLY;
        } else if filter.intersection(Filter::WORLDS) == Filter::HOST {
            flags |= X86Select::HOST_ONLY;
        }
    }
    flags
}

fn registers(scheme: Scheme, bits: Bits, filter: Filter) -> Encoding {
    if bits.fixed > 0 {
        let mut control = 0;
        if filter.contains(Filter::KERNEL) {
            control |= FixedCounter::KERNEL;
        }
        if filter.contains(Filter::USER) {
            control |= FixedCounter::USER;
        }
        if bits.flags & flag::ANY_THREAD != 0 {
            control |= FixedCounter::ANY_THREAD;
        }
        return Encoding::Fixed(FixedCounter {
            index: bits.fixed - 1,
            control,
        });
    }
    let mut select = select(scheme, bits).with_flags(levels(scheme, filter));
    if bits.register != 0 {
        select.extra.push(ExtraRegister {
            address: bits.register,
            value: bits.value,
        });
    }
    Encoding::X86(select)
}

/// Encodes for pctr(4), which takes 32 bits, refuses bits 19-21, and reaches no register but the select registers.
fn pctr(
    scheme: Scheme,
    bits: Bits,
    filter: Filter,
    refuse: impl Fn(&str) -> Error,
) -> Result<Encoding> {
    if bits.register != 0 {
        return Err(refuse("pctr(4) cannot write the extra register it needs"));
    }
    if bits.fixed > 2 || bits.flags & flag::FIXED_ONLY != 0 {
        return Err(refuse("pctr(4) does not reach the fixed counters"));
    }
    let select = select(scheme, general(bits)).with_flags(levels(scheme, filter));
    if select.select >> 32 != 0 {
        return Err(refuse(
            "it needs bits beyond the 32 of a pctr(4) function word",
        ));
    }
    if select.select & X86Select::ANY_THREAD != 0 {
        return Err(refuse("pctr(4) refuses the any-thread bit"));
    }
    Ok(Encoding::X86(select))
}

/// Returns the counters that can count an entry through an interface.
pub(crate) fn slots(bits: Bits, interface: Interface) -> SlotSet {
    match bits.fixed {
        0 if bits.counters != 0 => SlotSet::general(u64::from(bits.counters)),
        1 | 2 if interface == Interface::Pctr => SlotSet::ANY_GENERAL,
        0 => SlotSet::ANY_GENERAL,
        fixed => SlotSet::one(SlotClass::Fixed, fixed - 1),
    }
}
