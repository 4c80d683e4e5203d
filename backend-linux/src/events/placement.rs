//! The places where an event can be counted: on every CPU, on some core PMUs, or by the instances of a unit outside of the cores.

#[cfg(feature = "names")]
use std::ffi::CString;

use quipu_hal::EventInfo;

use super::bits::EventBits;

/// An event that can be opened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resolved {
    /// The CPUs or core PMUs that can count it, with its bits there.
    pub(crate) placement: Placement,
    /// Its name, unit and filters.
    pub(crate) info: EventInfo,
}

/// The CPUs or core PMUs that can count an event, with its bits there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Placement {
    /// On every CPU, with the same bits.
    Anywhere(EventBits),
    /// On these core PMUs (by position), with bits for each.
    Cores(Vec<(usize, EventBits)>),
    /// By PMUs outside of the cores: the instances of one unit.
    #[cfg(feature = "names")]
    Units(Vec<Unit>),
    /// On every CPU, with bits that point to the text.
    #[cfg(feature = "names")]
    Probe(EventBits, CString),
}

/// A PMU outside of the cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Its name: `uncore_imc_0`.
    pub(crate) pmu: String,
    /// The CPUs it is opened on, each standing for the part of the machine around it.
    pub(crate) cpus: Vec<u32>,
    pub(crate) bits: EventBits,
}

/// The PMU that counts a part: one of the core PMUs (by position), or an instance of a unit outside of the cores.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counting<'a> {
    Any,
    Core(usize),
    Unit(&'a str),
}

impl Placement {
    /// More core PMUs, for an event that differs between them.
    pub(crate) fn add_cores(&mut self, more: Vec<(usize, EventBits)>) {
        if let Self::Cores(cores) = self {
            cores.extend(more);
        }
    }

    /// Returns the PMUs outside of the cores that can count the event, if they are such.
    pub(crate) fn units(&self) -> Option<&[Unit]> {
        match self {
            #[cfg(feature = "names")]
            Self::Units(units) => Some(units),
            _ => None,
        }
    }

    /// Returns the bits of the event on the first PMU that can count it.
    pub(crate) fn first_bits(&self) -> Option<EventBits> {
        match self {
            Self::Anywhere(bits) => Some(*bits),
            Self::Cores(cores) => cores.first().map(|(_, bits)| *bits),
            #[cfg(feature = "names")]
            Self::Units(units) => units.first().map(|unit| unit.bits),
            #[cfg(feature = "names")]
            Self::Probe(bits, _) => Some(*bits),
        }
    }

    /// Returns the bits of the event if it is a probe.
    #[cfg(feature = "sampling")]
    pub(crate) fn probe(&self) -> Option<EventBits> {
        self.first_bits().filter(EventBits::is_probe)
    }

    /// The bits of the event on this core PMU, if it differs between them and can be counted there.
    pub(crate) fn on_core(&self, core: usize) -> Option<EventBits> {
        let Self::Cores(cores) = self else {
            return None;
        };
        let (_, bits) = cores.iter().find(|(i, _)| *i == core)?;
        Some(*bits)
    }

    /// The bits of the event on a PMU and CPU, if it can be counted there. They are good for as
    /// long as this placement is.
    pub(crate) fn bits(&self, on: Counting<'_>, cpu: Option<u32>) -> Option<EventBits> {
        match (self, on) {
            (Self::Anywhere(bits), _) => Some(*bits),
            #[cfg(feature = "names")]
            (Self::Probe(bits, text), _) => Some(bits.pointing_to(text)),
            (Self::Cores(_), Counting::Core(core)) => self.on_core(core),
            (Self::Cores(_), _) => None,
            #[cfg(feature = "names")]
            (Self::Units(units), on) => {
                let unit = units.iter().find(|unit| match on {
                    Counting::Unit(pmu) => unit.pmu == pmu,
                    _ => units.len() == 1,
                })?;
                let there = cpu.is_none_or(|cpu| unit.cpus.contains(&cpu));
                there.then_some(unit.bits)
            }
        }
    }
}
