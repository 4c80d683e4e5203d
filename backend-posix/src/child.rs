//! A child process, whose usage is known once it has been waited for.

use quipu_hal::{Error, ErrorKind, Reading, Result};

use crate::Quantity;
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
    /// Its usage, once it has been waited for.
    ended: Option<Ended>,
}

#[derive(Debug, Clone, Copy)]
struct Ended {
    usage: Usage,
    peak_is_known: bool,
    was_reset: bool,
}

impl Child {
    pub(crate) fn new(pid: i32, counts: bool) -> Result<Self> {
        Ok(Self {
            pid,
            counts,
            opened: sys::wall_time()?,
            others: sys::usage(Who::Children)?,
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
        if self.ended.is_none() && !sys::is_unwaited_child(self.pid)? {
            let all = sys::usage(Who::Children)?;
            self.ended = Some(Ended {
                usage: all.since(&self.others),
                peak_is_known: all.peak_memory > self.others.peak_memory,
                was_reset: false,
            });
        }
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
        let running = if quantity == Quantity::PeakMemory && !self.peak_is_known {
            0
        } else {
            time
        };
        let since_reset = match self.was_reset {
            true => Reading::default(),
            false => Reading::new(self.usage.value(quantity), time, running),
        };
        since_reset.with_raw_times(time, running)
    }
}
