//! Counts of the CPU's counters that macOS keeps for a process, up to date at each switch and each entry of the kernel.

/// Counts of one process since it was forked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ProcessCounts {
    /// Instructions, in user mode and in the kernel.
    pub(crate) instructions: u64,
    /// Cycles of the CPUs it ran on.
    pub(crate) cycles: u64,
    /// The instructions on performance cores.
    pub(crate) p_core_instructions: u64,
    /// The cycles of performance cores.
    pub(crate) p_core_cycles: u64,
    /// Nanojoules.
    pub(crate) energy: u64,
    /// The nanojoules of performance cores.
    pub(crate) p_core_energy: u64,
}

/// A look at a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) counts: ProcessCounts,
    /// True if these are its last ones.
    pub(crate) has_ended: bool,
    /// True if it has waited for children, of which the kernel adds up times and no counts.
    pub(crate) had_children: bool,
}

impl ProcessCounts {
    /// Returns the counts since an earlier moment; 0 for those that have decreased.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        self.with_each(earlier, u64::saturating_sub)
    }

    /// Adds those of another span.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.with_each(other, u64::saturating_add)
    }

    fn with_each(&self, other: &Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            instructions: combine(self.instructions, other.instructions),
            cycles: combine(self.cycles, other.cycles),
            p_core_instructions: combine(self.p_core_instructions, other.p_core_instructions),
            p_core_cycles: combine(self.p_core_cycles, other.p_core_cycles),
            energy: combine(self.energy, other.energy),
            p_core_energy: combine(self.p_core_energy, other.p_core_energy),
        }
    }
}

cfg_if::cfg_if! {
    if #[cfg(target_os = "macos")] {
        mod macos;
        pub(crate) use macos::{can_count, look};
    } else {
        use quipu_hal::{Error, ErrorKind, Result};

        use crate::Quantity;

        /// Returns the reason why a quantity is not counted here.
        pub(crate) fn can_count(_: Quantity) -> Result<(), &'static str> {
            Err("no other kernel than that of macOS reports it")
        }

        /// Refuses it: no other kernel than that of macOS reports these counts.
        pub(crate) fn look(_: i32) -> Result<Look> {
            Err(Error::new(ErrorKind::UnsupportedFeature, "read what the kernel has counted of a process"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_less_one_part_is_the_other() {
        let part = |n: u64| ProcessCounts {
            instructions: n,
            cycles: 10 * n,
            p_core_instructions: 100 * n,
            p_core_cycles: 1_000 * n,
            energy: 10_000 * n,
            p_core_energy: 100_000 * n,
        };
        assert_eq!(part(3).plus(&part(4)), part(7));
        assert_eq!(part(7).since(&part(4)), part(3));
        assert_eq!(part(4).since(&part(7)), ProcessCounts::default());
    }
}
