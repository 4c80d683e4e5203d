//! AMD: four counters since the K7, six since family 15h, one enable for all since Zen 4.
//!
//! AMD APM volume 2, "Performance Monitoring Counters"; volume 3, CPUID functions 8000_0001 and
//! 8000_0022.

use quipu_hal::{CpuIdentity, CpuModel, Result};

use super::{Bases, Counter, Gate, Global, Layout, cycles, mask};
use crate::allow_list::{self as allow, AllowList, Row};
use crate::{MsrBus, address};

const WIDTH: u8 = 48;

/// Registers since the K7.
const FOUR: Bases = Bases {
    select: address::AMD_SELECT,
    counter: address::AMD_COUNTER,
    writing: address::AMD_COUNTER,
    step: 1,
    full_width: true,
};

/// Registers since family 15h; the first four alias those above.
const CORE: Bases = Bases {
    select: address::AMD_CORE_SELECT,
    counter: address::AMD_CORE_COUNTER,
    writing: address::AMD_CORE_COUNTER,
    step: address::AMD_CORE_STEP,
    full_width: true,
};

/// K7 and K8: events of eight bits.
pub(super) fn k7() -> Layout {
    four(&allow::AMD_K7_SELECTS, allow::SELECT_BITS)
}

/// Events that a single counter miscounts from family 17h on: floating point operations, more than 15
/// of which occur in a cycle, and the event that merges two counters for them (PPR, "Large Increment per
/// Cycle Events"; Linux `amd_is_pair_event_code`).
const LARGE_INCREMENTS: &[u16] = &[0x003, 0xfff];

/// Family 10h on.
pub(super) fn family_10h(model: &CpuModel, bus: &impl MsrBus) -> Result<Layout> {
    let mut layout = by_features(bus)?;
    if matches!(model.identity, CpuIdentity::X86 { family: 0x17.., .. }) {
        for counter in &mut layout.counters {
            counter.barred = LARGE_INCREMENTS;
        }
    }
    Ok(layout)
}

fn by_features(bus: &impl MsrBus) -> Result<Layout> {
    let [_, _, features, _] = bus.cpuid(0x8000_0001, 0)?;
    if features >> 23 & 1 == 0 {
        return Ok(four(&allow::AMD_10H_SELECTS, allow::AMD_SELECT_BITS));
    }
    let [version2, numbers, ..] = bus.cpuid(0x8000_0022, 0)?;
    Ok(if version2 & 1 == 1 {
        match (numbers & 0xf) as u8 {
            0 => core(6, true),
            number => core(number, true),
        }
    } else {
        core(6, false)
    })
}

fn four(selects: &'static Row, bits: u64) -> Layout {
    let counter = |number| Counter::general(number, WIDTH, &FOUR, bits);
    Layout {
        name: format!("AMD, four counters of {WIDTH} bits at {:#x}", FOUR.select),
        gate: Gate::Each,
        counters: (0..4).map(counter).collect(),
        allowed: AllowList::new(&[
            (selects, 4, u64::MAX),
            (&allow::AMD_COUNTERS, 4, mask(WIDTH)),
        ]),
        pulse: cycles(0x76),
    }
}

fn core(number: u8, version2: bool) -> Layout {
    let counter = |n| Counter::general(n, WIDTH, &CORE, allow::AMD_SELECT_BITS);
    let mut rows = vec![
        (&allow::AMD_CORE_SELECTS, number, u64::MAX),
        (&allow::AMD_CORE_COUNTERS, number, mask(WIDTH)),
    ];
    if version2 {
        rows.push((&allow::AMD_GLOBAL_CONTROL, 1, mask(number)));
        rows.push((&allow::AMD_GLOBAL_CLEAR, 1, mask(number)));
    }
    let global = Gate::Global(Global {
        control: address::AMD_GLOBAL_CONTROL,
        status: address::AMD_GLOBAL_STATUS,
        clear: address::AMD_GLOBAL_CLEAR,
    });
    let name = if version2 {
        "AMD PerfMonV2"
    } else {
        "AMD with PerfCtrExtCore"
    };
    Layout {
        name: format!(
            "{name}, {number} counters of {WIDTH} bits at {:#x}",
            CORE.select
        ),
        gate: if version2 { global } else { Gate::Each },
        counters: (0..number).map(counter).collect(),
        allowed: AllowList::new(&rows),
        pulse: cycles(0x76),
    }
}
