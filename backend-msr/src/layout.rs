//! Where the counters of a CPU are: addresses, widths and enables of each generation.

mod amd;
mod intel;

use quipu_hal::{
    CpuModel, Encoding, Error, ErrorKind, P5Function, Result, Scheme, Slot, X86Select,
};

use crate::allow_list::{self as allow, AllowList};
use crate::{MsrBus, address};

/// The counters of each CPU of one kind, and how they are driven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// In a few words, for people.
    pub(crate) name: String,
    pub(crate) gate: Gate,
    pub(crate) counters: Vec<Counter>,
    pub(crate) allowed: AllowList,
    /// An event that occurs whenever a CPU executes.
    pub(crate) pulse: Encoding,
}

/// What makes counters count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// The function in the counter's half of the CESR.
    Cesr,
    /// The enable of counter 0, for both.
    First,
    /// The enable in each counter's select register.
    Each,
    /// The same, and a bit of a register for all besides.
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
    /// Where it is read and cleared.
    pub(crate) address: u32,
    /// Where as many of its bits can be written as the CPU lets one.
    pub(crate) writing: u32,
    pub(crate) control: Control,
    /// Its bits in the global registers.
    pub(crate) bit: u64,
    /// Event numbers that it cannot count by itself.
    pub(crate) barred: &'static [u16],
}

/// Where it is said what a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// A select register of its own, of which these bits mean an event.
    Select { address: u32, bits: u64 },
    /// A field of a register that several share, beginning at a bit.
    Field { address: u32, shift: u32, bits: u64 },
}

impl Layout {
    /// The layout of the CPUs that a bus reaches, which are of this model.
    pub(crate) fn detect(model: &CpuModel, bus: &impl MsrBus) -> Result<Self> {
        let layout = match model.scheme {
            Scheme::P5 => p5(),
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

/// The error of a CPU whose counters cannot be used.
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

/// Unhalted cycles, by their event number.
fn cycles(event: u16) -> Encoding {
    Encoding::X86(X86Select::new(event, 0).with_flags(X86Select::USER | X86Select::KERNEL))
}

/// A fixed counter's control: kernel, user, any thread, interrupt.
const FIXED_FIELD: u64 = 0xf;
/// Those of them that are ever set.
const FIXED_LEVELS: u64 = 0x3;

/// The low bits.
pub(crate) const fn mask(width: u8) -> u64 {
    u64::MAX >> (64 - if width > 64 { 64 } else { width })
}

/// Where the registers of general counters begin, and how far apart they are.
struct Bases {
    select: u32,
    counter: u32,
    writing: u32,
    step: u32,
}

impl Counter {
    /// A counter with a select register of its own.
    fn general(number: u8, width: u8, bases: &Bases, bits: u64) -> Self {
        let offset = bases.step * u32::from(number);
        Self {
            slot: Slot::general(number, width),
            address: bases.counter + offset,
            writing: bases.writing + offset,
            control: Control::Select {
                address: bases.select + offset,
                bits,
            },
            bit: 1 << number,
            barred: &[],
        }
    }

    /// What its control has to hold for an event, enabled; nothing if it cannot count it.
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

    /// Whether a control that holds this lets its counter count.
    pub(crate) fn enabled(&self, held: u64) -> bool {
        match self.control {
            Control::Select { .. } => held & X86Select::ENABLE != 0,
            Control::Field { bits: 0x1ff, .. } => {
                held & u64::from(P5Function::KERNEL | P5Function::USER) != 0
            }
            Control::Field { .. } => held & FIXED_LEVELS != 0,
        }
    }

    /// Whether a control that holds this was certainly not set by Quipu: the counter is enabled with
    /// an interrupt, pin control or counting of sibling threads, as perf's always is.
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
    /// The bits of its register that it is.
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

    /// A counter's part of what the control's register holds.
    pub(crate) const fn part(self, held: u64) -> u64 {
        match self {
            Self::Select { .. } => held,
            Self::Field { shift, bits, .. } => held >> shift & bits,
        }
    }
}
