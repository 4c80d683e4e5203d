//! Resource usage of a thread or process, the source of every event of this backend.

use crate::Quantity;
use crate::process_counts::ProcessCounts;

/// Resource usage up to a moment, or between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    /// Nanoseconds on a CPU, from the CPU-time clock; for children user plus system time.
    pub(crate) cpu: u64,
    /// Nanoseconds of wall time.
    pub(crate) wall: u64,
    /// Nanoseconds in user mode.
    pub(crate) user: u64,
    /// Nanoseconds in the kernel.
    pub(crate) system: u64,
    /// Page faults served without input or output.
    pub(crate) minor_faults: u64,
    /// Page faults that needed input or output.
    pub(crate) major_faults: u64,
    /// Times the CPU was given up.
    pub(crate) voluntary: u64,
    /// Times the CPU was taken away.
    pub(crate) involuntary: u64,
    /// The peak of resident memory in bytes: not a difference, but the current value.
    pub(crate) peak_memory: u64,
    /// Counts of the kernel, by the CPU's counters.
    pub(crate) counts: ProcessCounts,
}

impl Usage {
    /// Returns the usage since an earlier moment; 0 for values that have decreased.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            wall: self.wall.saturating_sub(earlier.wall),
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
            peak_memory: self.peak_memory,
            counts: self.counts.since(&earlier.counts),
        }
    }

    /// Adds a usage that does not overlap this one; the peak is the higher one.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            cpu: self.cpu.saturating_add(other.cpu),
            wall: self.wall.saturating_add(other.wall),
            user: self.user.saturating_add(other.user),
            system: self.system.saturating_add(other.system),
            minor_faults: self.minor_faults.saturating_add(other.minor_faults),
            major_faults: self.major_faults.saturating_add(other.major_faults),
            voluntary: self.voluntary.saturating_add(other.voluntary),
            involuntary: self.involuntary.saturating_add(other.involuntary),
            peak_memory: self.peak_memory.max(other.peak_memory),
            counts: self.counts.plus(&other.counts),
        }
    }

    /// Returns the value of one event.
    pub(crate) fn value(&self, quantity: Quantity) -> u64 {
        match quantity {
            Quantity::TaskClock => self.cpu,
            Quantity::WallTime => self.wall,
            Quantity::UserTime => self.user,
            Quantity::SystemTime => self.system,
            Quantity::PageFaults => self.minor_faults.saturating_add(self.major_faults),
            Quantity::MinorFaults => self.minor_faults,
            Quantity::MajorFaults => self.major_faults,
            Quantity::ContextSwitches => self.voluntary.saturating_add(self.involuntary),
            Quantity::VoluntarySwitches => self.voluntary,
            Quantity::InvoluntarySwitches => self.involuntary,
            Quantity::PeakMemory => self.peak_memory,
            Quantity::Instructions => self.counts.instructions,
            Quantity::Cycles => self.counts.cycles,
            Quantity::PCoreInstructions => self.counts.p_core_instructions,
            Quantity::PCoreCycles => self.counts.p_core_cycles,
            Quantity::Energy => self.counts.energy,
            Quantity::PCoreEnergy => self.counts.p_core_energy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: Usage = Usage {
        cpu: 1,
        wall: 2,
        user: 3,
        system: 4,
        minor_faults: 5,
        major_faults: 6,
        voluntary: 7,
        involuntary: 8,
        peak_memory: 90,
        counts: ProcessCounts {
            instructions: 9,
            cycles: 10,
            p_core_instructions: 11,
            p_core_cycles: 12,
            energy: 13,
            p_core_energy: 14,
        },
    };
    const DIFFERENCE: Usage = Usage {
        cpu: 10,
        wall: 200,
        user: 3_000,
        system: 40_000,
        minor_faults: 500_000,
        major_faults: 6_000_000,
        voluntary: 70_000_000,
        involuntary: 800_000_000,
        peak_memory: 70,
        counts: ProcessCounts {
            instructions: 71,
            cycles: 72,
            p_core_instructions: 73,
            p_core_cycles: 74,
            energy: 75,
            p_core_energy: 76,
        },
    };

    #[test]
    fn a_sum_less_one_part_is_the_other_and_a_peak_is_no_sum() {
        let later = EARLIER.plus(&DIFFERENCE);
        assert_eq!(later.peak_memory, 90);
        let back = later.since(&EARLIER);
        assert_eq!(
            back,
            Usage {
                peak_memory: 90,
                ..DIFFERENCE
            }
        );
        assert_eq!(EARLIER.since(&later).value(Quantity::PageFaults), 0);
    }

    #[test]
    fn every_event_is_its_own_number() {
        let values: Vec<_> = Quantity::OF_MACOS
            .iter()
            .map(|&q| DIFFERENCE.value(q))
            .collect();
        assert_eq!(
            values,
            [
                10,
                200,
                3_000,
                40_000,
                6_500_000,
                500_000,
                6_000_000,
                870_000_000,
                70_000_000,
                800_000_000,
                70,
                71,
                72,
                73,
                74,
                75,
                76
            ]
        );
    }
}
