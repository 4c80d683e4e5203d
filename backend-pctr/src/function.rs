//! Function words: their layouts, and checks of what no event can be counted by.
//!
//! pctr(4) of OpenBSD, "Pentium counters" and "Pentium Pro counters"; `pctrioctl` of
//! `sys/arch/i386/i386/pctr.c` and `sys/arch/amd64/amd64/pctr.c`. The driver refuses very little.

use quipu_hal::{CpuModel, Encoding, Error, ErrorKind, Result, Scheme, X86Select};

/// The kind of a CPU's counters, which decides the layout of a function word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CounterKind {
    /// Pentium: two counters, 9-bit functions.
    P5,
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
const NO_LEVEL: &str = "the word selects neither user nor kernel mode";
impl CounterKind {
    /// Returns the kind of a CPU's counters; `None` when pctr(4) knows none on it.
    pub fn of(cpu: &CpuModel) -> Option<Self> {
        match cpu.scheme {
            Scheme::P5 => Some(Self::P5),
            Scheme::P6 => Some(Self::P6),
            Scheme::IntelArchitectural => Some(Self::Core),
            Scheme::AmdK7 | Scheme::Amd10h => Some(Self::Amd),
            _ => None,
        }
    }

    /// Returns the bits of a function word that belong to a counter's function. A Pentium shows others as
    /// they stand in its CESR.
    pub const fn word_mask(self) -> u32 {
        match self {
            Self::P5 => P5_LIMIT - 1,
            _ => u32::MAX,
        }
    }

    /// Returns the word that makes a counter count an encoding, with the enable bit set where there is one.
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
            (Self::P5, Encoding::P5(function)) => Ok(function.0.into()),
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

/// Refuses a function word that the driver would refuse, and one that it takes though nothing is counted
/// by it whatever the event: without a privilege level or an enable bit. 0, which stops a counter, is a
/// word too.
///
/// Which events there are, and which counter counts them, is the event map's to know
/// ([`EventMap::slots_of`](quipu_hal::EventMap::slots_of)). The enable bit of counter 0, which gates
/// counter 1 on a P6, is seen in `counter_0`, its function now.
///
/// # Errors
/// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) with the reason.
pub fn check(kind: CounterKind, counter: u8, word: u32, counter_0: u32) -> Result<()> {
    let gate = match kind {
        CounterKind::P6 if counter != 0 => counter_0,
        _ => word,
    };
    let reason = match kind {
        _ if word == 0 => return Ok(()),
        CounterKind::P5 if word >= P5_LIMIT => "a Pentium's function has 9 bits",
        CounterKind::P5 if word & P5_LEVELS != 0 => return Ok(()),
        CounterKind::P5 => NO_LEVEL,
        _ if word & REFUSED != 0 => {
            "the driver refuses pin control, interrupts and counting for all threads"
        }
        _ if word & LEVELS == 0 => NO_LEVEL,
        _ if gate & ENABLE != 0 => return Ok(()),
        CounterKind::P6 => "the enable bit of counter 0 gates both counters, and is not set",
        _ => "the enable bit is not set, so it counts nothing",
    };
    let attempted = format!("set counter {counter} to {word:#x}");
    Err(Error::new(ErrorKind::InvalidConfiguration, attempted).with_reason(reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_hal::{ExtraRegister, P5Function};

    const P5: CounterKind = CounterKind::P5;
    const P6: CounterKind = CounterKind::P6;
    /// EN, user and kernel.
    const ON: u32 = 0x0043_0000;

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
            (P5, 0, 0x16, 0, "neither user nor kernel mode"),
            (P5, 0, 0x116, 0, "neither user nor kernel mode"),
            (P6, 0, 0x0040_00c0, 0, "neither user nor kernel mode"),
            (P6, 0, 0x0003_00c0, 0, "enable bit of counter 0"),
            (P6, 1, ON | 0xc0, 0x0003_00c0, "enable bit of counter 0"),
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
