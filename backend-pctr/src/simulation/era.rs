//! Drivers and CPUs, and which counters the one supports of the other.

use crate::abi::Layout;
use crate::device::{Arch, SetScope};
use crate::function::CounterKind;

/// A time in the life of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Era {
    /// i386, 1996: revisions to 1.5, which say `EINVAL` where later ones say `ENODEV`.
    I386Of1996,
    /// i386, 1998 to 2007: revisions 1.12 to 1.19, of the man page of 2003.
    I386Of2003,
    /// i386, 2008: revision 1.26, with AMD's counters and the current layout.
    I386Of2008,
    /// i386, 2023: revision 1.31, which has lost the Pentium and the P6.
    I386Of2023,
    /// amd64, 2007: revision 1.4.
    Amd64Of2007,
    /// amd64, 2016: revision 1.7.
    Amd64Of2016,
    /// amd64, since 2019: revisions 1.9 and 1.10, which set all CPUs, and nothing that is set already.
    Amd64Of2019,
}

/// A CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Processor {
    /// Pentium.
    P5,
    /// Pentium Pro to Pentium III.
    P6,
    /// Core 2: architectural performance monitoring, counters of 40 bits.
    Core,
    /// Skylake: as the Core 2, with counters of 48 bits.
    Skylake,
    /// Pentium 4: it has counters that the driver knows nothing of. Some kernels take it for a CPU with
    /// architectural ones, since it answers the CPUID leaf of those, which it does not have, with
    /// another; setting a function ends such a kernel.
    P4,
    /// AMD Athlon 64 (K8), as the K7 before it: four counters of 48 bits.
    K8,
    /// AMD family 10h.
    K10,
    /// AMD Zen 3.
    Zen,
    /// A CPU with a time stamp counter and no counters the driver knows: VIA, Cyrix, AMD K6.
    TimeStampOnly,
    /// A 486: nothing.
    None,
}

impl Era {
    /// Every era, in order of time for each machine.
    pub const ALL: &'static [Self] = &[
        Self::I386Of1996,
        Self::I386Of2003,
        Self::I386Of2008,
        Self::I386Of2023,
        Self::Amd64Of2007,
        Self::Amd64Of2016,
        Self::Amd64Of2019,
    ];

    /// Returns its name: the machine and a year.
    pub const fn name(self) -> &'static str {
        match self {
            Self::I386Of1996 => "i386-1996",
            Self::I386Of2003 => "i386-2003",
            Self::I386Of2008 => "i386-2008",
            Self::I386Of2023 => "i386-2023",
            Self::Amd64Of2007 => "amd64-2007",
            Self::Amd64Of2016 => "amd64-2016",
            Self::Amd64Of2019 => "amd64-2019",
        }
    }

    /// Returns the machine that the kernel is for.
    pub const fn arch(self) -> Arch {
        match self {
            Self::I386Of1996 | Self::I386Of2003 | Self::I386Of2008 | Self::I386Of2023 => Arch::I386,
            Self::Amd64Of2007 | Self::Amd64Of2016 | Self::Amd64Of2019 => Arch::Amd64,
        }
    }

    /// Returns the layout that it reads into.
    pub const fn layout(self) -> Layout {
        match self {
            Self::I386Of1996 | Self::I386Of2003 => Layout::Legacy,
            _ => Layout::Current,
        }
    }

    /// Returns the CPUs on which it sets a function.
    pub const fn scope(self) -> SetScope {
        match self {
            Self::Amd64Of2019 => SetScope::AllCpus,
            _ => SetScope::ThisCpu,
        }
    }

    /// Returns the bits of a counter that it shows: `rdpmc` is masked to 40 bits on i386 and 56 on amd64.
    pub(crate) const fn shown(self) -> u64 {
        match self.arch() {
            Arch::I386 => (1 << 40) - 1,
            Arch::Amd64 => (1 << 56) - 1,
        }
    }

    /// Returns the number of set requests that it implements.
    pub(crate) const fn set_requests(self) -> usize {
        match self.layout() {
            Layout::Legacy => 2,
            Layout::Current => 4,
        }
    }

    /// Returns the errno for setting a function on a CPU without counters.
    pub(crate) const fn no_counters(self) -> i32 {
        match self {
            Self::I386Of1996 => libc::EINVAL,
            _ => libc::ENODEV,
        }
    }

    /// Returns the number of counters that it supports of a CPU.
    pub const fn counters(self, processor: Processor) -> usize {
        match (self, processor) {
            (
                Self::I386Of1996 | Self::I386Of2003 | Self::I386Of2008,
                Processor::P5 | Processor::P6,
            )
            | (_, Processor::Core | Processor::Skylake)
            | (
                Self::I386Of2008 | Self::Amd64Of2007 | Self::Amd64Of2016 | Self::Amd64Of2019,
                Processor::P4,
            ) => 2,
            (Self::I386Of1996 | Self::I386Of2003, _) => 0,
            (_, Processor::K8 | Processor::K10 | Processor::Zen) => 4,
            _ => 0,
        }
    }

    /// Returns true if a kernel of the era runs on a CPU at all.
    pub const fn runs_on(self, processor: Processor) -> bool {
        match self.arch() {
            Arch::I386 => true,
            Arch::Amd64 => !matches!(processor, Processor::P5 | Processor::P6 | Processor::None),
        }
    }

    /// Returns every era with every CPU that it runs on.
    pub fn machines() -> impl Iterator<Item = (Self, Processor)> {
        Self::ALL.iter().flat_map(|&era| {
            Processor::ALL
                .iter()
                .filter(move |processor| era.runs_on(**processor))
                .map(move |&processor| (era, processor))
        })
    }
}

/// Parses an era and a CPU that its kernels run on: `i386-2003:p6`.
///
/// # Errors
/// The names to choose from, in words.
pub fn parse_machine(text: &str) -> Result<(Era, Processor), String> {
    let (era, processor) = text.split_once(':').ok_or("an era, a colon and a CPU")?;
    let eras: Vec<_> = Era::ALL.iter().map(|e| e.name()).collect();
    let processors: Vec<_> = Processor::ALL.iter().map(|p| p.name()).collect();
    let era = *Era::ALL
        .iter()
        .find(|e| e.name() == era)
        .ok_or_else(|| format!("the eras are {}", eras.join(", ")))?;
    let processor = *Processor::ALL
        .iter()
        .find(|p| p.name() == processor)
        .ok_or_else(|| format!("the CPUs are {}", processors.join(", ")))?;
    if era.runs_on(processor) {
        Ok((era, processor))
    } else {
        let (era, processor) = (era.name(), processor.name());
        Err(format!("a kernel of {era} does not run on {processor}"))
    }
}

impl Processor {
    /// Every CPU.
    pub const ALL: &'static [Self] = &[
        Self::P5,
        Self::P6,
        Self::Core,
        Self::Skylake,
        Self::P4,
        Self::K8,
        Self::K10,
        Self::Zen,
        Self::TimeStampOnly,
        Self::None,
    ];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P5 => "p5",
            Self::P6 => "p6",
            Self::Core => "core",
            Self::Skylake => "skylake",
            Self::P4 => "p4",
            Self::K8 => "k8",
            Self::K10 => "k10",
            Self::Zen => "zen",
            Self::TimeStampOnly => "tsc",
            Self::None => "none",
        }
    }

    /// Returns the width of its counters in bits.
    pub const fn width(self) -> u8 {
        match self {
            Self::P5 | Self::P6 | Self::Core | Self::P4 => 40,
            _ => 48,
        }
    }

    /// Returns the kind of its counters; `None` without any that the driver knows.
    pub const fn kind(self) -> Option<CounterKind> {
        match self {
            Self::P5 => Some(CounterKind::P5),
            Self::P6 => Some(CounterKind::P6),
            Self::Core | Self::Skylake => Some(CounterKind::Core),
            Self::K8 | Self::K10 | Self::Zen => Some(CounterKind::Amd),
            Self::P4 | Self::TimeStampOnly | Self::None => None,
        }
    }

    /// Returns vendor, family and model, as CPUID has them; a 486 has no CPUID.
    pub const fn identity(self) -> Option<(&'static str, u16, u16)> {
        match self {
            Self::P5 => Some(("GenuineIntel", 5, 2)),
            Self::P6 => Some(("GenuineIntel", 6, 7)),
            Self::Core => Some(("GenuineIntel", 6, 15)),
            Self::Skylake => Some(("GenuineIntel", 6, 0x5e)),
            Self::P4 => Some(("GenuineIntel", 15, 4)),
            Self::K8 => Some(("AuthenticAMD", 15, 4)),
            Self::K10 => Some(("AuthenticAMD", 0x10, 4)),
            Self::Zen => Some(("AuthenticAMD", 0x19, 0x21)),
            Self::TimeStampOnly => Some(("CentaurHauls", 6, 9)),
            Self::None => None,
        }
    }

    pub(crate) const fn has_time_stamp(self) -> bool {
        !matches!(self, Self::None)
    }
}
