//! A child process, whose usage is known once it has been waited for.

use quipu_hal::{Error, ErrorKind, Reading, Result};

use crate::Quantity;
use crate::process_counts::{self, Look};
use crate::sys::{self, Who};
use crate::usage::Usage;

/// A child, counted from fork to end.
#[derive(Debug)]
pub(crate) struct Child {
    pid: i32,
    /// True once it was enabled; before, nothing is counted.
    counts: bool,
    /// Wall time when it was opened.
    opened: u64,
    /// The usage of all waited-for children when it was opened.
    others: Usage,
    /// True if counts of the kernel are asked for, which it has until the child is waited for.
    asks_for_counts: bool,
    /// Those, if it was looked at between its end and that.
    last: Option<Look>,
    /// Its usage, once it has been waited for.
    ended: Option<Ended>,
}

#[derive(Debug, Clone, Copy)]
struct Ended {
    usage: Usage,
    peak_is_known: bool,
    was_reset: bool,
    /// True if its counts are known.
    was_looked_at: bool,
    had_children: bool,
}

impl Child {
    pub(crate) fn new(pid: i32, quantities: &[Quantity], counts: bool) -> Result<Self> {
        Ok(Self {
            pid,
            counts,
            opened: sys::wall_time()?,
            others: sys::usage(Who::Children)?,
            asks_for_counts: quantities.iter().any(|q| q.is_of_counters()),
            last: None,
            ended: None,
        })
    }

    pub(crate) fn enable(&mut self) -> Result<()> {
        if self.end()?.is_some() && !self.counts {
            return Err(self.cannot("enable", "it has ended already"));
        }
        self.counts = true;
        Ok(())
    }

    pub(crate) fn disable(&mut self) -> Result<()> {
        if self.counts && self.end()?.is_none() {
            return Err(self.cannot(
                "disable",
                "its use is known as a whole only, when it has ended",
            ));
        }
        Ok(())
    }

    pub(crate) fn reset(&mut self) -> Result<()> {
        if !self.counts {
            return Ok(());
        }
        if self.end()?.is_none() {
            return Err(self.cannot(
                "reset",
                "its use is known as a whole only, when it has ended",
            ));
        }
        if let Some(ended) = &mut self.ended {
            ended.was_reset = true;
        }
        Ok(())
    }

    /// Reads the events into `out`, an element for each.
    pub(crate) fn read(&mut self, quantities: &[Quantity], out: &mut [Reading]) -> Result<()> {
        let ended = self.end()?;
        let waiting = match ended {
            None if self.counts => sys::wall_time()?.saturating_sub(self.opened).max(1),
            _ => 0,
        };
        for (quantity, out) in quantities.iter().zip(out) {
            *out = match ended {
                _ if !self.counts => Reading::default(),
                None => Reading::new(0, waiting, 0),
                Some(ended) => ended.reading(*quantity),
            };
        }
        Ok(())
    }

    /// Returns the usage of the child, or `None` until it has been waited for. Looked up once.
    fn end(&mut self) -> Result<Option<Ended>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        let look = match self.asks_for_counts {
            // What cannot be looked at is not known.
            true => process_counts::look(self.pid).ok(),
            false => None,
        };
        // Until then the number is the child's.
        if sys::is_unwaited_child(self.pid)? {
            self.last = look.filter(|look| look.has_ended).or(self.last);
            return Ok(None);
        }
        let all = sys::usage(Who::Children)?;
        let of_child = all.since(&self.others);
        self.ended = Some(Ended {
            usage: Usage {
                counts: self.last.map_or(of_child.counts, |last| last.counts),
                ..of_child
            },
            peak_is_known: all.peak_memory > self.others.peak_memory,
            was_reset: false,
            was_looked_at: self.last.is_some(),
            had_children: self.last.is_some_and(|last| last.had_children),
        });
        Ok(self.ended)
    }

    fn cannot(&self, what: &str, reason: &str) -> Error {
        Error::new(
            ErrorKind::UnsupportedFeature,
            format!("{what} counters of child process {}", self.pid),
        )
        .with_reason(reason)
    }
}

impl Ended {
    fn reading(&self, quantity: Quantity) -> Reading {
        // A child that used less than the resolution of its times was enabled all the same.
        let time = self.usage.cpu.max(1);
        let is_known = match quantity {
            Quantity::PeakMemory => self.peak_is_known,
            _ => self.was_looked_at || !quantity.is_of_counters(),
        };
        let running = if is_known { time } else { 0 };
        // Its children are not in the counts, and what it used since its last switch is not in the energy.
        let at_least = quantity.is_energy() || self.had_children && quantity.is_of_counters();
        let since_reset = match self.was_reset {
            true => Reading::default(),
            false => {
                Reading::new(self.usage.value(quantity), time, running).with_at_least(at_least)
            }
        };
        since_reset.with_raw_times(time, running)
    }
}

#[cfg(test)]
mod tests {
    use quipu_hal::Count;

    use super::*;
    use crate::process_counts::ProcessCounts;

    #[test]
    fn counts_are_known_of_a_child_that_was_looked_at_and_a_lower_bound_beside_children() {
        let usage = Usage {
            cpu: 5,
            minor_faults: 6,
            counts: ProcessCounts {
                instructions: 7,
                energy: 8,
                ..ProcessCounts::default()
            },
            ..Usage::default()
        };
        let counts = |was_looked_at, had_children| {
            let ended = Ended {
                usage,
                peak_is_known: true,
                was_reset: false,
                was_looked_at,
                had_children,
            };
            [
                Quantity::MinorFaults,
                Quantity::Instructions,
                Quantity::Energy,
            ]
            .map(|quantity| ended.reading(quantity).count())
        };
        let faults = Count::Exact(6);
        let energy = Count::AtLeast(8);
        assert_eq!(counts(true, false), [faults, Count::Exact(7), energy]);
        assert_eq!(counts(true, true), [faults, Count::AtLeast(7), energy]);
        assert_eq!(
            counts(false, false),
            [faults, Count::NotCounted, Count::NotCounted]
        );
    }
}
