//! Function words: their layouts, and checks of words that make no sense.
//!
//! pctr(4) of OpenBSD, "Pentium counters" and "Pentium Pro counters"; `pctrioctl` of
//! `sys/arch/i386/i386/pctr.c` and `sys/arch/amd64/amd64/pctr.c`. The driver refuses very little: a
//! word that counts nothing, or another event than was meant, it accepts silently. [`check`] refuses
//! those too.

use quipu_hal::{CpuIdentity, CpuModel, Encoding, Error, ErrorKind, Result, Scheme, X86Select};

/// The kind of a CPU's counters, which decides the layout of a function word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CounterKind {
    /// Pentium: two counters, 9-bit functions.
    P5 {
        /// True for the events of the Pentium with MMX (models 4 and 8; model 7 is one without).
        mmx: bool,
    },
    /// Pentium Pro to Pentium III: two counters, gated by the enable bit of counter 0.
    P6,
    /// Intel with architectural performance monitoring: two of its counters.
    Core,
    /// AMD since the K7: four counters.
    Amd,
}

/// The bits the driver refuses in a P6 or later word: pin control, interrupt, any thread.
pub const REFUSED: u32 = 0x0038_0000;
/// The first word the driver refuses on a Pentium.
pub const P5_LIMIT: u32 = 0x200;

const P5_LEVELS: u32 = 0x40 | 0x80;
const LEVELS: u32 = (X86Select::USER | X86Select::KERNEL) as u32;
/// The enable bit of a P6 or later word (EN).
pub const ENABLE: u32 = X86Select::ENABLE as u32;
/// The unit mask bits of a P6 event that wants cache states (MESI).
pub const MESI: u32 = 0x0f00;

/// Events of the Pentium, as a set of bits: pctr(4), "Pentium counters".
const P5_EVENTS: u64 = {
    let reserved = 1 << 0x10 | 1 << 0x11 | 1 << 0x20 | 1 << 0x21;
    ((1 << 0x2a) - 1) & !reserved
};
/// Those the Pentium with MMX has besides: 0x2a to 0x3b (Intel SDM volume 3, "Pentium Processor
/// Performance-Monitoring Events").
const P5_MMX_EVENTS: u64 = (1 << 0x3c) - (1 << 0x2a);

/// Events of the P6 family: pctr(4), "Pentium Pro counters", and those of the Pentium II, III and M
/// (Intel SDM volume 3, "P6 Family Processor Performance-Monitoring Events" and "Pentium M").
const P6_EVENTS: [u64; 4] = event_set(&[
    0x03, 0x04, 0x05, 0x06, 0x07, 0x10, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26,
    0x27, 0x28, 0x29, 0x2a, 0x2e, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x4b, 0x58, 0x59, 0x60, 0x61,
    0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f, 0x70, 0x79,
    0x7a, 0x7b, 0x7e, 0x80, 0x81, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f,
    0x90, 0x91, 0x92, 0x93, 0x94, 0xa2, 0xb0, 0xb1, 0xb2, 0xb3, 0xc0, 0xc1, 0xc2, 0xc4, 0xc5, 0xc6,
    0xc7, 0xc8, 0xc9, 0xca, 0xcc, 0xcd, 0xce, 0xd0, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9,
    0xda, 0xe0, 0xe2, 0xe4, 0xe6, 0xf0, 0xf8,
]);
/// Those that only counter 0 can count.
const P6_COUNTER_0: [u64; 4] = event_set(&[0x10, 0x14, 0xc1]);
/// Those that only counter 1 can count.
const P6_COUNTER_1: [u64; 4] = event_set(&[0x11, 0x12, 0x13]);
/// Those that count nothing without cache states in the unit mask.
const P6_MESI: [u64; 4] = event_set(&[0x28, 0x29, 0x2a, 0x2e]);

const fn event_set(events: &[u8]) -> [u64; 4] {
    let mut set = [0; 4];
    let mut i = 0;
    while i < events.len() {
        set[(events[i] >> 6) as usize] |= 1 << (events[i] & 63);
        i += 1;
    }
    set
}

const fn contains(set: &[u64; 4], event: u8) -> bool {
    set[(event >> 6) as usize] >> (event & 63) & 1 == 1
}

impl CounterKind {
    /// The kind of a CPU's counters; `None` when pctr(4) knows none on it.
    pub fn of(cpu: &CpuModel) -> Option<Self> {
        match cpu.scheme {
            Scheme::P5 => Some(Self::P5 {
                mmx: matches!(cpu.identity, CpuIdentity::X86 { model: 4 | 8, .. }),
            }),
            Scheme::P6 => Some(Self::P6),
            Scheme::IntelArchitectural => Some(Self::Core),
            Scheme::AmdK7 | Scheme::Amd10h => Some(Self::Amd),
            _ => None,
        }
    }

    /// The bits of a function word that belong to a counter's function. A Pentium shows others as
    /// they stand in its CESR.
    pub const fn word_mask(self) -> u32 {
        match self {
            Self::P5 { .. } => P5_LIMIT - 1,
            _ => u32::MAX,
        }
    }

    /// The word that makes a counter count an encoding, with the enable bit set where there is one.
    ///
    /// # Errors
    /// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) when no word of pctr(4) can say it.
    pub fn word(self, encoding: &Encoding) -> Result<u32> {
        let refuse = |reason: String| {
            Err(
                Error::new(ErrorKind::UnsupportedEvent, "count it with pctr(4)")
                    .with_reason(reason),
            )
        };
        match (self, encoding) {
            (Self::P5 { .. }, Encoding::P5(function)) => Ok(function.0.into()),
            (Self::P6 | Self::Core | Self::Amd, Encoding::X86(select)) => {
                if let Some(register) = select.extra.first() {
                    return refuse(format!(
                        "it needs register {:#x} set, which the driver cannot reach",
                        register.address
                    ));
                }
                match u32::try_from(select.select) {
                    Ok(word) => Ok(word | ENABLE),
                    Err(_) => refuse(format!(
                        "event {:#x} has more bits than the 8 of a function",
                        select.event()
                    )),
                }
            }
            _ => refuse("it is encoded for other counters than this CPU has".to_owned()),
        }
    }
}

/// Returns true if an event counts nothing without cache states (MESI) in its unit mask. This is known
/// of the P6 only.
pub const fn needs_cache_states(kind: CounterKind, event: u8) -> bool {
    matches!(kind, CounterKind::P6) && contains(&P6_MESI, event)
}

/// Refuses a function word that the driver would refuse, and one that it takes though it cannot
/// count what was meant: unknown events, no privilege level, no enable bit, an event on a counter
/// that cannot count it, a cache event without cache states. 0, which stops a counter, is a
/// word too.
///
/// Which events there are is known of the Pentium and the P6. The enable bit of counter 0, which gates
/// counter 1 on a P6, is seen in `counter_0`, its function now.
///
/// # Errors
/// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) with the reason.
pub fn check(kind: CounterKind, counter: u8, word: u32, counter_0: u32) -> Result<()> {
    match refusal(kind, counter, word, counter_0) {
        None => Ok(()),
        Some(reason) => Err(Error::new(
            ErrorKind::InvalidConfiguration,
            format!("set counter {counter} to {word:#x}"),
        )
        .with_reason(reason)),
    }
}

fn refusal(kind: CounterKind, counter: u8, word: u32, counter_0: u32) -> Option<&'static str> {
    if word == 0 {
        return None;
    }
    let event = (word & 0xff) as u8;
    match kind {
        CounterKind::P5 { mmx } => {
            let events = P5_EVENTS | if mmx { P5_MMX_EVENTS } else { 0 };
            if word >= P5_LIMIT {
                Some("a Pentium's function has 9 bits")
            } else if word & P5_LEVELS == 0 {
                Some("the word selects neither user nor kernel mode")
            } else if events >> (word & 0x3f) & 1 == 0 {
                Some("the CPU has no such event")
            } else {
                None
            }
        }
        _ if word & REFUSED != 0 => {
            Some("the driver refuses pin control, interrupts and counting for all threads")
        }
        _ if word & LEVELS == 0 => Some("the word selects neither user nor kernel mode"),
        CounterKind::P6 => {
            let gate = if counter == 0 { word } else { counter_0 };
            if gate & ENABLE == 0 {
                Some("the enable bit of counter 0 gates both counters, and is not set")
            } else if !contains(&P6_EVENTS, event) {
                Some("the CPU has no such event")
            } else if counter != 0 && contains(&P6_COUNTER_0, event) {
                Some("only counter 0 can count this event")
            } else if counter != 1 && contains(&P6_COUNTER_1, event) {
                Some("only counter 1 can count this event")
            } else if word & MESI == 0 && needs_cache_states(kind, event) {
                Some(
                    "this event counts accesses by cache state, and no state (M, E, S, I) is asked for",
                )
            } else {
                None
            }
        }
        CounterKind::Core | CounterKind::Amd if word & ENABLE == 0 => {
            Some("the enable bit is not set, so it counts nothing")
        }
        CounterKind::Core | CounterKind::Amd => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_hal::{ExtraRegister, P5Function};

    const P5: CounterKind = CounterKind::P5 { mmx: false };
    const P6: CounterKind = CounterKind::P6;
    /// EN, user and kernel.
    const ON: u32 = 0x0043_0000;

    #[test]
    fn models_4_and_8_of_the_pentium_have_mmx() {
        let kind = |model| {
            CounterKind::of(&CpuModel::new(
                CpuIdentity::X86 {
                    vendor: "GenuineIntel".to_owned(),
                    family: 5,
                    model,
                    stepping: 0,
                },
                Scheme::P5,
                Vec::new(),
            ))
        };
        for (model, mmx) in [(1, false), (2, false), (4, true), (7, false), (8, true)] {
            assert_eq!(kind(model), Some(CounterKind::P5 { mmx }), "{model}");
        }
    }

    #[test]
    fn what_the_driver_refuses_is_refused_before_it() {
        for word in [0x200, 0x2c0, 0x1_0000, u32::MAX] {
            assert!(check(P5, 0, word, 0).is_err(), "{word:#x}");
        }
        for bit in [0x8_0000, 0x10_0000, 0x20_0000] {
            for kind in [P6, CounterKind::Core, CounterKind::Amd] {
                assert!(check(kind, 0, ON | bit | 0xc0, ON).is_err(), "{bit:#x}");
            }
        }
    }

    #[test]
    fn what_the_driver_takes_wrongly_is_refused_too() {
        let cases = [
            (P5, 0, 0xc0 | 0x10, 0, "no such event"),
            (P5, 1, 0xc0 | 0x2a, 0, "no such event"),
            (P5, 0, 0x16, 0, "neither user nor kernel mode"),
            (P5, 0, 0x116, 0, "neither user nor kernel mode"),
            (P6, 0, ON | 0x02, 0, "no such event"),
            (P6, 0, 0x0040_00c0, 0, "neither user nor kernel mode"),
            (P6, 0, 0x0003_00c0, 0, "enable bit of counter 0"),
            (P6, 1, ON | 0xc0, 0x0003_00c0, "enable bit of counter 0"),
            (P6, 1, ON | 0xc1, ON, "only counter 0"),
            (P6, 0, ON | 0x13, ON, "only counter 1"),
            (P6, 0, ON | 0x2029, ON, "no state"),
            (CounterKind::Core, 0, 0x0003_003c, 0, "enable bit"),
            (CounterKind::Amd, 3, 0x0003_0076, ON, "enable bit"),
        ];
        for (kind, counter, word, counter_0, reason) in cases {
            let refused = check(kind, counter, word, counter_0).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidConfiguration);
            assert!(refused.to_string().contains(reason), "{refused}");
        }
    }

    #[test]
    fn what_makes_sense_is_taken() {
        let taken = [
            (P5, 1, 0x1d6, 0),
            (CounterKind::P5 { mmx: true }, 1, 0xc0 | 0x2a, 0),
            (P6, 0, ON | 0xc1, 0),
            (P6, 1, 0x0003_0013, ENABLE),
            (P6, 1, ON | 0x0129, ON),
            (P6, 0, 0xff87_0000 | ENABLE | 0x2062, 0),
            (CounterKind::Core, 1, ON | 0x003c, 0),
            (CounterKind::Amd, 3, ON, 0),
        ];
        for (kind, counter, word, counter_0) in taken {
            check(kind, counter, word, counter_0).unwrap();
            check(kind, counter, 0, counter_0).unwrap();
        }
    }

    #[test]
    fn words_carry_the_enable_bit_and_nothing_that_does_not_fit() {
        let branches = X86Select::new(0xc4, 0).with_flags(X86Select::USER);
        let word = |kind: CounterKind, encoding| kind.word(&encoding);
        assert_eq!(word(P6, Encoding::X86(branches.clone())), Ok(0x0041_00c4));
        let reads = P5Function::new(0x28).with_flags(P5Function::KERNEL);
        assert_eq!(word(P5, Encoding::P5(reads)), Ok(0x68));

        let offcore = X86Select {
            extra: vec![ExtraRegister {
                address: 0x1a6,
                value: 1,
            }],
            ..branches.clone()
        };
        let wide = X86Select::new(0x1c7, 0).with_flags(X86Select::USER);
        for (kind, encoding, reason) in [
            (CounterKind::Core, Encoding::X86(offcore), "register 0x1a6"),
            (CounterKind::Amd, Encoding::X86(wide), "event 0x1c7"),
            (P5, Encoding::X86(branches), "other counters"),
            (P6, Encoding::P5(reads), "other counters"),
        ] {
            let refused = word(kind, encoding).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::UnsupportedEvent);
            assert!(refused.to_string().contains(reason), "{refused}");
        }
    }
}
