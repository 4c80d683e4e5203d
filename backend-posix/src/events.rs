//! The events of this backend, their names and what is known of them.

use quipu_hal::{Event, EventInfo, Filter, Hardware, Software};

/// An event this backend can count.
///
/// Those that have no generalized event go by a name of their own. `user_time`, `system_time` and
/// `duration_time` are the names `perf` has for the same (its tool events); a `-` does for the `_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Quantity {
    /// `task-clock`: nanoseconds on a CPU (clock_gettime(2), `CLOCK_THREAD_CPUTIME_ID` and
    /// `CLOCK_PROCESS_CPUTIME_ID`; of a child `ru_utime` + `ru_stime`).
    TaskClock,
    /// `duration_time`: nanoseconds of wall time while enabled (the monotonic clock).
    WallTime,
    /// `user_time`: nanoseconds in user mode (`ru_utime`).
    UserTime,
    /// `system_time`: nanoseconds in the kernel (`ru_stime`).
    SystemTime,
    /// `page-faults`: minor and major ones.
    PageFaults,
    /// `minor-faults`: served without input or output (`ru_minflt`).
    MinorFaults,
    /// `major-faults`: needed input or output (`ru_majflt`).
    MajorFaults,
    /// `context-switches`: voluntary and involuntary ones.
    ContextSwitches,
    /// `voluntary-switches`: the CPU was given up, mostly to wait (`ru_nvcsw`).
    VoluntarySwitches,
    /// `involuntary-switches`: the CPU was taken away (`ru_nivcsw`).
    InvoluntarySwitches,
    /// `peak-memory`: the most bytes resident at once since the process began (`ru_maxrss`), a gauge.
    /// On Linux a child begins with what its parent had of its own at the fork.
    PeakMemory,
    /// `instructions`, of macOS 13 and later as those below: in user mode and the kernel (proc_pid_rusage(2),
    /// `ri_instructions`).
    Instructions,
    /// `cycles`: of the CPUs it ran on (`ri_cycles`).
    Cycles,
    /// `p-core-instructions`: those of `instructions` on performance cores (`ri_pinstructions`).
    PCoreInstructions,
    /// `p-core-cycles`: those of `cycles` on performance cores (`ri_pcycles`).
    PCoreCycles,
    /// `energy`: nanojoules (`ri_energy_nj`).
    Energy,
    /// `p-core-energy`: those of `energy` on performance cores (`ri_penergy_nj`).
    PCoreEnergy,
}

impl Quantity {
    /// Every event of this backend on this system.
    pub const ALL: &'static [Self] = match cfg!(target_os = "macos") {
        true => Self::OF_MACOS,
        false => Self::OF_MACOS.split_at(Self::OF_EVERY_UNIX).0,
    };

    /// The number of those at the beginning that are not of macOS alone.
    const OF_EVERY_UNIX: usize = 11;

    pub(crate) const OF_MACOS: &'static [Self] = &[
        Self::TaskClock,
        Self::WallTime,
        Self::UserTime,
        Self::SystemTime,
        Self::PageFaults,
        Self::MinorFaults,
        Self::MajorFaults,
        Self::ContextSwitches,
        Self::VoluntarySwitches,
        Self::InvoluntarySwitches,
        Self::PeakMemory,
        Self::Instructions,
        Self::Cycles,
        Self::PCoreInstructions,
        Self::PCoreCycles,
        Self::Energy,
        Self::PCoreEnergy,
    ];

    /// Returns the name it is asked for by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TaskClock => Software::TaskClock.name(),
            Self::WallTime => "duration_time",
            Self::UserTime => "user_time",
            Self::SystemTime => "system_time",
            Self::PageFaults => Software::PageFaults.name(),
            Self::MinorFaults => Software::MinorFaults.name(),
            Self::MajorFaults => Software::MajorFaults.name(),
            Self::ContextSwitches => Software::ContextSwitches.name(),
            Self::VoluntarySwitches => "voluntary-switches",
            Self::InvoluntarySwitches => "involuntary-switches",
            Self::PeakMemory => "peak-memory",
            Self::Instructions => Hardware::Instructions.name(),
            Self::Cycles => Hardware::Cycles.name(),
            Self::PCoreInstructions => "p-core-instructions",
            Self::PCoreCycles => "p-core-cycles",
            Self::Energy => "energy",
            Self::PCoreEnergy => "p-core-energy",
        }
    }

    /// Returns the event to ask for: a generalized one where there is one, else a name.
    pub fn event(self) -> Event {
        match self {
            Self::TaskClock => Software::TaskClock.into(),
            Self::PageFaults => Software::PageFaults.into(),
            Self::MinorFaults => Software::MinorFaults.into(),
            Self::MajorFaults => Software::MajorFaults.into(),
            Self::ContextSwitches => Software::ContextSwitches.into(),
            Self::Instructions => Hardware::Instructions.into(),
            Self::Cycles => Hardware::Cycles.into(),
            other => Event::Named(other.name().to_owned()),
        }
    }

    /// Returns the quantity an event means, if it is one of this backend's.
    pub fn of(event: &Event) -> Option<Self> {
        match event {
            Event::Named(name) => Self::ALL
                .iter()
                .copied()
                .find(|q| same_name(q.name(), name)),
            Event::Software(_) | Event::Hardware(_) => {
                Self::ALL.iter().copied().find(|q| q.event() == *event)
            }
            _ => None,
        }
    }

    /// Returns its description. None of these can be split by privilege level, so no filter is honoured.
    pub fn info(self) -> EventInfo {
        let info = EventInfo::counter(self.name()).honouring(Filter::empty());
        match self {
            Self::TaskClock | Self::WallTime => info.with_unit("ns"),
            Self::UserTime => info.with_unit("ns").occurring_in(Filter::USER),
            Self::SystemTime => info.with_unit("ns").occurring_in(Filter::KERNEL),
            Self::ContextSwitches | Self::VoluntarySwitches | Self::InvoluntarySwitches => {
                info.occurring_in(Filter::KERNEL)
            }
            Self::PeakMemory => info.with_unit("bytes").as_gauge(),
            Self::Energy | Self::PCoreEnergy => info.with_unit("nJ"),
            Self::PageFaults
            | Self::MinorFaults
            | Self::MajorFaults
            | Self::Instructions
            | Self::Cycles
            | Self::PCoreInstructions
            | Self::PCoreCycles => info,
        }
    }

    /// Returns true if its value comes from getrusage(2) rather than from a clock or the CPU's counters.
    pub(crate) const fn is_from_rusage(self) -> bool {
        !matches!(self, Self::TaskClock | Self::WallTime) && !self.is_of_counters()
    }

    /// Returns true if the kernel counts it with the CPU's counters.
    pub(crate) const fn is_of_counters(self) -> bool {
        matches!(self, Self::Instructions | Self::Cycles)
            || self.is_energy()
            || self.is_of_p_cores()
    }

    /// Returns true if it is an energy.
    pub(crate) const fn is_energy(self) -> bool {
        matches!(self, Self::Energy | Self::PCoreEnergy)
    }

    /// Returns true if it is of performance cores alone.
    pub(crate) const fn is_of_p_cores(self) -> bool {
        matches!(
            self,
            Self::PCoreInstructions | Self::PCoreCycles | Self::PCoreEnergy
        )
    }

    /// Returns true for `ru_utime` and `ru_stime`, which some systems sample.
    pub(crate) const fn is_sampled_time(self) -> bool {
        matches!(self, Self::UserTime | Self::SystemTime)
    }

    /// Returns true if it is a time, to which no filter applies.
    pub(crate) const fn is_clock(self) -> bool {
        matches!(self, Self::TaskClock | Self::WallTime)
    }
}

/// Returns true if two names are equal, `-` and `_` taken as equal.
fn same_name(a: &str, b: &str) -> bool {
    let dashed = |name: &str| name.replace('_', "-");
    dashed(a) == dashed(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quantity_is_found_by_its_event_and_by_its_name() {
        for &quantity in Quantity::ALL {
            assert_eq!(Quantity::of(&quantity.event()), Some(quantity));
            let named = Event::Named(quantity.name().replace('_', "-"));
            assert_eq!(Quantity::of(&named), Some(quantity));
        }
    }

    #[test]
    fn others_are_not_taken_for_one() {
        for event in Software::ALL.iter().copied().map(Event::from) {
            let known = Quantity::of(&event).map(Quantity::event);
            assert!(known.is_none() || known == Some(event));
        }
        assert_eq!(Quantity::of(&Software::CpuMigrations.into()), None);
        assert_eq!(Quantity::of(&Event::Named("user".to_owned())), None);
        assert_eq!(Quantity::of(&Hardware::BranchMisses.into()), None);
    }
}
