//! From an event and flags to a function word.

use clap::Args;
use quipu::events::{CpuTable, Interface};
use quipu::hal::{Encoding, EventMap, P5Function, X86Select};
use quipu::pctr::CounterKind;
use quipu::pctr::function::needs_cache_states;

use crate::failure::Failure;

#[derive(Debug, Clone, Copy, Default, Args)]
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

    /// The unit mask, in hexadecimal
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
    /// The unit mask that was asked for, if one was.
    fn unit_mask(self) -> Option<u8> {
        let letters = [
            (self.invalid, 0x01),
            (self.shared, 0x02),
            (self.exclusive, 0x04),
            (self.modified, 0x08),
            (self.any_agent, 0x20),
        ];
        let mask = letters
            .iter()
            .filter(|(asked, _)| *asked)
            .fold(0, |mask, (_, bit)| mask | bit);
        self.mask.or((mask != 0).then_some(mask))
    }
}

/// A hexadecimal number of one byte, with or without 0x.
fn hexadecimal(text: &str) -> Result<u8, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u8::from_str_radix(digits, 16).map_err(|_| "not a hexadecimal number from 0 to ff".to_owned())
}

/// The word that makes a counter count an event; 0 for the event `0`.
pub(super) fn word(
    event: &str,
    flags: &Flags,
    table: &CpuTable,
    kind: CounterKind,
) -> Result<u32, Failure> {
    let (code, default_mask) = match hexadecimal(event) {
        Ok(0) => return Ok(0),
        Ok(code) if needs_cache_states(kind, code) => (code, 0x0f),
        Ok(code) => (code, 0),
        Err(_) => named(event, table)?,
    };
    let encoding = match kind {
        CounterKind::P5 { .. } => Encoding::P5(p5(code, flags)?),
        _ => Encoding::X86(x86(code, default_mask, flags)?),
    };
    let by_map = matches!(kind, CounterKind::Core | CounterKind::Amd);
    if by_map && !table.events_for(Interface::Pctr).knows(&encoding) {
        return Err(Failure::new(format_args!(
            "{} has no such event as {event}; quipu pctr -l lists them",
            table.name()
        )));
    }
    Ok(kind.word(&encoding)?)
}

/// Number and unit mask of an event by name.
fn named(name: &str, table: &CpuTable) -> Result<(u8, u8), Failure> {
    let Some(event) = table.event(name) else {
        return Err(Failure::usage(format_args!(
            "{} has no event {name}; quipu pctr -l lists them",
            table.name()
        )));
    };
    match u8::try_from(event.code) {
        Ok(code) => Ok((code, event.unit_mask)),
        Err(_) => Err(Failure::usage(format_args!(
            "event {:#x} has more bits than the 8 of a function",
            event.code
        ))),
    }
}

/// Whether user and kernel mode count.
fn levels(flags: &Flags) -> (bool, bool) {
    let both = flags.user == flags.kernel;
    (flags.user || both, flags.kernel || both)
}

fn p5(code: u8, flags: &Flags) -> Result<P5Function, Failure> {
    if flags.edge || flags.invert || flags.threshold.is_some() || flags.unit_mask().is_some() {
        return Err(Failure::usage(
            "a Pentium's function has no edge, invert, threshold or unit mask",
        ));
    }
    if code > 0x3f {
        return Err(Failure::usage("a Pentium's events go from 0 to 3f"));
    }
    let (user, kernel) = levels(flags);
    let flags = [
        (user, P5Function::USER),
        (kernel, P5Function::KERNEL),
        (flags.clocks, P5Function::CLOCKS),
    ];
    let set = flags.iter().filter(|(asked, _)| *asked);
    Ok(set.fold(P5Function::new(code), |f, (_, bit)| f.with_flags(*bit)))
}

fn x86(code: u8, default_mask: u8, flags: &Flags) -> Result<X86Select, Failure> {
    if flags.clocks {
        return Err(Failure::usage(
            "only a Pentium's function can count clocks (-c)",
        ));
    }
    let (user, kernel) = levels(flags);
    let bits = [
        (user, X86Select::USER),
        (kernel, X86Select::KERNEL),
        (flags.edge, X86Select::EDGE),
        (flags.invert, X86Select::INVERT),
    ];
    let mask = flags.unit_mask().unwrap_or(default_mask);
    let select = X86Select::new(code.into(), mask).with_counter_mask(flags.threshold.unwrap_or(0));
    let set = bits.iter().filter(|(asked, _)| *asked);
    Ok(set.fold(select, |select, (_, bit)| select.with_flags(*bit)))
}
