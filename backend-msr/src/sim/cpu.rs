//! The registers of one simulated CPU, and how they count.

use std::collections::BTreeMap;

use quipu_hal::{P5Function, X86Select};

use super::{Generation, Level, Stretch};
use crate::address;
use crate::layout::mask;

/// The register at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Register {
    TimeStamp,
    Cesr,
    Select(usize),
    /// Writes are sign-extended from bit 31.
    Counter(usize),
    /// Writes set all its bits.
    FullCounter(usize),
    Capabilities,
    FixedControl,
    FixedCounter(usize),
    GlobalControl,
    GlobalStatus,
    GlobalClear,
}

/// One counter.
#[derive(Debug, Clone, Copy, Default)]
struct Counter {
    value: u64,
    /// True if the condition of the counter mask held in the last cycle.
    held: bool,
}

/// One CPU.
#[derive(Debug)]
pub(super) struct SimCpu {
    generation: Generation,
    registers: BTreeMap<u32, Register>,
    time_stamp: u64,
    cesr: u64,
    selects: Vec<u64>,
    general: Vec<Counter>,
    fixed_control: u64,
    fixed: Vec<Counter>,
    global_control: u64,
    global_status: u64,
}

/// The event and conditions that a counter is programmed to.
struct Selection {
    event: u64,
    user: bool,
    kernel: bool,
    edge: bool,
    invert: bool,
    equal: bool,
    counter_mask: u64,
}

impl SimCpu {
    pub(super) fn new(generation: Generation) -> Self {
        Self {
            registers: registers(generation),
            generation,
            time_stamp: 1,
            cesr: 0,
            selects: vec![0; generation.general().into()],
            general: vec![Counter::default(); generation.general().into()],
            fixed_control: 0,
            fixed: vec![Counter::default(); generation.fixed().into()],
            global_control: 0,
            global_status: 0,
        }
    }

    /// Reads a register; returns `None` if there is none that can be read.
    pub(super) fn read(&mut self, address: u32) -> Option<u64> {
        Some(match *self.registers.get(&address)? {
            Register::TimeStamp => self.time_stamp,
            Register::Cesr => self.cesr,
            Register::Select(n) => self.selects[n],
            Register::Counter(n) | Register::FullCounter(n) => self.general[n].value,
            Register::Capabilities => u64::from(self.full_width()) << 13,
            Register::FixedControl => self.fixed_control,
            Register::FixedCounter(n) => self.fixed[n].value,
            Register::GlobalControl => self.global_control,
            Register::GlobalStatus => self.global_status,
            Register::GlobalClear => 0,
        })
    }

    /// Writes a register; returns false if that faults.
    pub(super) fn write(&mut self, address: u32, value: u64) -> bool {
        let Some(&register) = self.registers.get(&address) else {
            return false;
        };
        let width = mask(self.generation.width());
        let allowed = match register {
            Register::TimeStamp | Register::Counter(_) => u64::MAX,
            Register::Cesr => 0x03ff_03ff,
            Register::Select(_) => self.generation.select_bits(),
            Register::FullCounter(_) | Register::FixedCounter(_) => width,
            Register::FixedControl => self.fixed_bits(),
            Register::GlobalControl | Register::GlobalClear => self.global_bits(),
            Register::Capabilities | Register::GlobalStatus => return false,
        };
        if value & !allowed != 0 {
            return false;
        }
        match register {
            Register::TimeStamp => self.time_stamp = value,
            Register::Cesr => self.cesr = value,
            Register::Select(n) => {
                self.selects[n] = value;
                self.general[n].held = false;
            }
            Register::Counter(n) => self.general[n].value = self.narrowed(value) & width,
            Register::FullCounter(n) => self.general[n].value = value,
            Register::FixedControl => self.fixed_control = value,
            Register::FixedCounter(n) => self.fixed[n].value = value,
            Register::GlobalControl => self.global_control = value,
            Register::GlobalClear => self.global_status &= !value,
            Register::Capabilities | Register::GlobalStatus => {}
        }
        true
    }

    /// Narrows a value written to a counter: Intel's take 32 bits.
    fn narrowed(&self, value: u64) -> u64 {
        match self.generation {
            Generation::P6 | Generation::Intel { .. } => {
                i64::from((value as u32).cast_signed()).cast_unsigned()
            }
            _ => value,
        }
    }

    /// Returns true if an address is one of the counting registers.
    pub(super) fn counts(&self, address: u32) -> bool {
        let register = self.registers.get(&address);
        !matches!(
            register,
            None | Some(Register::TimeStamp | Register::Capabilities)
        )
    }

    pub(super) fn dump(&self) -> Vec<(u32, u64)> {
        let mut copy = Self {
            registers: self.registers.clone(),
            selects: self.selects.clone(),
            general: self.general.clone(),
            fixed: self.fixed.clone(),
            ..*self
        };
        let addresses = self.registers.keys().filter(|&&a| a != address::TIME_STAMP);
        addresses
            .filter_map(|&a| Some((a, copy.read(a)?)))
            .collect()
    }

    fn full_width(&self) -> bool {
        matches!(
            self.generation,
            Generation::Intel {
                full_width: true,
                ..
            }
        )
    }

    fn fixed_bits(&self) -> u64 {
        let any_thread = match self.generation {
            Generation::Intel { version: 3.., .. } => 0x4,
            _ => 0,
        };
        (0..self.fixed.len()).fold(0, |bits, n| bits | (0xb | any_thread) << (4 * n))
    }

    fn global_bits(&self) -> u64 {
        let general = self.generation.general();
        ((1 << general) - 1) | (((1 << self.fixed.len()) - 1) << 32)
    }

    /// Executes something, and counts it.
    pub(super) fn run(&mut self, stretch: &Stretch, standstill: bool) {
        self.time_stamp = self.time_stamp.wrapping_add(stretch.cycles);
        if standstill {
            return;
        }
        for n in 0..self.general.len() {
            if let Some(selection) = self.selection(n) {
                let Counter { value, held } = self.general[n];
                let (by, held) = self.count(held, &selection, stretch);
                let value = self.advance(value, by, 1 << n);
                self.general[n] = Counter { value, held };
            }
        }
        for n in 0..self.fixed.len() {
            if let Some(selection) = self.fixed_selection(n) {
                let times = self.rate(selection.event, stretch);
                if selection.counts_at(stretch.level) {
                    let by = times.wrapping_mul(stretch.cycles);
                    self.fixed[n].value = self.advance(self.fixed[n].value, by, 1 << (32 + n));
                }
            }
        }
    }

    /// Returns an advanced counter value, and notes an overflow.
    fn advance(&mut self, value: u64, by: u64, bit: u64) -> u64 {
        let width = mask(self.generation.width());
        if by > width - value && self.has_global() {
            self.global_status |= bit;
        }
        value.wrapping_add(by) & width
    }

    /// Returns the events that counters are enabled to count.
    pub(super) fn counted(&self) -> Vec<u64> {
        let general = (0..self.general.len()).filter_map(|n| self.selection(n));
        let fixed = (0..self.fixed.len()).filter_map(|n| self.fixed_selection(n));
        let enabled = general.chain(fixed).filter(|s| s.user || s.kernel);
        enabled.map(|selection| selection.event).collect()
    }

    /// Returns the increment of a counter in a stretch, and true if its condition holds at the end.
    fn count(&self, held: bool, selection: &Selection, stretch: &Stretch) -> (u64, bool) {
        if !selection.counts_at(stretch.level) || stretch.cycles == 0 {
            return (0, held);
        }
        let times = self.rate(selection.event, stretch);
        if selection.counter_mask == 0 && !selection.edge {
            return (times.wrapping_mul(stretch.cycles), held);
        }
        let threshold = selection.counter_mask.max(1);
        let reached = if selection.equal {
            times == threshold
        } else {
            times >= threshold
        };
        let holds = reached != selection.invert;
        let by = match (selection.edge, holds) {
            (_, false) => 0,
            (true, true) => u64::from(!held),
            (false, true) => stretch.cycles,
        };
        (by, holds)
    }

    fn rate(&self, event: u64, stretch: &Stretch) -> u64 {
        if self.generation.cycles() == Some(event) {
            1
        } else {
            stretch.rate(event)
        }
    }

    /// Returns the selection of a general counter, or `None` while it is not enabled.
    fn selection(&self, n: usize) -> Option<Selection> {
        if self.generation == Generation::P5 {
            let function = P5Function((self.cesr >> (16 * n)) as u16 & 0x1ff);
            return Some(Selection {
                event: function.event().into(),
                user: function.0 & P5Function::USER != 0,
                kernel: function.0 & P5Function::KERNEL != 0,
                edge: false,
                invert: false,
                equal: false,
                counter_mask: u64::from(function.0 & P5Function::CLOCKS != 0),
            });
        }
        let select = self.selects[n];
        let gate = if self.generation == Generation::P6 {
            self.selects[0]
        } else {
            select
        };
        let on = !self.has_global() || self.global_control >> n & 1 == 1;
        (on && gate & X86Select::ENABLE != 0).then(|| Selection {
            event: select & self.generation.event_bits(),
            user: select & X86Select::USER != 0,
            kernel: select & X86Select::KERNEL != 0,
            edge: select & X86Select::EDGE != 0,
            invert: select & X86Select::INVERT != 0,
            equal: select & X86Select::EQUAL != 0
                && matches!(self.generation, Generation::Intel { version: 6.., .. }),
            counter_mask: select >> 24 & 0xff,
        })
    }

    /// Returns the selection of a fixed counter, or `None` while it is not enabled.
    fn fixed_selection(&self, n: usize) -> Option<Selection> {
        let control = self.fixed_control >> (4 * n);
        (self.global_control >> (32 + n) & 1 == 1).then(|| Selection {
            event: [0xc0, 0x3c, 0x13c, 0x1a4]
                .get(n)
                .copied()
                .unwrap_or_default(),
            user: control & 2 != 0,
            kernel: control & 1 != 0,
            edge: false,
            invert: false,
            equal: false,
            counter_mask: 0,
        })
    }

    fn has_global(&self) -> bool {
        has_global(self.generation)
    }
}

impl Selection {
    fn counts_at(&self, level: Level) -> bool {
        match level {
            Level::User => self.user,
            Level::Kernel => self.kernel,
        }
    }
}

const fn has_global(generation: Generation) -> bool {
    matches!(
        generation,
        Generation::Intel { version: 2.., .. } | Generation::AmdPerfMonV2 { .. }
    )
}

/// Returns the registers of a generation by address.
fn registers(generation: Generation) -> BTreeMap<u32, Register> {
    let mut registers = BTreeMap::from([(address::TIME_STAMP, Register::TimeStamp)]);
    let general = usize::from(generation.general());
    let mut each = |number: usize, first: u32, step: u32, make: fn(usize) -> Register| {
        registers.extend((0..number).map(|n| (first + step * n as u32, make(n))));
    };
    match generation {
        Generation::P5 => {
            each(1, address::P5_CESR, 1, |_| Register::Cesr);
            each(2, address::P5_COUNTER, 1, Register::FullCounter);
        }
        Generation::P6 => {
            each(2, address::INTEL_SELECT, 1, Register::Select);
            each(2, address::INTEL_COUNTER, 1, Register::Counter);
        }
        Generation::Intel {
            version,
            fixed,
            full_width,
            ..
        } => {
            let legacy = general.min(8);
            each(legacy, address::INTEL_SELECT, 1, Register::Select);
            each(legacy, address::INTEL_COUNTER, 1, Register::Counter);
            let full = if full_width { legacy } else { 0 };
            each(full, address::INTEL_FULL_COUNTER, 1, Register::FullCounter);
            let fixed = fixed.into();
            if version >= 2 {
                each(
                    fixed,
                    address::INTEL_FIXED_COUNTER,
                    1,
                    Register::FixedCounter,
                );
                each(1, address::INTEL_FIXED_CONTROL, 1, |_| {
                    Register::FixedControl
                });
                each(1, address::INTEL_CAPABILITIES, 1, |_| {
                    Register::Capabilities
                });
                each(1, address::INTEL_GLOBAL_STATUS, 1, |_| {
                    Register::GlobalStatus
                });
                each(1, address::INTEL_GLOBAL_CONTROL, 1, |_| {
                    Register::GlobalControl
                });
                each(1, address::INTEL_GLOBAL_CLEAR, 1, |_| Register::GlobalClear);
            }
            if version >= 6 {
                let step = address::INTEL_V6_STEP;
                each(general, address::INTEL_V6_SELECT, step, Register::Select);
                each(
                    general,
                    address::INTEL_V6_COUNTER,
                    step,
                    Register::FullCounter,
                );
                each(
                    fixed,
                    address::INTEL_V6_FIXED_COUNTER,
                    step,
                    Register::FixedCounter,
                );
            }
        }
        Generation::AmdK7 | Generation::Amd10h => {
            each(4, address::AMD_SELECT, 1, Register::Select);
            each(4, address::AMD_COUNTER, 1, Register::FullCounter);
        }
        Generation::Amd15h | Generation::AmdPerfMonV2 { .. } => {
            each(4, address::AMD_SELECT, 1, Register::Select);
            each(4, address::AMD_COUNTER, 1, Register::FullCounter);
            let step = address::AMD_CORE_STEP;
            each(general, address::AMD_CORE_SELECT, step, Register::Select);
            each(
                general,
                address::AMD_CORE_COUNTER,
                step,
                Register::FullCounter,
            );
            if has_global(generation) {
                each(1, address::AMD_GLOBAL_STATUS, 1, |_| Register::GlobalStatus);
                each(1, address::AMD_GLOBAL_CONTROL, 1, |_| {
                    Register::GlobalControl
                });
                each(1, address::AMD_GLOBAL_CLEAR, 1, |_| Register::GlobalClear);
            }
        }
    }
    registers
}
