//! Meters of this thread or process: differences of its usage.

use quipu_hal::Result;

use crate::Quantity;
use crate::process_counts;
use crate::sys::{self, Who};
use crate::usage::Usage;

/// The scope of a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The calling thread.
    Thread,
    /// This process.
    Process,
    /// This process and the children it has waited for.
    ProcessAndChildren,
}

/// Sums up what is used while enabled.
#[derive(Debug)]
pub(crate) struct Meter {
    sources: Sources,
    /// The usage when it was last enabled or reset; `None` while disabled.
    since: Option<Usage>,
    /// The usage of earlier spans since the last reset.
    before: Usage,
    /// CPU time metered before the last reset.
    before_reset: u64,
}

/// The calls that a group's events need.
#[derive(Debug, Clone, Copy)]
struct Sources {
    scope: Scope,
    rusage: bool,
    cpu_clock: bool,
    wall_clock: bool,
    counters: bool,
}

/// A meter's reading: usage since the last reset, and CPU time since opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Metered {
    /// Since the last reset.
    pub(crate) usage: Usage,
    /// Nanoseconds of CPU time metered since opening.
    pub(crate) cpu_since_opening: u64,
}

impl Meter {
    /// Creates a meter for these events, enabled if `counts`.
    pub(crate) fn new(quantities: &[Quantity], scope: Scope, counts: bool) -> Result<Self> {
        let rusage = quantities.iter().any(|q| q.is_from_rusage());
        let sources = Sources {
            scope,
            rusage,
            // Without a clock that moves, time enabled would stand still for a tick.
            cpu_clock: !rusage
                || sys::HAS_SAMPLED_TIMES
                || quantities.contains(&Quantity::TaskClock),
            wall_clock: quantities.contains(&Quantity::WallTime),
            counters: quantities.iter().any(|q| q.is_of_counters()),
        };
        let mut meter = Self {
            sources,
            since: None,
            before: Usage::default(),
            before_reset: 0,
        };
        if counts {
            meter.enable()?;
        }
        Ok(meter)
    }

    /// Returns true if one call reads everything.
    pub(crate) fn is_one_snapshot(&self) -> bool {
        let Sources {
            scope,
            rusage,
            cpu_clock,
            wall_clock,
            counters,
        } = self.sources;
        let calls = [rusage, cpu_clock, wall_clock, counters];
        calls.into_iter().map(u8::from).sum::<u8>() == 1 && scope != Scope::ProcessAndChildren
    }

    pub(crate) fn enable(&mut self) -> Result<()> {
        if self.since.is_none() {
            self.since = Some(self.sources.usage()?);
        }
        Ok(())
    }

    pub(crate) fn disable(&mut self) -> Result<()> {
        if let Some(since) = self.since {
            self.before = self.before.plus(&self.sources.usage()?.since(&since));
            self.since = None;
        }
        Ok(())
    }

    pub(crate) fn reset(&mut self) -> Result<()> {
        let mut cpu = self.before.cpu;
        if let Some(since) = &mut self.since {
            let now = self.sources.usage()?;
            cpu = cpu.saturating_add(now.since(since).cpu);
            *since = now;
        }
        self.before_reset = self.before_reset.saturating_add(cpu);
        self.before = Usage::default();
        Ok(())
    }

    pub(crate) fn read(&self) -> Result<Metered> {
        let usage = match &self.since {
            Some(since) => self.before.plus(&self.sources.usage()?.since(since)),
            None => self.before,
        };
        Ok(Metered {
            usage,
            cpu_since_opening: self.before_reset.saturating_add(usage.cpu),
        })
    }
}

impl Sources {
    fn usage(self) -> Result<Usage> {
        let who = match self.scope {
            Scope::Thread => Who::Thread,
            Scope::Process | Scope::ProcessAndChildren => Who::Process,
        };
        let mut usage = if self.rusage {
            sys::usage(who)?
        } else {
            Usage::default()
        };
        if self.cpu_clock {
            usage.cpu = sys::cpu_time(who)?;
        }
        if self.scope == Scope::ProcessAndChildren {
            usage = usage.plus(&sys::usage(Who::Children)?);
        }
        if self.counters {
            usage.counts = process_counts::look(nix::unistd::getpid().as_raw())?.counts;
        }
        if self.wall_clock {
            usage.wall = sys::wall_time()?;
        }
        Ok(usage)
    }
}
