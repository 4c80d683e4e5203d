//! The counters of each generation of CPUs: addresses, widths and enables.

mod amd;
mod intel;

use quipu_hal::{
    CpuIdentity, CpuModel, Encoding, Error, ErrorKind, P5Function, Result, Scheme, X86Select,
};
use quipu_pmu::Slot;

use crate::allow_list::{self as allow, AllowList};
use crate::{MsrBus, address};

/// The counters of CPUs of one kind, and their enables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// A short description for users.
    pub(crate) name: String,
    pub(crate) gate: Gate,
    pub(crate) counters: Vec<Counter>,
    pub(crate) allowed: AllowList,
    /// An event that occurs whenever a CPU executes.
    pub(crate) pulse: Encoding,
}

/// The enable that lets counters count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// The function in the counter's half of the CESR.
    Cesr,
    /// The enable of counter 0, for both.
    First,
    /// The enable in each counter's select register.
    Each,
    /// As [`Each`](Self::Each), and a bit of a global register.
    Global(Global),
}

/// Registers that have a bit for each counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Global {
    pub(crate) control: u32,
    pub(crate) status: u32,
    pub(crate) clear: u32,
}

/// One counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) slot: Slot,
    /// The address at which it is read.
    pub(crate) address: u32,
    /// The address at which most of its bits can be written.
    pub(crate) writing: u32,
    /// The value from which it counts. It is not zero, so that another program that zeroes the counter is noticed
    /// by a value that has gone back.
    pub(crate) origin: u64,
    pub(crate) control: Control,
    /// Its bits in the global registers.
    pub(crate) bit: u64,
    /// Event numbers that it cannot count by itself.
    pub(crate) barred: &'static [u16],
}

/// The register or field that selects the event of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// A select register of its own, of which these bits mean an event.
    Select { address: u32, bits: u64 },
    /// A field of a register that several share, beginning at a bit.
    Field { address: u32, shift: u32, bits: u64 },
}

impl Gate {
    /// Returns the counters that count for another program with controls of these values; of those that share an
    /// enable the one that has it.
    pub(crate) fn in_use(self, counters: &[Counter], controls: &[u64]) -> Vec<usize> {
        let shared = self == Self::First;
        let some_count = || {
            counters
                .iter()
                .zip(controls)
                .any(|(c, &held)| c.has_level(held))
        };
        let counts = |slot: &usize| {
            let (counter, held) = (&counters[*slot], controls[*slot]);
            let has_level = match shared {
                true => counter.slot.number == 0 && some_count(),
                false => counter.has_level(held),
            };
            has_level && counter.enabled(held)
        };
        (0..counters.len()).filter(counts).collect()
    }
}

impl Layout {
    /// Returns the layout of the CPUs that a bus reaches, which are of this model.
    pub(crate) fn detect(model: &CpuModel, bus: &impl MsrBus) -> Result<Self> {
        let layout = match model.scheme {
            Scheme::P5 => p5(),
            Scheme::P6 if is_knights_corner(model) => {
                return Err(unusable().with_reason(
                    "Knights Corner has its counters in registers of its own, which only Linux reaches",
                ));
            }
            Scheme::P6 => intel::p6(),
            Scheme::IntelArchitectural => intel::architectural(bus)?,
            Scheme::AmdK7 => amd::k7(),
            Scheme::Amd10h => amd::family_10h(model, bus)?,
            other => {
                return Err(
                    unusable().with_reason(format!("{other:?} is not a scheme of x86 registers"))
                );
            }
        };
        Ok(layout)
    }
}

/// Returns true for the CPU that has the words of the P6 elsewhere (MSR_KNC_EVNTSEL0, arch/x86/events/intel/knc.c).
fn is_knights_corner(model: &CpuModel) -> bool {
    matches!(model.identity, CpuIdentity::X86 { family: 11, .. })
}

/// Returns the error of a CPU whose counters cannot be used.
pub(crate) fn unusable() -> Error {
    Error::new(
        ErrorKind::NoSuchDevice,
        "count with model-specific registers",
    )
}

/// Pentium: Intel SDM volume 3, "Performance Monitoring (Pentium Processors)".
fn p5() -> Layout {
    let counter = |number: u8| Counter {
        slot: Slot::general(number, 40),
        address: address::P5_COUNTER + u32::from(number),
        writing: address::P5_COUNTER + u32::from(number),
        origin: NARROW_ORIGIN,
        control: Control::Field {
            address: address::P5_CESR,
            shift: 16 * u32::from(number),
            bits: 0x1ff,
        },
        bit: 0,
        barred: &[],
    };
    Layout {
        name: "Pentium, two counters of 40 bits".into(),
        gate: Gate::Cesr,
        counters: (0..2).map(counter).collect(),
        allowed: AllowList::new(&[
            (&allow::P5_CESR, 1, u64::MAX),
            (&allow::P5_COUNTERS, 2, mask(40)),
        ]),
        // Instructions.
        pulse: Encoding::P5(
            P5Function::new(0x16).with_flags(P5Function::USER | P5Function::KERNEL),
        ),
    }
}

/// Returns the encoding of unhalted cycles, by their event number.
fn cycles(event: u16) -> Encoding {
    Encoding::X86(X86Select::new(event, 0).with_flags(X86Select::USER | X86Select::KERNEL))
}

/// Returns the value from which a counter counts that can be written in its full width: more than it counts in
/// an hour, and a quarter of its range.
const fn origin(width: u8) -> u64 {
    1 << (width - 2)
}

/// The value from which a counter counts of which only the low 32 bits can be written, the highest of them as a
/// sign.
const NARROW_ORIGIN: u64 = origin(32);

/// A fixed counter's control: kernel, user, any thread, interrupt.
const FIXED_FIELD: u64 = 0xf;
/// Those of them that are ever set.
const FIXED_LEVELS: u64 = 0x3;

/// Returns a mask of the low bits.
pub(crate) const fn mask(width: u8) -> u64 {
    u64::MAX >> 64_u8.saturating_sub(width)
}

/// First addresses and distance of the registers of general counters.
struct Bases {
    select: u32,
    counter: u32,
    writing: u32,
    step: u32,
    /// True if all bits of a counter can be written.
    full_width: bool,
}

impl Counter {
    /// Returns a counter with a select register of its own.
    fn general(number: u8, width: u8, bases: &Bases, bits: u64) -> Self {
        let offset = bases.step * u32::from(number);
        Self {
            slot: Slot::general(number, width),
            address: bases.counter + offset,
            writing: bases.writing + offset,
            origin: match bases.full_width {
                true => origin(width),
                false => NARROW_ORIGIN,
            },
            control: Control::Select {
                address: bases.select + offset,
                bits,
            },
            bit: 1 << number,
            barred: &[],
        }
    }

    /// Returns the control word for an event, enabled, or `None` if this counter cannot count it.
    pub(crate) fn word(&self, encoding: &Encoding) -> Option<u64> {
        match (self.control, encoding) {
            (Control::Select { bits, .. }, Encoding::X86(select)) => {
                let fits = select.extra.is_empty() && select.select & !bits == 0;
                let fits = fits && !self.barred.contains(&select.event());
                fits.then_some(select.select | X86Select::ENABLE)
            }
            (Control::Field { bits, .. }, Encoding::P5(P5Function(function))) => {
                let word = u64::from(*function);
                (bits == 0x1ff && word & !bits == 0).then_some(word)
            }
            (Control::Field { bits, .. }, Encoding::Fixed(fixed)) => {
                let word = u64::from(fixed.control);
                (bits == FIXED_FIELD
                    && fixed.index == self.slot.number
                    && word & !FIXED_LEVELS == 0)
                    .then_some(word)
            }
            _ => None,
        }
    }

    /// Returns true if a control of this value lets its counter count.
    pub(crate) fn enabled(&self, held: u64) -> bool {
        match self.control {
            Control::Select { .. } => held & X86Select::ENABLE != 0,
            Control::Field { bits: 0x1ff, .. } => {
                held & u64::from(P5Function::KERNEL | P5Function::USER) != 0
            }
            Control::Field { .. } => held & FIXED_LEVELS != 0,
        }
    }

    /// Returns true if a counter counts with a control of this value once it is enabled: without a privilege level
    /// it counts nothing.
    pub(crate) fn has_level(&self, held: u64) -> bool {
        match self.control {
            Control::Select { .. } => held & (X86Select::USER | X86Select::KERNEL) != 0,
            Control::Field { .. } => self.enabled(held),
        }
    }

    /// Returns true if a control of this value was certainly not set by Quipu: the counter is enabled
    /// with an interrupt, pin control or counting of sibling threads, as perf's always is.
    pub(crate) fn set_by_another(&self, held: u64) -> bool {
        let never = match self.control {
            Control::Select { .. } => allow::SELECT_KEPT,
            Control::Field {
                bits: FIXED_FIELD, ..
            } => FIXED_FIELD & !FIXED_LEVELS,
            Control::Field { .. } => 0,
        };
        self.enabled(held) && held & never != 0
    }
}

impl Control {
    /// Returns its bits in its register.
    pub(crate) const fn mask(self) -> u64 {
        match self {
            Self::Select { .. } => u64::MAX,
            Self::Field { shift, bits, .. } => bits << shift,
        }
    }

    pub(crate) const fn address(self) -> u32 {
        match self {
            Self::Select { address, .. } | Self::Field { address, .. } => address,
        }
    }

    /// Returns a counter's part of the value of the control's register.
    pub(crate) const fn part(self, held: u64) -> u64 {
        match self {
            Self::Select { .. } => held,
            Self::Field { shift, bits, .. } => held >> shift & bits,
        }
    }
}
