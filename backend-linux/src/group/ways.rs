//! The ways in which a Linux group is read: what is frequent has code of its own.

use quipu_hal::{ReadBuf, Result};

use super::LinuxGroup;
use crate::kernel_group::{KernelGroup, ReadPlan, take_exact};

/// The code for each kind of read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ways {
    pub(super) read: Read,
    /// Reads values alone; the time that it returns means nothing.
    pub(super) exact: ReadExact,
    /// Reads values alone, and returns their time.
    pub(super) exact_timed: ReadExact,
}

type Read = fn(&mut LinuxGroup, &mut ReadBuf) -> Result<()>;
type ReadExact = fn(&mut LinuxGroup, &mut [u64]) -> Option<u64>;

impl Ways {
    /// The ways that do for any group. They find out which are best, and what values are possible.
    pub(super) const ANY: Self = Self {
        read: LinuxGroup::read_parts,
        exact: LinuxGroup::exact_parts,
        exact_timed: LinuxGroup::exact_parts,
    };
}

impl LinuxGroup {
    fn read_counter(&mut self, out: &mut ReadBuf) -> Result<()> {
        if let Some(group) = self.kernel_groups.only()
            && let Some(readings) = out.shared_readings(&self.parts)
            && group.try_counter(readings)
        {
            return Ok(());
        }
        self.read_otherwise(out)
    }

    fn read_snapshot(&mut self, out: &mut ReadBuf) -> Result<()> {
        if let Some(group) = self.kernel_groups.only()
            && let Some(readings) = out.shared_readings(&self.parts)
            && group.try_snapshot(&mut self.words, readings)
        {
            return Ok(());
        }
        self.read_otherwise(out)
    }

    // What has to be at hand when the page is read is little: the rest is looked at afterwards.
    fn read_mapped_counter(&mut self, out: &mut ReadBuf) -> Result<()> {
        if let Some(group) = self.kernel_groups.only()
            && let Some(pages) = group.pages_with_times()
            && let Some(read) = pages.read_counter()
            && let Some(readings) = out.shared_readings(&self.parts)
            && group.take_mapped_counter(read, readings)
        {
            return Ok(());
        }
        self.read_otherwise(out)
    }

    fn read_mapped_group(&mut self, out: &mut ReadBuf) -> Result<()> {
        if let Some(group) = self.kernel_groups.only()
            && let Some(pages) = group.pages_with_times()
            && let Some(readings) = out.shared_readings(&self.parts)
            && group.try_mapped_group(pages, readings)
        {
            return Ok(());
        }
        self.read_otherwise(out)
    }

    fn read_mapped_since_call(&mut self, out: &mut ReadBuf) -> Result<()> {
        if let Some(group) = self.kernel_groups.only_mut()
            && let Some(readings) = out.shared_readings(&self.parts)
            && group.try_mapped_since_call(readings)
        {
            return Ok(());
        }
        self.read_otherwise(out)
    }

    /// Reads a group where its quickest way does not do.
    // So that what is quickest keeps its registers for that.
    #[cold]
    #[inline(never)]
    fn read_otherwise(&mut self, out: &mut ReadBuf) -> Result<()> {
        self.read_parts(out)
    }

    /// Reads any group into any buffer of its shape, or tells why that is not possible.
    #[inline(never)]
    pub(super) fn read_parts(&mut self, out: &mut ReadBuf) -> Result<()> {
        out.check_shape(self.members.len(), &self.parts)?;
        for (part, group) in self.kernel_groups.iter_mut().enumerate() {
            if let Err(failure) = group.read(&mut self.words, &mut out[part]) {
                return Err(self.read_error(part, failure));
            }
        }
        self.choose_ways();
        Ok(())
    }

    fn exact_counter(&mut self, values: &mut [u64]) -> Option<u64> {
        if let Some(group) = self.kernel_groups.only()
            && let Some(time) = group.exact_counter(values)
        {
            return Some(time);
        }
        self.exact_otherwise(values)
    }

    fn exact_snapshot(&mut self, values: &mut [u64]) -> Option<u64> {
        if let Some(group) = self.kernel_groups.only()
            && let Some(time) = group.exact_snapshot(&mut self.words, values)
        {
            return Some(time);
        }
        self.exact_otherwise(values)
    }

    fn exact_mapped_counter(&mut self, values: &mut [u64]) -> Option<u64> {
        if let Some(group) = self.kernel_groups.only()
            && group.exact_mapped_counter(values)
        {
            return Some(0);
        }
        self.exact_otherwise(values)
    }

    fn exact_mapped(&mut self, values: &mut [u64]) -> Option<u64> {
        if let Some(group) = self.kernel_groups.only()
            && group.exact_mapped(values)
        {
            return Some(0);
        }
        self.exact_otherwise(values)
    }

    /// Reads the values of pages as readings, for their time, which takes a clock.
    #[inline(never)]
    fn exact_mapped_timed(&mut self, values: &mut [u64]) -> Option<u64> {
        if values.len() == self.members.len()
            && let Some(group) = self.kernel_groups.only_mut()
            && group.read_pages(&mut self.at_reset)
            && let Some(time) = take_exact(&self.at_reset, values)
        {
            return Some(time);
        }
        self.exact_parts(values)
    }

    /// Reads values where the quickest way does not do: of a value beyond what was possible so far, it notes what is now.
    #[cold]
    #[inline(never)]
    fn exact_otherwise(&mut self, values: &mut [u64]) -> Option<u64> {
        self.exact_parts(values)
    }

    /// Reads the values of any group by a reading of all, and notes if that is in vain from now on.
    #[inline(never)]
    fn exact_parts(&mut self, values: &mut [u64]) -> Option<u64> {
        let group = self.kernel_groups.only_mut()?;
        if !self.may_be_exact
            || values.len() != self.members.len()
            || group.read(&mut self.words, &mut self.at_reset).is_err()
        {
            return None;
        }
        group.note_possible(&self.at_reset);
        let time = take_exact(&self.at_reset, values);
        self.may_be_exact = time.is_some();
        self.choose_ways();
        time
    }

    /// Chooses the ways of the next reads.
    pub(super) fn choose_ways(&mut self) {
        self.ways = self.kernel_groups.only().map_or(Ways::ANY, Self::best_ways);
        if !self.may_be_exact {
            (self.ways.exact, self.ways.exact_timed) = (Self::exact_parts, Self::exact_parts);
        }
    }

    fn best_ways(group: &KernelGroup) -> Ways {
        if group.is_best_read_by_pages() {
            let read: Read = match (group.tells_times(), group.is_one()) {
                (true, true) => Self::read_mapped_counter,
                (true, false) => Self::read_mapped_group,
                (false, _) => Self::read_mapped_since_call,
            };
            let exact: ReadExact = match group.is_one() {
                true => Self::exact_mapped_counter,
                false => Self::exact_mapped,
            };
            return Ways {
                read,
                exact,
                exact_timed: Self::exact_mapped_timed,
            };
        }
        // Those with pages find out which way is the quicker one.
        match group.plan() {
            ReadPlan::Single if !group.is_mapped() => Ways {
                read: Self::read_counter,
                exact: Self::exact_counter,
                exact_timed: Self::exact_counter,
            },
            ReadPlan::Snapshot if !group.is_mapped() && group.is_in_order() => Ways {
                read: Self::read_snapshot,
                exact: Self::exact_snapshot,
                exact_timed: Self::exact_snapshot,
            },
            _ => Ways::ANY,
        }
    }
}
