//! Enabling, disabling and resetting that do something else.

use std::thread::{self, ThreadId};

use quipu_hal::{Error, ErrorKind, Group, ReadBuf, Reading, Result};

use super::tamper::{Defect, Mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::of("enable-clears", "enabling a group clears it", EnableClears),
        Mutant::of(
            "enable-once",
            "a group can be enabled once only",
            EnableOnce::default(),
        ),
        Mutant::of("disable-ignored", "disabling does nothing", DisableIgnored),
        Mutant::of(
            "disable-clears",
            "disabling a group clears it",
            DisableClears,
        ),
        Mutant::of(
            "disable-drops-the-rest",
            "disabling drops what was not read yet",
            Drops::default(),
        ),
        Mutant::of(
            "time-never-stops",
            "times go on while a group is disabled",
            NoStop::default(),
        ),
        Mutant::of("reset-ignored", "resetting does nothing", ResetIgnored),
        Mutant::of("reset-stops", "resetting stops the group", ResetStops),
        Mutant::of("reset-starts", "resetting starts the group", ResetStarts),
        Mutant::of(
            "reset-leader-only",
            "resetting clears the leader only",
            LeaderOnly::default(),
        ),
        Mutant::of(
            "reset-keeps-times",
            "resetting clears the values, and the times go on",
            KeepsTimes::default(),
        ),
        Mutant::of(
            "tied-to-its-thread",
            "groups work on the thread that opened them only",
            Tied::default(),
        ),
    ]
}

#[derive(Clone)]
struct EnableClears;

impl Defect for EnableClears {
    fn enable(&mut self, group: &mut dyn Group) -> Result<()> {
        group.reset()?;
        group.enable()
    }
}

#[derive(Clone, Default)]
struct EnableOnce(bool);

impl Defect for EnableOnce {
    fn enable(&mut self, group: &mut dyn Group) -> Result<()> {
        if std::mem::replace(&mut self.0, true) {
            Ok(())
        } else {
            group.enable()
        }
    }
}

#[derive(Clone)]
struct DisableIgnored;

impl Defect for DisableIgnored {
    fn disable(&mut self, _: &mut dyn Group) -> Result<()> {
        Ok(())
    }
}

#[derive(Clone)]
struct DisableClears;

impl Defect for DisableClears {
    fn disable(&mut self, group: &mut dyn Group) -> Result<()> {
        group.disable()?;
        group.reset()
    }
}

/// The last reading, and how much less than the group's each member is.
#[derive(Clone, Default)]
struct Drops {
    read: Vec<u64>,
    less: Vec<u64>,
}

impl Defect for Drops {
    fn disable(&mut self, group: &mut dyn Group) -> Result<()> {
        group.disable()?;
        let mut buf = group.read_buf();
        group.read(&mut buf)?;
        self.less = buf[0].iter().map(|r| r.value).collect();
        for (less, read) in self.less.iter_mut().zip(&self.read) {
            *less = less.saturating_sub(*read);
        }
        Ok(())
    }

    fn reset(&mut self, group: &mut dyn Group) -> Result<()> {
        *self = Self::default();
        group.reset()
    }

    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        group.read(out)?;
        for (reading, less) in out[0].iter_mut().zip(&self.less) {
            reading.value = reading.value.saturating_sub(*less);
        }
        self.read = out[0].iter().map(|r| r.value).collect();
        Ok(())
    }
}

/// Nanoseconds that went on while disabled.
#[derive(Clone, Default)]
struct NoStop(u64);

impl Defect for NoStop {
    fn disable(&mut self, group: &mut dyn Group) -> Result<()> {
        self.0 += 1;
        group.disable()
    }

    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        group.read(out)?;
        if self.0 > 0 {
            self.0 += 1;
        }
        for reading in &mut out[0] {
            reading.time_enabled += self.0;
            reading.raw_time_enabled += self.0;
            reading.time_running += self.0;
            reading.raw_time_running += self.0;
        }
        Ok(())
    }
}

#[derive(Clone)]
struct ResetIgnored;

impl Defect for ResetIgnored {
    fn reset(&mut self, _: &mut dyn Group) -> Result<()> {
        Ok(())
    }
}

#[derive(Clone)]
struct ResetStops;

impl Defect for ResetStops {
    fn reset(&mut self, group: &mut dyn Group) -> Result<()> {
        group.reset()?;
        group.disable()
    }
}

#[derive(Clone)]
struct ResetStarts;

impl Defect for ResetStarts {
    fn reset(&mut self, group: &mut dyn Group) -> Result<()> {
        group.reset()?;
        group.enable()
    }
}

/// The value that is added to the siblings of the leader.
#[derive(Clone, Default)]
struct LeaderOnly(Vec<u64>);

impl Defect for LeaderOnly {
    fn reset(&mut self, group: &mut dyn Group) -> Result<()> {
        let mut buf = group.read_buf();
        self.read(group, &mut buf)?;
        self.0 = buf[0].iter().map(|r| r.value).collect();
        self.0[0] = 0;
        group.reset()
    }

    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        group.read(out)?;
        for (reading, more) in out[0].iter_mut().zip(&self.0) {
            reading.value += more;
        }
        Ok(())
    }
}

/// The times that a reset should have taken.
#[derive(Clone, Default)]
struct KeepsTimes(Reading);

impl Defect for KeepsTimes {
    fn reset(&mut self, group: &mut dyn Group) -> Result<()> {
        let mut buf = group.read_buf();
        self.read(group, &mut buf)?;
        self.0 = buf[0][0];
        group.reset()
    }

    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        group.read(out)?;
        for reading in &mut out[0] {
            reading.time_enabled += self.0.time_enabled;
            reading.time_running += self.0.time_running;
        }
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Tied(Option<ThreadId>);

impl Tied {
    fn check(&mut self) -> Result<()> {
        let this = thread::current().id();
        if *self.0.get_or_insert(this) == this {
            return Ok(());
        }
        Err(Error::new(ErrorKind::WrongThread, "use the group"))
    }
}

impl Defect for Tied {
    fn enable(&mut self, group: &mut dyn Group) -> Result<()> {
        self.check()?;
        group.enable()
    }

    fn disable(&mut self, group: &mut dyn Group) -> Result<()> {
        self.check()?;
        group.disable()
    }

    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        self.check()?;
        group.read(out)
    }
}
